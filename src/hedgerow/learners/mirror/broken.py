"""Learn from an episode that is not whole: aborted, overridden, missing, or without some of its costs.

`model/counting.py` decides what is counted. Here that decision reaches the kernels of a learner: counts and sets
(`estimates/gaps.py`), the aggregate certificate and the search of CV-OPS, which take sums over whole episodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.checks import BoolArray, FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.estimates.gaps import set_gaps
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.step import learn
from hedgerow.model.counting import INDEPENDENT, UNKNOWN, Counting, decide, filled_costs
from hedgerow.model.episode import Episode

if TYPE_CHECKING:
    from hedgerow.learners.mirror.base import MirrorLearner

MOST_REASONS = 20
"""Declared reasons that a learner remembers word by word"""
OTHERS = "other reasons"


def learn_broken(learner: MirrorLearner, episode: Episode) -> None:
    """Learn what an episode that is not whole says, of the plan that was made."""
    core, layout = learner.core, learner.layout
    counting = decide(episode, independent_costs=learner.view.knowledge.independent_costs)
    _check_actions(learner, episode)
    learner._check_possible(episode.rows[: counting.own])
    set_gaps(core.buffers.gaps, episode, counting, learner.played_array())
    core.buffers.filled[:] = _filled(core, episode, counting)
    count, path, marks = len(episode.rows), learner._path, core.buffers.marks
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


def _check_actions(learner: MirrorLearner, episode: Episode) -> None:
    """Refuse actions that are not those of the plan: what they would have done says nothing about it."""
    followed = None if episode.irregular is None else episode.irregular.actions
    if followed is not None and not np.array_equal(followed.numbers, learner.drawn_actions().numbers):
        raise InvalidInput(
            "the actions of the episode are not those of the plan; pass the plan.actions that were followed, or none"
        )


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
    logged.prefixes += counting.moves < steps
    logged.interfered += not counting.planned
    if episode.irregular is not None and episode.irregular.independent is not None:
        declare(learner.declared, episode.irregular.independent, 1)


def declare(declared: dict[str, int], reason: str, count: int) -> None:
    """Add episodes that were left out for a declared reason; of many reasons, the last are taken together."""
    name = reason if reason in declared or len(declared) < MOST_REASONS else OTHERS
    declared[name] = declared.get(name, 0) + count
