"""Absorb a log (`importers/logs.py`): episodes that somebody else played, before the first own one or between two.

Intervals that hold at all times (`anytime`, `kt`) do not depend on who chose the actions, nor when. Each logged
step is one more factor of the same supermartingales, provided that its action was chosen without knowledge of that
episode's costs and of what comes next, that nothing was selected by its outcome, and that no episode is counted
twice. To that end the learner keeps digests of the logs that it absorbed, and refuses the same one again
(`learners/logs.py`). So N, M, K and S grow by the log, all sets are rebuilt, and the present weights are projected onto
them. The smaller sets still hold the best policy, and a projection brings q_hat no farther from it: no regret is
added.

The aggregate certificate counts own episodes only; its centres follow the counts, which the proof allows between
episodes. Counts, sets and all that follows are one compiled call, which nothing can interrupt halfway. If the
projection is interrupted, the next plan begins with it, as after an episode.

An own episode may not be whole: aborted, overridden, missing, or without some of its costs. `model/episode.py` decides
what is counted of it. Here that decision reaches the kernels of a learner: counts and sets
(`confidence/counts.py`), the aggregate certificate and the search of CV-OPS, which take sums over whole episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.counts import Counts, LogArrays, make_counts, record_gaps, set_gaps
from hedgerow.confidence.premises import compare_all, count_logged
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.confidence.sets import count_log, cut, refresh_sets, set_broken
from hedgerow.environments.play import Path
from hedgerow.errors import InvalidInput
from hedgerow.importers.log_columns import decisions, summary
from hedgerow.importers.logs import Log
from hedgerow.learners.logs import arrays_of, digests_of, new_digests, read_log
from hedgerow.learners.open_plans import LostPlan, is_unknown, queue_up
from hedgerow.learners.ops.fallback import fallback_solve
from hedgerow.learners.ops.state import PROJECTED, RELAXED, RELAXED_FLOOR, Core
from hedgerow.learners.ops.step import copy_floored, copy_optimistic, follow_violation, learn, project_all
from hedgerow.model.episode import INDEPENDENT, UNKNOWN, Counting, Episode, decide, filled_costs
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.problem import NO_SYSTEM

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner


MOST_REASONS = 20
"""Declared reasons that a learner remembers word by word"""
OTHERS = "other reasons"


def log_for(learner: MirrorLearner, given: Any, how: Mapping[str, Any]) -> Log:
    """`given` as a log that this learner can absorb now; anything else is refused."""
    if learner.settings.radii not in WITHOUT_HORIZON:
        raise InvalidInput(
            f"radii = {learner.settings.radii!r} hold for a fixed number of episodes, and a log would exceed it; build "
            "the learner with radii='kt' or 'anytime', or preset='sharpest'"
        )
    if learner.num_open and learner.max_open == 1:
        raise InvalidInput(
            f"episode {learner.episode} is planned; call observe with what happened in it before a log is absorbed"
        )
    return read_log(learner.view, given, how)


def wait_in(learner: MirrorLearner, log: Log) -> None:
    """Let a log wait for the outcomes of the open plans: it is learnt when all of these are."""
    new_digests(np.concatenate((learner.absorbed, *(digests_of(other) for _, other in learner.queue.logs))), log)
    log.table()  # refuses what a file could not hold
    queue_up(learner)
    learner.queue.logs.append((learner.episode + len(learner.queue.entries), log))


def take_in(learner: MirrorLearner, log: Log) -> None:
    """Add the counts of a log to a learner between two episodes, and update all that follows from them."""
    core, one = learner.core, new_digests(learner.absorbed, log)
    decided = decisions(log, bool(core.sets.rule.box.laws.every_visit))
    arrays = arrays_of(log, decided)
    learner.absorbed = np.concatenate((learner.absorbed, one))  # first: at worst a log is refused that was not counted
    count(core, arrays)
    incomplete = core.state.incomplete
    unknown, independent = summary(decided)
    incomplete.unknown += unknown
    incomplete.independent += independent
    for e, counting in decided.items():
        if counting.word == INDEPENDENT:
            declare(learner.declared, log.gaps.reasons[log.gaps.reason[e]], 1)
    reproject(learner)


def reproject(learner: MirrorLearner) -> None:
    """Project the present weights onto the sets that `rebuild` made."""
    if project_all(learner.core, RELAXED if learner.core.state.reals.slack > 0.0 else PROJECTED) != SOLVED:
        fallback_solve(learner.layout, learner.core)


@kernel
def count(core: Core, log: LogArrays) -> None:
    """Update counts, sets and all that follows from them; the projection is still to be done."""
    state, numbers, logged = core.state, core.state.numbers, core.state.logged
    count_log(core.sets, log)
    count_logged(state.premises, log.starts, log.rows, log.triples, log.costs, log.whole)
    compare_all(core.index, core.rule.premises, state.premises, numbers.episode)
    num = len(log.starts) - 1
    logged.steps += len(log.rows)
    logged.episodes += num
    for e in range(len(log.broken)):
        logged.truncated += log.extents[e, 0] < len(core.buffers.trace.u)
    if not log.with_costs:
        logged.costless += num
    rebuild(core)


@kernel
def rebuild(core: Core) -> None:
    """Update what follows from the sets after a change of sets or thresholds, up to the projection."""
    state, numbers = core.state, core.state.numbers
    copy_optimistic(core, core.buffers.all_rows)
    core.buffers.columns.kept[0] = core.buffers.baseline_columns.kept[0] = 0
    if core.rule.epochs:
        for r in range(len(state.epoch_visits)):
            state.epoch_visits[r] = state.counts.num_visits[r]
        numbers.epochs += 1
    numbers.stale = numbers.moved = numbers.open = 1
    core.pool.numbers.due = 0
    state.system.num_candidates[0] = NO_SYSTEM
    follow_violation(core)
    if state.reals.slack > 0.0:
        copy_floored(state.log_weight, RELAXED_FLOOR, state.log_weight)


def learn_broken(
    learner: MirrorLearner, episode: Episode, path: Path, added: Counts | None = None, repeats: bool = False
) -> None:
    """Learn what an episode that is not whole says, of the plan that was made; `path` holds its numbers.

    One of a group (`groups.py`) comes with what it adds to the counts, and may repeat an earlier one of the group.
    """
    core, layout, lost = learner.core, learner.layout, None
    if is_unknown(episode) and added is None:
        followed = episode.irregular is not None and episode.irregular.actions is not None
        lost = LostPlan.of(learner.episode, learner.drawn_actions(), learner.played_array(), followed=followed)
    counting = decide(episode, independent_costs=learner.view.knowledge.independent_costs)
    set_broken(core.sets, episode, counting, learner.played_array())
    # What the account takes: all costs, also where other sums take known means instead of these.
    core.buffers.paid[:] = cut(*filled_costs(episode, counting), core.baseline.ceilings).sum(axis=0)
    count, marks = len(episode.rows), core.buffers.marks
    rows, triples, losses, costs = path.rows[:count], path.triples[:count], path.losses[:count], path.costs[:count]
    # Copied, because compiled code exists once, for arrays that can be written to.
    rows[:], triples[:], costs[:] = episode.rows, episode.triples, episode.costs
    losses[:] = episode.losses if counting.planned else 0.0
    marks.broken, marks.closes = int(episode.irregular is not None), int(counting.closes and not repeats)
    marks.skipped, marks.repeats, marks.counted = int(counting.skipped or repeats), int(repeats), int(added is not None)
    try:
        if added is None:
            learn(core, rows, triples, losses, costs)
        else:
            learn_counted(core, added, rows, triples, losses, costs)
    finally:
        marks.values[:] = 0
    _note(learner, episode, counting, layout.steps, 1)
    if lost is not None:
        learner.queue.lose(lost)


@kernel
def learn_counted(
    core: Core, added: Counts, rows: IntArray, triples: IntArray, losses: FloatArray, costs: FloatArray
) -> int:
    """`learn`, with what the episode adds to the counts: one call, which nothing can interrupt halfway."""
    _add(core.state.counts, added, 1)
    return learn(core, rows, triples, losses, costs)


@kernel
def _add(counts: Counts, added: Counts, times: int) -> None:
    """Add to counts, or with `times` = -1 take away from them."""
    for j in range(len(counts.num_moves)):
        counts.num_moves[j] += times * added.num_moves[j]
    for r in range(len(counts.num_visits)):
        counts.num_visits[r] += times * added.num_visits[r]
        counts.unknown_moves[r] += times * added.unknown_moves[r]
        counts.num_costs[r] += times * added.num_costs[r]
        for i in range(counts.cost_sums.shape[1]):
            counts.cost_sums[r, i] += times * added.cost_sums[r, i]
            counts.unknown_costs[r, i] += times * added.unknown_costs[r, i]


def counts_of(learner: MirrorLearner, outcome: Episode, played: FloatArray) -> Counts:
    """What an outcome adds to the counts, by itself, if a policy (num_rows,) was to be played."""
    core, counts = learner.core, make_counts(learner.layout, learner.view.num_constraints)
    counting = decide(outcome, independent_costs=learner.view.knowledge.independent_costs)
    set_gaps(core.sets.scratch.gaps, outcome, counting, played)
    rows, triples, costs = outcome.rows.copy(), outcome.triples.copy(), outcome.costs.copy()
    record_gaps(core.index, core.sets.rule.box.laws, counts, rows, triples, costs, core.sets.scratch.gaps)
    return counts


def take_back(learner: MirrorLearner, plan: LostPlan, outcome: Episode) -> None:
    """Put the outcome of a plan in the place of the unknown one that was learnt (docs/open-plans.md).

    Counts become those of an outcome that came in time, and sets follow. What sums over whole episodes, and what tests
    premises, has its place in the order of the plans and stays as it is.
    """
    missing, steps = Episode.missing(learner.view), learner.layout.steps
    replace_counts(
        learner.core, counts_of(learner, missing, plan.played), counts_of(learner, outcome, plan.played)
    )  # fmt: skip
    for episode, sign in ((missing, -1), (outcome, 1)):
        counting = decide(episode, independent_costs=learner.view.knowledge.independent_costs)
        _note(learner, episode, counting, steps, sign)
    reproject(learner)


@kernel
def replace_counts(core: Core, before: Counts, after: Counts) -> None:
    """Replace what an episode added to the counts, and update all that follows but for the projection: one call."""
    _add(core.state.counts, before, -1)
    _add(core.state.counts, after, 1)
    refresh_sets(core.sets)
    rebuild(core)


def _note(learner: MirrorLearner, episode: Episode, counting: Counting, steps: int, sign: int) -> None:
    """Keep what the ledger says of it, or with `sign` = -1 no longer."""
    logged, incomplete = learner.core.state.logged, learner.core.state.incomplete
    incomplete.unknown += sign * (counting.word == UNKNOWN)
    incomplete.independent += sign * (counting.word == INDEPENDENT)
    logged.truncated += sign * (counting.moves < steps)
    logged.off_policy += sign * (not counting.planned)
    if episode.irregular is not None and episode.irregular.independent is not None:
        declare(learner.declared, episode.irregular.independent, 1)


def declare(declared: dict[str, int], reason: str, count: int) -> None:
    """Add episodes that were left out for a declared reason; of many reasons, the last are taken together."""
    name = reason if reason in declared or len(declared) < MOST_REASONS else OTHERS
    declared[name] = declared.get(name, 0) + count
