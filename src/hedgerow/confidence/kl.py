"""What Stirling's formula leaves out of ln Gamma: small numbers, where logarithms of Gamma are large.

    ln Gamma(x)       = (x - 1/2) ln x - x + ln(2 pi)/2 + tail(x),      tail(x) = 1/(12 x) - 1/(360 x^3) + ...
    ln Gamma(x + 1/2) =      x    ln x - x + ln(2 pi)/2 + half_tail(x), half_tail(x) = -1/(24 x) + 7/(2880 x^3) - ...

A sum of ln Gamma in which the large terms cancel is a sum of tails: with n = 10^9 visits they cancel to ten digits, and
no digit is lost if they are never formed. The series (Abramowitz and Stegun, 6.1.40; for the half with B_2k(1/2)
instead of B_2k) are asymptotic: from `FROM_HERE` on seven terms leave less than 10^-16. Below it the definition is
used. Either is accurate to `TAIL_ERROR`.
"""

from __future__ import annotations

from math import expm1, lgamma, log, log1p, pi, sqrt
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, IntArray, float_array, numeric_array, real_number, within
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput

HALF_LOG_TWO_PI = 0.5 * log(2.0 * pi)
HALF_LOG_TWO = 0.5 * log(2.0)
FROM_HERE = 10.0
TAIL_ERROR = 2e-14
"""Ten times what was measured; terms below `FROM_HERE` are at most 23, rounded to 4e-15."""


@kernel
def tail(x: float) -> float:
    """ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2 for x > 0."""
    if x < FROM_HERE:
        return lgamma(x) - (x - 0.5) * log(x) + x - HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    series = -691.0 / 360360.0 + y / 156.0
    series = 1.0 / 1260.0 + y * (-1.0 / 1680.0 + y * (1.0 / 1188.0 + y * series))
    return (1.0 / 12.0 + y * (-1.0 / 360.0 + y * series)) / x


@kernel
def half_tail(x: float) -> float:
    """ln Gamma(x + 1/2) - x ln x + x - ln(2 pi)/2 for x >= 0; it rises from -ln(2)/2 to 0."""
    if x <= 0.0:
        return -HALF_LOG_TWO
    if x < FROM_HERE:
        return lgamma(x + 0.5) - x * log(x) + x - HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    series = 1414477.0 / 738017280.0 - y * 8191.0 / 1277952.0
    series = -31.0 / 40320.0 + y * (127.0 / 215040.0 + y * (-511.0 / 608256.0 + y * series))
    return (-1.0 / 24.0 + y * (7.0 / 2880.0 + y * series)) / x


# --------------------------------------------------------------------------------------------------------------------
# The ends of { g : kl(p, g) <= level }, where kl is the divergence of Bernoulli laws, rounded outward.
#
#     kl(p, g) = p ln(p/g) + q ln(q/(1-g)),   q = 1 - p
#
# Both ends are one problem: the upper end is p + d for the d in (0, q] that solves F(d) = level,
#
#     F(d) = -p ln(1 + d/p) - q ln(1 - d/q),   F' = d / (g r),   F''/F' = (d^2 + p q) / (d g r),   g = p + d,  r = q - d
#
# and the lower end is p minus the d of (q, p). Halley's steps start from the expansion d = w sqrt(p q) + (q - p) w^2/3,
# w = sqrt(2 level), or, where this is no guide, from F(d) <= -q ln(1 - d/q) + p ln p with equality for g = 1; two or
# three evaluations are enough in all of (p, level). The last step is Newton's: F is convex, so its tangent meets the
# level at or beyond the root, *however good the point was*. That leaves rounding, which is added: each of the two terms
# of F is right to a few units in its last place, and so is d itself.
#
#     kl(.25, g) <= .07:   distance_above(.25, .75, .07) = 0.179089, hence g <= 0.429089


EPSILON = float(np.finfo(np.float64).eps)
NEXT_TO_NOTHING = 1e-100
"""A p below it does not show in F."""
SATURATED = 30.0
"""From level = 30 q on r is less than 10^-13 q, and d is rounded to q."""
NEARLY = 1e-13
"""What the last step may leave, as a part of d"""
MOST_STEPS = 60


@kernel
def upper_end(p: float, q: float, level: float) -> float:
    """The largest g with kl(p, g) <= level, at most 1; q = 1 - p is given with digits of its own."""
    d = distance_above(p, q, level)
    return 1.0 if d >= q else min(1.0, (p + d) * (1.0 + 2.0 * EPSILON))


