"""The two statistical rules: exact intervals for probabilities, bootstrap intervals for growth exponents.

Clopper and Pearson: after k failures in n independent runs the failure probability p is at least the p_low at which
k or more failures would have had the probability 1 - level, and at most the p_high at which k or fewer would:

    p_low = Beta^{-1}(1 - level; k, n - k + 1),      p_high = Beta^{-1}(level; k + 1, n - k)

    >>> low, high = clopper_pearson(0, 200)
    >>> low, round(high, 4)
    (0.0, 0.0228)

Growth exponents: the slope of ln(mean over seeds) against ln T; seeds are drawn again with replacement, horizon by
horizon, and the percentiles of the slopes make the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput

LEVEL = 0.99
RESAMPLES = 2_000


class Interval(NamedTuple):
    """An estimate with the interval that goes with it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def clopper_pearson(failures: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """One-sided bounds of a probability, each at `level`: (low, high)."""
    from scipy.special import betaincinv

    if not 0 <= failures <= runs or runs < 1:
        raise InvalidInput(f"{failures} failures in {runs} runs is no count")
    k, n = float(failures), float(runs)
    low = 0.0 if failures == 0 else float(betaincinv(k, n - k + 1.0, 1.0 - level))
    high = 1.0 if failures == runs else float(betaincinv(k + 1.0, n - k, level))
    return low, high


def exponent(horizons: Sequence[int], samples: Sequence[FloatArray], seed: int = 0) -> Interval:
    """Slope of ln(mean) against ln T with its 99 % bootstrap interval; `samples` are (seeds,) per horizon.

    All means must be positive; resamples in which one is not are left out, and if they are many the interval is
    unbounded: it then says nothing.
    """
    logs = np.log(np.asarray(horizons, dtype=np.float64))
    means = np.array([float(np.mean(values)) for values in samples])
    if np.any(means <= 0.0):
        raise InvalidInput("an exponent needs positive means")
    stream = Generator(PCG64(seed))
    drawn = np.stack([_resampled_means(values, stream) for values in samples])
    usable = drawn[:, np.all(drawn > 0.0, axis=0)]
    value = float(np.polyfit(logs, np.log(means), 1)[0])
    if usable.shape[1] < 0.9 * RESAMPLES:
        return Interval(value, -np.inf, np.inf)
    slopes = np.polyfit(logs, np.log(usable), 1)[0]
    low, high = np.quantile(slopes, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Interval(value, float(low), float(high))


def _resampled_means(values: FloatArray, stream: Generator) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    picks = stream.integers(0, len(array), size=(RESAMPLES, len(array)))
    means: FloatArray = array[picks].mean(axis=1)
    return means
