"""Groups of plans whose costs share a cause: one value per group and pair in the confidence sets of costs.

200 chargers share the weather of a day. Their costs are 200 values, but not 200 draws: an interval that took them for
such would be too narrow. The *mean* of all costs that the plans of a group paid in a pair, or in pairs that share a
distribution, is one number in [0, 1]. Its expectation is the mean cost, and groups are independent of each other: it
counts as one visit. It is counted with the first plan of the group, after the last one was made. Moves count as always.

Sums over whole episodes (the aggregate certificate, the search of CV-OPS, the tests of premises) take the first plan of
each group and leave the others out, which is known before any of them is played.

Unknown values: with n visits of which K are unknown, and S the sum of the known costs, the mean lies between S / n and
(S + K) / n. Counts know whole unknown values only, so the group counts as S / n if there is slack for the width K / n,
else as one unknown value, which leaves a slack of 1 - (S + K) / n:

    sum of true means <= cost_sums + unknown_costs - slack,     slack >= 0,     sum of true means >= cost_sums
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.confidence.counts import Counts, make_counts
from hedgerow.environments.play import Path
from hedgerow.learners.open_plans import OpenPlan, OpenPlans
from hedgerow.learners.ops.absorb import counts_of, learn_broken

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner

ROUNDING = 1e-9
"""More than what sums of slack may be off"""


def learn_grouped(learner: MirrorLearner, entry: OpenPlan, path: Path) -> None:
    """Learn from the outcome of the first open plan, which has a group; `path` holds its numbers."""
    queue, outcome = learner.queue, entry.outcome
    assert outcome is not None
    counts, gained = counts_of(learner, outcome, entry.played), np.zeros(0)
    added = make_counts(learner.layout, learner.view.num_constraints).replace(
        num_visits=counts.num_visits, num_moves=counts.num_moves, unknown_moves=counts.unknown_moves
    )
    if not entry.repeats:
        members = [(each.outcome, each.played) for each in queue.members(entry.plan.group)]
        gained = add_means(added, [counts_of(learner, one, plays) for one, plays in members if one is not None], queue)
        queue.groups += 1
    learn_broken(learner, outcome, path, added, entry.repeats)
    if gained.any():  # only now: what an interrupt leaves undone must not have left slack
        queue.slack = gained if queue.slack is None else queue.slack + gained


def add_means(added: Counts, members: list[Counts], queue: OpenPlans) -> FloatArray:
    """Write one value per pair, the mean of a group, into `added`; returns the slack (num_rows, m) that this leaves.

    What it uses of the slack is taken off at once.
    """
    visits = np.sum([one.num_costs for one in members], axis=0)
    sums, unknown = (np.sum([getattr(one, name) for one in members], axis=0) for name in ("cost_sums", "unknown_costs"))
    seen, share = visits > 0, 1.0 / np.maximum(visits, 1)[:, np.newaxis]
    low, width = np.minimum(sums * share, 1.0), unknown * share
    slack = np.zeros(low.shape) if queue.slack is None else queue.slack
    # Where no visit is known at all, the value is unknown: a count without a visit would be none of an episode.
    known = seen[:, np.newaxis] & (slack >= width) & (unknown < visits[:, np.newaxis])
    added.num_costs[:] = seen
    added.cost_sums[:] = np.where(known, low, 0.0)
    added.unknown_costs[:] = seen[:, np.newaxis] & ~known
    if queue.slack is not None:
        queue.slack = slack - np.where(known, width, 0.0)
    return np.where(added.unknown_costs == 1, np.maximum(1.0 - low - width - ROUNDING, 0.0), 0.0)
