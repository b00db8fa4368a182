"""Problems without room: thresholds close to, at, and just beyond the least ones that can be met."""

from __future__ import annotations

import numpy as np
import pytest
from projection_cases import random_problem

from bench.hard_problems import hard_problem
from bench.projection_reference import proves_infeasible
from hedgerow.projection.certificate import certify
from hedgerow.projection.infeasibility import least_violation
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.problem import (
    ProjectionProblem,
    ProjectionSettings,
    ProjectionStatus,
    Workspace,
    make_workspace,
)
from hedgerow.projection.solve import maximise_nested, project

SETTINGS = ProjectionSettings()
TOL = 1e-9


def with_room(seed: int, room: float, m: int, spread: float = 0.0) -> ProjectionProblem:
    """Thresholds `room` above the least possible ones; base weights that span up to e^spread."""
    tame = random_problem(seed, m=m)
    log_base = tame.log_base - spread * np.random.default_rng(seed).random(tame.layout.num_triples)
    found = least_violation(tame.layout, tame.lower, tame.upper, tame.costs, tame.thresholds)
    thresholds = tame.thresholds + (found.value + room)
    return ProjectionProblem(tame.layout, log_base, tame.lower, tame.upper, tame.costs, thresholds)


def has_choice(problem: ProjectionProblem) -> bool:
    """Whether the costs depend on what is chosen; otherwise thresholds without room cost no multiplier."""
    most = least_violation(problem.layout, problem.lower, problem.upper, -problem.costs, -problem.thresholds)
    return most.value < -1e-3


CASES = [seed for seed in range(40) if has_choice(random_problem(seed, m=1 + seed % 3))][:14]
"""Seeds of problems whose constraints can be missed."""


def nested(problem: ProjectionProblem) -> tuple[object, np.ndarray, np.ndarray, Workspace]:
    """The outcome of the nested method from 0, v, theta and the workspace with the point."""
    ws = make_workspace(problem.layout, problem.num_constraints)
    v, theta = np.zeros(problem.layout.num_states), np.zeros(problem.num_constraints)
    outcome, centred = maximise_nested(problem, SETTINGS, v, theta, ws)
    np.testing.assert_array_equal(centred.absorbed, theta)
    return outcome, v, theta, ws


@pytest.mark.parametrize("seed", range(12))
def test_on_ordinary_problems_it_finds_what_newton_finds(seed: int) -> None:
    problem = random_problem(seed, m=1 + seed % 3)
    outcome, v, theta, ws = nested(problem)
    result = project(problem)
    assert outcome.code == SOLVED
    assert result.iterations <= SETTINGS.suspect_iterations  # plain Newton did it
    row = problem.layout.row_of_triple
    np.testing.assert_allclose(ws.w[row] * ws.p, np.exp(result.log_occupancy), atol=1e-8)
    assert theta @ problem.thresholds - v[0] == pytest.approx(
        result.theta @ problem.thresholds - result.v[0], abs=1e-8 * (1.0 + theta.sum())
    )


@pytest.mark.parametrize("spread", [0.0, 100.0])
@pytest.mark.parametrize("room", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("seed", CASES)
def test_a_nearly_infeasible_problem_is_solved(seed: int, room: float, spread: float) -> None:
    problem = with_room(seed, room, 1 + seed % 3, spread)
    outcome, _, theta, ws = nested(problem)
    assert outcome.code == SOLVED
    assert np.all(theta >= 0.0)
    slack = problem.costs @ ws.w - problem.thresholds
    assert np.max(slack) <= 5.0 * SETTINGS.tol
    assert np.max(theta * np.abs(slack)) <= TOL * (1.0 + theta.sum())
    inflow = np.bincount(problem.layout.successor, ws.w[problem.layout.row_of_triple] * ws.p)
    outflow = ws.w.reshape(-1, problem.layout.num_actions).sum(axis=1)
    np.testing.assert_allclose(inflow[1:-1], outflow[1:], atol=5.0 * SETTINGS.tol)


@pytest.mark.parametrize("spread", [0.0, 100.0])
@pytest.mark.parametrize("room", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("seed", CASES)
def test_project_certifies_a_nearly_infeasible_problem(seed: int, room: float, spread: float) -> None:
    problem = with_room(seed, room, 1 + seed % 3, spread)
    result = project(problem)
    assert result.status is ProjectionStatus.SOLVED
    assert result.relaxation == 0.0
    assert certify(problem, result).worst <= TOL


def test_the_dual_value_is_the_objective_also_where_plain_newton_gave_up() -> None:
    for seed in CASES:
        for room in (1e-4, 1e-8):
            result = project(with_room(seed, room, 1 + seed % 3, spread=100.0))
            assert result.dual_value == pytest.approx(result.objective, rel=1e-7, abs=1e-7)


def test_multipliers_grow_as_the_room_shrinks() -> None:
    """Otherwise the problems above are not the hard ones that they are meant to be."""
    largest = [max(project(with_room(seed, room, 1 + seed % 3)).theta.sum() for seed in CASES) for room in (1e-2, 1e-6)]
    assert largest[0] < SETTINGS.suspect_theta < largest[1]


@pytest.mark.parametrize("spread", [0.0, 100.0])
@pytest.mark.parametrize("seed", CASES)
def test_thresholds_without_any_room_are_raised_by_less_than_a_billionth(seed: int, spread: float) -> None:
    """The least possible thresholds leave single occupancies, at the end of infinite multipliers."""
    problem = with_room(seed, 0.0, 1 + seed % 3, spread)
    result = project(problem)
    assert result.status is ProjectionStatus.SOLVED
    certificate = certify(problem, result)
    assert certificate.worst <= TOL
    costs = problem.costs @ np.bincount(problem.layout.row_of_triple, np.exp(result.log_occupancy))
    assert np.max(costs - problem.thresholds) <= 1e-9
    if result.iterations > SETTINGS.suspect_iterations or result.theta.sum() > SETTINGS.suspect_theta:
        assert 0.0 < result.relaxation < 1e-9
    assert result.least_violation == 0.0


def test_the_relaxation_is_what_it_says() -> None:
    """The result solves the problem with its thresholds raised by `relaxation`, and no other."""
    raised = 0
    for seed in CASES:
        problem = with_room(seed, 0.0, 1 + seed % 3)
        result = project(problem)
        if result.relaxation == 0.0:
            continue
        raised += 1
        costs = problem.costs @ np.bincount(problem.layout.row_of_triple, np.exp(result.log_occupancy))
        active = result.theta > 1.0
        assert active.any()
        np.testing.assert_allclose(costs[active], (problem.thresholds + result.relaxation)[active], atol=1e-11)
    assert raised >= 5  # elsewhere moderate multipliers bring the costs within the tolerance


@pytest.mark.parametrize("seed", CASES)
def test_beyond_the_tolerance_there_is_a_proof(seed: int) -> None:
    problem = with_room(seed, -1e-8, 1 + seed % 3)
    result = project(problem)
    assert result.status is ProjectionStatus.INFEASIBLE
    assert proves_infeasible(problem, result.theta) == pytest.approx(1e-8, abs=1e-9)
    assert result.relaxation == 0.0


def test_an_inner_problem_whose_steps_drown_in_rounding_is_taken_up_again() -> None:
    """Base weights down to e^-596: once no step shows an ascent although the flow is off by 1e-7."""
    problem = hard_problem(2363).problem
    result = project(problem)
    assert result.solved
    assert certify(problem, result).worst <= TOL
