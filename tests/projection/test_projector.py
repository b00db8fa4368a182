"""Repeated projections on one layout: the answers of `project`, one after the other, whatever came before."""

from __future__ import annotations

import numpy as np
import pytest
from projection_cases import random_dual_point, random_problem

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout
from hedgerow.projection import solve
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionProblem, ProjectionResult
from hedgerow.projection.projector import Projector
from hedgerow.projection.solve import WarmStart, project

TOL = 1e-9
"""Both solve to residuals of 1e-10, from different starts."""


def arrays_of(problem: ProjectionProblem) -> tuple[np.ndarray, ...]:
    return problem.log_base, problem.lower, problem.upper, problem.costs, problem.thresholds


def check_same(problem: ProjectionProblem, found: ProjectionResult, expected: ProjectionResult) -> None:
    assert found.status is expected.status
    np.testing.assert_allclose(np.exp(found.log_occupancy), np.exp(expected.log_occupancy), atol=TOL)
    np.testing.assert_allclose(found.policy, expected.policy, atol=1e-9)
    assert found.objective == pytest.approx(expected.objective, rel=TOL, abs=TOL)
    assert found.dual_value == pytest.approx(expected.dual_value, rel=TOL, abs=TOL)
    if found.solved:
        assert certify(problem, found).worst < 1e-8


@pytest.mark.parametrize("seed", range(60))
def test_the_answer_is_that_of_project(seed: int) -> None:
    problem = random_problem(seed)
    projector = Projector(problem.layout, problem.num_constraints)
    expected = project(problem)
    for _ in range(2):
        check_same(problem, projector.project(*arrays_of(problem)), expected)
    start = WarmStart(*random_dual_point(seed, problem))
    check_same(problem, projector.project(*arrays_of(problem), start), expected)
    check_same(problem, projector.project(*arrays_of(problem)), expected)  # the start before was of no consequence


def test_results_are_not_overwritten_by_later_calls() -> None:
    problem = random_problem(3, m=2)
    other = ProjectionProblem(problem.layout, problem.log_base[::-1], *arrays_of(problem)[1:])
    projector = Projector(problem.layout, 2)
    first = projector.project(*arrays_of(problem))
    kept = [array.copy() for array in (first.log_occupancy, first.policy, first.v, first.theta)]
    projector.project(*arrays_of(other))
    for before, now in zip(kept, (first.log_occupancy, first.policy, first.v, first.theta), strict=True):
        np.testing.assert_array_equal(before, now)


def test_what_is_infeasible_or_in_another_unit_is_left_to_project() -> None:
    problem = random_problem(8, m=2)
    projector = Projector(problem.layout, 2)
    impossible = ProjectionProblem(problem.layout, *arrays_of(problem)[:4], problem.thresholds - 100.0)
    result = projector.project(*arrays_of(impossible))
    assert result.status is hr.projection.ProjectionStatus.INFEASIBLE
    assert result.least_violation == pytest.approx(project(impossible).least_violation)
    scaled = ProjectionProblem(problem.layout, *arrays_of(problem)[:3], 50.0 * problem.costs, 50.0 * problem.thresholds)
    check_same(scaled, projector.project(*arrays_of(scaled)), project(scaled))


def test_lists_and_other_numbers_are_welcome() -> None:
    projector = Projector(Layout((1, 2, 1), 1))
    base, lower, upper = np.log([0.5, 0.5, 0.5, 0.5]), [0, 0, 1, 1], np.array([0.4, 1.0, 1.0, 1.0], dtype=np.float32)
    result = projector.project(base.tolist(), lower, upper)
    np.testing.assert_allclose(np.exp(result.log_occupancy), [0.4, 0.6, 0.4, 0.6], atol=1e-7)


@pytest.mark.parametrize("name", ["log_base", "lower", "upper", "costs", "thresholds"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "shape"])
def test_wrong_arrays_are_refused_and_leave_no_trace(name: str, wrong: float | str) -> None:
    problem = random_problem(2, m=2, boxes="wide")
    projector = Projector(problem.layout, 2)
    given = dict(zip(("log_base", "lower", "upper", "costs", "thresholds"), arrays_of(problem), strict=True))
    bad = given[name].copy()
    if wrong == "shape":
        bad = bad[..., :-1]
    else:
        bad.flat[0] = wrong
    with pytest.raises(InvalidInput):
        projector.project(**{**given, name: bad})
    check_same(problem, projector.project(**given), project(problem))


def test_boxes_that_are_crossed_or_empty_are_refused() -> None:
    projector = Projector(Layout((1, 2, 1), 1))
    base = np.zeros(4)
    for lower, upper, what in (
        ([0.6, 0.6, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], "holds no distribution"),
        ([0.5, 0.0, 1.0, 1.0], [0.4, 1.0, 1.0, 1.0], "exceeds the upper bound"),
        ([0.0, 0.0, 1.0, 1.0], [0.4, 0.4, 1.0, 1.0], "holds no distribution"),
    ):
        with pytest.raises(InvalidInput, match=what):
            projector.project(base, np.array(lower), np.array(upper))


def test_a_second_call_at_the_same_time_is_refused() -> None:
    problem = random_problem(3, m=2)
    projector = Projector(problem.layout, 2)
    with projector._lock, pytest.raises(hr.errors.BusyError, match="a projector of its own"):
        projector.project(*arrays_of(problem))
    check_same(problem, projector.project(*arrays_of(problem)), project(problem))


def test_a_projection_within_a_projection_has_a_workspace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a signal handler."""
    problem, inner = random_problem(3, m=2), []
    expected = project(problem)
    recover = solve.recover

    def interrupted(*arguments: object) -> None:
        if not inner:
            inner.append(None)
            other = ProjectionProblem(problem.layout, problem.log_base[::-1], *arrays_of(problem)[1:])
            inner.append(project(other))
        recover(*arguments)

    monkeypatch.setattr(solve, "recover", interrupted)
    found = project(problem)
    np.testing.assert_array_equal(found.log_occupancy, expected.log_occupancy)
    assert inner[1].solved


def test_what_is_no_layout_is_refused() -> None:
    with pytest.raises(InvalidInput, match="layout must be a hedgerow Layout, not str"):
        Projector("grid")
