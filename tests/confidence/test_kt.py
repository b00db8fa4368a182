"""Krichevsky-Trofimov intervals against sixty digits, published numbers, and coverage by simulation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import exp, expm1, inf, log, nan

import numpy as np
import pytest
from naive_kt import complaints
from scipy.stats import binomtest

import hedgerow as hr
from hedgerow.confidence.kl import kt_bounds, kt_interval, kt_level, kt_overhead
from hedgerow.errors import InvalidInput
from nightly import daily

LOG = 7.649693
"""Of the published numbers for n = 1000"""
VISITS = (1, 2, 3, 10, 97, 10**4, 10**9, 2**53)


@pytest.mark.parametrize(
    ("n", "total", "expected"),
    [
        (1, 0.0, 0.693147),
        (10, 3.0, 1.405162),
        (100, 25.0, 2.531432),
        (1000, 250.0, 3.679975),
        (1000, 12.5, 3.683127),
        (100_000, 50_000.0, 5.982257),
    ],
)
def test_the_overhead_has_the_published_values(n: int, total: float, expected: float) -> None:
    assert kt_overhead(n, total) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "total", "log_inverse_delta", "expected"),
    [
        (1, 0.0, 7.0, (0.0, 0.999544)),
        (10, 3.0, 7.0, (0.008075, 0.866262)),
        (100, 25.0, 7.0, (0.098235, 0.461624)),
        (1000, 250.0, LOG, (0.188881, 0.318618)),
        (1000, 0.0, LOG, (0.0, 0.011608)),
        (1000, 1000.0, LOG, (0.988392, 1.0)),
    ],
)
def test_the_bounds_have_the_published_values(
    n: int, total: float, log_inverse_delta: float, expected: tuple[float, float]
) -> None:
    assert kt_bounds(n, total, log_inverse_delta) == pytest.approx(expected, abs=1e-6)


def test_the_level_has_the_published_value() -> None:
    assert kt_level(1000, 250.0, LOG) == pytest.approx(0.011330, abs=1e-6)


@pytest.mark.parametrize("n", VISITS)
def test_the_ends_of_zero_and_full_totals_are_closed_forms(n: int) -> None:
    lower, upper = kt_bounds(n, 0.0, 3.0)
    assert lower == 0.0
    assert upper == pytest.approx(-expm1(-kt_level(n, 0.0, 3.0)), rel=1e-14)
    lower, upper = kt_bounds(n, float(n), 3.0)
    assert upper == 1.0
    assert lower == pytest.approx(exp(-kt_level(n, float(n), 3.0)), abs=1e-12)
    assert kt_bounds(0, 0.0, 3.0) == (0.0, 1.0)


def asked(count: int, seed: int) -> Iterator[tuple[int, float, float]]:
    """n up to 10^7 and beyond, whole and fractional totals, near both ends and between; logarithms from 0 to 1000."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        n = int(10 ** rng.uniform(0.0, 7.0 if i % 7 else 15.0))
        few = float(min(n, rng.integers(0, 4)))
        bit = min(float(n), 10 ** rng.uniform(-12.0, 1.0))
        total = (n * rng.uniform(), float(rng.integers(0, n + 1)), few, n - few, bit, n - bit)[i % 6]
        yield n, total, (0.0, 1.0, 7.0, rng.uniform(0.0, 1000.0), 10 ** rng.uniform(-3.0, 3.0))[i % 5]


@pytest.mark.parametrize("count", daily(2_000, nightly=10_000))
def test_bounds_are_outward_and_within_a_trillionth(count: int) -> None:
    assert [words for case in asked(count, seed=1) for words in complaints(*case)] == []


@pytest.mark.parametrize("total", [0.0, 5e-324, 1e-300, 1e-99, 1e-17, 0.5, 1.0 - 1e-16, 1.0])
@pytest.mark.parametrize("log_inverse_delta", [0.0, 5e-324, 1e-9, 1.0, 29.0, 1000.0])
def test_bounds_at_the_edge_of_what_floats_hold(total: float, log_inverse_delta: float) -> None:
    for n in VISITS:
        assert complaints(n, total, log_inverse_delta) == []
        assert complaints(n, n - total, log_inverse_delta) == []


@pytest.mark.parametrize("n", VISITS)
def test_the_two_ends_mirror_each_other(n: int) -> None:
    for share in (0.0, 1e-9, 0.01, 0.25, 0.5, 0.9, 1.0):
        lower, upper = kt_bounds(n, n * share, 7.0)
        mirrored = kt_bounds(n, n - n * share, 7.0)
        assert mirrored == pytest.approx((1.0 - upper, 1.0 - lower), abs=2e-13)


@pytest.mark.parametrize("n", VISITS)
def test_counts_may_be_totals(n: int) -> None:
    for count in (0, n // 3, n):
        assert kt_bounds(n, count, 7.0) == kt_bounds(n, float(count), 7.0)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 1000, 10**6])
@pytest.mark.parametrize("log_inverse_delta", [0.0, 0.5, 7.0, 200.0])
def test_bounds_rise_with_the_total(n: int, log_inverse_delta: float) -> None:
    totals = np.unique(np.concatenate([np.linspace(0.0, n, 4001), n * np.geomspace(1e-12, 1.0, 999)]))
    for ends in kt_interval(n, totals, log_inverse_delta):
        assert np.diff(ends).min() >= -1e-12
        assert np.ptp(ends) > 0.0 or log_inverse_delta / n > 30.0


