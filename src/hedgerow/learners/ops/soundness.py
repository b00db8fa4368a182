"""Check the state of a file before compiled code uses it: a file with a right checksum may still be wrong.

Kernels index arrays without looking at the bounds and rely on distributions that sum to 1, on boxes that hold one, and
on counts that add up. Every entry is therefore checked for its type, shape and range, indices for their arrays, and
counts for their flow. What follows from other entries is not believed but computed anew: boxes that are rebuilt in
every episode, rates, segments, the bounds of the policy, the mixing weight, and what a search has found.

Whether any episodes can have led to the state is not asked: a file is trusted for its history, such as how often a cost
was seen (SECURITY.md). Each refusal names the entry.

The ranges stand beside the arrays (`state.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.confidence.boxes import make_boxes, refresh_all
from hedgerow.confidence.counts import Laws, make_unknowns
from hedgerow.confidence.premises import BASELINE, LOGGED, NOTHING, SHARED_COSTS, SHARED_TRANSITIONS, TRANSITIONS
from hedgerow.confidence.sets import check_sets, demand
from hedgerow.errors import InvalidInput
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.ops.absorb import MOST_REASONS
from hedgerow.learners.ops.account import radius_of
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.mixing import set_mixture
from hedgerow.learners.ops.rates import set_rates
from hedgerow.learners.ops.search import Search, SearchRule, stopping_radius
from hedgerow.learners.ops.state import (
    LOG_FLOOR,
    LOOSE,
    NUMBER_RANGES,
    POOL_RANGES,
    RANGES,
    REAL_RANGES,
    TOLERANCE,
    Core,
    Numbers,
    Reals,
    State,
    arrays_of_state,
    derived,
)
from hedgerow.learners.ops.step import prepare
from hedgerow.model.layout import Layout
from hedgerow.model.view import View


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
    check_entries(arrays, RANGES)
    records = (("numbers", Numbers, NUMBER_RANGES), ("reals", Reals, REAL_RANGES))
    for name, record, largest in records:
        for field, most in largest.items():
            value = arrays[name][record.place(field)].item()
            if value > most:
                raise InvalidInput(f"state.{name}: {field} is {value!r}; it must lie in [0, {most:g}]")


def check_entries(arrays: Mapping[str, NDArray[Any]], ranges: Mapping[str, tuple[float, float]]) -> None:
    """Check every entry against the range of its array."""
    for name, array in arrays.items():
        low, high = ranges.get(name, (-np.inf, np.inf))
        outside = ~((array >= low) & (array <= high) & np.isfinite(array))  # NaN is outside everything
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InvalidInput(
                f"state.{name} is {array[place].item()!r} at {place}; it must lie in [{low:g}, {high:g}]"
            )


def checked_reasons(given: Any) -> dict[str, int]:
    """The declared reasons of a file, with how many episodes each was given for."""
    if not isinstance(given, dict) or not all(
        isinstance(reason, str) and reason.strip() and type(count) is int and count > 0
        for reason, count in given.items()
    ):
        raise InvalidInput("declared must be numbers of episodes by reason")
    return given


def restore_state(learner: MirrorLearner, arrays: dict[str, NDArray[Any]]) -> None:
    """Copy the arrays into the learner's own, which fix their names, shapes and types, if the result is sound."""
    own = arrays_of_state(learner.core.state)
    needed = set(own) - derived(learner.core)
    if set(arrays) != needed:
        raise InvalidInput(f"the state needs the arrays {sorted(needed)}, not {sorted(arrays)}")
    for name, array in arrays.items():
        if array.dtype != own[name].dtype:
            raise InvalidInput(f"state.{name} must be {own[name].dtype}, not {array.dtype}")
    check_ranges(arrays)
    learner.expect(arrays)
    own = arrays_of_state(learner.core.state)
    for name, array in arrays.items():
        if array.shape != own[name].shape:
            raise InvalidInput(f"state.{name} must have the shape {own[name].shape}, not {array.shape}")
    check_indices(arrays, len(learner.core.baseline.policies) + len(learner.core.pool.weights))
    for name, array in arrays.items():
        own[name][...] = array
    check_state(learner, arrays)


