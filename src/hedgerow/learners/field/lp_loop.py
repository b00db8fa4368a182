"""Episodes of an LP learner in a block, in one compiled call.

    for each episode: toss the learner's coin, score the plan, play it, count, plan the next one, watch the promises

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
from hedgerow.environments.play import KernelWorld, Path, make_path, play
from hedgerow.environments.scores import Curves, Scores, add_scores, forward, keep_mark
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import RunContext
from hedgerow.learners.blocks import Losses, RandomStreams, losses_of, pursue, remember
from hedgerow.learners.field.lp_kernels import LPCore, LPFigures, LPNumbers, next_plan
from hedgerow.learners.field.watch import (
    DECLARED,
    FieldWatch,
    FieldWatcher,
    check_rows,
    make_watch,
    watch_close,
    watch_plan,
)
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.counting import refuse_impossible
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.random_streams import Stream, uniform
from hedgerow.planning.plan_problem import SOLVED

if TYPE_CHECKING:
    from hedgerow.learners.field.lp import LPLearner


class LPWatch(Bundle):
    """What is watched of a run, and the buffers of the loop."""

    field: FieldWatch
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


def make_lp_watch(layout: Layout, num_constraints: int, num_marks: int, baseline: FloatArray) -> LPWatch:
    """Nothing seen yet."""
    return LPWatch(
        field=make_watch(layout, num_marks),
        baseline=baseline,
        numbers=LPNumbers(),
        figures=LPFigures(),
        mark_numbers=np.zeros((num_marks, len(LPNumbers.fields)), dtype=np.int64),
        mark_figures=np.zeros((num_marks, len(LPFigures.fields))),
        seen=np.zeros((layout.steps, num_constraints + 1)),
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
        draw_branch(core, chance.coin)
        _occupy(core, world, scores, watch)
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
def draw_branch(core: LPCore, coin: Stream) -> None:
    """Begin an episode: a coin leaves it to the baseline, if there is one, with the mixing weight as probability."""
    core.progress.branch = 0
    if len(core.baseline.policies) > 0 and uniform(coin) < core.reals.mixing:
        core.progress.branch = 1
    core.progress.pending = 1


@kernel
def _occupy(core: LPCore, world: KernelWorld, scores: Scores, watch: LPWatch) -> None:
    """q_t of the mixture of the episode that is about to be played."""
    q, lam = scores.occupancy, core.reals.mixing
    forward(core.index, world.transitions, core.policy, scores.reach, q)
    if len(watch.baseline) > 0:
        for r in range(len(q)):
            q[r] = lam * watch.baseline[r] + (1.0 - lam) * q[r]


@kernel
def watch_lp_plan(core: LPCore, scores: Scores, watch: LPWatch) -> None:
    """Look at the episode that is about to be played, after its scores have been added."""
    watch_plan(core.progress, core.reals, scores, watch.field)
    copy_into(core.numbers.values, watch.numbers.values)
    copy_into(core.figures.values, watch.figures.values)


@kernel
def watch_lp_learning(core: LPCore, world: KernelWorld, rows: IntArray, watch: LPWatch) -> None:
    """Compare the sets that a new plan was made from with the truth; an old plan keeps the verdict on its own sets."""
    if core.numbers.fresh:
        changed = core.all_rows if core.rule.epochs else rows
        check_rows(core.index, world, core.boxes, changed, watch.field)


@kernel
def close_lp(mark: int, watch: LPWatch) -> None:
    """Keep the numbers if the episode is the checkpoint `mark` >= 0."""
    watch_close(mark, watch.field)
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
    declared = (*DECLARED, *NUMBERS, Column("plan_value", words="value of the program of the plan"))

    def __init__(self, learner: LPLearner, stage: RunContext) -> None:
        layout, m = learner.layout, learner.view.num_constraints
        self.learner, self.stage = learner, stage
        self.lp: LPWatch = make_lp_watch(layout, m, len(stage.curves.marks), _occupancy(learner, stage))
        self.watch = self.lp.field
        self._path, self._losses = make_path(layout, m), np.zeros(layout.num_rows)
        self._episode, self._closed = learner.episode, True
        core = learner.core
        check_rows(core.index, stage.world, core.boxes, core.all_rows, self.watch)

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
        chance = RandomStreams(learner.coin, stage.streams)
        while done < len(given.pattern):
            try:
                done, self._closed = run_block(
                    learner.core, stage.world, stage.scores, stage.curves, self.lp, self._path, given, done, chance
                )
            finally:
                learner.statistics.counted(learner.episode)
            if learner.progress.pending:  # what it was told rules the episode out
                refuse_impossible(learner.view, self._path.rows, self._path.triples, self._path.costs)
            self._close()
            learner.announce()

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
        for column in NUMBERS:
            kept[column.name] = self.lp.mark_numbers[:reached, LPNumbers.place(column.name)]
        kept["plan_value"] = self.lp.mark_figures[:reached, LPFigures.place("value")]
        return kept


def _occupancy(learner: LPLearner, stage: RunContext) -> FloatArray:
    """(num_rows,): the true occupancy of the baseline; empty without one."""
    if learner.baseline is None:
        return np.zeros(0)
    layout = learner.layout
    found, reach = np.zeros(layout.num_rows), np.zeros(layout.num_states)
    forward(index_of(layout), stage.world.transitions, learner.baseline.probabilities.copy(), reach, found)
    return found
