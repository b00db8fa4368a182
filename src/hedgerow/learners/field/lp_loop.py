"""Episodes of an LP learner in a block, in one compiled call.

    for each episode: toss the learner's coin, score the plan, play it, count, plan the next one, watch the promises

`observe` takes the same steps. The loop leaves compiled code when a program needs the slow solver; the caller completes
the episode and calls it again.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.environments.play import KernelWorld, Path, play
from hedgerow.environments.scores import Curves, Scores, add_scores, forward, keep_mark
from hedgerow.estimates.boxes import refresh_rows
from hedgerow.estimates.counts import record, record_costs
from hedgerow.learners.blocks import Chance, Losses, pursue, remember
from hedgerow.learners.field.lp_core import LPCore, LPFigures, LPNumbers
from hedgerow.learners.field.lp_step import next_plan
from hedgerow.learners.field.watch import FieldWatch, look_at_rows, make_watch, watch_close, watch_plan
from hedgerow.model.layout import Layout
from hedgerow.model.pcg64 import Stream, uniform
from hedgerow.planning.constrained import SOLVED


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
    chance: Chance,
) -> tuple[int, bool]:
    """Run the episodes first, ... of a block of losses.

    Returns how many of the block are done, and whether the last of them is closed: if its plan needs the slow solver,
    the learner has to `complete` it first.
    """
    index, progress, rows, seen = core.index, core.progress, path.rows, watch.seen
    m = seen.shape[1] - 1
    for i in range(first, len(given.pattern)):
        loss = given.patterns[given.pattern[i]]
        if given.rate > 0.0:
            loss = given.pursuit
            pursue(index.num_actions, given)
        toss(core, chance.coin)
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
        record(index, core.box.laws, core.counts, rows, path.triples)
        record_costs(core.box.laws, core.counts, rows, seen)
        refresh_rows(index, core.counts, core.box, rows, core.boxes)
        progress.pending = 0
        progress.episode += 1
        code = next_plan(core, rows)
        watch_lp_learning(core, world, rows, watch)
        if code != SOLVED:
            return i + 1, False
        close_lp(keep_mark(scores, curves), watch)
    return len(given.pattern), True


@kernel
def toss(core: LPCore, coin: Stream) -> None:
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
        look_at_rows(core.index, world, core.boxes, changed, watch.field)


@kernel
def close_lp(mark: int, watch: LPWatch) -> None:
    """Keep the numbers if the episode is the checkpoint `mark` >= 0."""
    watch_close(mark, watch.field)
    if mark >= 0:
        copy_into(watch.numbers.values, watch.mark_numbers[mark])
        copy_into(watch.figures.values, watch.mark_figures[mark])
