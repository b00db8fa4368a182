"""Whole episodes of SV-OPS in worlds of any size, timed in the compiled loop with sampling and exact scoring.

Learning a world of a million triples takes too long. Instead, the learner is told what VISITS visits of every row would
have taught it on average; from there it plays, and settles, before the clock runs. The thresholds are the costs of
uniform play.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from bench import inside
from bench.mirror_steps import Size
from hedgerow.checks import FloatArray
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.simulation.run import Simulation

VISITS = 2_000
EPISODES, DELTA = 20_000, 0.01
SETTLING, SAMPLES = 3, 5
"""Blocks of episodes before the clock runs, and blocks that are timed; the median counts."""
BLOCK_TRIPLES, LONGEST_BLOCK = 200_000, 400
"""Triples per block, and its most episodes: enough that the time of the call does not matter"""


def whole_episode(size: Size, seed: int) -> tuple[float, float]:
    """Seconds per episode, and bytes of the learner per triple."""
    world, loss = ring_world(size, seed)
    learner = SVOPS(world.view(), EPISODES, DELTA, "sharp")
    inside.tell(learner, world, VISITS)
    simulation = Simulation(world, learner, loss, seed)
    block = int(np.clip(BLOCK_TRIPLES // size.layout.num_triples, 1, LONGEST_BLOCK))
    seconds = []
    for _ in range(SETTLING + SAMPLES):
        begun = process_time()
        simulation.advance(block)
        seconds.append((process_time() - begun) / block)
    return float(np.median(seconds[SETTLING:])), inside.bytes_of(learner) / size.layout.num_triples


def ring_world(size: Size, seed: int) -> tuple[CMDP, FloatArray]:
    """A random world of that size, and the loss of all its episodes."""
    layout, rng = size.layout, np.random.default_rng(seed)
    weights = rng.exponential(size=layout.num_triples) + 0.05
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = rng.uniform(0.2, 0.9, (size.constraints, layout.num_rows))
    uniform = np.full(layout.num_rows, 1.0 / layout.num_actions)
    thresholds = costs @ row_occupancy(layout, occupancy(layout, transitions, uniform))
    return CMDP(layout, transitions, BernoulliCosts(costs), thresholds), rng.random(layout.num_rows)
