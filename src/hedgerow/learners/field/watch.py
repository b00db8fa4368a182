"""Watch a learner of the field during a simulation: are its confidence sets right, and is it safe while they are?

The *clean event* of an episode: every transition probability lies in its box and every mean cost within its bounds, in
the sets that the plan of the episode was made from. Bounds of the mean loss do not belong to it: they are right only if
losses are independent draws around a mean, and no safety rests on them.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.environments.play import KernelWorld
from hedgerow.environments.scores import Scores
from hedgerow.estimates.boxes import Boxes
from hedgerow.learners.field.progress import Progress, Reals
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

TOL_CLEAN = 1e-12


class Counters(Record):
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

    counters: Counters
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
        counters=Counters(),
        sums=Sums(),
        outside=np.zeros(layout.num_rows, dtype=np.int64),
        mark_counters=np.zeros((num_marks, len(Counters.fields)), dtype=np.int64),
        mark_sums=np.zeros((num_marks, len(Sums.fields))),
    )


@kernel
def watch_plan(progress: Progress, reals: Reals, scores: Scores, watch: FieldWatch) -> None:
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
def look_at_rows(index: Index, world: KernelWorld, boxes: Boxes, rows: IntArray, watch: FieldWatch) -> None:
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
