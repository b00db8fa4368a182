"""The radius of the aggregate certificate: how far the sum of a generation may be from what it estimates.

    rad = R min { (log + psi(l) VV) / l : l = 1/2, 1/4, ..., 2^-J },     psi(l) = -ln(1 - l) - l,     J = 14
    log = ln(J m / (delta_A w_g)),     w_g = .9 / 40 for the generations g < 40, else .1 / ((g - 39)(g - 38))

The weights w_g sum to 1: the union bound over generations. 40 of them, each half as long again as the one before, last
20 * 1.5^40 = 2 * 10^8 own episodes. A generation thus costs ln 44 = 3.8 for good, while the usual (g + 1)(g + 2) costs
6 at 10^5 episodes. Mixing the values of l instead of taking the best is valid as well, and gives 1 % less.

    VV = 10, log = 10, R = 3   ->   71.588831,       VV = 0   ->   60
"""

from __future__ import annotations

from math import inf, log, log1p

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import Columns, joint_cost_of_columns
from hedgerow.confidence.boxes import Boxes
from hedgerow.model.kernel_layout import LayoutArrays, triples_of
from hedgerow.model.layout import Layout

NUM_RATES = 14
"""J"""
EQUAL_SHARES = 40
"""Generations that share .9 of delta_A"""


@kernel
def aggregate_radius(log_term: float, squares: float, scale: float) -> float:
    """rad for log, VV and R."""
    least, rate = inf, 1.0
    for _ in range(NUM_RATES):
        rate *= 0.5
        least = min(least, radius_at(rate, log_term, squares))
    return scale * least


@kernel
def radius_at(rate: float, log_term: float, squares: float) -> float:
    """(log + psi(l) VV) / l for one l = `rate`."""
    return (log_term + (-log1p(-rate) - rate) * squares) / rate


@kernel
def add_total(total: float, before: int, scale: float, sums: FloatArray, squares: FloatArray, i: int) -> None:
    """Add what a whole episode cost to a sum over `before` episodes, and to VV its distance from their mean."""
    away = (total - sums[i] / max(1, before)) / scale
    squares[i] += away * away
    sums[i] += total


@kernel
def log_term_of(log_inverse_delta: float, num_constraints: int, generation: int) -> float:
    """log for ln(1 / delta_A), m and g."""
    later = generation - EQUAL_SHARES + 1.0
    inverse_share = EQUAL_SHARES / 0.9 if later <= 0.0 else later * (later + 1.0) / 0.1
    return log_inverse_delta + log(NUM_RATES * num_constraints * inverse_share)


# --------------------------------------------------------------------------------------------------------------------
# The aggregate certificate: one sum over all episodes of the learner's own policy instead of one interval per pair.
#
# The box bound of a policy's cost adds up the worst cases of all rows, although the errors of rows do not add up. A
# *generation* freezes a function V on the states, per constraint, and then counts the episodes that the learner's
# policy plays:
#
#     n, N(r)      episodes, and visits of row r in them
#     SX           = sum of c + V(x')             over their steps: cost c, next state x'
#     VV           = sum of D^2 / R^2             over their episodes, D = sum over the steps of (c - g_hat(r)),
#                  + sum of d^2 / R^2             over their steps, d = V(x') - p_hat(r) . V
#
# with centres g_hat, p_hat from before the episode. With y(r) = g(r) + P(r) . V of the true means and transitions
#
#     sum_r N(r) y(r) <= SX + rad(VV)             at all times, for all generations and constraints,
#
# except with probability delta_A (`aggregate_radius`). docs/aggregate.md has the statement, its assumptions and the
# proof. `aggregate_bounds` derives a bound for the present policy.
#
# R bounds D and d from above. Where cost and next state of a step are one draw (`Knowledge.costs_drawn`), VV is the
# sum of (c - g_hat(r) + d)^2 / R^2 over the steps instead, and R = 1 + the largest difference of V within a layer.
# Where a cost or a row is known, its mean replaces what was drawn, without any error. V is the nominal value of the
# policy at the start of the generation: new generations fit the present policy better, old ones have more episodes.
# The last NUM_SLOTS are kept.


