"""Intervals for means of numbers in [0, 1] that hold at all times at once: the Krichevsky-Trofimov mixture.

For one mean g, n samples with sum S and g_hat = S/n; 0 ln 0 = 0:

    o(n,S) = S ln(S/n) + (n-S) ln((n-S)/n) + ln pi - ln Gamma(S+1/2) - ln Gamma(n-S+1/2) + ln Gamma(n+1)
    level  = (ln(1/delta) + o(n,S)) / n
    LCB, UCB = the ends of { g : kl(g_hat, g) <= level },   kl the divergence of Bernoulli laws (`bernoulli.py`)

P(g leaves [LCB, UCB] at any n) <= delta: both sides together, no horizon, whoever decides when to sample. For X in
[0, 1] with mean g given the past, E (p/g)^X ((1-p)/(1-g))^(1-X) <= 1, because this is convex in X and equal to 1 for
X in {0, 1}. So the products over samples are supermartingales, and so is their mean over p ~ Beta(1/2, 1/2) (the prior
of Krichevsky and Trofimov, 1981), whose logarithm is n kl(g_hat, g) - o(n,S). It starts at 0; by Ville's inequality it
ever reaches ln(1/delta) with probability delta at most.

In o the large terms cancel. Without them (`stirling.py`)

    o(n,S) = (1/2) ln(pi n / 2) + tail(n) - half_tail(S) - half_tail(n-S)

in which every term is as exact as a float: o is rounded up by 10^-13, the ends outward to well within 10^-12.

    o(1000, 250) = 3.679975;  ln(1/delta) = 7.649693, n = 1000, S = 250: level = 0.011330, [0.188881, 0.318618]
"""

from __future__ import annotations

from math import log, pi
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, IntArray, float_array, numeric_array, real_number, within
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.estimates.bernoulli import EPSILON, lower_end, upper_end
from hedgerow.estimates.stirling import TAIL_ERROR, half_tail, tail

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

    With probability 1 - delta the mean never leaves the intervals, however many samples there will be and whoever
    decides when to sample (the mixture of Krichevsky and Trofimov). Three numbers give two floats. Arrays that
    broadcast give two arrays.

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
        >>> lower, upper = hr.estimates.kt_interval(100, 25, math.log(1000))     # 25 of 100, delta = 0.001
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
