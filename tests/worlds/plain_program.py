"""A second way to the golden values: linear programs over (step, state, action) that share no code with hedgerow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog


class Values(NamedTuple):
    unconstrained: float
    optimum: float
    margin: float


def values(
    transitions: ArrayLike, horizon: int, start: ArrayLike, gain: ArrayLike, costs: ArrayLike, alpha: ArrayLike
) -> Values:
    """Largest gains, and the largest margin.

    Transitions are (S, A, S) or (H, S, A, S), gains (S, A) or (H, S, A), costs (m, S, A) or (m, H, S, A).
    """
    P = np.asarray(transitions, dtype=float)
    S, A = P.shape[-3:-1]
    P = np.broadcast_to(P, (horizon, S, A, S))
    r = np.broadcast_to(np.asarray(gain, dtype=float), (horizon, S, A)).ravel()
    C = np.stack([np.broadcast_to(np.asarray(cost, dtype=float), (horizon, S, A)).ravel() for cost in costs])  # type: ignore[union-attr]
    out = sparse.kron(sparse.eye_array(horizon * S), np.ones((1, A)))
    into = [sparse.csr_array(P[h].reshape(S * A, S).T) for h in range(horizon - 1)]
    shifted = sparse.block_diag(into) if into else sparse.csr_array((0, 0))
    shifted = sparse.vstack((sparse.csr_array((S, shifted.shape[1])), shifted))
    shifted = sparse.hstack((shifted, sparse.csr_array((horizon * S, S * A))))
    flow, inflow = sparse.csr_array(out - shifted), np.zeros(horizon * S)
    inflow[:S] = start
    free = _solved(-r, flow, inflow, None, None)
    best = _solved(-r, flow, inflow, C, alpha)
    with_margin = sparse.hstack((flow, sparse.csr_array((horizon * S, 1))))
    objective = np.append(np.zeros(len(r)), -1.0)
    limits = np.hstack((C, np.ones((len(C), 1))))
    margin = _solved(objective, with_margin, inflow, limits, alpha)  # at least 0: all worlds here are feasible
    return Values(-free, -best, -margin)


def _solved(objective: NDArray[Any], flow: Any, inflow: NDArray[Any], limits: Any, alpha: Any) -> float:
    # The default tolerance of 1e-7 holds for each flow equality; over 40 steps that is more than 1e-6.
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(objective, A_ub=limits, b_ub=alpha, A_eq=flow, b_eq=inflow, method="highs", options=exact)
    assert answer.status == 0, answer.message
    return float(answer.fun)


def at(state: int, states: int) -> NDArray[Any]:
    """The start distribution of one state."""
    return np.eye(states)[state]
