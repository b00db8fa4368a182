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
from hedgerow.model.kernel_layout import ONE, Index, Positions, first_gap, sort_by_key, states_of, triples_of
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
    """(num_states,): how much mass each state can hold at most, see `caps.py`"""


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
def load_columns(index: Index, lower: FloatArray, upper: FloatArray, policy: FloatArray, columns: Columns) -> None:
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
def _load_row(index: Index, lower: FloatArray, upper: FloatArray, row: int, slot: int, columns: Columns) -> float:
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
def keep_columns(index: Index, lower: FloatArray, upper: FloatArray, policy: FloatArray, columns: Columns) -> None:
    """`load_columns` for a policy that plays mostly the same rows as before, in boxes of which few change. From now on
    pass the changed ones to `update_columns`.
    """
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
def update_columns(index: Index, lower: FloatArray, upper: FloatArray, rows: IntArray, columns: Columns) -> None:
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
def step_back(index: Index, columns: Columns, k: int, phi: float, count: int) -> None:
    """f of layer k into `values`, where f of layer k + 1 is `key` on order[:count], best first, and phi elsewhere."""
    first_slot, left, gain = columns.first_slot, columns.left, columns.gain
    first, last = states_of(index, k)
    base = first_slot[first]
    num_slots = first_slot[last] - base
    for s in range(num_slots):
        left[s] = columns.rest[base + s]
        gain[s] = 0.0
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
def sort_above(index: Index, columns: Columns, k: int) -> tuple[float, int]:
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
