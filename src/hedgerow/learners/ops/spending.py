"""What a learner estimates, and how its confidence sets share the failure probability.

Intervals of the kind `kt` split 5 delta among costs, boxes, balls and the aggregate certificate
(`confidence/budget.py`). All other radii have the paper's budgets, delta for costs and 4 delta for transitions, and
neither balls nor a certificate.
"""

from __future__ import annotations

from typing import NamedTuple

from hedgerow.checks import BoolArray
from hedgerow.confidence.balls import wide_rows
from hedgerow.confidence.budget import Shares, Unknowns, make_shares, make_unknowns
from hedgerow.learners.ops.settings import Settings
from hedgerow.model.view import View

PAPER = Shares(costs=1.0, transitions=4.0, aggregate=0.0, balls=0.0)


def certifies(view: View, settings: Settings) -> bool:
    """Whether the aggregate certificate can be used: not where a cost may have to do with the next state."""
    return settings.aggregate and view.knowledge.costs_drawn != "unknown"


class Spending(NamedTuple):
    """See the module's text."""

    unknowns: Unknowns
    wide: BoolArray
    """(num_rows,): the rows that have a ball"""
    num_balls: int
    shares: Shares


def make_spending(view: View, settings: Settings, *, mixes: bool) -> Spending:
    """The spending of a learner on `view`; `mixes` says whether it needs upper bounds of its own costs."""
    unknowns = make_unknowns(view.layout, view.num_constraints, view.knowledge, ties=settings.ties)
    wide = wide_rows(unknowns, settings.ball_from if mixes else 0)
    num_balls = int(wide[unknowns.counted_rows].sum())
    shares = PAPER
    if settings.radii == "kt":
        shares = make_shares(unknowns, aggregate=certifies(view, settings) and mixes, num_balls=num_balls)
    return Spending(unknowns, wide, num_balls, shares)
