"""The two linear programs behind the offline optima, over any set of generators of the occupancies.

    least_loss       min loss^T y    with  E y = e_0,  C y <= alpha,      y >= 0
    largest_margin   max s           with  E y = e_0,  C y + s <= alpha,  y >= 0, s free

Over rows, y = w is an occupancy, E the flow matrix and C = bar G. Over finitely many policies, y are the weights of a
mixture, E is a row of ones and C holds the costs of the policies.

    >>> least_loss(np.ones((1, 2)), np.array([0.0, 1.0]), np.array([[0.75, 0.25]]), np.array([0.5])).y.tolist()
    [0.5, 0.5]
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from hedgerow.checks import FloatArray
from hedgerow.errors import CertificateError
from hedgerow.model.cmdp import CMDP

TOL_SOLVER = 1e-10
"""Primal and dual feasibility asked of HiGHS."""

Matrix: TypeAlias = "sp.csr_array | NDArray[np.float64]"


class Suggestion(NamedTuple):
    """What a solver suggests: y >= 0, multipliers theta (m,) >= 0 of the cost constraints, and its objective value."""

    y: FloatArray
    theta: FloatArray
    value: float


class NoSolution(NamedTuple):
    """None was found, most often because there is none; the words of the solver."""

    message: str


def flow_matrix(cmdp: CMDP) -> sp.csr_array:
    """(decision states, rows): outflow minus inflow."""
    layout = cmdp.layout
    rows = np.arange(layout.num_rows)
    inner = layout.successor < layout.num_decision_states  # what reaches x_L leaves the system
    states = np.concatenate([rows // layout.num_actions, layout.successor[inner]])
    columns = np.concatenate([rows, layout.row_of_triple[inner]])
    entries = np.concatenate([np.ones(layout.num_rows), -cmdp.transitions[inner]])
    return sp.csr_array((entries, (states, columns)), shape=(layout.num_decision_states, layout.num_rows))


def least_loss(E: Matrix, loss: FloatArray, C: Matrix, alpha: FloatArray) -> Suggestion | NoSolution:
    """min loss^T y; `loss` (n,), `C` (m, n), `alpha` (m,)."""
    return _highs(loss, E, C, alpha, np.zeros(len(loss)))


def largest_margin(E: Matrix, C: FloatArray, alpha: FloatArray) -> Suggestion:
    """max s; the value is s. It exists whenever E y = e_0 has a solution, so that a failure is an error."""
    m, n = C.shape
    objective, lower = np.zeros(n + 1), np.zeros(n + 1)
    objective[-1], lower[-1] = -1.0, -np.inf
    with_s = sp.hstack([sp.csr_array(E), sp.csr_array((E.shape[0], 1))], format="csr")
    answer = _highs(objective, with_s, np.hstack([C, np.ones((m, 1))]), alpha, lower)
    if isinstance(answer, NoSolution):
        raise CertificateError(f"HiGHS could not find the Slater margin, which always exists: {answer.message}")
    return Suggestion(answer.y[:-1], answer.theta, -answer.value)


def _highs(
    objective: FloatArray, E: Matrix, C: Matrix, alpha: FloatArray, lower: FloatArray
) -> Suggestion | NoSolution:
    start = np.zeros(E.shape[0])
    start[0] = 1.0
    result = linprog(
        objective,
        A_ub=sp.csr_array(C) if len(alpha) else None,
        b_ub=alpha if len(alpha) else None,
        A_eq=E,
        b_eq=start,
        bounds=np.column_stack([lower, np.full(len(objective), np.inf)]),
        method="highs",
        options={
            "presolve": True,
            "primal_feasibility_tolerance": TOL_SOLVER,
            "dual_feasibility_tolerance": TOL_SOLVER,
        },
    )
    if result.status != 0:
        return NoSolution(str(result.message))
    # scipy's marginals are derivatives of the minimum by the right-hand side: theta with the sign changed
    theta = -np.asarray(result.ineqlin.marginals, dtype=np.float64).reshape(len(alpha))
    return Suggestion(np.maximum(result.x, lower), np.maximum(theta, 0.0), float(result.fun))
