"""The watcher of the LP learners: that of the field, what became of their programs, and compiled blocks of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.adversaries.adaptive import Pursuit
from hedgerow.adversaries.loss_blocks import LossBlock
from hedgerow.checks import FloatArray, IntArray
from hedgerow.environments.play import make_path
from hedgerow.environments.scores import forward, keep_mark
from hedgerow.errors import InvalidInput
from hedgerow.learners.blocks import Chance, losses_of
from hedgerow.learners.field.lp_core import LPFigures, LPNumbers
from hedgerow.learners.field.lp_loop import (
    LPWatch,
    close_lp,
    make_lp_watch,
    run_block,
    watch_lp_learning,
    watch_lp_plan,
)
from hedgerow.learners.field.watch import look_at_rows
from hedgerow.learners.field.watcher import FieldWatcher
from hedgerow.learners.watching import Stage
from hedgerow.model.index import index_of

if TYPE_CHECKING:
    from hedgerow.learners.field.lp_base import LPLearner

NUMBERS = ("infeasible", "unsolved")
"""The counters that become columns"""


class LPWatcher(FieldWatcher):
    """Watches one run of an LP learner; able to run blocks of episodes compiled."""

    learner: LPLearner

    def __init__(self, learner: LPLearner, stage: Stage) -> None:
        layout, m = learner.layout, learner.view.num_constraints
        self.learner, self.stage = learner, stage
        self.lp: LPWatch = make_lp_watch(layout, m, len(stage.curves.marks), _occupancy(learner, stage))
        self.watch = self.lp.field
        self._path, self._losses = make_path(layout, m), np.zeros(layout.num_rows)
        self._episode, self._closed = learner.episode, True
        core = learner.core
        look_at_rows(core.index, stage.world, core.boxes, core.all_rows, self.watch)

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled: not if a subclass plans or observes in a way of its own."""
        return self.learner.learns_as_compiled

    # Episode by episode ----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Refuse a learner with a plan that nobody has played; finish an episode that an interrupt left open."""
        if self.learner.progress.pending:  # compiled code would toss the coin of that episode again
            raise InvalidInput(
                f"episode {self.learner.episode} of the learner is planned already; call observe with what happened "
                "in it before it is simulated"
            )
        self._close()

    def planned(self) -> None:
        self._episode = self.learner.episode
        watch_lp_plan(self.learner.core, self.stage.scores, self.lp)

    def learnt(self, rows: IntArray) -> bool:
        if self.learner.episode == self._episode:  # refused
            return False
        watch_lp_learning(self.learner.core, self.stage.world, rows.copy(), self.lp)
        return True

    def finish(self) -> None:
        self.learner.complete()

    def closed(self, mark: int) -> None:
        close_lp(mark, self.lp)

    # In blocks -------------------------------------------------------------------------------------------------------

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""
        stage, learner, done = self.stage, self.learner, 0
        given = losses_of(block, pursuit, self._losses)
        chance = Chance(learner.coin, stage.streams)
        while done < len(given.pattern):
            try:
                done, self._closed = run_block(
                    learner.core, stage.world, stage.scores, stage.curves, self.lp, self._path, given, done, chance
                )
            finally:
                learner.statistics.counted(learner.episode)
            self._close()

    def _close(self) -> None:
        """Finish the last episode, if its plan waits for the slow solver."""
        self.learner.complete()
        if not self._closed:
            close_lp(keep_mark(self.stage.scores, self.stage.curves), self.lp)
            self._closed = True

    # What was seen ---------------------------------------------------------------------------------------------------

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """Those of the field, how often a program had no solution or needed the slow solver, and the plan's value."""
        kept = super().columns(reached)
        for name in NUMBERS:
            kept[name] = self.lp.mark_numbers[:reached, LPNumbers.place(name)]
        kept["plan_value"] = self.lp.mark_figures[:reached, LPFigures.place("value")]
        return kept


def _occupancy(learner: LPLearner, stage: Stage) -> FloatArray:
    """(num_rows,): the true occupancy of the baseline; empty without one."""
    if learner.baseline is None:
        return np.zeros(0)
    layout = learner.layout
    found, reach = np.zeros(layout.num_rows), np.zeros(layout.num_states)
    forward(index_of(layout), stage.world.transitions, learner.baseline.probabilities.copy(), reach, found)
    return found
