"""Draw an episode: actions from the policy, next states from P, costs of the visited pairs.

Each of the three kinds of chance has a random stream of its own, spawned from one seed: two learners that meet the same
world with the same seed share as much chance as they can. A loop-free episode visits a pair at most once, so drawing
the costs of the visited pairs alone is the same as drawing the whole matrix G_t.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, float_array, seed_number, within
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts, BetaCosts, DeterministicCosts, EmpiricalCosts
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.random_streams import Stream, beta, borrowed, lent, seeded, uniform
from hedgerow.model.view import View, same_layout

BERNOULLI, DETERMINISTIC, BETA, EMPIRICAL, OTHER = 0, 1, 2, 3, 4
"""Kinds of costs; other classes draw with their own `sample`, outside compiled code."""
KINDS = {BernoulliCosts: BERNOULLI, DeterministicCosts: DETERMINISTIC, BetaCosts: BETA, EmpiricalCosts: EMPIRICAL}


class WorldArrays(Bundle):
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


def make_world(cmdp: CMDP) -> WorldArrays:
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
    return WorldArrays(
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
def play(index: LayoutArrays, world: WorldArrays, policy: FloatArray, streams: Streams, path: Path) -> None:
    """Play `policy` (num_rows,) for an episode; writes all of its path but the losses, and moves the streams."""
    matrix = _draw_matrix(world, streams.costs)
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
def _draw_matrix(world: WorldArrays, stream: Stream) -> int:
    """Which matrix of empirical costs an episode has; 0 for other costs, which draw nothing for it."""
    matrix = 0
    if world.cost_kind == EMPIRICAL:
        draw = uniform(stream)
        while world.cumulative[matrix] <= draw:
            matrix += 1
    return matrix


@kernel
def _draw_cost(world: WorldArrays, row: int, i: int, matrix: int, stream: Stream) -> float:
    if world.cost_kind == BERNOULLI:
        return 1.0 if uniform(stream) < world.mean_costs[row, i] else 0.0
    if world.cost_kind == BETA:
        return beta(stream, world.shape_a[row, i], world.shape_b[row, i])
    if world.cost_kind == EMPIRICAL:
        return float(world.table[matrix, row, i])
    return float(world.mean_costs[row, i])


@kernel
def draw_costs(world: WorldArrays, stream: Stream, costs: FloatArray) -> None:
    """Draw the whole matrix G_t of an episode into `costs` (num_rows, m), as `sample` of the four classes does."""
    matrix = _draw_matrix(world, stream)
    for i in range(costs.shape[1]):
        for r in range(costs.shape[0]):
            costs[r, i] = _draw_cost(world, r, i, matrix, stream)


# --------------------------------------------------------------------------------------------------------------------
# Play policies in a CMDP, with one random stream for each kind of chance.
#
# Compiled code draws costs of the four built-in classes, pair by pair. Any other `CostDistribution` draws with its own
# `sample` the whole matrix G_t of an episode; so do all of them for learners with full feedback. `draw_costs` draws the
# same matrix in compiled loops.


class Player:
    """A CMDP and the streams that its episodes are drawn from."""

    def __init__(
        self, cmdp: CMDP, world: WorldArrays, streams: Streams, *, full: bool = False, index: LayoutArrays | None = None
    ) -> None:
        self._cmdp, self._world, self._streams, self._full = cmdp, world, streams, full
        self._view = cmdp.view()
        self._index = index_of(cmdp.layout) if index is None else index
        self._path = make_path(cmdp.layout, cmdp.num_constraints)
        self._policy = np.zeros(cmdp.layout.num_rows)

    def play(self, policy: Policy, loss: FloatArray) -> Episode:
        """Play an episode under the loss (num_rows,); with full feedback it has the losses and costs of all pairs."""
        rows, triples, costs = self._path.rows, self._path.triples, self._path.costs
        self._policy[:] = policy.probabilities  # kernels are compiled once, for writable arrays
        world, all_costs = self._world, None
        if self._full or world.cost_kind == OTHER:
            world = world.replace(cost_kind=OTHER)
        play(self._index, world, self._policy, self._streams, self._path)
        if world.cost_kind == OTHER:
            all_costs = self._sampled()
            costs = all_costs[rows]
        if not self._full:
            return Episode.trusted(self._view, rows, triples, loss[rows], costs)
        # Copied: these would be arrays of the adversary and of the world.
        everything = np.array(loss), np.array(all_costs)
        return Episode.trusted(self._view, rows, triples, loss[rows], costs, *everything)

    def _sampled(self) -> FloatArray:
        """Draw G_t (num_rows, m) and check it: the class that draws it may be a user's."""
        costs, shape = self._cmdp.costs, (self._cmdp.num_constraints, self._cmdp.layout.num_rows)
        what = f"a cost drawn by {type(costs).__name__}.sample"
        where = self._cmdp.layout.describe_row
        with lent(self._streams.costs) as rng:
            drawn = costs.sample(rng)
        matrix = within(what, float_array(what, drawn, shape, where), 0.0, 1.0, where)
        return np.ascontiguousarray(matrix.T)


