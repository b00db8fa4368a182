"""The projection through cvxpy: one program whose parameters change, and a new program for each problem.

With variables q (num_triples,) and w (num_rows,) and the base, boxes, costs and thresholds as parameters, the program

    min  sum kl_div(q, base)   s.t.  w = row sums of q,  flow,  lower w <= q <= upper w,  costs w <= thresholds

follows the rules of disciplined parametrised programming: cvxpy compiles it once, and then only fills in numbers.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.bench.contender import Run, clocked
from hedgerow.checks import FloatArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.reference import solve_with_cvxpy


class CvxpyReused:
    """cvxpy with parameters for everything that changes between episodes; at least one constraint."""

    name = "cvxpy + Clarabel"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        from scipy import sparse

        self.cp = cp = _cvxpy()
        n, rows, states, row = layout.num_triples, layout.num_rows, layout.num_decision_states, layout.row_of_triple
        self.time_limit, self.compiled = time_limit, False
        self.q, w = cp.Variable(n), cp.Variable(rows)
        boxed = np.flatnonzero((np.diff(layout.row_start) > 1)[row])
        self.boxed = boxed
        self.base, self.thresholds = cp.Parameter(n, nonneg=True), cp.Parameter(num_constraints)
        self.lower, self.upper = cp.Parameter(len(boxed), nonneg=True), cp.Parameter(len(boxed), nonneg=True)
        self.costs = cp.Parameter((num_constraints, rows))
        inner = np.flatnonzero(layout.successor < states)
        of_row = sparse.csr_array((np.ones(n), (row, np.arange(n))), shape=(rows, n))
        leaving = sparse.csr_array((np.ones(rows), (np.arange(rows) // layout.num_actions, np.arange(rows))))
        arriving = sparse.csr_array((np.ones(len(inner)), (layout.successor[inner], inner)), shape=(states, n))
        source = np.zeros(states)
        source[0] = 1.0
        restrictions = [
            w == of_row @ self.q,
            leaving @ w - arriving @ self.q == source,
            self.q[boxed] <= cp.multiply(self.upper, w[row[boxed]]),
            self.q[boxed] >= cp.multiply(self.lower, w[row[boxed]]),
            self.costs @ w <= self.thresholds,
        ]
        self.program = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(self.q, self.base))), restrictions)
        assert self.program.is_dpp()  # else cvxpy would compile the program anew for every problem

    def run(self, problem: ProjectionProblem) -> Run:
        if not self.compiled:  # the first solve compiles the program: preparation
            self._solve(problem)
            self.compiled = True
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        self.base.value, self.thresholds.value = np.exp(problem.log_base), problem.thresholds
        self.lower.value, self.upper.value = problem.lower[self.boxed], problem.upper[self.boxed]
        self.costs.value = problem.costs
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate" is in the status
                self.program.solve(solver=self.cp.CLARABEL, time_limit=self.time_limit)
        except self.cp.SolverError:
            return "no answer", _no_answer(problem)
        found = self.q.value
        return str(self.program.status), _no_answer(problem) if found is None else np.asarray(found)


class CvxpyAnew:
    """cvxpy the way it is usually written: a new program for each problem."""

    name = "cvxpy + Clarabel, built anew"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        self.time_limit = time_limit
        self.cp = _cvxpy()

    def run(self, problem: ProjectionProblem) -> Run:
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solution = solve_with_cvxpy(problem, time_limit=self.time_limit)
        except self.cp.SolverError:
            return "no answer", _no_answer(problem)
        return solution.status, solution.occupancy


def _cvxpy() -> Any:
    """The module, without its incomplete types."""
    return import_module("cvxpy")


def _no_answer(problem: ProjectionProblem) -> FloatArray:
    return np.full(problem.layout.num_triples, np.nan)
