"""The kernels allocate nothing: a workspace is handed in, and a million episodes do not touch the allocator.

Numba counts the blocks that compiled code asks for. Besides, `kernel` compiles without the means to allocate, so that
most slips do not even compile.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pytest
from allocations import allocations
from projection_cases import random_dual_point, random_problem

from hedgerow.compiling.kernels import kernel
from hedgerow.planning.decomposition import least_cost, robust_scratch, row_mass_of_least_cost
from hedgerow.projection.direction import newton_direction
from hedgerow.projection.dual import evaluate, evaluate_masses, gradient, mass_direction
from hedgerow.projection.newton import maximise_dual, recover
from hedgerow.projection.problem import ProjectionProblem, make_workspace

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="plain Python allocates")


def with_temporary(values: np.ndarray) -> float:
    copy = -values
    copy[0] = 1.0
    return float(copy[0])


def on_a_view(values: np.ndarray) -> float:
    part = values[1:]
    part[0] = 1.0
    return float(part[0])


def test_the_count_sees_a_temporary_and_forgives_a_view() -> None:
    wrapped = 1  # plain njit wraps each array argument in a block
    assert allocations(numba.njit(with_temporary), np.zeros(4)) == wrapped + 1
    assert allocations(numba.njit(on_a_view), np.zeros(4)) == wrapped
    assert allocations(kernel(on_a_view), np.zeros(4)) == 0


def test_a_kernel_with_a_temporary_does_not_compile() -> None:
    with pytest.raises(numba.core.errors.NumbaError, match="NRT required"):
        kernel(with_temporary)(np.zeros(4))


def problems() -> Iterator[ProjectionProblem]:
    """Free and active boxes, full and sparse support, no and several constraints, rows beyond floating point."""
    for seed in range(6):
        yield random_problem(seed)
    ordinary = random_problem(8, boxes="wide", m=2)
    layout = ordinary.layout
    nearly_constant = 0.5 + 1e-6 * ordinary.costs  # curvature computed without subtraction
    yield ProjectionProblem(
        layout, ordinary.log_base, ordinary.lower, ordinary.upper, nearly_constant, [0.5 * layout.steps] * 2
    )
    log_base = np.random.default_rng(0).uniform(-600.0, 0.0, ordinary.layout.num_triples)
    yield ProjectionProblem(
        ordinary.layout, log_base, ordinary.lower, ordinary.upper, ordinary.costs, ordinary.thresholds
    )


@pytest.mark.parametrize("problem", list(problems()))
def test_the_steps_of_newton_allocate_nothing(problem: ProjectionProblem) -> None:
    index, kernel_problem = problem.kernel_arguments()
    ws = make_workspace(problem.layout, problem.num_constraints)
    v, theta = random_dual_point(1, problem)
    assert allocations(evaluate, index, kernel_problem, v, theta, ws) == 0
    assert allocations(gradient, index, kernel_problem, ws) == 0
    assert allocations(newton_direction, index, kernel_problem, theta, ws) == 0
    assert allocations(mass_direction, index, kernel_problem, ws) == 0
    assert allocations(evaluate_masses, index, kernel_problem, ws.log_m, theta, v, ws) == 0


@pytest.mark.parametrize("problem", list(problems()))
def test_a_whole_projection_allocates_nothing(problem: ProjectionProblem) -> None:
    index, kernel_problem = problem.kernel_arguments()
    ws = make_workspace(problem.layout, problem.num_constraints)
    v, theta = random_dual_point(1, problem)
    start_v, start_theta = v.copy(), theta.copy()
    iterations = 0

    def from_the_start(*arguments: object) -> None:
        nonlocal iterations
        v[:], theta[:] = start_v, start_theta
        iterations = maximise_dual(*arguments).iterations

    assert allocations(from_the_start, index, kernel_problem, v, theta, ws, 1e-10, np.inf, 60) == 0
    assert iterations > 0
    policy, log_w = np.zeros(problem.layout.num_rows), np.zeros(problem.layout.num_rows)
    costs = np.zeros(problem.num_constraints)
    assert allocations(recover, index, kernel_problem, ws, policy, log_w, costs) == 0


@pytest.mark.parametrize("seed", range(6))
def test_nor_does_the_projection_of_a_learner_who_keeps_no_logarithms(seed: int) -> None:
    problem = random_problem(seed)
    index, kernel_problem = problem.kernel_arguments()
    without_logs = kernel_problem.replace(log_conditional=np.zeros(0))
    ws = make_workspace(problem.layout, problem.num_constraints)
    v, theta = random_dual_point(1, problem)
    arguments = (index, without_logs, v, theta, ws, 1e-10, np.inf, 60)
    assert allocations(maximise_dual, *arguments) == 0


def test_robust_value_iteration_allocates_nothing() -> None:
    problem = random_problem(4, m=1)
    index, _ = problem.kernel_arguments()
    scratch = robust_scratch(problem.layout)
    cost, w = problem.costs[0].copy(), np.zeros(problem.layout.num_rows)
    assert allocations(least_cost, index, problem.lower, problem.upper, cost, scratch) == 0
    assert allocations(row_mass_of_least_cost, index, scratch, w) == 0
