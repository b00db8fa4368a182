"""Which logs a learner has absorbed: a log counts once, whatever file or object it comes from.

Of every log two digests are kept: one of its paths, and one of its paths and costs (`importers/logs.py`), both
in the terms of the learner's view. A log is known if a log with the same paths and the same costs was absorbed; or one
with the same paths, where either of them came without costs. Whole logs are compared, never single episodes: equal
short episodes are common, and every one of them is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.boxes import refresh_all
from hedgerow.confidence.counts import ANY_SUCCESSOR, Extent, LogArrays, record_log, set_gaps
from hedgerow.confidence.premises import LEFT_OUT, PARTLY_UNKNOWN, WHOLE, compare_all, count_logged
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.environments.play import Path
from hedgerow.errors import InvalidInput
from hedgerow.importers.log_columns import decisions, summary
from hedgerow.importers.logs import Log, content_hash
from hedgerow.learners.ops.fallback import fallback_solve
from hedgerow.learners.ops.state import PROJECTED, RELAXED, RELAXED_FLOOR, Core
from hedgerow.learners.ops.step import copy_floored, follow_boxes, follow_violation, learn, project_all
from hedgerow.model.episode import INDEPENDENT, UNKNOWN, Counting, Episode, decide, filled_costs, refuse_impossible
from hedgerow.model.view import View
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.workspace import NO_SYSTEM

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner


Digests = NDArray[np.uint8]
"""(logs, 2, 32): the digests of paths, and of paths and costs; the latter is all 0 for a log without costs."""


def no_logs() -> Digests:
    """Nothing was absorbed."""
    return np.zeros((0, 2, 32), dtype=np.uint8)


def digests_of(log: Log) -> Digests:
    """(1, 2, 32): those of one log."""
    found = np.zeros((1, 2, 32), dtype=np.uint8)
    paths = content_hash(log.starts, log.rows, log.triples, log.costs[:, :0])
    found[0, 0] = list(bytes.fromhex(paths))
    if not np.isnan(log.costs).all():
        found[0, 1] = list(bytes.fromhex(log.content_hash))
    return found


def refuse_known(absorbed: Digests, one: Digests) -> None:
    """Refuse a log that was absorbed before."""
    paths = (absorbed[:, 0] == one[:, 0]).all(axis=1)
    costs = (absorbed[:, 1] == one[:, 1]).all(axis=1)
    silent = ~absorbed[:, 1].any(axis=1) | (not one[:, 1].any())
    if np.any(paths & (costs | silent)):
        raise InvalidInput(
            "this log was absorbed before, with the same episodes: to count them twice would make the bounds too "
            "narrow. If these are other episodes that went the same way, read both together as one log, and absorb that"
        )


def checked_digests(given: NDArray[np.generic], episodes: int) -> Digests:
    """Digests in a file, if they can be those of logs with so many episodes in all."""
    array = np.asarray(given)
    if array.dtype != np.uint8 or array.shape[1:] != (2, 32) or len(array) > episodes:
        raise InvalidInput(f"absorbed must be uint8 of shape (logs, 2, 32), of at most {episodes} logs")
    return array.astype(np.uint8)


# --------------------------------------------------------------------------------------------------------------------
# Absorb a log (`importers/logs.py`): episodes that somebody else played, before the first own one or between two.
#
# Intervals that hold at all times (`anytime`, `kt`) do not depend on who chose the actions, nor when. Each logged
# step is one more factor of the same supermartingales, provided that its action was chosen without knowledge of that
# episode's costs and of what comes next, that nothing was selected by its outcome, and that no episode is counted
# twice. To that end the learner keeps digests of the logs that it absorbed, and refuses the same one again
# (`refuse_known`). So N, M, K and S grow by the log, all sets are rebuilt, and the present weights are projected onto
# them. The smaller sets still hold the best policy, and a projection brings q_hat no farther from it: no regret is
# added.
#
# The aggregate certificate counts own episodes only; its centres follow the counts, which the proof allows between
# episodes. Counts, sets and all that follows are one compiled call, which nothing can interrupt halfway. If the
# projection is interrupted, the next plan begins with it, as after an episode.


def log_for(learner: MirrorLearner, given: Any, how: Mapping[str, Any]) -> Log:
    """`given` as a log that this learner can absorb now; anything else is refused."""
    if learner.settings.radii not in WITHOUT_HORIZON:
        raise InvalidInput(
            f"radii = {learner.settings.radii!r} hold for a fixed number of episodes, and a log would exceed it; build "
            "the learner with radii='kt' or 'anytime', or preset='sharpest'"
        )
    if learner.core.state.numbers.pending:
        raise InvalidInput(
            f"episode {learner.episode} is planned; call observe with what happened in it before a log is absorbed"
        )
    if not isinstance(given, Log):
        return Log.read(learner.view, given, **how)
    if how:
        raise InvalidInput(f"this Log has been read already; pass {', '.join(sorted(how))} to Log.read")
    found = _in_terms_of(learner.view, given)
    known = np.where(found.gaps.unknown, np.nan, found.costs)
    refuse_impossible(learner.view, found.rows, found.triples, known, found.starts)
    return found


def _in_terms_of(own: View, log: Log) -> Log:
    try:
        found = log.in_terms_of(own)
    except InvalidInput as error:
        raise InvalidInput(f"the log is of another world than the learner: {error}") from error
    if log.view.knowledge.independent_costs and not own.knowledge.independent_costs:
        raise InvalidInput(
            "the log was read with a view that knows costs to be independent, which this learner does not; read it "
            "with learner.view"
        )
    return found


def take_in(learner: MirrorLearner, log: Log) -> None:
    """Add the counts of a log to a learner between two episodes, and update all that follows from them."""
    core, one = learner.core, digests_of(log)
    refuse_known(learner.absorbed, one)
    decided = decisions(log, bool(core.rule.box.laws.every_visit))
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
    if project_all(core, RELAXED if core.state.reals.slack > 0.0 else PROJECTED) != SOLVED:
        fallback_solve(learner.layout, core)


def arrays_of(log: Log, decided: Mapping[int, Counting]) -> LogArrays:
    """The log as kernels take it: they are compiled once, for writable arrays."""
    with_costs = log.gaps.with_costs
    extents = [
        (one.moves, one.costs if with_costs else 0, one.layer, one.moves_lost, one.last_lost, one.skipped)
        for one in decided.values()
    ]
    states = [one.states for one in decided.values()]
    return LogArrays(
        starts=log.starts.copy(),
        rows=log.rows.copy(),
        triples=log.triples.copy(),
        costs=log.costs.copy(),
        with_costs=with_costs,
        broken=np.array(list(decided), dtype=np.int64),
        extents=np.array(extents, dtype=np.int64).reshape(-1, len(Extent.fields)),
        places=np.array([ANY_SUCCESSOR if x is None or len(x) > 1 else x[0] for x in states], dtype=np.int64),
        unknown=log.gaps.unknown.astype(np.int8),
        whole=_whole(log, decided),
    )


def _whole(log: Log, decided: Mapping[int, Counting]) -> NDArray[np.int8]:
    """(episodes,): what of each may be compared with own ones; nothing of a log whose costs are left out."""
    found = np.full(len(log), WHOLE if log.gaps.with_costs else LEFT_OUT, dtype=np.int8)
    for e, counting in decided.items():
        found[e] = LEFT_OUT if counting.skipped or not log.gaps.with_costs else PARTLY_UNKNOWN
    return found


@kernel
def count(core: Core, log: LogArrays) -> None:
    """Update counts, sets and all that follows from them; the projection is still to be done."""
    state, numbers, logged = core.state, core.state.numbers, core.state.logged
    record_log(core.index, core.rule.box.laws, state.counts, log, core.buffers.gaps)
    count_logged(state.premises, log.starts, log.rows, log.triples, log.costs, log.whole)
    compare_all(core.index, core.rule.premises, state.premises, numbers.episode)
    num = len(log.starts) - 1
    logged.steps += len(log.rows)
    logged.episodes += num
    for e in range(len(log.broken)):
        logged.truncated += log.extents[e, 0] < len(core.buffers.trace.u)
    if not log.with_costs:
        logged.costless += num
    refresh_all(core.index, state.counts, core.rule.box, state.boxes)
    follow_boxes(core, core.buffers.all_rows)
    core.buffers.columns.kept[0] = core.buffers.baseline_columns.kept[0] = 0
    if core.rule.epochs:
        for r in range(len(state.epoch_visits)):
            state.epoch_visits[r] = state.counts.num_visits[r]
        numbers.epochs += 1
    numbers.stale = numbers.moved = numbers.open = 1
    state.system.num_candidates[0] = NO_SYSTEM
    follow_violation(core)
    if state.reals.slack > 0.0:
        copy_floored(state.log_weight, RELAXED_FLOOR, state.log_weight)


# --------------------------------------------------------------------------------------------------------------------
# Learn from an episode that is not whole: aborted, overridden, missing, or without some of its costs.
#
# `model/episode.py` decides what is counted. Here that decision reaches the kernels of a learner: counts and sets
# (`confidence/counts.py`), the aggregate certificate and the search of CV-OPS, which take sums over whole episodes.


MOST_REASONS = 20
"""Declared reasons that a learner remembers word by word"""
OTHERS = "other reasons"


def learn_broken(learner: MirrorLearner, episode: Episode, path: Path) -> None:
    """Learn what an episode that is not whole says, of the plan that was made; `path` holds its numbers."""
    core, layout = learner.core, learner.layout
    counting = decide(episode, independent_costs=learner.view.knowledge.independent_costs)
    learner.check_possible(episode.rows[: counting.own])
    set_gaps(core.buffers.gaps, episode, counting, learner.played_array())
    core.buffers.filled[:] = _filled(core, episode, counting)
    count, marks = len(episode.rows), core.buffers.marks
    rows, triples, losses, costs = path.rows[:count], path.triples[:count], path.losses[:count], path.costs[:count]
    # Copied, because compiled code exists once, for arrays that can be written to.
    rows[:], triples[:], costs[:] = episode.rows, episode.triples, episode.costs
    losses[:] = episode.losses if counting.planned else 0.0
    marks.broken, marks.closes, marks.skipped = 1, int(counting.closes), int(counting.skipped)
    try:
        learn(core, rows, triples, losses, costs)
    finally:
        marks.values[:] = 0
    _note(learner, episode, counting, layout.steps)


def _filled(core: Core, episode: Episode, counting: Counting) -> FloatArray:
    """(L, m): what sums over whole episodes take as its costs."""
    filled, observed = filled_costs(episode, counting)
    if counting.planned and len(core.state.aggregate.generation):  # which takes known means instead of costs
        known = core.rule.aggregate.known_costs[episode.rows] == 1
        filled[known] = 0.0
        observed |= known
    return cut(filled, observed, core.baseline.ceilings)


def cut(filled: FloatArray, observed: BoolArray, ceilings: FloatArray) -> FloatArray:
    """Lower costs (L, m) that were not observed, the last ones first, until no sum exceeds its ceiling (m,)."""
    for i, ceiling in enumerate(ceilings):
        excess = float(filled[:, i].sum()) - ceiling
        for k in np.flatnonzero(~observed[:, i])[::-1]:
            if excess <= 0.0:
                break
            less = min(excess, filled[k, i])
            filled[k, i] -= less
            excess -= less
    return filled


def _note(learner: MirrorLearner, episode: Episode, counting: Counting, steps: int) -> None:
    """Keep what the ledger says of it."""
    logged, incomplete = learner.core.state.logged, learner.core.state.incomplete
    incomplete.unknown += counting.word == UNKNOWN
    incomplete.independent += counting.word == INDEPENDENT
    logged.truncated += counting.moves < steps
    logged.off_policy += not counting.planned
    if episode.irregular is not None and episode.irregular.independent is not None:
        declare(learner.declared, episode.irregular.independent, 1)


def declare(declared: dict[str, int], reason: str, count: int) -> None:
    """Add episodes that were left out for a declared reason; of many reasons, the last are taken together."""
    name = reason if reason in declared or len(declared) < MOST_REASONS else OTHERS
    declared[name] = declared.get(name, 0) + count
