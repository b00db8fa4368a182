"""Check the iterate q_hat and what follows from it: its policy, upper bounds of costs, and the mixing weight.

Row weights must follow from policy and conditionals, conditionals must lie in their boxes, and after a projection the
optimistic costs must respect the thresholds. Bounds and mixing weight are recomputed and have to agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.core import RELAXED_FLOOR
from hedgerow.learners.mirror.mixing import mixing_weight, refresh_cached_bounds
from hedgerow.learners.mirror.sound_aggregate import least_bounds
from hedgerow.learners.mirror.sound_counts import check_cached_visits, layer_sums
from hedgerow.learners.mirror.sound_numbers import TOLERANCE, demand
from hedgerow.learners.mirror.state import LOG_FLOOR, PROJECTED, RELAXED
from hedgerow.model.layout import Layout

LOOSE = 1e-6
"""Tolerance for the residuals of a projection"""


def check_conditionals(layout: Layout, conditional: FloatArray) -> None:
    off = np.abs(np.add.reduceat(conditional, layout.row_start[:-1]) - 1.0) > LOOSE
    if np.any(off):
        row = layout.describe_row(int(np.flatnonzero(off)[0]))
        raise InvalidInput(f"state.conditional of {row} do not sum to 1")


def check_open(layout: Layout, log_weight: FloatArray) -> None:
    """Check weights that wait for their projection: a mirror step only takes mass away."""
    lifted = layout.num_rows * np.exp(RELAXED_FLOOR)  # where thresholds are raised
    heavy = layer_sums(layout, np.exp(log_weight)) > 1.0 + LOOSE + lifted
    demand(not np.any(heavy), "state.log_weight: a layer weighs more than 1")


def check_iterate(learner: MirrorLearner) -> None:
    """Check q_hat, its policy, and that it was projected: in the boxes, and within the thresholds up to a residual."""
    core, layout = learner.core, learner.layout
    state, boxes, numbers = core.state, core.state.boxes, core.state.numbers
    outside = (state.conditional < boxes.lower - LOOSE) | (state.conditional > boxes.upper + LOOSE)
    if np.any(outside):
        where = layout.describe_triple(int(np.flatnonzero(outside)[0]))
        raise InvalidInput(f"state.conditional of {where} is outside its box")
    demand(bool(np.all(state.log_weight >= LOG_FLOOR)), f"state.log_weight has an entry below {LOG_FLOOR:g}")
    w = _occupancy(layout, state.conditional, state.policy)
    off = np.abs(np.exp(state.log_weight) - w) > LOOSE
    if np.any(off):
        row = layout.describe_row(int(np.flatnonzero(off)[0]))
        raise InvalidInput(f"state.log_weight of {row} is not what policy and conditionals give it")
    slack, certificate = state.reals.slack, state.certificate
    relaxed = numbers.last_status == RELAXED
    demand(slack == 0.0 or relaxed, f"state.reals: slack is {slack!r}, but the last projection had a solution")
    demand(not certificate.size or abs(certificate.sum() - 1.0) <= LOOSE, "state.certificate does not sum to 1")
    if numbers.last_status == PROJECTED or slack > 0.0:
        binding = core.baseline.binding
        excess = np.max(boxes.cost_lower[:, binding].T @ w - core.baseline.thresholds[binding], initial=0.0)
        residual = state.reals.cost_residual
        met = excess <= slack + residual + LOOSE
        demand(bool(met), "state.log_weight violates the optimistic constraints of a projection")
        allowed = LOOSE + core.rule.tol * layout.num_states * layout.steps
        demand(residual <= allowed, f"state.reals: cost_residual is {residual!r} after a projection")


def _occupancy(layout: Layout, conditional: FloatArray, policy: FloatArray) -> FloatArray:
    """q(x,a): the forward pass, for rows that sum to 1 up to rounding."""
    w = np.zeros(layout.num_rows)
    reach: FloatArray = np.ones(1)
    for k in range(layout.steps):
        rows, triples = layout.rows(k), layout.triples(k)
        w[rows] = np.repeat(reach, layout.num_actions) * policy[rows]
        moved = w[layout.row_of_triple[triples]] * conditional[triples]
        local = layout.successor[triples] - layout.state_start[k + 1]
        reach = np.bincount(local, moved, minlength=layout.layer_sizes[k + 1]).astype(np.float64, copy=False)
    return w


def check_mixing(learner: MirrorLearner, given: Mapping[str, NDArray[Any]], settled: bool) -> None:
    """Check U and lambda, which `prepare` and this recompute; while an episode is open they are those before it."""
    core, steps = learner.core, float(learner.layout.steps)
    reals, numbers, baselines = core.state.reals, core.state.numbers, len(core.baseline.policies)
    lam, branch = reals.mixing, numbers.branch
    if not baselines:
        demand(lam == 0.0, f"state.reals: mixing is {lam!r}, but there is no baseline")
        demand(bool(np.all(given["bounds"] == steps)), "state.bounds are kept by learners with a baseline only")
        return
    if settled:
        room, least = TOLERANCE * (1.0 + steps), least_bounds(core)
        apart = (given["bounds"] > core.state.bounds + room) | (given["bounds"] < least - room)
        demand(not np.any(apart), "state.bounds are not the cost bounds of the policy")
        if len(core.state.aggregate.generation) or len(
            core.state.balls.radius
        ):  # which bounds were evaluated is not known any more
            core.state.bounds[:] = given["bounds"]
        computed = mixing_weight(core, numbers.last_status)
        demand(abs(lam - computed) <= TOLERANCE, f"state.reals: mixing is {lam!r}; the bounds make it {computed!r}")
        reals.mixing = computed
    if numbers.pending:
        possible = lam > 0.0 if branch else lam < 1.0
        demand(possible, f"state.numbers: branch is {branch} although mixing is {lam!r}")


def check_cached_bounds(learner: MirrorLearner) -> None:
    """Check u of many baselines, from boxes that may be older than the present ones."""
    core, layout = learner.core, learner.layout
    state = core.state
    if state.numbers.stale:  # recomputed before they are used
        return
    check_cached_visits(layout, state, bool(core.rule.tied))
    u = state.baseline_u.copy()
    demand(bool(np.all(layer_sums(layout, u) >= 1.0 - LOOSE)), "state.baseline_u: a layer is reached too rarely")
    most = core.baseline.policies.mean(axis=0) + LOOSE
    demand(bool(np.all(u <= most)), "state.baseline_u exceeds the probability of an action")
    if np.array_equal(state.baseline_visits, state.counts.num_visits):
        refresh_cached_bounds(core)
        demand(bool(np.all(np.abs(u - state.baseline_u) <= TOLERANCE)), "state.baseline_u do not follow from boxes")
