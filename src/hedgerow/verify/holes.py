"""A world in which a step costs 1 if it leads into a hole: cost and next state are one draw (docs/aggregate.md).

A simulation draws costs apart from moves. So the world has costs of the same means, and its learner sees those of its
moves in their place; true costs and safety are the same for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow import worlds
from hedgerow.checks import FloatArray
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout

THRESHOLD = 0.8


def holes() -> tuple[CMDP, FloatArray]:
    """Four steps, declared to have costs that are drawn with the step; and the world's own loss (num_rows,)."""
    world = worlds.make("random-layered", layers=(1, 3, 3, 3, 1), actions=3, constraints=1)
    layout, P = world.cmdp.layout, world.cmdp.transitions
    means = np.bincount(layout.row_of_triple, P * is_hole(layout)[layout.successor], layout.num_rows)
    costs = BernoulliCosts([np.minimum(means, 1.0)])
    return CMDP(layout, P, costs, [THRESHOLD], knowledge={"costs_drawn": "step"}), world.loss


def is_hole(layout: Layout) -> FloatArray:
    """(num_states,): 1 in the last state of every layer but the first and the last one, else 0."""
    found = np.zeros(layout.num_states)
    found[layout.state_start[2:-1] - 1] = 1.0
    return found


class FallsIntoHoles(SOPS):
    """S-OPS that sees the costs of its moves."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        """Learn from the same episode with the costs of its moves."""
        super().observe(self._fallen(episode) if isinstance(episode, Episode) else episode, *more, **named)

    def _fallen(self, episode: Episode) -> Episode:
        costs = is_hole(self.layout)[self.layout.successor[episode.triples]]
        return Episode(self.view, episode.rows, episode.losses, costs[:, np.newaxis])
