"""Is there any occupancy within the boxes that satisfies the constraints? With proof, either way.

    s* = max over theta in the simplex of F(theta),   F(theta) = min { theta^T (C q - alpha) : q in Delta(P) }

F(theta) > 0 proves infeasibility; s* is the least violation: thresholds + s* is feasible and nothing smaller is.
F is concave and piecewise linear, and robust value iteration gives F together with the supergradient C q_theta - alpha.
One constraint needs one sweep; more need cutting planes, a linear program in m + 1 variables per round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import CertificateError
from hedgerow.estimates.robust import RobustScratch, least_cost, robust_scratch, row_mass_of_least_cost
from hedgerow.model.index import Index, index_of
from hedgerow.model.layout import Layout

TOL_CUT = 1e-11
MAX_ROUNDS = 2_000


class LeastViolation(NamedTuple):
    """s* and its proof. Negative: the constraints can be met with this much to spare."""

    value: float
    """F(theta): a certified lower bound on s*"""
    upper: float
    """The violation of an explicit mixture of occupancies: s* <= upper"""
    theta: FloatArray
    """(m,): in the simplex"""
    rounds: int


def least_violation(
    layout: Layout, lower: FloatArray, upper: FloatArray, costs: FloatArray, thresholds: FloatArray
) -> LeastViolation:
    """The least violation of `costs` (m, num_rows) over the boxes; m >= 1."""
    index, scratch = index_of(layout), robust_scratch(layout)
    m = len(thresholds)
    w = np.zeros(layout.num_rows)
    theta = np.full(m, 1.0 / m)
    cuts: list[FloatArray] = []
    best, best_theta, bound = -np.inf, theta, np.inf
    for round_number in range(1, MAX_ROUNDS + 1):
        value, cut = _support(index, lower, upper, costs, thresholds, theta, scratch, w)
        # A cut that is there already means that the master program is solved as exactly as its solver can.
        known = any(np.max(np.abs(cut - other)) <= TOL_CUT for other in cuts)
        cuts.append(cut)
        if value > best:
            best, best_theta = value, theta
        if known:
            return LeastViolation(best, max(best, bound), best_theta, round_number)
        theta, bound = (theta, value) if m == 1 else _master(np.array(cuts))
        if bound - best <= TOL_CUT * (1.0 + np.abs(cuts[0]).max()):
            return LeastViolation(best, max(best, bound), best_theta, round_number)
    raise CertificateError(f"cutting planes did not close the gap in {MAX_ROUNDS} rounds: {best} to {bound}")


def violation_of(
    layout: Layout, lower: FloatArray, upper: FloatArray, costs: FloatArray, thresholds: FloatArray, theta: FloatArray
) -> float:
    """F(theta): positive values prove that the constraints cannot be met."""
    scratch = robust_scratch(layout)
    return float(least_cost(index_of(layout), lower, upper, theta @ costs, scratch) - theta @ thresholds)


def _support(
    index: Index,
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    thresholds: FloatArray,
    theta: FloatArray,
    scratch: RobustScratch,
    w: FloatArray,
) -> tuple[float, FloatArray]:
    """F(theta) and the supergradient C q_theta - alpha."""
    value = least_cost(index, lower, upper, theta @ costs, scratch) - theta @ thresholds
    row_mass_of_least_cost(index, scratch, w)
    return float(value), costs @ w - thresholds


def _master(cuts: FloatArray) -> tuple[FloatArray, float]:
    """max { t : t <= cut . theta for all cuts, theta in the simplex }."""
    from scipy.optimize import linprog

    count, m = cuts.shape
    result = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-cuts, np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(m), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * m + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise CertificateError(f"the master program of the cutting planes failed: {result.message}")
    theta = np.maximum(result.x[:m], 0.0)
    return theta / theta.sum(), float(result.x[m])
