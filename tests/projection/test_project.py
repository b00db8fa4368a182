"""`project`: closed forms, agreement with a general solver, infeasible problems, warm starts, and what it refuses."""

import dataclasses

import numpy as np
import pytest
from projection_cases import BOXES, random_dual_point, random_policy, random_problem, random_transitions

from bench.projection_reference import least_violation_by_lp, proves_infeasible, solve_with_cvxpy
from hedgerow.errors import InvalidInput
from hedgerow.model import occupancy
from hedgerow.model.layout import Layout
from hedgerow.projection.certificate import certify
from hedgerow.projection.newton import maximise_dual
from hedgerow.projection.problem import (
    ProjectionProblem,
    ProjectionResult,
    ProjectionSettings,
    ProjectionStatus,
    make_workspace,
)
from hedgerow.projection.solve import WarmStart, project

TOL_CERTIFICATE = 1e-9
CLARABEL = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def solved(problem: ProjectionProblem) -> ProjectionResult:
    """The result, after the independent certificate has accepted it."""
    result = project(problem)
    assert result.status is ProjectionStatus.SOLVED
    assert certify(problem, result).worst <= TOL_CERTIFICATE
    return result


# Closed forms (section 8 of the specification) -----------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3, 1), (1, 4, 2, 5, 1)])
def test_uniform_weights_without_knowledge_of_the_transitions_give_the_uniform_occupancy(
    sizes: tuple[int, ...],
) -> None:
    layout = Layout(sizes, num_actions=3)
    n = layout.num_triples
    result = solved(ProjectionProblem(layout, np.zeros(n), np.zeros(n), np.ones(n)))
    for k, block in enumerate(layout.split_triples(np.exp(result.log_occupancy))):
        np.testing.assert_allclose(block, 1.0 / (sizes[k] * 3 * sizes[k + 1]), rtol=1e-12)
    np.testing.assert_allclose(result.policy, 1.0 / 3.0, rtol=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_an_occupancy_of_the_known_transitions_is_its_own_projection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = random_problem(seed).layout
    p, policy = random_transitions(rng, layout), random_policy(rng, layout)
    q = occupancy.occupancy(layout, p, policy)
    result = solved(ProjectionProblem(layout, np.log(q), p, p))
    np.testing.assert_allclose(np.exp(result.log_occupancy), q, rtol=1e-12)
    np.testing.assert_allclose(result.policy, policy, rtol=1e-12)
    np.testing.assert_allclose(result.v, 0.0, atol=1e-12)
    assert result.objective == pytest.approx(0.0, abs=1e-14)
    assert result.iterations == 0


@pytest.mark.parametrize("first", [0.2, 0.49, 0.51, 0.9])
def test_one_step_with_two_actions_clips_the_expensive_one(first: float) -> None:
    layout = Layout((1, 1), num_actions=2)
    (c1, c2), alpha = (0.9, 0.3), 0.6
    problem = ProjectionProblem(
        layout, np.log([first, 1.0 - first]), np.ones(2), np.ones(2), np.array([[c1, c2]]), [alpha]
    )
    result = solved(problem)
    most = (alpha - c2) / (c1 - c2)
    np.testing.assert_allclose(result.policy[0], min(first, most), atol=1e-10)
    assert (result.theta[0] > 1e-6) == (first > most)


def test_a_deterministic_world_leaves_only_the_policy() -> None:
    """Boxes at the corners 0 and 1: the occupancy follows the only way, whatever the base says."""
    layout = Layout((1, 2, 1), num_actions=1)
    lower = np.array([1.0, 0.0, 1.0, 1.0])
    result = solved(ProjectionProblem(layout, np.array([-30.0, 0.0, 0.0, 0.0]), lower, lower))
    np.testing.assert_allclose(np.exp(result.log_occupancy), [1.0, 0.0, 1.0, 0.0], atol=1e-10)


# A general solver ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(40))
def test_a_general_solver_finds_the_same(seed: int) -> None:
    problem = random_problem(seed)
    result = solved(problem)
    reference = solve_with_cvxpy(problem, **CLARABEL)
    # Where Clarabel calls itself inaccurate the certificate has decided, and the two only have to be close.
    looser = {"optimal": 1.0, "optimal_inaccurate": 100.0}[reference.status]
    assert result.objective == pytest.approx(reference.objective, abs=1e-8 * looser)
    np.testing.assert_allclose(np.exp(result.log_occupancy), reference.occupancy, atol=1e-6 * looser)


def test_the_comparison_covers_active_constraints_active_boxes_and_free_ones() -> None:
    results = [(problem := random_problem(seed), project(problem)) for seed in range(40)]
    active = sum(bool(np.any(result.theta > 1e-3)) for _, result in results)
    assert active >= 15
    assert {problem.num_constraints for problem, _ in results} == {0, 1, 2, 3}
    assert {problem.layout.is_full for problem, _ in results} == {False, True}


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("shift", [-1e-4, -0.05, 1e-4])
def test_a_linear_program_agrees_on_what_is_infeasible(seed: int, shift: float) -> None:
    """Thresholds moved to `shift` above the smallest feasible ones."""
    problem = random_problem(seed, m=1 + seed % 4)
    least = least_violation_by_lp(problem)
    problem = with_thresholds(problem, problem.thresholds + least + shift)
    result = project(problem)
    if shift > 0.0:
        assert result.status is ProjectionStatus.SOLVED
        assert certify(problem, result).worst <= TOL_CERTIFICATE
        assert result.least_violation == 0.0
        return
    assert result.status is ProjectionStatus.INFEASIBLE
    assert not result.solved
    assert result.least_violation == pytest.approx(-shift, abs=1e-9)
    assert result.theta.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(result.theta >= 0.0)
    assert proves_infeasible(problem, result.theta) == pytest.approx(-shift, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_thresholds_relaxed_by_the_least_violation_can_be_met(seed: int) -> None:
    """What a learner does when its confidence sets have failed."""
    problem = random_problem(seed, m=2)
    problem = with_thresholds(problem, problem.thresholds + least_violation_by_lp(problem) - 0.1)
    result = project(problem)
    relaxed = with_thresholds(problem, problem.thresholds + result.least_violation + 1e-6)
    solved(relaxed)


def with_thresholds(problem: ProjectionProblem, thresholds: np.ndarray) -> ProjectionProblem:
    return ProjectionProblem(problem.layout, problem.log_base, problem.lower, problem.upper, problem.costs, thresholds)


# Properties ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_result_is_an_occupancy_within_its_boxes_and_says_so(seed: int) -> None:
    problem = random_problem(seed)
    layout, result = problem.layout, solved(problem)
    q = np.exp(result.log_occupancy)
    p = occupancy.induced_transitions(layout, q)
    assert max(occupancy.residuals(layout, q, p)) < 1e-12
    assert np.all(p >= problem.lower - 1e-12)
    assert np.all(p <= problem.upper + 1e-12)
    w = occupancy.row_occupancy(layout, q)
    assert np.all(problem.costs @ w <= problem.thresholds + 1e-9)
    np.testing.assert_allclose(result.policy, occupancy.induced_policy(layout, q), atol=1e-12)
    assert result.v[-1] == 0.0
    assert result.objective == pytest.approx(result.dual_value, abs=1e-8)
    assert result.residuals.worst <= 1e-9
    assert result.residuals.worst == max(dataclasses.astuple(result.residuals))
    assert result.least_violation == 0.0


@pytest.mark.parametrize("seed", [0, 2, 4, 6, 7, 10])
@pytest.mark.parametrize("spread", [40.0, 200.0, 600.0])
def test_wild_base_weights_are_projected_and_accounted_for(seed: int, spread: float) -> None:
    """Base weights that span e^spread and thresholds 1e-3 above the smallest feasible ones."""
    tame = random_problem(seed, m=1 + seed % 3)
    log_base = np.random.default_rng(seed).uniform(-spread, 0.0, tame.layout.num_triples)
    arrays = (tame.layout, log_base, tame.lower, tame.upper, tame.costs)
    least = least_violation_by_lp(ProjectionProblem(*arrays, tame.thresholds))
    result = solved(ProjectionProblem(*arrays, tame.thresholds + least + 1e-3))
    assert result.objective == pytest.approx(result.dual_value, rel=1e-7)
    assert result.v[-1] == 0.0
    assert np.all(result.theta >= 0.0)


@pytest.mark.parametrize("spread", [700.0, 3000.0])
@pytest.mark.parametrize("seed", range(12))
def test_base_weights_beyond_floating_point_are_only_logarithms(seed: int, spread: float) -> None:
    """exp(-3000) is 0 as a number; the projection never needs it as one."""
    tame = random_problem(seed)
    log_base = np.random.default_rng(seed).uniform(-spread, 0.0, tame.layout.num_triples)
    solved(ProjectionProblem(tame.layout, log_base, tame.lower, tame.upper, tame.costs, tame.thresholds))


@pytest.mark.parametrize("seed", range(10))
def test_a_projection_is_its_own_projection(seed: int) -> None:
    problem = random_problem(seed, boxes=BOXES[seed % 3])  # boxes that force no zeros
    once = solved(problem)
    again = ProjectionProblem(
        problem.layout,
        np.maximum(once.log_occupancy, -600.0),
        problem.lower,
        problem.upper,
        problem.costs,
        problem.thresholds,
    )
    twice = solved(again)
    np.testing.assert_allclose(np.exp(twice.log_occupancy), np.exp(once.log_occupancy), atol=1e-8)
    assert twice.objective == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_scale_of_the_base_does_not_matter(seed: int) -> None:
    problem = random_problem(seed)
    factor = np.random.default_rng(seed).normal(scale=5.0, size=problem.layout.steps)
    layer = problem.layout.layer_of_state[problem.layout.row_of_triple // problem.layout.num_actions]
    scaled = ProjectionProblem(
        problem.layout,
        problem.log_base + factor[layer],
        problem.lower,
        problem.upper,
        problem.costs,
        problem.thresholds,
    )
    np.testing.assert_allclose(np.exp(solved(scaled).log_occupancy), np.exp(solved(problem).log_occupancy), atol=1e-9)


# Warm starts and state -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_where_it_starts_does_not_matter(seed: int) -> None:
    problem = random_problem(seed)
    cold = solved(problem)
    v, theta = random_dual_point(seed, problem, size=3.0)
    for start in (WarmStart(cold.v, cold.theta), WarmStart(v, theta), WarmStart(v + 7.0, theta.tolist())):
        warm = project(problem, warm_start=start)
        assert warm.status is ProjectionStatus.SOLVED
        assert certify(problem, warm).worst <= TOL_CERTIFICATE
        np.testing.assert_allclose(np.exp(warm.log_occupancy), np.exp(cold.log_occupancy), atol=1e-8)
    assert project(problem, warm_start=WarmStart(cold.v, cold.theta)).iterations <= 1


def test_inputs_are_left_alone_and_results_repeat() -> None:
    problem = random_problem(3, m=2)
    given = [problem.log_base.copy(), problem.lower.copy(), problem.upper.copy(), problem.costs.copy()]
    thresholds = problem.thresholds.copy()
    own = ProjectionProblem(problem.layout, *given, thresholds)
    before = [array.copy() for array in (*given, thresholds)]
    v, theta = random_dual_point(3, problem)
    start = WarmStart(v, theta)
    first = project(own, warm_start=start)
    for array, copy in zip((*given, thresholds), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(v, random_dual_point(3, problem)[0])
    np.testing.assert_array_equal(theta, random_dual_point(3, problem)[1])
    given[0][:] = 0.0  # the problem holds a copy
    second = project(own, warm_start=start)
    np.testing.assert_array_equal(first.log_occupancy, second.log_occupancy)
    np.testing.assert_array_equal(first.theta, second.theta)
    for array in (own.log_base, own.lower, own.upper, own.costs, own.thresholds):
        assert not array.flags.writeable


def test_a_looser_tolerance_is_obeyed() -> None:
    problem = random_problem(5, m=2)
    loose, tight = project(problem, ProjectionSettings(tol=1e-4)), project(problem, ProjectionSettings(tol=1e-12))
    assert loose.iterations <= tight.iterations
    assert tight.residuals.flow <= 1e-12


@pytest.mark.parametrize("status", list(ProjectionStatus))
def test_every_status_carries_its_sentence(status: ProjectionStatus) -> None:
    assert len(status.message) > 40


# What it refuses -----------------------------------------------------------------------------------------------------

LAYOUT = Layout((1, 2, 1), num_actions=2)
GOOD = {
    "layout": LAYOUT,
    "log_base": np.zeros(8),
    "lower": np.zeros(8),
    "upper": np.ones(8),
    "costs": np.full((1, 6), 0.5),
    "thresholds": [1.0],
}


def changed(array: object, index: object, value: float) -> np.ndarray:
    result = np.array(array, dtype=float)
    result[index] = value
    return result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": (1, 2, 1)}, "layout must be a hedgerow Layout, not tuple"),
        ({"log_base": np.zeros(7)}, r"the log of the base has shape \(7,\), expected \(8,\)"),
        ({"log_base": changed(GOOD["log_base"], 2, -np.inf)}, "layer 0, state 0, action 1, successor 0"),
        ({"log_base": changed(GOOD["log_base"], 2, np.inf)}, "layer 0, state 0, action 1, successor 0"),
        ({"lower": changed(GOOD["lower"], 1, -0.1)}, r"lower bound is -0.1 at .*successor 1; .* lie in \[0, 1\]"),
        ({"upper": changed(GOOD["upper"], 1, 1.5)}, "upper bound is 1.5"),
        ({"upper": changed(GOOD["upper"], 1, np.nan)}, "finite"),
        (
            {"lower": np.full(8, 0.4), "upper": changed(GOOD["upper"], 3, 0.3)},
            "lower bound 0.4 exceeds the upper bound 0.3 at layer 0, state 0, action 1, successor 1",
        ),
        ({"lower": changed(GOOD["lower"], slice(0, 2), 0.7)}, "the box of layer 0, state 0, action 0 holds no"),
        ({"upper": changed(GOOD["upper"], slice(2, 4), 0.3)}, "the box of layer 0, state 0, action 1 holds no"),
        ({"costs": np.zeros((2, 6))}, r"the cost has shape \(2, 6\), expected \(1, 6\)"),
        ({"costs": changed(GOOD["costs"], (0, 3), np.inf)}, "layer 1, state 0, action 1"),
        ({"costs": changed(GOOD["costs"], (0, 3), 1e7)}, "the cost is 1"),
        ({"costs": None}, "the cost has shape"),
        ({"thresholds": [np.nan]}, "the threshold is nan"),
        ({"thresholds": "many"}, "number"),
    ],
)
def test_a_malformed_problem_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    ProjectionProblem(**GOOD)
    with pytest.raises(InvalidInput, match=message):
        ProjectionProblem(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tol": 0.0}, "tol is 0.0"),
        ({"tol": "small"}, "tol must be a number"),
        ({"tol": np.nan}, "tol is nan"),
        ({"tol_infeasible": 1.0}, "tol_infeasible is 1.0"),
        ({"suspect_theta": 0.5}, "suspect_theta is 0.5"),
        ({"suspect_iterations": 0}, "suspect_iterations is 0; it must be at least 1"),
        ({"max_iterations": 2.5}, "max_iterations must be a whole number"),
    ],
)
def test_malformed_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ProjectionSettings(**change)


@pytest.mark.parametrize(
    ("v", "theta", "message"),
    [
        (np.zeros(3), np.zeros(1), r"v of the warm start has shape \(3,\), expected \(4,\)"),
        (np.zeros(4), np.zeros(2), r"theta of the warm start has shape \(2,\), expected \(1,\)"),
        (np.array([0.0, np.nan, 0.0, 0.0]), np.zeros(1), "v of the warm start is nan at layer 1, state 0"),
        (np.zeros(4), np.array([-1.0]), "theta of the warm start is -1.0"),
    ],
)
def test_a_malformed_warm_start_is_refused(v: np.ndarray, theta: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        project(ProjectionProblem(**GOOD), warm_start=WarmStart(v, theta))


@pytest.mark.parametrize("seed", range(12))
def test_what_the_workspace_was_used_for_before_does_not_show(seed: int) -> None:
    """Else a learner that is read from a file would not go on as the one that was saved."""
    problem, settings = random_problem(seed), ProjectionSettings()
    index, kernel_problem = problem.kernel_arguments()
    found = []
    for used in (False, True):
        workspace = make_workspace(problem.layout, problem.num_constraints)
        if used:
            rng = np.random.default_rng(seed)
            other = kernel_problem.replace(log_weight=rng.normal(size=problem.layout.num_rows))
            v, theta = np.zeros(problem.layout.num_states), np.zeros(problem.num_constraints)
            maximise_dual(index, other, v, theta, workspace, settings.tol, np.inf, 60)
            workspace.bound[:] = rng.integers(-1, 2, problem.layout.num_triples)
            workspace.noted[:] = rng.integers(-1, 2, problem.layout.num_triples)
            workspace.log_ratio[:] = rng.normal(size=problem.layout.num_triples)
        v, theta = np.zeros(problem.layout.num_states), np.zeros(problem.num_constraints)
        maximise_dual(index, kernel_problem, v, theta, workspace, settings.tol, np.inf, 60)
        found.append((v, theta, workspace.p, workspace.w))
    for fresh, again in zip(*found, strict=True):
        np.testing.assert_array_equal(fresh, again)
