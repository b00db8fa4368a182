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
from hedgerow.environments.play import KernelWorld, make_path
from hedgerow.environments.scores import Curves, Scores, keep_mark
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import WATCHED, RunContext
from hedgerow.learners.blocks import Losses, RandomStreams, losses_of, no_losses
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
    Counters,
    Watch,
    WatchSums,
    check_rows,
    follow_core,
    make_watch,
    watch_close,
    watch_learning,
    watch_plan,
)
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.counting import refuse_impossible

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
_TYPES = {column.name: column.type for column in DECLARED}
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


class MirrorWatcher:
    """Watches one run of a learner; with `notes` also the further numbers in the proofs, with `estimator` also the loss
    estimator on all pairs.
    """

    def __init__(
        self,
        learner: MirrorLearner,
        stage: RunContext,
        *,
        audit: bool = False,
        notes: bool = False,
        estimator: bool = False,
    ) -> None:
        learner.complete()
        self.learner, self.stage = learner, stage
        layout, m, marks = learner.layout, learner.view.num_constraints, len(stage.curves.marks)
        self.watch = make_watch(layout, m, marks, learner.core, stage.world, audit=audit)
        binding = len(learner.view.binding)
        self.notes = make_notes(layout, binding, marks, estimator=estimator) if notes else None
        self.at_stop: AtStop | None = None
        self._path = make_path(layout, m)
        self._losses = np.zeros(layout.num_rows)
        self._core, self._learnt, self._closed = learner.core, learner.episode, True
        self._logged = learner.core.state.logged.episodes

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled: not if a subclass plans or observes in a way of its own."""
        from hedgerow.learners.ops.base import MirrorLearner

        own = type(self.learner)
        return own.plan is MirrorLearner.plan and own.observe is MirrorLearner.observe

    # Episode by episode ----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Refuse a learner with a plan that nobody has played; finish an episode that an interrupt left open."""
        numbers = self.learner.core.state.numbers
        if numbers.pending:  # compiled code would toss the coin of that episode again
            raise InvalidInput(
                f"episode {self.learner.episode} of the learner is planned already; call observe with what happened "
                "in it before it is simulated"
            )
        if not self._closed or numbers.open or numbers.phase_over:
            self._closed = self._closed and not numbers.open
            self._close(self._core)
        self._follow_logs()

    def planned(self) -> None:
        self._follow_logs()
        stage, self._core, self._learnt = self.stage, self.learner.core, self.learner.episode
        _planned(self._core, stage.world, stage.scores, stage.curves, self.watch, self.notes)

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        if self.notes is not None:
            self._losses[:], self._path.costs[:] = loss, costs
            if len(self.notes.optimism):
                note_estimator(self._core, self.stage.world, self._losses, self.stage.scores, self.notes)
            note_episode(self._core, self._path.costs, self.notes)

    def learnt(self, rows: IntArray) -> bool:
        if self.learner.episode == self._learnt:  # refused
            return False
        own = self._path.rows[: len(rows)]
        own[:] = rows
        if self.notes is not None and len(self.notes.optimism):
            note_learning(self._core, own, self.notes)
        watch_learning(self._core, self.stage.world, own, self.stage.scores, self.watch)
        self._closed = False
        return True

    def finish(self) -> None:
        self.learner.complete()

    def closed(self, mark: int) -> None:
        _closed(self._core, mark, self.watch, self.notes)
        self._closed = True
        self._follow(self._core)

    # In blocks -------------------------------------------------------------------------------------------------------

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""
        self._follow_logs()
        done, given = 0, losses_of(block, pursuit, self._losses)
        while done < len(given.pattern):
            core = self._core = self.learner.core
            done, self._closed = self._run(given, done)
            if core.state.numbers.pending:  # what the learner was told rules the episode out
                path = self._path
                refuse_impossible(self.learner.view, path.rows, path.triples, path.costs)
            if not self._closed or core.state.numbers.phase_over:
                self._close(core)
            self.learner.announce()

    def compile(self) -> None:
        """Compile the loop by running a block of no episodes."""
        self._run(no_losses(), 0)

    def _run(self, given: Losses, done: int) -> tuple[int, bool]:
        stage = self.stage
        chance = RandomStreams(self.learner.coin, stage.streams)
        return run_block(
            self.learner.core, stage.world, stage.scores, stage.curves, self.watch, self.notes, self._path, given, done,
            chance,
        )  # fmt: skip

    def _close(self, core: Core) -> None:
        """Finish the last episode, whose learning began with `core`, and follow the learner into a new phase."""
        self.learner.complete()
        if not self._closed:
            _closed(core, keep_mark(self.stage.scores, self.stage.curves), self.watch, self.notes)
            self._closed = True
        self._follow(core)

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
            check_rows(core, self.stage.world, core.buffers.all_rows, self.watch.sets)

    # What was seen ---------------------------------------------------------------------------------------------------

    @property
    def declared(self) -> tuple[Column, ...]:
        """What `columns` and `facts` return; proofs are no part of tables."""
        return DECLARED if self.learner.mixes else _WITHOUT_BASELINE

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """The weight of the baseline in the checkpoint's episode and summed so far, the bounds of its costs, by how
        much the projection after it misses a threshold, and `Counters`; with notes those of `proof_columns`.
        """
        watch = self.watch
        sums, counters = watch.mark_sums[:reached], watch.mark_counters[:reached]
        return {
            "mixing_weight": sums[:, WatchSums.place("now_mixing")],
            "mixing_total": sums[:, WatchSums.place("mixed")],
            "residual": sums[:, WatchSums.place("now_residual")],
            **{name: column.astype(_TYPES[name]) for name, column in zip(Counters.fields, counters.T, strict=True)},
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
            "refuted_safety": tallies.refuted_safety,
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
