"""Means and differences over seeds: against scipy's own t-test, and what cannot be told apart is called so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from hedgerow.errors import InvalidInput
from hedgerow.results.leaderboard import Estimate, are_equal, difference, mean_of


def test_the_interval_is_that_of_the_t_test() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, size=7)
    found, ends = mean_of(values), ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.mean == pytest.approx(values.mean())


def test_three_numbers_by_hand() -> None:
    """Mean 2, standard deviation 1, t(2) = 4.302653 at 97.5 %: half a width of 4.302653 / sqrt(3)."""
    assert mean_of([1.0, 2.0, 3.0]) == Estimate(2.0, pytest.approx(-0.4841377), pytest.approx(4.4841377))


def test_a_single_seed_has_no_interval() -> None:
    found = mean_of([4.0])
    assert found.mean == 4.0
    assert np.isnan([found.low, found.high]).all()


def test_large_numbers_do_not_overflow() -> None:
    found = mean_of([1e200, 2e200, 3e200])
    assert found.high == pytest.approx(4.4841377e200)


@pytest.mark.parametrize("values", [[], [[1.0]], 3.0])
def test_anything_else_is_refused(values: object) -> None:
    with pytest.raises(InvalidInput, match="one number per seed"):
        mean_of(values)  # type: ignore[arg-type]


def test_a_difference_is_taken_seed_by_seed() -> None:
    """What a seed does to both cancels: apart the intervals overlap widely, together they do not."""
    own, other = {0: 10.0, 1: 50.0, 2: 90.0}, {0: 11.0, 1: 51.2, 2: 91.1}
    found = difference("b", own, other)
    ends = ttest_rel(list(other.values()), list(own.values())).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.verdict, found.other, found.seeds) == ("different", "b", 3)
    assert mean_of(list(own.values())).high > mean_of(list(other.values())).low


def test_a_difference_within_noise() -> None:
    assert difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 3.5, 2: 3.2}).verdict == "within noise"


def test_only_common_seeds_count() -> None:
    found = difference("b", {0: 1.0, 1: 2.0, 5: 3.0}, {1: 4.0, 0: 3.0, 7: 100.0})
    assert (found.mean, found.seeds) == (2.0, 2)
    assert difference("b", {0: 1.0}, {1: 1.0}).verdict == "unknown"


def test_one_seed_says_nothing_unless_both_are_equal() -> None:
    assert difference("b", {0: 1.0}, {0: 2.0}).verdict == "unknown"
    assert difference("b", {0: 1.0}, {0: 1.0 + 1e-12}).verdict == "equal"


def test_equal_is_meant_up_to_rounding() -> None:
    assert are_equal(1e6, 1e6 + 1e-4)
    assert are_equal(0.0, 5e-10)
    assert not are_equal(0.0, 2e-9)
    # The same difference in every seed is no noise, however small.
    assert difference("b", {0: 1.0, 1: 1.0}, {0: 1.5, 1: 1.5}).verdict == "different"
