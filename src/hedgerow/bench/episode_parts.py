"""What an episode of SV-OPS is made of, and its floor: the loop with one evaluation pass in place of the projection.

One compiled loop runs any selection of the parts over recorded episodes; a part alone, minus the empty loop, is its
price. The evaluation is the pass that Newton's method repeats. The weights are put back after each, so that policy and
iterate stay what they were at the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.random import Generator

from hedgerow.arrays import copy_into
from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling import kernel
from hedgerow.estimates.boxes import refresh_rows
from hedgerow.estimates.columns import load_columns
from hedgerow.estimates.counts import record
from hedgerow.estimates.upper_occupancy import reach_of_states
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.learner import Learner
from hedgerow.learners.mirror.state import EPISODE, ETA, GAMMA
from hedgerow.model.cmdp import CMDP
from hedgerow.projection.dual import evaluate
from hedgerow.projection.masses import evaluate_masses
from hedgerow.simulation.loop import Episode, make_episode
from hedgerow.simulation.play import World, make_streams, make_world, play
from hedgerow.simulation.scoring import (
    Curves,
    Score,
    close_episode,
    make_curves,
    make_score,
    score_learning,
    score_plan,
)

NOTHING, SAMPLING, BOUNDS, BOXES, EVALUATION, SCORING = 0, 1, 2, 4, 8, 16
FLOOR = SAMPLING | BOUNDS | BOXES | EVALUATION | SCORING
EVALUATED, LOOP = "evaluation", "loop"
PARTS = {
    "sampling": SAMPLING,
    "bounds": BOUNDS,
    "boxes": BOXES,
    EVALUATED: EVALUATION,
    "scoring": SCORING,
}
"""Drawing the episode, upper occupancy bounds, counts and confidence sets, one pass of the dual, exact scores."""


@dataclass(frozen=True)
class Recorded:
    """Episodes that were played, to be replayed."""

    rows: IntArray
    """(n, L)"""
    triples: IntArray
    """(n, L)"""
    losses: FloatArray
    """(n, L)"""
    costs: FloatArray
    """(n, L, m)"""
    occupancy: FloatArray
    """(n, num_rows): q_hat after each of them"""


@kernel
def run_parts(
    core: Core,
    world: World,
    score: Score,
    curves: Curves,
    episode: Episode,
    recorded_rows: IntArray,
    recorded_triples: IntArray,
    recorded_costs: FloatArray,
    loss: FloatArray,
    parts: int,
    count: int,
    actions: Generator,
    environment: Generator,
    cost_stream: Generator,
) -> float:
    """Run the chosen parts `count` times; without SAMPLING, on the rows of the recorded episodes (n, L) in turn."""
    index, policy, trace = core.index, core.state.policy, core.buffers.trace
    boxes, counts, problem, columns = core.state.boxes, core.state.counts, core.buffers.problem, core.buffers.columns
    rows, triples, losses, costs = episode.rows, episode.triples, episode.losses, episode.costs
    log_weight, binding = core.state.log_weight, core.baseline.binding
    eta, gamma = core.state.reals[ETA], core.state.reals[GAMMA]
    v, theta, newton = core.buffers.v, core.state.multipliers, core.buffers.newton
    v[:] = 0.0
    theta[:] = 0.0
    evaluate(index, problem, v, theta, newton)
    total = 0.0
    for number in range(count):
        e = number % len(recorded_rows)
        if parts & SCORING:
            score_plan(core, world, loss, score, curves)
        if parts & SAMPLING:
            play(index, world, policy, actions, environment, cost_stream, rows, triples, costs)
        else:
            copy_into(recorded_rows[e], rows)
            copy_into(recorded_triples[e], triples)
            for k in range(len(rows)):
                copy_into(recorded_costs[e, k], costs[k])
        for k in range(len(rows)):
            losses[k] = loss[rows[k]]
            trace.visited[k] = rows[k] // index.num_actions
        if parts & BOUNDS:
            reach_of_states(index, columns, trace.visited, len(rows), trace.reach)
            for k in range(len(rows)):
                trace.u[k] = policy[rows[k]] * trace.reach[k]
        for k in range(len(rows)):
            trace.estimate[k] = losses[k] / (trace.u[k] + gamma)
        if parts & BOXES:
            record(counts, rows, triples, costs)
            refresh_rows(index, counts, core.rule.box, rows, boxes)
            for r in rows:
                for i in range(len(binding)):
                    problem.costs[r, i] = boxes.cost_lower[r, binding[i]]
        if parts & EVALUATION:
            for k in range(len(rows)):
                log_weight[rows[k]] -= eta * trace.estimate[k]
            total += evaluate_masses(index, problem, newton.log_m, theta, v, newton)
            for k in range(len(rows)):
                log_weight[rows[k]] += eta * trace.estimate[k]
        if parts & BOUNDS:
            load_columns(index, boxes.lower, boxes.upper, policy, columns)
        if parts & SCORING:
            score_learning(core, world, rows, score)
            close_episode(core, score, curves)
        total += losses[0]
    return total


class Parts:
    """Times selections of parts for one learner, whose state it changes: hand it a copy."""

    def __init__(self, cmdp: CMDP, learner: Learner, loss: FloatArray, recorded: Recorded) -> None:
        self.core, self.world, self.recorded = learner.core, make_world(cmdp), recorded
        self.loss = np.array(loss, dtype=np.float64)
        self.score = make_score(cmdp.layout, cmdp.num_constraints, self.core, self.world)
        never = np.array([int(self.core.state.numbers[EPISODE]) + 10**12])
        self.curves = make_curves(cmdp.layout, cmdp.num_constraints, never)
        self.episode, self.streams = make_episode(cmdp.layout, cmdp.num_constraints), make_streams(0)

    def seconds(self, parts: int, count: int) -> float:
        """Processor time per episode."""
        begun = process_time()
        self.run(parts, count)
        return (process_time() - begun) / count

    def run(self, parts: int, count: int) -> float:
        recorded, streams = self.recorded, self.streams
        return run_parts(
            self.core, self.world, self.score, self.curves, self.episode,
            recorded.rows, recorded.triples, recorded.costs, self.loss, parts, count,
            streams.actions, streams.environment, streams.costs,
        )  # fmt: skip
