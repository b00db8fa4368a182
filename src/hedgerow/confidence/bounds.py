"""One step back through the boxes of a policy, for all rows of a layer at once.

For a policy pi and values f on layer k + 1 the step computes, for every state x of layer k,

    f(x) = sum_a pi(a|x) max { p . f : lo <= p <= hi, sum p = 1 },          p, lo, hi of row (x,a).

The maximum fills greedily, best successor first (GREEDY of COMP-UOB). With phi = min f and because p sums to 1,

    max p . f = phi + sum_y (f(y) - phi) p(y),   p(y) = lo(y) + min(hi(y) - lo(y), mass that is left),

so successors of value phi are never looked at: an indicator needs a single one, p = min(hi, 1 - sum of the other lo),
and states from which the target cannot be reached cost nothing.

The order of the successors is the same for all rows of a layer. Boxes are therefore stored by *column*: column y holds
the entries (x, a, y) of all rows with pi(a|x) > 0, and a column is applied to all rows in one loop over neighbouring
numbers; the successors of a single row are never sorted. In a sparse support the entries of a column name their rows.

    f = (1, .5, 0), lo = (.1, .2, .1), hi = (.5, .9, .6)   ->   p = (.5, .4, .1), value .7
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import ONE, LayoutArrays, Positions, first_gap, sort_by_key, states_of, triples_of
from hedgerow.model.layout import Layout


class Columns(Bundle):
    """The boxes of one policy by successor, and the buffers of a backward pass. Allocated once per layout.

    A *slot* is a row with pi(a|x) > 0; slots are numbered like rows.
    """

    start: Positions
    """(num_states,): where the column of each state begins; it has room for all triples that lead there"""
    stop: Positions
    """(num_states,): where it ends under the loaded policy"""
    slot: Positions
    """(num_triples,): the slot of each entry, counted from the first slot of its layer"""
    lower: FloatArray
    """(num_triples,): lo of each entry"""
    width: FloatArray
    """(num_triples,): hi - lo of each entry"""
    first_slot: Positions
    """(num_states,): state x has the slots first_slot[x] : first_slot[x + 1]"""
    row: IntArray
    """(num_rows,): the row of each slot"""
    slot_of: IntArray
    """(num_rows,): the slot of each row; -1 if it has none"""
    entry: Positions
    """(num_triples,): where the triples of rows with a slot stand"""
    kept: IntArray
    """(1,): 1 while the entries are kept in step with the boxes, see `keep_columns`"""
    weight: FloatArray
    """(num_rows,): pi of each slot"""
    rest: FloatArray
    """(num_rows,): 1 - sum of lo of each slot"""
    values: FloatArray
    """(num_states,): f, filled from the last layer to the first"""
    left: FloatArray
    """(rows of the largest layer,): mass that is left while columns are applied"""
    gain: FloatArray
    """(rows of the largest layer,): sum of (f - phi) p so far"""
    order: Positions
    """(size of the largest layer,): the states above phi, best first"""
    key: FloatArray
    """(size of the largest layer,): their values"""
    states: IntArray
    """(num_states,): 0, 1, ...: all targets"""
    caps: FloatArray
    """(num_states,): how much mass each state can hold at most, see `state_caps`"""


def make_columns(layout: Layout) -> Columns:
    """Fresh buffers; `load_columns` fills them."""
    states, rows, triples, widest = layout.num_states, layout.num_rows, layout.num_triples, max(layout.layer_sizes)
    incoming = np.bincount(layout.successor, minlength=states)
    return Columns(
        start=np.concatenate(([0], np.cumsum(incoming)[:-1])).astype(np.uint64),
        stop=np.zeros(states, dtype=np.uint64),
        slot=np.zeros(triples, dtype=np.uint64),
        lower=np.zeros(triples),
        width=np.zeros(triples),
        first_slot=np.zeros(states, dtype=np.uint64),
        row=np.zeros(rows, dtype=np.int64),
        slot_of=np.full(rows, -1, dtype=np.int64),
        entry=np.zeros(triples, dtype=np.uint64),
        kept=np.zeros(1, dtype=np.int64),
        weight=np.zeros(rows),
        rest=np.zeros(rows),
        values=np.zeros(states),
        left=np.zeros(widest * layout.num_actions),
        gain=np.zeros(widest * layout.num_actions),
        order=np.zeros(widest, dtype=np.uint64),
        key=np.zeros(widest),
        states=np.arange(states, dtype=np.int64),
        caps=np.ones(states),
    )


@kernel
def load_columns(
    index: LayoutArrays, lower: FloatArray, upper: FloatArray, policy: FloatArray, columns: Columns
) -> None:
    """Sort the boxes (num_triples,) of the rows that `policy` (num_rows,) plays into `columns`."""
    first_slot, stop = columns.first_slot, columns.stop
    for x in range(len(stop)):
        stop[x] = columns.start[x]
    num_slots = columns.kept[0] = 0
    for k in range(len(index.state_start) - 2):
        first_of_layer = num_slots
        for x in range(index.state_start[k], index.state_start[k + 1]):
            first_slot[x] = num_slots
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                columns.slot_of[r] = -1
                if policy[r] > 0.0:
                    columns.row[num_slots] = r
                    columns.slot_of[r] = num_slots
                    columns.weight[num_slots] = policy[r]
                    columns.rest[num_slots] = _load_row(index, lower, upper, r, num_slots - first_of_layer, columns)
                    num_slots += 1
    first_slot[len(first_slot) - 1] = num_slots


@kernel
def _load_row(
    index: LayoutArrays, lower: FloatArray, upper: FloatArray, row: int, slot: int, columns: Columns
) -> float:
    """Append the triples of one row to their columns; returns what their lower bounds leave of mass 1."""
    rest = 1.0
    start, stop = triples_of(index, row)
    for j in range(start, stop):
        y = np.uint64(index.successor[j])
        entry = columns.stop[y]
        columns.stop[y] = entry + ONE
        columns.entry[j] = entry
        columns.slot[entry] = slot
        columns.lower[entry] = lower[j]
        columns.width[entry] = upper[j] - lower[j]
        rest -= lower[j]
    return max(rest, 0.0)


@kernel
def keep_columns(
    index: LayoutArrays, lower: FloatArray, upper: FloatArray, policy: FloatArray, columns: Columns
) -> None:
    """`load_columns` for a policy that plays mostly the same rows as before, in boxes of which few change. From now on
    pass the changed ones to `update_columns`.
    """
    # The sorting depends on which rows are played, not on how often: mostly only the weights change.
    same = columns.kept[0] == 1
    for r in range(len(policy)):
        same &= (policy[r] > 0.0) == (columns.slot_of[r] >= 0)
    if not same:
        load_columns(index, lower, upper, policy, columns)
        columns.kept[0] = 1
        return
    for r in range(len(policy)):
        if policy[r] > 0.0:
            columns.weight[columns.slot_of[r]] = policy[r]


@kernel
def update_columns(index: LayoutArrays, lower: FloatArray, upper: FloatArray, rows: IntArray, columns: Columns) -> None:
    """Copy the changed boxes of some rows into the columns, if these are kept."""
    if columns.kept[0] == 0:
        return
    for r in rows:
        slot = columns.slot_of[r]
        if slot >= 0:
            rest = 1.0
            start, stop = triples_of(index, r)
            for j in range(start, stop):
                entry = columns.entry[j]
                columns.lower[entry] = lower[j]
                columns.width[entry] = upper[j] - lower[j]
                rest -= lower[j]
            columns.rest[slot] = max(rest, 0.0)


@kernel
def step_back(index: LayoutArrays, columns: Columns, k: int, phi: float, count: int) -> None:
    """f of layer k into `values`, where f of layer k + 1 is `key` on order[:count], best first, and phi elsewhere."""
    first_slot, left, gain = columns.first_slot, columns.left, columns.gain
    first, last = states_of(index, k)
    base = first_slot[first]
    num_slots = first_slot[last] - base
    for s in range(num_slots):
        left[s] = columns.rest[base + s]
        gain[s] = 0.0
    # Best successor first, for all rows of the layer at once: this is GREEDY of COMP-UOB, column by column.
    for i in range(count):
        _apply_column(columns, columns.order[i], columns.key[i] - phi, num_slots)
    for x in range(first, last):
        total = 0.0
        for s in range(first_slot[x], first_slot[x + ONE]):
            total += columns.weight[s] * (phi + gain[s - base])
        columns.values[x] = total


@kernel
def _apply_column(columns: Columns, y: int, value: float, num_slots: np.uint64) -> None:
    """Hand mass to successor y, which is worth `value`: gain += value p(y)."""
    lower, width, left, gain = columns.lower, columns.width, columns.left, columns.gain
    start, stop = columns.start[y], columns.stop[y]
    if stop - start == num_slots:  # of all slots: entry start + s belongs to slot s
        for s in range(num_slots):
            more = min(width[start + s], left[s])
            left[s] -= more
            gain[s] += value * (lower[start + s] + more)
    else:
        for entry in range(start, stop):
            s = columns.slot[entry]
            more = min(width[entry], left[s])
            left[s] -= more
            gain[s] += value * (lower[entry] + more)


@kernel
def sort_above(index: LayoutArrays, columns: Columns, k: int) -> tuple[float, int]:
    """(phi, count) of layer k for the next step: phi = min f, and the states above it in order[:count], best first.

    Equal values keep the order of the states while fewer than 18 lie above, else any.
    """
    values, order, key = columns.values, columns.order, columns.key
    first, last = states_of(index, k)
    phi = values[first]
    for y in range(first + ONE, last):
        phi = min(phi, values[y])
    count = 0
    for y in range(first, last):
        if values[y] > phi:
            order[count] = y
            key[count] = values[y]
            count += 1
    sort_by_key(order, key, count, first_gap(count // 9))
    return phi, count


# --------------------------------------------------------------------------------------------------------------------
# COMP-UOB: the largest probability of reaching a state that any transitions in their boxes allow.
#
#     u(x,a) = max { q^{P,pi}(x,a) : P in boxes } = pi(a|x) f(x_0)     for a Markov policy pi and x in X_k, where
#     f = indicator of x on X_k,   f(z) = sum_a pi(a|z) max { p . f : p in box(z,a) }   for z in X_{k-1}, ..., X_0.
#
# Rows choose their p independently, so the backward pass is exact. Every target state has its own worst transitions:
# one pass per state (its actions share it), and the bounds of a layer may add up to more than 1. With trivial boxes
# every state is reached surely: u(x,a) = pi(a|x). A mixture of policies has no such recursion; average the bounds
# instead.
#
# A pass goes back through at most WINDOW layers: the bounds of a path cost a multiple of L instead of L^2. The caps
# below bound what lies before: f(x_0) <= max { q . f : q <= cap, sum q = 1 } on the layer where the pass ends.
# Worlds of up to WINDOW layers, and longer ones with two states in a layer, have the bounds of COMP-UOB itself.
#
# Of the functions above only `load_columns` reads boxes and policy; after it, `reach_of_states` may be called for any
# targets, as often as needed.


WINDOW = 64
"""Departs from COMP-UOB: deeper states are bounded through the caps of the layer this many layers before them."""


@kernel
def reach_of_states(
    index: LayoutArrays, columns: Columns, targets: IntArray, num_targets: int, reach: FloatArray
) -> None:
    """reach[i] = largest Pr[visit targets[i]] for i < num_targets, for the boxes and the policy in `columns`."""
    reach_within(index, columns, targets, num_targets, WINDOW, reach)


@kernel
def reach_within(
    index: LayoutArrays, columns: Columns, targets: IntArray, num_targets: int, window: int, reach: FloatArray
) -> None:
    """`reach_of_states` by passes through at most `window` >= 1 layers."""
    state_start = index.state_start
    if len(state_start) - 2 > window:
        fill_caps(index, columns, len(state_start) - 3 - window)
    k = 0
    for i in range(num_targets):
        target = targets[i]
        if target < state_start[k]:
            k = 0
        while target >= state_start[k + 1]:
            k += 1
        # An indicator needs no sort: the target is above phi = 0, or alone in its layer and phi = 1.
        columns.order[0], columns.key[0] = target, 1.0
        phi, count = (0.0, 1) if state_start[k + 1] - state_start[k] > 1 else (1.0, 0)
        end = max(k - window, 0)
        for h in range(k - 1, end - 1, -1):
            step_back(index, columns, h, phi, count)
            phi, count = sort_above(index, columns, h)
        # At x_0 nothing is above phi = f(x_0), and there is nothing to fill.
        # Rounding may pass 1.
        reach[i] = min(fill_to_caps(columns, phi, count), 1.0)


# --------------------------------------------------------------------------------------------------------------------
# Caps: the largest mass that each state can hold, by one pass through the layers from the first to the last.
#
#     cap(x_0) = 1,   cap(y) = max { sum_x q(x) c_y(x) : 0 <= q <= cap on X_k, sum q = 1 }   for y in X_{k+1}, where
#     c_y(x) = sum_a pi(a|x) max { p(y) : p in box(x,a) } = sum_a pi(a|x) min(hi(y), 1 - sum of the other lo).
#
# By induction every P in the boxes has q^{P,pi}(y) <= cap(y): the masses of X_k lie below their caps and sum to 1, and
# no state sends more than c_y(x) of its mass to y. The maximum fills greedily, the best predecessor first.
#
# Caps are the upper occupancy bounds of COMP-UOB if no layer has more than two states (the masses of a layer are then
# any that the caps allow) or if the transitions are known. Else they are larger, but not in their order: with w(x,a,y)
# the width of a box, either kind of bound exceeds the occupancies of P, summed over a layer, by sum q(x,a) w(x,a,y)
# over the layers before, up to terms of second order in w. All caps together cost one pass over the triples; COMP-UOB
# takes one pass for every state.


@kernel
def fill_caps(index: LayoutArrays, columns: Columns, last_layer: int) -> None:
    """The caps of the layers 0, ..., last_layer under the boxes and the policy in `columns`, into `columns.caps`."""
    state_start, caps, order, key = index.state_start, columns.caps, columns.order, columns.key
    caps[0] = 1.0
    for k in range(last_layer):
        base = columns.first_slot[state_start[k]]
        for y in range(state_start[k + 1], state_start[k + 2]):
            count = 0
            for entry in range(columns.start[y], columns.stop[y]):
                s = base + columns.slot[entry]
                x = np.uint64(columns.row[s] // index.num_actions)
                if count == 0 or order[count - 1] != x:  # the entries of a column are sorted by state
                    order[count] = x
                    key[count] = 0.0
                    count += 1
                key[count - 1] += columns.weight[s] * (
                    columns.lower[entry] + min(columns.width[entry], columns.rest[s])
                )
            sort_by_key(order, key, count, first_gap(count // 9))
            caps[y] = min(fill_to_caps(columns, 0.0, count), 1.0)


@kernel
def fill_to_caps(columns: Columns, phi: float, count: int) -> float:
    """max { sum q f : q <= caps, sum q = 1 }, where f is `key` on order[:count], best first, and phi elsewhere."""
    total, left = phi, 1.0
    for i in range(count):
        mass = min(columns.caps[columns.order[i]], left)
        left -= mass
        total += mass * (columns.key[i] - phi)
    return total


# --------------------------------------------------------------------------------------------------------------------
# The largest expected cost of a policy that any transitions in their boxes allow.
#
#     U_i = max { sum_{x,a} c_i(x,a) q^{P,pi}(x,a) : P in boxes } = V(x_0),   V(x_L) = 0,
#     V(x) = sum_a pi(a|x) [ c_i(x,a) + max { p . V : p in box(x,a) } ]
#
# With c_i = UCB_i, and the true transitions in their boxes, U_i is at least the true cost. It is at most the paper's
# sum_{x,a} UCB_i(x,a) u(x,a), where every pair chooses its own worst transitions; here all pairs share the same. One
# backward pass per constraint replaces one per state.


@kernel
def joint_costs_of_columns(index: LayoutArrays, columns: Columns, costs: FloatArray, bounds: FloatArray) -> None:
    """U_i of all constraints for costs (num_rows, m), into `bounds` (m,): one backward pass per constraint.

    `columns` hold the boxes and the policy: `load_columns` comes first.
    """
    for i in range(len(bounds)):
        bounds[i] = joint_cost_of_columns(index, columns, costs, i, 1.0)


@kernel
def joint_cost_of_columns(index: LayoutArrays, columns: Columns, costs: FloatArray, i: int, sign: float) -> float:
    """U_i for the costs of one constraint, times `sign`: with -1 it is minus the least that the boxes allow.

    Leaves V of the decision states in `columns.values`.
    """
    first_slot, weight, values = columns.first_slot, columns.weight, columns.values
    phi, count = 0.0, 0  # V(x_L) = 0
    for k in range(len(index.state_start) - 3, -1, -1):
        # One pass, in which all rows share the same worst transitions: at most the paper's sum of UCB u.
        step_back(index, columns, k, phi, count)
        first, last = states_of(index, k)
        for x in range(first, last):
            cost = 0.0
            for s in range(first_slot[x], first_slot[x + ONE]):
                cost += weight[s] * costs[columns.row[s], i]
            values[x] += sign * cost
        phi, count = sort_above(index, columns, k)
    return phi  # V(x_0): the only state of its layer
