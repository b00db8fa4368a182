"""Whether compiled code can work with a learner, in plain numpy: a twin of the package's checks.

All numbers are finite, the counts add up, each box holds a distribution, policies are distributions, the mixing weight
is one, and makes the mixture safe if the bounds of its costs are right.
"""

from __future__ import annotations

import numpy as np

from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.cv_ops import CVOPS

CLOSE = 1e-6


def problems(learner: Learner) -> list[str]:
    """What is wrong, in words; nothing for a sound learner."""
    state = learner.core.state
    found = [name for name, array in learner.state_arrays().items() if not np.all(np.isfinite(array))]
    found += [*_counts(learner), *_boxes(learner)]
    if not state.numbers.open:
        found += _mixing(learner)
    policy = state.policy.reshape(-1, learner.layout.num_actions)
    if np.any(policy < 0.0) or np.any(np.abs(policy.sum(axis=1) - 1.0) > CLOSE):
        found.append("policy")
    if learner.episodes is not None and learner.episode > learner.episodes:
        found.append("beyond the horizon")
    if np.any(learner.view.thresholds < 0.0) or np.any(learner.view.thresholds > learner.layout.steps):
        found.append("thresholds")
    learner.guarantees()
    return found


def _counted(learner: Learner) -> int:
    began = (learner.t_bar or 0) if isinstance(learner, CVOPS) else 0
    return learner.episode - (began if learner.settings.phase2_stats == "discard" else 0)


def _counts(learner: Learner) -> list[str]:
    layout, counts, found = learner.layout, learner.core.state.counts, []
    for k in range(layout.steps):
        if int(counts.num_visits[layout.rows(k)].sum()) != _counted(learner):
            found.append(f"visits of layer {k}")
    for r in range(layout.num_rows):
        moves = counts.num_moves[layout.row_start[r] : layout.row_start[r + 1]]
        if np.any(moves < 0) or int(moves.sum()) != int(counts.num_visits[r]):
            found.append(f"moves of row {r}")
        if np.any(counts.cost_sums[r] < 0.0) or np.any(counts.cost_sums[r] > counts.num_visits[r]):
            found.append(f"costs of row {r}")
        if max(counts.unknown_moves[r], *counts.unknown_costs[r], 0) > learner.logged["unknown"]:
            found.append(f"unknown visits of row {r}")
    if learner.logged["independent"] != sum(learner.declared.values()):
        found.append("declared reasons")
    return found


def _boxes(learner: Learner) -> list[str]:
    layout, boxes, found = learner.layout, learner.core.state.boxes, []
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        lower, upper = boxes.lower[row], boxes.upper[row]
        if np.any(lower > upper) or lower.sum() > 1.0 + CLOSE or upper.sum() < 1.0 - CLOSE:
            found.append(f"box of row {r}")
        if np.any(boxes.cost_lower[r] > boxes.cost_upper[r] + CLOSE):
            found.append(f"cost bounds of row {r}")
        if learner.transitions is not None:
            same = np.array_equal(lower, learner.transitions[row]) and np.array_equal(upper, lower)
            found += [] if same else [f"known transitions of row {r}"]
    return found


def _mixing(learner: Learner) -> list[str]:
    """The mixture respects the thresholds if the policy costs no more than the bounds."""
    core, L = learner.core, float(learner.layout.steps)
    lam = core.state.reals.mixing
    if not 0.0 <= lam <= 1.0:
        return ["mixing"]
    if not len(core.baseline.policies):
        return ["mixing without a baseline"] if lam else []
    found = []
    if np.any(core.baseline.costs < 0.0) or np.any(core.baseline.costs > np.minimum(learner.view.thresholds, L)):
        found.append("baseline costs")
    claimed = lam * core.baseline.costs + (1.0 - lam) * np.minimum(core.state.bounds, L)
    if np.any(claimed > learner.view.thresholds + CLOSE):
        found.append("an unsafe mixture")
    return found
