"""Play policies in a CMDP, with one random stream for each kind of chance.

Compiled code draws costs of the four built-in classes, pair by pair. Any other `CostDistribution` draws with its own
`sample` the whole matrix G_t of an episode; so do all of them for learners with full feedback.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, within
from hedgerow.environments.play import OTHER, KernelWorld, Streams, make_path, make_world, play
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.identity import same_layout
from hedgerow.model.index import Index, index_of
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.pcg64 import borrowed, lent
from hedgerow.model.policy import Policy


class Player:
    """A CMDP and the streams that its episodes are drawn from."""

    def __init__(
        self, cmdp: CMDP, world: KernelWorld, streams: Streams, *, full: bool = False, index: Index | None = None
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
