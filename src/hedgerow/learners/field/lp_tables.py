"""The loss and the costs of a linear program, row by row, from counts and bounds: where the LP learners differ.

With means l_hat and g_hat, a radius r and a width w of each row (x,a),

    loss   = l_hat - loss_radius r - loss_width w
    cost_i = g_hat_i + cost_radius r + cost_width w

and the first two terms of the costs are clipped to [0, 1] on request. Losses are not: a loss that is clipped at 0 ties
with all others while radii are large, and says nothing about which pair is less known.

The radius r = sqrt(Z / max(1, n)) bounds the error of a mean; Z is 2 ln(6 S |A| L T (m + 1)/delta) for Efroni et al.,
ln(2 R (m + 1) T/delta) / 2 for the radii of this package, R rows. The width bounds what wrong transitions add to the
costs of later layers, per unit of such costs:

    RADII        sum_x' epsilon(x,a,x')                    the radii of the transitions, each at most 1
    HALF_BOX     min(1, 1/2 sum_x' (hi - lo))              >= 1/2 |P - P'|_1 for all P, P' in the box
    HALF_SPREAD  min(1, 1/2 sum_x' max(hi - P_hat, P_hat - lo))   >= 1/2 |P - P_hat|_1 for all P in the box
    RADIUS       r                                         one number for everything (OptPess-LP)

For probabilities P and P' and values in [0, d], (P - P') V <= d 1/2 |P - P'|_1: the mass that moves can gain at most d.

P_hat of a row without visits is uniform over its successors; known transitions are their own P_hat, of width 0.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.boxes import Boxes, BoxRule
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.radii import EFRONI, RadiusRule, epsilon, transition_terms
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

RADII, HALF_BOX, HALF_SPREAD, RADIUS = 0, 1, 2, 3


class Tables(Bundle):
    """The coefficients of one learner."""

    width: int
    """RADII, HALF_BOX, HALF_SPREAD or RADIUS"""
    log_term: float
    """Z"""
    loss_radius: float
    cost_radius: float
    loss_width: FloatArray
    """(num_rows,)"""
    cost_width: FloatArray
    """(num_rows,)"""
    clip_costs: bool


def make_tables(
    rule: RadiusRule,
    layout: Layout,
    width: int,
    *,
    loss_radius: float,
    cost_radius: float,
    loss_width: FloatArray | float = 0.0,
    cost_width: FloatArray | float = 0.0,
    log_term: float | None = None,
    clip_costs: bool = False,
) -> Tables:
    """Tables with the radii of `rule`, or with a given Z; widths have one factor for all rows, or one for each."""
    of_loss, of_costs = (
        np.array(np.broadcast_to(each, layout.num_rows), dtype=float) for each in (loss_width, cost_width)
    )
    if log_term is None:
        log_term = 2.0 * rule.cost_log if rule.kind == EFRONI else 0.5 * rule.cost_log
    return Tables(width, log_term, float(loss_radius), float(cost_radius), of_loss, of_costs, clip_costs)


def optimistic_tables(rule: RadiusRule, layout: Layout) -> Tables:
    """Lower bounds of the loss and of the costs (OptCMDP)."""
    return make_tables(rule, layout, RADII, loss_radius=1.0, cost_radius=-1.0, clip_costs=True)


def layers_to_go(layout: Layout) -> FloatArray:
    """(num_rows,): L - k - 1, the most that an episode can cost after a row of layer k."""
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    return np.asarray(layout.steps - layer - 1, dtype=float)


@kernel
def mean_transition(index: Index, counts: Counts, rule: BoxRule, boxes: Boxes, row: int, triple: int) -> float:
    """P_hat of a triple of `row`."""
    if not rule.uncertain[row]:
        return float(boxes.lower[triple])
    if counts.num_visits[row] == 0:
        return float(1.0 / (index.row_start[row + 1] - index.row_start[row]))
    return float(counts.num_moves[triple] / counts.num_visits[row])


@kernel
def width_of_row(index: Index, counts: Counts, rule: BoxRule, boxes: Boxes, tables: Tables, row: int) -> float:
    """w of a row."""
    if tables.width == RADIUS:
        return sqrt(tables.log_term / max(1, counts.num_visits[row]))
    if not rule.uncertain[row]:
        return 0.0
    variance_factor, offset = transition_terms(rule.radii, counts.num_visits[row])
    total = 0.0
    for j in range(index.row_start[row], index.row_start[row + 1]):
        if tables.width == HALF_BOX:
            total += 0.5 * (boxes.upper[j] - boxes.lower[j])
        else:
            p_hat = mean_transition(index, counts, rule, boxes, row, j)
            if tables.width == RADII:
                total += min(1.0, epsilon(rule.radii, p_hat, variance_factor, offset))
            else:
                total += 0.5 * max(boxes.upper[j] - p_hat, p_hat - boxes.lower[j])
    return total if tables.width == RADII else min(1.0, total)


@kernel
def mean_with_radius(
    counts: Counts, rule: BoxRule, boxes: Boxes, row: int, column: int, radius: float, clip: bool
) -> float:
    """g_hat + radius of a column of sums, which may be negative; a known mean stays as it is."""
    if not rule.unknown_costs[row, column]:
        return float(boxes.cost_lower[row, column])
    known = counts.num_costs[row] - counts.unknown_costs[row, column]
    shifted = counts.cost_sums[row, column] / max(1, known) + radius
    return float(min(1.0, max(0.0, shifted)) if clip else shifted)