def played(cmdp: CMDP, policy: Policy | ArrayLike, rng: Generator, loss: ArrayLike | None = None) -> Episode:
    """Play one episode of a policy under a loss (num_rows,), 0 by default, with all chance from one generator."""
    layout = cmdp.layout
    losses = np.zeros(layout.num_rows) if loss is None else checked_loss(layout, loss)
    chosen = policy if isinstance(policy, Policy) and same_layout(policy.layout, layout) else Policy(layout, policy)
    with borrowed(rng) as stream:
        return Player(cmdp, make_world(cmdp), Streams(stream, stream, stream)).play(chosen, losses)


# --------------------------------------------------------------------------------------------------------------------
# Many episodes of one policy, or of one mixture, drawn in one compiled call: logs for tests, benchmarks and examples.
#
# With the same seed, a policy gets the episodes that a simulation would draw. A mixture chooses its policies with a
# stream of its own.


class Played(Bundle):
    """All episodes, one after the other."""

    chosen: IntArray
    """(episodes,): which policy plays each of them"""
    rows: IntArray
    """(episodes L,)"""
    triples: IntArray
    """(episodes L,)"""
    costs: FloatArray
    """(episodes L, m)"""


def play_many(
    cmdp: CMDP, policy: Policy | Mixture | ArrayLike, episodes: int, seed: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows (episodes L,), triples (episodes L,) and costs (episodes L, m)."""
    layout, m = cmdp.layout, cmdp.num_constraints
    given = policy.policies() if isinstance(policy, Mixture) else [(1.0, policy)]
    parts = [(weight, _policy_of(cmdp, part)) for weight, part in given]
    weights = np.array([weight for weight, _ in parts])
    mixing = Generator(PCG64(SeedSequence(seed_number(seed)).spawn(4)[3]))
    chosen = (
        mixing.choice(len(parts), size=episodes, p=weights / weights.sum()) if len(parts) > 1 else np.zeros(episodes)
    )
    size = episodes * layout.steps
    target = Played(
        chosen=chosen.astype(np.int64),
        rows=np.zeros(size, dtype=np.int64),
        triples=np.zeros(size, dtype=np.int64),
        costs=np.zeros((size, m)),
    )
    world = make_world(cmdp)
    if world.cost_kind == OTHER:
        _play_slowly(cmdp, world, [part for _, part in parts], seed, target)
    else:
        policies = np.array([part.probabilities for _, part in parts])
        play_block(index_of(layout), world, policies, make_streams(seed), make_path(layout, m), target)
    return target.rows, target.triples, target.costs


def _policy_of(cmdp: CMDP, policy: Policy | ArrayLike) -> Policy:
    own = isinstance(policy, Policy) and same_layout(policy.layout, cmdp.layout)
    return policy if isinstance(policy, Policy) and own else Policy(cmdp.layout, policy)


@kernel
def play_block(
    index: LayoutArrays, world: WorldArrays, policies: FloatArray, streams: Streams, path: Path, target: Played
) -> None:
    """Play policies[chosen[e]] (num_rows,) in each episode e."""
    steps = len(path.rows)
    for e in range(len(target.chosen)):
        play(index, world, policies[target.chosen[e]], streams, path)
        copy_into(path.rows, target.rows[e * steps : (e + 1) * steps])
        copy_into(path.triples, target.triples[e * steps : (e + 1) * steps])
        for k in range(steps):
            for i in range(path.costs.shape[1]):
                target.costs[e * steps + k, i] = path.costs[k, i]


def _play_slowly(cmdp: CMDP, world: WorldArrays, policies: list[Policy], seed: int, target: Played) -> None:
    """Play outside compiled code, for cost classes that compiled code does not know."""
    player, steps = Player(cmdp, world, make_streams(seed)), cmdp.layout.steps
    silent = np.zeros(cmdp.layout.num_rows)
    for e, j in enumerate(target.chosen.tolist()):
        episode, own = player.play(policies[j], silent), slice(e * steps, (e + 1) * steps)
        target.rows[own], target.triples[own], target.costs[own] = episode.rows, episode.triples, episode.costs


# --------------------------------------------------------------------------------------------------------------------
# The protocol of environments: anything that can play a policy for an episode and report what happened.
#
# A CMDP is one. It also knows the truth, so runs in it are scored exactly. Any other environment (a Gymnasium
# environment, a simulator, a plant) gives only samples.


@runtime_checkable
class Environment(Protocol):
    """Something to play policies in, such as a simulator of your own or a real plant.

    Any object with these two methods will do. A `CMDP` is one as well, and knows the truth, so that runs in it are
    scored exactly. In any other environment there are only samples.

    Examples:
        >>> import hedgerow as hr
        >>> class Corridor:
        ...     def view(self):
        ...         return hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        ...
        ...     def play(self, policy, rng):
        ...         action = policy.draw("home", rng)
        ...         return hr.Episode(self.view(), [("home", action)], losses=[0.5 * action], costs=[1.0 - action])
        >>> isinstance(Corridor(), hr.Environment)
        True
    """

    def view(self) -> View:
        """Return what a learner may know of the environment."""

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Play one episode.

        Args:
            policy: The policy to play, to the end of the episode.
            rng: The generator for every chance that is not the environment's own, such as the choice of actions.

        Returns:
            What happened.
        """
