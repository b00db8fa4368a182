"""Means and differences over seeds: against scipy's own t-test, and what cannot be told apart is called so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from hedgerow.display.table import TableCell
from hedgerow.environments.columns import Column
from hedgerow.errors import InvalidInput
from hedgerow.results.leaderboard import are_equal, difference
from hedgerow.results.metrics import Estimate, mean_over_seeds, number_cell, over_seeds, seed_interval


def test_the_interval_is_that_of_the_t_test() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, size=7)
    found, ends = mean_over_seeds(values), ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.value == pytest.approx(values.mean())


def test_three_numbers_by_hand() -> None:
    """Mean 2, standard deviation 1, t(2) = 4.302653 at 97.5 %: half a width of 4.302653 / sqrt(3)."""
    assert mean_over_seeds([1.0, 2.0, 3.0]) == Estimate(2.0, pytest.approx(-0.4841377), pytest.approx(4.4841377), 3)


def test_a_single_seed_has_no_interval() -> None:
    found = mean_over_seeds([4.0])
    assert found.value == 4.0
    assert np.isnan([found.low, found.high]).all()


def test_large_numbers_do_not_overflow() -> None:
    found = mean_over_seeds([1e200, 2e200, 3e200])
    assert found.high == pytest.approx(4.4841377e200)


@pytest.mark.parametrize("values", [[], [[1.0]], 3.0])
def test_anything_else_is_refused(values: object) -> None:
    with pytest.raises(InvalidInput, match="one number per seed"):
        mean_over_seeds(values)  # type: ignore[arg-type]


def test_curves_have_the_intervals_of_their_points() -> None:
    values = np.random.default_rng(1).normal(size=(4, 3)) * [1.0, 1e3, 0.0] + [0.0, 1.0, 7.0]
    values[0, 1] = np.nan
    mean, low, high = seed_interval(values)
    for place in (0, 2):
        found = mean_over_seeds(values[:, place])
        assert (mean[place], low[place], high[place]) == pytest.approx((found.value, found.low, found.high))
    assert np.isnan([mean[1], low[1], high[1]]).all()
    assert (low[2], high[2]) == (7.0, 7.0)  # seeds that agree


def test_an_interval_ends_where_values_do() -> None:
    found = mean_over_seeds([0.0, 0.0, 0.0, 5.0], least=0.0)
    assert found.low == 0.0
    assert found.high == mean_over_seeds([0.0, 0.0, 0.0, 5.0]).high > 5.0  # a bootstrap could not say so


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_intervals_hold_the_mean_as_often_as_they_say(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(3.0, 2.0, size=(seeds, 4000))
    _, low, high = seed_interval(values)
    assert np.mean((low <= 3.0) & (high >= 3.0)) == pytest.approx(0.95, abs=0.012)


def test_what_is_rounding_of_a_sum_is_zero() -> None:
    column = Column("regret", show="sum")
    assert over_seeds(column, [1e-7, -1e-7], 1000) == Estimate(0.0, 0.0, 0.0, 2)
    assert over_seeds(column, [5.0, 5.0 + 1e-7], 1000) == Estimate(5.0, 5.0, 5.0, 2)
    assert over_seeds(Column("width"), [1e-7, -1e-7], 1000) != Estimate(0.0, 0.0, 0.0, 2)


@pytest.mark.parametrize(
    ("reduce", "values", "expected"),
    [
        ("sum", [1, 2, 4], 7.0),
        ("rate", [100, 200, 300], 2.0),
        ("largest", [1.0, None, 3.0], 3.0),
        ("least", [1.0, -2.0, None], -2.0),
        ("median", [None, 1.0, 7.0], 4.0),
        ("seeds", [0, 3, 0], 2.0),
        ("sum", [1, None], None),
        ("mean", [1.0, float("nan")], None),
        ("median", [None, None], None),
    ],
)
def test_how_seeds_are_put_together(reduce: str, values: list[float | None], expected: float | None) -> None:
    found = over_seeds(Column("x", "int64", reduce=reduce), values, 100)  # type: ignore[arg-type]
    assert (None if found is None else found.value) == expected
    assert found is None or found.seeds == len(values)


def test_true_seeds_are_counted() -> None:
    found = over_seeds(Column("safe", "bool", reduce="seeds"), [True, False, True], 100)
    assert number_cell(Column("safe", "bool", reduce="seeds"), found) == TableCell("2 of 3", tone="bad")


def test_a_difference_is_taken_seed_by_seed() -> None:
    """What a seed does to both cancels: apart the intervals overlap widely, together they do not."""
    own, other = {0: 10.0, 1: 50.0, 2: 90.0}, {0: 11.0, 1: 51.2, 2: 91.1}
    found = difference("b", own, other)
    ends = ttest_rel(list(other.values()), list(own.values())).confidence_interval(0.95)
    assert (found.found.low, found.found.high) == pytest.approx((ends.low, ends.high))
    assert (found.verdict, found.other, found.found.seeds) == ("different", "b", 3)
    assert mean_over_seeds(list(own.values())).high > mean_over_seeds(list(other.values())).low


def test_a_difference_within_noise() -> None:
    assert difference("b", {0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 3.5, 2: 3.2}).verdict == "within noise"


def test_only_common_seeds_count() -> None:
    found = difference("b", {0: 1.0, 1: 2.0, 5: 3.0}, {1: 4.0, 0: 3.0, 7: 100.0})
    assert (found.found.value, found.found.seeds) == (2.0, 2)
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
