"""How far a learner of the field is, as numbers that kernels can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.boxes import Boxes
from hedgerow.environments.columns import Column
from hedgerow.environments.play import KernelWorld
from hedgerow.environments.scores import Scores
from hedgerow.learners.api import WATCHED, NullWatcher, RunContext
from hedgerow.model.kernel_layout import Index, index_of
from hedgerow.model.layout import Layout

if TYPE_CHECKING:
    from hedgerow.learners.field.base import FieldLearner


class Progress(Record):
    """Counters of a learner."""

    episode: int
    """Episodes observed so far"""
    pending: int
    """1 between plan and observe"""
    branch: int
    """What that plan plays: 0 the own policy, 1 the baseline"""


class FieldReals(Record):
    """Real numbers that change while it learns."""

    mixing: float
    """lambda: the probability of the baseline in the next episode"""


# --------------------------------------------------------------------------------------------------------------------
# Watch a learner of the field during a simulation: are its confidence sets right, and is it safe while they are?
#
# The *clean event* of an episode: every transition probability lies in its box and every mean cost within its bounds,
# in the sets that the plan of the episode was made from. Bounds of the mean loss do not belong to it: they are right
# only if losses are independent draws around a mean, and no safety rests on them.


TOL_CLEAN = 1e-12


class FieldCounters(Record):
    """Whole numbers that are kept at checkpoints: those of the present episode, and totals so far."""

    branch: int
    """0 the own policy, 1 the baseline"""
    clean_now: int
    """1 if the episode began with the truth in all confidence sets"""
    unclean: int
    """Episodes that did not"""
    outside: int
    """Rows whose truth is outside at present"""
    refuted_safety: int
    """Episodes that violated a constraint although the event was clean"""


class Sums(Record):
    """Real numbers that are kept at checkpoints."""

    now_mixing: float
    """lambda of the present episode"""
    mixed: float
    """sum_t lambda"""


class FieldWatch(Bundle):
    """What was seen so far, and what is kept at the C checkpoints; kernels modify it."""

    counters: FieldCounters
    sums: Sums
    outside: IntArray
    """(num_rows,): 1 where a transition probability or a mean cost is outside its bounds"""
    mark_counters: IntArray
    """(C, fields of `counters`)"""
    mark_sums: FloatArray
    """(C, fields of `sums`)"""


def make_watch(layout: Layout, num_marks: int) -> FieldWatch:
    """Nothing seen yet."""
    return FieldWatch(
        counters=FieldCounters(),
        sums=Sums(),
        outside=np.zeros(layout.num_rows, dtype=np.int64),
        mark_counters=np.zeros((num_marks, len(FieldCounters.fields)), dtype=np.int64),
        mark_sums=np.zeros((num_marks, len(Sums.fields))),
    )


@kernel
def watch_plan(progress: Progress, reals: FieldReals, scores: Scores, watch: FieldWatch) -> None:
    """Look at the episode that is about to be played, after its scores have been added."""
    counters, sums = watch.counters, watch.sums
    counters.branch, counters.clean_now = progress.branch, 1 if counters.outside == 0 else 0
    sums.now_mixing = reals.mixing
    sums.mixed += reals.mixing
    unsafe = False
    for i in range(len(scores.excess)):
        unsafe |= scores.excess[i] > 0.0
    if counters.outside > 0:
        counters.unclean += 1
    elif unsafe:
        counters.refuted_safety += 1


@kernel
def check_rows(index: Index, world: KernelWorld, boxes: Boxes, rows: IntArray, watch: FieldWatch) -> None:
    """Compare the sets of some rows (n,), which have just changed, with the truth."""
    for row in rows:
        outside = 0
        for j in range(index.row_start[row], index.row_start[row + 1]):
            p = world.transitions[j]
            if p < boxes.lower[j] - TOL_CLEAN or p > boxes.upper[j] + TOL_CLEAN:
                outside = 1
        for i in range(world.mean_costs.shape[1]):
            g = world.mean_costs[row, i]
            if g < boxes.cost_lower[row, i] - TOL_CLEAN or g > boxes.cost_upper[row, i] + TOL_CLEAN:
                outside = 1
        watch.counters.outside += outside - watch.outside[row]
        watch.outside[row] = outside


@kernel
def watch_close(mark: int, watch: FieldWatch) -> None:
    """Keep the numbers if the episode is the checkpoint `mark` >= 0."""
    if mark >= 0:
        copy_into(watch.counters.values, watch.mark_counters[mark])
        copy_into(watch.sums.values, watch.mark_sums[mark])


# --------------------------------------------------------------------------------------------------------------------
# The watcher of the learners of the field, episode by episode.


_REFUTED = "unsafe episodes with a baseline although the event was clean; anything but 0 is a defect"
DECLARED = (*WATCHED, Column("refuted_safety", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True))


class FieldWatcher(NullWatcher):
    """Watches one run of a learner: whether its sets hold the truth, and what it leaves to its baseline."""

    declared: tuple[Column, ...] = DECLARED

    def __init__(self, learner: FieldLearner, stage: RunContext) -> None:
        self.learner, self.stage = learner, stage
        self.watch = make_watch(learner.layout, len(stage.curves.marks))
        self._index, self._episode = index_of(learner.layout), learner.episode
        self._look(np.arange(learner.layout.num_rows, dtype=np.int64))

    def planned(self) -> None:
        self._episode = self.learner.episode
        watch_plan(self.learner.progress, self.learner.reals, self.stage.scores, self.watch)

    def learnt(self, rows: IntArray) -> bool:
        if self.learner.episode == self._episode:  # refused
            return False
        self._look(rows.copy())
        return True

    def closed(self, mark: int) -> None:
        watch_close(mark, self.watch)

    def _look(self, rows: IntArray) -> None:
        if self.learner.seen is not None:
            check_rows(self._index, self.stage.world, self.learner.seen.boxes, rows, self.watch)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """The weight of the baseline, and whether the sets hold the truth; nothing for a learner without sets."""
        watch, kept = self.watch, {}
        if self.learner.baseline is not None:
            kept["mixing_weight"] = watch.mark_sums[:reached, Sums.place("now_mixing")]
            kept["mixing_total"] = watch.mark_sums[:reached, Sums.place("mixed")]
        if self.learner.seen is not None:
            for column in DECLARED:
                if column.name in FieldCounters.fields and not column.fact:
                    counts = watch.mark_counters[:reached, FieldCounters.place(column.name)]
                    kept[column.name] = counts.astype(column.type)
        return kept

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """How often a learner with a baseline was unsafe although its sets held the truth: 0, if it is right."""
        if self.learner.baseline is None:
            return {}
        return {"refuted_safety": self.watch.counters.refuted_safety}