def restore_pool(core: Core, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy the arrays of a pool into that of `core`, which fixes their names, shapes and types, if they are sound."""
    own = {f"pool.{name}": array for name, array in flat_arrays(core.pool).items() if name in POOL_RANGES}
    demand(set(arrays) == set(own), f"the state needs the arrays {sorted(own)}, not {sorted(arrays)}")
    for name, array in arrays.items():
        fits = array.dtype == own[name].dtype and array.shape == own[name].shape
        demand(fits, f"state.{name} must be {own[name].dtype} of shape {own[name].shape}")
    check_entries(arrays, {f"pool.{name}": limits for name, limits in POOL_RANGES.items()})
    for name, array in arrays.items():
        own[name][...] = array
    _check_pool(core)


def _check_pool(core: Core) -> None:
    """Check that the pool is a mixture of policies, and certified; estimates and sums may be any that kernels take."""
    pool, baseline, index, numbers, reals = core.pool, core.baseline, core.index, core.pool.numbers, core.pool.reals
    size, most = numbers.size, len(pool.weights)
    demand(size <= most, f"state.pool.numbers: there are {size} members; there is room for {most}")
    demand(max(numbers.drawn, numbers.closed) <= 1, "state.pool.numbers: a flag")
    demand(0.0 <= reals.base <= 1.0, f"state.pool.reals: base is {reals.base!r}")
    most_share = 1.0 - core.pool_rule.floor
    demand(0.0 <= reals.share <= most_share, f"state.pool.reals: share is {reals.share!r}; most is {most_share:g}")
    demand(min(reals.squares, reals.spread, reals.losses, reals.episodes) >= 0.0, "state.pool.reals: a sum below 0")
    weights = pool.weights[:size]
    demand(abs(reals.base + float(weights.sum()) - 1.0) <= TOLERANCE, "state.pool.weights and base do not sum to 1")
    sums = pool.policies[:size].reshape(-1, index.num_actions).sum(axis=1)
    demand(bool(np.all(np.abs(sums - 1.0) <= TOLERANCE)), "state.pool.policies do not sum to 1 in some state")
    rows = np.add.reduceat(pool.p_hat, index.row_start[:-1])
    demand(bool(np.all(np.abs(rows - 1.0) <= TOLERANCE)), "state.pool.p_hat of a row do not sum to 1")
    costs = reals.base * baseline.costs + weights @ pool.bounds[:size]
    safe = costs[baseline.binding] <= baseline.thresholds[baseline.binding]
    demand(bool(np.all(safe)), "state.pool.bounds: the mixture of the pool is not certified to be safe")


def check_indices(arrays: Mapping[str, NDArray[Any]], num_baselines: int) -> None:
    """Check the indices that compiled code uses without a check."""
    branch = Numbers(arrays["numbers"]).branch
    if branch > num_baselines:
        raise InvalidInput(f"state.numbers: branch is {branch}; there are {num_baselines} baselines")
    candidates, count = arrays["system.candidate"], int(arrays["system.num_candidates"][0])
    if count > candidates.size or np.any(candidates >= candidates.size):
        raise InvalidInput("state.system.candidate names a constraint that does not exist")
    if np.any(np.diff(candidates[: max(0, count)]) <= 0):
        raise InvalidInput("state.system.candidate must ascend")


def check_state(learner: MirrorLearner, given: Mapping[str, NDArray[Any]]) -> None:
    """Check the state that was restored from `given`; compute anew what follows from the rest of it."""
    core, layout, state = learner.core, learner.layout, learner.core.state
    _settle_numbers(learner)
    _check_member(core)
    discarded = learner.begun if learner.settings.phase2_stats == "discard" else 0
    counted = learner.episode - discarded + state.logged.episodes
    rule, grouped = core.sets.rule, learner.queue.groups > 0
    check_counts(layout, state, rule.box.laws, bool(rule.tied), counted, grouped=grouped)
    _settle_boxes(learner)
    check_sets(layout, core.sets)
    _check_refutation(layout, core)
    _check_account(core, learner.episode, bool(learner.queue.changes))
    _check_stay(core, learner.settings.stay != "off", learner.episode)
    check_policies(layout, "policy", state.policy)
    check_conditionals(layout, state.conditional)
    demand(
        not state.certificate.size or abs(state.certificate.sum() - 1.0) <= LOOSE,
        "state.certificate does not sum to 1",
    )
    floored = bool(state.numbers.open) or bool(np.all(state.log_weight >= LOG_FLOOR))
    demand(floored, f"state.log_weight has an entry below {LOG_FLOOR:g}")
    prepare(core)
    _settle_mixing(core, given["bounds"])


def _settle_numbers(learner: MirrorLearner) -> None:
    """Check that flags belong together; set the segment, the rates, and the number of episodes that are left out."""
    core, numbers = learner.core, learner.core.state.numbers
    episode, pending, begun = numbers.episode, numbers.pending, learner.begun
    learner.check_horizon(pending)
    demand(begun <= episode, f"state.search.facts: the search took {begun} of {episode} episodes")
    busy = pending + max(numbers.open, numbers.phase_over)
    demand(busy <= 1, "state.numbers: an episode is pending although the one before is not complete")
    demand(not numbers.phase_over or core.search.active, "state.numbers: phase_over, but there is no search")
    demand(len(learner.declared) <= MOST_REASONS + 1, f"declared: there are more than {MOST_REASONS} reasons")
    core.state.incomplete.independent = sum(learner.declared.values())
    if not len(core.state.baseline_u):
        numbers.stale = 1  # nothing is cached
    segment, end, episodes, share = 0, 0, float(max(1, (learner.episodes or 1) - begun)), 0.0
    if core.rule.doubling:  # segment j has the episodes 2^j - 1, ..., 2^(j+1) - 2 of the phase
        segment = (episode - begun + 1).bit_length() - 1
        end, episodes, share = begun + 2 ** (segment + 1) - 1, 2.0**segment, log((segment + 1.0) * (segment + 2.0))
    numbers.segment, numbers.segment_end = segment, end
    _settle_rates(core, episodes, core.rule.log_inverse_delta + share)


def _settle_rates(core: Core, episodes: float, log_inverse_delta: float) -> None:
    """Set the rates; an adaptive eta is the file's, at most the first one."""
    rule, reals, given = core.rule.rates, core.state.reals, core.state.reals.eta
    set_rates(core, episodes, log_inverse_delta)
    if rule.gain > 0.0:
        demand(0.0 < given <= reals.eta * (1.0 + TOLERANCE), f"state.reals: eta is {given!r}, above {reals.eta!r}")
        reals.eta = given
    elif rule.share == 0.0:
        core.state.pace.gap = 0.0  # only rates that follow it count it


def _settle_boxes(learner: MirrorLearner) -> None:
    """Compute boxes that follow from the counts; check older ones, and intersections of several."""
    core, layout, view = learner.core, learner.layout, learner.view
    rule, boxes = core.sets.rule.box, core.state.boxes
    unknowns = make_unknowns(layout, view.num_constraints, view.knowledge, ties=learner.settings.ties)
    fresh = make_boxes(unknowns, clip_costs=bool(rule.clip_costs))
    known_moves, known_costs = (rule.uncertain == 0)[layout.row_of_triple], rule.unknown_costs == 0
    if derived(core):
        refresh_all(core.index, core.state.counts, rule, fresh)
        boxes.take(fresh)
    for name, known in (
        ("lower", known_moves), ("upper", known_moves), ("cost_lower", known_costs), ("cost_upper", known_costs),
    ):  # fmt: skip
        getattr(boxes, name)[known] = getattr(fresh, name)[known]


def _check_refutation(layout: Layout, core: Core) -> None:
    """Check what a refutation names: a row or a transition, a constraint, a stream."""
    premises = core.state.premises
    numbers = premises.numbers
    flags = numbers.said <= 1 and numbers.beside_logs <= 1 and numbers.stream <= LOGGED
    demand(flags, "state.premises.numbers: a flag")
    demand(numbers.what <= SHARED_TRANSITIONS, f"state.premises.numbers: kind is {numbers.what}")
    if numbers.what == NOTHING:
        return
    moves = numbers.what in (TRANSITIONS, SHARED_TRANSITIONS)
    limit = layout.num_triples if moves else layout.num_rows
    demand(numbers.where < limit, f"state.premises.numbers: where is {numbers.where}; there are {limit}")
    columns = len(premises.baseline_sums)
    demand(moves or numbers.column < columns, "state.premises.numbers: column names no constraint")
    demand(numbers.what != SHARED_COSTS or len(premises.visits) > 0, "state.premises.numbers: nothing was compared")
    demand(numbers.what != BASELINE or len(core.rule.premises.beta) > 0, "state.premises.numbers: there is no baseline")


def _check_account(core: Core, episodes: int, changed: bool) -> None:
    """Check that every episode was entered into the account of B-OPS, at costs that it can have had.

    `changed`: some of them had other thresholds, or other costs of the baseline.
    """
    account, baseline, n = core.state.account, core.baseline, core.state.account.numbers
    if not len(account.allowed):
        return
    binding = baseline.binding
    alpha, most = baseline.thresholds[binding], baseline.ceilings[binding]
    demand(n.own + n.skipped + n.baseline == episodes, f"state.account.numbers do not add up to {episodes} episodes")
    least, room = n.baseline * baseline.costs[binding], LOOSE * (1.0 + episodes)
    off = account.allowed - episodes * most if changed else np.abs(account.allowed - episodes * alpha)
    demand(bool(np.all(off <= room)), "state.account.allowed: other thresholds")
    demand(bool(np.all(account.seen <= n.own * most + room)), "state.account.seen is more than episodes can cost")
    demand(bool(np.all(account.squares <= n.own + room)), "state.account.squares is more than episodes can differ")
    inside = (least - room <= account.fixed) & (account.fixed <= least + n.skipped * most + room)
    if changed:
        inside = account.fixed <= (n.baseline + n.skipped) * most + room
    demand(bool(np.all(inside)), "state.account.fixed is not what the baseline costs")
    for j in range(len(binding)):
        total = account.fixed[j] + account.seen[j] + radius_of(core.rule.account, account, baseline, j)
        demand(account.charged[j] <= total, "state.account.charged is more than was seen")


def _check_stay(core: Core, active: bool, episodes: int) -> None:
    """Check what the rule when to stay rests on: a limit as it can be, and losses that so many episodes can have."""
    stay, steps = core.state.stay, len(core.buffers.trace.u)
    if not active:
        return
    demand(0.0 <= stay.limit <= steps + 1.0, f"state.stay: limit is {stay.limit!r}; an episode has {steps} steps")
    counted = stay.episodes == int(stay.episodes) <= episodes
    demand(counted, f"state.stay: {stay.episodes!r} of {episodes} episodes were the baseline's")
    demand(stay.losses <= steps * stay.episodes + LOOSE, "state.stay: losses is more than episodes can lose")
    demand(stay.now in (0.0, 1.0), "state.stay: now is a flag")


def _settle_mixing(core: Core, given: FloatArray) -> None:
    """Set U and lambda; while an episode is open they are those before it, and computed when it is complete."""
    state = core.state
    if not len(core.baseline.policies):
        state.reals.mixing = 0.0
    elif not state.numbers.open:
        if len(state.aggregate.generation) or len(state.balls.radius) or len(state.anchor):
            np.minimum(state.bounds, given, out=state.bounds)  # certificates are not evaluated in every episode
        set_mixture(core, state.numbers.last_status)


def _check_member(core: Core) -> None:
    """Check that the member of the pool that plays, or that has played, is there and is a policy."""
    member = core.state.numbers.branch - 1 - len(core.baseline.policies)
    if member >= 0:
        plays = member < core.pool.numbers.size or not core.state.numbers.pending
        demand(plays, f"state.numbers: the plan plays member {member} of {core.pool.numbers.size}")
        sums = core.pool.policies[member].reshape(-1, core.index.num_actions).sum(axis=1)
        demand(bool(np.all(np.abs(sums - 1.0) <= TOLERANCE)), f"state.pool.policies: member {member} is no policy")


def check_conditionals(layout: Layout, conditional: FloatArray) -> None:
    off = np.abs(np.add.reduceat(conditional, layout.row_start[:-1]) - 1.0) > LOOSE
    if np.any(off):
        row = layout.describe_row(int(np.flatnonzero(off)[0]))
        raise InvalidInput(f"state.conditional of {row} do not sum to 1")


def check_policies(layout: Layout, name: str, policies: FloatArray) -> None:
    """Check policies (..., num_rows) of learners, whose probabilities sum to 1 up to rounding."""
    sums = policies.reshape(-1, layout.num_decision_states, layout.num_actions).sum(axis=2)
    off = np.argwhere(np.abs(sums - 1.0) > TOLERANCE)
    if len(off):
        j, x = (int(i) for i in off[0])
        raise InvalidInput(f"state.{name}: policy {j} in {layout.describe_state(x)} does not sum to 1")


def settle_search(rule: SearchRule, search: Search, capacity: int, episode: int, over: bool) -> None:
    """Check the sums and weights of a search after `episode` episodes of it, and compute its facts anew from these;
    `over`: it ended with the last one.
    """
    t, facts = episode, search.facts
    facts.margin = facts.radius = facts.rho_hat = 0.0
    demand(
        not np.any(search.cost_sums > t * rule.steps),
        f"state.search.cost_sums must lie in [0, L] per episode; there were {t} episodes",
    )
    demand(abs(float(search.weights.sum()) - 1.0) <= TOLERANCE, "state.search.weights must sum to 1")
    if t > 0:
        facts.margin = float(np.min(rule.thresholds - search.cost_sums / t))
        facts.radius = stopping_radius(rule, search.squares, capacity, t)
    if over:
        facts.rho_hat = facts.margin - facts.radius
        demand(facts.rho_hat > 0.0, f"state.search: a margin of {facts.margin!r} after {t} episodes ends no search")


def end_of_search(search: Search, episode: int) -> int:
    """t_bar, as a whole number, of a search in which `episode` episodes have been played so far."""
    t_bar, broken = search.facts.t_bar, search.broken
    if t_bar != np.floor(t_bar) or not 0.0 <= t_bar + broken.skipped <= episode:
        raise InvalidInput(f"state.search.facts: t_bar is {t_bar!r}, not a number of episodes; there were {episode}")
    return int(t_bar)


# Counts --------------------------------------------------------------------------------------------------------------
#
# Every episode visits one pair per layer and moves on from it once. For the t episodes counted, therefore,
#
#     sum of N over a layer = t,    sum_x' M(x,a,x') = N(x,a),    sum_a N(x',a) = sum of M into x',    0 <= S <= N
#
# all exactly: sums of t costs in [0, 1] are rounded to at most t. An episode that was cut short misses its last layers,
# and may have a last cost without a transition: K may exceed N by their number, and by that of unknown visits, of which
# an episode with unknown values adds one to a row. Where rows share a law, the first row of a class has the counts of
# all: then only totals can be compared with t.


def check_counts(layout: Layout, state: State, laws: Laws, tied: bool, counted: int, *, grouped: bool = False) -> None:
    """Check N, M, K and S of `counted` episodes, logged ones included; `grouped`: K has one value for whole groups."""
    counts, cut = state.counts, state.logged.truncated
    visits, moves = counts.num_visits.astype(np.float64), counts.num_moves.astype(np.float64)
    _refuse_rows(layout, np.add.reduceat(moves, layout.row_start[:-1]) != visits, "counts.num_moves", "do not add up")
    elsewhere = laws.moves_at != np.arange(layout.num_rows)
    _refuse_rows(layout, elsewhere & (visits > 0), "counts.num_visits", "are counted elsewhere")
    if tied:
        _check_total(layout, visits, counted, cut)
    else:
        _check_flow(layout, visits, moves, counted, cut)
    _check_cost_sums(layout, state, laws, tied or grouped, counted)
    _check_unknown(layout, state, laws, tied)


def _check_total(layout: Layout, visits: FloatArray, counted: int, cut: int) -> None:
    total, most = float(visits.sum()), counted * layout.steps
    if not most - cut * layout.steps <= total <= most:
        raise InvalidInput(f"state.counts.num_visits sum to {total:.0f}; there are {counted} episodes")


def _check_flow(layout: Layout, visits: FloatArray, moves: FloatArray, counted: int, cut: int) -> None:
    sums = np.add.reduceat(visits, layout.state_start[:-2] * layout.num_actions)
    off = np.flatnonzero((sums > counted) | (sums < counted - cut))
    if len(off):
        raise InvalidInput(
            f"state.counts.num_visits of layer {off[0]} sum to {sums[off[0]]:.0f}; there are {counted} episodes"
        )
    into = np.bincount(layout.successor, moves, minlength=layout.num_states)[1:-1]
    ended = into - visits.reshape(-1, layout.num_actions).sum(axis=1)[1:]
    wrong = np.flatnonzero(ended < 0.0)
    if len(wrong) or ended.sum() > cut:
        x = 1 + int(wrong[0] if len(wrong) else np.argmax(ended))
        raise InvalidInput(f"state.counts: {layout.describe_state(x)} is left more or less often than it is entered")


def _check_cost_sums(layout: Layout, state: State, laws: Laws, tied: bool, counted: int) -> None:
    counts = state.counts
    num = counts.num_costs
    elsewhere = laws.costs_at != np.arange(layout.num_rows)
    _refuse_rows(layout, elsewhere & (num > 0), "counts.num_costs", "are counted elsewhere")
    most = np.full(layout.num_rows, counted * (layout.steps if laws.every_visit else 1))
    if not tied:
        unseen = counts.num_visits + counts.unknown_costs.min(axis=1, initial=2**53)
        if not counts.unknown_costs.shape[1]:
            unseen = counts.num_visits
        beyond = np.maximum(num - unseen, 0)
        most = num if beyond.sum() <= state.logged.truncated else unseen
    _refuse_rows(layout, num > most, "counts.num_costs", "exceed visits")
    if not tied and not left_out(state):
        _refuse_rows(layout, num < counts.num_visits, "counts.num_costs", "are not those of the visits")
    known = num[:, np.newaxis] - counts.unknown_costs
    _refuse_rows(layout, np.any(counts.cost_sums > known, axis=1), "counts.cost_sums", "exceed visits")


def left_out(state: State) -> bool:
    """Whether costs of some visits were not counted."""
    return bool(state.logged.costless or state.incomplete.unknown or state.incomplete.independent)


def _check_unknown(layout: Layout, state: State, laws: Laws, tied: bool) -> None:
    """Check the unknown visits: one per row, or class, and episode with unknown values; of every layer, if tied."""
    counts, episodes = state.counts, state.incomplete.unknown
    moves, costs = counts.unknown_moves, counts.unknown_costs
    most = episodes * (layout.steps if tied else 1)
    too_many, elsewhere = (
        f"are more than {episodes} episodes can have left",
        laws.moves_at != np.arange(layout.num_rows),
    )
    _refuse_rows(layout, moves > most, "counts.unknown_moves", too_many)
    _refuse_rows(layout, np.any(costs > most, axis=1), "counts.unknown_costs", too_many)
    _refuse_rows(layout, elsewhere & (moves > 0), "counts.unknown_moves", "are counted elsewhere")
    beyond = np.any(costs > counts.num_costs[:, np.newaxis], axis=1)
    _refuse_rows(layout, beyond, "counts.unknown_costs", "exceed visits")


def _refuse_rows(layout: Layout, wrong: NDArray[np.bool_], name: str, problem: str) -> None:
    if np.any(wrong):
        raise InvalidInput(f"state.{name} of {layout.describe_row(int(np.flatnonzero(wrong)[0]))} {problem}")
