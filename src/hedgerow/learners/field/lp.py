"""The learners that solve a linear program for each plan: OptCMDP, OptPess-LP, DOPE, S-LP, Safe-ETC.

A subclass says by `_lp_rule` how the tables of the program follow from counts and bounds and what to do with its
answer. Counting, planning and mixing are compiled (`lp_kernels.py`) and the same in `observe` and in a compiled run,
whose loop is that of `loop.py` with the next plan in its middle. It leaves compiled code when a program needs the slow
solver; the caller completes the episode and calls it again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import make_columns
from hedgerow.environments.columns import Column
from hedgerow.environments.play import WorldArrays
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, Inputs, SafePolicy
from hedgerow.learners.field.base import ALL_SETS, FieldLearner, FieldWatcher, chosen, clean_probability
from hedgerow.learners.field.loop import FieldRun, close_episode, count_played, end_episode, heed, play_episode
from hedgerow.learners.field.lp_kernels import (
    ALONE,
    COMMITTED,
    EXPLORING,
    HALF_BOX,
    RADII,
    ROOM,
    SWITCH,
    LPCore,
    LPFigures,
    LPNumbers,
    LPRule,
    LPTables,
    conclude,
    layers_to_go,
    make_tables,
    next_plan,
    write_tables,
)
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise
from hedgerow.learners.kernels import Losses
from hedgerow.learners.watch import CleanEvent, RunContext, check_rows
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.random_streams import Stream
from hedgerow.model.view import View
from hedgerow.planning.decomposition import INFEASIBLE, SOLVED, PlanProblem, make_plan_workspace, robust_scratch
from hedgerow.planning.lp import NoSolution, box_program, least_loss_in_boxes, least_violation_in_boxes

REPLAN = ("episode", "epoch")
COSTS_ARE_DRAWS = "costs of an episode are independent draws around means that do not change"
BASELINE_IS_SAFE = "the baseline costs are upper bounds of its true expected costs"
SLOW_ROOM = 1e-6
"""Thresholds of safe plans are lower by this, times 1 + threshold, for the slow solver, which meets them up to 1e-7."""


@kernel
def run_block(core: LPCore, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """Run the episodes first, ... of a block of losses.

    Returns how many of the block are done, and whether the last of them is closed: if its plan needs the slow solver,
    the learner has to `complete` it first. Also returns when an input of the learner has been refuted, and when an
    episode is impossible by what is known, which then stays pending.
    """
    for i in range(first, len(given.pattern)):
        note_plan(core)
        if not play_episode(core.field, run, given, i, coin):
            return i, True
        count_played(core.sets, core.losses, core.field, run)
        end_episode(core.field, run)
        code = next_plan(core, run.path.rows)
        heed(core.field)
        watch_lp_learning(core, run.world, run.path.rows, run.event)
        if code != SOLVED:
            return i + 1, False
        if close_episode(core.field, run):
            return i + 1, True
    return len(given.pattern), True


@kernel
def note_plan(core: LPCore) -> None:
    """What is kept of the plan that is about to be played, in the order of `LPLearner.note_names`."""
    notes = core.field.notes
    notes[0], notes[1], notes[2] = core.numbers.infeasible, core.numbers.unsolved, core.figures.value


@kernel
def watch_lp_learning(core: LPCore, world: WorldArrays, rows: IntArray, event: CleanEvent) -> None:
    """Compare the sets that a new plan was made from with the truth; an old plan keeps the verdict on its own sets."""
    if core.numbers.fresh:
        changed = core.all_rows if core.rule.epochs or core.sets.rule.tied else rows
        check_rows(core.index, world, core.sets.boxes, changed, event)


NUMBERS = (
    Column("infeasible", "int64", "infeasible", "linear programs without a solution", "sum", "whole", ("checks",)),
    Column("unsolved", "int64", "slow solver", "linear programs left to the slow one", "sum", "whole", ("checks",)),
)  # fmt: skip
"""The counters that become columns"""


class LPLearner(FieldLearner):
    """The base of the learners that solve a linear program for each plan."""

    _loop = staticmethod(run_block)
    core: LPCore
    inputs = Inputs(baseline=True)
    opens = True
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "planned_visits", "tallies", "planned_values")
    note_names = ("infeasible", "unsolved", "plan_value")
    words = ALL_SETS

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        replan: str = "episode", sets: str = "source", on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        super().__init__(
            view, episodes, delta, seed, sets=sets, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip
        self.replan: str = chosen("replan is", replan, REPLAN)
        self._numbers, self._figures = LPNumbers(), LPFigures()
        self.planned_visits: IntArray = np.zeros(self.layout.num_rows, dtype=np.int64)
        self.core = self._make_core()
        next_plan(self.core, self.core.all_rows)
        self._complete()

    @abstractmethod
    def _lp_rule(self) -> LPRule:
        """What makes this learner what it is."""

    def _rule(self, tables: LPTables, mixing: int, **other: Any) -> LPRule:
        """A rule with these tables; unless `other` says so, plans are made in the boxes, from the first episode on."""
        usual = {"late": tables, "at_mean": False, "tests_baseline": False, "tunes": False, "warmup": 0, "explore": 0}
        return LPRule(**{**usual, "tables": tables, "mixing": mixing, "epochs": self.replan == "epoch", **other})

    @property
    def tallies(self) -> NDArray[np.int64]:
        """The counters of plans, as `LPNumbers` orders them."""
        return self._numbers.values

    @property
    def planned_values(self) -> NDArray[np.float64]:
        """The numbers of the last plan, as `LPFigures` orders them."""
        return self._figures.values

    @property
    def margin(self) -> float:
        """Delta: the least distance of a baseline cost from its threshold; L where no constraint can be violated."""
        binding = self.view.binding
        gaps = (self.view.thresholds - self.baseline_costs)[binding]
        return float(np.min(gaps, initial=self.layout.steps))

    # Promises: the clean event, safety, and a regret for losses that are independent draws.

    def _lp_ledger(self, *promises: Promise) -> Ledger:
        """What all promise, the clean event, and then `promises`."""
        confidence = Promise(
            "confidence",
            "in every episode all transition probabilities lie in their boxes and all mean costs within their bounds",
            clean_probability(self),
            "mixtures of likelihood ratios (Ville), with shares of 5 delta for costs, loss, boxes, balls, certificate"
            if self.sets == "sharpest"
            else "union bound over Hoeffding and empirical Bernstein inequalities (Maurer and Pontil 2009)",
        )
        rests_on = (COSTS_ARE_DRAWS, BASELINE_IS_SAFE) if self.inputs.baseline else (COSTS_ARE_DRAWS,)
        return self._ledger(confidence, *promises, assumptions=rests_on)

    def _safety(self, source: str, probability: float | None = None) -> Promise:
        statement = "in every episode the expected costs of what is played respect the thresholds, whatever the losses"
        return Promise("safety", statement, clean_probability(self) if probability is None else probability, source)

    def _regret(self, rate: str, source: str) -> Promise:
        what = f"the regret is O~({rate}), with S the size of the largest layer, for losses that are independent draws"
        return Promise("regret", what, clean_probability(self), source, assumes=INDEPENDENT_LOSSES)

    def _tables(self, width: int, **coefficients: Any) -> LPTables:
        """Tables with the sets of the learner; `make_tables` explains the coefficients.

        Intervals have no radii of transitions: there the widths are those of the boxes.
        """
        if self.sets == "sharpest" and width == RADII:
            width = HALF_BOX
        return make_tables(self.statistics.box_rule.radii, self.layout, width, **coefficients)

    def _optimistic_tables(self) -> LPTables:
        """Lower bounds of the loss and of the costs (OptCMDP)."""
        return self._tables(RADII, loss_radius=1.0, cost_radius=-1.0, clip_costs=True)

    def _pessimistic_tables(self, *, sharp: bool, loss_radius: float, loss_width: float) -> LPTables:
        """Costs that no transitions in the boxes can exceed (DOPE); `sharp` uses what is left of an episode."""
        steps, ahead = self.layout.steps, layers_to_go(self.layout)
        sharp = sharp or self.sets == "sharpest"
        width, factor = (HALF_BOX, ahead) if sharp else (RADII, steps)
        return self._tables(
            width, loss_radius=loss_radius, cost_radius=1.0, loss_width=loss_width, cost_width=factor, clip_costs=sharp,
            joint=True,
        )  # fmt: skip

    def _make_core(self) -> LPCore:
        """The core on the counts and bounds so far; its tables are still empty."""
        seen, rule, layout, baseline = self.statistics, self._lp_rule(), self.layout, self.baselines
        binding, alpha = baseline.binding, baseline.thresholds[baseline.binding]
        lower, upper, rows = seen.boxes.lower, seen.boxes.upper, layout.num_rows
        if rule.at_mean:
            lower = upper = np.zeros(layout.num_triples)
        alpha = alpha - (0.0 if rule.mixing == ALONE else ROOM) * (1.0 + alpha)
        return LPCore(
            index=index_of(layout),
            rule=rule,
            sets=seen.layer,
            losses=seen.losses,
            progress=self.progress,
            reals=self.reals,
            numbers=self._numbers,
            figures=self._figures,
            policy=self.own_policy,
            planned_visits=self.planned_visits,
            baseline=baseline,
            halfway=0.5 * (baseline.thresholds + baseline.costs),
            problem=PlanProblem(lower, upper, np.zeros(rows), np.zeros((rows, len(binding))), alpha),
            workspace=make_plan_workspace(layout, len(binding)),
            unknown=np.zeros(rows),
            scratch=robust_scratch(layout),
            columns=make_columns(layout),
            bounds=np.zeros(len(baseline.thresholds)),
            by=np.zeros(len(baseline.thresholds), dtype=np.int64),
            values=np.zeros(layout.num_states),
            expected=np.zeros(rows),
            all_rows=np.arange(rows, dtype=np.int64),
            field=self.field,
        )

    def _learn(self, episode: Episode) -> None:
        next_plan(self.core, self._changed_rows(episode))

    @property
    def unfinished(self) -> bool:
        return bool(self._numbers.open)

    def _complete(self) -> None:
        """Make the plans that compiled code has left to the slow solver."""
        while self._numbers.open:
            self._numbers.unsolved += 1
            conclude(self.core, self._solve_slowly())
        self.heed_premises()

    def _solve_slowly(self) -> int:
        """Solve the program by HiGHS, and put its masses into the workspace."""
        problem, workspace = self.core.problem, self.core.workspace
        alpha = problem.thresholds
        if self.core.rule.mixing == SWITCH:
            alpha = alpha - SLOW_ROOM * (1.0 + np.abs(alpha))
        program = box_program(self.layout, problem.lower, problem.upper)
        answer, code = least_loss_in_boxes(program, problem.loss, problem.costs, alpha), SOLVED
        if isinstance(answer, NoSolution):
            answer, code = least_violation_in_boxes(program, problem.costs, alpha), INFEASIBLE
        workspace.masses[:] = np.maximum(answer.w, 0.0)
        workspace.figures.value = float(problem.loss @ workspace.masses)
        return code

    def _notes(self) -> Mapping[str, float]:
        numbers, value = self._numbers, self._figures.value
        return dict(zip(self.note_names, (numbers.infeasible, numbers.unsolved, value), strict=True))

    def watch(self, stage: RunContext, *, audit: bool = False) -> LPWatcher:
        """Make the object that watches the learner during a simulation."""
        return LPWatcher(self, stage)

    def _check_tallies(self) -> None:
        """Refuse counters that no run of so many episodes has: each episode leads to one plan at most, the last attempt
        of explore-then-commit to one more; and a plan that is open was made.
        """
        own, last = self._numbers, COMMITTED if self.core.rule.explore > 0 else EXPLORING
        possible = own.fresh <= 1 and own.open <= min(1, own.plans) and own.stage <= last
        possible &= own.plans <= self.episode + 2 and max(own.infeasible, own.unsolved) <= own.plans
        if not possible:
            raise InvalidInput(f"its plans are not those of {self.episode} episodes")

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if np.any(self.planned_visits > self.statistics.counts.num_visits):
            raise InvalidInput("its counts contradict each other")
        self.core = self._make_core()
        self._check_tallies()
        write_tables(self.core)
        self._complete()


class LPWatcher(FieldWatcher):
    """Watches one run of an LP learner."""

    learner: LPLearner
    declared: tuple[Column, ...] = (
        *FieldWatcher.declared,
        *NUMBERS,
        Column("plan_value", words="value of the program of the plan"),
    )

    def planned(self) -> None:
        note_plan(self.learner.core)
        super().planned()

    def _look(self, rows: IntArray) -> None:
        watch_lp_learning(self.learner.core, self.stage.world, rows, self.event)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """Those of the field, how often a program had no solution or needed the slow solver, and the plan's value."""
        kept = super().columns(reached)
        return kept | {column.name: kept[column.name].astype(column.type) for column in NUMBERS}
