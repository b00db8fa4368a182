"""How C-OPS chooses the members of its pool: the certified mixture of least estimated loss.

    min  sum_j w_j v_j    with  sum_j w_j U_ij <= alpha_i for all i,    w >= 0, sum w = 1

v_j is the estimated loss of candidate j, minus a bonus for what was seen rarely; it decides what is played, never
whether that is safe. U_j is the least of the bounds that the boxes, the balls, the aggregate certificate and the
anchored bound give. The solution mixes m + 1 candidates at most. Candidates are

    the baseline, the policy of mirror descent, the members so far;
    policies of least v + theta^T cost, as theta grows from 0: by backward induction under estimated transitions;
    each of these followed only from some layer on, or only in one layer, and the baseline elsewhere.

The last are what the anchored bound makes cheap. Bounds are expensive and hardly any candidate is worth one, so the
program begins with estimated costs in their place. Its solution names the candidates whose bounds are computed next,
until all that it mixes have theirs. When MOST_BOUNDED have one, those without leave.

The pool is chosen anew before the episodes 0, 5, 10, ..., from 125 on whenever their number has grown by 1/25. Each
time what was seen of losses so far is made to count 1/25 less, so that in episode t a loss of episode s weighs about
s/t: losses may change, and a plain mean notices it too late.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.aggregate import aggregate_bounds
from hedgerow.confidence.anchored import AnchoredScratch, anchored_cost, load_anchored, make_anchored_scratch
from hedgerow.confidence.balls import joint_cost_with_balls
from hedgerow.confidence.bounds import Columns, joint_costs_of_columns, load_columns, make_columns
from hedgerow.confidence.sets import ANCHORED, BALL, BOX, CERTIFICATE
from hedgerow.environments.scores import forward
from hedgerow.learners.ops.state import Core
from hedgerow.model.kernel_layout import LayoutArrays, triples_of
from hedgerow.model.layout import Layout
from hedgerow.planning.decomposition import ABSENT, BASIC, READY, Master, make_master, optimise, refactor

MULTIPLIERS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 25.0, 60.0)
"""theta of the candidates; the policy of least cost is one more"""
OPTIMISM = 0.5
"""The bonus is OPTIMISM sqrt(ln t / (2 n)) after n visits"""
MOST_CANDIDATES, MOST_BOUNDED = 256, 64
MEMORY = 4_000_000
"""Numbers in the table of candidates, at most"""
LEAST_WEIGHT, ROUNDING = 1e-9, 1e-12
FIRST_STEP, GROWTH = 5, 25
FADING = 1.0 - 1.0 / GROWTH
"""What the losses seen so far weigh after a choice"""


class ChoiceTallies(Record):
    """How many candidates there are."""

    count: int
    bounded: int
    """Those with a bound"""


class Choice(Bundle):
    """Buffers; nothing outlives a call."""

    policies: FloatArray
    """(candidates, num_rows); 0 is the baseline"""
    values: FloatArray
    """v (candidates,)"""
    costs: FloatArray
    """(candidates, m): estimated costs, then U"""
    reasons: IntArray
    """(candidates, m)"""
    exact: IntArray
    """(candidates,): 1 where `costs` are bounds"""
    loss: FloatArray
    """(num_rows,): estimated losses minus the bonus"""
    g_hat: FloatArray
    """(num_rows, m)"""
    weighted: FloatArray
    """(num_rows,)"""
    future: FloatArray
    """(num_states,): values of a backward pass"""
    layer: IntArray
    """(num_rows,)"""
    master: Master
    columns: Columns
    anchored: AnchoredScratch
    tallies: ChoiceTallies


def make_choice(layout: Layout, num_constraints: int, num_binding: int) -> Choice:
    """Buffers for as many candidates as memory allows."""
    most = max(8 + 2 * num_binding, min(MOST_CANDIDATES, MEMORY // layout.num_rows))
    return Choice(
        policies=np.zeros((most, layout.num_rows)),
        values=np.zeros(most),
        costs=np.zeros((most, num_constraints)),
        reasons=np.zeros((most, num_constraints), dtype=np.int64),
        exact=np.zeros(most, dtype=np.int64),
        loss=np.zeros(layout.num_rows),
        g_hat=np.zeros((layout.num_rows, num_constraints)),
        weighted=np.zeros(layout.num_rows),
        future=np.zeros(layout.num_states),
        layer=layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions].astype(np.int64),
        master=make_master(most, num_binding),
        columns=make_columns(layout),
        anchored=make_anchored_scratch(layout),
        tallies=ChoiceTallies(),
    )


@kernel
def choose(core: Core, choice: Choice) -> None:
    """Choose the members of the pool for the next episodes, from what is known now."""
    _estimate(core, choice)
    _collect(core, choice)
    solved = _solve(core, choice)
    _take(core, choice, solved)
    pool, t = core.pool, core.state.numbers.episode
    for r in range(len(pool.visits)):
        pool.loss_sums[r] *= FADING
        pool.visits[r] *= FADING
    pool.numbers.plans += 1
    pool.numbers.due = t + max(FIRST_STEP, t // GROWTH)


@kernel
def _estimate(core: Core, choice: Choice) -> None:
    """p_hat of the pool, g_hat and the optimistic losses, from what was seen so far."""
    pool, boxes, counts, laws = core.pool, core.state.boxes, core.state.counts, core.sets.rule.box.laws
    horizon = log(max(2.0, float(core.state.numbers.episode)))
    for r in range(len(choice.loss)):
        place = laws.moves_at[r]
        start, stop = core.index.row_start[r], core.index.row_start[r + 1]
        first, visits = core.index.row_start[place], counts.num_visits[place]
        for i in range(stop - start):
            if core.sets.rule.box.uncertain[r] == 0:
                pool.p_hat[start + i] = boxes.lower[start + i]
            else:
                pool.p_hat[start + i] = counts.num_moves[first + i] / visits if visits > 0 else 1.0 / (stop - start)
        place = laws.costs_at[r]
        num = counts.num_costs[place]
        for i in range(choice.g_hat.shape[1]):
            low, high = max(boxes.cost_lower[r, i], 0.0), min(boxes.cost_upper[r, i], 1.0)
            mean = counts.cost_sums[place, i] / num if num > 0 else 0.5 * (low + high)
            choice.g_hat[r, i] = min(max(mean, low), high)
        n = pool.visits[r]
        choice.loss[r] = (pool.loss_sums[r] / n if n > 0.0 else 0.0) - OPTIMISM * sqrt(horizon / (2.0 * max(1.0, n)))


# Candidates ----------------------------------------------------------------------------------------------------------


@kernel
def _collect(core: Core, choice: Choice) -> None:
    """All candidates, with v and estimated costs."""
    tallies, pool, binding = choice.tallies, core.pool, core.baseline.binding
    tallies.count = tallies.bounded = 0
    copy_into(core.baseline.policies[0], choice.policies[0])
    _offer(core, choice)
    for i in range(len(core.baseline.costs)):  # known, and needs no bound
        choice.costs[0, i] = core.baseline.costs[i]
    choice.exact[0] = 1
    copy_into(core.state.policy, choice.policies[tallies.count])
    _offer(core, choice)
    for j in range(pool.numbers.size):
        if tallies.count < len(choice.values):
            copy_into(pool.policies[j], choice.policies[tallies.count])
            _offer(core, choice)
    several = 1 if len(binding) > 1 else 0
    for d in range(len(binding) + several):
        for theta in MULTIPLIERS:
            _offer_least(core, choice, 1.0, theta, d)
        _offer_least(core, choice, 0.0, 1.0, d)
    _offer_deviations(core, choice)


@kernel
def _offer(core: Core, choice: Choice) -> None:
    """Evaluate the policy at the next free place, and keep it unless an equal one is there."""
    place, m = choice.tallies.count, choice.g_hat.shape[1]
    policy = choice.policies[place]
    choice.values[place] = _value(core.index, core.pool.p_hat, policy, choice.loss, choice.future)
    for i in range(m):
        for r in range(len(policy)):
            choice.weighted[r] = choice.g_hat[r, i]
        choice.costs[place, i] = _value(core.index, core.pool.p_hat, policy, choice.weighted, choice.future)
    for j in range(place):
        same = choice.values[j] == choice.values[place]
        for i in range(m):
            same &= j > 0 and choice.costs[j, i] == choice.costs[place, i]
        if same:
            return
    choice.exact[place] = 0
    choice.tallies.count += 1


@kernel
def _value(index: LayoutArrays, p: FloatArray, policy: FloatArray, rewards: FloatArray, future: FloatArray) -> float:
    """sum of q `rewards` (num_rows,) of a policy under transitions p (num_triples,)."""
    last = len(future) - 1
    future[last] = 0.0
    for x in range(last - 1, -1, -1):
        total = 0.0
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            if policy[r] > 0.0:
                total += policy[r] * (rewards[r] + _ahead(index, p, r, future))
        future[x] = total
    return float(future[0])


@kernel
def _ahead(index: LayoutArrays, p: FloatArray, row: int, future: FloatArray) -> float:
    total = 0.0
    start, stop = triples_of(index, row)
    for j in range(start, stop):
        total += p[j] * future[index.successor[j]]
    return total


@kernel
def _offer_least(core: Core, choice: Choice, share: float, theta: float, direction: int) -> None:
    """Offer the policy of least share v + theta cost, of one constraint that binds, or behind the last one of all."""
    if choice.tallies.count == len(choice.values):
        return
    binding, weighted, index = core.baseline.binding, choice.weighted, core.index
    for r in range(len(weighted)):
        cost = 0.0
        for b in range(len(binding)):
            if direction == b or direction == len(binding):
                cost += choice.g_hat[r, binding[b]]
        weighted[r] = share * choice.loss[r] + theta * cost
    policy, future, last = choice.policies[choice.tallies.count], choice.future, len(choice.future) - 1
    future[last] = 0.0
    for x in range(last - 1, -1, -1):
        first, best, least = x * index.num_actions, 0, np.inf
        for a in range(index.num_actions):
            policy[first + a] = 0.0
            value = weighted[first + a] + _ahead(index, core.pool.p_hat, first + a, future)
            if value < least:
                best, least = a, value
        policy[first + best] = 1.0
        future[x] = least
    _offer(core, choice)


@kernel
def _offer_deviations(core: Core, choice: Choice) -> None:
    """Offer the candidates so far from each layer on, and in each layer only; of long episodes a part of the layers."""
    bases, steps, room = choice.tallies.count, len(core.index.state_start) - 2, len(choice.values)
    stride = 1
    while (bases - 1) * 2 * ((steps - 1) // stride) > room - bases and stride < steps:
        stride += 1
    for j in range(1, bases):
        for k in range(steps - 1, -1, -stride):
            for only in range(2):
                if choice.tallies.count < room and (k > 0 or only == 1):
                    _deviate(core, choice, j, k, only == 1)


@kernel
def _deviate(core: Core, choice: Choice, j: int, layer: int, only: bool) -> None:
    """Offer candidate j from a layer on, or in it only, and the baseline elsewhere."""
    policy, base = choice.policies[choice.tallies.count], core.baseline.policies[0]
    for r in range(len(policy)):
        inside = choice.layer[r] == layer if only else choice.layer[r] >= layer
        policy[r] = choice.policies[j, r] if inside else base[r]
    _offer(core, choice)


# Bounds and weights --------------------------------------------------------------------------------------------------


@kernel
def certify(core: Core, choice: Choice, policy: FloatArray, bounds: FloatArray, reasons: IntArray) -> None:
    """U (m,) of a policy (num_rows,), at most the ceilings, and which set gave each.

    Like `bound_policy` of the layer, but every bound is computed, also below the thresholds: cheap members make room
    for dear ones.
    """
    sets, columns, baseline = core.sets, choice.columns, core.baseline
    index, boxes, before = sets.index, sets.boxes, sets.scratch.before
    load_columns(index, boxes.lower, boxes.upper, policy, columns)
    joint_costs_of_columns(index, columns, boxes.cost_upper, bounds)
    choice.anchored.columns.kept[0] = 0
    load_anchored(index, boxes, policy, baseline.policies[0], choice.anchored)
    for i in range(len(bounds)):
        reasons[i] = BOX
        cost = anchored_cost(index, policy, baseline.policies[0], boxes, baseline.costs[i], i, choice.anchored)
        _lower(bounds, reasons, i, cost, ANCHORED)
    if len(sets.balls.radius) > 0:
        for i in baseline.binding:
            cost = joint_cost_with_balls(index, columns, sets.rule.ball, sets.balls, boxes.cost_upper, i)
            _lower(bounds, reasons, i, cost, BALL)
    if len(sets.aggregate.generation) > 0:
        copy_into(bounds, before)
        rule, certificate = sets.rule.aggregate, sets.scratch.certificate
        aggregate_bounds(index, columns, policy, boxes, rule, sets.aggregate, certificate, before)
        for i in range(len(bounds)):
            _lower(bounds, reasons, i, before[i], CERTIFICATE)
    for i in range(len(bounds)):
        bounds[i] = min(bounds[i], baseline.ceilings[i])


@kernel
def _lower(bounds: FloatArray, reasons: IntArray, i: int, cost: float, reason: int) -> None:
    if cost < bounds[i]:
        bounds[i], reasons[i] = cost, reason


@kernel
def _solve(core: Core, choice: Choice) -> bool:
    """The mixture of least v, all of whose members have their bounds; False if rounding prevents it."""
    master, tallies = choice.master, choice.tallies
    while True:
        _prepare(core, choice)
        if not optimise(master):
            return False
        missing = False
        for j in range(1, tallies.count):
            if master.state[j] == BASIC and choice.exact[j] == 0:
                missing = True
                tallies.bounded += 1
                certify(core, choice, choice.policies[j], choice.costs[j], choice.reasons[j])
                choice.exact[j] = 1
        if not missing:
            return True


@kernel
def _prepare(core: Core, choice: Choice) -> None:
    """The program, with the basis of the baseline alone and all slacks. Costs are divided by alpha, values by L."""
    master, baseline, columns = choice.master, core.baseline, len(choice.values)
    binding, full = baseline.binding, choice.tallies.bounded >= MOST_BOUNDED
    steps = float(len(core.index.state_start) - 2)
    for j in range(len(master.prices)):
        master.prices[j], master.state[j] = 0.0, ABSENT
    for j in range(choice.tallies.count):
        if choice.exact[j] or not full:
            master.state[j] = READY
        master.prices[j] = choice.values[j] / steps
        master.entries[j, 0] = 1.0
        for b in range(len(binding)):
            master.entries[j, b + 1] = choice.costs[j, binding[b]] / _unit(core, binding[b])
    master.right[0] = 1.0
    master.basis[0], master.state[0] = 0, BASIC
    for b in range(len(binding)):
        master.right[b + 1] = baseline.thresholds[binding[b]] / _unit(core, binding[b])
        for row in range(len(master.right)):
            master.entries[columns + b, row] = 1.0 if row == b + 1 else 0.0
        master.state[columns + b] = BASIC
        master.basis[b + 1] = columns + b
    master.tallies.stalled = 0
    refactor(master)


@kernel
def _unit(core: Core, i: int) -> float:
    """What costs are divided by."""
    return float(max(core.baseline.thresholds[i], 1e-3 * core.baseline.ceilings[i]))


@kernel
def _take(core: Core, choice: Choice, solved: bool) -> None:
    """The solution as the members of the pool, rounded to the safe side."""
    pool, master = core.pool, choice.master
    size, total = 0, 0.0
    for place in range(len(master.basis)):
        j, weight = master.basis[place], master.x[place]
        if solved and 0 < j < choice.tallies.count and weight > LEAST_WEIGHT:
            copy_into(choice.policies[j], pool.policies[size])
            copy_into(choice.costs[j], pool.bounds[size])
            for i in range(pool.reasons.shape[1]):
                pool.reasons[size, i] = choice.reasons[j, i]
            pool.weights[size] = weight
            total += weight
            size += 1
    pool.numbers.size = size
    _round_down(core, total)
    occupy(core)


@kernel
def occupy(core: Core) -> None:
    """The occupancies of the pool and of the baseline under the transitions of the pool."""
    pool, size = core.pool, core.pool.numbers.size
    forward(core.index, pool.p_hat, core.baseline.policies[0], core.pool_rule.reach, pool.baseline)
    for r in range(len(pool.occupancy)):
        pool.occupancy[r] = pool.reals.base * pool.baseline[r]
    for j in range(size):
        forward(core.index, pool.p_hat, pool.policies[j], core.pool_rule.reach, core.pool_rule.q)
        for r in range(len(pool.occupancy)):
            pool.occupancy[r] += pool.weights[j] * core.pool_rule.q[r]


@kernel
def _round_down(core: Core, total: float) -> None:
    """Scale the weights of the members, whose sum is `total`, until sum w U + w_0 beta <= alpha for certain."""
    pool, baseline = core.pool, core.baseline
    factor = 1.0 / total if total > 1.0 else 1.0
    for i in baseline.binding:
        above = 0.0  # what the members cost beyond the baseline
        for j in range(pool.numbers.size):
            above += pool.weights[j] * (pool.bounds[j, i] - baseline.costs[i])
        room = max(baseline.thresholds[i] - baseline.costs[i] - ROUNDING * baseline.ceilings[i], 0.0)
        if above * factor > room:
            factor = room / above
    base = 1.0
    for j in range(pool.numbers.size):
        pool.weights[j] *= factor
        base -= pool.weights[j]
    pool.reals.base = max(base, 0.0)
