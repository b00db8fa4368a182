"""A simulation that keeps what the proofs speak of (`watching.py`): the same run, bit for bit, with more notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.adversaries.losses import Fixed
from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.learner import Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.promises.watching import (
    choose_loss,
    make_notes,
    note_close,
    note_episode,
    note_estimator,
    note_learning,
    note_plan,
    watch_block,
)
from hedgerow.simulation.play import play
from hedgerow.simulation.run import Simulation
from hedgerow.simulation.scoring import LOSS, UNSAFE_SO_FAR, score_learning, score_plan


@dataclass(frozen=True)
class AtStop:
    """The moment at which CV-OPS ended its search."""

    violation: float
    unsafe: int
    loss: float
    losses: FloatArray
    """(num_rows,): sum of the losses so far"""
    margin: float
    """min_i (alpha_i - g_i^T q) of the mixture it found, exactly"""


class Witness(Simulation):
    """`simulate` with notes. `pursuit` > 0 is the rate of the adaptive adversary, which then replaces `losses`;
    `estimator` also watches the loss estimator on all pairs.
    """

    def __init__(
        self,
        cmdp: CMDP,
        losses: Any,
        learner: Learner,
        seed: int = 0,
        *,
        pursuit: float = 0.0,
        estimator: bool = False,
        step_wise: bool = False,
        marks: str | ArrayLike = "log",
        audit: bool = False,
    ) -> None:
        given = Fixed(np.zeros(cmdp.layout.num_rows)) if pursuit > 0.0 else losses
        super().__init__(cmdp, given, learner, seed, step_wise=step_wise, marks=marks, audit=audit)
        self.pursuit = float(pursuit)
        binding = int(np.sum(cmdp.thresholds < cmdp.layout.steps))
        self.notes = make_notes(cmdp.layout, binding, len(self.curves.marks), estimator=estimator)
        self.at_stop: AtStop | None = None

    def _compiled(self, core: Core, patterns: FloatArray, pattern: IntArray, first: int) -> tuple[int, bool]:
        streams = self.streams
        return watch_block(
            core, self.world, self.score, self.curves, self.notes, self.episode, patterns, pattern, first,
            self.pursuit, self.learner.coin, streams.actions, streams.environment, streams.costs,
        )  # fmt: skip

    def _close_episode(self, core: Core) -> None:
        super()._close_episode(core)
        note_close(core, self.score, self.curves, self.notes)

    def _follow(self) -> None:
        super()._follow()
        if not len(self.score.baseline):
            return
        margins = self.cmdp.thresholds - self.cmdp.mean_costs @ self.score.baseline
        self.at_stop = AtStop(
            violation=float(np.max(self.score.violation, initial=0.0)),
            unsafe=int(self.score.tallies[UNSAFE_SO_FAR]),
            loss=float(self.score.sums[LOSS]),
            losses=self.score.losses.copy(),
            margin=float(np.min(margins)),
        )

    def _step(self, loss: FloatArray) -> FloatArray:
        """One episode through `plan` and `observe`; broken learners come this way."""
        learner, episode, streams, notes = self.learner, self.episode, self.streams, self.notes
        core = learner.core
        self._loss[:] = loss
        choose_loss(core.index.num_actions, self.pursuit, self._loss, notes)
        learner.plan()
        played = self._plays(core)
        note_plan(core, self.world, self.score, notes)
        self._score_plan(core)
        if len(notes.optimism):
            note_estimator(core, self.score, notes)
        play(
            core.index, self.world, played, streams.actions, streams.environment, streams.costs,
            episode.rows, episode.triples, episode.costs,
        )  # fmt: skip
        note_episode(core, self.pursuit, played, episode.costs, notes)
        learner.observe(episode.rows, notes.loss[episode.rows], episode.costs)
        if len(notes.optimism):
            note_learning(core, episode.rows, notes)
        score_learning(core, self.world, episode.rows, self.score)
        self._closed = False
        self._close(core)
        return played

    def _plays(self, core: Core) -> FloatArray:
        """The policy (num_rows,) that is really played; a control may differ from the plan."""
        return self.learner.played_array().copy()

    def _score_plan(self, core: Core) -> None:
        score_plan(core, self.world, self.notes.loss, self.score, self.curves)
