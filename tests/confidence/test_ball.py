"""Divergence balls of rows against sixty digits, a conic solver, published numbers, and coverage by simulation."""

from __future__ import annotations

from math import exp, inf, log

import naive_ball as naive
import numpy as np
import pytest
from scipy.stats import binomtest

from hedgerow.confidence.balls import BallRow, ball_radius, ball_value, dirichlet_overhead
from hedgerow.confidence.kl import kt_interval, kt_overhead
from nightly import daily


def largest_mean(counts: np.ndarray, radius: float, V: np.ndarray) -> float:
    """`ball_value` of a row whose counts, successors and values are somewhere in longer arrays, in another order."""
    size = len(counts)
    num_moves = np.concatenate([[99, 99, 99], counts, [99]])
    successor = np.concatenate([[0], np.arange(size, 0, -1), [0]]).astype(np.int32)
    values = np.concatenate([[1e9], V[::-1], [1e9]])
    first, start, width = np.uint64(3), np.uint64(1), np.uint64(size)
    row = BallRow(num_moves, first, int(counts.sum()), successor, start, width, values)
    return ball_value(row, radius, 1e-13)


def rows(count: int, seed: int, most_visits: float = 7.0) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Counts of up to 12 successors, even and uneven, values that are various, 0/1 or mostly small, and ln(1/delta)."""
    rng, found = np.random.default_rng(seed), []
    for i in range(count):
        size = int(rng.integers(2, 13))
        law = rng.dirichlet(np.full(size, (0.1, 0.5, 2.0)[i % 3]))
        counts = rng.multinomial(int(10 ** rng.uniform(0.0, most_visits)), law)
        V = (rng.uniform(-1.0, 5.0, size), 1.0 * rng.integers(0, 2, size), rng.random(size) ** 6)[i // 3 % 3]
        found.append((counts, V, float(rng.uniform(0.0, 15.0))))
    return found


def test_the_published_row() -> None:
    counts, V = np.array([37, 60, 7]), np.array([1.0, 0.4, 0.1])
    D = dirichlet_overhead(counts, 0, 3, 104, 0.5)
    assert pytest.approx(4.656552, abs=1e-6) == D
    radius = (log(200.0) + D) / 104
    assert radius == pytest.approx(0.095720, abs=1e-6)
    assert counts @ V / 104 == pytest.approx(0.593269, abs=1e-6)
    assert largest_mean(counts, radius, V) == pytest.approx(0.732114, abs=1e-6)


def test_the_overhead_is_its_definition_rounded_up() -> None:
    rng = np.random.default_rng(3)
    for counts, _, _ in rows(300, seed=2, most_visits=9.0):
        size, N = len(counts), int(counts.sum())
        for weight in (0.5, 1.0 / size, float(rng.uniform(0.01, 3.0))):
            slack = dirichlet_overhead(counts, 0, size, N, weight) - naive.overhead(counts, weight)
            assert 0.0 <= slack < 2e-12


def test_two_successors_are_the_interval_of_a_coin() -> None:
    for heads, N in ((0, 1), (3, 10), (250, 1000), (10**6, 10**6)):
        counts = np.array([heads, N - heads])
        assert dirichlet_overhead(counts, 0, 2, N, 0.5) == pytest.approx(kt_overhead(N, float(heads)), abs=1e-12)
        upper = kt_interval(N, heads, 5.0)[1]
        radius = ball_radius(counts, 0, 2, N, 5.0)
        assert largest_mean(counts, radius, np.array([1.0, 0.0])) == pytest.approx(upper, abs=1e-12)


def test_the_radius_uses_the_sparse_prior() -> None:
    counts = np.array([5, 0, 0, 0, 3])
    assert ball_radius(counts, 0, 5, 8, 2.0) == pytest.approx((2.0 + dirichlet_overhead(counts, 0, 5, 8, 0.2)) / 8)
    assert ball_radius(counts, 1, 3, 0, 2.0) == inf
    assert ball_radius(np.array([9]), 0, 1, 9, 2.0) == pytest.approx(2.0 / 9.0)
    assert ball_radius(counts, np.uint64(0), 5, 8, 2.0) == ball_radius(counts, 0, 5, 8, 2.0)


@pytest.mark.parametrize("count", daily(36, nightly=72))
@pytest.mark.parametrize("fixed_radius", [None, 1e-12, 1e-4, 0.1, 3.0, 30.0])
def test_the_largest_mean_is_never_too_small_and_within_a_trillionth(fixed_radius: float | None, count: int) -> None:
    for counts, V, log_inverse_delta in rows(count, seed=5):
        own = ball_radius(counts, 0, len(counts), int(counts.sum()), log_inverse_delta)
        radius = own if fixed_radius is None else fixed_radius
        slack = float(largest_mean(counts, radius, V) - naive.largest_mean(counts, radius, V))
        assert 0.0 <= slack <= 1e-12 * max(1.0, np.ptp(V)), (counts, V, radius)


def test_the_largest_mean_is_what_a_conic_solver_finds() -> None:
    for counts, V, log_inverse_delta in rows(40, seed=11, most_visits=4.0):
        radius = ball_radius(counts, 0, len(counts), int(counts.sum()), log_inverse_delta)
        if radius < 5.0:  # beyond, probabilities of exp(-radius) are what such a solver calls nothing
            assert largest_mean(counts, radius, V) == pytest.approx(naive.by_conic_program(counts, radius, V), abs=2e-5)


@pytest.mark.parametrize("constant", [0.0, -3.5, 7.1])
def test_constant_values_are_their_own_mean(constant: float) -> None:
    assert largest_mean(np.array([4, 0, 9]), 0.3, np.full(3, constant)) == constant


def test_nothing_exceeds_the_largest_value() -> None:
    V = np.array([0.2, 0.9, 0.5])
    for counts in (np.array([3, 0, 1]), np.array([3, 2, 1]), np.array([0, 5, 0])):
        for radius in (34.0, 36.0, 1e9, inf):
            assert largest_mean(counts, radius, V) == pytest.approx(0.9, abs=1e-13)
            assert largest_mean(counts, radius, V) <= 0.9
    assert largest_mean(np.zeros(3, dtype=np.int64), inf, V) == 0.9


def test_an_unseen_best_successor_gets_what_the_radius_leaves() -> None:
    # P_hat = (1, 0): KL = -ln p(1) <= radius, so that p(2) <= 1 - exp(-radius).
    for radius in (1e-9, 0.1, 2.0):
        assert largest_mean(np.array([8, 0]), radius, np.array([0.0, 1.0])) == pytest.approx(
            1.0 - exp(-radius), rel=1e-6
        )
    # Nearly all of it, if there is a seen one nearly as good: z = (1, 1e-9).
    assert largest_mean(np.array([1, 1, 0]), 1.0, np.array([0.0, 1.0 - 1e-9, 1.0])) < 1.0


def test_gaps_of_very_different_sizes() -> None:
    for tiny in (1e-8, 1e-15, 1e-40, 1e-300):
        V = -np.array([1.0, tiny, 0.0])
        for counts in (np.array([1, 999, 0]), np.array([999, 1, 0]), np.array([10**6, 1, 1]), np.array([1, 1, 10**6])):
            for radius in (1e-7, 1e-3, 0.3, 5.0):
                slack = float(largest_mean(counts, radius, V) - naive.largest_mean(counts, radius, V))
                assert 0.0 <= slack <= 1e-12, (tiny, counts, radius)


RUNS, LONGEST, DELTA = 2500, 200, 0.2
"""So many runs that a share of .165 is told from .2: with coins and dice a mixture uses most of its budget."""


def breaches(law: np.ndarray) -> int:
    """How many runs have a time at which the law is out of the ball."""
    rng, size, found = np.random.default_rng(len(law)), len(law), 0
    n = np.arange(1, LONGEST + 1)
    for _ in range(RUNS):
        counts = np.cumsum(rng.multinomial(1, law, LONGEST), axis=0)
        p_hat = counts / n[:, None]
        divergence = np.where(counts > 0, p_hat * np.log(np.where(counts > 0, p_hat, 1.0) / law), 0.0).sum(axis=1)
        flat = counts.ravel()
        radius = np.array([ball_radius(flat, k * size, size, k + 1, log(1.0 / DELTA)) for k in range(LONGEST)])
        found += bool((divergence > radius).any())
    return found


@pytest.mark.parametrize(
    "law",
    [np.array([0.5, 0.5]), np.array([0.6, 0.3, 0.1]), np.full(10, 0.1), np.array([0.9, 0.04] + [0.0075] * 8)],
    ids=["coin", "three", "even", "sparse"],
)
def test_a_law_ever_leaves_its_ball_less_often_than_promised(law: np.ndarray) -> None:
    found = breaches(law)
    assert binomtest(found, RUNS, DELTA, alternative="less").pvalue < 1e-4
    assert binomtest(found, RUNS, DELTA / 100.0, alternative="greater").pvalue < 1e-9, "a hundredth would be refuted"


def box_value(counts: np.ndarray, log_inverse_delta: float, V: np.ndarray) -> float:
    """max p.V over the box of intervals, one per successor: the best ones are filled first."""
    lower, upper = kt_interval(int(counts.sum()), counts, log_inverse_delta)
    p = lower.copy()
    for i in np.argsort(-V):
        p[i] += min(upper[i] - lower[i], 1.0 - p.sum())
    return float(p @ V)


def mean_excesses(size: int, num_possible: int, N: int) -> tuple[float, float, float]:
    """How far, on average, the largest mean is above P_hat.V: box, ball with the sparse prior, ball with a = 1/2.

    Rows of which only some successors are possible; delta is .001 for the row, half of it if there is a ball.
    """
    rng, found = np.random.default_rng(size * N + num_possible), np.zeros(3)
    for _ in range(200):
        counts = np.zeros(size, dtype=np.int64)
        counts[:num_possible] = rng.multinomial(N, rng.dirichlet(np.ones(num_possible)))
        V = rng.uniform(0.0, 5.0, size)
        jeffreys = (log(2000.0) + dirichlet_overhead(counts, 0, size, N, 0.5)) / N
        balls = [largest_mean(counts, radius, V) for radius in (ball_radius(counts, 0, size, N, log(2000.0)), jeffreys)]
        found += np.array([box_value(counts, log(1000.0 * size), V), *balls]) - counts @ V / N
    box, sparse, even = found / 200
    return float(box), float(sparse), float(even)


@pytest.mark.parametrize(("size", "num_possible", "N"), [(10, 4, 100), (10, 10, 100), (10, 10, 1000), (20, 4, 1000)])
def test_the_ball_is_smaller_than_the_box_for_wide_rows(size: int, num_possible: int, N: int) -> None:
    box, sparse, _ = mean_excesses(size, num_possible, N)
    assert sparse < 0.9 * box


def test_the_box_is_smaller_for_short_rows() -> None:
    box, sparse, even = mean_excesses(3, 2, 1000)
    assert box < min(sparse, even)


def test_the_sparse_prior_pays_where_few_successors_are_possible() -> None:
    for N in (100, 1000):
        _, sparse, even = mean_excesses(10, 2, N)
        assert sparse < 0.8 * even
