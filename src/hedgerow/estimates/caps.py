"""Caps: the largest mass that each state can hold, by one pass through the layers from the first to the last.

    cap(x_0) = 1,   cap(y) = max { sum_x q(x) c_y(x) : 0 <= q <= cap on X_k, sum q = 1 }   for y in X_{k+1}, where
    c_y(x) = sum_a pi(a|x) max { p(y) : p in box(x,a) } = sum_a pi(a|x) min(hi(y), 1 - sum of the other lo).

By induction every P in the boxes has q^{P,pi}(y) <= cap(y): the masses of X_k lie below their caps and sum to 1, and no
state sends more than c_y(x) of its mass to y. The maximum fills greedily, the best predecessor first.

Caps are the upper occupancy bounds of COMP-UOB if no layer has more than two states (the masses of a layer are then any
that the caps allow) or if the transitions are known. Else they are larger, but not in their order: with w(x,a,y) the
width of a box, either kind of bound exceeds the occupancies of P, summed over a layer, by sum q(x,a) w(x,a,y) over the
layers before, up to terms of second order in w. All caps together cost one pass over the triples; COMP-UOB takes one
pass for every state.
"""

from __future__ import annotations

import numpy as np

from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.columns import Columns
from hedgerow.model.index import Index
from hedgerow.model.sorting import first_gap, sort_by_key


@kernel
def fill_caps(index: Index, columns: Columns, last_layer: int) -> None:
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
