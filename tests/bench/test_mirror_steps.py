"""The benchmark problems are what they claim: feasible bases, few changed rows, active boxes and constraints."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bench.mirror_steps import SIZES, Size, cold_problem, mirror_step, share_at_bound
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project

EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=lambda size: size.label)
SEEDS = (0, 1, 2)


def conditionals(problem: ProjectionProblem, log_q: np.ndarray) -> list[np.ndarray]:
    """The distribution of each row, row by row."""
    starts = problem.layout.row_start
    rows = [np.exp(log_q[a:b] - log_q[a:b].max()) for a, b in pairwise(starts)]
    return [row / row.sum() for row in rows]


def outside_their_boxes(problem: ProjectionProblem, log_q: np.ndarray) -> int:
    """The number of rows whose conditionals leave their box."""
    starts, count = problem.layout.row_start, 0
    for r, p in enumerate(conditionals(problem, log_q)):
        own = slice(starts[r], starts[r + 1])
        count += bool(np.any(p < problem.lower[own] - 1e-9) or np.any(p > problem.upper[own] + 1e-9))
    return count


@EACH_SIZE
@pytest.mark.parametrize("seed", SEEDS)
def test_base_is_a_feasible_iterate_after_one_episode(size: Size, seed: int) -> None:
    problem = mirror_step(size, seed)
    layout = problem.layout
    # One row per layer lost a share of its mass of at most 1 - 1/e; the others still carry the mass of a flow.
    for k in range(layout.steps):
        mass = np.exp(problem.log_base[layout.triples(k)]).sum()
        assert np.exp(-1.0) - 1e-9 <= mass < 1.0
    # Only the boxes of visited rows changed, so only these can have left theirs.
    assert outside_their_boxes(problem, problem.log_base) <= layout.steps


@EACH_SIZE
@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_and_constraints_are_active(size: Size, seed: int) -> None:
    problem = mirror_step(size, seed)
    result = project(problem)
    assert result.solved
    assert certify(problem, result).worst <= 1e-9
    assert np.all(result.theta > 0.0)
    starts = problem.layout.row_start
    at_bound, total = 0, 0
    for r, p in enumerate(conditionals(problem, result.log_occupancy)):
        if len(p) > 1:
            own = slice(starts[r], starts[r + 1])
            at_bound += np.sum((p - problem.lower[own] < 1e-9) | (problem.upper[own] - p < 1e-9))
            total += len(p)
    assert 0.1 <= at_bound / total <= 0.4
    assert share_at_bound(problem, result) == pytest.approx(at_bound / total)


@EACH_SIZE
def test_no_constraint_can_be_dropped(size: Size) -> None:
    problem = mirror_step(size, seed=3)
    row = problem.layout.row_of_triple
    for i in range(size.constraints):
        kept = [j for j in range(size.constraints) if j != i]
        relaxed = ProjectionProblem(
            size.layout, problem.log_base, problem.lower, problem.upper, problem.costs[kept], problem.thresholds[kept]
        )
        q = np.exp(project(relaxed).log_occupancy)
        assert problem.costs[i, row] @ q > problem.thresholds[i]


@EACH_SIZE
@pytest.mark.parametrize("seed", SEEDS)
def test_cold_problems_have_known_multipliers(size: Size, seed: int) -> None:
    problem = cold_problem(size, seed)
    assert np.ptp(problem.log_base) <= 3.0
    result = project(problem)
    assert certify(problem, result).worst <= 1e-9
    np.testing.assert_allclose(result.theta, 1.0, atol=1e-7)


@pytest.mark.parametrize("make", [mirror_step, cold_problem])
def test_problems_are_seeded(make: object) -> None:
    assert callable(make)
    first, again, other = (make(SIZES[0], seed) for seed in (5, 5, 6))
    for name in ("log_base", "lower", "upper", "costs", "thresholds"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))


def test_sizes_and_labels() -> None:
    assert [size.layout.num_triples for size in SIZES] == [45, 240, 840, 4100]
    assert [size.label for size in SIZES] == [
        "(1,3,3,1)x3, m=1",
        "(1,5,5,5,1)x4, m=2",
        "(1,5^9,1)x4, m=2",
        "(1,10^9,1)x5, m=2",
    ]
