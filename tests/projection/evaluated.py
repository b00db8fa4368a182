"""A problem together with what the kernels say about its dual at one point."""

from __future__ import annotations

from functools import cached_property

import naive_projection as naive
import numpy as np
from projection_cases import random_dual_point, random_problem

from hedgerow.projection.direction import assemble
from hedgerow.projection.dual import evaluate, gradient
from hedgerow.projection.problem import ProjectionProblem, make_workspace


class Evaluated:
    """A problem whose dual was evaluated by the kernels at a random point, which is then renormalised."""

    def __init__(self, seed: int, boxes: str, sparse: bool, size: float = 1.0, m: int = 2) -> None:
        self.problem = random_problem(seed, boxes=boxes, sparse=sparse, m=m)
        self.start, self.theta = random_dual_point(seed, self.problem, size)
        self.index, self.kernel = self.problem.kernel_arguments()
        self.ws = make_workspace(self.problem.layout, m)
        self.v = self.start.copy()
        self.value = evaluate(self.index, self.kernel, self.v, self.theta, self.ws)
        gradient(self.index, self.kernel, self.ws)

    @cached_property
    def twin(self) -> naive.Point:
        return naive.small_dual(self.problem, self.v, self.theta)


def base_mass(problem: ProjectionProblem) -> float:
    return float(np.exp(problem.log_base).sum())


def dense_newton_matrix(case: Evaluated) -> np.ndarray:
    """What `assemble` and `gradient` left in the workspace, as one symmetric matrix over (v, theta)."""
    layout, ws, m = case.problem.layout, case.ws, case.problem.num_constraints
    ws.candidate[:] = np.arange(m)
    assemble(case.index, case.kernel, m, ws)
    states = layout.num_decision_states
    matrix = np.zeros((states + m, states + m))
    for k in range(layout.steps):
        here, n = layout.states(k), layout.layer_sizes[k]
        block = ws.diagonal[ws.diagonal_start[k] : ws.diagonal_start[k] + n * n].reshape(n, n)
        matrix[here, here] = np.triu(block) + np.triu(block, 1).T
        if k < layout.steps - 1:
            there, width = layout.states(k + 1), layout.layer_sizes[k + 1]
            coupling = ws.coupling[ws.coupling_start[k] : ws.coupling_start[k] + n * width].reshape(n, width)
            matrix[here, there] = -coupling
            matrix[there, here] = -coupling.T
    matrix[:states, states:] = ws.border[:m, :states].T
    matrix[states:, :states] = ws.border[:m, :states]
    matrix[states:, states:] = np.tril(ws.schur) + np.tril(ws.schur, -1).T
    return matrix
