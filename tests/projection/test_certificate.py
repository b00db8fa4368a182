"""The independent check: silent on solutions, loud on every kind of wrong one, and rigorous about the gap."""

import dataclasses

import numpy as np
import pytest
from projection_cases import feasible_occupancy, random_dual_point, random_policy, random_problem
from scipy.optimize import linprog

from bench.projection_reference import constraint_matrices, proves_infeasible
from hedgerow.model import occupancy
from hedgerow.model.layout import Layout
from hedgerow.projection.certificate import Certificate, certify
from hedgerow.projection.problem import (
    ProjectionProblem,
    ProjectionResiduals,
    ProjectionResult,
    ProjectionSettings,
    ProjectionStatus,
)
from hedgerow.projection.projector import Projector
from hedgerow.projection.solve import project

TOL = 1e-9
CLEAR = 1e-4
"""A residual that nobody could take for rounding."""


ACTIVE = (4, 5, 6, 7, 10, 12)


def with_active_constraints(seed: int) -> tuple[ProjectionProblem, ProjectionResult]:
    """A problem with two active constraints and active boxes, and its solution."""
    problem = random_problem(seed, boxes="wide", m=2)
    result = project(problem)
    assert np.all(result.theta > 0.01)
    return problem, result


@pytest.mark.parametrize("seed", range(25))
def test_solutions_pass(seed: int) -> None:
    problem = random_problem(seed)
    certificate = certify(problem, project(problem))
    assert certificate.worst <= TOL
    residuals = dataclasses.asdict(certificate)
    absolute_gap = residuals.pop("absolute_gap")
    assert certificate.worst == max(abs(value) for value in residuals.values())
    assert abs(residuals["gap"]) <= abs(absolute_gap) <= TOL * (1.0 + abs(project(problem).objective))


def worsened(certificate: Certificate) -> set[str]:
    return {name for name, value in dataclasses.asdict(certificate).items() if abs(value) > CLEAR}


@pytest.mark.parametrize("seed", ACTIVE)
def test_another_policy_is_not_optimal(seed: int) -> None:
    """A valid occupancy with the right transitions and the wrong policy: only optimality can tell."""
    problem, result = with_active_constraints(seed)
    layout = problem.layout
    p = occupancy.induced_transitions(layout, np.exp(result.log_occupancy))
    policy = 0.9 * result.policy + 0.1 * random_policy(np.random.default_rng(seed), layout)
    moved = dataclasses.replace(result, log_occupancy=np.log(occupancy.occupancy(layout, p, policy)))
    certificate = certify(problem, moved)
    assert worsened(certificate) >= {"stationarity"}
    assert max(certificate.mass, certificate.flow, certificate.boxes) <= TOL
    if certificate.costs <= TOL:
        assert certificate.gap > 0.0


@pytest.mark.parametrize("seed", ACTIVE)
def test_transitions_outside_the_boxes_are_seen(seed: int) -> None:
    problem, result = with_active_constraints(seed)
    narrow = ProjectionProblem(
        problem.layout,
        problem.log_base,
        problem.lower,
        np.where(np.diff(problem.layout.row_start)[problem.layout.row_of_triple] > 1, 0.98 * problem.upper, 1.0),
        problem.costs,
        problem.thresholds,
    )
    assert worsened(certify(narrow, result)) >= {"boxes"}
    layout, lower = problem.layout, np.zeros(problem.layout.num_triples)
    p = occupancy.induced_transitions(layout, np.exp(result.log_occupancy))
    wide = np.flatnonzero(np.diff(layout.row_start) > 1)
    row = wide[np.argmax(result.policy[wide])]
    rarest = layout.row_start[row] + int(np.argmin(p[layout.row_start[row] : layout.row_start[row + 1]]))
    lower[rarest] = p[rarest] + 0.3  # all other bounds are kept
    high = ProjectionProblem(layout, problem.log_base, lower, np.ones(len(lower)), problem.costs, problem.thresholds)
    assert worsened(certify(high, result)) >= {"boxes"}
    lifted = result.log_occupancy.copy()
    widest = int(np.argmax(np.diff(problem.layout.row_start)))
    lifted[problem.layout.row_start[widest]] += 0.5
    assert worsened(certify(problem, dataclasses.replace(result, log_occupancy=lifted))) >= {"stationarity"}


@pytest.mark.parametrize("seed", ACTIVE)
def test_a_broken_flow_is_seen(seed: int) -> None:
    problem, result = with_active_constraints(seed)
    layout, log_q = problem.layout, result.log_occupancy.copy()
    q = np.exp(log_q)
    last = layout.triples(layout.steps - 1)
    if layout.layer_sizes[-2] > 1:  # move mass between two states of the last decision layer, its total unchanged
        q[last.start] += 0.01
        q[last] /= q[last].sum()
        assert worsened(certify(problem, dataclasses.replace(result, log_occupancy=np.log(q)))) >= {"flow"}
    scaled = dataclasses.replace(result, log_occupancy=log_q + 0.01)
    assert worsened(certify(problem, scaled)) >= {"mass"}
    one_layer = log_q.copy()
    one_layer[last] += 0.01
    assert worsened(certify(problem, dataclasses.replace(result, log_occupancy=one_layer))) >= {"mass"}