@kernel
def lower_end(p: float, q: float, level: float) -> float:
    """The smallest g with kl(p, g) <= level, at least 0."""
    d = distance_above(q, p, level)
    return 0.0 if d >= p else max(0.0, p - d - 2.0 * EPSILON * p)


@kernel
def distance_above(p: float, q: float, level: float) -> float:
    """The d in [0, q] with kl(p, p + d) = level > 0, never too small."""
    # F grows like -q ln(1 - d/q): from here on the end is 1 but for rounding.
    if q <= 0.0 or level >= SATURATED * q:
        return q
    if p < NEXT_TO_NOTHING:
        return min(q, -q * expm1(-level / q) * (1.0 + 8.0 * EPSILON))
    d, least, most = _start(p, q, level), 0.0, q
    step = rounding = 0.0
    for _ in range(MOST_STEPS):
        near, far = p * log1p(d / p), -q * log1p(-d / q)
        inverse_slope = (p + d) * (q - d) / d
        step = (far - near - level) * inverse_slope  # Newton's
        rounding = EPSILON * (8.0 * (near + far + level) * inverse_slope + 4.0 * d)
        bend = 0.5 * (d * d + p * q) / (d * d * inverse_slope)
        # What Newton's step leaves is of second order: step^2 F'' / (2 F').
        if step * step * bend <= NEARLY * d:
            break
        if step > 0.0:
            most = d
        else:
            least = d
        # The bracket keeps a wild step inside, by bisection.
        onward = d - step / (1.0 - step * bend)  # Halley's
        d = onward if least < onward < most else 0.5 * (least + most)
    # F is convex: the tangent's root is at or beyond the true one. With the rounding it is never too small.
    return min(q, d - step + rounding)


@kernel
def _start(p: float, q: float, level: float) -> float:
    """A first d in (0, q)."""
    w, sigma = sqrt(2.0 * level), sqrt(p * q)
    d = w * (sigma + (q - p) * w / 3.0)
    if d < 0.5 * q and 2.0 * (p - q) * w < 3.0 * sigma:  # before the parabola's top, if it has one
        return d
    return -q * expm1((p * log(p) - level) / q)


# --------------------------------------------------------------------------------------------------------------------
# Intervals for means of numbers in [0, 1] that hold at all times at once: the Krichevsky-Trofimov mixture.
#
# For one mean g, n samples with sum S and g_hat = S/n; 0 ln 0 = 0:
#
#     o(n,S) = S ln(S/n) + (n-S) ln((n-S)/n) + ln pi - ln Gamma(S+1/2) - ln Gamma(n-S+1/2) + ln Gamma(n+1)
#     level  = (ln(1/delta) + o(n,S)) / n
#     LCB, UCB = the ends of { g : kl(g_hat, g) <= level },   kl the divergence of Bernoulli laws
#
# P(g leaves [LCB, UCB] at any n) <= delta: both sides together, no horizon, any rule of when to sample. For X in
# [0, 1] with mean g given the past, E (p/g)^X ((1-p)/(1-g))^(1-X) <= 1, because this is convex in X and equal to 1
# for X in {0, 1}. So the products over samples are supermartingales, and so is their mean over p ~ Beta(1/2, 1/2)
# (the prior of Krichevsky and Trofimov, 1981), whose logarithm is n kl(g_hat, g) - o(n,S). It starts at 0; by Ville's
# inequality it ever reaches ln(1/delta) with probability delta at most.
#
# In o the large terms cancel. Without them (Stirling, above)
#
#     o(n,S) = (1/2) ln(pi n / 2) + tail(n) - half_tail(S) - half_tail(n-S)
#
# in which every term is as exact as a float: o is rounded up by 10^-13, the ends outward to well within 10^-12.
#
#     o(1000, 250) = 3.679975;  ln(1/delta) = 7.649693, n = 1000, S = 250: level = 0.011330, [0.188881, 0.318618]


HALF_LOG_HALF_PI = 0.5 * log(0.5 * pi)
ROUNDING = 5.0 * TAIL_ERROR
"""Rounding error of o: three tails, and logarithms of less than 64"""
LARGEST = float(np.finfo(np.float64).max)


