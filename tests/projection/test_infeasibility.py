"""The least violation, with its proof, against one linear program over all triples."""

import numpy as np
import pytest
from projection_cases import random_problem

from bench.projection_reference import least_violation_by_lp, proves_infeasible
from hedgerow.model.kernel_layout import index_of
from hedgerow.projection.infeasibility import LeastViolation, least_violation, make_cutting_planes, support
from hedgerow.projection.problem import ProjectionProblem

TOL = 1e-9


def moved(seed: int, m: int, shift: float) -> ProjectionProblem:
    """A problem whose least violation is about -shift, once with costs that repeat."""
    problem = random_problem(seed, m=m)
    costs = np.array(problem.costs)
    if m >= 2 and seed % 3 == 0:
        costs[-1] = costs[0]
    arrays = (problem.layout, problem.log_base, problem.lower, problem.upper, costs)
    least = least_violation_by_lp(ProjectionProblem(*arrays, problem.thresholds))
    return ProjectionProblem(*arrays, problem.thresholds + least + shift)


def solve(problem: ProjectionProblem) -> LeastViolation:
    return least_violation(problem.layout, problem.lower, problem.upper, problem.costs, problem.thresholds)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shift", [-0.3, -1e-5, 0.0, 1e-5, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_least_violation_is_that_of_the_linear_program(seed: int, shift: float, m: int) -> None:
    problem = moved(seed, m, shift)
    found = solve(problem)
    assert np.all(found.theta >= 0.0)
    assert found.theta.sum() == pytest.approx(1.0, abs=1e-14)
    assert found.value <= found.upper + TOL
    assert found.upper - found.value <= TOL
    assert found.value == pytest.approx(-shift, abs=TOL)
    # The value is not only claimed: theta proves it, by code of its own.
    assert proves_infeasible(problem, found.theta) == pytest.approx(found.value, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_no_multiplier_proves_more(seed: int) -> None:
    problem = moved(seed, 3, -0.1)
    best = solve(problem)
    rng = np.random.default_rng(seed)
    arrays = (problem.lower.copy(), problem.upper.copy(), problem.costs.T.copy(), problem.thresholds.copy())
    planes = make_cutting_planes(problem.layout, 3, 1, np.zeros(3))
    for theta in rng.dirichlet(np.ones(3), size=20):
        value = support(index_of(problem.layout), *arrays, theta, planes)
        assert value <= best.value + TOL
        assert value == pytest.approx(proves_infeasible(problem, theta), abs=1e-12)


def test_one_constraint_needs_one_sweep() -> None:
    problem = moved(2, 1, -0.2)
    found = solve(problem)
    assert found.rounds == 1
    assert found.theta.tolist() == [1.0]
    assert found.upper == found.value


def test_thresholds_move_the_least_violation_one_to_one() -> None:
    problem = moved(5, 3, -0.2)
    relaxed = ProjectionProblem(
        problem.layout, problem.log_base, problem.lower, problem.upper, problem.costs, problem.thresholds + 0.5
    )
    assert solve(relaxed).value == pytest.approx(solve(problem).value - 0.5, abs=TOL)
