"""Whether a restored state is one that a learner can be in: a file with a right checksum may still be wrong.

A state is sound if every number is in its range and everything that follows from something else does follow: boxes from
counts, rates from the horizon, the row weights from policy and conditionals, bounds and the mixing weight from all of
these. Then the ledger of the learner speaks the truth. Each refusal names the entry.

A new array of the state needs one line in RANGES, a new number one in NUMBER_RANGES or REAL_RANGES.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners import state as places
from hedgerow.learners.core import MIXTURE
from hedgerow.learners.learner import Learner
from hedgerow.learners.mixing import mixing_weight, refresh_cached_bounds
from hedgerow.learners.sound_boxes import check_boxes
from hedgerow.learners.sound_counts import check_cached_visits, check_counts, check_epochs, layer_sums
from hedgerow.learners.sound_search import check_policies, check_summed_costs
from hedgerow.learners.state import LOG_FLOOR, PROJECTED, RELAXED, UNSOLVED
from hedgerow.learners.step import SMALLEST_CONDITIONAL, prepare, set_rates
from hedgerow.model.cmdp import View
from hedgerow.model.layout import Layout
from hedgerow.projection.workspace import NO_SYSTEM

TOLERANCE = 1e-9
"""For what is computed anew."""
LOOSE = 1e-6
"""For what a projection leaves over."""
LARGEST = 2.0**53
"""Counters are exact as real numbers."""
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
    "counts.cost_sums": (0.0, LARGEST),
    "boxes.lower": (0.0, 1.0),
    "boxes.upper": (0.0, 1.0),
    "boxes.cost_lower": (-1.0, 1.0),
    "boxes.cost_upper": (0.0, 2.0),
    "boxes.xi": (0.0, 1.0),
    "epoch_visits": (0, LARGEST),
    "multipliers": (0.0, HUGE),
    "bounds": (0.0, HUGE),
    "baseline_u": (0.0, 1.0 + TOLERANCE),
    "baseline_visits": (0, LARGEST),
    "search.weights": (0.0, 1.0 + TOLERANCE),
    "search.cost_sums": (0.0, HUGE),
    "search.policies": (0.0, 1.0 + TOLERANCE),
    "search.facts": (-HUGE, HUGE),
    "numbers": (0, LARGEST),
    "reals": (0.0, HUGE),
}
"""In which range the entries of each array of a state lie."""

NUMBER_RANGES: Mapping[str, int] = {
    "PENDING": 1,
    "OPEN": 1,
    "PHASE_OVER": 1,
    "STALE": 1,
    "MOVED": 1,
    "LAST_STATUS": max(PROJECTED, RELAXED, UNSOLVED),
}
"""The largest value of those numbers that do not count anything."""

REAL_RANGES: Mapping[str, float] = {"MIXING": 1.0}


def check_sizes(view: View, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a state that is too short for its world, before memory for that world is taken.

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
    """Every entry of every array by itself."""
    for name, array in arrays.items():
        low, high = RANGES.get(name, (-np.inf, np.inf))
        outside = ~((array >= low) & (array <= high) & np.isfinite(array))  # NaN is outside everything
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InvalidInput(f"state.{name} is {array[place].item()!r} at {place}; it must lie in [{low:g}, {high:g}]")
    tables = (("numbers", NUMBER_RANGES), ("reals", REAL_RANGES))
    for name, largest in tables:
        for place_name, most in largest.items():
            value = arrays[name][getattr(places, place_name)].item()
            if value > most:
                raise InvalidInput(f"state.{name}: {place_name} is {value!r}; it must lie in [0, {most:g}]")


def check_indices(arrays: Mapping[str, NDArray[Any]], num_baselines: int) -> None:
    """What compiled code looks up without asking."""
    branch = int(arrays["numbers"][places.BRANCH])
    if branch > num_baselines:
        raise InvalidInput(f"state.numbers: BRANCH is {branch}; there are {num_baselines} baselines")
    candidates, count = arrays["system.candidate"], int(arrays["system.num_candidates"][0])
    if count > candidates.size or np.any(candidates >= candidates.size):
        raise InvalidInput("state.system.candidate names a constraint that does not exist")
    if np.any(np.diff(candidates[: max(0, count)]) <= 0):
        raise InvalidInput("state.system.candidate must ascend")


def check_state(learner: Learner, given: Mapping[str, NDArray[Any]]) -> None:
    """The state that was restored from `given`; what follows from it is computed anew in the learner's own arrays."""
    core, layout, settings = learner.core, learner.layout, learner.settings
    state, episode = core.state, learner.episode
    _check_numbers(learner)
    begun = learner.begun
    discarded = begun if settings.phase2_stats == "discard" else 0
    check_counts(layout, state.counts, episode - discarded)
    check_epochs(layout, state, core.rule.epochs, begun - discarded)
    if core.search.active or (begun and not discarded):
        binding = np.flatnonzero(learner.view.thresholds < layout.horizon)
        check_summed_costs(state.search, state.counts.cost_sums[:, binding].sum(axis=0), bool(core.search.active))
    check_boxes(layout, core, learner.transitions)
    check_policies(layout, "policy", state.policy)
    _check_rates(learner)
    _check_conditionals(layout, state.conditional)
    settled = not state.numbers[places.OPEN]
    if settled:
        _check_iterate(learner)
    else:
        _check_open(layout, state.log_weight)
    prepare(core)
    _check_mixing(learner, given, settled)
    _check_cached_bounds(learner)


