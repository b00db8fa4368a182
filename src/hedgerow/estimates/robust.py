"""Robust value iteration: the best (or worst) expected cost when transitions may be anything in their boxes.

    V(x_L) = 0,   V(x) = min_a [ c(x,a) + min { p . V : p in box(x,a) } ]

Rows choose their p independently, so the backward pass is exact: V(x_0) = min { c^T q : q in Delta(P) }, the smallest
cost of any occupancy that is consistent with the boxes (extended value iteration).
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.greedy import fill_row, sort_states
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout


class RobustScratch(Bundle):
    """Buffers of the robust kernels, allocated once per layout."""

    values: FloatArray
    """(num_states,): V, an output."""
    order: IntArray
    """(num_states,): each layer sorted by V."""
    slot: IntArray
    """As long as the widest row."""
    p: FloatArray
    """(num_triples,): the optimising distributions, an output."""
    action: IntArray
    """(num_decision_states,): the optimising actions, an output."""
    reach: FloatArray
    """(num_states,)"""


def robust_scratch(layout: Layout) -> RobustScratch:
    widest = int(np.diff(layout.row_start).max())
    return RobustScratch(
        values=np.zeros(layout.num_states),
        order=np.zeros(layout.num_states, dtype=np.int64),
        slot=np.zeros(widest, dtype=np.int64),
        p=np.zeros(layout.num_triples),
        action=np.zeros(layout.num_decision_states, dtype=np.int64),
        reach=np.zeros(layout.num_states),
    )


@kernel
def least_cost(index: Index, lower: FloatArray, upper: FloatArray, cost: FloatArray, scratch: RobustScratch) -> float:
    """min { cost^T q : q in Delta(P) }; writes values, p and action of `scratch`. `cost` is an array over rows."""
    num_layers = len(index.state_start) - 2
    values, order = scratch.values, scratch.order
    values[index.state_start[num_layers]] = 0.0
    for k in range(num_layers - 1, -1, -1):
        first, last = index.state_start[k + 1], index.state_start[k + 2]
        sort_states(values, first, last, True, order)
        for x in range(index.state_start[k], first):
            best = np.inf
            for a in range(index.num_actions):
                r = x * index.num_actions + a
                value = cost[r] + fill_row(
                    values, lower, upper, index.successor, index.row_start[r], index.row_start[r + 1],
                    True, order, first, last, scratch.slot, scratch.p,
                )  # fmt: skip
                if value < best:
                    best = value
                    scratch.action[x] = a
            values[x] = best
    return float(values[0])


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
