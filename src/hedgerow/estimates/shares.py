"""How the intervals of `kt.py` split the failure probability 5 delta of the clean event.

Every statement that holds for ever rests on a supermartingale with a failure probability of its own; these
probabilities add up. Costs decide more than transitions: three of five parts go to costs and two to transitions (3:2),
and all five go to costs where no transition has to be estimated. Half of the costs' parts go to the aggregate
certificate (`aggregate.py`) where there is one, and half of the transitions' parts to the balls of wide rows
(`ball.py`) where there are any.
"""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.errors import InvalidInput
from hedgerow.estimates.unknowns import Unknowns

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

    The intervals of `kt.py` need this as well: their ln(1/delta') would be negative, and the ends beyond [0, 1].
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
