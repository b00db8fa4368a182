"""Access to the internals of mirror-descent learners and of projectors; no other benchmark module has it.

A peer that continues from a learner of ours needs its counts and its iterate; a world of a million triples needs a
learner that has been told what it would have seen. To measure what a call from Python adds to a projection, its
compiled part is called alone. Everything else is measured through public calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.confidence.boxes import refresh_all
from hedgerow.forecast.preflight import num_bytes
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.step import prepare
from hedgerow.model.cmdp import CMDP
from hedgerow.projection.projector import Answer, Projector, solve_on


@dataclass(frozen=True)
class Seen:
    """What a learner has counted, as copies: visits (num_rows,), moves (num_triples,), cost sums (m, num_rows)."""

    visits: FloatArray
    moves: FloatArray
    cost_sums: FloatArray


def seen(learner: MirrorLearner) -> Seen:
    """The counts of a learner."""
    counts = learner.core.state.counts
    visits, moves = counts.num_visits.astype(np.float64), counts.num_moves.astype(np.float64)
    return Seen(visits, moves, counts.cost_sums.T.copy())


def row_iterate(learner: MirrorLearner) -> FloatArray:
    """q_hat of every row, (num_rows,)."""
    return np.asarray(np.exp(learner.core.state.log_weight))


def triple_iterate(learner: MirrorLearner) -> FloatArray:
    """q_hat of every triple, (num_triples,)."""
    return np.asarray(row_iterate(learner)[learner.layout.row_of_triple] * learner.core.state.conditional)


@dataclass(frozen=True)
class Effort:
    """What the projections of a learner have to do."""

    steps: float
    """Newton steps per episode"""
    own: float
    """The probability that its own policy plays: an episode of the baseline hardly moves it"""
    held: float
    """The share of transitions that are at a bound of their box"""


def effort(learner: MirrorLearner, steps: int, episodes: int) -> Effort:
    """The effort now, and since it had made so many steps in so many episodes."""
    state = learner.core.state
    made = (int(state.numbers.iterations) - steps) / max(1, learner.episode - episodes)
    return Effort(made, 1.0 - float(state.reals.mixing), float(np.mean(state.bound != 0)))


def bytes_of(learner: MirrorLearner) -> int:
    """Memory of a learner with all its buffers."""
    return num_bytes(learner.core)


def tell(learner: MirrorLearner, world: CMDP, visits: int) -> None:
    """Tell a new learner what `visits` visits of every row would have taught it on average.

    No episodes lead there: such a learner cannot be saved or copied.
    """
    first, counts = world.layout.row_start[:-1], learner.core.state.counts
    moves = np.floor(visits * world.transitions).astype(np.int64)
    moves[first] += visits - np.add.reduceat(moves, first)
    counts.num_visits[:] = counts.num_costs[:] = visits
    counts.num_moves[:] = moves
    counts.cost_sums[:] = visits * world.mean_costs.T
    refresh_all(learner.core.index, counts, learner.core.sets.rule.box, learner.core.state.boxes)
    learner.core.state.numbers.moved = 1  # all boxes are new
    prepare(learner.core)


def compiled_solve(projector: Projector) -> Callable[[], Answer]:
    """The compiled call of `projector.project`, on the arrays of the last call; it starts from where it ended."""
    settings = projector.settings
    return partial(solve_on, projector._desk, settings.tol, settings.suspect_theta, settings.suspect_iterations)


def start_over(projector: Projector) -> None:
    """Let the next `compiled_solve` start from v = 0 and theta = 0, as `project` does without a warm start."""
    projector._desk.v[:] = 0.0
    projector._desk.theta[:] = 0.0
