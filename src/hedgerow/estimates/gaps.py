"""Count an episode that is not whole: what is unknown of it, beside what was seen (`model/counting.py`).

An unknown visit of a pair raises the number of its visits and nothing else: the sum of its costs may then be anything
between S and S + the number of unknown ones. `boxes.py` makes intervals of that which hold whatever the unknown values
were, and whether or not the visit would have happened.

Rows that share a law: an episode has at most one unknown cost per class, and none if a cost of the class was counted
before, because only the first visit of an episode counts. A later visit never takes the place of a missing first one.
Where every visit counts, and for moves, there may be one unknown visit per class and layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.counts import Counts, next_sum, record
from hedgerow.estimates.unknowns import Laws
from hedgerow.model.counting import Counting
from hedgerow.model.episode import Episode
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

LAW = 2
"""Marks a law of moves in `Laws.counted`, beside the 1 of a law of costs."""


class Extent(Record):
    """How far an episode is known; see `Counting`."""

    moves: int
    """The first so many moves are counted"""
    costs: int
    """The costs of the first so many steps are counted, or unknown where `Gaps.costs` says so"""
    layer: int
    """The layer from which on the branch may have gone anywhere; -1 if all its visits are known"""
    moves_lost: int
    """1 if its moves from there on are unknown as well"""
    last_lost: int
    """1 if the move of the last step is unknown"""
    declared: int
    """1 if what is missing is left out for a declared reason, and not unknown"""


class Gaps(Bundle):
    """What is not known of an episode. `reached` is a buffer that `record_gaps` leaves empty."""

    extent: Extent
    costs: NDArray[np.int8]
    """(L, columns): 1 for costs of the steps that are not known"""
    reached: NDArray[np.int8]
    """(num_states,): 1 for the states of `layer` in which the episode may have been"""
    policy: FloatArray
    """(num_rows,): what the branch may have done: rows with a positive number"""


def make_gaps(layout: Layout, columns: int) -> Gaps:
    """No gaps, any policy."""
    return Gaps(
        extent=Extent(),
        costs=np.zeros((layout.steps, columns), dtype=np.int8),
        reached=np.zeros(layout.num_states, dtype=np.int8),
        policy=np.ones(layout.num_rows),
    )


def set_gaps(gaps: Gaps, episode: Episode, counting: Counting, policy: FloatArray | None) -> None:
    """Write what is not known of an episode into `gaps`; None is a branch that may do anything.

    If the actions of the episode were drawn beforehand and followed, the branch can have done nothing else.
    """
    extent, irregular = gaps.extent, episode.irregular
    extent.moves, extent.costs, extent.layer = counting.moves, counting.costs, counting.layer
    extent.moves_lost, extent.last_lost = int(counting.moves_lost), int(counting.last_lost)
    extent.declared = int(counting.skipped)
    gaps.costs[:] = 0
    if counting.gaps is not None:
        count, columns = counting.gaps.shape
        gaps.costs[:count, :columns] = counting.gaps
    gaps.reached[:] = 0
    if counting.states is not None:
        gaps.reached[counting.states] = 1
    drawn = None if irregular is None else irregular.actions
    gaps.policy[:] = drawn.policy if drawn is not None else 1.0 if policy is None else policy


@kernel
def record_gaps(
    index: Index, laws: Laws, counts: Counts, rows: IntArray, triples: IntArray, costs: FloatArray, gaps: Gaps
) -> None:
    """Add an episode with gaps to `counts`: its rows and triples (n,), costs (n, columns)."""
    extent = gaps.extent
    record(index, laws, counts, rows[: extent.moves], triples[: extent.moves])
    if extent.last_lost:
        counts.unknown_moves[laws.moves_at[rows[len(rows) - 1]]] += 1
    for k in range(extent.costs):
        _record_step(laws, counts, rows[k], costs[k], gaps.costs[k], extent.declared)
    if extent.layer >= 0:
        _record_unseen(index, laws, counts, gaps)
    for r in range(len(laws.counted)):
        laws.counted[r] = 0


@kernel
def _record_step(
    laws: Laws, counts: Counts, row: int, costs: FloatArray, gaps: NDArray[np.int8], declared: int
) -> None:
    """Add the costs (columns,) of a step, those in `gaps` as unknown; if these are left out, so is the whole step."""
    place = laws.costs_at[row]
    if laws.counted[place]:
        return
    laws.counted[place] = not laws.every_visit
    if declared:
        for i in range(len(costs)):
            if gaps[i]:
                return
    counts.num_costs[place] += 1
    for i in range(len(costs)):
        counts.unknown_costs[place, i] += gaps[i]
        cost = 0.0 if gaps[i] else costs[i]
        counts.cost_sums[place, i] = next_sum(counts.num_costs[place], counts.cost_sums[place, i], cost, laws.forget)


@kernel
def _record_unseen(index: Index, laws: Laws, counts: Counts, gaps: Gaps) -> None:
    """One unknown visit of every pair that the branch may have visited from the layer of the gap on."""
    extent, reached, seen = gaps.extent, gaps.reached, laws.counted
    for k in range(extent.layer, len(index.state_start) - 2):
        first, last = index.state_start[k], index.state_start[k + 1]
        for row in range(first * index.num_actions, last * index.num_actions):
            if reached[row // index.num_actions] and gaps.policy[row] > 0.0:
                _add_unknown_cost(laws, counts, row)
                for j in range(index.row_start[row], index.row_start[row + 1]):
                    reached[index.successor[j]] = 1
        if laws.every_visit:
            seen[:] = 0
        if extent.moves_lost:
            _add_unknown_moves(index, laws, counts, gaps, k)
        reached[first:last] = 0
    reached[len(reached) - 1] = 0


@kernel
def _add_unknown_cost(laws: Laws, counts: Counts, row: int) -> None:
    place = laws.costs_at[row]
    if laws.counted[place] == 0:
        laws.counted[place] = 1
        counts.num_costs[place] += 1
        for i in range(counts.cost_sums.shape[1]):
            counts.unknown_costs[place, i] += 1
            counts.cost_sums[place, i] = next_sum(counts.num_costs[place], counts.cost_sums[place, i], 0.0, laws.forget)


@kernel
def _add_unknown_moves(index: Index, laws: Laws, counts: Counts, gaps: Gaps, layer: int) -> None:
    """One unknown move for each law of the rows of a layer that the branch may have visited."""
    first, last, marked = index.state_start[layer], index.state_start[layer + 1], laws.counted
    for row in range(first * index.num_actions, last * index.num_actions):
        place = laws.moves_at[row]
        if gaps.reached[row // index.num_actions] and gaps.policy[row] > 0.0 and marked[place] < LAW:
            marked[place] += LAW
            counts.unknown_moves[place] += 1
    for row in range(first * index.num_actions, last * index.num_actions):
        place = laws.moves_at[row]
        if marked[place] >= LAW:
            marked[place] -= LAW
