"""The block factorisation against dense linear algebra, and the small quadratic program against all active sets."""

import naive_projection as naive
import numpy as np
import pytest
from evaluated import Evaluated, dense_newton_matrix
from projection_cases import BOXES

from hedgerow.projection.direction import (
    _curvature,
    factor,
    maximise_quadratic,
    newton_direction,
    solve_backward,
    solve_forward,
)
from hedgerow.projection.dual import gradient


def solve(case: Evaluated, rhs: np.ndarray) -> np.ndarray:
    """H^{-1} rhs by the kernels; `rhs` has one entry per decision state."""
    solution = np.append(rhs, 0.0)
    solve_forward(case.index, case.ws, solution)
    solve_backward(case.index, case.ws, solution)
    return solution[:-1]


MODERATE = (*range(13), *range(14, 26))


def moderate(seed: int) -> Evaluated:
    """A case in which no state has an inflow so far above its outflow that the floor of its pivot binds."""
    case = Evaluated(seed, BOXES[seed % 5], bool(seed % 2), size=0.3)
    states = case.problem.layout.num_decision_states
    assert np.all(case.ws.inflow[:states] <= 10.0 * case.ws.outflow[:states])
    return case


@pytest.mark.parametrize("seed", MODERATE)
def test_the_solution_is_that_of_the_dense_system(seed: int) -> None:
    case = moderate(seed)
    states = case.problem.layout.num_decision_states
    H = dense_newton_matrix(case)[:states, :states]
    factor(case.index, case.ws)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        rhs = rng.normal(size=states)
        found = solve(case, rhs)
        np.testing.assert_allclose(H @ found, rhs, atol=1e-11)
        np.testing.assert_allclose(found, np.linalg.solve(H, rhs), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("seed", MODERATE[:10])
def test_the_forward_pass_is_half_of_the_inverse(seed: int) -> None:
    """b^T H^{-1} b = |U^{-T} b|^2: what the elimination of v from the border relies on."""
    case = moderate(seed)
    states = case.problem.layout.num_decision_states
    H = dense_newton_matrix(case)[:states, :states]
    factor(case.index, case.ws)
    b = np.append(np.random.default_rng(seed).normal(size=states), 0.0)
    expected = b[:-1] @ np.linalg.solve(H, b[:-1])
    solve_forward(case.index, case.ws, b)
    assert b[:-1] @ b[:-1] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("size", [0.3, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("seed", range(10))
def test_every_pivot_is_at_least_the_outflow_of_its_state(seed: int, size: float) -> None:
    case = Evaluated(seed, BOXES[seed % 5], bool(seed % 2), size)
    layout, ws = case.problem.layout, case.ws
    dense_newton_matrix(case)
    factor(case.index, ws)
    for k in range(layout.steps):
        n = layout.layer_sizes[k]
        block = ws.diagonal[ws.diagonal_start[k] : ws.diagonal_start[k] + n * n].reshape(n, n)
        pivots = np.diag(block) ** 2
        assert np.all(pivots >= ws.outflow[layout.states(k)] * (1.0 - 1e-12))
        assert np.all(np.isfinite(block[np.triu_indices(n)]))


@pytest.mark.parametrize("seed", MODERATE)
def test_the_newton_direction_solves_the_bordered_system_on_the_constraints_that_move(seed: int) -> None:
    case = moderate(seed)
    states, m = case.problem.layout.num_decision_states, case.problem.num_constraints
    matrix, slope = dense_newton_matrix(case), case.twin.gradient
    found = newton_direction(case.index, case.kernel, case.theta, case.ws)
    step = np.concatenate((case.ws.step_v[:states], case.ws.step_theta))
    assert found == pytest.approx(slope @ step, rel=1e-9)
    assert found > 0.0  # a direction of ascent
    assert np.all(case.theta + case.ws.step_theta >= -1e-12)
    positive = np.concatenate((np.ones(states, dtype=bool), case.theta + case.ws.step_theta > 1e-10))
    residual = slope - matrix @ step
    np.testing.assert_allclose(residual[positive], 0.0, atol=1e-9)
    assert np.all(residual[states:] <= 1e-9)  # a multiplier that is held at 0 would only get smaller
    assert m == 2


def curvature(case: Evaluated) -> tuple[np.ndarray, np.ndarray]:
    """S by the kernel that subtracts nothing, and C - B^T H^{-1} B by dense linear algebra."""
    states, m = case.problem.layout.num_decision_states, case.problem.num_constraints
    matrix = dense_newton_matrix(case)  # leaves the borders and the corner in the workspace
    factor(case.index, case.ws)
    for i in range(m):
        solve_forward(case.index, case.ws, case.ws.border[i])
    _curvature(case.index, case.kernel, m, case.ws)
    H, B, C = matrix[:states, :states], matrix[:states, states:], matrix[states:, states:]
    return case.ws.schur.copy(), C - B.T @ np.linalg.solve(H, B)


@pytest.mark.parametrize("seed", MODERATE)
def test_the_curvature_as_a_sum_of_products_is_the_schur_complement(seed: int) -> None:
    found, expected = curvature(moderate(seed))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("seed", MODERATE[:12])
def test_a_tiny_curvature_keeps_its_digits(seed: int) -> None:
    """Costs that are almost constant on layers: with c = k + e d the curvature is e^2 times that of d, exactly."""
    e = 1e-8
    case = moderate(seed)
    exact = curvature(case)[1]
    layout = case.problem.layout
    constant = np.random.default_rng(seed).uniform(0.5, 1.0, layout.steps)
    layer_of_row = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    case.kernel = case.kernel.replace(costs=constant[layer_of_row][:, None] + e * case.kernel.costs)
    gradient(case.index, case.kernel, case.ws)  # the point stays as it is: only the costs are others
    found, subtracted = curvature(case)
    scale = np.abs(exact).max()
    if scale > 1e-6:
        np.testing.assert_allclose(found / e**2, exact, atol=1e-6 * scale)
        assert np.abs(subtracted / e**2 - exact).max() > 1e-3 * scale  # what would be left without care


def run_quadratic(S: np.ndarray, r: np.ndarray, least: np.ndarray) -> np.ndarray:
    n = len(r)
    small = np.full((n + 4, n + 1), np.nan)
    small[1, :n], small[2, :n] = r, least
    maximise_quadratic(S.copy(), small, n)
    return small[0, :n].copy()


def check_optimal(S: np.ndarray, r: np.ndarray, least: np.ndarray, d: np.ndarray, tol: float) -> None:
    """d >= least, slope <= 0, and slope = 0 where d > least."""
    slope = r - S @ d
    assert np.all(d >= least)
    assert np.all(slope <= tol)
    assert np.all(np.abs(slope[d > least]) <= tol)


def random_bounds(rng: np.random.Generator, n: int) -> np.ndarray:
    return -np.where(rng.random(n) < 0.5, 0.0, rng.exponential(size=n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(12))
def test_the_small_quadratic_program_is_solved_exactly(seed: int, n: int) -> None:
    rng = np.random.default_rng(100 * n + seed)
    factors = rng.normal(size=(n, n + 1))
    S, r, least = factors @ factors.T + 1e-3 * np.eye(n), rng.normal(size=n), random_bounds(rng, n)
    d = run_quadratic(S, r, least)
    check_optimal(S, r, least, d, 1e-9)
    np.testing.assert_allclose(d, naive.best_quadratic(S, r, least), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_duplicate_constraints_are_decided_by_the_ridge(seed: int) -> None:
    """S is singular up to a ridge of 1e-13: the value is that of the problem without the duplicate."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    factors, r, least = rng.normal(size=(n, n)), rng.normal(size=n), random_bounds(rng, n)
    factors[-1], r[-1] = factors[0], r[0]
    S = factors @ factors.T
    S += np.diag(1e-13 * (1.0 + np.diag(S)))
    d = run_quadratic(S, r, least)
    assert np.all(d >= least)
    merged = least[:-1].copy()
    merged[0] += least[-1]  # only the sum of the two multipliers matters
    single = naive.best_quadratic(S[:-1, :-1], r[:-1], merged)
    expected = r[:-1] @ single - 0.5 * single @ S[:-1, :-1] @ single
    assert r @ d - 0.5 * d @ S @ d == pytest.approx(expected, rel=1e-6, abs=1e-9)
