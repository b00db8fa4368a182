"""Statistics over few seeds: a mean with its interval, and the difference of two learners on the same seeds.

The intervals are Student's, of level 95 %: mean +- t(n - 1) s / sqrt(n). A bootstrap of three or four numbers is too
narrow: it cannot leave their range. Learners of a sweep meet the same losses and the same streams under the same seed,
so their difference is taken seed by seed: what a seed does to both of them cancels.

    >>> mean_of([1.0, 2.0, 3.0]).mean
    2.0
    >>> difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.1, 2: 3.9}).verdict
    'different'
    >>> difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 3.5, 2: 3.2}).verdict
    'within noise'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import numeric_array
from hedgerow.errors import InvalidInput
from hedgerow.results.metrics import LEVEL

TOL_TIE = 1e-9
"""Two numbers are equal if they differ by no more than this, relative to the larger of them and 1."""
DIFFERENT, WITHIN_NOISE, EQUAL, UNKNOWN = "different", "within noise", "equal", "unknown"


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, with the ends of its interval; NaN for a single seed."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How much larger a number is for another learner, seed by seed."""

    other: str
    """The label of the other learner."""
    mean: float
    low: float
    high: float
    seeds: int
    """How many seeds both of them have."""
    verdict: str
    """"different", "within noise" if the interval holds 0, "equal", or "unknown" for fewer than two seeds."""


def mean_of(values: ArrayLike) -> Estimate:
    """The mean of one number per seed (seeds,), with its interval."""
    from scipy.stats import t

    numbers = numeric_array("the values", values)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise InvalidInput(f"a mean over seeds needs values (seeds,), one number per seed; they are {numbers.shape}")
    count, mean = len(numbers), float(np.mean(numbers))
    if count == 1 or not np.all(np.isfinite(numbers)):
        return Estimate(mean, float("nan"), float("nan"))
    # In units of the largest: the squares of large numbers overflow.
    size = float(np.max(np.abs(numbers))) or 1.0
    half = float(t.ppf(0.5 * (1.0 + LEVEL), count - 1) * np.std(numbers / size, ddof=1) / np.sqrt(count)) * size
    return Estimate(mean, mean - half, mean + half)


def are_equal(one: float, other: float) -> bool:
    """Whether two numbers differ by rounding at most."""
    return abs(one - other) <= TOL_TIE * max(1.0, abs(one), abs(other))


def difference(label: str, own: Mapping[int, float], other: Mapping[int, float]) -> Difference:
    """The number of the learner `label` minus one's own, both by seed."""
    common = sorted(set(own) & set(other))
    if not common:
        return Difference(label, float("nan"), float("nan"), float("nan"), 0, UNKNOWN)
    found = mean_of([other[seed] - own[seed] for seed in common])
    if all(are_equal(own[seed], other[seed]) for seed in common):
        verdict = EQUAL
    elif not np.isfinite(found.low):
        verdict = UNKNOWN
    else:
        verdict = WITHIN_NOISE if found.low <= 0.0 <= found.high else DIFFERENT
    return Difference(label, found.mean, found.low, found.high, len(common), verdict)
