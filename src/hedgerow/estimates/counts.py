"""What has been seen (paper, section 3): after t episodes, for every pair (x,a), triple (x,a,x') and constraint i,

    N_t(x,a)     = number of episodes that visited (x,a)
    M_t(x,a,x')  = number of these that went on to x'
    S_{t,i}(x,a) = sum of the costs g_{tau,i}(x,a) over these episodes

A world is loop-free, so a pair is visited at most once in an episode and all counts are counts of episodes. An episode
visits one pair per layer: L rows change, nothing else is touched.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray, whole_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout


class Counts(Bundle):
    """The sufficient statistics of a learner."""

    num_visits: IntArray
    """N (num_rows,): episodes that visited the row"""
    num_moves: IntArray
    """M (num_triples,): of these, the ones that went on to the successor"""
    cost_sums: FloatArray
    """S (num_rows, m): summed observed costs"""


def make_counts(layout: Layout, num_constraints: int) -> Counts:
    """No episode seen yet."""
    m = whole_number("the number of constraints", num_constraints, 0)
    return Counts(
        num_visits=np.zeros(layout.num_rows, dtype=np.int64),
        num_moves=np.zeros(layout.num_triples, dtype=np.int64),
        cost_sums=np.zeros((layout.num_rows, m)),
    )


@kernel
def record(counts: Counts, rows: IntArray, triples: IntArray, costs: FloatArray) -> None:
    """Add one episode to `counts`: its rows (L,), its triples (L,), and the observed costs (L, m) of those rows."""
    num_constraints = counts.cost_sums.shape[1]
    for k in range(len(rows)):
        counts.num_visits[rows[k]] += 1
        counts.num_moves[triples[k]] += 1
        for i in range(num_constraints):
            counts.cost_sums[rows[k], i] += costs[k, i]


@kernel
def find_triple(index: Index, row: int, state: int) -> int:
    """The triple of `row` that leads to `state`, or -1 if that is not in the support (bisection: successors ascend)."""
    low, high = index.row_start[row], index.row_start[row + 1]
    while low < high:
        middle = (low + high) // 2
        if index.successor[middle] < state:
            low = middle + 1
        else:
            high = middle
    if low < index.row_start[row + 1] and index.successor[low] == state:
        return int(low)
    return -1


@kernel
def find_path(index: Index, rows: IntArray, triples: IntArray) -> int:
    """The triples (L,) between the rows (L,) of a path, one per layer; returns the first step that is none, or -1."""
    terminal = index.state_start[len(index.state_start) - 1] - 1
    for k in range(len(rows)):
        state = rows[k + 1] // index.num_actions if k + 1 < len(rows) else terminal
        triples[k] = find_triple(index, rows[k], state)
        if triples[k] < 0:
            return k
    return -1
