"""The value of a matrix game: the master program of cutting planes, in m + 1 variables and without a solver.

    max { t : t <= cut_j . theta for j = 1..n, theta in the simplex }

Entries are mapped onto A in [1, 2], which maps the value likewise. Then theta = x / sum x for the solution of

    min { sum x : A x >= 1, x >= 0 },       dual:  max { sum y : A^T y <= 1, y >= 0 }

The dual can start from y = 0. Simplex pivots in a tableau of m rows lead to its optimum, where x are the multipliers of
its rows, and t corresponds to 1 / sum x.

    cuts (1, 0), (0, 1)   ->   theta = (1/2, 1/2), t = 1/2
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel, shared_kernel
from hedgerow.errors import CertificateError
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.planning.decomposition import (
    RobustScratch,
    largest_entry,
    least_cost,
    robust_scratch,
    row_mass_of_least_cost,
)

TINY = 1e-12
"""Smaller entries of the tableau are rounding: its numbers are about 1."""


@kernel
def solve_game(cuts: FloatArray, count: int, tableau: FloatArray, theta: FloatArray) -> float:
    """Write the best theta (m,) against the first `count` cuts (n, m) and return its value.

    `tableau` is scratch of at least m + 1 rows and n + m + 1 columns.
    """
    m = cuts.shape[1]
    least, most = np.inf, -np.inf
    for j in range(count):
        for i in range(m):
            least, most = min(least, cuts[j, i]), max(most, cuts[j, i])
    # Entries in [1, 2] make the value positive, which the substitution x = theta / t needs.
    span = most - least if most > least else 1.0
    end = count + m
    for i in range(m):
        for j in range(count):
            tableau[i, j] = 1.0 + (cuts[j, i] - least) / span
        for j in range(m):
            tableau[i, count + j] = 1.0 if i == j else 0.0
        tableau[i, end] = 1.0
    for j in range(end + 1):
        tableau[m, j] = -1.0 if j < count else 0.0
    limit = 50 * (m + count)
    for pivot in range(limit):
        # Dantzig's rule is quick but may cycle; Bland's, in the second half, cannot.
        column = _entering(tableau, m, end, pivot > limit // 2)
        if column < 0:
            break
        _pivot(tableau, m, end, _leaving(tableau, m, end, column), column)
    total = 0.0
    for i in range(m):
        theta[i] = max(tableau[m, count + i], 0.0)
        total += theta[i]
    for i in range(m):
        theta[i] /= total
    return (1.0 / total - 1.0) * span + least


@kernel
def _entering(tableau: FloatArray, m: int, end: int, first: bool) -> int:
    """The column of the most negative reduced cost, or the `first` negative one, which cannot cycle; -1 if none is."""
    column, best = -1, -TINY
    for j in range(end):
        if tableau[m, j] < best:
            column, best = j, tableau[m, j]
            if first:
                break
    return column


@kernel
def _leaving(tableau: FloatArray, m: int, end: int, column: int) -> int:
    """The row of the least ratio; there is one, because the columns of A are positive."""
    row, least = 0, np.inf
    for i in range(m):
        if tableau[i, column] > TINY and tableau[i, end] / tableau[i, column] < least:
            row, least = i, tableau[i, end] / tableau[i, column]
    return row


@kernel
def _pivot(tableau: FloatArray, m: int, end: int, row: int, column: int) -> None:
    scale = 1.0 / tableau[row, column]
    for j in range(end + 1):
        tableau[row, j] *= scale
    for i in range(m + 1):
        share = tableau[i, column]
        if i != row and share != 0.0:
            for j in range(end + 1):
                tableau[i, j] -= share * tableau[row, j]


# --------------------------------------------------------------------------------------------------------------------
# Decide, with a proof either way, whether any occupancy within the boxes satisfies the constraints.
#
#     s* = max over theta in the simplex of F(theta),   F(theta) = min { theta^T (C q - alpha) : q in Delta(P) }
#
# F(theta) > 0 proves infeasibility; s* is the least violation: thresholds + s* is feasible and nothing smaller is. F
# is concave and piecewise linear, and robust value iteration gives F together with the supergradient C q_theta -
# alpha. One constraint needs one sweep; more need cutting planes, a matrix game per round.


TOL_CUT = 1e-11
MAX_ROUNDS = 2_000


class LeastViolation(NamedTuple):
    """s* and its proof. If s* is negative, the constraints can be met with this much to spare."""

    value: float
    """F(theta): a certified lower bound on s*"""
    upper: float
    """The violation of an explicit mixture of occupancies: s* <= upper"""
    theta: FloatArray
    """(m,): in the simplex"""
    rounds: int


class CuttingPlanes(Bundle):
    """The state of the search for s*, and its buffers. Allocated once per layout and number of constraints."""

    theta: FloatArray
    """(m,): in the simplex; where the search starts and what it finds"""
    trial: FloatArray
    """(m,)"""
    cuts: FloatArray
    """(most rounds, m): supergradients"""
    tableau: FloatArray
    cost: FloatArray
    """(num_rows,): theta^T C"""
    w: FloatArray
    """(num_rows,): mass of the rows under q_theta"""
    robust: RobustScratch


class Bracket(NamedTuple):
    """lower <= s* <= upper after so many rounds."""

    lower: float
    upper: float
    rounds: int


def make_cutting_planes(layout: Layout, num_constraints: int, max_rounds: int, theta: FloatArray) -> CuttingPlanes:
    """Buffers for so many rounds; `theta` (m,) is kept and modified."""
    m = num_constraints
    return CuttingPlanes(
        theta=theta,
        trial=np.zeros(m),
        cuts=np.zeros((max_rounds, m)),
        tableau=np.zeros((m + 1, max_rounds + m + 1)),
        cost=np.zeros(layout.num_rows),
        w=np.zeros(layout.num_rows),
        robust=robust_scratch(layout),
    )


def least_violation(
    layout: Layout, lower: FloatArray, upper: FloatArray, costs: FloatArray, thresholds: FloatArray
) -> LeastViolation:
    """The least violation of `costs` (m, num_rows) over the boxes; m >= 1."""
    m = len(thresholds)
    planes = make_cutting_planes(layout, m, MAX_ROUNDS if m > 1 else 1, np.full(m, 1.0 / m))
    # Writable copies: kernels are compiled once, for writable arrays, as the learners have them.
    boxes = lower.copy(), upper.copy()
    found = cut_to(index_of(layout), *boxes, costs.T.copy(), np.array(thresholds), 0.0, planes)
    if found.rounds == MAX_ROUNDS:
        raise CertificateError(
            f"cutting planes did not close the gap in {MAX_ROUNDS} rounds: {found.lower} to {found.upper}"
        )
    return LeastViolation(found.lower, found.upper, planes.theta, found.rounds)


@shared_kernel(Bracket(0.0, 0.0, 0))
def cut_to(
    index: LayoutArrays,
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    thresholds: FloatArray,
    gap: float,
    planes: CuttingPlanes,
) -> Bracket:
    """Bracket s* of `costs` (num_rows, m) to a width of `gap`, or as exactly as possible if that is 0.

    The search goes from planes.theta to the best theta found.
    """
    m, theta, trial, cuts = len(thresholds), planes.theta, planes.trial, planes.cuts
    best, bound, rounds = -np.inf, np.inf, 0
    for i in range(m):
        trial[i] = theta[i]
    while rounds < len(cuts):
        # F(trial), a lower bound of s* by weak duality, and the occupancy that attains it, whose costs are the cut.
        value = support(index, lower, upper, costs, thresholds, trial, planes)
        row_mass_of_least_cost(index, planes.robust, planes.w)
        for i in range(m):
            cuts[rounds, i] = -thresholds[i]
        for r in range(len(planes.w)):
            if planes.w[r] > 0.0:
                for i in range(m):
                    cuts[rounds, i] += planes.w[r] * costs[r, i]
        rounds += 1
        if value > best:
            best = value
            for i in range(m):
                theta[i] = trial[i]
        # A cut that is there already means that the master program is solved as exactly as its solver can.
        if _is_known(cuts, rounds - 1):
            break
        # The best theta against all cuts so far: they lie above F, so this is an upper bound of s*.
        bound = value if m == 1 else solve_game(cuts, rounds, planes.tableau, trial)
        if bound - best <= max(gap, TOL_CUT * (1.0 + largest_entry(cuts[0]))):
            break
    return Bracket(best, max(best, bound), rounds)


@kernel
def support(
    index: LayoutArrays,
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    thresholds: FloatArray,
    theta: FloatArray,
    planes: CuttingPlanes,
) -> float:
    """F(theta) for costs (num_rows, m): positive values prove that the constraints cannot be met."""
    cost = planes.cost
    for r in range(len(cost)):
        total = 0.0
        for i in range(len(theta)):
            total += theta[i] * costs[r, i]
        cost[r] = total
    value = least_cost(index, lower, upper, cost, planes.robust)
    for i in range(len(theta)):
        value -= theta[i] * thresholds[i]
    return value


@kernel
def _is_known(cuts: FloatArray, last: int) -> bool:
    """Whether the cut number `last` equals an earlier one."""
    for j in range(last):
        distance = 0.0
        for i in range(cuts.shape[1]):
            distance = max(distance, abs(cuts[j, i] - cuts[last, i]))
        if distance <= TOL_CUT:
            return True
    return False
