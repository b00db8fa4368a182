"""What keeps lambda large: U of the own policy less its true cost, by cause and by row.

By cause: `costs` is what the bounds of costs add under the true transitions, `transitions` what the boxes add under the
true costs, `cross` what is left. By row, with q the true occupancy and V the values of the worst case,

    U - true = sum_r q(r) { (UCB - g)(r) + max p . V - P . V }

exactly, because P . V on both sides cancels row by row (the value difference lemma).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.estimates.ball import ball_value
from hedgerow.estimates.balls import ACCURACY
from hedgerow.experiments.forecast.bounds import Bounds, Forecaster


class Slack(NamedTuple):
    """The slack of one constraint."""

    true: float
    upper: float
    """U, before any ceiling"""
    costs: float
    transitions: float
    cross: float
    row_costs: FloatArray
    """(num_rows,)"""
    row_moves: FloatArray
    """(num_rows,)"""

    @property
    def rows(self) -> FloatArray:
        """(num_rows,): they add up to U - true."""
        return self.row_costs + self.row_moves


def slack_of(caster: Forecaster, bounds: Bounds, i: int) -> Slack:
    """The slack of constraint i; `bounds` are the last ones that `caster` computed."""
    model, g = caster.model, caster.model.costs[i]
    q = model.played
    true, widths = float(q @ g), bounds.boxes.cost_upper[:, i] - g
    worst = caster.worst(bounds.boxes, bounds.balls, bounds.boxes.cost_upper, i)
    moves = caster.worst(bounds.boxes, bounds.balls, np.ascontiguousarray(model.costs.T), i).cost - true
    costs = float(q @ widths)
    row_moves = q * (_ahead(caster, bounds, worst.values, worst.with_balls) - _nominal(caster, worst.values))
    cross = worst.cost - true - costs - moves
    return Slack(true, worst.cost, costs, moves, cross, q * widths, row_moves)


def _nominal(caster: Forecaster, V: FloatArray) -> FloatArray:
    """P . V (num_rows,)."""
    layout = caster.view.layout
    ahead: FloatArray = np.add.reduceat(caster.model.transitions * V[layout.successor], layout.row_start[:-1])
    return ahead


def _ahead(caster: Forecaster, bounds: Bounds, V: FloatArray, with_balls: bool) -> FloatArray:
    """(num_rows,): the largest p . V that boxes, and balls if they are used, allow."""
    layout, boxes, balls = caster.view.layout, bounds.boxes, bounds.balls
    found = np.zeros(layout.num_rows)
    for r in range(layout.num_rows):
        triples = slice(int(layout.row_start[r]), int(layout.row_start[r + 1]))
        values = V[layout.successor[triples]]
        found[r] = _largest_in_box(values, boxes.lower[triples], boxes.upper[triples])
        if with_balls and caster.wide[r]:
            size, start = len(values), triples.start
            near = ball_value(
                balls.moves, start, size, int(balls.visits[r]), float(balls.radius[r]), layout.successor, start, V,
                ACCURACY,
            )  # fmt: skip
            found[r] = min(found[r], near)
    return found


def _largest_in_box(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Fill the best successor first."""
    if len(values) == 1:
        return float(values[0])
    order = np.argsort(-values, kind="stable")
    room, rest = (upper - lower)[order], max(0.0, 1.0 - float(lower.sum()))
    more = np.minimum(room, np.maximum(0.0, rest - (np.cumsum(room) - room)))
    return float(lower @ values + more @ values[order])