NUM_SLOTS = 8
"""Generations that are kept. The oldest has seen 94 to 96 % of all own episodes, and was never the best: an older one
has seen little more, and fits worse.
"""
FIRST_START = 20
"""Own episodes before the first generation; the next ones start after half as many again."""
LEAST_RANGE = 1e-6
"""The least R: it may be larger than needed, but not 0."""


class AggregateNumbers(Record):
    """Counters."""

    own: int
    """Episodes of the learner's policy counted so far"""
    started: int
    """Generations so far"""
    next_start: int
    """Own episodes after which the next one starts"""
    turn: int
    """The slot that is evaluated next, besides the best"""


class Aggregate(Bundle):
    """Centres and generations: all of it is state. A *slot* holds a generation, or none yet."""

    p_hat: FloatArray
    """(num_triples,): every row sums to 1"""
    g_hat: FloatArray
    """(num_rows, m), in [0, 1]"""
    values: FloatArray
    """V (slots, m, num_states)"""
    ranges: FloatArray
    """R (slots, m)"""
    sums: FloatArray
    """SX (slots, m)"""
    squares: FloatArray
    """VV (slots, m)"""
    visits: IntArray
    """N (slots, num_rows)"""
    episodes: IntArray
    """n (slots,)"""
    generation: IntArray
    """(slots,): 0, 1, ... in the order of their start; -1 for an empty slot"""
    closed: IntArray
    """(slots,): 1 if it counts no more"""
    best: IntArray
    """(m,): the slot that gave the least bound"""
    numbers: AggregateNumbers


class AggregateRule(Bundle):
    """What stays the same."""

    log_inverse_delta: float
    """ln(1 / delta_A)"""
    ceilings: FloatArray
    """(m,): what a constraint's costs of one episode never exceed in sum; L if nothing better is known"""
    levels: FloatArray
    """(m,): bounds at or below these, the thresholds, need not be improved"""
    watched: IntArray
    """The constraints that are bounded"""
    known_rows: NDArray[np.int8]
    """(num_rows,): 1 where p_hat is the truth"""
    known_costs: NDArray[np.int8]
    """(num_rows, m): 1 where g_hat is the truth"""
    per_step: bool
    """Whether cost and next state of a step are one draw: then each step has one factor, and R >= 1 + range of V"""


def make_aggregate(layout: Layout, boxes: Boxes) -> Aggregate:
    """The certificate before the first episode, from the boxes then: known values as centres, else uniform and 1/2."""
    m, sizes = boxes.cost_lower.shape[1], np.diff(layout.row_start)
    known = np.repeat(known_rows_of(layout, boxes), sizes)
    return Aggregate(
        p_hat=np.where(known, boxes.lower, np.repeat(1.0 / sizes, sizes)),
        g_hat=np.clip(np.clip(0.5, boxes.cost_lower, boxes.cost_upper), 0.0, 1.0),
        values=np.zeros((NUM_SLOTS, m, layout.num_states)),
        ranges=np.ones((NUM_SLOTS, m)),
        sums=np.zeros((NUM_SLOTS, m)),
        squares=np.zeros((NUM_SLOTS, m)),
        visits=np.zeros((NUM_SLOTS, layout.num_rows), dtype=np.int64),
        episodes=np.zeros(NUM_SLOTS, dtype=np.int64),
        generation=np.full(NUM_SLOTS, -1, dtype=np.int64),
        closed=np.zeros(NUM_SLOTS, dtype=np.int64),
        best=np.zeros(m, dtype=np.int64),
        numbers=AggregateNumbers(np.array([0, 0, FIRST_START, 0], dtype=np.int64)),
    )


