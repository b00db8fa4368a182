"""Problem (PROJ) for general solvers: the oracle of the tests and a peer of the benchmarks, never part of a learner.

cvxpy states Problem (PROJ) as it is written, in the triples; HiGHS decides feasibility as a linear program, and
`proves_infeasible` checks a proof by plain backward induction.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray
from hedgerow.projection.problem import ProjectionProblem


class Constraints(NamedTuple):
    """The feasible set as sparse matrices over the triples: flow q = b, box q <= 0, costs q <= thresholds."""

    flow: Any
    """(num_decision_states, num_triples)"""
    source: FloatArray
    """(num_decision_states,): b, 1 in x_0 and 0 elsewhere"""
    box: Any
    """(2 num_triples, num_triples): rows q - hi w, then lo w - q"""
    costs: Any
    """(m, num_triples)"""


def constraint_matrices(problem: ProjectionProblem) -> Constraints:
    """The linear constraints of (PROJ)."""
    from scipy import sparse

    layout = problem.layout
    n, states = layout.num_triples, layout.num_decision_states
    triple, row = np.arange(n), layout.row_of_triple
    out = sparse.csr_array((np.ones(n), (row // layout.num_actions, triple)), shape=(states, n))
    inner = layout.successor < states
    into = sparse.csr_array((np.ones(inner.sum()), (layout.successor[inner], triple[inner])), shape=(states, n))
    total = sparse.csr_array((np.ones(n), (row, triple)), shape=(layout.num_rows, n))[row]  # w(x,a) for each triple
    identity = sparse.eye_array(n, format="csr")
    above = identity - total.multiply(problem.upper[:, None])
    below = total.multiply(problem.lower[:, None]) - identity
    box = sparse.vstack([above, below])
    source = np.zeros(states)
    source[0] = 1.0
    return Constraints((out - into).tocsr(), source, box.tocsr(), sparse.csr_array(problem.costs[:, row]))


class ReferenceSolution(NamedTuple):
    """The answer of a general solver."""

    status: str
    """As cvxpy reports it: 'optimal', 'optimal_inaccurate', 'infeasible', ..."""
    objective: float
    occupancy: FloatArray
    """(num_triples,)"""


def solve_with_cvxpy(problem: ProjectionProblem, solver: str = "CLARABEL", **options: Any) -> ReferenceSolution:
    """(PROJ) through cvxpy."""
    cp: Any = import_module("cvxpy")
    constraints = constraint_matrices(problem)
    q = cp.Variable(problem.layout.num_triples)
    base = np.exp(problem.log_base)
    restrictions = [constraints.flow @ q == constraints.source, constraints.box @ q <= 0.0]
    if problem.num_constraints:
        restrictions.append(constraints.costs @ q <= problem.thresholds)
    program = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, base))), restrictions)
    program.solve(solver=solver, **options)
    found = q.value is not None
    return ReferenceSolution(
        str(program.status),
        float(program.value) if found else np.inf,
        np.asarray(q.value) if found else np.full(problem.layout.num_triples, np.nan),
    )


def least_violation_by_lp(problem: ProjectionProblem) -> float:
    """min { s : q within the boxes, C q <= alpha + s } as one linear program; m >= 1."""
    from scipy import sparse
    from scipy.optimize import linprog

    constraints = constraint_matrices(problem)
    n, m = problem.layout.num_triples, problem.num_constraints
    # Boxes that are points leave no room: presolve may take rounding for infeasibility. Then try without it, looser.
    relief = sparse.csr_array(-np.ones((m, 1)))
    inequalities = sparse.block_array([[constraints.box, None], [constraints.costs, relief]])
    for presolve, tolerance in ((True, 1e-10), (False, 1e-10), (True, 1e-9), (False, 1e-8)):
        result = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=inequalities,
            b_ub=np.concatenate([np.zeros(2 * n), problem.thresholds]),
            A_eq=sparse.hstack([constraints.flow, sparse.csr_array((len(constraints.source), 1))]),
            b_eq=constraints.source,
            bounds=[(0.0, None)] * n + [(None, None)],
            method="highs",
            options={
                "presolve": presolve,
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if result.status == 0:
            return float(result.fun)
    raise RuntimeError(f"HiGHS ended with: {result.message}")


def proves_infeasible(problem: ProjectionProblem, theta: ArrayLike) -> float:
    """min { theta^T (C q - alpha) : q within the boxes } for theta >= 0: positive means infeasible.

    Plain backward induction, row by row.
    """
    layout = problem.layout
    weights = np.asarray(theta, dtype=np.float64)
    if np.any(weights < 0.0):
        return -np.inf
    cost = weights @ problem.costs
    values = np.zeros(layout.num_states)
    for x in range(layout.num_decision_states - 1, -1, -1):
        options = []
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            triples = slice(layout.row_start[r], layout.row_start[r + 1])
            there = values[layout.successor[triples]]
            options.append(cost[r] + _cheapest(there, problem.lower[triples], problem.upper[triples]))
        values[x] = min(options)
    return float(values[0] - weights @ problem.thresholds)


def _cheapest(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    order = np.argsort(values)
    room = (upper - lower)[order]
    before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
    extra = np.clip(1.0 - lower.sum() - before, 0.0, room)
    return float(lower @ values + extra @ values[order])
