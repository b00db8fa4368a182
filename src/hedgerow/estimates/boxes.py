"""Intervals that hold the truth on the clean event (paper, section 3): boxes of transitions, bounds of mean costs.

    P_hat = M / max(1, N),   lo = max(0, P_hat - epsilon),   hi = min(1, P_hat + epsilon)
    g_hat = S / max(1, N),   LCB = g_hat - xi,   UCB = g_hat + xi            (clipped to [0, 1] on request)

The confidence set of a row is { p : lo <= p <= hi, sum p = 1 }. Its p(y) is 1 minus the others, each of which is at
least its lo and at most its hi, so that

    hi(y) <- min(hi(y), 1 - sum of the other lo),   lo(y) <- max(lo(y), 1 - sum of the other hi)

changes the intervals but not the set. A row without visits may do anything, a row with one successor nothing else.
Whatever the rounding, lo <= hi and sum lo <= 1 <= sum hi, so that no row's set is empty.

Only rows that an episode visited change: `refresh_rows` is the update, `refresh_all` the same for a fresh start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, float_array, whole_number, within
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.positions import triples_of
from hedgerow.estimates.radii import RadiusRule, cost_radius, epsilon, transition_terms
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

MACHINE_EPSILON = float(np.finfo(np.float64).eps)


class Boxes(Bundle):
    """Bounds of the transitions and of the mean costs, kept up to date by the kernels below."""

    lower: FloatArray
    """lo (num_triples,)"""
    upper: FloatArray
    """hi (num_triples,)"""
    cost_lower: FloatArray
    """LCB (num_rows, m)"""
    cost_upper: FloatArray
    """UCB (num_rows, m)"""
    xi: FloatArray
    """(num_rows,): the cost radius"""


class BoxRule(Bundle):
    """How boxes follow from counts."""

    radii: RadiusRule
    clip_costs: bool
    """Whether LCB and UCB are clipped to [0, 1], which the paper does not do; every proof allows it."""
    known_transitions: bool
    """Whether lo = hi = P for ever, so that only costs are estimated"""


def make_boxes(
    layout: Layout, num_constraints: int, *, clip_costs: bool = False, transitions: ArrayLike | None = None
) -> Boxes:
    """The boxes before the first episode: nothing is known, except the `transitions` (num_triples,) if given."""
    m = whole_number("the number of constraints", num_constraints, 0)
    lower = np.zeros(layout.num_triples)
    single = np.diff(layout.row_start) == 1
    lower[layout.row_start[:-1][single]] = 1.0
    upper = np.ones(layout.num_triples)
    if transitions is not None:
        where = layout.describe_triple
        known = float_array("the transition probability", transitions, (layout.num_triples,), where)
        lower, upper = within("the transition probability", known, 0.0, 1.0, where).copy(), known.copy()
    return Boxes(
        lower=lower,
        upper=upper,
        cost_lower=np.full((layout.num_rows, m), 0.0 if clip_costs else -1.0),
        cost_upper=np.ones((layout.num_rows, m)),
        xi=np.ones(layout.num_rows),
    )


@kernel
def refresh_all(index: Index, counts: Counts, rule: BoxRule, boxes: Boxes) -> None:
    """Bring every row of `boxes` up to date."""
    for r in range(len(counts.num_visits)):
        refresh_row(index, counts, rule, r, boxes)


@kernel
def refresh_rows(index: Index, counts: Counts, rule: BoxRule, rows: IntArray, boxes: Boxes) -> None:
    """Bring the given rows, those of the last episode, up to date."""
    for k in range(len(rows)):
        refresh_row(index, counts, rule, rows[k], boxes)


@kernel
def refresh_row(index: Index, counts: Counts, rule: BoxRule, row: int, boxes: Boxes) -> None:
    """Bring one row of `boxes` up to date."""
    N = counts.num_visits[row]
    boxes.xi[row] = radius = cost_radius(rule.radii, N)
    for i in range(counts.cost_sums.shape[1]):
        g_hat = counts.cost_sums[row, i] / max(1, N)
        boxes.cost_lower[row, i] = max(0.0, g_hat - radius) if rule.clip_costs else g_hat - radius
        boxes.cost_upper[row, i] = min(1.0, g_hat + radius) if rule.clip_costs else g_hat + radius
    if not rule.known_transitions:
        _refresh_transitions(index, counts, rule.radii, row, boxes)


@kernel
def _refresh_transitions(index: Index, counts: Counts, radii: RadiusRule, row: int, boxes: Boxes) -> None:
    """The box of one row, which never changes if there is a single successor."""
    num_moves, lower, upper, num_visits = counts.num_moves, boxes.lower, boxes.upper, counts.num_visits[row]
    start, stop = triples_of(index, row)
    if stop - start == 1:
        return
    if num_visits == 0:
        lower[start:stop] = 0.0
        upper[start:stop] = 1.0
        return
    variance_factor, offset = transition_terms(radii, num_visits)
    sum_lower = sum_upper = 0.0
    for j in range(start, stop):
        p_hat = num_moves[j] / num_visits
        radius = epsilon(radii, p_hat, variance_factor, offset)
        lower[j] = max(0.0, p_hat - radius)
        upper[j] = min(1.0, p_hat + radius)
        sum_lower += lower[j]
        sum_upper += upper[j]
    for j in range(start, stop):
        # P_hat is in the set, so neither bound may pass it: rounding could, where a radius is next to nothing.
        p_hat = num_moves[j] / num_visits
        least, most = 1.0 - (sum_upper - upper[j]), 1.0 - (sum_lower - lower[j])
        lower[j] = min(max(lower[j], least), p_hat)
        upper[j] = max(min(upper[j], most), p_hat)
    _make_room(start, stop, lower, upper)


@kernel
def _make_room(start: np.uint64, stop: np.uint64, lower: FloatArray, upper: FloatArray) -> None:
    """Undo what rounding may have done: sum lo > 1 or sum hi < 1, by a few units in the last place.

    The sums are rounded too: where they are as near to 1 as that, there is room to be made as well.
    """
    sum_lower = sum_upper = 0.0
    for j in range(start, stop):
        sum_lower += lower[j]
        sum_upper += upper[j]
    slack = 2.0 * (stop - start) * MACHINE_EPSILON
    if sum_lower > 1.0 - slack:
        for j in range(start, stop):
            lower[j] *= (1.0 - slack) / sum_lower
    if sum_upper < 1.0 + slack:
        for j in range(start, stop):
            upper[j] = min(1.0, upper[j] * (1.0 + slack) / sum_upper)
