"""Whether a learner is sound, in plain numpy from the formulas: a twin of the package's own checks that shares nothing.

Sound means that what its ledger says is not a lie: the counts can have been seen, the boxes are what the radii make of
them, the policy belongs to the iterate, the iterate was projected, and the mixing weight keeps the costs below the
thresholds.
"""

from __future__ import annotations

from math import log

import numpy as np

from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.cv_ops import CVOPS

CLOSE = 1e-6


def problems(learner: Learner) -> list[str]:
    """What is wrong, in words; nothing for a sound learner."""
    state = learner.core.state
    found = [name for name, array in learner.state_arrays().items() if not np.all(np.isfinite(array))]
    found += [*_counts(learner), *_boxes(learner), *_rates(learner), *_search(learner)]
    if not state.numbers.open:
        found += [*_iterate(learner), *_mixing(learner)]
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


def _radii(learner: Learner, visits: int) -> tuple[float, float, float]:
    """xi, and v and b of epsilon = sqrt(v spread) + b, of a row with so many visits."""
    layout, settings, d = learner.layout, learner.settings, learner.delta
    T, m, c = learner.episodes or 1, max(1, learner.view.num_constraints), settings.confidence_scale
    if settings.radii == "paper":
        iota = log(T * layout.num_states * layout.num_actions / d)
        n = max(1, visits - 1)
        return (
            min(1.0, c * np.sqrt(4.0 * (iota + log(m)) / visits)),
            c * c * 4.0 * iota / n,
            c * 14.0 * iota / (3.0 * n),
        )
    several = [n for n in np.diff(layout.row_start) if n > 1]
    union = log(T) if settings.radii == "tight" else log(visits * (visits + 1.0))
    xi = min(1.0, c * np.sqrt((log(2.0 * layout.num_rows * m / d) + union) / (2.0 * visits)))
    if visits < 2:
        return xi, 0.0, 1.0
    iota = log(4.0 * max(1, sum(several)) / (4.0 * d)) + union
    return xi, c * c * 2.0 * iota / (visits - 1), c * 7.0 * iota / (3.0 * (visits - 1))


def _boxes(learner: Learner) -> list[str]:
    layout, state, found = learner.layout, learner.core.state, []
    boxes, counts = state.boxes, state.counts
    clip = learner.settings.clip_costs
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        then = int(state.epoch_visits[r]) if learner.settings.boxes == "epoch" else int(counts.num_visits[r])
        lower, upper = boxes.lower[row], boxes.upper[row]
        if np.any(lower > upper) or lower.sum() > 1.0 + CLOSE or upper.sum() < 1.0 - CLOSE:
            found.append(f"box of row {r}")
        xi, v, b = _radii(learner, then) if then else (1.0, 0.0, 1.0)
        if abs(boxes.xi[r] - xi) > CLOSE:
            found.append(f"xi of row {r}")
        if then != counts.num_visits[r]:
            continue  # boxes of an older epoch, whose counts nobody knows any more
        g = counts.cost_sums[r] / max(1, then)
        low, high = (np.maximum(g - xi, 0.0), np.minimum(g + xi, 1.0)) if clip else (g - xi, g + xi)
        if np.any(np.abs(boxes.cost_lower[r] - low) > CLOSE) or np.any(np.abs(boxes.cost_upper[r] - high) > CLOSE):
            found.append(f"cost bounds of row {r}")
        if learner.transitions is not None:
            same = np.array_equal(lower, learner.transitions[row]) and np.array_equal(upper, lower)
            found += [] if same else [f"known transitions of row {r}"]
        elif row.stop - row.start > 1:
            p = counts.num_moves[row] / max(1, then)
            spread = p if learner.settings.radii == "paper" else p * (1.0 - p)
            radius = np.sqrt(v * spread) + b if then else np.ones(len(p))
            lo, hi = np.maximum(0.0, p - radius), np.minimum(1.0, p + radius)
            tight_lo, tight_hi = np.maximum(lo, 1.0 - (hi.sum() - hi)), np.minimum(hi, 1.0 - (lo.sum() - lo))
            if np.any(np.abs(tight_lo - lower) > CLOSE) or np.any(np.abs(tight_hi - upper) > CLOSE):
                found.append(f"transitions of row {r}")
    return found


