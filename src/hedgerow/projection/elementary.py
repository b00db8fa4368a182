"""Exponentials and logarithms of neighbouring numbers, eight at a time: one by one they take a third of a projection.

    e^x  = 2^n e^r,                      n = round(x / ln 2),  |r| <= ln(2)/2:  the series of e^r up to r^13
    ln x = n ln 2 + 2 artanh(s),         x = 2^n m,  m in [sqrt(1/2), sqrt(2)),  s = (m - 1)/(m + 1),  |s| < 0.172:
                                         the series of artanh up to s^21

The rest of either series is below rounding, and results are within a few units in the last place. n ln 2 is subtracted
or added in two parts; the first is exact.
"""

from __future__ import annotations

from math import factorial, inf, log, sqrt
from struct import pack, unpack
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.projection.lanes import LANES, PLAIN, Lanes, ir

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
