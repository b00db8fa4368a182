"""Algorithm 1 of the paper for a block of episodes, in one compiled call.

    for each episode: toss the learner's coin, score the plan, play it, learn, watch the promises

The learner's step is the one that `observe` calls. The loop leaves compiled code only when a projection needs the slow
solver or a phase of the learner is over; the caller does what is needed and comes back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling import kernel
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.mixing import played_policy, toss
from hedgerow.learners.mirror.safe_search import keep_policy
from hedgerow.learners.mirror.state import EPISODE, PHASE_OVER
from hedgerow.learners.mirror.step import learn
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import SOLVED
from hedgerow.simulation.play import World, play
from hedgerow.simulation.scoring import Curves, Score, close_episode, score_learning, score_plan


class Episode(NamedTuple):
    """The buffers of one episode."""

    rows: IntArray
    """(L,)"""
    triples: IntArray
    """(L,)"""
    losses: FloatArray
    """(L,)"""
    costs: FloatArray
    """(L, m)"""


def make_episode(layout: Layout, num_constraints: int) -> Episode:
    steps = layout.steps
    return Episode(
        rows=np.zeros(steps, dtype=np.int64),
        triples=np.zeros(steps, dtype=np.int64),
        losses=np.zeros(steps),
        costs=np.zeros((steps, num_constraints)),
    )


@kernel
def run_block(
    core: Core,
    world: World,
    score: Score,
    curves: Curves,
    episode: Episode,
    patterns: FloatArray,
    pattern: IntArray,
    first: int,
    coin: Generator,
    actions: Generator,
    environment: Generator,
    cost_stream: Generator,
) -> tuple[int, bool]:
    """Run the episodes first, ..., len(pattern) - 1 of a block of losses: patterns (p, num_rows), pattern (count,).

    Returns how many of the block are done, and whether the last of them is closed: if its projection needs the slow
    solver, the learner has to `complete` it before `close_episode`. Also returns when a phase of the learner is over.
    """
    index, numbers, reals, policy = core.index, core.state.numbers, core.state.reals, core.state.policy
    rows, triples, losses, costs = episode.rows, episode.triples, episode.losses, episode.costs
    baselines = core.baseline.policies
    for i in range(first, len(pattern)):
        loss = patterns[pattern[i]]
        toss(numbers, reals, len(baselines), coin)
        if core.search.active:
            keep_policy(core.state.search.policies, core.search.draws, policy, numbers[EPISODE] + 1, coin)
        score_plan(core, world, loss, score, curves)
        plays = played_policy(numbers, policy, baselines)
        play(index, world, plays, actions, environment, cost_stream, rows, triples, costs)
        for k in range(len(rows)):
            losses[k] = loss[rows[k]]
        code = learn(core, rows, triples, losses, costs)
        score_learning(core, world, rows, score)
        if code != SOLVED:
            return i + 1, False
        close_episode(core, score, curves)
        if numbers[PHASE_OVER]:
            return i + 1, True
    return len(pattern), True
