"""Vector code for the short loops of the projection: eight neighbouring numbers at a time, the last piece masked.

The compiler vectorises plain loops for long vectors, and calls a function of the C library for every exponential. Rows
and layers have 3 to 30 entries, so both are written as vector operations here: exponentials and logarithms, sums of
short vectors, and the steps of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import factorial, inf, log, sqrt
from struct import pack, unpack
from typing import Any, cast

import numpy as np
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel

ir: Any = import_module("llvmlite.ir")  # has no types

LANES = 8
PLAIN: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
"""Whether kernels run as Python; then numpy replaces the lanes."""


class Lanes:
    """Writes operations on LANES numbers into a function; the first `count` of them are in use."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, count: Any) -> None:
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments
        self.double, self.byte, self.integer, self.short = (
            ir.VectorType(kind, LANES) for kind in (ir.DoubleType(), *map(ir.IntType, (8, 64, 32)))
        )
        numbers = ir.Constant(self.integer, list(range(LANES)))
        self.mask = builder.icmp_unsigned("<", numbers, self.spread(count, self.integer))

    def spread(self, value: Any, kind: Any) -> Any:
        """The same value in all lanes."""
        none = ir.Constant(kind, ir.Undefined)
        one = self.builder.insert_element(none, value, ir.IntType(32)(0))
        return self.builder.shuffle_vector(one, none, ir.Constant(self.short, [0] * LANES))

    def constant(self, value: float) -> Any:
        return ir.Constant(self.double, [value] * LANES)

    def load(self, array: int, offset: Any, kind: Any, otherwise: Any = None) -> Any:
        """Lanes of the argument number `array` from `offset` on; 0, or `otherwise`, in those that are not in use."""
        load = self._masked("load", kind, kind, [], [self.mask.type, kind])
        rest = ir.Constant(kind, None) if otherwise is None else otherwise
        return self.builder.call(load, [self._place(array, offset, kind), self._alignment(kind), self.mask, rest])

    def store(self, value: Any, array: int, offset: Any) -> None:
        kind = value.type
        store = self._masked("store", kind, ir.VoidType(), [kind], [self.mask.type])
        self.builder.call(store, [value, self._place(array, offset, kind), self._alignment(kind), self.mask])

    def total(self, vector: Any) -> Any:
        """The sum of all lanes: halves, quarters, eighths."""
        builder, width = self.builder, LANES
        while width > 1:
            width //= 2
            none, places = ir.Constant(vector.type, ir.Undefined), ir.VectorType(ir.IntType(32), width)
            low = builder.shuffle_vector(vector, none, ir.Constant(places, list(range(width))))
            high = builder.shuffle_vector(vector, none, ir.Constant(places, list(range(width, 2 * width))))
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, ir.IntType(32)(0))

    def number(self, bits: Any) -> Any:
        """How many lanes are set, as a 64-bit integer."""
        packed = self.builder.zext(self.builder.bitcast(bits, ir.IntType(LANES)), ir.IntType(64))
        return self.builder.ctpop(packed)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once where the processor can."""
        kind = ir.FunctionType(self.double, [self.double] * 3)
        fused = self.builder.module.declare_intrinsic("llvm.fmuladd.v8f64", fnty=kind)
        return self.builder.call(fused, [a, b, c])

    def polynomial(self, x: Any, coefficients: list[float]) -> Any:
        """sum of coefficients[k] x^k, in pairs, pairs of pairs and so on: few operations wait for each other."""
        terms, power = [self.constant(c) for c in coefficients], x
        while len(terms) > 1:
            pairs = [self.multiply_add(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
            if len(terms) > 1:
                power = self.builder.fmul(power, power)
        return terms[0]

    def _place(self, array: int, offset: Any, kind: Any) -> Any:
        made = self.context.make_array(self.signature.args[array])
        data = made(self.context, self.builder, self.arguments[array]).data
        return self.builder.bitcast(self.builder.gep(data, [offset]), kind.as_pointer())

    @staticmethod
    def _alignment(kind: Any) -> Any:
        return ir.IntType(32)(8 if isinstance(kind.element, ir.DoubleType) else 1)

    def _masked(self, name: str, kind: Any, result: Any, first: list[Any], last: list[Any]) -> Any:
        suffix = "v8f64" if isinstance(kind.element, ir.DoubleType) else "v8i8"
        signature = ir.FunctionType(result, [*first, kind.as_pointer(), ir.IntType(32), *last])
        return self.builder.module.declare_intrinsic(f"llvm.masked.{name}.{suffix}.p0", fnty=signature)


# --------------------------------------------------------------------------------------------------------------------
# Exponentials and logarithms of neighbouring numbers, eight at a time: one by one they take a third of a projection.
#
#     e^x  = 2^n e^r,                      n = round(x / ln 2),  |r| <= ln(2)/2:  the series of e^r up to r^13
#     ln x = n ln 2 + 2 artanh(s),         x = 2^n m,  m in [sqrt(1/2), sqrt(2)),  s = (m - 1)/(m + 1),  |s| < 0.172:
#                                          the series of artanh up to s^21
#
# The rest of either series is below rounding, and results are within a few units in the last place. n ln 2 is
# subtracted or added in two parts; the first is exact.


SMALLEST_EXPONENT = -708.0
"""e to the power of less is 0 here."""
LARGEST_EXPONENT = 709.0
"""e to the power of more is infinite here."""
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa3000p-1"), float.fromhex("0x1.3de6af278ece6p-42")
"""ln 2 in two parts; the first has 41 digits, which makes its products with n exact."""
SHIFTER = 1.5 * 2.0**52
"""A moderate number plus this has its nearest integer in the last bits."""
BITS_OF_SQRT_HALF = unpack("<q", pack("<d", sqrt(0.5)))[0]


def _integers(lanes: Lanes, value: int) -> Any:
    return ir.Constant(lanes.integer, [value] * LANES)


def _exponential(lanes: Lanes, x: Any) -> Any:
    builder = lanes.builder
    least, most = lanes.constant(SMALLEST_EXPONENT), lanes.constant(LARGEST_EXPONENT)
    tiny, huge = builder.fcmp_ordered("<", x, least), builder.fcmp_ordered(">", x, most)
    moderate = builder.select(tiny, least, builder.select(huge, most, x))
    shifted = lanes.multiply_add(moderate, lanes.constant(1.0 / log(2.0)), lanes.constant(SHIFTER))
    n = builder.fsub(shifted, lanes.constant(SHIFTER))
    r = lanes.multiply_add(n, lanes.constant(-LN2_HIGH), moderate)
    r = lanes.multiply_add(n, lanes.constant(-LN2_LOW), r)
    power = lanes.polynomial(r, [1.0 / factorial(k) for k in range(14)])
    exponent = builder.shl(builder.bitcast(shifted, lanes.integer), _integers(lanes, 52))
    result = builder.bitcast(builder.add(builder.bitcast(power, lanes.integer), exponent), lanes.double)
    result = builder.select(tiny, lanes.constant(0.0), builder.select(huge, lanes.constant(inf), result))
    return builder.select(builder.fcmp_unordered("uno", x, x), x, result)


def _logarithm(lanes: Lanes, x: Any) -> Any:
    builder = lanes.builder
    bits = builder.bitcast(x, lanes.integer)
    n = builder.ashr(builder.sub(bits, _integers(lanes, BITS_OF_SQRT_HALF)), _integers(lanes, 52))
    m = builder.bitcast(builder.sub(bits, builder.shl(n, _integers(lanes, 52))), lanes.double)
    n = builder.sitofp(builder.trunc(n, lanes.short), lanes.double)
    one = lanes.constant(1.0)
    f = builder.fsub(m, one)
    s = builder.fdiv(f, builder.fadd(m, one))
    z = builder.fmul(s, s)
    series = lanes.polynomial(z, [2.0 / (2 * k + 3) for k in range(10)])  # (artanh(s) - s) / s^3, twice
    tail = lanes.multiply_add(builder.fmul(s, z), series, builder.fmul(n, lanes.constant(LN2_LOW)))
    return lanes.multiply_add(n, lanes.constant(LN2_HIGH), builder.fadd(builder.fadd(s, s), tail))


def _in_place(function: Any, neutral: float) -> Any:
    """Replace `count` numbers of an array from `at` on by a function of them; unused lanes compute `neutral`."""

    def typed(context: Any, values: Any, at: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = Lanes(context, builder, signature, arguments, arguments[2])
            x = lanes.load(0, arguments[1], lanes.double, lanes.constant(neutral))
            lanes.store(function(lanes, x), 0, arguments[1])
            return context.get_dummy_value()

        return types.void(values, types.uint64, types.uint64), generate

    return intrinsic(typed)


def _plainly(function: Any) -> Any:
    def replace(values: FloatArray, at: np.uint64, count: np.uint64) -> None:
        here = slice(int(at), int(at + count))
        values[here] = function(values[here])

    return replace


_exponentials = _plainly(np.exp) if PLAIN else _in_place(_exponential, 0.0)
_logarithms = _plainly(np.log) if PLAIN else _in_place(_logarithm, 1.0)


@kernel
def exponentials(values: FloatArray, first: int, last: int) -> None:
    """values[first:last] <- e^values."""
    for i in range(first, last, LANES):
        _exponentials(values, np.uint64(i), np.uint64(min(LANES, last - i)))


@kernel
def logarithms(values: FloatArray, first: int, last: int) -> None:
    """values[first:last] <- ln values, for normal positive numbers; of others, anything."""
    for i in range(first, last, LANES):
        _logarithms(values, np.uint64(i), np.uint64(min(LANES, last - i)))


# --------------------------------------------------------------------------------------------------------------------
# Add multiples of short vectors to others: the innermost operations of assembly, factorisation and flows.
#
# A layer has 3 to 30 states. The compiler vectorises a plain loop for long vectors: a preamble that costs more than
# three additions, sixteen entries at a time, and the rest, here mostly all, one by one. Here the vector operation is
# written out, four and two entries at a time. Each entry is one product and one sum, rounded as usual: the result is
# that of the plain loop, bit by bit. Offsets are unsigned, because compiled code would test a signed one for its sign
# every time.


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


def _sum_intrinsic() -> Any:
    def typed(
        context: Any, target: Any, to: Any, weights: Any, first: Any, num: Any, source: Any, at: Any, width: Any,
        count: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, first, num, at, width, count = (arguments[i] for i in (1, 3, 4, 6, 7, 8))
            lanes = Lanes(context, builder, signature, arguments, count)
            total = cgutils.alloca_once_value(builder, lanes.constant(0.0))  # type: ignore[no-untyped-call]
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


def _sum_plainly(
    target: FloatArray, to: int, weights: FloatArray, first: int, num: int, source: FloatArray, at: int, width: int,
    count: int,
) -> None:  # fmt: skip
    total = np.zeros(int(count))
    for i in range(int(num)):
        total += weights[int(first) + i] * source[int(at) + i * int(width) : int(at) + i * int(width) + int(count)]
    target[int(to) : int(to) + int(count)] = total


_weigh: Any = _sum_plainly if PLAIN else _sum_intrinsic()


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


# --------------------------------------------------------------------------------------------------------------------
# The steps of `rows.settle_row` for eight neighbouring successors at a time, as vector operations.
#
# Rows are short, 3 to 30 successors, and hard to predict: which of them are at a bound differs from row to row. A row
# that leads to a whole layer is therefore taken in pieces of eight lanes; the last piece uses some of them. Each lane
# does what the plain loop does, with selections instead of branches; sums are formed in pairs. Reading back a masked
# store is slow, so no step stores what a following step needs.
#
# A *lane mask* prevents reads and writes beyond the row.


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


def _products_intrinsic() -> Any:
    def typed(
        context: Any, diagonal: Any, block: Any, held: Any, to: Any, weights: Any, numbers: Any, p: Any, bound: Any,
        row: Any, last: Any, at: Any, width: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block, to, (row, last, at, width) = arguments[1], arguments[3], arguments[8:]
            lanes = Lanes(context, builder, signature, arguments, width)
            zero, none = lanes.constant(0.0), ir.Constant(lanes.byte, None)
            begin, kept, *sums = (
                cgutils.alloca_once_value(builder, each)  # type: ignore[no-untyped-call]
                for each in (at, zero, *[zero] * LANES)
            )
            made = {i: context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (4, 5)}
            with cgutils.for_range(builder, builder.sub(last, row)) as loop:
                here = builder.add(row, loop.index)
                weight, number = (builder.load(builder.gep(made[i], [here])) for i in (4, 5))
                start = builder.load(begin)
                with builder.if_then(builder.icmp_signed("!=", number, ir.Constant(number.type, 0))):
                    share = lanes.load(6, start, lanes.double)
                    is_held = builder.icmp_signed("!=", lanes.load(7, start, lanes.byte), none)
                    mass, free = weight.type(0.0), builder.select(is_held, zero, share)
                    for i in range(LANES):  # in the order of the successors, as they are added elsewhere
                        mass = builder.fadd(mass, builder.extract_element(free, ir.IntType(32)(i)))
                    less = builder.fsub(weight, builder.fdiv(weight, mass))
                    rest = builder.select(builder.fcmp_ordered(">", mass, weight.type(0.0)), less, weight)
                    every, others = (lanes.spread(each, lanes.double) for each in (weight, rest))
                    from_held = builder.fmul(every, share)
                    from_free = builder.fmul(builder.select(is_held, every, others), share)
                    for i, total in enumerate(sums):
                        lane = ir.IntType(32)(i)
                        chosen = builder.select(builder.extract_element(is_held, lane), from_held, from_free)
                        factor = lanes.spread(builder.extract_element(share, lane), lanes.double)
                        builder.store(builder.fadd(builder.load(total), builder.fmul(factor, chosen)), total)
                    held = builder.select(is_held, from_held, zero)
                    builder.store(builder.fadd(builder.load(kept), held), kept)
                builder.store(builder.add(start, width), begin)
            lanes.store(builder.load(kept), 2, to)
            used, numbers = lanes.mask, ir.Constant(lanes.integer, list(range(LANES)))
            for i, total in enumerate(sums):
                place = ir.Constant(width.type, i)
                with builder.if_then(builder.icmp_unsigned("<", place, width)):
                    aligned = ir.Constant(lanes.integer, [i - i % 2] * LANES)  # entries left of the diagonal stay 0
                    lanes.mask = builder.and_(used, builder.icmp_unsigned(">=", numbers, aligned))
                    lanes.store(builder.load(total), 0, builder.add(block, builder.mul(place, width)))
            return context.get_dummy_value()

        places = [types.uint64] * 4
        return types.void(diagonal, types.uint64, held, types.uint64, weights, numbers, p, bound, *places), generate

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
add_products: Any = None if PLAIN else _products_intrinsic()
"""(diagonal, block, held, to, w, num_bound, p, bound, row, last, at, width): for the rows row, ..., last - 1, which
lead to all `width` <= LANES states of the next layer: what those at a bound add to its block of the Hessian and to
`held`, which are 0.

The sums of `_correct_layer` in `direction.py`, in the same order, in registers from the first row to the last.
"""
