"""Exact bounds of probabilities against the binomial sums and the beta quantiles that define them."""

from __future__ import annotations

import pytest
from scipy import special, stats

from hedgerow.errors import InvalidInput
from hedgerow.verify.judging import clopper_pearson


@pytest.mark.parametrize(("failures", "runs"), [(0, 1), (1, 1), (0, 200), (3, 24), (12, 24), (199, 200), (200, 200)])
def test_bounds_are_quantiles_of_beta_distributions(failures: int, runs: int) -> None:
    low, high = clopper_pearson(failures, runs)
    expected_low = special.betaincinv(failures, runs - failures + 1.0, 0.01) if failures else 0.0
    expected_high = special.betaincinv(failures + 1.0, runs - failures, 0.99) if failures < runs else 1.0
    assert (low, high) == pytest.approx((expected_low, expected_high), abs=1e-11)


@pytest.mark.parametrize(("failures", "runs"), [(3, 24), (7, 40)])
def test_bounds_are_where_the_tails_have_the_promised_mass(failures: int, runs: int) -> None:
    low, high = clopper_pearson(failures, runs)
    assert stats.binom.sf(failures - 1, runs, low) == pytest.approx(0.01, abs=1e-9)
    assert stats.binom.cdf(failures, runs, high) == pytest.approx(0.01, abs=1e-9)


def test_impossible_counts_are_refused() -> None:
    for failures, runs in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(InvalidInput, match="is no count"):
            clopper_pearson(failures, runs)
