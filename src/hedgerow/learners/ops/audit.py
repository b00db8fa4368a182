"""The watcher of the mirror-descent family: proofs, notes, and compiled blocks of episodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.premises import NOTHING
from hedgerow.environments.columns import Column
from hedgerow.environments.play import KernelWorld
from hedgerow.environments.scores import Curves, Scores
from hedgerow.learners.api import RunContext
from hedgerow.learners.kernels import Losses, RandomStreams, no_losses
from hedgerow.learners.ops.loop import run_block
from hedgerow.learners.ops.notes import (
    Notes,
    make_notes,
    note_close,
    note_episode,
    note_estimator,
    note_learning,
    note_plan,
    proof_columns,
    proof_facts,
)
from hedgerow.learners.ops.state import Core
from hedgerow.learners.ops.watch import (
    ProjectionCounters,
    Watch,
    WatchSums,
    check_sets,
    follow_core,
    make_watch,
    watch_close,
    watch_learning,
    watch_plan,
)
from hedgerow.learners.watch import WATCHED, LearnerWatcher
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner

_REFUTED = (
    "what a clean event rules out: infeasible projections, unsafe episodes with a baseline; anything but 0 is a defect"
)
DECLARED = (
    *WATCHED,
    Column("residual", label="largest residual", words="of the costs of the projections, at the checkpoints",
           reduce="largest", tables=("checks",)),
    Column("status", "int32", words="of the projection: 0 solved, 1 relaxed, 2 unsolved", reduce="", tables=()),
    Column("infeasible", "int64", "infeasible", "projections without a solution", "sum", "whole", ("checks",)),
    Column("suspect", "int64", "slow solver", "projections left to the slow one", "sum", "whole", ("checks",)),
    Column("iterations", "int64", "steps / episode", "iterations of the projections", "rate", tables=("checks",)),
    Column("bound", words="upper bound of the cost of the episode", reduce="", tables=(), each=True),
    Column("least_excess", reduce="least", tables=(), fact=True),
    Column("refuted_feasibility", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True),
    Column("refuted_safety", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True),
    Column("refuted_premises", "int64", reduce="sum", show="whole", tables=(), fact=True),
    Column("mixing_over", reduce="largest", tables=(), fact=True),
    Column("mixing_slack", reduce="least", tables=(), fact=True),
    Column("mirror_left", tables=(), fact=True),
    Column("mirror_right", tables=(), fact=True),
    Column("t_bar", "int64", "t̄", "end of the exploration phase; median", "median", tables=("answer",), fact=True),
    Column("rho_hat", "float64", "ρ̂", "margin that it found; median", "median", tables=("answer",), fact=True),  # noqa: RUF001
)  # fmt: skip
"""What the watcher keeps: `MirrorWatcher.columns` and `MirrorWatcher.facts` say more."""
_WITHOUT_BASELINE = tuple(
    replace(column, tables=()) if column.name == "mixing_total" else column for column in DECLARED
)
"""Learners without a baseline keep its weight, which is 0, and show none."""


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


class MirrorWatcher(LearnerWatcher):
    """Watches one run of a learner; with `notes` also the further numbers in the proofs, with `estimator` also the loss
    estimator on all pairs.
    """

    learner: MirrorLearner

    def __init__(
        self,
        learner: MirrorLearner,
        stage: RunContext,
        *,
        audit: bool = False,
        notes: bool = False,
        estimator: bool = False,
    ) -> None:
        super().__init__(learner, stage)
        self.declared = DECLARED if learner.mixes else _WITHOUT_BASELINE
        layout, core = learner.layout, learner.core
        self.watch = make_watch(layout, self.event, core, stage.world, audit=audit)
        num_marks, binding = len(stage.curves.marks), len(learner.view.binding)
        self.notes = make_notes(layout, binding, num_marks, estimator=estimator) if notes else None
        self.at_stop: AtStop | None = None
        self._core, self._logged = core, core.state.logged.episodes

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled: not if a subclass plans or observes in a way of its own."""
        from hedgerow.learners.ops.base import MirrorLearner

        return self.learner.keeps_to(MirrorLearner)

    # Episode by episode ----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        super().ready()
        self._follow_logs()

    def planned(self) -> None:
        self._follow_logs()
        super().planned()
        stage, self._core = self.stage, self.learner.core
        _planned(self._core, stage.world, stage.scores, stage.curves, self.watch, self.notes)

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        if self.notes is not None:
            self._losses[:], self._path.costs[:] = loss, costs
            if len(self.notes.optimism):
                note_estimator(self._core, self.stage.world, self._losses, self.stage.scores, self.notes)
            note_episode(self._core, self._path.costs, self.notes)

    def closed(self, mark: int) -> None:
        super().closed(mark)
        self._follow(self._core)

    def _look(self, rows: IntArray) -> None:
        if self.notes is not None and len(self.notes.optimism):
            note_learning(self._core, rows, self.notes)
        watch_learning(self._core, self.stage.world, rows, self.stage.scores, self.watch)

    def _keep(self, mark: int) -> None:
        _closed(self._core, mark, self.watch, self.notes)

    # In blocks -------------------------------------------------------------------------------------------------------

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""
        self._follow_logs()
        super().run_block(block, pursuit)

    def compile(self) -> None:
        """Compile the loop by running a block of no episodes."""
        self._run(no_losses(), 0)

    def _run(self, given: Losses, first: int) -> tuple[int, bool]:
        stage, self._core = self.stage, self.learner.core
        chance = RandomStreams(self.learner.coin, stage.streams)
        return run_block(
            self._core, stage.world, stage.scores, stage.curves, self.watch, self.notes, self._path, given, first,
            chance,
        )  # fmt: skip

    def _close(self) -> None:
        """Finish the last episode, whose learning began with `_core`, and follow the learner into a new phase."""
        super()._close()
        self._follow(self._core)

    def _follow(self, core: Core) -> None:
        """Follow the learner if it has begun a new phase."""
        if self.learner.core is core:
            return
        self._core = self.learner.core
        self.watch = follow_core(self.watch, self.learner.core, self.stage.world)
        if not len(self.watch.baseline):
            return
        scores, cmdp = self.stage.scores, self.stage.cmdp
        self.at_stop = AtStop(
            violation=float(np.max(scores.violation, initial=0.0)),
            unsafe=scores.tallies.unsafe,
            loss=float(scores.loss[0]),
            losses=scores.losses.copy(),
            margin=float(np.min(cmdp.thresholds - cmdp.mean_costs @ self.watch.baseline)),
        )

    def _follow_logs(self) -> None:
        """Check all rows again if the learner has absorbed a log, which changes their sets."""
        core = self.learner.core
        if core.state.logged.episodes != self._logged:
            self._logged = core.state.logged.episodes
            check_sets(core, self.stage.world, core.buffers.all_rows, self.event, self.watch.sets)

    # What was seen ---------------------------------------------------------------------------------------------------

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """The weight of the baseline in the checkpoint's episode and summed so far, the bounds of its costs, by how
        much the projection after it misses a threshold, and the counters; with notes those of `proof_columns`.
        """
        watch = self.watch
        projections = dict(zip(ProjectionCounters.fields, watch.mark_counters[:reached].T, strict=True))
        return {
            **self.mixing_columns(reached),
            "residual": watch.mark_sums[:reached, WatchSums.place("now_residual")],
            **self.event_columns(reached),
            **projections,
            "status": projections["status"].astype(np.int32),
            **{f"bound_{i}": watch.mark_bounds[:reached, i] for i in range(watch.mark_bounds.shape[1])},
            **(proof_columns(self.notes, reached) if self.notes is not None else {}),
        }

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """How the deterministic promises fared.

        least_excess          min of u - q_t over the visited pairs, in an audit over all, while the transitions are in
                              their boxes: >= 0 up to rounding (T4)
        refuted_feasibility   projections without a solution although the event was clean: 0 (T3)
        refuted_safety        episodes with a baseline and a violation although the event was clean: 0 (T7)
        mixing_over           max of lambda - lambda_0 while projections are feasible: <= 0 up to rounding (T8)
        mixing_slack          min of (bound of lambda by the widths of the sets) - lambda: >= 0 (T9); needs an audit
        mirror_left, _right   the two sides of the mirror-descent inequality (T18)
        refuted_premises      1 if something that the learner was told was refuted
        t_bar, rho_hat        of CV-OPS: how long its search took, and the margin that it found

        With notes also those of `proof_facts`.
        """
        sums, tallies, layout = self.watch.sums, self.watch.tallies, self.learner.layout
        entropy = layout.steps * log(layout.num_states**2 * layout.num_actions)
        return {
            "least_excess": sums.least_excess,
            "refuted_feasibility": tallies.refuted_feasibility,
            "refuted_safety": self.event.counters.refuted_safety,
            "mixing_over": sums.mixing_over,
            "mixing_slack": sums.mixing_slack,
            "mirror_left": float(sums.mirror_linear - self.watch.estimates @ comparator),
            "mirror_right": entropy * sums.mirror_restarts + sums.mirror_square,
            "refuted_premises": int(self.learner.core.state.premises.numbers.what != NOTHING),
            "t_bar": getattr(self.learner, "t_bar", None),
            "rho_hat": getattr(self.learner, "rho_hat", None),
            **(proof_facts(self, self.notes, comparator) if self.notes is not None else {}),
        }


@kernel
def _planned(core: Core, world: KernelWorld, scores: Scores, curves: Curves, watch: Watch, notes: Notes | None) -> None:
    if notes is not None:
        note_plan(core, world, watch, notes)
    watch_plan(core, world, scores, curves, watch)


@kernel
def _closed(core: Core, mark: int, watch: Watch, notes: Notes | None) -> None:
    watch_close(core, mark, watch)
    if notes is not None:
        note_close(core, mark, notes)
