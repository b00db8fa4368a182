"""Algorithm 1 of the paper for a block of episodes, in one compiled call; and the watcher that runs it.

    for each episode: draw which policy plays, score the plan, play it, learn, watch the promises

`observe` calls the same step. The loop leaves compiled code only when a projection needs the slow solver or a phase of
the learner is over; the watcher does what is needed and calls it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.premises import NOTHING, is_fresh, is_impossible
from hedgerow.environments.columns import Column
from hedgerow.environments.play import Path, WorldArrays, play
from hedgerow.environments.scores import Curves, Scores, add_scores, keep_mark
from hedgerow.learners.kernels import Losses, RandomStreams, mixture_occupancy, no_losses, pursue, remember
from hedgerow.learners.ops.mixing import draw_policy, is_due
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
from hedgerow.learners.ops.pool import add_members
from hedgerow.learners.ops.search import keep_policy
from hedgerow.learners.ops.settings import budget_events
from hedgerow.learners.ops.state import Core
from hedgerow.learners.ops.step import learn
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
from hedgerow.learners.watch import WATCHED, LearnerWatcher, RunContext
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.projection.newton import SOLVED

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner


@kernel
def run_block(
    core: Core,
    world: WorldArrays,
    scores: Scores,
    curves: Curves,
    watch: Watch,
    notes: Notes | None,
    path: Path,
    given: Losses,
    first: int,
    chance: RandomStreams,
) -> tuple[int, bool]:
    """Run the episodes first, ... of a block of losses; without `notes`, code for notes is not compiled.

    Returns how many of the block are done, and whether the last of them is closed: if its projection needs the slow
    solver, the learner has to `complete` it first. Also returns when a phase of the learner is over, when the members
    of its pool are to be chosen, when something
    that it was told has been refuted, and when it was told that an episode is impossible, which then stays pending.
    """
    index, numbers, policy, baselines = core.index, core.state.numbers, core.state.policy, core.baseline.policies
    rows, triples, losses, costs = path.rows, path.triples, path.losses, path.costs
    for i in range(first, len(given.pattern)):
        loss = given.patterns[given.pattern[i]]
        if given.rate > 0.0:
            loss = given.pursuit
            pursue(index.num_actions, given)
        numbers.branch = draw_policy(core, chance.coin)
        numbers.pending = 1
        if core.search.active:
            searched = numbers.episode - core.state.search.broken.skipped
            keep_policy(core.search, core.state.search, policy, searched + 1, chance.coin)
        mixture_occupancy(index, world, policy, core.state.reals.mixing, watch.baseline, scores)
        add_members(index, world, core.pool, core.pool_rule, watch.baseline, scores)
        add_scores(world, loss, scores)
        if notes is not None:
            note_plan(core, world, watch, notes)
        watch_plan(core, world, scores, curves, watch)
        if notes is not None and len(notes.optimism) > 0:
            note_estimator(core, world, loss, scores, notes)
        plays = policy
        if numbers.branch > len(baselines):
            plays = core.pool.policies[numbers.branch - 1 - len(baselines)]
        elif numbers.branch > 0:
            plays = baselines[numbers.branch - 1]
        play(index, world, plays, chance.streams, path)
        if given.rate > 0.0:
            remember(given, plays)
        if notes is not None:
            note_episode(core, costs, notes)
        for k in range(len(rows)):
            losses[k] = loss[rows[k]]
        if is_impossible(core.rule.premises, rows, triples, costs):
            return i, True
        code = learn(core, rows, triples, losses, costs)
        if notes is not None and len(notes.optimism) > 0:
            note_learning(core, rows, notes)
        watch_learning(core, world, rows, scores, watch)
        if code != SOLVED:
            return i + 1, False
        mark = keep_mark(scores, curves)
        watch_close(core, mark, watch)
        if notes is not None:
            note_close(core, mark, notes)
        if numbers.phase_over or is_fresh(core.state.premises) or is_due(core):
            return i + 1, True
    return len(given.pattern), True


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
    Column("pool_weight", words="probability of the pool of C-OPS", reduce="", tables=(), least=0.0),
    Column("pool_reason", words="which set allowed its heaviest member: 0 box, 1 ball, 2 certificate, 3 anchored",
           reduce="", tables=()),
    Column("least_excess", reduce="least", tables=(), fact=True),
    Column("refuted_feasibility", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True),
    Column("refuted_safety", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True),
    Column("refuted_premises", "int64", reduce="sum", show="whole", tables=(), fact=True),
    Column("mixing_over", reduce="largest", tables=(), fact=True),
    Column("mixing_slack", reduce="least", tables=(), fact=True),
    Column("mirror_left", tables=(), fact=True),
    Column("mirror_right", tables=(), fact=True),
    Column("mirror_least", tables=(), fact=True),
    Column("t_bar", "int64", "t̄", "end of the exploration phase; median", "median", tables=("answer",), fact=True),
    Column("rho_hat", "float64", "ρ̂", "margin that it found; median", "median", tables=("answer",), fact=True),  # noqa: RUF001
)  # fmt: skip
"""What the watcher keeps: `MirrorWatcher.columns` and `MirrorWatcher.facts` say more."""
_ACCOUNT = (
    Column("overdrawn", "int64", "budget kept",
           "seeds whose summed expected costs never exceeded the thresholds, summed", "seeds", "whole", ("answer",)),
    Column("reserve", label="least reserve", words="least of (budget - expected costs) so far, over all episodes",
           reduce="least", tables=("answer", "figures")),
    Column("account_breaches", "int64", reduce="sum", show="whole", tables=(), fact=True),
    Column("budget_share", "int64", reduce="largest", show="whole", tables=(), fact=True),
    Column("refuted_budget", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True),
)  # fmt: skip
"""Of learners with an account besides"""
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
        self._has_account = bool(learner.core.rule.account.active)
        if self._has_account:
            self.declared += _ACCOUNT
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
            **self._account_columns(reached),
            **self._pool_columns(reached),
            **{f"bound_{i}": watch.mark_bounds[:reached, i] for i in range(watch.mark_bounds.shape[1])},
            **(proof_columns(self.notes, reached) if self.notes is not None else {}),
        }

    def _account_columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """In how many episodes so far the budget was exceeded, and the least reserve."""
        watch = self.watch
        if not self._has_account:
            return {}
        return {
            "overdrawn": watch.mark_overdrawn[:reached],
            "reserve": watch.mark_sums[:reached, WatchSums.place("reserve")],
        }

    def _account_facts(self) -> dict[str, int]:
        tallies = self.watch.tallies
        if not self._has_account:
            return {}
        return {
            "account_breaches": tallies.account_breaches,
            "refuted_budget": tallies.refuted_budget,
            "budget_share": budget_events(self.learner.settings),
        }

    def _pool_columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """What is kept of the pool of C-OPS; nothing of other learners."""
        if not len(self.learner.core.pool.weights):
            return {}
        names = {"pool_weight": "now_share", "pool_reason": "now_reason"}
        return {name: self.watch.mark_sums[:reached, WatchSums.place(field)] for name, field in names.items()}

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """How the deterministic promises fared.

        least_excess          min of u - q_t over the visited pairs, in an audit over all, while the transitions are in
                              their boxes: >= 0 up to rounding (T4)
        refuted_feasibility   projections without a solution although the event was clean: 0 (T3)
        refuted_safety        episodes with a baseline and a violation although the event was clean: 0 (T7)
        mixing_over           max of lambda - lambda_0 while projections are feasible: <= 0 up to rounding (T8)
        mixing_slack          min of (bound of lambda by the widths of the sets) - lambda: >= 0 (T9); needs an audit
        mirror_left, _right   the two sides of the mirror-descent inequality (T18)
        mirror_least          the right side for rates that may fall, with its constants (T33)
        refuted_premises      1 if something that the learner was told was refuted
        t_bar, rho_hat        of CV-OPS: how long its search took, and the margin that it found
        account_breaches      of B-OPS: own episodes after which its account was wrong
        refuted_budget        1 if the budget was exceeded although nothing that it rests on had failed: 0 (T32)
        budget_share          how often the budget may be exceeded at all, as a multiple of delta

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
            "mirror_right": entropy * sums.mirror_restarts + sums.mirror_square + sums.mirror_shared,
            "mirror_least": (
                self._core.rule.rates.entropy * sums.mirror_restarts + sums.mirror_gap + sums.mirror_shared
            ),
            "refuted_premises": int(self.learner.core.state.premises.numbers.what != NOTHING),
            "t_bar": getattr(self.learner, "t_bar", None),
            "rho_hat": getattr(self.learner, "rho_hat", None),
            **self._account_facts(),
            **(proof_facts(self, self.notes, comparator) if self.notes is not None else {}),
        }


@kernel
def _planned(core: Core, world: WorldArrays, scores: Scores, curves: Curves, watch: Watch, notes: Notes | None) -> None:
    if notes is not None:
        note_plan(core, world, watch, notes)
    watch_plan(core, world, scores, curves, watch)


@kernel
def _closed(core: Core, mark: int, watch: Watch, notes: Notes | None) -> None:
    watch_close(core, mark, watch)
    if notes is not None:
        note_close(core, mark, notes)
