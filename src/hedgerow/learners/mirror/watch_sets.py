"""Check whether the truth, which only a simulation knows, is in the confidence sets that a learner uses.

    transitions   lo <= P <= hi in all triples of a row
    costs         LCB <= g <= UCB of a row and all constraints
    balls         KL(P_hat || P) <= radius in the rows that have a ball
    sums          sum_r N(r) y(r) <= SX + rad in all generations of the aggregate certificate, y = g + P . V

All four together are the clean event, on which safety rests. A set counts as it stands, however old. It is checked
when it is rebuilt, for every row that uses it, and the result holds until the next time. Where rows share a law, visits
of one row may change the sets of others.
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.environments.play import KernelWorld
from hedgerow.estimates.aggregate import mean_value
from hedgerow.estimates.aggregate_radius import aggregate_radius, log_term_of
from hedgerow.learners.mirror.core import Core

TOL_CLEAN = 1e-12
MOVES, COSTS, BALL = 0, 1, 2
"""Columns of `Sets.outside`"""


class SetTallies(Record):
    """How many sets the truth is outside of at present."""

    transitions: int
    """Rows"""
    costs: int
    """Rows"""
    balls: int
    """Rows"""
    sums: int
    """Generations, constraint by constraint"""


class Sets(Bundle):
    """What is known of all sets at present; kernels modify it."""

    tallies: SetTallies
    outside: IntArray
    """(num_rows, 3): 1 where the transitions, the costs, or the transitions by the ball of a row are outside"""
    looked: IntArray
    """(num_rows, 2): the visits behind the box, and behind the bounds of costs, that were last checked; -1: none"""
    sums: FloatArray
    """(slots, m): sum_r N(r) y(r) of the generations of the aggregate certificate; empty where there is none"""
    sums_outside: IntArray
    """(slots, m)"""
    generation: IntArray
    """(slots,): whose sums these are; -1: none"""
    episodes: IntArray
    """(slots,): how many episodes are in them"""


def make_sets(core: Core, world: KernelWorld) -> Sets:
    """Check all sets of a learner at present."""
    rows, (slots, m) = len(core.state.policy), core.state.aggregate.sums.shape
    sets = Sets(
        tallies=SetTallies(),
        outside=np.zeros((rows, 3), dtype=np.int64),
        looked=np.full((rows, 2), -1, dtype=np.int64),
        sums=np.zeros((slots, m)),
        sums_outside=np.zeros((slots, m), dtype=np.int64),
        generation=np.full(slots, -1, dtype=np.int64),
        episodes=np.zeros(slots, dtype=np.int64),
    )
    look_at_rows(core, world, core.buffers.all_rows, sets)
    look_at_sums(core, world, core.buffers.all_rows, sets)
    return sets


@kernel
def is_clean(sets: Sets) -> bool:
    """Whether the truth is in all of them."""
    now = sets.tallies
    return now.transitions == 0 and now.costs == 0 and now.balls == 0 and now.sums == 0


@kernel
def look_at_rows(core: Core, world: KernelWorld, rows: IntArray, sets: Sets) -> None:
    """Check the boxes, bounds and balls that may have changed with the counts of some rows."""
    laws, boxes, gradual = core.rule.box.laws, core.state.boxes, core.rule.box.gradual
    for row in rows:
        place = laws.moves_at[row]
        if not gradual or sets.looked[place, 0] != boxes.visits[place]:
            sets.looked[place, 0] = boxes.visits[place]
            for j in range(laws.moves_start[place], laws.moves_start[place + 1]):
                _look_at_moves(core, world, laws.same_moves[j], sets)
        place = laws.costs_at[row]
        if not gradual or sets.looked[place, 1] != boxes.cost_visits[place]:
            sets.looked[place, 1] = boxes.cost_visits[place]
            for j in range(laws.costs_start[place], laws.costs_start[place + 1]):
                _look_at_costs(core, world, laws.same_costs[j], sets)


@kernel
def _look_at_moves(core: Core, world: KernelWorld, row: int, sets: Sets) -> None:
    boxes, row_start, outside = core.state.boxes, core.index.row_start, 0
    for j in range(row_start[row], row_start[row + 1]):
        p = world.transitions[j]
        if p < boxes.lower[j] - TOL_CLEAN or p > boxes.upper[j] + TOL_CLEAN:
            outside = 1
    sets.tallies.transitions += outside - sets.outside[row, MOVES]
    sets.outside[row, MOVES] = outside
    _look_at_ball(core, world, row, sets)


@kernel
def _look_at_ball(core: Core, world: KernelWorld, row: int, sets: Sets) -> None:
    balls, row_start = core.state.balls, core.index.row_start
    if len(balls.radius) > 0 and core.rule.ball.wide[row] and balls.visits[row] > 0:
        divergence = 0.0
        for j in range(row_start[row], row_start[row + 1]):
            if balls.moves[j] > 0:
                share, p = balls.moves[j] / balls.visits[row], world.transitions[j]
                divergence += share * log(share / p) if p > 0.0 else inf
        outside = 1 if divergence > balls.radius[row] + TOL_CLEAN else 0
        sets.tallies.balls += outside - sets.outside[row, BALL]
        sets.outside[row, BALL] = outside


@kernel
def _look_at_costs(core: Core, world: KernelWorld, row: int, sets: Sets) -> None:
    boxes, outside = core.state.boxes, 0
    for i in range(world.mean_costs.shape[1]):
        g = world.mean_costs[row, i]
        if g < boxes.cost_lower[row, i] - TOL_CLEAN or g > boxes.cost_upper[row, i] + TOL_CLEAN:
            outside = 1
    sets.tallies.costs += outside - sets.outside[row, COSTS]
    sets.outside[row, COSTS] = outside
    _look_at_ball(core, world, row, sets)  # it follows the counts with either of the two


@kernel
def look_at_sums(core: Core, world: KernelWorld, rows: IntArray, sets: Sets) -> None:
    """Check the aggregate certificate after an episode that visited these rows (L,)."""
    for slot in range(len(sets.generation)):
        _look_at_generation(core, world, rows, slot, sets)


@kernel
def _look_at_generation(core: Core, world: KernelWorld, rows: IntArray, slot: int, sets: Sets) -> None:
    """Check the inequality of one generation; an episode adds its L rows to both sides."""
    aggregate, rule = core.state.aggregate, core.rule.aggregate
    generation, episodes = aggregate.generation[slot], aggregate.episodes[slot]
    same = generation == sets.generation[slot]
    if generation < 0 or (same and episodes == sets.episodes[slot]):
        return
    one_more = same and episodes == sets.episodes[slot] + 1
    sets.generation[slot], sets.episodes[slot] = generation, episodes
    for i in rule.watched:
        values, total = aggregate.values[slot, i], sets.sums[slot, i] if one_more else 0.0
        if one_more:
            for r in rows:
                total += world.mean_costs[r, i] + mean_value(core.index, r, world.transitions, values)
        else:
            for r in range(aggregate.visits.shape[1]):
                if aggregate.visits[slot, r] > 0:
                    mean = world.mean_costs[r, i] + mean_value(core.index, r, world.transitions, values)
                    total += aggregate.visits[slot, r] * mean
        sets.sums[slot, i] = total
        excess, squares, scale = total - aggregate.sums[slot, i], aggregate.squares[slot, i], aggregate.ranges[slot, i]
        log_term, outside = log_term_of(rule.log_inverse_delta, len(rule.watched), generation), 0
        # psi(l) >= l^2/2, hence rad >= R sqrt(2 log VV): nearly always that settles it.
        if excess > scale * sqrt(2.0 * log_term * squares):
            outside = 1 if excess > aggregate_radius(log_term, squares, scale) else 0
        sets.tallies.sums += outside - sets.sums_outside[slot, i]
        sets.sums_outside[slot, i] = outside
