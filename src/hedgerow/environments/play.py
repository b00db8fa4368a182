"""Draw an episode: actions from the policy, next states from P, costs of the visited pairs.

Each of the three kinds of chance has a random stream of its own, spawned from one seed: two learners that meet the same
world with the same seed share as much chance as they can. A loop-free episode visits a pair at most once, so drawing
the costs of the visited pairs alone is the same as drawing the whole matrix G_t.
"""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence

from hedgerow.checks import FloatArray, IntArray, seed_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.model.beta_draws import beta
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts, BetaCosts, DeterministicCosts, EmpiricalCosts
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout
from hedgerow.model.pcg64 import Stream, seeded, uniform

BERNOULLI, DETERMINISTIC, BETA, EMPIRICAL, OTHER = 0, 1, 2, 3, 4
"""Kinds of costs; other classes draw with their own `sample`, outside compiled code."""
KINDS = {BernoulliCosts: BERNOULLI, DeterministicCosts: DETERMINISTIC, BetaCosts: BETA, EmpiricalCosts: EMPIRICAL}


class KernelWorld(Bundle):
    """A CMDP as kernels take it. Arrays over rows are (num_rows, m) here: an episode reads them row by row."""

    transitions: FloatArray
    """(num_triples,)"""
    thresholds: FloatArray
    """(m,)"""
    mean_costs: FloatArray
    """(num_rows, m)"""
    cost_kind: int
    shape_a: FloatArray
    """(num_rows, m): the first Beta parameter; empty for other costs"""
    shape_b: FloatArray
    table: FloatArray
    """(matrices, num_rows, m): of empirical costs"""
    cumulative: FloatArray
    """(matrices,): their summed probabilities"""


class Streams(Bundle):
    """The random streams of a simulation; the learner has a coin of its own."""

    actions: Stream
    environment: Stream
    costs: Stream


class Path(Bundle):
    """The buffers of one episode."""

    rows: IntArray
    """(L,)"""
    triples: IntArray
    """(L,)"""
    losses: FloatArray
    """(L,)"""
    costs: FloatArray
    """(L, m)"""


def make_path(layout: Layout, num_constraints: int) -> Path:
    steps = layout.steps
    return Path(
        rows=np.zeros(steps, dtype=np.int64),
        triples=np.zeros(steps, dtype=np.int64),
        losses=np.zeros(steps),
        costs=np.zeros((steps, num_constraints)),
    )


def make_streams(seed: int) -> Streams:
    """Three independent streams."""
    spawned = SeedSequence(seed_number(seed)).spawn(3)
    return Streams(*(seeded(sequence) for sequence in spawned))


def make_world(cmdp: CMDP) -> KernelWorld:
    """The bundle for `cmdp`, with arrays of its own."""
    costs, rows, m = cmdp.costs, cmdp.layout.num_rows, cmdp.num_constraints
    shape_a = shape_b = np.zeros((0, m))
    table, cumulative = np.zeros((0, rows, m)), np.zeros(0)
    if isinstance(costs, BetaCosts):
        shape_a, shape_b = costs.a.T.copy(), costs.b.T.copy()
    if isinstance(costs, EmpiricalCosts):
        table, cumulative = costs.table.transpose(0, 2, 1).copy(), costs.cumulative.copy()
        # Rounding must not reach beyond the last matrix that has a positive probability.
        cumulative[int(np.flatnonzero(costs.probabilities)[-1]) :] = np.inf
    return KernelWorld(
        transitions=cmdp.transitions.copy(),
        thresholds=cmdp.thresholds.copy(),
        mean_costs=cmdp.mean_costs.T.copy(),
        cost_kind=KINDS.get(type(costs), OTHER),
        shape_a=shape_a,
        shape_b=shape_b,
        table=table,
        cumulative=cumulative,
    )


@kernel
def play(index: Index, world: KernelWorld, policy: FloatArray, streams: Streams, path: Path) -> None:
    """Play `policy` (num_rows,) for an episode; writes all of its path but the losses, and moves the streams."""
    matrix = 0
    if world.cost_kind == EMPIRICAL:
        draw = uniform(streams.costs)
        while world.cumulative[matrix] <= draw:
            matrix += 1
    x = 0
    for k in range(len(path.rows)):
        r = _draw(policy, x * index.num_actions, (x + 1) * index.num_actions, uniform(streams.actions))
        j = _draw(world.transitions, index.row_start[r], index.row_start[r + 1], uniform(streams.environment))
        path.rows[k] = r
        path.triples[k] = j
        for i in range(path.costs.shape[1]):
            path.costs[k, i] = _draw_cost(world, r, i, matrix, streams.costs)
        x = index.successor[j]


@kernel
def _draw(probabilities: FloatArray, first: int, last: int, draw: float) -> int:
    """An index in first..last-1, by inversion; rounding never selects one of probability 0."""
    chosen = first
    for j in range(first, last):
        if probabilities[j] > 0.0:
            chosen = j
            draw -= probabilities[j]
            if draw < 0.0:
                break
    return chosen


@kernel
def _draw_cost(world: KernelWorld, row: int, i: int, matrix: int, stream: Stream) -> float:
    if world.cost_kind == BERNOULLI:
        return 1.0 if uniform(stream) < world.mean_costs[row, i] else 0.0
    if world.cost_kind == BETA:
        return beta(stream, world.shape_a[row, i], world.shape_b[row, i])
    if world.cost_kind == EMPIRICAL:
        return float(world.table[matrix, row, i])
    return float(world.mean_costs[row, i])