@pytest.mark.parametrize("seed", ACTIVE)
def test_a_cost_above_its_threshold_is_seen(seed: int) -> None:
    problem, result = with_active_constraints(seed)
    arrays = (problem.layout, problem.log_base, problem.lower, problem.upper, problem.costs)
    for i in range(2):
        change = 0.01 * np.eye(2)[i]
        tighter = certify(ProjectionProblem(*arrays, problem.thresholds - change), result)
        assert tighter.costs == pytest.approx(0.01, abs=1e-8)
        looser = certify(ProjectionProblem(*arrays, problem.thresholds + change), result)
        theta, alpha = result.theta, problem.thresholds + change
        terms = 1.0 + abs(result.v[0] - theta @ alpha - problem.layout.steps) + theta @ np.abs(alpha)
        assert looser.complementarity == pytest.approx(0.01 * theta[i] / terms, rel=1e-4)
        # A multiplier of a constraint that is not active costs the dual exactly theta times the slack.
        assert looser.absolute_gap == pytest.approx(0.01 * result.theta[i], abs=1e-7)


@pytest.mark.parametrize("seed", ACTIVE)
def test_wrong_multipliers_are_seen(seed: int) -> None:
    problem, result = with_active_constraints(seed)
    for i in range(2):
        theta = result.theta.copy()
        theta[i] += 0.2
        assert worsened(certify(problem, dataclasses.replace(result, theta=theta))) >= {"stationarity"}
    for x in range(problem.layout.num_decision_states):
        v = result.v.copy()
        v[x] += 0.2
        wrong = certify(problem, dataclasses.replace(result, v=v))
        assert wrong.stationarity > 1e-7  # in proportion to the mass of the state
        assert wrong.gap > 0.0


@pytest.mark.parametrize("seed", ACTIVE)
def test_another_base_is_seen(seed: int) -> None:
    problem, result = with_active_constraints(seed)
    noise = 0.3 * np.random.default_rng(seed).normal(size=problem.layout.num_triples)
    other = ProjectionProblem(
        problem.layout, problem.log_base + noise, problem.lower, problem.upper, problem.costs, problem.thresholds
    )
    assert worsened(certify(other, result)) >= {"stationarity"}
    assert certify(other, result).gap > 0.0


def claimed(log_q: np.ndarray, problem: ProjectionProblem, v: np.ndarray, theta: np.ndarray) -> ProjectionResult:
    """A result as an impostor would hand it in."""
    return ProjectionResult(
        status=ProjectionStatus.SOLVED,
        log_occupancy=log_q,
        policy=np.full(problem.layout.num_rows, np.nan),
        v=v,
        theta=theta,
        objective=0.0,
        dual_value=0.0,
        residuals=ProjectionResiduals(0.0, 0.0, 0.0),
        iterations=0,
    )


@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(25))
def test_weak_duality(seed: int, size: float) -> None:
    """D(q || base) is never below the dual value: for any feasible q, any v and any theta >= 0."""
    problem, q = feasible_occupancy(seed)
    v, theta = random_dual_point(seed, problem, size)
    certificate = certify(problem, claimed(np.log(np.maximum(q, 1e-300)), problem, v, size * theta))
    assert max(certificate.mass, certificate.flow, certificate.boxes, certificate.costs) < 1e-12
    assert certificate.gap >= -1e-12