@pytest.mark.parametrize("n", VISITS)
def test_bounds_widen_with_the_logarithm_and_hold_the_mean(n: int) -> None:
    logs = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 2000)])
    for share in (0.0, 1e-6, 0.1, 0.5, 1.0):
        lower, upper = kt_interval(n, n * share, logs)
        assert np.diff(lower).max() <= 1e-15
        assert np.diff(upper).min() >= -1e-15
        assert lower.max() <= n * share / n <= upper.min()


LONGEST, RUNS, DELTA = 2000, 1500, 0.2


@cache
def bounds_of_coins() -> tuple[np.ndarray, np.ndarray]:
    """The bounds (LONGEST, LONGEST + 1) after n = 1.. tosses with S heads."""
    heads, n = np.arange(LONGEST + 1.0), np.arange(1, LONGEST + 1)[:, None]
    return kt_interval(n, np.minimum(heads, n), log(1.0 / DELTA))


def breaches_of_coins(g: float) -> int:
    """How many runs of coins have a time at which g is out of bounds."""
    heads = np.cumsum(np.random.default_rng(round(1e6 * g)).random((RUNS, LONGEST)) < g, axis=1)
    lower, upper = (ends[np.arange(LONGEST), heads] for ends in bounds_of_coins())
    return int(((g < lower) | (upper < g)).any(axis=1).sum())


def breaches_of_a_tempter(g: float) -> int:
    """The same for numbers that are a coin, while the mean is out of the way of g, and a constant g elsewhere."""
    rng = np.random.default_rng(7)
    total, out = np.zeros(RUNS), np.zeros(RUNS, dtype=bool)
    for n in range(1, LONGEST // 4 + 1):
        tempting = total >= g * (n - 1)
        total = np.minimum(total + np.where(tempting, rng.random(RUNS) < g, g), n)
        lower, upper = kt_interval(n, total, log(1.0 / DELTA))
        out |= (g < lower) | (upper < g)
    return int(out.sum())


def is_kept(breaches: int, delta: float) -> bool:
    """Whether a share of delta or more is out of the question."""
    return bool(binomtest(breaches, RUNS, delta, alternative="less").pvalue < 1e-4)


def is_refuted(breaches: int, delta: float) -> bool:
    return bool(binomtest(breaches, RUNS, delta, alternative="greater").pvalue < 1e-9)


@pytest.mark.parametrize("g", [0.003, 0.1, 0.5, 0.97])
def test_a_mean_ever_leaves_its_bounds_less_often_than_promised(g: float) -> None:
    breaches = breaches_of_coins(g)
    assert is_kept(breaches, DELTA)
    assert is_refuted(breaches, DELTA / 100.0), "a promise of a hundredth would be broken, and this is seen"


def test_so_it_does_if_the_law_follows_the_past() -> None:
    assert is_kept(breaches_of_a_tempter(0.3), DELTA)


def test_numbers_give_numbers_and_arrays_give_arrays() -> None:
    lower, upper = hr.confidence.kt_interval(100, 25, log(1000.0))
    assert (type(lower), type(upper)) == (float, float)
    assert (lower, upper) == kt_bounds(100, 25.0, log(1000.0))
    lowers, uppers = kt_interval(np.array([[100], [200]]), [25.0, 0.0, 1], log(1000.0))
    assert lowers.shape == uppers.shape == (2, 3)
    assert (lowers[0, 0], uppers[0, 0]) == (lower, upper)
    assert kt_interval([0], 0.0, 1.0)[1].tolist() == [1.0]
    assert kt_interval(np.int64(7), np.float32(0.5), 1) == kt_bounds(7, 0.5, 1.0)
    assert kt_interval(np.empty(0), 0.0, 1.0)[0].shape == (0,)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((nan, 0.0, 1.0), r"the number of visits is nan"),
        ((-1, 0.0, 1.0), r"the number of visits is -1.0; it must lie in"),
        ((2.5, 0.0, 1.0), r"the number of visits is 2.5; it must be whole"),
        (([1, 2.5], 0.0, 1.0), r"the number of visits is 2.5 at index 1; it must be whole"),
        ((1e300, 0.0, 1.0), r"it must be whole, at most 2\^53"),
        ((3, 3.5, 1.0), r"the total is 3.5; it must be at most the number of visits"),
        (([[3, 0]], 0.5, 1.0), r"the total is 0.5 at index \(0, 1\)"),
        ((3, inf, 1.0), r"the total is inf"),
        ((3, [0.0, nan], 1.0), r"the total is nan at index 1"),
        ((3, -0.5, 1.0), r"the total is -0.5"),
        ((3, 1.0, -1e-9), r"ln\(1/delta\) is -1e-09"),
        ((3, 1.0, [inf]), r"ln\(1/delta\) is inf at index 0"),
        ((3, "many", 1.0), r"the total must be an array of numbers"),
        (([1, 2], [0.0, 0.0, 0.0], 1.0), r"shapes \(2,\), \(3,\), \(\)"),
    ],
)
def test_what_makes_no_sense_is_refused(given: tuple[object, object, object], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        kt_interval(*given)  # type: ignore[call-overload]