def _rates(learner: Learner) -> list[str]:
    layout, reals = learner.layout, learner.core.state.reals
    began = (learner.t_bar or 0) if isinstance(learner, CVOPS) else 0
    searching = isinstance(learner, CVOPS) and learner.phase == 1
    d, T = learner.delta, float(max(1, (learner.episodes or 1) - began))
    if searching or learner.settings.horizon == "doubling":
        j = learner.core.state.numbers.segment
        d, T = d / ((j + 1.0) * (j + 2.0)), 2.0**j
        if not 2**j - 1 <= learner.episode - began <= 2 ** (j + 1) - 2:
            return ["segment"]
    pairs = layout.num_states * layout.num_actions
    rate = np.sqrt(layout.steps * log(layout.steps * pairs / d) / (T * pairs))
    return [] if np.allclose([reals.eta, reals.gamma], rate, rtol=CLOSE) else ["rates"]


def _occupancy(learner: Learner) -> np.ndarray:
    """w (num_rows,) of the policy under the conditionals of the iterate."""
    layout, state = learner.layout, learner.core.state
    reach, w = np.zeros(layout.num_states), np.zeros(layout.num_rows)
    reach[0] = 1.0
    for r in range(layout.num_rows):
        w[r] = reach[r // layout.num_actions] * state.policy[r]
        for j in range(layout.row_start[r], layout.row_start[r + 1]):
            reach[layout.successor[j]] += w[r] * state.conditional[j]
    return w


def _iterate(learner: Learner) -> list[str]:
    state, found = learner.core.state, []
    w = _occupancy(learner)
    if np.any(np.abs(np.exp(state.log_weight) - w) > 1e-5):
        found.append("log_weight")
    boxes = state.boxes
    if np.any(state.conditional < boxes.lower - 1e-5) or np.any(state.conditional > boxes.upper + 1e-5):
        found.append("conditional")
    if learner.constrained and state.numbers.last_status == 0 and len(state.multipliers):
        excess = boxes.cost_lower.T @ w - learner.view.thresholds
        if np.any(excess > state.reals.cost_residual + 1e-5) or state.reals.cost_residual > 1e-2:
            found.append("optimistic costs")
    return found


def _mixing(learner: Learner) -> list[str]:
    """The mixture respects the thresholds, whatever transitions of the boxes are the true ones; here those of q_hat."""
    core, L = learner.core, float(learner.layout.steps)
    lam = core.state.reals.mixing
    if not 0.0 <= lam <= 1.0:
        return ["mixing"]
    if not len(core.baseline.policies):
        return ["mixing without a baseline"] if lam else []
    found = []
    if np.any(core.baseline.costs < 0.0) or np.any(core.baseline.costs > np.minimum(learner.view.thresholds, L)):
        found.append("baseline costs")
    needed = np.minimum(core.state.boxes.cost_upper.T @ _occupancy(learner), L)
    if np.any(np.minimum(core.state.bounds, L) < needed - CLOSE):
        found.append("bounds")
    claimed = lam * core.baseline.costs + (1.0 - lam) * np.minimum(core.state.bounds, L)
    if learner.settings.sigma == "safe" and np.any(claimed > learner.view.thresholds + CLOSE):
        found.append("an unsafe mixture")
    return found


def _search(learner: Learner) -> list[str]:
    if not isinstance(learner, CVOPS) or learner.t_bar is None:
        return []
    found, L = [], learner.layout.steps
    binding = learner.view.thresholds < L
    margin = float(np.min(learner.view.thresholds[binding] - learner.core.state.search.cost_sums / learner.t_bar))
    if learner.rho_hat is None or not 0.0 < learner.rho_hat <= margin + CLOSE or abs(margin - learner.margin) > CLOSE:
        found.append("rho_hat")
    if not 2 <= learner.t_bar <= learner.episode:
        found.append("t_bar")
    if len(learner.baseline_policies) > learner.t_bar:
        found.append("more policies than episodes")
    return found