def _check_numbers(learner: Learner) -> None:
    core = learner.core
    number = {name: int(core.state.numbers[getattr(places, name)]) for name in NUMBERS}
    episode, pending, begun = number["EPISODE"], number["PENDING"], learner.begun
    learner.check_horizon(pending)
    _demand(begun <= episode, f"state.search.facts: the search took {begun} of {episode} episodes")
    busy = pending + max(number["OPEN"], number["PHASE_OVER"])
    _demand(busy <= 1, "state.numbers: an episode is PENDING although the one before is not complete")
    _demand(not number["PHASE_OVER"] or core.search.active, "state.numbers: PHASE_OVER, but there is no search")
    _demand(number["OPEN"] == 0 or episode > begun, "state.numbers: OPEN before the first episode")
    for name in ("INFEASIBLE", "FAILED"):
        _demand(number[name] <= number["SUSPECT"], f"state.numbers: {name} exceeds SUSPECT")
    _demand(number["LAST_ITERATIONS"] <= number["ITERATIONS"], "state.numbers: LAST_ITERATIONS exceeds ITERATIONS")
    status = number["LAST_STATUS"]
    _demand(status != RELAXED or number["INFEASIBLE"] > 0, "state.numbers: LAST_STATUS without an INFEASIBLE one")
    _demand(status != UNSOLVED or number["FAILED"] > 0, "state.numbers: LAST_STATUS without a FAILED one")
    segment, end = 0, 0
    if core.rule.doubling:  # segment j has the episodes 2^j - 1, ..., 2^(j+1) - 2 of the phase
        segment = (episode - begun + 1).bit_length() - 1
        end = begun + 2 ** (segment + 1) - 1
    _demand(number["SEGMENT"] == segment, f"state.numbers: SEGMENT is {number['SEGMENT']}, not {segment}")
    _demand(number["SEGMENT_END"] == end, f"state.numbers: SEGMENT_END is {number['SEGMENT_END']}, not {end}")
    fewest, most = (min(1, episode), episode) if core.rule.epochs else (0, 0)
    _demand(fewest <= number["EPOCHS"] <= most, f"state.numbers: {number['EPOCHS']} EPOCHS in {episode} episodes")
    cached = len(core.state.baseline_u) > 0 and core.rule.mixture_bound == MIXTURE
    _demand(cached or number["STALE"] == 1, "state.numbers: STALE is 0, but no bounds are cached")


