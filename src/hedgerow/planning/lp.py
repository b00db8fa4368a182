"""The two linear programs behind the offline optima, over any set of generators of the occupancies.

    least_loss       min loss^T y    with  E y = e_0,  C y <= alpha,      y >= 0
    largest_margin   max s           with  E y = e_0,  C y + s <= alpha,  y >= 0, s free

Over rows, y = w is an occupancy, E the flow matrix and C = bar G. Over finitely many policies, y are the weights of a
mixture, E is a row of ones and C holds the costs of the policies.

    >>> least_loss(np.ones((1, 2)), np.array([0.0, 1.0]), np.array([[0.75, 0.25]]), np.array([0.5])).y.tolist()
    [0.5, 0.5]
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import CertificateError
from hedgerow.model.cmdp import CMDP
from hedgerow.model.layout import Layout

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
    from scipy.optimize import linprog  # half a second of imports that most commands do not need

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


# --------------------------------------------------------------------------------------------------------------------
# Linear programs over all occupancies that boxes of transitions allow: the *extended* programs of optimistic planning.
#
#     least loss        min loss^T w     with  C^T w <= alpha
#     least violation   min s            with  C^T w <= alpha + s,  s >= 0
#
# over row masses w (rows,) and triple masses q (triples,) with
#
#     sum_a w(x,a) - inflow(x) = 1{x = x_0},   sum_x' q(x,a,x') = w(x,a),   lo w(x,a) <= q(x,a,x') <= hi w(x,a).
#
# The masses of these programs are the occupancies of all policies under all transitions in the boxes (UC-O-REPS,
# Rosenberg and Mansour 2019; OptCMDP, Efroni, Mannor and Pirotta 2020). The policy of a solution is w(x,a) / w(x).


class BoxProgram(NamedTuple):
    """The constraints that all programs over the same boxes share, on y = (w, q)."""

    layout: Layout
    equalities: sp.csr_array
    """(decision states + rows, rows + triples): flow, then the sum of each row; equal to (1, 0, 0, ...)"""
    boxes: sp.csr_array
    """(box constraints, rows + triples): at most 0; one for each bound that says something"""


class BoxSolution(NamedTuple):
    """Row masses (rows,), multipliers (m,) >= 0 of the thresholds, and the least value."""

    w: FloatArray
    multipliers: FloatArray
    value: float


def box_program(layout: Layout, lower: FloatArray, upper: FloatArray) -> BoxProgram:
    """The program of the boxes [lower, upper] (triples,)."""
    R, N = layout.num_rows, layout.num_triples
    rows, triples, row_of = np.arange(R), np.arange(N), layout.row_of_triple
    inner = layout.successor < layout.num_decision_states  # what reaches x_L leaves the system
    flow = _sparse(
        [rows // layout.num_actions, layout.successor[inner]],
        [rows, R + triples[inner]],
        [np.ones(R), -np.ones(int(inner.sum()))],
        (layout.num_decision_states, R + N),
    )
    sums = _sparse([row_of, rows], [R + triples, rows], [np.ones(N), -np.ones(R)], (R, R + N))
    several = np.diff(layout.row_start)[row_of] > 1  # a single successor gets all of its row
    least, most = np.flatnonzero(several & (lower > 0.0)), np.flatnonzero(several & (upper < 1.0))
    at_least = _bounds(layout, least, lower[least], -1.0)
    at_most = _bounds(layout, most, -upper[most], 1.0)
    return BoxProgram(layout, sp.vstack([flow, sums], format="csr"), sp.vstack([at_least, at_most], format="csr"))


def least_loss_in_boxes(
    program: BoxProgram, loss: FloatArray, costs: FloatArray, thresholds: FloatArray
) -> BoxSolution | NoSolution:
    """min loss^T w with costs^T w <= thresholds; `loss` (rows,), `costs` (rows, m), `thresholds` (m,).

    >>> boxes = np.array([0.25, 0.25, 1, 1]), np.array([0.75, 0.75, 1, 1])
    >>> program = box_program(Layout((1, 2, 1), num_actions=1), *boxes)
    >>> least_loss_in_boxes(program, np.array([0.0, 0.0, 1.0]), np.zeros((3, 0)), np.zeros(0)).w.round(9).tolist()
    [1.0, 0.75, 0.25]
    """
    N = program.layout.num_triples
    return _solve(program, np.append(loss, np.zeros(N)), costs, thresholds, column=None)


def least_violation_in_boxes(program: BoxProgram, costs: FloatArray, thresholds: FloatArray) -> BoxSolution:
    """min s >= 0 with costs^T w <= thresholds + s, which always has a solution; the value is s.

    Where s > 0 the multipliers sum to 1 and name the constraints that cannot be met together.
    """
    objective = np.append(np.zeros(program.equalities.shape[1]), 1.0)
    answer = _solve(program, objective, costs, thresholds, column=-1.0)
    if isinstance(answer, NoSolution):
        raise CertificateError(f"HiGHS could not find the least violation, which always exists: {answer.message}")
    return answer


def _solve(
    program: BoxProgram, objective: FloatArray, costs: FloatArray, thresholds: FloatArray, column: float | None
) -> BoxSolution | NoSolution:
    """The program with the objective over (w, q), or over (w, q, s) where s has this `column` in the cost rows."""
    m, R, N = len(thresholds), program.layout.num_rows, program.layout.num_triples
    E = program.equalities
    C = sp.vstack([sp.hstack([sp.csr_array(costs.T), sp.csr_array((m, N))]), program.boxes], format="csr")
    if column is not None:
        of_s = np.zeros((C.shape[0], 1))
        of_s[:m] = column
        E = sp.hstack([E, sp.csr_array((E.shape[0], 1))], format="csr")
        C = sp.hstack([C, sp.csr_array(of_s)], format="csr")
    answer = least_loss(E, objective, C, np.append(thresholds, np.zeros(program.boxes.shape[0])))
    if isinstance(answer, NoSolution):
        return answer
    return BoxSolution(answer.y[:R], answer.theta[:m], answer.value)


def _bounds(layout: Layout, triples: Any, factors: FloatArray, sign: float) -> sp.csr_array:
    """One constraint factor * w(row) + sign * q(triple) <= 0 for each of the triples."""
    places = np.arange(len(triples))
    return _sparse(
        [places, places],
        [layout.row_of_triple[triples], layout.num_rows + triples],
        [factors, np.full(len(triples), sign)],
        (len(triples), layout.num_rows + layout.num_triples),
    )


def _sparse(rows: list[Any], columns: list[Any], entries: list[Any], shape: tuple[int, int]) -> sp.csr_array:
    place = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(entries), place), shape=shape)
