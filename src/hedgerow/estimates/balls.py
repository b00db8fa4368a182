"""The divergence balls of wide rows, beside their boxes: a learner keeps them and uses them in its joint cost.

A box lets each successor of a row err on its own, a ball all of them together: with ten successors the worst of the
ball is much nearer (`ball.py`). A row is in both sets, so U takes the smaller maximum, row by row. A ball is made of
the counts with which the box of its row was last made. Once moves of a row are unknown, its ball stays as it was: it
holds the truth at all times, or not at all. Each law has one ball, with a share of the failure probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.ball import ball_radius, ball_value
from hedgerow.estimates.columns import Columns, sort_above, step_back
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.unknowns import Laws, Unknowns
from hedgerow.model.index import Index
from hedgerow.model.positions import ONE, states_of

ACCURACY = 1e-5
"""Error of the largest p.V as a part of the span of V: never too small a maximum, and far below any radius"""


UNSEEN = 1e9
"""A radius that allows everything"""


class Balls(Bundle):
    """State; all arrays are empty where there are no balls."""

    moves: IntArray
    """(num_triples,): the counts of each row with a ball"""
    visits: IntArray
    """(num_rows,): their sums"""
    radius: FloatArray
    """(num_rows,): of the ball; UNSEEN where there is none, or nothing was seen"""


class BallRule(Bundle):
    """What stays the same."""

    wide: NDArray[np.int8]
    """(num_rows,): 1 for the rows that have a ball"""
    log_inverse_delta: float
    """ln(1/delta') of each law"""


def wide_rows(unknowns: Unknowns, from_successors: int) -> NDArray[np.bool_]:
    """(num_rows,): the uncertain rows with so many successors or more; none for 0."""
    enough = np.diff(unknowns.layout.row_start) >= max(2, from_successors)
    wide: NDArray[np.bool_] = unknowns.uncertain & enough & (from_successors > 0)
    return wide


def make_balls(wide: NDArray[np.bool_], num_triples: int) -> Balls:
    """Nothing seen yet."""
    rows, triples = (len(wide), num_triples) if wide.any() else (0, 0)
    return Balls(np.zeros(triples, dtype=np.int64), np.zeros(rows, dtype=np.int64), np.full(rows, UNSEEN))


def no_balls() -> Balls:
    """Empty arrays, for learners without balls."""
    return make_balls(np.zeros(0, dtype=bool), 0)


@kernel
def follow_counts(index: Index, laws: Laws, counts: Counts, rule: BallRule, rows: IntArray, balls: Balls) -> None:
    """Bring the balls of some rows, whose boxes were just refreshed, up to date."""
    for row in rows:
        place = laws.moves_at[row]
        visits = counts.num_visits[place]
        if rule.wide[row] and visits != balls.visits[row] and counts.unknown_moves[place] == 0:
            first, start = index.row_start[place], index.row_start[row]
            size = index.row_start[row + 1] - start
            balls.visits[row] = visits
            for i in range(size):
                balls.moves[start + i] = counts.num_moves[first + i]
            same = row != place and balls.visits[place] == visits  # the first row of a law comes first
            balls.radius[row] = (
                balls.radius[place] if same else ball_radius(balls.moves, start, size, visits, rule.log_inverse_delta)
            )


@kernel
def joint_cost_with_balls(
    index: Index, columns: Columns, rule: BallRule, balls: Balls, costs: FloatArray, i: int
) -> float:
    """`joint_cost_of_columns` for constraint i, where rows with a ball take the smaller of two maxima."""
    first_slot, weight, values = columns.first_slot, columns.weight, columns.values
    values[len(values) - 1] = 0.0
    phi, count = 0.0, 0  # V(x_L) = 0
    for k in range(len(index.state_start) - 3, -1, -1):
        step_back(index, columns, k, phi, count)
        first, last = states_of(index, k)
        base = first_slot[first]
        for x in range(first, last):
            for s in range(first_slot[x], first_slot[x + ONE]):
                row = columns.row[s]
                values[x] += weight[s] * costs[row, i]
                if rule.wide[row]:
                    start = index.row_start[row]
                    most = phi + columns.gain[s - base]
                    near = ball_value(
                        balls.moves, start, index.row_start[row + 1] - start, balls.visits[row], balls.radius[row],
                        index.successor, start, values, ACCURACY,
                    )  # fmt: skip
                    values[x] -= weight[s] * max(most - near, 0.0)
        phi, count = sort_above(index, columns, k)
    return phi  # V(x_0): the only state of its layer
