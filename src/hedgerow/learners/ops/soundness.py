"""Check the aggregate certificate of a file: can episodes have led to it, and do the bounds follow from it?

Its sums cannot be recounted, but they have limits: an open or closed generation of n episodes has visited every layer n
times, a cost adds at most its ceiling and a value at most its range to each of them, and centres are distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.confidence.aggregate import Aggregate, aggregate_bounds
from hedgerow.confidence.balls import UNSEEN, joint_cost_with_balls
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.mixing import MOST_SKIPPED, mixing_weight, refresh_cached_bounds
from hedgerow.learners.ops.search import EARLIEST_STOP, Search, SearchRule, SearchState, needed_margin, stopping_radius
from hedgerow.learners.ops.soundness_sets import (
    TOLERANCE,
    check_balls,
    check_boxes,
    check_cached_visits,
    check_counts,
    check_declared,
    check_epochs,
    check_numbers,
    check_premises,
    check_rates,
    demand,
    layer_sums,
)
from hedgerow.learners.ops.state import LOG_FLOOR, PROJECTED, RELAXED, RELAXED_FLOOR, UNSOLVED, Core, Numbers, Reals
from hedgerow.learners.ops.step import SMALLEST_CONDITIONAL, prepare
from hedgerow.model.layout import Layout
from hedgerow.model.view import View
from hedgerow.projection.workspace import NO_SYSTEM

NEVER = 2**62


def check_aggregate(layout: Layout, core: Core, own: int) -> None:
    """Check the certificate of a learner that has played at most `own` episodes of its own."""
    aggregate, rule = core.state.aggregate, core.rule.aggregate
    numbers, slots = aggregate.numbers, len(aggregate.generation)
    if not slots:
        return
    demand(numbers.own <= own, f"state.aggregate.numbers: {numbers.own} own episodes of {own}")
    used = aggregate.generation >= 0
    demand(numbers.turn < slots, f"state.aggregate.numbers: turn is {numbers.turn}; there are {slots} slots")
    demand(bool(np.all(aggregate.generation < numbers.started)), "state.aggregate.generation is not started yet")
    young = np.sort(aggregate.generation[used])
    demand(bool(np.all(np.diff(young) > 0)), "state.aggregate.generation: two slots hold the same one")
    demand(int(used.sum()) == min(slots, numbers.started), "state.aggregate.generation: a slot is empty")
    empty = (aggregate.episodes[~used] == 0).all() and (aggregate.visits[~used] == 0).all()
    demand(bool(empty), "state.aggregate: an empty slot has counted episodes")
    demand(bool(np.all(aggregate.episodes <= numbers.own)), "state.aggregate.episodes exceed the own ones")
    for slot in np.flatnonzero(used):
        sums = layer_sums(layout, aggregate.visits[slot].astype(np.float64))
        demand(bool(np.all(sums == aggregate.episodes[slot])), "state.aggregate.visits of a layer are not its episodes")
    p_sums = np.add.reduceat(aggregate.p_hat, layout.row_start[:-1])
    demand(bool(np.all(np.abs(p_sums - 1.0) <= TOLERANCE)), "state.aggregate.p_hat of a row do not sum to 1")
    allowed = aggregate.episodes[:, np.newaxis] * (rule.ceilings + layout.steps * _largest_values(aggregate))
    demand(
        bool(np.all(aggregate.sums <= allowed * (1.0 + TOLERANCE) + TOLERANCE)), "state.aggregate.sums are too large"
    )
    wide = aggregate.ranges[used] >= (1.0 if rule.per_step else rule.ceilings) - TOLERANCE
    demand(bool(np.all(wide)), "state.aggregate.ranges are below what an episode can cost")


def _largest_values(aggregate: Aggregate) -> FloatArray:
    """(slots, m)"""
    largest: FloatArray = np.max(np.abs(aggregate.values), axis=2, initial=0.0)
    return largest


def least_bounds(core: Core) -> FloatArray:
    """(m,): the least that any generation says of the present policy, or its boxes; changes nothing."""
    arrays = core.state.aggregate.as_dict()
    numbers = type(core.state.aggregate.numbers)(core.state.aggregate.numbers.values.copy())
    copy = Aggregate(**{**{name: arrays[name].copy() for name in arrays if name != "numbers"}, "numbers": numbers})
    least = core.state.bounds.copy()
    if len(core.state.balls.radius):
        for i in core.baseline.binding:
            upper, rule = core.state.boxes.cost_upper, core.rule.ball
            near = joint_cost_with_balls(core.index, core.buffers.columns, rule, core.state.balls, upper, i)
            least[i] = min(least[i], near)
    for slot in range(len(copy.generation)):
        copy.numbers.turn, copy.numbers.next_start = slot, NEVER
        bounds = core.state.bounds.copy()
        aggregate_bounds(
            core.index, core.buffers.columns, core.state.policy, core.state.boxes, core.rule.aggregate, copy,
            core.buffers.certificate, bounds,
        )  # fmt: skip
        least = np.minimum(least, bounds)
    return least


# --------------------------------------------------------------------------------------------------------------------
# Check the iterate q_hat and what follows from it: its policy, upper bounds of costs, and the mixing weight.
#
# Row weights must follow from policy and conditionals, conditionals must lie in their boxes, and after a projection the
# optimistic costs must respect the thresholds. Bounds and mixing weight are recomputed and have to agree.


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


# --------------------------------------------------------------------------------------------------------------------
# Check the search of CV-OPS: its facts must follow from its sums.
#
# After t episodes the margin and the radius are functions of the summed costs and of t; a search that has ended did so
# because its rule was met, and left rho_hat = margin - radius.


SEARCH_TOLERANCE = 1e-9


def check_search(rule: SearchRule, search: Search, capacity: int, episode: int, over: bool) -> None:
    """Check sums, weights and facts after `episode` episodes of the search; `over`: it ended with the last one."""
    t, facts, expected = episode, search.facts, SearchState()
    if np.any(search.cost_sums < 0.0) or np.any(search.cost_sums > t * rule.steps):
        raise InvalidInput(f"state.search.cost_sums must lie in [0, L] per episode; there were {t} episodes")
    if np.any(search.squares > (t if rule.variance else 0) * (1.0 + SEARCH_TOLERANCE)):
        raise InvalidInput(f"state.search.squares are too large; there were {t} episodes")
    if abs(float(search.weights.sum()) - 1.0) > SEARCH_TOLERANCE or np.any(search.weights < 0.0):
        raise InvalidInput("state.search.weights must be positive and sum to 1")
    if t > 0:
        margin = float(np.min(rule.thresholds - search.cost_sums / t))
        radius = stopping_radius(rule, search.squares, capacity, t)
        expected.margin, expected.radius = margin, radius
        if over:
            expected.rho_hat, expected.t_bar = margin - radius, t
            if t < EARLIEST_STOP or margin < needed_margin(rule, radius, t) - SEARCH_TOLERANCE or margin <= radius:
                raise InvalidInput(f"state.search: a margin of {margin!r} after {t} episodes does not end the search")
    if np.any(np.abs(facts.values - expected.values) > SEARCH_TOLERANCE * (1.0 + np.abs(expected.values))):
        raise InvalidInput(
            f"state.search.facts are {facts.values.tolist()}; the summed costs make them {expected.values.tolist()} "
            f"({', '.join(SearchState.fields)})"
        )


def check_policies(layout: Layout, name: str, policies: FloatArray) -> None:
    """Check policies (..., num_rows) of learners, whose probabilities sum to 1 up to rounding."""
    sums = policies.reshape(-1, layout.num_decision_states, layout.num_actions).sum(axis=2)
    off = np.argwhere(np.abs(sums - 1.0) > SEARCH_TOLERANCE)
    if len(off):
        j, x = (int(i) for i in off[0])
        raise InvalidInput(f"state.{name}: policy {j} in {layout.describe_state(x)} does not sum to 1")


def check_summed_costs(search: Search, seen: FloatArray, searching: bool) -> None:
    """Check that the search saw what was counted: `seen` (m,), for the constraints that bind, in it and afterwards."""
    rounding = SEARCH_TOLERANCE * (1.0 + seen)
    if np.any(search.cost_sums > seen + rounding) or (searching and np.any(search.cost_sums < seen - rounding)):
        raise InvalidInput("state.search.cost_sums are not the sums of state.counts.cost_sums")


def end_of_search(search: Search, episode: int) -> int:
    """t_bar, as a whole number, of a search in which `episode` episodes have been played so far."""
    t_bar, broken = search.facts.t_bar, search.broken
    if t_bar != np.floor(t_bar) or not 0.0 <= t_bar + broken.skipped <= episode:
        raise InvalidInput(f"state.search.facts: t_bar is {t_bar!r}, not a number of episodes; there were {episode}")
    if broken.filled > (t_bar or episode - broken.skipped):
        raise InvalidInput(f"state.search.broken: filled is {broken.filled}, more than the episodes of the search")
    return int(t_bar)


# --------------------------------------------------------------------------------------------------------------------
# Check that a learner can be in a restored state: a file with a right checksum may still be wrong.
#
# A state is sound if every number is in its range and every derived number follows from its sources: boxes from counts,
# rates from the horizon, the row weights from policy and conditionals, bounds and the mixing weight from all of these.
# Then the ledger of the learner is true. Each refusal names the entry.
#
# A new array of the state needs one line in RANGES, a new number one in NUMBER_RANGES or REAL_RANGES.


LARGEST = 2.0**53
"""Up to here counters are exact as real numbers."""
HUGE = 1e200

RANGES: Mapping[str, tuple[float, float]] = {
    "log_weight": (-HUGE, LOOSE),
    "conditional": (SMALLEST_CONDITIONAL * (1.0 - TOLERANCE), 1.0 + TOLERANCE),
    "bound": (-1, 1),
    "system.diagonal": (-HUGE, HUGE),
    "system.coupling": (-HUGE, HUGE),
    "system.border": (-HUGE, HUGE),
    "system.schur": (-HUGE, HUGE),
    "system.candidate": (0, LARGEST),
    "system.num_candidates": (NO_SYSTEM, LARGEST),
    "policy": (0.0, 1.0 + TOLERANCE),
    "counts.num_visits": (0, LARGEST),
    "counts.num_moves": (0, LARGEST),
    "counts.num_costs": (0, LARGEST),
    "counts.cost_sums": (0.0, LARGEST),
    "counts.unknown_moves": (0, LARGEST),
    "counts.unknown_costs": (0, LARGEST),
    "boxes.lower": (0.0, 1.0),
    "boxes.upper": (0.0, 1.0),
    "boxes.cost_lower": (-1.0, 1.0),
    "boxes.cost_upper": (0.0, 2.0),
    "boxes.xi": (0.0, 1.0),
    "boxes.visits": (0, LARGEST),
    "boxes.cost_visits": (0, LARGEST),
    "epoch_visits": (0, LARGEST),
    "multipliers": (0.0, HUGE),
    "certificate": (0.0, 1.0 + TOLERANCE),
    "bounds": (0.0, HUGE),
    "baseline_u": (0.0, 1.0 + TOLERANCE),
    "baseline_visits": (0, LARGEST),
    "search.weights": (0.0, 1.0 + TOLERANCE),
    "search.cost_sums": (0.0, HUGE),
    "search.squares": (0.0, HUGE),
    "search.policies": (0.0, 1.0 + TOLERANCE),
    "search.facts": (-HUGE, HUGE),
    "search.broken": (0, LARGEST),
    "aggregate.p_hat": (0.0, 1.0 + TOLERANCE),
    "aggregate.g_hat": (0.0, 1.0),
    "aggregate.values": (0.0, HUGE),
    "aggregate.ranges": (0.0, HUGE),
    "aggregate.sums": (0.0, HUGE),
    "aggregate.squares": (0.0, HUGE),
    "aggregate.visits": (0, LARGEST),
    "aggregate.episodes": (0, LARGEST),
    "aggregate.generation": (-1, LARGEST),
    "aggregate.closed": (0, 1),
    "aggregate.best": (0, LARGEST),
    "aggregate.numbers": (0, LARGEST),
    "balls.moves": (0, LARGEST),
    "balls.visits": (0, LARGEST),
    "balls.radius": (0.0, UNSEEN),
    "premises.visits": (0, LARGEST),
    "premises.moves": (0, LARGEST),
    "premises.sums": (0.0, LARGEST),
    "premises.due": (0, LARGEST),
    "premises.low_moves": (0.0, 1.0),
    "premises.high_moves": (0.0, 1.0),
    "premises.low_costs": (0.0, 1.0),
    "premises.high_costs": (0.0, 1.0),
    "premises.baseline_sums": (0.0, LARGEST),
    "premises.numbers": (0, LARGEST),
    "premises.figures": (0.0, HUGE),
    "patience": (0, MOST_SKIPPED),
    "logged": (0, LARGEST),
    "incomplete": (0, LARGEST),
    "numbers": (0, LARGEST),
    "reals": (0.0, HUGE),
}
"""The range of the entries of each array of a state"""

NUMBER_RANGES: Mapping[str, int] = {
    "pending": 1,
    "open": 1,
    "phase_over": 1,
    "stale": 1,
    "moved": 1,
    "last_status": max(PROJECTED, RELAXED, UNSOLVED),
}
"""The largest value of those numbers that do not count anything."""

REAL_RANGES: Mapping[str, float] = {"mixing": 1.0}


def check_sizes(view: View, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a state that is too short for its world, before memory for that world is allocated.

    Everything else is as long as the conditionals of the file, which bound the layout already.
    """
    layout, m = view.layout, view.num_constraints
    sizes = np.array(layout.layer_sizes[:-1], dtype=np.float64)
    needed = {
        "counts.cost_sums": layout.num_rows * m,
        "system.diagonal": float(np.sum(sizes**2)),
        "system.coupling": float(np.sum(sizes[:-1] * sizes[1:])),
    }
    for name, size in needed.items():
        if arrays[name].size != size:
            raise InvalidInput(f"state.{name} has {arrays[name].size} entries; this world needs {size:.0f}")


