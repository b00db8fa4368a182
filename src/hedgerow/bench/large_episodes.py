"""Whole episodes of SV-OPS in worlds of any size, timed in the compiled loop with sampling and exact scoring.

Nobody waits until a learner knows a world of a million triples. The learner is told instead what VISITS visits of every
row would have taught it on average; from there it plays, and settles, before the clock runs. The thresholds are what
uniform play costs.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from hedgerow.arrays import num_bytes
from hedgerow.bench.mirror_steps import Size
from hedgerow.checks import FloatArray
from hedgerow.estimates.boxes import refresh_all
from hedgerow.learners.mirror.learner import Learner
from hedgerow.learners.mirror.state import MOVED
from hedgerow.learners.mirror.step import prepare
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.simulation.run import Simulation

VISITS = 2_000
EPISODES, DELTA = 20_000, 0.01
SETTLING, SAMPLES = 3, 5
"""Blocks of episodes before the clock runs, and blocks that are timed; the median counts."""
BLOCK_TRIPLES, LONGEST_BLOCK = 200_000, 400
"""A block has enough episodes that calling it does not count."""


def whole_episode(size: Size, seed: int) -> tuple[float, float]:
    """Seconds per episode, and bytes of the learner per triple."""
    world, loss = _world(size, seed)
    learner = _informed(world)
    simulation = Simulation(world, loss, learner, seed)
    block = int(np.clip(BLOCK_TRIPLES // size.layout.num_triples, 1, LONGEST_BLOCK))
    seconds = []
    for _ in range(SETTLING + SAMPLES):
        begun = process_time()
        simulation.advance(block)
        seconds.append((process_time() - begun) / block)
    return float(np.median(seconds[SETTLING:])), num_bytes(learner.core) / size.layout.num_triples


def _world(size: Size, seed: int) -> tuple[CMDP, FloatArray]:
    layout, rng = size.layout, np.random.default_rng(seed)
    weights = rng.exponential(size=layout.num_triples) + 0.05
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = rng.uniform(0.2, 0.9, (size.constraints, layout.num_rows))
    uniform = np.full(layout.num_rows, 1.0 / layout.num_actions)
    thresholds = costs @ row_occupancy(layout, occupancy(layout, transitions, uniform))
    return CMDP(layout, transitions, BernoulliCosts(costs), thresholds), rng.random(layout.num_rows)


def _informed(world: CMDP) -> Learner:
    """A learner with VISITS visits of every row: no episodes lead there, so that it could not be saved or copied."""
    learner, first = SVOPS(world.view(), EPISODES, DELTA, "sharp"), world.layout.row_start[:-1]
    counts = learner.core.state.counts
    moves = np.floor(VISITS * world.transitions).astype(np.int64)
    moves[first] += VISITS - np.add.reduceat(moves, first)
    counts.num_visits[:] = VISITS
    counts.num_moves[:] = moves
    counts.cost_sums[:] = VISITS * world.mean_costs.T
    refresh_all(learner.core.index, counts, learner.core.rule.box, learner.core.state.boxes)
    learner.core.state.numbers[MOVED] = 1  # all boxes are new
    prepare(learner.core)
    return learner
