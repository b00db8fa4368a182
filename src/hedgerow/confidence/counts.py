"""What is unknown of a world, and what was counted of it (paper, section 3).

A *law* is the transition distribution of a row, or the distribution of its costs. Rows that share a law form a class;
everything seen in them is counted at the first row of the class. What is known exactly is neither counted nor part of
any union bound (`Unknowns`). After t episodes, for every pair (x,a), triple (x,a,x') and constraint i,

    N_t(x,a)     = number of episodes that visited (x,a) and whose move is known
    M_t(x,a,x')  = number of these that went on to x'
    K_t(x,a)     = number of visits whose costs count, mostly all, the unknown ones included
    S_{t,i}(x,a) = sum of the costs g_{tau,i}(x,a) over the latter, unknown ones as 0

A world is loop-free, so a pair is visited at most once in an episode and all counts are counts of episodes. An episode
visits one pair per layer: L rows change, nothing else is touched. It may visit a class several times. All these
transitions count, because each is a fresh draw. Only the first of their costs counts, because costs of one episode may
depend on each other, unless they are known to be independent.

Which values count, and which are unknown, is decided once per episode (`model/episode.py`). An unknown visit of a pair
is a visit whose cost, or whose move, is not known, or which may have happened and may not. `record_gaps` counts these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray, IntArray, whole_number
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.model.episode import Counting, Episode
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.knowledge import NOTHING, Knowledge
from hedgerow.model.layout import Layout


class Laws(Bundle):
    """Where rows are counted, and which rows follow from one count."""

    moves_at: IntArray
    """(num_rows,): the row that counts the transitions of each row"""
    costs_at: IntArray
    """(num_rows,): the row that counts its costs"""
    moves_start: IntArray
    """(num_rows + 1,): the rows that are counted at r are same_moves[moves_start[r] : moves_start[r + 1]]"""
    same_moves: IntArray
    """(num_rows,)"""
    costs_start: IntArray
    """(num_rows + 1,): likewise for costs"""
    same_costs: IntArray
    """(num_rows,)"""
    every_visit: bool
    """Whether all visits of an episode to a class count for its costs, or the first one only"""
    counted: NDArray[np.int8]
    """(num_rows,): a buffer, all 0 between episodes"""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Which laws have to be estimated, which rows follow them, and how many there are."""

    layout: Layout
    laws: Laws
    tied: bool
    """Whether any two rows share a law"""
    uncertain: BoolArray
    """(num_rows,): whether the transitions of the row have to be estimated"""
    unknown_costs: BoolArray
    """(num_rows, m): whether the mean cost has to be estimated"""
    transitions: FloatArray | None
    """(num_triples,): where they are known, else NaN"""
    costs: FloatArray | None
    """(num_rows, m): likewise"""

    @property
    def num_costs(self) -> int:
        """Mean costs to be estimated: classes times constraints, without those that are known."""
        first = self.laws.costs_at == np.arange(self.layout.num_rows)
        return int(self.unknown_costs[first].sum())

    @property
    def counted_rows(self) -> IntArray:
        """The rows at which uncertain transitions are counted."""
        first = self.laws.moves_at == np.arange(self.layout.num_rows)
        return np.flatnonzero(first & self.uncertain)

    @property
    def num_triples(self) -> int:
        """Probabilities to be estimated: triples of one row per class, with at least two successors, not known."""
        return int(np.diff(self.layout.row_start)[self.counted_rows].sum())


def make_unknowns(
    layout: Layout,
    num_columns: int,
    knowledge: Knowledge = NOTHING,
    *,
    ties: bool = False,
    extra: int = 0,
) -> Unknowns:
    """The unknowns of a layout with so many constraints; `ties` says whether shared laws are used, `extra` adds further
    columns of which nothing is known.
    """
    rows = np.arange(layout.num_rows, dtype=np.int64)
    moves_at = rows if not ties or knowledge.same_transitions is None else knowledge.same_transitions
    costs_at = rows if not ties or knowledge.same_costs is None else knowledge.same_costs
    costs = None if knowledge.costs is None else np.full((layout.num_rows, num_columns + extra), np.nan)
    if costs is not None and knowledge.costs is not None:
        costs[:, :num_columns] = knowledge.costs.T
    unknown = np.ones((layout.num_rows, num_columns + extra), dtype=bool) if costs is None else np.isnan(costs)
    uncertain = np.diff(layout.row_start) > 1
    if knowledge.transitions is not None:
        uncertain &= np.isnan(knowledge.transitions[layout.row_start[:-1]])
    laws = Laws(
        moves_at=moves_at.copy(),
        costs_at=costs_at.copy(),
        moves_start=_starts(moves_at),
        same_moves=np.argsort(moves_at, kind="stable").astype(np.int64),
        costs_start=_starts(costs_at),
        same_costs=np.argsort(costs_at, kind="stable").astype(np.int64),
        every_visit=knowledge.independent_costs,
        counted=np.zeros(layout.num_rows, dtype=np.int8),
    )
    tied = bool(np.any(moves_at != rows) or np.any(costs_at != rows))
    return Unknowns(layout, laws, tied, uncertain, unknown, knowledge.transitions, costs)


