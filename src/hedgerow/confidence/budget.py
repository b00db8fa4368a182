"""The unknowns of a world: which laws have to be estimated, which rows follow them, and how many there are.

A *law* is the transition distribution of a row, or the distribution of its costs. Rows that share a law form a class;
everything seen in them is counted at the first row of the class. What is known exactly is neither counted nor part of
any union bound.

    num_costs      mean costs to be estimated: classes times constraints, without those that are known
    num_triples    probabilities to be estimated: triples of one row per class, with at least two successors, not known
    counted_rows   the rows at which these are counted, one per class
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.errors import InvalidInput
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
    """See the module's text."""

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
        first = self.laws.costs_at == np.arange(self.layout.num_rows)
        return int(self.unknown_costs[first].sum())

    @property
    def counted_rows(self) -> IntArray:
        """The rows at which uncertain transitions are counted."""
        first = self.laws.moves_at == np.arange(self.layout.num_rows)
        return np.flatnonzero(first & self.uncertain)

    @property
    def num_triples(self) -> int:
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


# --------------------------------------------------------------------------------------------------------------------
# How the intervals of `kl.py` split the failure probability 5 delta of the clean event.
#
# Every statement that holds for ever rests on a supermartingale with a failure probability of its own; these
# probabilities add up. Costs decide more than transitions: three of five parts go to costs and two to transitions
# (3:2), and all five go to costs where no transition has to be estimated. Half of the costs' parts go to the
# aggregate certificate (`aggregate.py`) where there is one, and half of the transitions' parts to the balls of wide
# rows (`balls.py`) where there are any.


TOTAL = 5.0
COST_SHARE = 3.0


@dataclass(frozen=True)
class Shares:
    """Shares of delta; they sum to at most 5."""

    costs: float
    """Share of the intervals of mean costs"""
    transitions: float
    """Share of the boxes"""
    aggregate: float
    """Share of the aggregate certificate"""
    balls: float
    """Share of the balls"""


def refuse_empty_promise(delta: float, spent: float) -> None:
    """Refuse a delta of which 1 - `spent` delta leaves no probability: bounds that promise nothing are no bounds.

    The intervals of `kl.py` need this as well: their ln(1/delta') would be negative, and the ends beyond [0, 1].
    """
    if spent * delta >= 1.0:
        raise InvalidInput(
            f"delta is {delta!r}: the confidence sets hold with probability 1 - {spent:g} delta, of which nothing is "
            f"left; choose a delta below {1.0 / spent:g}"
        )


def make_shares(unknowns: Unknowns, *, aggregate: bool = False, num_balls: int = 0) -> Shares:
    """The shares for these unknowns, with or without an aggregate certificate and balls."""
    certain = unknowns.num_triples == 0
    costs = TOTAL if certain else COST_SHARE
    moves = TOTAL - COST_SHARE
    return Shares(
        costs=0.5 * costs if aggregate else costs,
        transitions=0.5 * moves if num_balls else moves,
        aggregate=0.5 * costs if aggregate else 0.0,
        balls=0.5 * moves if num_balls else 0.0,
    )