def no_aggregate() -> Aggregate:
    """An empty one, for learners without a certificate."""
    none, num = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    return Aggregate(
        p_hat=np.zeros(0),
        g_hat=none.copy(),
        values=np.zeros((0, 0, 0)),
        ranges=none.copy(),
        sums=none.copy(),
        squares=none.copy(),
        visits=np.zeros((0, 0), dtype=np.int64),
        episodes=num.copy(),
        generation=num.copy(),
        closed=num.copy(),
        best=num.copy(),
        numbers=AggregateNumbers(),
    )


def make_aggregate_rule(
    layout: Layout,
    boxes: Boxes,
    log_inverse_delta: float,
    levels: FloatArray,
    *,
    ceilings: FloatArray | None = None,
    watched: IntArray | None = None,
    per_step: bool = False,
) -> AggregateRule:
    """The rule for thresholds `levels` (m,). Boxes that are points before the first episode stay known for ever."""
    m = len(levels)
    return AggregateRule(
        log_inverse_delta=float(log_inverse_delta),
        ceilings=np.full(m, float(layout.steps)) if ceilings is None else np.array(ceilings, dtype=np.float64),
        levels=np.array(levels, dtype=np.float64),
        watched=np.arange(m, dtype=np.int64) if watched is None else np.array(watched, dtype=np.int64),
        known_rows=known_rows_of(layout, boxes).astype(np.int8),
        known_costs=(boxes.cost_lower == boxes.cost_upper).astype(np.int8),
        per_step=per_step,
    )


def known_rows_of(layout: Layout, boxes: Boxes) -> NDArray[np.bool_]:
    """(num_rows,): where lo = hi for all successors."""
    return np.logical_and.reduceat(boxes.lower == boxes.upper, layout.row_start[:-1])


@kernel
def set_transition_centre(
    index: LayoutArrays, row: int, moves: IntArray, first: int, visits: int, aggregate: Aggregate
) -> None:
    """p_hat of a row = moves[first], moves[first + 1], ... / visits, as soon as there is one. Not for known rows."""
    if visits > 0:
        start, stop = triples_of(index, row)
        for j in range(start, stop):
            aggregate.p_hat[j] = moves[first + np.int64(j - start)] / visits


@kernel
def set_cost_centre(
    row: int,
    cost_sums: FloatArray,
    source: int,
    visits: int,
    cost_lower: FloatArray,
    cost_upper: FloatArray,
    aggregate: Aggregate,
) -> None:
    """g_hat of a row = cost_sums[source] / visits, 1/2 before the first visit, moved into [LCB, UCB] and [0, 1].

    Where LCB = UCB the cost is known, and its centre is that value.
    """
    for i in range(aggregate.g_hat.shape[1]):
        g_hat = cost_sums[source, i] / visits if visits > 0 else 0.5
        g_hat = min(max(g_hat, cost_lower[row, i]), cost_upper[row, i])
        aggregate.g_hat[row, i] = min(max(g_hat, 0.0), 1.0)


@kernel
def count_own_episode(
    index: LayoutArrays, rows: IntArray, triples: IntArray, costs: FloatArray, rule: AggregateRule, aggregate: Aggregate
) -> None:
    """Add an episode that the learner's policy played: its rows and triples (L,), costs (L, m).

    The centres must not know it yet: they are set afterwards.
    """
    aggregate.numbers.own += 1
    for slot in range(len(aggregate.generation)):
        # V was frozen before this episode, so the terms are martingale differences given the past (docs/aggregate.md).
        if aggregate.generation[slot] < 0 or aggregate.closed[slot] == 1:
            continue
        aggregate.episodes[slot] += 1
        for k in range(len(rows)):
            aggregate.visits[slot, rows[k]] += 1
        for i in rule.watched:
            total, miss, squares = 0.0, 0.0, 0.0
            for k in range(len(rows)):
                row = rows[k]
                mean = mean_value(index, row, aggregate.p_hat, aggregate.values[slot, i])
                # Where the law is known its mean stands for the draw: no error, and nothing added to VV.
                value = mean if rule.known_rows[row] == 1 else aggregate.values[slot, i, index.successor[triples[k]]]
                g_hat = aggregate.g_hat[row, i]
                cost = g_hat if rule.known_costs[row, i] == 1 else costs[k, i]
                total += cost + value
                if rule.per_step:
                    squares += (cost - g_hat + value - mean) * (cost - g_hat + value - mean)
                else:
                    miss += cost - g_hat
                    squares += (value - mean) * (value - mean)
            scale = aggregate.ranges[slot, i]
            aggregate.sums[slot, i] += total
            aggregate.squares[slot, i] += (miss * miss + squares) / (scale * scale)