def _starts(first: IntArray) -> IntArray:
    sizes = np.bincount(first, minlength=len(first))
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


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
def record(index: LayoutArrays, laws: Laws, counts: Counts, rows: IntArray, triples: IntArray) -> None:
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
def find_triple(index: LayoutArrays, row: int, state: int) -> int:
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
def find_path(index: LayoutArrays, rows: IntArray, triples: IntArray) -> int:
    """The triples (L,) between the rows (L,) of a path, one per layer; returns the first step that is none, or -1."""
    terminal = index.state_start[len(index.state_start) - 1] - 1
    for k in range(len(rows)):
        state = rows[k + 1] // index.num_actions if k + 1 < len(rows) else terminal
        triples[k] = find_triple(index, rows[k], state)
        if triples[k] < 0:
            return k
    return -1


# --------------------------------------------------------------------------------------------------------------------
# Count a whole log at once, by the same rules for shared laws, for costs and for gaps.


ANY_SUCCESSOR = -1
"""In the place of a state: any to which the last row can lead"""


class LogArrays(Bundle):
    """Episodes one after the other."""

    starts: IntArray
    """(episodes + 1,): episode e has the steps starts[e] : starts[e + 1]"""
    rows: IntArray
    """(steps,)"""
    triples: IntArray
    """(steps,): -1 where it is not known what the last step of an episode led to"""
    costs: FloatArray
    """(steps, m)"""
    with_costs: bool
    """Whether the costs count"""
    broken: IntArray
    """The episodes that are not whole, ascending"""
    extents: IntArray
    """(broken episodes, fields of Extent)"""
    places: IntArray
    """(broken episodes,): the state in which the branch was last seen, or ANY_SUCCESSOR"""
    unknown: NDArray[np.int8]
    """(steps, m): 1 for unknown costs"""
    whole: NDArray[np.int8]
    """(episodes,): WHOLE, PARTLY_UNKNOWN or LEFT_OUT, as the tests of premises take them"""


@kernel
def record_log(index: LayoutArrays, laws: Laws, counts: Counts, log: LogArrays, gaps: Gaps) -> None:
    """Add all episodes of `log` to `counts`; `gaps` is a buffer."""
    place = 0
    for e in range(len(log.starts) - 1):
        first, last = log.starts[e], log.starts[e + 1]
        if place < len(log.broken) and log.broken[place] == e:
            _set_gaps(index, log, place, first, last, gaps)
            rows, triples, costs = log.rows[first:last], log.triples[first:last], log.costs[first:last]
            record_gaps(index, laws, counts, rows, triples, costs, gaps)
            place += 1
        else:
            record(index, laws, counts, log.rows[first:last], log.triples[first:last])
            if log.with_costs:
                record_costs(laws, counts, log.rows[first:last], log.costs[first:last])


@kernel
def _set_gaps(index: LayoutArrays, log: LogArrays, place: int, first: int, last: int, gaps: Gaps) -> None:
    """Write the gaps of one episode, whose policy may have done anything."""
    extent, values = gaps.extent, log.extents[place]
    extent.moves, extent.costs, extent.layer = values[0], values[1], values[2]
    extent.moves_lost, extent.last_lost, extent.declared = values[3], values[4], values[5]
    gaps.policy[:] = 1.0
    for k in range(last - first):
        for i in range(gaps.costs.shape[1]):
            gaps.costs[k, i] = log.unknown[first + k, i]
    if extent.layer < 0:
        return
    if log.places[place] != ANY_SUCCESSOR:
        gaps.reached[log.places[place]] = 1
        return
    row = log.rows[last - 1]
    for j in range(index.row_start[row], index.row_start[row + 1]):
        gaps.reached[index.successor[j]] = 1


# --------------------------------------------------------------------------------------------------------------------
# Count an episode that is not whole: what is unknown of it, beside what was seen (`model/episode.py`).
#
# An unknown visit of a pair raises the number of its visits and nothing else: the sum of its costs may then be
# anything between S and S + the number of unknown ones. `boxes.py` makes intervals of that which hold whatever the
# unknown values were, and whether or not the visit would have happened.
#
# Rows that share a law: an episode has at most one unknown cost per class, and none if a cost of the class was counted
# before, because only the first visit of an episode counts. A later visit never takes the place of a missing first one.
# Where every visit counts, and for moves, there may be one unknown visit per class and layer.


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
    index: LayoutArrays, laws: Laws, counts: Counts, rows: IntArray, triples: IntArray, costs: FloatArray, gaps: Gaps
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
        counts.cost_sums[place, i] += 0.0 if gaps[i] else costs[i]


@kernel
def _record_unseen(index: LayoutArrays, laws: Laws, counts: Counts, gaps: Gaps) -> None:
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


@kernel
def _add_unknown_moves(index: LayoutArrays, laws: Laws, counts: Counts, gaps: Gaps, layer: int) -> None:
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
