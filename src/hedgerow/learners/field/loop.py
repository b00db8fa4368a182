"""The compiled loop of the learners of the field: what every episode of a block has, whatever is learnt from it.

    for each episode: draw which policy plays, score the plan, play it, count, learn, watch the promises

A loop of its own has only the learner's step in the middle; all of them are made of the kernels here:

    for i in range(first, len(given.pattern)):
        if not play_episode(core, run, given, i, coin):      the plan, its scores, and the episode
            return i, True
        count_played(sets, losses, core, run)                counts and bounds, where a learner has them
        end_episode(core, run)                               it is over; what it says about the premises
        ...                                                  the learner's own step
        heed(core)                                           a refuted premise leaves the next episode to the baseline
        check_sets(sets, run)                                are the new bounds right?
        if close_episode(core, run):                         checkpoints; stop where a premise has just been refuted
            return i + 1, True
    return len(given.pattern), True

`observe` takes the same steps, and gives the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel, shared_kernel
from hedgerow.confidence.premises import NOTHING, PremiseRule, Premises, count_episode, is_fresh, is_impossible
from hedgerow.confidence.sets import LossSets, Sets, count_seen
from hedgerow.environments.play import OTHER, Path, Streams, WorldArrays, draw_costs, play
from hedgerow.environments.scores import Curves, Scores, add_scores, keep_mark
from hedgerow.learners.kernels import (
    BaselineArrays,
    Losses,
    Mixing,
    Progress,
    draw_branch,
    mixture_occupancy,
    pursue,
    remember,
)
from hedgerow.learners.watch import CleanEvent, RunContext, check_rows, keep_event, watch_event
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.random_streams import Stream

if TYPE_CHECKING:
    from hedgerow.learners.field.base import FieldLearner


class FieldCore(Bundle):
    """What the loop needs of a learner."""

    index: LayoutArrays
    progress: Progress
    reals: Mixing
    policy: FloatArray
    """(num_rows,): the policy of the next episode"""
    baseline: BaselineArrays
    premise_rule: PremiseRule
    premises: Premises
    """The running tests of its inputs"""
    notes: FloatArray
    """(n,): what is kept of the next plan besides the mixing weight"""


class FieldRun(Bundle):
    """What a run works on besides the learner: the true world, the scores, what is watched, and buffers."""

    world: WorldArrays
    silent: WorldArrays
    """The same world, but `play` draws no costs: with full feedback all of them are drawn at once"""
    streams: Streams
    scores: Scores
    curves: Curves
    event: CleanEvent
    baseline: FloatArray
    """(num_rows,): the true occupancy of the baseline; empty without one"""
    path: Path
    seen: FloatArray
    """(L, m + 1): costs and loss of an episode"""
    all_losses: FloatArray
    """(num_rows,): those of an episode; empty without full feedback"""
    all_costs: FloatArray
    """(num_rows, m); empty without full feedback"""
    notes: FloatArray
    """(n,): those of the plan of the present episode"""
    mark_notes: FloatArray
    """(C, n)"""


def make_run(learner: FieldLearner, stage: RunContext, event: CleanEvent, baseline: FloatArray, path: Path) -> FieldRun:
    """Nothing played yet."""
    rows, m = learner.layout.num_rows if learner.feedback == "full" else 0, learner.view.num_constraints
    num_notes = len(learner.note_names)
    return FieldRun(
        world=stage.world, silent=stage.world.replace(cost_kind=OTHER), streams=stage.streams, scores=stage.scores,
        curves=stage.curves, event=event, baseline=baseline, path=path, seen=np.zeros((learner.layout.steps, m + 1)),
        all_losses=np.zeros(rows), all_costs=np.zeros((rows, m)),
        notes=np.zeros(num_notes), mark_notes=np.zeros((len(stage.curves.marks), num_notes)),
    )  # fmt: skip


@shared_kernel(True)
def play_episode(core: FieldCore, run: FieldRun, given: Losses, i: int, coin: Stream) -> bool:
    """Plan, score and play episode i of a block of losses.

    False if the episode is impossible by what the learner was told: it then stays pending.
    """
    index, progress, path, rows = core.index, core.progress, run.path, run.path.rows
    loss = given.patterns[given.pattern[i]]
    if given.rate > 0.0:
        loss = given.pursuit
        pursue(index.num_actions, given)
    progress.branch = draw_branch(len(core.baseline.policies), core.reals.mixing, coin)
    progress.pending = 1
    mixture_occupancy(index, run.world, core.policy, core.reals.mixing, run.baseline, run.scores)
    add_scores(run.world, loss, run.scores)
    watch_event(progress.branch, core.reals.mixing, True, run.scores, run.event)
    copy_into(core.notes, run.notes)
    plays = core.policy if progress.branch == 0 else core.baseline.policies[0]
    if len(run.all_losses) > 0:
        copy_into(loss, run.all_losses)
        play(index, run.silent, plays, run.streams, path)
        draw_costs(run.world, run.streams.costs, run.all_costs)
        for k in range(len(rows)):
            copy_into(run.all_costs[rows[k]], path.costs[k])
    else:
        play(index, run.world, plays, run.streams, path)
    if given.rate > 0.0:
        remember(given, plays)
    for k in range(len(rows)):
        path.losses[k] = loss[rows[k]]
    return not is_impossible(core.premise_rule, rows, path.triples, path.costs)


@kernel
def count_played(sets: Sets, losses: LossSets, core: FieldCore, run: FieldRun) -> None:
    """Add the episode to the counts, and bring the sets up to date."""
    path, seen, m = run.path, run.seen, run.seen.shape[1] - 1
    for k in range(len(path.rows)):
        for j in range(m):
            seen[k, j] = path.costs[k, j]
        seen[k, m] = path.losses[k]
    own = core.progress.branch == 0
    plays = core.policy if own else core.baseline.policies[0]
    count_seen(sets, losses, path.rows, path.triples, seen, plays, own)


@kernel
def check_sets(sets: Sets, run: FieldRun) -> None:
    """Compare what the episode has changed with the truth: its rows, or with ties all rows."""
    rows = sets.scratch.all_rows if sets.rule.tied else run.path.rows
    check_rows(sets.index, run.world, sets.boxes, rows, run.event)


@shared_kernel(None)
def end_episode(core: FieldCore, run: FieldRun) -> None:
    """The episode is over: count it, and test the inputs of the learner by it."""
    core.progress.pending = 0
    core.progress.episode += 1
    count_episode(
        core.index, core.premise_rule, core.premises, run.path.rows, run.path.triples, run.path.costs,
        core.progress.branch, True, core.progress.episode,
    )  # fmt: skip


@kernel
def heed(core: FieldCore) -> None:
    """Leave the next episode to the baseline if one of the learner's inputs has been refuted."""
    if len(core.baseline.policies) > 0 and core.premise_rule.stays and core.premises.numbers.what != NOTHING:
        core.reals.mixing = 1.0


@kernel
def close_episode(core: FieldCore, run: FieldRun) -> bool:
    """Keep what is kept if the episode is a checkpoint; returns whether one of the inputs was refuted by it."""
    keep_notes(keep_mark(run.scores, run.curves), run)
    return is_fresh(core.premises)


@kernel
def keep_notes(mark: int, run: FieldRun) -> None:
    """Keep event and notes if the episode is the checkpoint `mark` >= 0."""
    keep_event(mark, run.event)
    if mark >= 0:
        copy_into(run.notes, run.mark_notes[mark])