@kernel
def kt_overhead(n: int, total: float) -> float:
    """o(n, S) for n >= 1 and 0 <= S <= n, rounded up."""
    tails = tail(float(n)) - half_tail(float(total)) - half_tail(float(n - total))  # floats: squares of counts overflow
    return 0.5 * log(n) + HALF_LOG_HALF_PI + tails + ROUNDING


@kernel
def kt_level(n: int, total: float, log_inverse_delta: float) -> float:
    """(ln(1/delta) + o(n, S)) / n for n >= 1, rounded up: what `upper_end` and `lower_end` of g_hat share."""
    return (log_inverse_delta + kt_overhead(n, total)) / n * (1.0 + 4.0 * EPSILON)


@kernel
def kt_bounds(n: int, total: float, log_inverse_delta: float) -> tuple[float, float]:
    """(LCB, UCB), rounded outward; (0, 1) for n = 0."""
    if n < 1:
        return 0.0, 1.0
    level, p, q = kt_level(n, total, log_inverse_delta), total / n, (n - total) / n
    return lower_end(p, q, level), upper_end(p, q, level)


@overload
def kt_interval(visits: int, total: float, log_inverse_delta: float) -> tuple[float, float]: ...
@overload
def kt_interval(visits: ArrayLike, total: ArrayLike, log_inverse_delta: ArrayLike) -> tuple[FloatArray, FloatArray]: ...
def kt_interval(
    visits: ArrayLike, total: ArrayLike, log_inverse_delta: ArrayLike
) -> tuple[float, float] | tuple[FloatArray, FloatArray]:
    """Compute an interval that holds the mean of numbers in [0, 1] at all times at once.

    With probability 1 - delta the mean never leaves the intervals, however many samples there will be and
    whatever decides when to sample (the mixture of Krichevsky and Trofimov). Three numbers give two floats. Arrays
    that broadcast give two arrays.

    Args:
        visits: The number of samples, whole and at least 0. Without samples the interval is [0, 1].
        total: The sum of the samples, from 0 to `visits`.
        log_inverse_delta: Ln(1/delta), at least 0, where delta is the probability that the interval ever fails.

    Returns:
        The lower and the upper end, rounded outward.

    Raises:
        InvalidInput: If a number is out of range, or if the shapes do not broadcast.

    Examples:
        >>> import hedgerow as hr
        >>> import math
        >>> lower, upper = hr.confidence.kt_interval(100, 25, math.log(1000))     # 25 of 100, delta = 0.001
        >>> print(f"{lower:.4f} {upper:.4f}")
        0.0988 0.4605
    """
    asked = ("the number of visits", visits), ("the total", total), ("ln(1/delta)", log_inverse_delta)
    n, S, logs = (_at_least_zero(what, value) for what, value in asked)
    try:
        n, S, logs = np.broadcast_arrays(n, S, logs)
    except ValueError as error:
        raise InvalidInput(
            f"the visits, totals and ln(1/delta) have shapes {n.shape}, {S.shape}, {logs.shape}"
        ) from error
    _refuse((n != np.floor(n)) | (n > LARGEST_COUNT), n, "the number of visits is", "it must be whole, at most 2^53")
    _refuse(n < S, S, "the total is", "it must be at most the number of visits, of numbers in [0, 1]")
    lower, upper = np.empty(n.size), np.empty(n.size)
    _fill(n.astype(np.int64).flatten(), S.flatten(), logs.flatten(), lower, upper)
    if n.ndim == 0:
        return float(lower[0]), float(upper[0])
    return lower.reshape(n.shape), upper.reshape(n.shape)


def _at_least_zero(what: str, value: ArrayLike) -> FloatArray:
    """`value` as an array of finite numbers that are not negative."""
    array = numeric_array(what, value)
    if array.ndim == 0:
        return np.array(real_number(what, array.item(), 0.0, LARGEST))
    return within(what, float_array(what, array, array.shape), 0.0, LARGEST)


def _refuse(bad: NDArray[np.bool_], array: FloatArray, what: str, rule: str) -> None:
    """Complain about the first bad entry."""
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at index {index if len(index) > 1 else index[0]}" if index else ""
        raise InvalidInput(f"{what} {float(array[index])!r}{where}; {rule}")


@kernel
def _fill(visits: IntArray, totals: FloatArray, logs: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    """Write the bounds of each entry into `lower` and `upper`, all (k,)."""
    for i in range(len(visits)):
        lower[i], upper[i] = kt_bounds(visits[i], totals[i], logs[i])
