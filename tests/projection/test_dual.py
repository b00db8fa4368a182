"""The small dual: value, gradient and Hessian against their definitions and against finite differences."""

import naive_projection as naive
import numpy as np
import pytest
from evaluated import Evaluated, base_mass, dense_newton_matrix
from projection_cases import BOXES, random_dual_point, random_problem

from hedgerow.projection.dual import evaluate, evaluate_masses, mass_direction
from hedgerow.projection.problem import ProjectionProblem, make_workspace, recentred

CASES = [
    pytest.param(seed, boxes, sparse, id=f"{boxes}-{'sparse' if sparse else 'full'}-{seed}")
    for seed in range(3)
    for boxes in BOXES
    for sparse in (False, True)
]
STEP = 1e-5
"""Of finite differences: their error is about STEP^2 from the curvature and 1e-16 / STEP from rounding."""


@pytest.mark.parametrize(("seed", "boxes", "sparse"), CASES)
def test_value_and_point_equal_their_twins(seed: int, boxes: str, sparse: bool) -> None:
    case = Evaluated(seed, boxes, sparse)
    assert case.value + base_mass(case.problem) == pytest.approx(case.twin.value, abs=1e-11)
    np.testing.assert_allclose(case.ws.p, case.twin.p, atol=1e-12)
    np.testing.assert_allclose(case.ws.w, case.twin.w, atol=1e-12)
    np.testing.assert_allclose(np.exp(case.ws.log_w), case.ws.w, atol=1e-14)


@pytest.mark.slow
@pytest.mark.sampled(12)
@pytest.mark.parametrize(("seed", "boxes", "sparse"), CASES)
def test_gradient_equals_its_twin_and_differences_of_the_value(seed: int, boxes: str, sparse: bool) -> None:
    case = Evaluated(seed, boxes, sparse)
    states = case.problem.layout.num_decision_states
    found = np.concatenate((case.ws.gradient_v[:states], case.ws.gradient_theta))
    np.testing.assert_allclose(found, case.twin.gradient, atol=1e-12)
    assert case.ws.gradient_v[-1] == 0.0
    for direction in random_directions(len(found), seed):
        ahead, behind = _dual_at(case, STEP * direction), _dual_at(case, -STEP * direction)
        assert (ahead.value - behind.value) / (2.0 * STEP) == pytest.approx(found @ direction, abs=1e-8)


@pytest.mark.slow
@pytest.mark.sampled(12)
@pytest.mark.parametrize(("seed", "boxes", "sparse"), CASES)
def test_hessian_equals_its_twin_and_differences_of_the_gradient(seed: int, boxes: str, sparse: bool) -> None:
    case = Evaluated(seed, boxes, sparse)
    states = case.problem.layout.num_decision_states
    found = dense_newton_matrix(case)
    np.testing.assert_allclose(found, naive.hessian(case.problem, case.twin), atol=1e-12)
    assert np.linalg.eigvalsh(found[:states, :states])[0] > 0.0  # positive definite in v
    for direction in random_directions(len(found), seed):
        ahead, behind = _dual_at(case, STEP * direction), _dual_at(case, -STEP * direction)
        np.testing.assert_allclose((behind.gradient - ahead.gradient) / (2.0 * STEP), found @ direction, atol=1e-8)


def random_directions(n: int, seed: int) -> np.ndarray:
    """(3, n): dense directions, so that every entry of a derivative takes part."""
    return np.random.default_rng(seed).uniform(0.2, 1.0, (3, n)) * np.random.default_rng(seed + 1).choice(
        [-1.0, 1.0], n
    )


def _dual_at(case: Evaluated, move: np.ndarray) -> naive.Point:
    states = case.problem.layout.num_decision_states
    return naive.small_dual(case.problem, case.v + np.append(move[:states], 0.0), case.theta + move[states:])


@pytest.mark.slow
@pytest.mark.sampled(12)
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(10))
def test_renormalisation_gives_every_layer_mass_one_and_is_the_best_shift_of_layers(seed: int, size: float) -> None:
    case = Evaluated(seed, BOXES[seed % len(BOXES)], bool(seed % 2), size)
    layout = case.problem.layout
    for block in layout.split_rows(case.ws.w):
        assert block.sum() == pytest.approx(1.0, abs=1e-14)
    moved = case.v - case.start
    for k in range(layout.steps + 1):  # only constants per layer were added, nothing to x_L
        np.testing.assert_allclose(moved[layout.states(k)], moved[layout.states(k).start], atol=1e-12)
    assert case.v[-1] == 0.0
    attained = case.value + base_mass(case.problem)
    scale = 1.0 + abs(attained)
    assert naive.small_dual(case.problem, case.start, case.theta).value <= attained + 1e-12 * scale
    rng = np.random.default_rng(seed)
    for _ in range(5):
        shift = rng.normal(size=layout.steps + 1)[layout.layer_of_state]
        shift[-1] = 0.0
        assert naive.small_dual(case.problem, case.v + shift, case.theta).value < attained