def check_ranges(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check every entry of every array by itself."""
    for name, array in arrays.items():
        low, high = RANGES.get(name, (-np.inf, np.inf))
        outside = ~((array >= low) & (array <= high) & np.isfinite(array))  # NaN is outside everything
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InvalidInput(
                f"state.{name} is {array[place].item()!r} at {place}; it must lie in [{low:g}, {high:g}]"
            )
    records = (("numbers", Numbers, NUMBER_RANGES), ("reals", Reals, REAL_RANGES))
    for name, record, largest in records:
        for field, most in largest.items():
            value = arrays[name][record.place(field)].item()
            if value > most:
                raise InvalidInput(f"state.{name}: {field} is {value!r}; it must lie in [0, {most:g}]")


def check_indices(arrays: Mapping[str, NDArray[Any]], num_baselines: int) -> None:
    """Check the indices that compiled code uses without a check."""
    branch = Numbers(arrays["numbers"]).branch
    if branch > num_baselines:
        raise InvalidInput(f"state.numbers: branch is {branch}; there are {num_baselines} baselines")
    if np.any(arrays["aggregate.best"] >= arrays["aggregate.generation"].size):
        raise InvalidInput("state.aggregate.best names a slot that does not exist")
    candidates, count = arrays["system.candidate"], int(arrays["system.num_candidates"][0])
    if count > candidates.size or np.any(candidates >= candidates.size):
        raise InvalidInput("state.system.candidate names a constraint that does not exist")
    if np.any(np.diff(candidates[: max(0, count)]) <= 0):
        raise InvalidInput("state.system.candidate must ascend")


def check_state(learner: MirrorLearner, given: Mapping[str, NDArray[Any]]) -> None:
    """Check the state that was restored from `given`; recompute what follows from it in the learner's own arrays."""
    core, layout, settings = learner.core, learner.layout, learner.settings
    state, episode = core.state, learner.episode
    check_numbers(learner)
    check_declared(learner)
    begun = learner.begun
    discarded = begun if settings.phase2_stats == "discard" else 0
    tied, logged = bool(core.rule.tied), state.logged
    check_counts(layout, state, core.rule.box.laws, tied, episode - discarded + logged.episodes)
    check_epochs(layout, state, core.rule.epochs, tied, begun - discarded)
    whole = not (state.incomplete.values.any() or state.search.broken.values.any())
    complete = not tied and not logged.episodes and whole
    if complete and (core.search.active or (begun and not discarded)):
        seen = state.counts.cost_sums[:, learner.view.binding].sum(axis=0)
        check_summed_costs(state.search, seen, bool(core.search.active))
    check_boxes(learner)
    check_balls(layout, core)
    check_premises(layout, core, episode, forgotten=discarded > 0)
    check_aggregate(layout, core, episode - begun)
    check_policies(layout, "policy", state.policy)
    check_rates(learner)
    check_conditionals(layout, state.conditional)
    settled = not state.numbers.open
    if settled:
        check_iterate(learner)
    else:
        check_open(layout, state.log_weight)
    prepare(core)
    check_mixing(learner, given, settled)
    check_cached_bounds(learner)
