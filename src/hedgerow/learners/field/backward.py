"""What learners that plan by backward passes over an estimated world share: the estimates, and two steps of a pass.

P_hat(y)  = M(x,a,y) / N(x,a), uniform over the successors before the first visit; P where it is known
mean_i    = the mean observed cost i, the loss last, 0 before the first visit; the mean where it is known
radius_i  = xi(x,a), how far that mean may be off; 0 where it is known
spread    = sum_y epsilon(x,a,y), how far P_hat may be off in the 1-norm; 0 where P is known
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.boxes import Boxes, BoxRule
from hedgerow.confidence.counts import Counts
from hedgerow.confidence.radii import epsilon, transition_terms
from hedgerow.confidence.sets import LossSets, Sets
from hedgerow.learners.statistics import Statistics
from hedgerow.model.kernel_layout import LayoutArrays, index_of, triples_of


class Centres(Bundle):
    """The estimates at the centres of the confidence sets, made from the counts and boxes beside them."""

    index: LayoutArrays
    sets: Sets
    losses: LossSets
    counts: Counts
    rule: BoxRule
    boxes: Boxes
    p_hat: FloatArray
    """(num_triples,)"""
    means: FloatArray
    """(num_rows, m + 1): the costs and, last, the loss"""
    radii: FloatArray
    """(num_rows, m + 1)"""
    spread: FloatArray
    """(num_rows,)"""
    steps_left: FloatArray
    """(num_rows,): L - k in layer k"""


def make_centres(seen: Statistics) -> Centres:
    """The centres of what `seen` has counted so far; `centre` keeps those of single rows up to date."""
    layout, columns = seen.layout, seen.view.num_constraints + 1
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    made = Centres(
        index=index_of(layout),
        sets=seen.layer,
        losses=seen.losses,
        counts=seen.counts,
        rule=seen.box_rule,
        boxes=seen.boxes,
        p_hat=np.zeros(layout.num_triples),
        means=np.zeros((layout.num_rows, columns)),
        radii=np.zeros((layout.num_rows, columns)),
        spread=np.zeros(layout.num_rows),
        steps_left=(layout.steps - layer).astype(np.float64),
    )
    centre(made, np.arange(layout.num_rows, dtype=np.int64))
    return made


@kernel
def centre(centres: Centres, rows: IntArray) -> None:
    """Bring the given rows up to date."""
    for row in rows:
        _centre_moves(centres, row)
        counts = centres.counts
        for i in range(centres.means.shape[1]):
            if centres.rule.unknown_costs[row, i]:
                num = counts.num_costs[row] - counts.unknown_costs[row, i]
                centres.means[row, i] = counts.cost_sums[row, i] / max(1, num)
                centres.radii[row, i] = centres.boxes.xi[row]
            else:
                centres.means[row, i], centres.radii[row, i] = centres.boxes.cost_lower[row, i], 0.0


@kernel
def _centre_moves(centres: Centres, row: int) -> None:
    start, stop = triples_of(centres.index, row)
    num, spread = centres.counts.num_visits[row], 0.0
    if centres.rule.uncertain[row]:
        variance_factor, offset = transition_terms(centres.rule.radii, num)
        for j in range(start, stop):
            # Without a visit any distribution will do: the radii then allow every other one.
            p_hat = centres.counts.num_moves[j] / num if num > 0 else 1.0 / (stop - start)
            centres.p_hat[j] = p_hat
            spread += epsilon(centres.rule.radii, p_hat, variance_factor, offset)
    else:
        for j in range(start, stop):
            centres.p_hat[j] = centres.boxes.lower[j]
    centres.spread[row] = spread


@kernel
def expected_next(index: LayoutArrays, p_hat: FloatArray, values: FloatArray, row: int, i: int) -> float:
    """sum_y p_hat(y) values(y, i) over the successors of a row; `values` is (num_states, columns)."""
    total = 0.0
    start, stop = triples_of(index, row)
    for j in range(start, stop):
        total += p_hat[j] * values[index.successor[j], i]
    return total


@kernel
def softmax(index: LayoutArrays, state: int, log_policy: FloatArray, policy: FloatArray) -> None:
    """Normalise the logits that `log_policy` (num_rows,) has for the actions of a state, and write the policy."""
    first = state * index.num_actions
    top, total = log_policy[first], 0.0  # logits minus the largest one: no exponential overflows
    for r in range(first, first + index.num_actions):
        top = max(top, log_policy[r])
    for r in range(first, first + index.num_actions):
        total += exp(log_policy[r] - top)
    shift = top + log(total)
    for r in range(first, first + index.num_actions):
        log_policy[r] -= shift
        policy[r] = exp(log_policy[r])