@pytest.mark.parametrize("seed", range(25))
def test_the_gap_bounds_the_distance_to_the_projection(seed: int) -> None:
    """D(q || base) - D(q* || base) <= gap for a feasible q with the multipliers of the solution."""
    problem, q = feasible_occupancy(seed)
    best = project(problem)
    certificate = certify(problem, claimed(np.log(np.maximum(q, 1e-300)), problem, best.v, best.theta))
    log_ratio = np.log(np.maximum(q, 1e-300)) - problem.log_base
    divergence = q @ log_ratio - q.sum() + np.exp(problem.log_base).sum()
    assert divergence >= best.objective - 1e-9
    assert divergence - best.objective <= certificate.absolute_gap + 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_the_proof_of_infeasibility_is_the_value_of_a_linear_program(seed: int) -> None:
    problem = random_problem(seed, m=1 + seed % 4)
    theta = np.random.default_rng(seed).dirichlet(np.ones(problem.num_constraints))
    constraints = constraint_matrices(problem)
    found = linprog(
        theta @ constraints.costs,
        A_ub=constraints.box,
        b_ub=np.zeros(constraints.box.shape[0]),
        A_eq=constraints.flow,
        b_eq=constraints.source,
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    value = proves_infeasible(problem, theta)
    assert value == pytest.approx(found.fun - theta @ problem.thresholds, abs=1e-9)
    assert value < 0.0  # these problems are feasible, so that nothing may prove the opposite
    assert proves_infeasible(problem, 3.0 * theta) == pytest.approx(3.0 * value)


def test_negative_multipliers_prove_nothing() -> None:
    problem = random_problem(1, m=2)
    assert proves_infeasible(problem, [-1.0, 2.0]) == -np.inf


def with_tiny_upper_bounds(seed: int) -> ProjectionProblem:
    """Some successors may have a share of 10^-300 to 10^-200 at most."""
    rng, problem = np.random.default_rng(seed), random_problem(seed, boxes="free")
    layout, upper = problem.layout, np.array(problem.upper)
    for start, stop in zip(layout.row_start[:-1], layout.row_start[1:], strict=True):
        chosen = np.flatnonzero(rng.random(stop - start) < 0.5)[: stop - start - 1]
        upper[start + 1 + chosen[chosen < stop - start - 1]] = 10.0 ** rng.uniform(-300.0, -200.0)
    return ProjectionProblem(layout, problem.log_base, problem.lower, upper, problem.costs, problem.thresholds)


@pytest.mark.parametrize("seed", range(20))
def test_solutions_with_upper_bounds_next_to_zero_pass(seed: int) -> None:
    problem = with_tiny_upper_bounds(seed)
    result = project(problem)
    if result.solved:
        assert certify(problem, result).worst <= TOL
    else:
        assert proves_infeasible(problem, result.theta) > 0.0


def test_some_of_them_are_tiny_and_bind() -> None:
    """Else the test above would say nothing."""
    bound = 0
    for seed in range(20):
        problem = with_tiny_upper_bounds(seed)
        result = project(problem)
        share = result.log_occupancy - np.logaddexp.reduceat(
            result.log_occupancy, problem.layout.row_start[:-1]
        )[problem.layout.row_of_triple]  # fmt: skip
        tiny = (problem.upper < 1e-150) & result.solved
        bound += int(np.sum(np.abs(share[tiny] - np.log(problem.upper[tiny])) < 1e-9))
    assert bound > 20


@pytest.mark.parametrize("scale", [1e3, 1e5, 9.9e5])
@pytest.mark.parametrize("seed", ACTIVE)
def test_large_costs_are_measured_in_their_own_unit(seed: int, scale: float) -> None:
    small = random_problem(seed, boxes="wide", m=2)
    large = ProjectionProblem(
        small.layout, small.log_base, small.lower, small.upper, scale * small.costs, scale * small.thresholds
    )
    result = project(large)
    assert certify(large, result).worst <= TOL
    np.testing.assert_allclose(result.policy, project(small).policy, atol=1e-7)
    expensive = dataclasses.replace(result, relaxation=-1e-3)
    assert certify(large, expensive).worst > 1e-6


def test_large_costs_that_are_just_possible_are_not_called_infeasible() -> None:
    for seed in ACTIVE:
        small = random_problem(seed, boxes="wide", m=2)
        arrays = (small.layout, small.log_base, small.lower, small.upper, 9e5 * small.costs)
        least = project(ProjectionProblem(*arrays, np.zeros(2))).least_violation
        just = ProjectionProblem(*arrays, np.full(2, least))
        result = project(just)
        assert result.solved
        assert certify(just, result).worst <= TOL


# Units ---------------------------------------------------------------------------------------------------------------


def parallel(scale: float, slack: float) -> ProjectionProblem:
    """One step, three actions, four constraints that are nearly the same, in the unit `scale`."""
    layout, rng = Layout((1, 1), 3), np.random.default_rng(2)
    costs = np.array([1.0, 0.4, 0.1]) + 1e-7 * rng.standard_normal((4, 3))
    thresholds = costs.min(axis=1).max() + slack + 1e-7 * rng.random(4)
    return ProjectionProblem(
        layout, np.array([0.0, -3.0, -400.0]), np.ones(3), np.ones(3), scale * costs, scale * thresholds
    )


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("slack", [0.1, 1e-3, 1e-6, 0.0])
def test_residuals_and_certificate_speak_the_same_unit(scale: float, slack: float) -> None:
    problem = parallel(scale, slack)
    result = project(problem)
    assert result.solved
    found, own = certify(problem, result), result.residuals
    assert own.complementarity == pytest.approx(found.complementarity, rel=1e-2, abs=1e-15)
    assert own.cost == pytest.approx(found.costs, rel=1e-2, abs=1e-15)
    assert own.complementarity <= 8.0 * ProjectionSettings().tol
    assert own.cost <= result.relaxation + 8.0 * ProjectionSettings().tol


def test_the_projector_measures_as_project_does() -> None:
    problem = parallel(1.0, 0.01)
    projector = Projector(problem.layout, 4)
    arrays = problem.log_base, problem.lower, problem.upper, problem.costs, problem.thresholds
    found = projector.project(*(np.array(array) for array in arrays))
    assert found.residuals.complementarity == pytest.approx(
        certify(problem, found).complementarity, rel=1e-2, abs=1e-15
    )
