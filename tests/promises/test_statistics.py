"""Exact intervals against scipy.stats and against the binomial sums that define them; exponents of known curves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hedgerow.errors import InvalidInput
from hedgerow.promises.statistics import clopper_pearson, exponent


@pytest.mark.parametrize(("failures", "runs"), [(0, 1), (1, 1), (0, 200), (3, 24), (12, 24), (199, 200), (200, 200)])
def test_clopper_pearson_is_scipys(failures: int, runs: int) -> None:
    low, high = clopper_pearson(failures, runs, 0.99)
    test = stats.binomtest(failures, runs)
    assert low == pytest.approx(test.proportion_ci(0.98, "exact").low, abs=1e-12)  # two sides of 1 % each
    assert high == pytest.approx(test.proportion_ci(0.98, "exact").high, abs=1e-12)


@pytest.mark.parametrize(("failures", "runs"), [(3, 24), (7, 40)])
def test_bounds_are_where_the_tails_have_the_promised_mass(failures: int, runs: int) -> None:
    low, high = clopper_pearson(failures, runs, 0.99)
    assert stats.binom.sf(failures - 1, runs, low) == pytest.approx(0.01, abs=1e-9)
    assert stats.binom.cdf(failures, runs, high) == pytest.approx(0.01, abs=1e-9)


def test_impossible_counts_are_refused() -> None:
    for failures, runs in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(InvalidInput, match="is no count"):
            clopper_pearson(failures, runs)


def test_exponent_of_a_power_is_exact() -> None:
    horizons = [100, 1000, 10_000]
    found = exponent(horizons, [np.full(5, 3.0 * T**0.7) for T in horizons])
    assert found.value == pytest.approx(0.7, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0.7, 0.7), abs=1e-9)


def test_interval_covers_the_true_exponent_of_noisy_curves() -> None:
    stream, covered = np.random.default_rng(0), 0
    for trial in range(60):
        samples = [T**0.5 * stream.lognormal(-0.02, 0.2, size=12) for T in (256, 4096)]
        interval = exponent([256, 4096], samples, seed=trial)
        assert interval.low < interval.value < interval.high
        covered += interval.low <= 0.5 <= interval.high
    assert covered >= 54


def test_values_around_zero_have_no_exponent() -> None:
    with pytest.raises(InvalidInput, match="positive"):
        exponent([10, 100], [np.array([1.0]), np.array([-1.0])])
    vague = exponent([10, 100], [np.array([1.0, 1.0]), np.array([9.0, -8.0])])
    assert vague.low == -np.inf
    assert vague.high == np.inf
