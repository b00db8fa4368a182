"""Projections of random small problems: solved with a certificate, or proved to have no solution."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from strategies import generators, layouts, random_policy, random_rows

import hedgerow as hr
from bench.projection_reference import proves_infeasible

TOLERANCE = 1e-9
widths = st.sampled_from([0.0, 0.01, 0.2, 1.0])
"""Of the boxes, from points to all distributions."""
spans = st.sampled_from([0.0, 1.0, 10.0, 50.0])
"""ln of the largest base weight over the smallest."""


def boxed(layout: hr.Layout, rng: Generator, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions, and boxes that hold them."""
    p = random_rows(layout, rng)
    lower = np.maximum(0.0, p - width * rng.random(layout.num_triples))
    return p, lower, np.minimum(1.0, p + width * rng.random(layout.num_triples))


@given(layouts, generators, widths, spans, st.integers(0, 3), st.sampled_from([0.0, 0.01, 0.5]))
def test_a_feasible_problem_is_solved_and_certified(
    layout: hr.Layout, rng: Generator, width: float, span: float, m: int, slack: float
) -> None:
    p, lower, upper = boxed(layout, rng, width)
    q = hr.occupancy.occupancy(layout, p, random_policy(layout, rng))
    costs = rng.random((m, layout.num_rows))
    thresholds = costs @ np.add.reduceat(q, layout.row_start[:-1]) + slack
    log_base = -span * rng.random(layout.num_triples)
    problem = hr.projection.ProjectionProblem(layout, log_base, lower, upper, costs, thresholds)
    result = hr.projection.project(problem)
    assert result.solved, result.status.message
    assert hr.projection.certify(problem, result).worst <= TOLERANCE
    # No feasible point is nearer, such as the one that the problem was made from.
    found = np.exp(result.log_occupancy)
    assert divergence(found, log_base) <= divergence(q, log_base) + TOLERANCE
    # What is feasible already stays where it is.
    again = hr.projection.project(
        hr.projection.ProjectionProblem(layout, np.maximum(result.log_occupancy, -600.0), lower, upper)
    )
    np.testing.assert_allclose(np.exp(again.log_occupancy), found, atol=1e-7)


def divergence(q: np.ndarray, log_base: np.ndarray) -> float:
    """D(q || base), with 0 ln 0 = 0."""
    ratio = np.where(q > 0.0, np.log(np.maximum(q, 1e-300)) - log_base, 0.0)
    return float(np.sum(q * ratio) - q.sum() + np.exp(log_base).sum())


@given(layouts, generators, widths, st.integers(1, 3), st.sampled_from([0.01, 0.5]))
def test_a_problem_without_a_solution_is_proved_to_have_none(
    layout: hr.Layout, rng: Generator, width: float, m: int, gap: float
) -> None:
    _, lower, upper = boxed(layout, rng, width)
    costs = 0.2 + 0.8 * rng.random((m, layout.num_rows))
    least = sum(float(np.min(costs[0, layout.rows(k)])) for k in range(layout.steps))  # below the cost of any policy
    thresholds = np.full(m, float(layout.steps))
    thresholds[0] = least - gap
    problem = hr.projection.ProjectionProblem(layout, np.zeros(layout.num_triples), lower, upper, costs, thresholds)
    result = hr.projection.project(problem)
    assert result.status is hr.projection.ProjectionStatus.INFEASIBLE
    assert proves_infeasible(problem, result.theta) >= gap - 1e-8
