"""Counts (paper, section 3): after t episodes, for every pair (x,a), triple (x,a,x') and constraint i,

    N_t(x,a)     = number of episodes that visited (x,a)
    M_t(x,a,x')  = number of these that went on to x'
    K_t(x,a)     = number of these whose costs count, mostly all
    S_{t,i}(x,a) = sum of the costs g_{tau,i}(x,a) over the latter

A world is loop-free, so a pair is visited at most once in an episode and all counts are counts of episodes. An episode
visits one pair per layer: L rows change, nothing else is touched. Rows that share a law (`unknowns.py`) are counted at
the first row of their class, which an episode may visit several times. All these transitions count, because each is a
fresh draw. Only the first of their costs counts, because costs of one episode may depend on each other, unless they are
known to be independent.

All recorded costs count, even those of an episode that was cut short or in which a person chose an action. Whoever did
that may have looked at the costs of the same episode; then a pair is visited more often after low costs. That does no
harm as long as costs of one episode are independent of each other. Leaving out such episodes would be worse: the
remaining ones are the cheap ones.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray, whole_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.unknowns import Laws
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout


class Counts(Bundle):
    """The sufficient statistics of a learner."""

    num_visits: IntArray
    """N (num_rows,): episodes that visited the row"""
    num_moves: IntArray
    """M (num_triples,): those of them that went on to the successor"""
    num_costs: IntArray
    """K (num_rows,): visits whose costs count"""
    cost_sums: FloatArray
    """S (num_rows, m): summed observed costs"""


def make_counts(layout: Layout, num_constraints: int) -> Counts:
    """No episode seen yet."""
    m = whole_number("the number of constraints", num_constraints, 0)
    return Counts(
        num_visits=np.zeros(layout.num_rows, dtype=np.int64),
        num_moves=np.zeros(layout.num_triples, dtype=np.int64),
        num_costs=np.zeros(layout.num_rows, dtype=np.int64),
        cost_sums=np.zeros((layout.num_rows, m)),
    )


@kernel
def record(index: Index, laws: Laws, counts: Counts, rows: IntArray, triples: IntArray) -> None:
    """Add the rows (n,) and triples (n,) of one episode to `counts`."""
    for k in range(len(rows)):
        place = laws.moves_at[rows[k]]
        counts.num_visits[place] += 1
        counts.num_moves[index.row_start[place] + triples[k] - index.row_start[rows[k]]] += 1


@kernel
def record_costs(laws: Laws, counts: Counts, rows: IntArray, costs: FloatArray) -> None:
    """Add the costs (n, m) that one episode had in its rows (n,), those that count."""
    num_constraints = counts.cost_sums.shape[1]
    for k in range(len(rows)):
        place = laws.costs_at[rows[k]]
        if laws.counted[place] == 0:
            counts.num_costs[place] += 1
            laws.counted[place] = not laws.every_visit
            for i in range(num_constraints):
                counts.cost_sums[place, i] += costs[k, i]
    for k in range(len(rows)):
        laws.counted[laws.costs_at[rows[k]]] = 0


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
