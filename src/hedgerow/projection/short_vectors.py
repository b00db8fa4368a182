"""Multiples of short vectors added to others, the innermost operation of assembly, factorisation and flows.

A layer has 3 to 30 states. The compiler vectorises a plain loop for long vectors: a preamble that costs more than three
additions, sixteen entries at a time, and what remains, here mostly all, one by one. So the vector operation is spelt
out, four and two entries at a time. Each entry is one product and one sum, rounded as ever: the result is that of the
plain loop, bit by bit. Offsets are unsigned: a signed one may be negative, which has to be looked into every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.projection.lanes import PLAIN, ir

TWO, FOUR = np.uint64(2), np.uint64(4)


def _adding(width: int) -> Callable[[FloatArray, np.uint64, float, FloatArray, np.uint64], None]:
    """The function that adds a multiple of `width` entries to as many others, in one vector operation."""
    if PLAIN:

        def add(target: FloatArray, to: np.uint64, factor: float, source: FloatArray, at: np.uint64) -> None:
            target[to : to + np.uint64(width)] += factor * source[at : at + np.uint64(width)]

        return add

    def typed(context: Any, target: Any, to: Any, factor: Any, source: Any, at: Any) -> Any:
        lane = ir.VectorType(ir.DoubleType(), width)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def place(array: int, offset: int) -> Any:
                data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                return builder.bitcast(builder.gep(data, [arguments[offset]]), lane.as_pointer())

            first = builder.insert_element(ir.Constant(lane, ir.Undefined), arguments[2], ir.IntType(32)(0))
            every = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            multiple = builder.shuffle_vector(first, ir.Constant(lane, ir.Undefined), every)
            goal = place(0, 1)
            added = builder.fmul(multiple, builder.load(place(3, 4), align=8))
            builder.store(builder.fadd(builder.load(goal, align=8), added), goal, align=8)
            return context.get_dummy_value()

        return types.void(target, to, factor, source, at), generate

    made: Any = intrinsic(typed)
    return made  # type: ignore[no-any-return]


_add_two, _add_four = _adding(2), _adding(4)


@kernel
def add_multiple(target: FloatArray, to: int, factor: float, source: FloatArray, at: int, count: int) -> None:
    """target[to : to + count] += factor * source[at : at + count]; contiguous, and the two must not overlap."""
    t, s, left = np.uint64(to), np.uint64(at), count
    while left >= 4:
        _add_four(target, t, factor, source, s)
        t += FOUR
        s += FOUR
        left -= 4
    if left >= 2:
        _add_two(target, t, factor, source, s)
        t += TWO
        s += TWO
        left -= 2
    if left > 0:
        target[t] += factor * source[s]