@kernel
def close_generations(aggregate: Aggregate) -> None:
    """Stop all generations after an own episode that was cut short, or whose actions were not the policy's.

    Such an episode cannot be counted. Leaving it out because of what happened in it would spoil every sum to which
    later episodes are added. What the generations say of earlier episodes stays true, and the next evaluation starts a
    new one.
    """
    for slot in range(len(aggregate.generation)):
        if aggregate.generation[slot] >= 0 and aggregate.closed[slot] == 0:
            aggregate.closed[slot] = 1
            aggregate.numbers.next_start = aggregate.numbers.own


@kernel
def start_if_due(index: LayoutArrays, policy: FloatArray, rule: AggregateRule, aggregate: Aggregate) -> None:
    """Start a generation with `policy` (num_rows,) if enough own episodes were counted since the last one."""
    if aggregate.numbers.own >= aggregate.numbers.next_start:
        start_generation(index, policy, rule, aggregate)


@kernel
def start_generation(index: LayoutArrays, policy: FloatArray, rule: AggregateRule, aggregate: Aggregate) -> None:
    """Freeze V, the nominal values of `policy` (num_rows,) under the present centres, in a slot of its own."""
    slot, numbers = _free_slot(aggregate), aggregate.numbers
    aggregate.generation[slot] = numbers.started
    aggregate.closed[slot] = aggregate.episodes[slot] = 0
    for r in range(aggregate.visits.shape[1]):
        aggregate.visits[slot, r] = 0
    for i in range(len(rule.ceilings)):
        aggregate.sums[slot, i] = aggregate.squares[slot, i] = 0.0
        span = _nominal_values(index, policy, aggregate, i, aggregate.values[slot, i])
        aggregate.ranges[slot, i] = span + 1.0 if rule.per_step else max(span, rule.ceilings[i], LEAST_RANGE)
    numbers.started += 1
    numbers.next_start = numbers.own + max(numbers.own // 2, 1)


@kernel
def _free_slot(aggregate: Aggregate) -> int:
    """An empty slot, else the closed one of the fewest episodes, else the oldest."""
    chosen, least = 0, inf
    for slot in range(len(aggregate.generation)):
        if aggregate.generation[slot] < 0:
            return slot
        # Open ones come after all closed ones: 10^15 is more than any number of episodes.
        rank = aggregate.episodes[slot] if aggregate.closed[slot] == 1 else 1e15 + aggregate.generation[slot]
        if rank < least:
            chosen, least = slot, rank
    return chosen


@kernel
def _nominal_values(index: LayoutArrays, policy: FloatArray, aggregate: Aggregate, i: int, values: FloatArray) -> float:
    """V(x) = sum_a pi(a|x) [g_hat + p_hat . V] for constraint i; returns the largest difference within a layer."""
    state_start, widest = index.state_start, 0.0
    values[len(values) - 1] = 0.0
    for k in range(len(state_start) - 3, -1, -1):
        least, most = inf, -inf
        for x in range(state_start[k], state_start[k + 1]):
            total = 0.0
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                if policy[r] > 0.0:
                    total += policy[r] * (aggregate.g_hat[r, i] + mean_value(index, r, aggregate.p_hat, values))
            values[x] = total
            least, most = min(least, total), max(most, total)
        widest = max(widest, most - least)
    return widest


@kernel
def mean_value(index: LayoutArrays, row: int, p: FloatArray, values: FloatArray) -> float:
    """p . V of a row."""
    start, stop = triples_of(index, row)
    total = 0.0
    for j in range(start, stop):
        total += p[j] * values[np.uint64(index.successor[j])]
    return total


# --------------------------------------------------------------------------------------------------------------------
# The upper bound of the present policy's expected cost that follows from the aggregate certificate.
#
# The policy pi has the nominal occupancy q_hat = q^{p_hat,pi} and the values V_lo <= V^{P,g,pi} <= V_hi under the best
# and the worst of the boxes. For a generation with nu = N/n and y_hat = g_hat + p_hat . V (docs/aggregate.md)
#
#     U_agg = sum q_hat g_hat + (SX + rad - sum N y_hat) / n
#           + sum_r [ (q_hat - nu)^+ (UCB - g_hat) + (nu - q_hat)^+ (g_hat - LCB) ]
#           + sum_r sum_y max { (hi - p_hat)^+ (f_hi - f_0)^+, (p_hat - lo)^+ (f_0 - f_lo)^+ }
#
#     f_lo(y) = q_hat(r) V_lo(y) - nu(r) V(y),  f_hi(y) = q_hat(r) V_hi(y) - nu(r) V(y), f_0 = p_hat . (f_lo + f_hi) / 2
#
# The first line is the sum over own episodes. The others come from the boxes where the present policy goes more often
# or less often than the average own episode did, and are of second order: a policy that stays the same pays nothing
# there.
#
# The second and the third line are not negative while centres lie in their boxes. The first line needs no robust values
# and is computed first; a generation that cannot help ends there. Each evaluation looks at two generations per
# constraint: the one that was best last time, and one other in turn.


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
    index: LayoutArrays,
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
    start_if_due(index, policy, rule, aggregate)
    if numbers.started == 0:
        return
    reached = False
    for i in rule.watched:
        if bounds[i] > rule.levels[i]:
            if not reached:
                fill_occupancy(index, policy, aggregate.p_hat, scratch)
                reached = True
            bounds[i] = _least_bound(index, columns, boxes, rule, aggregate, scratch, i, bounds[i])
    numbers.turn += 1
    if numbers.turn >= min(numbers.started, len(aggregate.generation)):
        numbers.turn = 0


@kernel
def fill_occupancy(index: LayoutArrays, policy: FloatArray, p_hat: FloatArray, scratch: AggregateScratch) -> None:
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
    index: LayoutArrays,
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
            # The other lines are not negative while centres lie in their boxes: most generations end here.
            if score < min(bound, least):
                if not ready:
                    _fill_robust_values(index, columns, boxes, aggregate.p_hat, scratch, i)
                    ready = True
                score += _other_lines(index, boxes, aggregate, scratch, slot, i)
            if score < least:
                least, aggregate.best[i] = score, slot
    return min(bound, least)


@kernel
def least_certificate(
    index: LayoutArrays, columns: Columns, boxes: Boxes, rule: AggregateRule, aggregate: Aggregate,
    scratch: AggregateScratch, i: int, bound: float,
) -> float:  # fmt: skip
    """The least of `bound` and what all generations say of constraint i; `fill_occupancy` comes first.

    Nothing of the state changes, so that any policies may be asked about, in any order.
    """
    ready = False
    for slot in range(len(aggregate.generation)):
        if aggregate.generation[slot] >= 0 and aggregate.episodes[slot] > 0:
            score = _first_line(index, rule, aggregate, scratch, slot, i)
            if score < bound:
                if not ready:
                    _fill_robust_values(index, columns, boxes, aggregate.p_hat, scratch, i)
                    ready = True
                bound = min(bound, score + _other_lines(index, boxes, aggregate, scratch, slot, i))
    return bound


@kernel
def _first_line(
    index: LayoutArrays, rule: AggregateRule, aggregate: Aggregate, scratch: AggregateScratch, slot: int, i: int
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
    index: LayoutArrays, columns: Columns, boxes: Boxes, p_hat: FloatArray, scratch: AggregateScratch, i: int
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
    index: LayoutArrays, boxes: Boxes, aggregate: Aggregate, scratch: AggregateScratch, slot: int, i: int
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
    index: LayoutArrays,
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
