"""The steps of `rows.settle_row` for eight neighbouring successors at a time, as vector operations.

Rows are short, 3 to 30 successors, and hard to predict: which of them are at a bound differs from row to row. A row
that leads to a whole layer is therefore taken in pieces of eight lanes; the last piece uses some of them. Each lane
does what the plain loop does, with selections instead of branches; sums are formed in pairs. Reading back a masked
store is slow, so no step stores what a following step needs.

A *lane mask* prevents reads and writes beyond the row.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.projection.lanes import PLAIN, Lanes, ir

PAIR, NUMBERS = (cast(Any, types.UniTuple)(kind, 2) for kind in (types.float64, types.int64))
MIXED = cast(Any, types.Tuple)([types.float64, types.int64])
TIE = 1e-12
"""A successor leaves the bound that it is at only if it is this much inside, relatively.

The base is the last projection, whose active bounds hold with equality: without this, rounding would decide each one.
The row still sums to 1 within its box, and is the solution for a v that differs by as much.
"""
Bounds = NDArray[np.int8]


def _weigh_intrinsic() -> Any:
    def typed(
        context: Any, base: Any, scaled: Any, lower: Any, upper: Any, bound: Any, at: Any, to: Any, count: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at, to, count = arguments[5:]
            lanes = Lanes(context, builder, signature, arguments, count)
            weight = builder.fmul(lanes.load(0, at, lanes.double), lanes.load(1, to, lanes.double))
            least, most = lanes.load(2, at, lanes.double), lanes.load(3, at, lanes.double)
            side, none, zero = lanes.load(4, at, lanes.byte), ir.Constant(lanes.byte, None), lanes.constant(0.0)
            free = builder.icmp_signed("==", side, none)
            held = builder.select(builder.icmp_signed(">", side, none), most, least)
            sums = [lanes.total(builder.select(free, weight, zero)), lanes.total(builder.select(free, zero, held))]
            return context.make_tuple(builder, signature.return_type, sums)

        return PAIR(base, scaled, lower, upper, bound, types.uint64, types.uint64, types.uint64), generate

    return intrinsic(typed)


def _clip_intrinsic() -> Any:
    def typed(
        context: Any, base: Any, scaled: Any, lower: Any, upper: Any, bound: Any, p: Any, scale: Any, at: Any, to: Any,
        count: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scale, at, to, count = arguments[6:]
            lanes = Lanes(context, builder, signature, arguments, count)
            weight = builder.fmul(lanes.load(0, at, lanes.double), lanes.load(1, to, lanes.double))
            least, most = lanes.load(2, at, lanes.double), lanes.load(3, at, lanes.double)
            last, none = lanes.load(4, at, lanes.byte), ir.Constant(lanes.byte, None)
            x = builder.fmul(weight, lanes.spread(scale, lanes.double))
            was_high, was_low = (builder.icmp_signed(sign, last, none) for sign in "><")
            ceiling = builder.select(was_high, builder.fmul(most, lanes.constant(1.0 - TIE)), most)
            ground = builder.select(was_low, builder.fmul(least, lanes.constant(1.0 + TIE)), least)
            above = builder.fcmp_ordered(">", x, ceiling)
            below = builder.and_(builder.fcmp_ordered("<", x, ground), builder.not_(above))
            lanes.store(builder.select(above, most, builder.select(below, least, x)), 5, at)
            side = builder.sub(builder.zext(above, lanes.byte), builder.zext(below, lanes.byte))
            changed = lanes.number(builder.icmp_signed("!=", side, last))
            with builder.if_then(builder.icmp_unsigned("!=", changed, ir.Constant(changed.type, 0)), likely=False):
                lanes.store(side, 4, at)
            counts = [lanes.number(builder.or_(above, below)), changed]
            return context.make_tuple(builder, signature.return_type, counts)

        places = (types.float64, types.uint64, types.uint64, types.uint64)
        return NUMBERS(base, scaled, lower, upper, bound, p, *places), generate

    return intrinsic(typed)


def _held_intrinsic() -> Any:
    def typed(
        context: Any, lower: Any, upper: Any, bound: Any, noted: Any, log_ratio: Any, v: Any, at: Any, to: Any,
        count: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at, to, count = arguments[6:]
            lanes = Lanes(context, builder, signature, arguments, count)
            least, most = lanes.load(0, at, lanes.double), lanes.load(1, at, lanes.double)
            side, none, zero = lanes.load(2, at, lanes.byte), ir.Constant(lanes.byte, None), lanes.constant(0.0)
            held = builder.icmp_signed("!=", side, none)
            p = builder.select(builder.icmp_signed(">", side, none), most, least)
            exponent = builder.fadd(lanes.load(5, to, lanes.double), lanes.load(4, at, lanes.double))
            total = lanes.total(builder.select(held, builder.fmul(p, exponent), zero))
            other = builder.icmp_signed("!=", side, lanes.load(3, at, lanes.byte))
            missing = lanes.number(builder.and_(held, other))
            return context.make_tuple(builder, signature.return_type, [total, missing])

        places = (types.uint64, types.uint64, types.uint64)
        return MIXED(lower, upper, bound, noted, log_ratio, v, *places), generate

    return intrinsic(typed)


def _held_plainly(
    lower: FloatArray,
    upper: FloatArray,
    bound: Bounds,
    noted: Bounds,
    log_ratio: FloatArray,
    v: FloatArray,
    at: np.uint64,
    to: np.uint64,
    count: np.uint64,
) -> tuple[float, int]:
    here = slice(int(at), int(at + count))
    side, exponent = bound[here], v[int(to) : int(to + count)] + log_ratio[here]
    terms = np.where(side > 0, upper[here], lower[here]) * exponent
    return float(terms[side != 0].sum()), int(np.count_nonzero((side != 0) & (side != noted[here])))


def _weigh_plainly(
    base: FloatArray,
    scaled: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    bound: Bounds,
    at: np.uint64,
    to: np.uint64,
    count: np.uint64,
) -> tuple[float, float]:
    here = slice(int(at), int(at + count))
    weight = base[here] * scaled[int(to) : int(to + count)]
    held = np.where(bound[here] > 0, upper[here], lower[here])
    return float(weight[bound[here] == 0].sum()), float(held[bound[here] != 0].sum())


def _clip_plainly(
    base: FloatArray,
    scaled: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    bound: Bounds,
    p: FloatArray,
    scale: float,
    at: np.uint64,
    to: np.uint64,
    count: np.uint64,
) -> tuple[int, int]:
    here = slice(int(at), int(at + count))
    x, last = base[here] * scaled[int(to) : int(to + count)] * scale, bound[here].copy()
    above = x > np.where(last > 0, upper[here] * (1.0 - TIE), upper[here])
    below = (x < np.where(last < 0, lower[here] * (1.0 + TIE), lower[here])) & ~above
    p[here] = np.where(above, upper[here], np.where(below, lower[here], x))
    bound[here] = above.astype(np.int8) - below.astype(np.int8)
    return int(np.count_nonzero(above | below)), int(np.count_nonzero(bound[here] != last))


weigh = _weigh_plainly if PLAIN else _weigh_intrinsic()
"""(base, scaled, lower, upper, bound, at, to, count): for `count` successors from triple `at` and state `to` on, the
sum of the weights base * scaled of the free ones, and the sum of the bounds that the others are at.
"""
clip = _clip_plainly if PLAIN else _clip_intrinsic()
"""(base, scaled, lower, upper, bound, p, scale, at, to, count): scale the weights and clip them, into p.

Returns how many are at a bound, and how many of the bounds changed.
"""
held_value = _held_plainly if PLAIN else _held_intrinsic()
"""(lower, upper, bound, noted, log_ratio, v, at, to, count): sum p (v + log_ratio) over the successors at a bound.

Returns it with the number of those whose log_ratio does not belong to that bound.
"""
