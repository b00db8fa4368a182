"""The base of the learners that solve a linear program for each plan: OptCMDP, OptPess-LP, DOPE, S-LP, Safe-ETC.

A subclass says by `_lp_rule` how the tables of the program follow from counts and bounds and what to do with its
answer. Counting, planning and mixing are compiled (`lp_kernels.py`) and the same in `observe` and in a compiled run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import IntArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import SafePolicy
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.field.lp_kernels import (
    COMMITTED,
    EXPLORING,
    HALF_BOX,
    RADII,
    SWITCH,
    LPCore,
    LPFigures,
    LPNumbers,
    LPRule,
    LPTables,
    conclude,
    layers_to_go,
    make_lp_core,
    make_tables,
    next_plan,
    write_tables,
)
from hedgerow.learners.statistics import Statistics
from hedgerow.model.episode import Episode
from hedgerow.model.view import View
from hedgerow.planning.lp import NoSolution, box_program, least_loss_in_boxes, least_violation_in_boxes
from hedgerow.planning.plan_problem import INFEASIBLE, SOLVED

if TYPE_CHECKING:
    from hedgerow.learners.api import RunContext
    from hedgerow.learners.field.lp_loop import LPWatcher

REPLAN = ("episode", "epoch")
SLOW_ROOM = 1e-6
"""Thresholds of safe plans are lower by this, times 1 + threshold, for the slow solver, which meets them up to 1e-7."""


class LPLearner(FieldLearner):
    """The base of the learners that solve a linear program for each plan."""

    changing: ClassVar[tuple[str, ...]] = ("own_policy", "planned_visits", "tallies", "planned_values")

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        replan: str = "episode",
        radii: str = "source",
        on_refuted: str = "stay",
    ) -> None:
        super().__init__(
            view, episodes, delta, seed, radii=radii, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip
        if replan not in REPLAN:
            raise InvalidInput(f"replan is {replan!r}; choose 'episode' or 'epoch'")
        self.replan = replan
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
        usual = {"late": tables, "at_mean": False, "tests_baseline": False, "warmup": 0, "explore": 0}
        return LPRule(**{**usual, "tables": tables, "mixing": mixing, "epochs": self.replan == "epoch", **other})

    @property
    def statistics(self) -> Statistics:
        """Counts and bounds."""
        assert self.seen is not None  # every LP learner has them
        return self.seen

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

    def _tables(self, width: int, **coefficients: Any) -> LPTables:
        """Tables with the radii of the learner; `make_tables` explains the coefficients."""
        return make_tables(self.statistics.box_rule.radii, self.layout, width, **coefficients)

    def _pessimistic_tables(self, *, sharp: bool, loss_radius: float, loss_width: float) -> LPTables:
        """Costs that no transitions in the boxes can exceed (DOPE); `sharp` uses what is left of an episode."""
        steps, ahead = self.layout.steps, layers_to_go(self.layout)
        width, factor = (HALF_BOX, ahead) if sharp else (RADII, steps)
        return self._tables(
            width, loss_radius=loss_radius, cost_radius=1.0, loss_width=loss_width, cost_width=factor, clip_costs=sharp
        )  # fmt: skip

    def _make_core(self) -> LPCore:
        return make_lp_core(
            self.statistics, self._lp_rule(), self.progress, self.reals, self._numbers, self._figures, self.own_policy,
            self.planned_visits, self.baselines, self.premise_rule, self.premises,
        )  # fmt: skip

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
        numbers = self._numbers
        return {
            "infeasible": numbers.infeasible,
            "unsolved": numbers.unsolved,
            "plan_value": self._figures.value,
        }

    def watch(self, stage: RunContext, *, audit: bool = False) -> LPWatcher:
        """Make the object that watches the learner during a simulation and runs it compiled."""
        from hedgerow.learners.field.lp_loop import LPWatcher

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
        if np.any(self.planned_visits > self.statistics.visits):
            raise InvalidInput("its counts contradict each other")
        self.core = self._make_core()
        self._check_tallies()
        write_tables(self.core)
        self._complete()