@pytest.mark.parametrize("seed", range(6))
def test_a_second_evaluation_changes_nothing(seed: int) -> None:
    case = Evaluated(seed, "wide", bool(seed % 2))
    before, w = case.v.copy(), case.ws.w.copy()
    value = evaluate(case.index, case.kernel, case.v, case.theta, case.ws)
    assert value == pytest.approx(case.value, abs=1e-13)
    np.testing.assert_allclose(case.v, before, atol=1e-13)
    np.testing.assert_allclose(case.ws.w, w, atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_masses_as_coordinates(seed: int) -> None:
    """Any positive masses, normalised per layer, become the outflows; the value is that of the v that was written."""
    case = Evaluated(seed, BOXES[seed % len(BOXES)], bool(seed % 2))
    layout = case.problem.layout
    wanted = np.random.default_rng(seed).normal(scale=3.0, size=layout.num_states)
    log_m, v = wanted.copy(), np.zeros(layout.num_states)
    value = evaluate_masses(case.index, case.kernel, log_m, case.theta, v, case.ws)
    assert v[-1] == 0.0
    twin = naive.small_dual(case.problem, v, case.theta)
    assert value + base_mass(case.problem) == pytest.approx(twin.value, abs=1e-10)
    np.testing.assert_allclose(case.ws.w, twin.w, atol=1e-11)
    np.testing.assert_allclose(case.ws.masses[:-1], twin.w.reshape(-1, layout.num_actions).sum(axis=1), rtol=1e-10)
    for k, block in enumerate(layout.split_rows(twin.w)):
        share = np.exp(wanted[layout.states(k)])
        np.testing.assert_allclose(block.sum(axis=1), share / share.sum(), rtol=1e-11)
        np.testing.assert_allclose(np.exp(log_m[layout.states(k)]), share / share.sum(), rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_masses_of_a_point_lead_back_to_it(seed: int) -> None:
    case = Evaluated(seed, BOXES[seed % len(BOXES)], bool(seed % 2))
    layout = case.problem.layout
    log_m, v, w = case.ws.log_m.copy(), np.zeros(layout.num_states), case.ws.w.copy()
    np.testing.assert_allclose(np.exp(log_m[:-1]), w.reshape(-1, layout.num_actions).sum(axis=1), rtol=1e-13)
    value = evaluate_masses(case.index, case.kernel, log_m, case.theta, v, case.ws)
    assert value == pytest.approx(case.value, abs=1e-12)
    np.testing.assert_allclose(v, case.v, atol=1e-12)
    np.testing.assert_allclose(case.ws.w, w, atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_the_direction_of_the_masses_is_their_derivative(seed: int) -> None:
    case = Evaluated(seed, BOXES[seed % len(BOXES)], bool(seed % 2))
    layout, ws = case.problem.layout, case.ws
    states = layout.num_decision_states
    move = random_directions(states + case.problem.num_constraints, seed)[0]
    ws.step_v[:states], ws.step_theta[:] = move[:states], move[states:]
    mass_direction(case.index, case.kernel, ws)
    ahead, behind = (
        np.log(_dual_at(case, sign * STEP * move).w.reshape(-1, layout.num_actions).sum(axis=1)) for sign in (1.0, -1.0)
    )
    derivative = (ahead - behind) / (2.0 * STEP)
    # A state with far too much mass may lose it faster than Newton says, and one with far too little gain it faster.
    inflow, outflow, step_m = ws.inflow[:states], ws.outflow[:states], ws.step_m[:states]
    heavy, light = inflow < 0.1 * outflow, outflow < 0.1 * inflow
    ordinary = ~(heavy | light)
    np.testing.assert_allclose(step_m[ordinary], derivative[ordinary], atol=1e-8)
    assert np.all(step_m[heavy] <= derivative[heavy] + 1e-8)
    assert np.all(step_m[light] >= derivative[light] - 1e-8)
    assert np.count_nonzero(ordinary) >= states / 2


@pytest.mark.parametrize("size", [1.0, 400.0])
@pytest.mark.parametrize("seed", range(10))
def test_a_problem_seen_from_another_dual_point_is_the_same_problem(seed: int, size: float) -> None:
    """Both see the same p and w, also where the new conditionals would not fit into floating point (size 400)."""
    case = Evaluated(seed, BOXES[seed % len(BOXES)], bool(seed % 2))
    layout = case.problem.layout
    center, center_theta = random_dual_point(seed + 50, case.problem, size)
    kernel_problem = recentred(layout, case.kernel, center, center_theta)
    np.testing.assert_array_equal(kernel_problem.absorbed, center_theta)
    v, theta = case.v.copy(), case.theta.copy()
    evaluate(case.index, kernel_problem, v, theta, case.ws)
    p, w = case.ws.p.copy(), case.ws.w.copy()
    v_sum = center + case.v
    evaluate(case.index, case.kernel, v_sum, center_theta + theta, case.ws)
    np.testing.assert_allclose(p, case.ws.p, atol=1e-12 * size)
    np.testing.assert_allclose(w, case.ws.w, atol=1e-12 * size)
    np.testing.assert_allclose(center + v, v_sum, atol=1e-12 * size)
    assert len(v) == layout.num_states


def test_rows_beyond_floating_point_are_still_evaluated_exactly() -> None:
    """Weights below 1e-290 send a row to the log domain: value and point stay those of the twin."""
    problem = random_problem(8, boxes="wide", sparse=False, m=1)
    layout = problem.layout
    log_base = np.random.default_rng(0).uniform(-600.0, 0.0, layout.num_triples)
    problem = ProjectionProblem(layout, log_base, problem.lower, problem.upper, problem.costs, problem.thresholds)
    index, kernel = problem.kernel_arguments()
    ws = make_workspace(layout, 1)
    v, theta = np.zeros(layout.num_states), np.array([0.3])
    v[1:-1] = np.random.default_rng(1).uniform(-300.0, 300.0, layout.num_states - 2)
    value = evaluate(index, kernel, v, theta, ws)
    twin = naive.small_dual(problem, v, theta)
    np.testing.assert_allclose(ws.p, twin.p, atol=1e-11)
    np.testing.assert_allclose(ws.w, twin.w, atol=1e-11)
    assert value + base_mass(problem) == pytest.approx(twin.value, rel=1e-12)
