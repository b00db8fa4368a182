"""Counts (paper, section 3): after t episodes, for every pair (x,a), triple (x,a,x') and constraint i,

    N_t(x,a)     = number of episodes that visited (x,a) and whose move is known
    M_t(x,a,x')  = number of these that went on to x'
    K_t(x,a)     = number of visits whose costs count, mostly all, the unknown ones included
    S_{t,i}(x,a) = sum of the costs g_{tau,i}(x,a) over the latter, unknown ones as 0

A world is loop-free, so a pair is visited at most once in an episode and all counts are counts of episodes. An episode
visits one pair per layer: L rows change, nothing else is touched. Rows that share a law (`unknowns.py`) are counted at
the first row of their class, which an episode may visit several times. All these transitions count, because each is a
fresh draw. Only the first of their costs counts, because costs of one episode may depend on each other, unless they are
known to be independent.

With `forget` f > 0 the estimate of a mean cost forgets, in the manner of WC-OPS (Stradi et al. 2025, arXiv:2509.20114,
recalled): the n-th cost that counts replaces the share b = max(1/n, f) of it,

    g_hat <- (1 - b) g_hat + b g,      so that  g_hat = sum_j w_j g_j,  w_j = b_j prod_{h > j} (1 - b_h),   S = K g_hat.

Up to n = 1/f that is the mean, and f = 0 is the mean for ever. The weights depend on n alone, hence so does

    sum w^2 = 1/n for n <= n_0 = floor(1/f),   (1-f)^2k / n_0 + (1 - (1-f)^2k) f / (2 - f) for n = n_0 + k,

the inverse of the *effective* number of costs, which is at most (2 - f) / f.

Which values count, and which are unknown, is decided once per episode (`model/counting.py`). An unknown visit of a pair
is a visit whose cost, or whose move, nobody knows, or which may have happened and may not. `gaps.py` counts these.
"""

from __future__ import annotations

from math import floor

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
    """K (num_rows,): visits whose costs count, the unknown ones included"""
    cost_sums: FloatArray
    """S (num_rows, m): summed observed costs"""
    unknown_moves: IntArray
    """(num_rows,): visits beside N whose moves are unknown"""
    unknown_costs: IntArray
    """(num_rows, m): how many of the K costs are unknown"""


def make_counts(layout: Layout, num_constraints: int) -> Counts:
    """No episode seen yet."""
    m = whole_number("the number of constraints", num_constraints, 0)
    return Counts(
        num_visits=np.zeros(layout.num_rows, dtype=np.int64),
        num_moves=np.zeros(layout.num_triples, dtype=np.int64),
        num_costs=np.zeros(layout.num_rows, dtype=np.int64),
        cost_sums=np.zeros((layout.num_rows, m)),
        unknown_moves=np.zeros(layout.num_rows, dtype=np.int64),
        unknown_costs=np.zeros((layout.num_rows, m), dtype=np.int64),
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
                counts.cost_sums[place, i] = next_sum(
                    counts.num_costs[place], counts.cost_sums[place, i], costs[k, i], laws.forget
                )
    for k in range(len(rows)):
        laws.counted[laws.costs_at[rows[k]]] = 0


@kernel
def next_sum(num: int, total: float, cost: float, forget: float) -> float:
    """S after the `num`-th cost that counts, where it was `total` before."""
    if num * forget <= 1.0:
        return total + cost
    # Never above K, whatever the rounding: an estimate of more than 1 would be refused in a file.
    return min(float(num), num * ((1.0 - forget) * (total / (num - 1)) + forget * cost))


@kernel
def effective_number(num: int, forget: float) -> float:
    """1 / sum w^2 of the estimate of a mean from `num` costs: `num` itself unless it forgets."""
    if num * forget <= 1.0:
        return float(num)
    first = floor(1.0 / forget)
    left: float = (1.0 - forget) ** (2.0 * (num - first))
    return 1.0 / (left / first + (1.0 - left) * forget / (2.0 - forget))


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
