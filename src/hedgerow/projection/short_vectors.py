"""Add multiples of short vectors to others: the innermost operations of assembly, factorisation and flows.

A layer has 3 to 30 states. The compiler vectorises a plain loop for long vectors: a preamble that costs more than three
additions, sixteen entries at a time, and the rest, here mostly all, one by one. This module writes the vector operation
itself, four and two entries at a time. Each entry is one product and one sum, rounded as usual: the result is that of
the plain loop, bit by bit. Offsets are unsigned, because compiled code would test a signed one for its sign every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.projection.lanes import LANES, PLAIN, Lanes, ir

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


def _weigh_intrinsic() -> Any:
    def typed(
        context: Any, target: Any, to: Any, weights: Any, first: Any, num: Any, source: Any, at: Any, width: Any,
        count: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, first, num, at, width, count = (arguments[i] for i in (1, 3, 4, 6, 7, 8))
            lanes = Lanes(context, builder, signature, arguments, count)
            total = cgutils.alloca_once_value(builder, lanes.constant(0.0))
            weights = context.make_array(signature.args[2])(context, builder, arguments[2]).data
            with cgutils.for_range(builder, num) as loop:
                weight = builder.load(builder.gep(weights, [builder.add(first, loop.index)]))
                row = lanes.load(5, builder.add(at, builder.mul(loop.index, width)), lanes.double)
                product = builder.fmul(lanes.spread(weight, lanes.double), row)
                builder.store(builder.fadd(builder.load(total), product), total)
            lanes.store(builder.load(total), 0, to)
            return context.get_dummy_value()

        places = [types.uint64] * 3
        return types.void(target, types.uint64, weights, *places[:2], source, *places), generate

    return intrinsic(typed)


def _weigh_plainly(
    target: FloatArray, to: int, weights: FloatArray, first: int, num: int, source: FloatArray, at: int, width: int,
    count: int,
) -> None:  # fmt: skip
    total = np.zeros(int(count))
    for i in range(int(num)):
        total += weights[int(first) + i] * source[int(at) + i * int(width) : int(at) + i * int(width) + int(count)]
    target[int(to) : int(to) + int(count)] = total


_weigh: Any = _weigh_plainly if PLAIN else _weigh_intrinsic()


@kernel
def weigh_rows(
    target: FloatArray, to: int, weights: FloatArray, first: int, num: int, source: FloatArray, at: int, width: int
) -> None:
    """target[to : to + width] = sum over i < num of weights[first + i] * (the i-th row of `width` entries from `at`).

    Sums are kept in registers while the rows go by, instead of being stored and loaded again for each.
    """
    for j in range(0, width, LANES):
        count = np.uint64(min(LANES, width - j))
        _weigh(
            target, np.uint64(to + j), weights, np.uint64(first), np.uint64(num), source, np.uint64(at + j),
            np.uint64(width), count,
        )  # fmt: skip
