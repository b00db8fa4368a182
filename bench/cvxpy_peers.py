"""The projection through cvxpy: programs whose parameters change, and a new program for each problem.

The program of the paper, with one variable per triple; w is only a short name for the row sums of q:

    min  sum kl_div(q, base)   s.t.  flow of q,  lower w <= q <= upper w,  costs w <= thresholds

The other program has w (num_rows,) as variables of its own and leaves out the boxes of rows with one successor. That is
easier for the solver: two entries per box instead of one per successor, and fewer boxes. In both programs the base,
boxes, costs and thresholds are parameters by the rules of disciplined parametrised programming: cvxpy compiles once,
and then only fills in numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

from bench.contender import Run, clocked
from bench.projection_reference import solve_with_cvxpy
from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem


class _Parametrised:
    """A compiled program; a subclass states the program and says which triples have a box."""

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float, boxed: IntArray) -> None:
        self.cp = cp = _cvxpy()
        self.time_limit, self.compiled, self.boxed = time_limit, False, boxed
        self.q = cp.Variable(layout.num_triples)
        self.base = cp.Parameter(layout.num_triples, nonneg=True)
        self.lower, self.upper = cp.Parameter(len(boxed), nonneg=True), cp.Parameter(len(boxed), nonneg=True)
        self.costs, self.thresholds = cp.Parameter((num_constraints, layout.num_rows)), cp.Parameter(num_constraints)

    def state(self, restrictions: list[Any]) -> None:
        """Minimise the divergence under these restrictions, from now on."""
        self.program = self.cp.Problem(
            self.cp.Minimize(self.cp.sum(self.cp.kl_div(self.q, self.base))), restrictions
        )  # fmt: skip
        assert self.program.is_dpp()  # else cvxpy would compile the program anew for every problem

    def run(self, problem: ProjectionProblem) -> Run:
        if not self.compiled:  # the first solve compiles the program: preparation
            with rows_picked():
                self._solve(problem)
            self.compiled = True
        return clocked(self._solve, problem)

    def fill(self, problem: ProjectionProblem) -> None:
        """Replace the numbers of the program by those of `problem`."""
        self.base.value, self.thresholds.value = np.exp(problem.log_base), problem.thresholds
        self.lower.value, self.upper.value = problem.lower[self.boxed], problem.upper[self.boxed]
        self.costs.value = problem.costs

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        self.fill(problem)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate" is in the status
                self.program.solve(solver=self.cp.CLARABEL, time_limit=self.time_limit)
        except self.cp.SolverError:
            return "no answer", _no_answer(problem)
        found = self.q.value
        return str(self.program.status), _no_answer(problem) if found is None else np.asarray(found)


class CvxpyAsWritten(_Parametrised):
    """The program of the paper, compiled once; at least one constraint."""

    name = "cvxpy + Clarabel, as written"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        super().__init__(layout, num_constraints, time_limit, np.arange(layout.num_triples))
        multiply, row = self.cp.multiply, layout.row_of_triple
        of_row, leaving, arriving, source = incidences(layout)
        w = of_row @ self.q
        self.state(
            [
                self.q >= 0.0,
                leaving @ w - arriving @ self.q == source,
                self.q <= multiply(self.upper, w[row]),
                self.q >= multiply(self.lower, w[row]),
                self.costs @ w <= self.thresholds,
            ]
        )


class CvxpyRows(_Parametrised):
    """The program with row sums as variables, compiled once; at least one constraint."""

    name = "cvxpy + Clarabel, rows as variables"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        row = layout.row_of_triple
        boxed = np.flatnonzero((np.diff(layout.row_start) > 1)[row])
        super().__init__(layout, num_constraints, time_limit, boxed)
        multiply, w = self.cp.multiply, self.cp.Variable(layout.num_rows)
        of_row, leaving, arriving, source = incidences(layout)
        self.state(
            [
                w == of_row @ self.q,
                leaving @ w - arriving @ self.q == source,
                self.q[boxed] <= multiply(self.upper, w[row[boxed]]),
                self.q[boxed] >= multiply(self.lower, w[row[boxed]]),
                self.costs @ w <= self.thresholds,
            ]
        )


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


@contextmanager
def rows_picked() -> Iterator[None]:
    """Let cvxpy compile programs with many parameters in little memory; the compiled program is the same.

    To bring the rows of exponential cones into Clarabel's order, cvxpy multiplies by a permutation. scipy's product
    takes 16 bytes per variable and parameter, 7 GB for a world with 8,394 triples. Here the rows are picked instead.
    """
    from scipy import sparse

    solver = import_module("cvxpy.reductions.solvers.conic_solvers.conic_solver")
    operator = solver.as_linear_operator

    def picking(matrix: Any) -> Any:
        if not sparse.issparse(matrix):
            return operator(matrix)
        rows = sparse.csr_array(matrix)
        one_each = np.all(np.diff(rows.indptr) == 1) and np.all(rows.data == 1.0)
        return solver.LinearOperator(lambda X: X[rows.indices], rows.shape) if one_each else operator(matrix)

    with mock.patch.object(solver, "as_linear_operator", picking):
        yield


def incidences(layout: Layout) -> tuple[Any, Any, Any, FloatArray]:
    """Triples of a row, rows of a state, triples that lead to a state, and the mass that enters it."""
    from scipy import sparse

    n, rows, states = layout.num_triples, layout.num_rows, layout.num_decision_states
    inner = np.flatnonzero(layout.successor < states)
    of_row = sparse.csr_array((np.ones(n), (layout.row_of_triple, np.arange(n))), shape=(rows, n))
    leaving = sparse.csr_array((np.ones(rows), (np.arange(rows) // layout.num_actions, np.arange(rows))))
    arriving = sparse.csr_array((np.ones(len(inner)), (layout.successor[inner], inner)), shape=(states, n))
    source = np.zeros(states)
    source[0] = 1.0
    return of_row, leaving, arriving, source


def _cvxpy() -> Any:
    """The module, without its incomplete types."""
    return import_module("cvxpy")


def _no_answer(problem: ProjectionProblem) -> FloatArray:
    return np.full(problem.layout.num_triples, np.nan)
