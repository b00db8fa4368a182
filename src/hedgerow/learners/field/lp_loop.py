"""Episodes of an LP learner in a block, in one compiled call.

    for each episode: draw which policy plays, score the plan, play it, count, plan the next one, watch the promises

`observe` takes the same steps. The loop leaves compiled code when a program needs the slow solver; the caller completes
the episode and calls it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.boxes import refresh_rows
from hedgerow.confidence.counts import record, record_costs
from hedgerow.confidence.premises import NOTHING, count_episode, is_fresh, is_impossible
from hedgerow.environments.columns import Column
from hedgerow.environments.play import KernelWorld, Path, play
from hedgerow.environments.scores import Curves, Scores, add_scores, keep_mark
from hedgerow.learners.api import RunContext
from hedgerow.learners.field.base import FieldWatcher
from hedgerow.learners.field.lp_kernels import LPCore, LPFigures, LPNumbers, next_plan
from hedgerow.learners.kernels import (
    Losses,
    RandomStreams,
    draw_branch,
    mixture_occupancy,
    occupancy_of_baseline,
    pursue,
    remember,
)
from hedgerow.learners.watch import CleanEvent, check_rows, keep_event, watch_event
from hedgerow.planning.plan_problem import SOLVED

if TYPE_CHECKING:
    from hedgerow.learners.field.lp import LPLearner


class LPWatch(Bundle):
    """What is watched of a run, and the buffers of the loop."""

    event: CleanEvent
    baseline: FloatArray
    """(num_rows,): the true occupancy of the baseline; empty without one"""
    numbers: LPNumbers
    """Those of the plan of the present episode"""
    figures: LPFigures
    mark_numbers: IntArray
    """(C, fields of `numbers`)"""
    mark_figures: FloatArray
    """(C, fields of `figures`)"""
    seen: FloatArray
    """(L, m + 1): costs and loss of an episode"""


def make_lp_watch(steps: int, event: CleanEvent, baseline: FloatArray, num_constraints: int) -> LPWatch:
    """Nothing seen yet."""
    num_marks = len(event.mark_sums)
    return LPWatch(
        event=event,
        baseline=baseline,
        numbers=LPNumbers(),
        figures=LPFigures(),
        mark_numbers=np.zeros((num_marks, len(LPNumbers.fields)), dtype=np.int64),
        mark_figures=np.zeros((num_marks, len(LPFigures.fields))),
        seen=np.zeros((steps, num_constraints + 1)),
    )


@kernel
def run_block(
    core: LPCore,
    world: KernelWorld,
    scores: Scores,
    curves: Curves,
    watch: LPWatch,
    path: Path,
    given: Losses,
    first: int,
    chance: RandomStreams,
) -> tuple[int, bool]:
    """Run the episodes first, ... of a block of losses.

    Returns how many of the block are done, and whether the last of them is closed: if its plan needs the slow solver,
    the learner has to `complete` it first. Also returns when something that it was told has been refuted, and when it
    was told that an episode is impossible, which then stays pending.
    """
    index, progress, rows, seen = core.index, core.progress, path.rows, watch.seen
    m = seen.shape[1] - 1
    for i in range(first, len(given.pattern)):
        loss = given.patterns[given.pattern[i]]
        if given.rate > 0.0:
            loss = given.pursuit
            pursue(index.num_actions, given)
        progress.branch = draw_branch(len(core.baseline.policies), core.reals.mixing, chance.coin)
        progress.pending = 1
        mixture_occupancy(index, world, core.policy, core.reals.mixing, watch.baseline, scores)
        add_scores(world, loss, scores)
        watch_lp_plan(core, scores, watch)
        plays = core.policy if progress.branch == 0 else core.baseline.policies[0]
        play(index, world, plays, chance.streams, path)
        if given.rate > 0.0:
            remember(given, plays)
        for k in range(len(rows)):
            for j in range(m):
                seen[k, j] = path.costs[k, j]
            seen[k, m] = loss[rows[k]]
        if is_impossible(core.premise_rule, rows, path.triples, path.costs):
            return i, True
        record(index, core.box.laws, core.counts, rows, path.triples)
        record_costs(core.box.laws, core.counts, rows, seen)
        refresh_rows(index, core.counts, core.box, rows, core.boxes)
        progress.pending = 0
        progress.episode += 1
        count_episode(
            index, core.premise_rule, core.premises, rows, path.triples, path.costs, progress.branch, True,
            progress.episode,
        )  # fmt: skip
        code = next_plan(core, rows)
        if len(core.baseline.policies) > 0 and core.premise_rule.stays and core.premises.numbers.what != NOTHING:
            core.reals.mixing = 1.0
        watch_lp_learning(core, world, rows, watch)
        if code != SOLVED:
            return i + 1, False
        close_lp(keep_mark(scores, curves), watch)
        if is_fresh(core.premises):
            return i + 1, True
    return len(given.pattern), True


@kernel
def watch_lp_plan(core: LPCore, scores: Scores, watch: LPWatch) -> None:
    """Look at the episode that is about to be played, after its scores have been added."""
    watch_event(core.progress.branch, core.reals.mixing, True, scores, watch.event)
    copy_into(core.numbers.values, watch.numbers.values)
    copy_into(core.figures.values, watch.figures.values)


@kernel
def watch_lp_learning(core: LPCore, world: KernelWorld, rows: IntArray, watch: LPWatch) -> None:
    """Compare the sets that a new plan was made from with the truth; an old plan keeps the verdict on its own sets."""
    if core.numbers.fresh:
        changed = core.all_rows if core.rule.epochs else rows
        check_rows(core.index, world, core.boxes, changed, watch.event)


@kernel
def close_lp(mark: int, watch: LPWatch) -> None:
    """Keep the numbers if the episode is the checkpoint `mark` >= 0."""
    keep_event(mark, watch.event)
    if mark >= 0:
        copy_into(watch.numbers.values, watch.mark_numbers[mark])
        copy_into(watch.figures.values, watch.mark_figures[mark])


# --------------------------------------------------------------------------------------------------------------------
# The watcher of the LP learners: that of the field, what became of their programs, and compiled blocks of episodes.


NUMBERS = (
    Column("infeasible", "int64", "infeasible", "linear programs without a solution", "sum", "whole", ("checks",)),
    Column("unsolved", "int64", "slow solver", "linear programs left to the slow one", "sum", "whole", ("checks",)),
)  # fmt: skip
"""The counters that become columns"""


class LPWatcher(FieldWatcher):
    """Watches one run of an LP learner; able to run blocks of episodes compiled."""

    learner: LPLearner
    declared: tuple[Column, ...] = (
        *FieldWatcher.declared,
        *NUMBERS,
        Column("plan_value", words="value of the program of the plan"),
    )

    def __init__(self, learner: LPLearner, stage: RunContext) -> None:
        super().__init__(learner, stage)
        baseline = occupancy_of_baseline(learner.core.index, stage.world, learner.core.baseline)
        self.lp = make_lp_watch(learner.layout.steps, self.event, baseline, learner.view.num_constraints)

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled: not if a subclass plans or observes in a way of its own."""
        from hedgerow.learners.field.lp import LPLearner

        return self.learner.keeps_to(LPLearner)

    def planned(self) -> None:
        self._learnt = self.learner.episode
        watch_lp_plan(self.learner.core, self.stage.scores, self.lp)

    def _look(self, rows: IntArray) -> None:
        watch_lp_learning(self.learner.core, self.stage.world, rows, self.lp)

    def _keep(self, mark: int) -> None:
        close_lp(mark, self.lp)

    def _run(self, given: Losses, first: int) -> tuple[int, bool]:
        stage, learner = self.stage, self.learner
        chance = RandomStreams(learner.coin, stage.streams)
        try:
            return run_block(
                learner.core, stage.world, stage.scores, stage.curves, self.lp, self._path, given, first, chance
            )
        finally:
            learner.statistics.counted(learner.episode)

    # What was seen ---------------------------------------------------------------------------------------------------

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """Those of the field, how often a program had no solution or needed the slow solver, and the plan's value."""
        kept = super().columns(reached)
        for column in NUMBERS:
            kept[column.name] = self.lp.mark_numbers[:reached, LPNumbers.place(column.name)]
        kept["plan_value"] = self.lp.mark_figures[:reached, LPFigures.place("value")]
        return kept
