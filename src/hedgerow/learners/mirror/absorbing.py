"""Absorb a log (`importers/logs.py`): episodes that somebody else played, before the first own one or between two.

Intervals that hold at all times (`anytime`, `kt`) do not depend on who chose the actions, nor when. Each logged step is
one more factor of the same supermartingales, provided that its action was chosen without knowledge of that episode's
costs and of what comes next, that nothing was selected by its outcome, and that no episode is counted twice. To that
end the learner keeps digests of the logs that it absorbed, and refuses the same one again (`absorbed.py`).
So N, M, K and S grow by the log, all sets are rebuilt, and the present weights are projected onto them. The smaller
sets still hold the best policy, and a projection brings q_hat no farther from it: no regret is added.

The aggregate certificate counts own episodes only; its centres follow the counts, which the proof allows between
episodes. Counts, sets and all that follows are one compiled call, which nothing can interrupt halfway. If the
projection is interrupted, the next plan begins with it, as after an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.estimates.boxes import refresh_all
from hedgerow.estimates.gaps import Extent
from hedgerow.estimates.log_counts import ANY_SUCCESSOR, LogArrays, record_log
from hedgerow.estimates.radii import WITHOUT_HORIZON
from hedgerow.importers.log_gaps import decisions, summary
from hedgerow.importers.logs import Log
from hedgerow.learners.mirror.absorbed import digests_of, refuse_known
from hedgerow.learners.mirror.broken import declare
from hedgerow.learners.mirror.core import RELAXED_FLOOR, Core
from hedgerow.learners.mirror.relaxing import follow_violation
from hedgerow.learners.mirror.rescue import rescue
from hedgerow.learners.mirror.state import PROJECTED, RELAXED
from hedgerow.learners.mirror.step import copy_floored, follow_boxes, project_all
from hedgerow.model.counting import INDEPENDENT, Counting
from hedgerow.model.view import View
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.workspace import NO_SYSTEM

if TYPE_CHECKING:
    from hedgerow.learners.mirror.base import MirrorLearner


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
    return _in_terms_of(learner.view, given)


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
        rescue(learner.layout, core)


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
    )


@kernel
def count(core: Core, log: LogArrays) -> None:
    """Update counts, sets and all that follows from them; the projection is still to be done."""
    state, numbers, logged = core.state, core.state.numbers, core.state.logged
    record_log(core.index, core.rule.box.laws, state.counts, log, core.buffers.gaps)
    num = len(log.starts) - 1
    logged.steps += len(log.rows)
    logged.episodes += num
    for e in range(len(log.broken)):
        logged.prefixes += log.extents[e, 0] < len(core.buffers.trace.u)
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
