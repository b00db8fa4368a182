"""Referees: they play the policies of a run and keep its scores.

`Exact` knows the true world: scores are those of the mixtures (`environments/scores.py`), never of samples. `Sampled`
sees no more than the learner does. It reports neither regret nor violation, only what was observed, under names of its
own: `observed_loss` and `observed_cost_i`. Neither believes a learner that is not ours: it gets copies of their plans,
checked (`accepting.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, kind_of
from hedgerow.environments.play import OTHER, make_streams, make_world
from hedgerow.environments.player import Player
from hedgerow.environments.protocol import Environment
from hedgerow.environments.scores import Occupancies, add_scores, keep_mark, make_curves, make_scores
from hedgerow.errors import InvalidInput
from hedgerow.learners.protocol import Plan
from hedgerow.learners.watching import Stage
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.index import private_index


class Exact:
    """Plays in a CMDP and scores by its true transitions and mean costs."""

    scored = "exact"

    def __init__(self, cmdp: CMDP, seed: int, marks: IntArray, *, full: bool, private: bool = False) -> None:
        """With `private` arrays: for learners that are not ours, which share the arrays of the layout."""
        layout, m = cmdp.layout, cmdp.num_constraints
        world, streams = make_world(cmdp), make_streams(seed)
        self.stage = Stage(cmdp, world, make_scores(layout, m), make_curves(layout, m, marks), streams)
        self.scores, self.curves = self.stage.scores, self.stage.curves
        self.compiled = world.cost_kind != OTHER and not full
        index = private_index(layout) if private else None
        self._player = Player(cmdp, world, streams, full=full, index=index)
        self._occupancies = Occupancies(layout, world.transitions, index)
        self._loss = np.zeros(layout.num_rows)

    def add(self, plan: Plan, loss: FloatArray) -> None:
        """Score a plan, before it is played, under the loss (num_rows,)."""
        self._loss[:] = loss
        self.scores.occupancy[:] = self._occupancies.of(plan.mixture)
        add_scores(self.stage.world, self._loss, self.scores)

    def play(self, plan: Plan, loss: FloatArray) -> Episode:
        return self._player.play(plan.policy, loss)

    def keep(self) -> int:
        """The checkpoint that the finished episode is, -1 if none."""
        return keep_mark(self.scores, self.curves)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        return {}


class Sampled:
    """Plays in an environment whose true transitions and costs are unknown."""

    scored, compiled = "sampled", False

    def __init__(self, environment: Environment, seed: int, marks: IntArray) -> None:
        view = environment.view()
        layout, m = view.layout, view.num_constraints
        self._environment, self._rng = environment, Generator(PCG64(SeedSequence(seed)))
        self.scores, self.curves = make_scores(layout, m), make_curves(layout, m, marks)
        curves = self.curves
        for array in (curves.loss, curves.costs, curves.violation, curves.worst, curves.excess):
            array[:] = np.nan  # nothing exact is known
        self._observed = np.zeros(1 + m)
        self._kept = np.zeros((len(marks), 1 + m))

    def add(self, plan: Plan, loss: FloatArray | None) -> None:
        self.scores.tallies.played += 1

    def play(self, plan: Plan, loss: FloatArray | None) -> Episode:
        episode = self._environment.play(plan.policy, self._rng)
        if not isinstance(episode, Episode):
            raise InvalidInput(f"play of an environment returns an Episode, not {kind_of(episode)}")
        self._observed += np.concatenate(([episode.losses.sum()], episode.costs.sum(axis=0)))
        return episode

    def keep(self) -> int:
        tallies = self.scores.tallies
        mark = tallies.next_mark
        if mark >= len(self.curves.marks) or tallies.played != self.curves.marks[mark]:
            return -1
        self._kept[mark] = self._observed
        tallies.next_mark += 1
        return mark

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        kept = self._kept[:reached]
        costs = {f"observed_cost_{i}": kept[:, 1 + i] for i in range(kept.shape[1] - 1)}
        return {"observed_loss": kept[:, 0], **costs}
