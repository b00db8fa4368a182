"""Intervals that hold the truth on the clean event (paper, section 3): boxes of transitions, bounds of mean costs.

    P_hat = M / max(1, N),   lo = max(0, P_hat - epsilon),   hi = min(1, P_hat + epsilon)
    g_hat = S / max(1, K),   LCB = g_hat - xi,   UCB = g_hat + xi            (clipped to [0, 1] on request)

The confidence set of a row is { p : lo <= p <= hi, sum p = 1 }. Its p(y) is 1 minus the others, each of which is at
least its lo and at most its hi. Therefore

    hi(y) <- min(hi(y), 1 - sum of the other lo),   lo(y) <- max(lo(y), 1 - sum of the other hi)

changes the intervals but not the set. A row without visits may lead anywhere; a row with one successor leads there.
Whatever the rounding, lo <= hi and sum lo <= 1 <= sum hi: no row's set is empty.

Where visits are unknown (`counts.py`), K_0 of the K costs of a mean or N_0 moves beside the N of a row, the intervals
hold whatever the unknown values were, and however many of the unknown visits there were (docs/counting.md):

    LCB = LCB(K, S), UCB = UCB(K, S + K_0);      lo(y) = LCB(N + N_0, M_y), hi(y) = UCB(N + N_0, M_y + N_0)

The formula holds for KT and for means in radii that depend on their number alone. For the radii of empirical Bernstein
type the radius is that of the known visits, which is larger.

Only rows that an episode visited change, and rows that share a law with them: `refresh_rows` updates these,
`refresh_all` updates every row. Intervals that hold at all times (`kt`) may be older than the counts. `refresh_grown`
rebuilds those whose visits, unknown ones included, grew by 2 % since, about 50 ln T times in a run instead of T times.
For costs it keeps the intersection of all intervals so far, for moves it does where there are unknown ones. That is
empty only if the truth has left one of them; then the last one stands.
Values that are known exactly are never refreshed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel, shared_kernel
from hedgerow.confidence.counts import Counts, Laws, Unknowns
from hedgerow.confidence.radii import KT, RadiusRule, cost_radius, epsilon, scaled_bounds, transition_terms
from hedgerow.model.kernel_layout import LayoutArrays, triples_of

MACHINE_EPSILON = float(np.finfo(np.float64).eps)
GROWTH = 50
"""A row is refreshed when its visits grew by one in so many."""


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
    """(num_rows,): the cost radius; for intervals half the width, the largest over the constraints"""
    visits: IntArray
    """(num_rows,): N, with unknown moves, with which the box was made, where rows are counted and refreshed by
    `refresh_grown`"""
    cost_visits: IntArray
    """(num_rows,): likewise K of the bounds of costs"""


class BoxRule(Bundle):
    """How boxes follow from counts."""

    radii: RadiusRule
    clip_costs: bool
    """Whether LCB and UCB are clipped to [0, 1], which the paper does not do; every proof allows it."""
    gradual: bool
    """Whether `refresh_grown` is the update"""
    laws: Laws
    uncertain: NDArray[np.int8]
    """(num_rows,): 0 where P is known, or there is one successor: lo = hi = P for ever"""
    unknown_costs: NDArray[np.int8]
    """(num_rows, m): 0 where LCB = UCB = the mean cost for ever"""


def make_box_rule(radii: RadiusRule, unknowns: Unknowns, clip_costs: bool, *, gradual: bool = False) -> BoxRule:
    """The rule for these unknowns."""
    uncertain, unknown = unknowns.uncertain.astype(np.int8), unknowns.unknown_costs.astype(np.int8)
    return BoxRule(radii, clip_costs, gradual, unknowns.laws, uncertain, unknown)


def make_boxes(unknowns: Unknowns, *, clip_costs: bool = False) -> Boxes:
    """The boxes before the first episode: trivial, except for what is known exactly."""
    layout, shape = unknowns.layout, unknowns.unknown_costs.shape
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    single = np.diff(layout.row_start) == 1
    lower[layout.row_start[:-1][single]] = 1.0
    cost_lower, cost_upper, xi = np.full(shape, 0.0 if clip_costs else -1.0), np.ones(shape), np.ones(layout.num_rows)
    if unknowns.transitions is not None:
        known = ~np.isnan(unknowns.transitions)
        lower[known] = upper[known] = unknowns.transitions[known]
    if unknowns.costs is not None:
        known = ~np.isnan(unknowns.costs)
        cost_lower[known] = cost_upper[known] = unknowns.costs[known]
        xi[known.all(axis=1)] = 0.0
    visits = np.zeros(layout.num_rows, dtype=np.int64)
    return Boxes(lower, upper, cost_lower, cost_upper, xi, visits, visits.copy())


@shared_kernel(None)
def refresh_all(index: LayoutArrays, counts: Counts, rule: BoxRule, boxes: Boxes) -> None:
    """Bring every row of `boxes` up to date."""
    for r in range(len(counts.num_visits)):
        if rule.laws.moves_at[r] == r:
            refresh_moves(index, counts, rule, r, boxes)
        if rule.laws.costs_at[r] == r:
            refresh_costs(counts, rule, r, boxes)


@kernel
def refresh_rows(index: LayoutArrays, counts: Counts, rule: BoxRule, rows: IntArray, boxes: Boxes) -> None:
    """Bring the given rows, those of the last episode, and all that share a law with them up to date."""
    for k in range(len(rows)):
        refresh_costs(counts, rule, rule.laws.costs_at[rows[k]], boxes)
        refresh_moves(index, counts, rule, rule.laws.moves_at[rows[k]], boxes)


@kernel
def refresh_grown(
    index: LayoutArrays, counts: Counts, rule: BoxRule, rows: IntArray, boxes: Boxes, changed: IntArray
) -> int:
    """`refresh_rows` for rows whose visits have grown; returns how many rows it lists in `changed` (2 num_rows,)."""
    laws, count = rule.laws, 0
    for k in range(len(rows)):
        place = laws.moves_at[rows[k]]
        if rule.uncertain[place] and _has_grown(num_moves(counts, place), boxes.visits[place]):
            refresh_moves(index, counts, rule, place, boxes)
            for j in range(laws.moves_start[place], laws.moves_start[place + 1]):
                changed[count] = laws.same_moves[j]
                count += 1
        place = laws.costs_at[rows[k]]
        if _has_grown(counts.num_costs[place], boxes.cost_visits[place]):
            refresh_costs(counts, rule, place, boxes)
            for j in range(laws.costs_start[place], laws.costs_start[place + 1]):
                changed[count] = laws.same_costs[j]
                count += 1
    return count


@kernel
def num_moves(counts: Counts, place: int) -> int:
    """The moves of a row, known and unknown."""
    return int(counts.num_visits[place] + counts.unknown_moves[place])


@kernel
def _has_grown(now: int, then: int) -> bool:
    return now > then and GROWTH * (now - then) >= then


@kernel
def refresh_costs(counts: Counts, rule: BoxRule, place: int, boxes: Boxes) -> None:
    """The bounds of the mean costs that are counted at row `place`, for all rows of that law."""
    laws, num = rule.laws, counts.num_costs[place]
    if rule.radii.kind == KT:
        if num > 0:  # else they stay what they were at the start
            _refresh_cost_intervals(counts, rule, place, boxes)
    else:
        boxes.xi[place] = _refresh_cost_radii(counts, rule, place, boxes)
    for j in range(laws.costs_start[place] + 1, laws.costs_start[place + 1]):
        row = laws.same_costs[j]
        boxes.xi[row] = boxes.xi[place]
        for i in range(counts.cost_sums.shape[1]):
            boxes.cost_lower[row, i] = boxes.cost_lower[place, i]
            boxes.cost_upper[row, i] = boxes.cost_upper[place, i]


@kernel
def _refresh_cost_radii(counts: Counts, rule: BoxRule, place: int, boxes: Boxes) -> float:
    """LCB and UCB of a row by radii; returns the largest radius, with half of what unknown costs add to the width."""
    num, widest = counts.num_costs[place], 0.0
    known = counts.cost_sums.shape[1] > 0
    radius = cost_radius(rule.radii, num)
    for i in range(counts.cost_sums.shape[1]):
        if rule.unknown_costs[place, i]:
            known = False
            g_hat, missing = counts.cost_sums[place, i] / max(1, num), counts.unknown_costs[place, i]
            # Unknown costs are 0 in the sum: 1 in the place of each gives the highest mean.
            highest = min(1.0, g_hat + missing * (1.0 / num)) if missing > 0 else g_hat
            boxes.cost_lower[place, i] = max(0.0, g_hat - radius) if rule.clip_costs else g_hat - radius
            boxes.cost_upper[place, i] = min(1.0, highest + radius) if rule.clip_costs else highest + radius
            widest = max(widest, radius + 0.5 * (highest - g_hat))
    return 0.0 if known else min(1.0, max(widest, radius))


@kernel
def _refresh_cost_intervals(counts: Counts, rule: BoxRule, place: int, boxes: Boxes) -> None:
    num, widest = counts.num_costs[place], 0.0
    for i in range(counts.cost_sums.shape[1]):
        if rule.unknown_costs[place, i]:
            total, missing = counts.cost_sums[place, i], counts.unknown_costs[place, i]
            lower, upper = scaled_bounds(rule.radii, num, total, rule.radii.cost_log)
            if missing > 0:
                most = min(total + missing, float(num))
                upper = scaled_bounds(rule.radii, num, most, rule.radii.cost_log)[1]
            # Intervals that hold at all times hold together; an empty intersection means that one has failed.
            if rule.gradual and max(lower, boxes.cost_lower[place, i]) <= min(upper, boxes.cost_upper[place, i]):
                lower, upper = max(lower, boxes.cost_lower[place, i]), min(upper, boxes.cost_upper[place, i])
            boxes.cost_lower[place, i], boxes.cost_upper[place, i] = lower, upper
        widest = max(widest, 0.5 * (boxes.cost_upper[place, i] - boxes.cost_lower[place, i]))
    boxes.xi[place] = widest
    if rule.gradual:
        boxes.cost_visits[place] = num


@kernel
def refresh_moves(index: LayoutArrays, counts: Counts, rule: BoxRule, place: int, boxes: Boxes) -> None:
    """The box of the transitions that are counted at row `place`, for all rows of that law."""
    if not rule.uncertain[place]:
        return
    if counts.unknown_moves[place] == 0:
        _refresh_box(index, counts, rule.radii, place, boxes)
    else:
        _refresh_widened_box(index, counts, rule, place, boxes)
    if rule.gradual:
        boxes.visits[place] = num_moves(counts, place)
    laws, (start, stop) = rule.laws, triples_of(index, place)
    for j in range(laws.moves_start[place] + 1, laws.moves_start[place + 1]):
        first = np.uint64(index.row_start[laws.same_moves[j]])
        for i in range(stop - start):
            boxes.lower[first + i] = boxes.lower[start + i]
            boxes.upper[first + i] = boxes.upper[start + i]


@kernel
def _refresh_box(index: LayoutArrays, counts: Counts, radii: RadiusRule, row: int, boxes: Boxes) -> None:
    num_moves, lower, upper, num_visits = counts.num_moves, boxes.lower, boxes.upper, counts.num_visits[row]
    start, stop = triples_of(index, row)
    # Nothing seen: the whole simplex.
    if num_visits == 0:
        lower[start:stop] = 0.0
        upper[start:stop] = 1.0
        return
    sum_lower = sum_upper = 0.0
    if radii.kind == KT:
        for j in range(start, stop):
            lower[j], upper[j] = scaled_bounds(radii, num_visits, float(num_moves[j]), radii.transition_log)
            sum_lower += lower[j]
            sum_upper += upper[j]
    else:
        variance_factor, offset = transition_terms(radii, num_visits)
        for j in range(start, stop):
            p_hat = num_moves[j] / num_visits
            radius = epsilon(radii, p_hat, variance_factor, offset)
            lower[j] = max(0.0, p_hat - radius)
            upper[j] = min(1.0, p_hat + radius)
            sum_lower += lower[j]
            sum_upper += upper[j]
    for j in range(start, stop):
        # P_hat is in the set, so neither bound may pass it; rounding could, where a radius is tiny.
        p_hat = num_moves[j] / num_visits
        least, most = 1.0 - (sum_upper - upper[j]), 1.0 - (sum_lower - lower[j])
        lower[j] = min(max(lower[j], least), p_hat)
        upper[j] = max(min(upper[j], most), p_hat)
    _make_room(start, stop, lower, upper)


@kernel
def _refresh_widened_box(index: LayoutArrays, counts: Counts, rule: BoxRule, row: int, boxes: Boxes) -> None:
    """The box of a row with unknown moves; where boxes hold at all times, within the last one if that is possible."""
    lower, upper, (start, stop) = boxes.lower, boxes.upper, triples_of(index, row)
    crossed, sum_lower, sum_upper = False, 0.0, 0.0
    for j in range(start, stop):
        least, most = _widened(counts, rule.radii, row, j)
        least, most = max(least, lower[j]), min(most, upper[j])
        # As above: within the last box if that leaves a distribution, else the present one alone.
        crossed |= least > most
        sum_lower += least
        sum_upper += most
    within = rule.gradual and not crossed and sum_lower <= 1.0 <= sum_upper
    sum_lower = sum_upper = 0.0
    for j in range(start, stop):
        least, most = _widened(counts, rule.radii, row, j)
        lower[j] = max(least, lower[j]) if within else least
        upper[j] = min(most, upper[j]) if within else most
        sum_lower += lower[j]
        sum_upper += upper[j]
    for j in range(start, stop):
        least, most = 1.0 - (sum_upper - upper[j]), 1.0 - (sum_lower - lower[j])
        lower[j] = max(lower[j], least)
        upper[j] = max(min(upper[j], most), lower[j])
    _make_room(start, stop, lower, upper)


@kernel
def _widened(counts: Counts, radii: RadiusRule, row: int, triple: int) -> tuple[float, float]:
    """lo and hi of a triple in a row with unknown moves, which may all have led to its successor, or none."""
    known, unknown, moves = counts.num_visits[row], counts.unknown_moves[row], counts.num_moves[triple]
    num = known + unknown
    if radii.kind == KT:
        lower = scaled_bounds(radii, num, float(moves), radii.transition_log)[0]
        return lower, scaled_bounds(radii, num, float(moves + unknown), radii.transition_log)[1]
    variance_factor, offset = transition_terms(radii, known)
    least, most = moves / num, (moves + unknown) / num
    lower = max(0.0, least - epsilon(radii, least, variance_factor, offset))
    return lower, min(1.0, most + epsilon(radii, most, variance_factor, offset))


@kernel
def _make_room(start: np.uint64, stop: np.uint64, lower: FloatArray, upper: FloatArray) -> None:
    """Undo what rounding may have done: sum lo > 1 or sum hi < 1, by a few units in the last place.

    The sums are rounded too: sums that are this near to 1 need room as well.
    """
    sum_lower = sum_upper = 0.0
    for j in range(start, stop):
        sum_lower += lower[j]
        sum_upper += upper[j]
    slack = 2.0 * (stop - start) * MACHINE_EPSILON
    # Rare: the box is a point but for rounding.
    if sum_lower > 1.0 - slack:
        for j in range(start, stop):
            lower[j] *= (1.0 - slack) / sum_lower
    if sum_upper < 1.0 + slack:
        for j in range(start, stop):
            upper[j] = min(1.0, upper[j] * (1.0 + slack) / sum_upper)