NUMBERS = (
    "EPISODE", "PENDING", "INFEASIBLE", "SUSPECT", "FAILED", "ITERATIONS", "LAST_ITERATIONS", "LAST_STATUS", "SEGMENT",
    "SEGMENT_END", "EPOCHS", "OPEN", "PHASE_OVER", "STALE",
)  # fmt: skip


def _check_rates(learner: Learner) -> None:
    """eta and gamma of the segment, or of the whole phase."""
    core, reals = learner.core, learner.core.state.reals
    given, rule = reals.copy(), learner.core.rule
    if rule.doubling:
        j = int(core.state.numbers[places.SEGMENT])
        set_rates(core, 2.0**j, rule.log_inverse_delta + log((j + 1.0) * (j + 2.0)))
    else:
        set_rates(core, float(max(1, (learner.episodes or 1) - learner.begun)), rule.log_inverse_delta)
    for name, place in (("ETA", places.ETA), ("GAMMA", places.GAMMA)):
        computed = float(reals[place])
        close = abs(given[place] - computed) <= TOLERANCE * computed
        _demand(close, f"state.reals: {name} is {given[place]!r}; the horizon makes it {computed!r}")
    reals[:] = given


def _check_conditionals(layout: Layout, conditional: FloatArray) -> None:
    off = np.abs(np.add.reduceat(conditional, layout.row_start[:-1]) - 1.0) > LOOSE
    if np.any(off):
        row = layout.describe_row(int(np.flatnonzero(off)[0]))
        raise InvalidInput(f"state.conditional of {row} do not sum to 1")


def _check_open(layout: Layout, log_weight: FloatArray) -> None:
    """Weights that wait for their projection: a mirror step only takes mass away."""
    heavy = layer_sums(layout, np.exp(log_weight)) > 1.0 + LOOSE
    _demand(not np.any(heavy), "state.log_weight: a layer weighs more than 1")


def _check_iterate(learner: Learner) -> None:
    """q_hat, its policy, and that it was projected: in the boxes, and within the thresholds up to what was left."""
    core, layout = learner.core, learner.layout
    state, boxes, numbers = core.state, core.state.boxes, core.state.numbers
    outside = (state.conditional < boxes.lower - LOOSE) | (state.conditional > boxes.upper + LOOSE)
    if np.any(outside):
        where = layout.describe_triple(int(np.flatnonzero(outside)[0]))
        raise InvalidInput(f"state.conditional of {where} is outside its box")
    _demand(bool(np.all(state.log_weight >= LOG_FLOOR)), f"state.log_weight has an entry below {LOG_FLOOR:g}")
    w = _occupancy(layout, state.conditional, state.policy)
    off = np.abs(np.exp(state.log_weight) - w) > LOOSE
    if np.any(off):
        row = layout.describe_row(int(np.flatnonzero(off)[0]))
        raise InvalidInput(f"state.log_weight of {row} is not what policy and conditionals give it")
    if numbers[places.LAST_STATUS] == PROJECTED:
        binding = core.baseline.binding
        excess = np.max(boxes.cost_lower[:, binding].T @ w - core.baseline.thresholds[binding], initial=0.0)
        residual = float(state.reals[places.COST_RESIDUAL])
        _demand(excess <= residual + LOOSE, "state.log_weight violates the optimistic constraints of a projection")
        allowed = LOOSE + core.rule.tol * layout.num_states * layout.horizon
        _demand(residual <= allowed, f"state.reals: COST_RESIDUAL is {residual!r} after a projection")


def _occupancy(layout: Layout, conditional: FloatArray, policy: FloatArray) -> FloatArray:
    """q(x,a): the forward pass, for rows that sum to 1 up to rounding."""
    w = np.zeros(layout.num_rows)
    reach: FloatArray = np.ones(1)
    for k in range(layout.horizon):
        rows, triples = layout.rows(k), layout.triples(k)
        w[rows] = np.repeat(reach, layout.num_actions) * policy[rows]
        moved = w[layout.row_of_triple[triples]] * conditional[triples]
        local = layout.successor[triples] - layout.state_start[k + 1]
        reach = np.bincount(local, moved, minlength=layout.layer_sizes[k + 1])
    return w


