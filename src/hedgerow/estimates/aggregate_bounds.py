"""The upper bound of the present policy's expected cost that follows from the aggregate certificate.

The policy pi has the nominal occupancy q_hat = q^{p_hat,pi} and the values V_lo <= V^{P,g,pi} <= V_hi under the best
and the worst of the boxes. For a generation with nu = N/n and y_hat = g_hat + p_hat . V (docs/aggregate.md)

    U_agg = sum q_hat g_hat + (SX + rad - sum N y_hat) / n
          + sum_r [ (q_hat - nu)^+ (UCB - g_hat) + (nu - q_hat)^+ (g_hat - LCB) ]
          + sum_r sum_y max { (hi - p_hat)^+ (f_hi - f_0)^+, (p_hat - lo)^+ (f_0 - f_lo)^+ }

    f_lo(y) = q_hat(r) V_lo(y) - nu(r) V(y),  f_hi(y) = q_hat(r) V_hi(y) - nu(r) V(y),  f_0 = p_hat . (f_lo + f_hi) / 2.

The first line is the sum over own episodes. The others come from the boxes where the present policy goes more often or
less often than the average own episode did, and are of second order: a policy that stays the same pays nothing there.

The second and the third line are not negative while centres lie in their boxes. The first line needs no robust values
and is computed first; a generation that cannot help ends there. Each evaluation looks at two generations per
constraint: the one that was best last time, and one other in turn.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.aggregate import Aggregate, AggregateRule, mean_value, start_generation
from hedgerow.estimates.aggregate_radius import aggregate_radius, log_term_of
from hedgerow.estimates.boxes import Boxes
from hedgerow.estimates.columns import Columns
from hedgerow.estimates.joint_cost import joint_cost_of_columns
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout
from hedgerow.model.positions import triples_of


class AggregateScratch(Bundle):
    """Buffers of an evaluation, allocated once per layout."""

    reach: FloatArray
    """(num_states,): of the states under p_hat"""
    q_hat: FloatArray
    """(num_rows,)"""
    low: FloatArray
    """V_lo (num_states,) of one constraint"""
    high: FloatArray
    """V_hi (num_states,)"""
    middle: FloatArray
    """(V_lo + V_hi) / 2 (num_states,)"""
    expected_middle: FloatArray
    """(num_rows,): p_hat . middle, where q_hat > 0"""
    expected: FloatArray
    """(num_rows,): p_hat . V of one generation, where N > 0"""


def make_aggregate_scratch(layout: Layout) -> AggregateScratch:
    states, rows = layout.num_states, layout.num_rows
    return AggregateScratch(*(np.zeros(size) for size in (states, rows, states, states, states, rows, rows)))


@kernel
def aggregate_bounds(
    index: Index,
    columns: Columns,
    policy: FloatArray,
    boxes: Boxes,
    rule: AggregateRule,
    aggregate: Aggregate,
    scratch: AggregateScratch,
    bounds: FloatArray,
) -> None:
    """bounds[i] = min(bounds[i], U_agg of `policy` (num_rows,)) for the watched constraints above their levels.

    Starts a generation first if one is due. `columns` hold the policy and the boxes.
    """
    numbers = aggregate.numbers
    if numbers.own >= numbers.next_start:
        start_generation(index, policy, rule, aggregate)
    if numbers.started == 0:
        return
    reached = False
    for i in rule.watched:
        if bounds[i] > rule.levels[i]:
            if not reached:
                _fill_occupancy(index, policy, aggregate.p_hat, scratch)
                reached = True
            bounds[i] = _least_bound(index, columns, boxes, rule, aggregate, scratch, i, bounds[i])
    numbers.turn += 1
    if numbers.turn >= min(numbers.started, len(aggregate.generation)):
        numbers.turn = 0


@kernel
def _fill_occupancy(index: Index, policy: FloatArray, p_hat: FloatArray, scratch: AggregateScratch) -> None:
    """q_hat by one pass from the first layer to the last."""
    reach, q_hat = scratch.reach, scratch.q_hat
    reach[:] = 0.0
    reach[0] = 1.0
    for r in range(len(q_hat)):
        q_hat[r] = mass = reach[r // index.num_actions] * policy[r]
        if mass > 0.0:
            start, stop = triples_of(index, r)
            for j in range(start, stop):
                reach[index.successor[j]] += mass * p_hat[j]


@kernel
def _least_bound(
    index: Index,
    columns: Columns,
    boxes: Boxes,
    rule: AggregateRule,
    aggregate: Aggregate,
    scratch: AggregateScratch,
    i: int,
    bound: float,
) -> float:
    """The least of `bound` and what two generations say of constraint i; notes which of them said less."""
    best, other, ready = aggregate.best[i], aggregate.numbers.turn, False
    least = np.inf
    for slot in (best, other):
        if aggregate.episodes[slot] > 0 and (slot != best or least == np.inf):
            score = _first_line(index, rule, aggregate, scratch, slot, i)
            if score < min(bound, least):
                if not ready:
                    _fill_robust_values(index, columns, boxes, aggregate.p_hat, scratch, i)
                    ready = True
                score += _other_lines(index, boxes, aggregate, scratch, slot, i)
            if score < least:
                least, aggregate.best[i] = score, slot
    return min(bound, least)


@kernel
def _first_line(
    index: Index, rule: AggregateRule, aggregate: Aggregate, scratch: AggregateScratch, slot: int, i: int
) -> float:
    """sum q_hat g_hat + (SX + rad - sum N y_hat) / n."""
    n, q_hat, nominal, expected = aggregate.episodes[slot], scratch.q_hat, 0.0, 0.0
    values, visits = aggregate.values[slot, i], aggregate.visits[slot]
    for r in range(len(q_hat)):
        nominal += q_hat[r] * aggregate.g_hat[r, i]
        if visits[r] > 0:
            scratch.expected[r] = mean = mean_value(index, r, aggregate.p_hat, values)
            expected += visits[r] * (aggregate.g_hat[r, i] + mean)
    log_term = log_term_of(rule.log_inverse_delta, len(rule.watched), aggregate.generation[slot])
    radius = aggregate_radius(log_term, aggregate.squares[slot, i], aggregate.ranges[slot, i])
    return float(nominal + (aggregate.sums[slot, i] + radius - expected) / n)


@kernel
def _fill_robust_values(
    index: Index, columns: Columns, boxes: Boxes, p_hat: FloatArray, scratch: AggregateScratch, i: int
) -> None:
    """V_hi and V_lo of constraint i; the latter is -1 times the largest of the negative costs."""
    low, high, middle, last = scratch.low, scratch.high, scratch.middle, len(scratch.low) - 1
    joint_cost_of_columns(index, columns, boxes.cost_upper, i, 1.0)
    for x in range(last):
        high[x] = columns.values[x]
    joint_cost_of_columns(index, columns, boxes.cost_lower, i, -1.0)
    for x in range(last):
        low[x] = -columns.values[x]
        middle[x] = 0.5 * (low[x] + high[x])
    low[last] = high[last] = middle[last] = 0.0
    for r in range(len(scratch.q_hat)):
        if scratch.q_hat[r] > 0.0:
            scratch.expected_middle[r] = mean_value(index, r, p_hat, middle)


@kernel
def _other_lines(
    index: Index, boxes: Boxes, aggregate: Aggregate, scratch: AggregateScratch, slot: int, i: int
) -> float:
    """The second and the third line: the boxes where the policy differs from the average own episode."""
    share, total = 1.0 / aggregate.episodes[slot], 0.0
    values, visits = aggregate.values[slot, i], aggregate.visits[slot]
    for r in range(len(scratch.q_hat)):
        q, nu = scratch.q_hat[r], visits[r] * share
        if q > nu:
            total += (q - nu) * (boxes.cost_upper[r, i] - aggregate.g_hat[r, i])
        else:
            total += (nu - q) * (aggregate.g_hat[r, i] - boxes.cost_lower[r, i])
        if q > 0.0 or nu > 0.0:
            total += _transition_error(index, boxes, aggregate.p_hat, values, scratch, r, q, nu)
    return total


@kernel
def _transition_error(
    index: Index,
    boxes: Boxes,
    p_hat: FloatArray,
    values: FloatArray,
    scratch: AggregateScratch,
    row: int,
    q: float,
    nu: float,
) -> float:
    """The third line of a row: at least (P - p_hat) . (q W - nu V) for P in the box and W between V_lo and V_hi."""
    start, stop = triples_of(index, row)
    if stop - start == 1:
        return 0.0
    f_0 = (q * scratch.expected_middle[row] if q > 0.0 else 0.0) - (nu * scratch.expected[row] if nu > 0.0 else 0.0)
    total = 0.0
    for j in range(start, stop):
        y = np.uint64(index.successor[j])
        base = nu * values[y] + f_0
        up = max(boxes.upper[j] - p_hat[j], 0.0) * (q * scratch.high[y] - base)
        down = max(p_hat[j] - boxes.lower[j], 0.0) * (base - q * scratch.low[y])
        total += max(up, down)  # one of them is not negative, for f_lo <= f_hi
    return total
