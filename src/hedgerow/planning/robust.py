"""Robust value iteration: the least expected cost when transitions may be anything in their boxes.

    V(x_L) = 0,   V(x) = min_a [ c(x,a) + min { p . V : p in box(x,a) } ]

Rows choose their p independently, so the backward pass is exact: V(x_0) = min { c^T q : q in Delta(P) }, the smallest
cost of any occupancy that is consistent with the boxes (extended value iteration).

The inner minimum fills greedily: start from p = lo and hand the remaining mass to the successors, the least V first.
This order is the same for all rows that reach a whole layer.

    V = (0, .5, 1), lo = (.1, .2, .1), hi = (.5, .9, .6)   ->   p = (.5, .4, .1), value .3
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import Index, Positions, first_gap, sort_by_key, triples_of
from hedgerow.model.layout import Layout


class RobustScratch(Bundle):
    """Buffers of the robust kernels, allocated once per layout."""

    values: FloatArray
    """(num_states,): V, an output."""
    order: Positions
    """(size of the largest layer,): the successors of a row by their place in it, the least V first."""
    key: FloatArray
    """(size of the largest layer,): their -V."""
    p: FloatArray
    """(num_triples,): the optimising distributions, an output."""
    action: IntArray
    """(num_decision_states,): the optimising actions, an output."""
    reach: FloatArray
    """(num_states,)"""


def robust_scratch(layout: Layout) -> RobustScratch:
    return RobustScratch(
        values=np.zeros(layout.num_states),
        order=np.zeros(max(layout.layer_sizes), dtype=np.uint64),
        key=np.zeros(max(layout.layer_sizes)),
        p=np.zeros(layout.num_triples),
        action=np.zeros(layout.num_decision_states, dtype=np.int64),
        reach=np.zeros(layout.num_states),
    )


@kernel
def least_cost(index: Index, lower: FloatArray, upper: FloatArray, cost: FloatArray, scratch: RobustScratch) -> float:
    """min { cost^T q : q in Delta(P) }; writes values, p and action of `scratch`. `cost` is an array over rows."""
    state_start, row_start, values = index.state_start, index.row_start, scratch.values
    values[state_start[len(state_start) - 2]] = 0.0
    for k in range(len(state_start) - 3, -1, -1):
        layer_is_sorted = False
        for x in range(state_start[k], state_start[k + 1]):
            best = np.inf
            for a in range(index.num_actions):
                r = x * index.num_actions + a
                whole = row_start[r + 1] - row_start[r] == state_start[k + 2] - state_start[k + 1]
                if not whole or not layer_is_sorted:
                    sort_row(index, r, whole, scratch)
                    layer_is_sorted = whole
                value = cost[r] + fill_row(index, lower, upper, r, scratch)
                if value < best:
                    best = value
                    scratch.action[x] = a
            values[x] = best
    return float(values[0])


@kernel
def sort_row(index: Index, row: int, whole: bool, scratch: RobustScratch) -> None:
    """Find the `order` of the successors of a row, or, if they are a whole layer, of all rows that reach it."""
    start, size = index.row_start[row], index.row_start[row + 1] - index.row_start[row]
    for i in range(size):
        scratch.order[i] = i
        scratch.key[i] = -scratch.values[index.successor[start + i]]
    sort_by_key(scratch.order, scratch.key, size, first_gap(size // 3) if whole else 1)


@kernel
def fill_row(index: Index, lower: FloatArray, upper: FloatArray, row: int, scratch: RobustScratch) -> float:
    """min { p . V : p in box } of a row whose `order` is known; writes its distribution into `p`."""
    values, successor, p = scratch.values, index.successor, scratch.p
    start, stop = triples_of(index, row)
    if stop - start == 1:
        p[start] = 1.0
        return float(values[successor[start]])
    rest = 1.0
    value = 0.0
    for j in range(start, stop):
        p[j] = lower[j]
        rest -= lower[j]
        value += lower[j] * values[successor[j]]
    for i in range(stop - start):
        if rest <= 0.0:
            break
        j = start + scratch.order[i]
        more = min(upper[j] - lower[j], rest)
        p[j] += more
        rest -= more
        value += more * values[successor[j]]
    return value


@kernel
def row_mass_of_least_cost(index: Index, scratch: RobustScratch, w: FloatArray) -> None:
    """w(x,a) (num_rows,) of the minimiser that `least_cost` left in `scratch`: the forward pass."""
    reach = scratch.reach
    reach[:] = 0.0
    reach[0] = 1.0
    w[:] = 0.0
    for x in range(len(scratch.action)):
        r = x * index.num_actions + scratch.action[x]
        w[r] = reach[x]
        for j in range(index.row_start[r], index.row_start[r + 1]):
            reach[index.successor[j]] += reach[x] * scratch.p[j]