def _check_mixing(learner: Learner, given: Mapping[str, NDArray[Any]], settled: bool) -> None:
    """U and lambda, which `prepare` and this compute anew; while an episode is open they are still those before it."""
    core, horizon = learner.core, float(learner.layout.horizon)
    reals, numbers, baselines = core.state.reals, core.state.numbers, len(core.baseline.policies)
    lam, branch = float(reals[places.MIXING]), int(numbers[places.BRANCH])
    if not baselines:
        _demand(lam == 0.0, f"state.reals: MIXING is {lam!r}, but there is no baseline")
        _demand(bool(np.all(given["bounds"] == horizon)), "state.bounds are kept by learners with a baseline only")
        return
    if settled:
        apart = np.abs(given["bounds"] - core.state.bounds) > TOLERANCE * (1.0 + horizon)
        _demand(not np.any(apart), "state.bounds are not the cost bounds of the policy")
        computed = mixing_weight(core, int(numbers[places.LAST_STATUS]))
        _demand(abs(lam - computed) <= TOLERANCE, f"state.reals: MIXING is {lam!r}; the bounds make it {computed!r}")
        reals[places.MIXING] = computed
    if numbers[places.PENDING]:
        possible = lam > 0.0 if branch else lam < 1.0
        _demand(possible, f"state.numbers: BRANCH is {branch} although MIXING is {lam!r}")


def _check_cached_bounds(learner: Learner) -> None:
    """u of many baselines, from boxes that may be older than the present ones."""
    core, layout = learner.core, learner.layout
    state = core.state
    if state.numbers[places.STALE]:  # computed anew before they are used
        return
    check_cached_visits(layout, state)
    u = state.baseline_u.copy()
    _demand(bool(np.all(layer_sums(layout, u) >= 1.0 - LOOSE)), "state.baseline_u: a layer is reached too rarely")
    most = core.baseline.policies.mean(axis=0) + LOOSE
    _demand(bool(np.all(u <= most)), "state.baseline_u exceeds the probability of an action")
    if np.array_equal(state.baseline_visits, state.counts.num_visits):
        refresh_cached_bounds(core)
        _demand(bool(np.all(np.abs(u - state.baseline_u) <= TOLERANCE)), "state.baseline_u do not follow from boxes")


def restored_coin(learner: Learner, given: Any) -> None:
    """Set the learner's coin to a state that its seed can have led to."""
    coin = Generator(PCG64(SeedSequence(learner.seed)))
    expected = dict(coin.bit_generator.state)
    _demand(isinstance(given, dict) and given.keys() == expected.keys(), "coin is not the state of a PCG64 generator")
    _demand(isinstance(given["state"], dict), "coin is not the state of a PCG64 generator")
    numbers = given["state"].get("state"), given["state"].get("inc")
    whole = all(type(number) is int and 0 <= number < 2**128 for number in numbers)
    _demand(whole and len(given["state"]) == 2, "coin: state and inc must be whole numbers of 128 bits")
    tosses = _tosses(learner)
    if tosses is not None:
        coin.bit_generator.advance(tosses)  # type: ignore[attr-defined]
        _demand(given["state"] == coin.bit_generator.state["state"], f"coin is not where {tosses} tosses leave it")
    _demand(numbers[1] == expected["state"]["inc"], "coin: inc does not belong to the seed")
    for name in expected.keys() - {"state"}:
        _demand(given[name] == expected[name] and type(given[name]) is type(expected[name]), f"coin: {name} is wrong")
    learner.coin.bit_generator.state = given


def _tosses(learner: Learner) -> int | None:
    """How often the coin was tossed; None where that depends on the tosses themselves."""
    if learner.core.search.active or learner.begun:
        return None
    if not len(learner.core.baseline.policies):
        return 0
    return learner.episode + int(learner.core.state.numbers[places.PENDING])


def _demand(condition: bool, otherwise: str) -> None:
    if not condition:
        raise InvalidInput(otherwise)
