"""Check that flags, counters and rates belong together, and that the seed can have led to the coin's state.

Segments of a doubling horizon, rates and the tosses of a coin follow from the number of episodes.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.balls import follow_counts, make_balls
from hedgerow.confidence.boxes import GROWTH, Boxes, BoxRule, make_boxes, refresh_all
from hedgerow.confidence.budget import Laws, make_unknowns
from hedgerow.confidence.counts import Counts
from hedgerow.confidence.kl import kt_interval
from hedgerow.confidence.premises import (
    BASELINE,
    LOGGED,
    NOTHING,
    OWN,
    SHARED_COSTS,
    SHARED_TRANSITIONS,
    TRANSITIONS,
    PremiseRule,
    Premises,
)
from hedgerow.confidence.radii import RadiusRule, epsilon, transition_terms
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.absorb import MOST_REASONS
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.state import MIXTURE, RELAXED, UNSOLVED, Core, Reals, State
from hedgerow.learners.ops.step import set_rates
from hedgerow.model.kernel_layout import Index
from hedgerow.model.layout import Layout
from hedgerow.model.random_streams import seeded

TOLERANCE = 1e-9


def demand(condition: bool, otherwise: str) -> None:
    """Refuse the file in these words unless the condition holds."""
    if not condition:
        raise InvalidInput(otherwise)


def check_numbers(learner: MirrorLearner) -> None:
    core, numbers = learner.core, learner.core.state.numbers
    episode, pending, begun = numbers.episode, numbers.pending, learner.begun
    logged = core.state.logged.episodes
    learner.check_horizon(pending)
    demand(begun <= episode, f"state.search.facts: the search took {begun} of {episode} episodes")
    busy = pending + max(numbers.open, numbers.phase_over)
    demand(busy <= 1, "state.numbers: an episode is pending although the one before is not complete")
    demand(not numbers.phase_over or core.search.active, "state.numbers: phase_over, but there is no search")
    demand(numbers.open == 0 or episode > begun or logged > 0, "state.numbers: open before the first episode")
    demand(numbers.failed <= numbers.suspect, "state.numbers: failed exceeds suspect")
    # One projection for each episode, one at the start of each phase, and one for each log, which has episodes.
    most = episode + 2 + logged
    demand(numbers.infeasible <= most, f"state.numbers: {numbers.infeasible} infeasible in {episode} episodes")
    demand(numbers.last_iterations <= numbers.iterations, "state.numbers: last_iterations exceeds iterations")
    status = numbers.last_status
    demand(status != RELAXED or numbers.infeasible > 0, "state.numbers: last_status without an infeasible one")
    demand(status != UNSOLVED or numbers.failed > 0, "state.numbers: last_status without a failed one")
    segment, end = 0, 0
    if core.rule.doubling:  # segment j has the episodes 2^j - 1, ..., 2^(j+1) - 2 of the phase
        segment = (episode - begun + 1).bit_length() - 1
        end = begun + 2 ** (segment + 1) - 1
    demand(numbers.segment == segment, f"state.numbers: segment is {numbers.segment}, not {segment}")
    demand(numbers.segment_end == end, f"state.numbers: segment_end is {numbers.segment_end}, not {end}")
    fewest, most = (min(1, episode), episode + logged) if core.rule.epochs else (0, 0)
    demand(fewest <= numbers.epochs <= most, f"state.numbers: {numbers.epochs} epochs in {episode} episodes")
    cached = len(core.state.baseline_u) > 0 and core.rule.mixture_bound == MIXTURE
    demand(cached or numbers.stale == 1, "state.numbers: stale is 0, but no bounds are cached")


def check_declared(learner: MirrorLearner) -> None:
    """Check that the ledger's numbers of episodes that are not whole belong together."""
    logged, incomplete = learner.core.state.logged, learner.core.state.incomplete
    total, found = sum(learner.declared.values()), incomplete.independent
    demand(found == total, f"state.incomplete: something of {found} episodes is left out; the reasons name {total}")
    demand(len(learner.declared) <= MOST_REASONS + 1, f"declared: there are more than {MOST_REASONS} reasons")
    most = learner.episode + logged.episodes
    for name, value, limit in (
        ("logged: interfered", logged.interfered, learner.episode),
        ("logged: costless", logged.costless, logged.episodes),
        ("incomplete: unknown", incomplete.unknown, most),
        ("incomplete: independent", incomplete.independent, most),
    ):
        demand(value <= limit, f"state.{name} is {value}; there are {limit} episodes")


def check_rates(learner: MirrorLearner) -> None:
    """Check eta and gamma of the segment, or of the whole phase."""
    core, reals = learner.core, learner.core.state.reals
    given, rule = Reals(reals.values.copy()), learner.core.rule
    if rule.doubling:
        j = core.state.numbers.segment
        set_rates(core, 2.0**j, rule.log_inverse_delta + log((j + 1.0) * (j + 2.0)))
    else:
        set_rates(core, float(max(1, (learner.episodes or 1) - learner.begun)), rule.log_inverse_delta)
    for name in ("eta", "gamma"):
        found, computed = getattr(given, name), getattr(reals, name)
        close = abs(found - computed) <= TOLERANCE * computed
        demand(close, f"state.reals: {name} is {found!r}; the horizon makes it {computed!r}")
    reals.values[:] = given.values


def restored_coin(learner: MirrorLearner, given: Any) -> None:
    """Set the learner's coin to a state that its seed can have led to."""
    expected = seeded(SeedSequence(learner.seed)).state
    demand(isinstance(given, dict) and given.keys() == expected.keys(), "coin is not the state of a PCG64 generator")
    demand(isinstance(given["state"], dict), "coin is not the state of a PCG64 generator")
    numbers = given["state"].get("state"), given["state"].get("inc")
    whole = all(type(number) is int and 0 <= number < 2**128 for number in numbers)
    demand(whole and len(given["state"]) == 2, "coin: state and inc must be whole numbers of 128 bits")
    demand(numbers[1] == expected["state"]["inc"], "coin: inc does not belong to the seed")
    for name in expected.keys() - {"state"}:
        demand(given[name] == expected[name] and type(given[name]) is type(expected[name]), f"coin: {name} is wrong")
    if not len(learner.core.baseline.policies) and not learner.core.search.active:
        demand(given["state"] == expected["state"], "coin was tossed, but this learner has nothing to toss it for")
    learner.coin.go_to(given)


# --------------------------------------------------------------------------------------------------------------------
# Check that episodes can have produced the counts of a file: its numbers have to add up.
#
# Every episode visits one pair per layer and moves on from it once. For the t episodes counted, therefore,
#
#     sum of N over a layer = t,    sum_x' M(x,a,x') = N(x,a),    sum_a N(x',a) = sum of M into x',    0 <= S <= N
#
# all exactly: sums of t costs in [0, 1] are rounded to at most t. An episode that was cut short misses its last layers,
# and may have a last cost without a transition: K may exceed N by their number, and by that of unknown visits, of which
# an episode with unknown values adds one to a row. Where rows share a law, the first row of a class has the counts of
# all: then only totals can be compared with t.


def check_counts(layout: Layout, state: State, laws: Laws, tied: bool, counted: int) -> None:
    """Check N, M, K and S of `counted` episodes, logged ones included."""
    counts, cut = state.counts, state.logged.prefixes
    visits, moves = counts.num_visits.astype(np.float64), counts.num_moves.astype(np.float64)
    _refuse_rows(layout, np.add.reduceat(moves, layout.row_start[:-1]) != visits, "counts.num_moves", "do not add up")
    elsewhere = laws.moves_at != np.arange(layout.num_rows)
    _refuse_rows(layout, elsewhere & (visits > 0), "counts.num_visits", "are counted elsewhere")
    if tied:
        _check_total(layout, visits, counted, cut)
    else:
        _check_flow(layout, visits, moves, counted, cut)
    _check_cost_sums(layout, state, laws, tied, counted)
    _check_unknown(layout, state, laws, tied)


def _check_total(layout: Layout, visits: FloatArray, counted: int, cut: int) -> None:
    total, most = float(visits.sum()), counted * layout.steps
    if not most - cut * layout.steps <= total <= most:
        raise InvalidInput(f"state.counts.num_visits sum to {total:.0f}; there are {counted} episodes")


def _check_flow(layout: Layout, visits: FloatArray, moves: FloatArray, counted: int, cut: int) -> None:
    _check_layers(layout, "counts.num_visits", visits, counted, cut)
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
        most = num if beyond.sum() <= state.logged.prefixes else unseen
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
    _refuse_rows(layout, moves > most, "counts.unknown_moves", f"are more than {episodes} episodes can have left")
    _refuse_rows(
        layout, np.any(costs > most, axis=1), "counts.unknown_costs", f"are more than {episodes} episodes can have left"
    )
    rows = np.arange(layout.num_rows)
    _refuse_rows(layout, (laws.moves_at != rows) & (moves > 0), "counts.unknown_moves", "are counted elsewhere")
    _refuse_rows(
        layout, np.any(costs > counts.num_costs[:, np.newaxis], axis=1), "counts.unknown_costs", "exceed visits"
    )


def check_epochs(layout: Layout, state: State, epochs: bool, tied: bool, kept: int) -> None:
    """Check N when the boxes were last rebuilt; without epochs, when the phase began, after `kept` counted episodes."""
    then, now = state.epoch_visits, state.counts.num_visits
    name = "epoch_visits"
    _refuse_rows(layout, then > now, name, "exceed counts.num_visits")
    cut, logged = state.logged.prefixes, state.logged.episodes
    if epochs:
        _check_layers(layout, name, then.astype(np.float64), None, cut, tied=tied)
        _refuse_rows(layout, (now > 0) & (now >= 2 * then), name, "have doubled, but the boxes were not rebuilt")
    elif not logged:
        _check_layers(layout, name, then.astype(np.float64), kept, cut, tied=tied)


def check_cached_visits(layout: Layout, state: State, tied: bool) -> None:
    """Check N when the cached bounds of the baselines were computed, while these are still used."""
    then, now = state.baseline_visits, state.counts.num_visits
    _refuse_rows(layout, then > now, "baseline_visits", "exceed counts.num_visits")
    _refuse_rows(layout, (now > 0) & (now >= 2 * then), "baseline_visits", "have doubled, but the bounds are kept")
    _check_layers(layout, "baseline_visits", then.astype(np.float64), None, state.logged.prefixes, tied=tied)


def layer_sums(layout: Layout, over_rows: FloatArray) -> FloatArray:
    """(L,): sums over the rows of each layer."""
    sums: FloatArray = np.add.reduceat(over_rows, layout.state_start[:-2] * layout.num_actions)
    return sums


def _check_layers(
    layout: Layout, name: str, visits: FloatArray, episodes: int | None, cut: int = 0, *, tied: bool = False
) -> None:
    """Check that every layer was visited once per episode; None stands for any number, the same in all layers.

    `cut` episodes may have ended before their last layers; where rows share laws, layers are not told apart.
    """
    if tied:
        return
    sums = layer_sums(layout, visits)
    expected_sum = sums[0] if episodes is None else episodes
    wrong = np.flatnonzero((sums > expected_sum) | (sums < expected_sum - cut))
    if len(wrong):
        expected = f"{sums[0]:.0f} in layer 0" if episodes is None else f"{episodes} episodes"
        raise InvalidInput(f"state.{name} of layer {wrong[0]} sum to {sums[wrong[0]]:.0f}; there are {expected}")


def _refuse_rows(layout: Layout, wrong: NDArray[np.bool_], name: str, problem: str) -> None:
    if np.any(wrong):
        raise InvalidInput(f"state.{name} of {layout.describe_row(int(np.flatnonzero(wrong)[0]))} {problem}")


# --------------------------------------------------------------------------------------------------------------------
# Check intervals that are older than the counts, or intersections of several: what a file may claim of them.
#
# A box of transitions was made with N' visits of which M' led to each successor, M - (N - N') <= M' <= M; where N' =
# N it is recomputed and has to agree. The bounds of a mean cost were intersected with all earlier ones: they are no
# tighter than any order of the same costs could have made them, and not wider than the last of them.
#
#     LCB <= LCB(n, min(n, S)), n = floor S or ceil S: all of the sum came first
#     LCB >= LCB(K', S') for the least possible S'; and likewise UCB, with F = K - S instead of S
#
# Unknown costs are 0 in the sums of LCB and 1 in those of UCB. A row with unknown moves has an intersection of boxes,
# too: each of its bounds is no tighter than any order of the same moves could have made it.


def check_gradual_boxes(learner: MirrorLearner) -> None:
    """Check the boxes of a learner whose rows are refreshed when their visits have grown."""
    core, layout = learner.core, learner.layout
    state, laws = core.state, core.rule.box.laws
    boxes, counts = state.boxes, state.counts
    for name, then, now in (
        ("visits", boxes.visits, counts.num_visits + counts.unknown_moves),
        ("cost_visits", boxes.cost_visits, counts.num_costs),
    ):
        late = (then > now) | ((now > then) & (GROWTH * (now - then) >= then) & (core.rule.epochs == 0))
        if name == "visits":
            late = np.where(core.rule.box.uncertain == 1, late, then > 0)
        if np.any(late):
            row = layout.describe_row(int(np.flatnonzero(late)[0]))
            raise InvalidInput(f"state.boxes.{name} of {row} do not belong to the counts")
    _check_known(learner)
    _check_costs(core, boxes)
    _check_moves(learner)
    rows = layout.row_of_triple
    twin = layout.row_start[laws.moves_at[rows]] + np.arange(layout.num_triples) - layout.row_start[rows]
    for name, place in (("lower", twin), ("upper", twin), ("cost_lower", laws.costs_at), ("cost_upper", laws.costs_at)):
        array = getattr(boxes, name)
        if not np.array_equal(array, array[place]):
            raise InvalidInput(f"state.boxes.{name} differ between rows that share a law")


def _check_known(learner: MirrorLearner) -> None:
    """Check that what is known has been the same from the start."""
    layout, view, rule, boxes = learner.layout, learner.view, learner.core.rule.box, learner.core.state.boxes
    start = make_boxes(make_unknowns(layout, view.num_constraints, view.knowledge), clip_costs=bool(rule.clip_costs))
    moves, costs = (rule.uncertain == 0)[layout.row_of_triple], rule.unknown_costs == 0
    for name, known in (("lower", moves), ("upper", moves), ("cost_lower", costs), ("cost_upper", costs)):
        if not np.array_equal(getattr(boxes, name)[known], getattr(start, name)[known]):
            raise InvalidInput(f"state.boxes.{name} differ from what is known")


def check_balls(layout: Layout, core: Core) -> None:
    """Check that balls are those of earlier counts, and that their radii follow from these."""
    balls, counts, index, laws = core.state.balls, core.state.counts, core.index, core.rule.box.laws
    if not len(balls.radius):
        return
    wide, sums = core.rule.ball.wide == 1, np.add.reduceat(balls.moves, layout.row_start[:-1])
    _refuse_balls(np.any(sums != balls.visits) or np.any(balls.visits[~wide] > 0), "visits")
    _refuse_balls(bool(np.any(balls.visits > counts.num_visits[laws.moves_at])), "visits")
    rows = layout.row_of_triple
    twin = layout.row_start[laws.moves_at[rows]] + np.arange(layout.num_triples) - layout.row_start[rows]
    _refuse_balls(bool(np.any(balls.moves > counts.num_moves[twin])), "moves")
    fresh = make_balls(wide, layout.num_triples)
    none = np.zeros_like(counts.unknown_moves)  # a ball is made before moves of its row are unknown
    past = counts.replace(num_visits=balls.visits, num_moves=balls.moves, unknown_moves=none)
    alone = laws.replace(moves_at=np.arange(layout.num_rows, dtype=np.int64))
    follow_counts(index, alone, past, core.rule.ball, core.buffers.all_rows, fresh)
    _refuse_balls(bool(np.any(np.abs(fresh.radius - balls.radius) > TOLERANCE * (1.0 + fresh.radius))), "radius")


def _refuse_balls(wrong: Any, name: str) -> None:
    if wrong:
        raise InvalidInput(f"state.balls.{name} are not those of any earlier counts")


def _check_costs(core: Core, boxes: Boxes) -> None:
    rule, counts = core.rule.box, core.state.counts
    unknown, scale = rule.unknown_costs == 1, rule.radii.scale
    first = (rule.laws.costs_at == np.arange(len(counts.num_costs)))[:, np.newaxis] & unknown
    lower, upper = boxes.cost_lower, boxes.cost_upper
    now, then = (np.broadcast_to(n[:, np.newaxis], unknown.shape)[first] for n in (counts.num_costs, boxes.cost_visits))
    total, unknown_ones, log = counts.cost_sums[first], counts.unknown_costs[first], rule.radii.cost_log
    least, most = np.maximum(0.0, total - (now - then)), np.minimum(total + unknown_ones, then)
    failures = now - total - unknown_ones
    highest = np.maximum(*(_scaled(n, np.minimum(n, total), log, scale)[0] for n in (np.floor(total), np.ceil(total))))
    few, many = np.floor(failures), np.ceil(failures)
    lowest = np.minimum(*(_scaled(n, np.maximum(0.0, n - failures), log, scale)[1] for n in (few, many)))
    wide_low, wide_high = _scaled(then, least, log, scale)[0], _scaled(then, most, log, scale)[1]
    if not rule.clip_costs:
        wide_low = np.where(then > 0, wide_low, -1.0)  # where there is nothing yet, as it was at the start
    _refuse((lower[first] > highest + TOLERANCE) | (lower[first] < wide_low - TOLERANCE), "cost_lower")
    _refuse((upper[first] < lowest - TOLERANCE) | (upper[first] > wide_high + TOLERANCE), "cost_upper")
    _refuse(np.any(lower > upper + TOLERANCE, axis=1), "cost_lower")
    width = np.max(upper - lower, axis=1, initial=0.0) / 2.0
    seen = boxes.cost_visits[rule.laws.costs_at] > 0
    _refuse((np.abs(boxes.xi - width) > TOLERANCE) & seen & np.any(unknown, axis=1), "xi")


def _check_moves(learner: MirrorLearner) -> None:
    """Check that boxes are no narrower than some M' makes them, with tightening by the others of their row."""
    core, layout = learner.core, learner.layout
    rule, counts, boxes = core.rule.box, core.state.counts, core.state.boxes
    row = layout.row_of_triple
    checked = (rule.uncertain == 1)[row] & (rule.laws.moves_at == np.arange(layout.num_rows))[row]
    now, then = counts.num_visits[row], boxes.visits[row]
    moves = counts.num_moves
    least = np.maximum(0, moves - (now - then)).astype(np.float64)
    most = np.minimum(moves, then).astype(np.float64)
    log, scale = rule.radii.transition_log, rule.radii.scale
    lower, upper = _scaled(then, most, log, scale)[0], _scaled(then, least, log, scale)[1]
    starts = layout.row_start[:-1]
    others_upper = np.add.reduceat(upper, starts)[row] - upper
    others_lower = np.add.reduceat(lower, starts)[row] - lower
    share = np.maximum(1, then)
    lower = np.minimum(np.maximum(lower, 1.0 - others_upper), most / share)
    upper = np.maximum(np.minimum(upper, 1.0 - others_lower), least / share)
    lower, upper = _with_unknown_moves(learner, lower, upper)
    seen = checked & (then > 0)
    _refuse(seen & (boxes.lower > lower + TOLERANCE), "lower")
    _refuse(seen & (boxes.upper < upper - TOLERANCE), "upper")
    _refuse(checked & (then == 0) & ((boxes.lower > 0.0) | (boxes.upper < 1.0)), "lower")


def _with_unknown_moves(learner: MirrorLearner, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same ends, for rows with unknown moves the tightest that any order of the known ones can lead to."""
    core, layout = learner.core, learner.layout
    row, counts, radii = layout.row_of_triple, core.state.counts, core.rule.box.radii
    moves = counts.num_moves.astype(np.float64)
    failures = counts.num_visits[row] - counts.num_moves
    highest = _scaled(counts.num_moves, moves, radii.transition_log, radii.scale)[0]
    lowest = _scaled(failures, np.zeros(len(failures)), radii.transition_log, radii.scale)[1]
    starts, some = layout.row_start[:-1], (counts.unknown_moves > 0)[row]
    others_lowest = np.add.reduceat(lowest, starts)[row] - lowest
    others_highest = np.add.reduceat(highest, starts)[row] - highest
    return (
        np.where(some, np.maximum(highest, 1.0 - others_lowest), lower),
        np.where(some, np.minimum(lowest, 1.0 - others_highest), upper),
    )


def _scaled(num: IntArray | FloatArray, total: FloatArray, log: float, scale: float) -> tuple[FloatArray, FloatArray]:
    whole = np.asarray(num, dtype=np.int64)
    lower, upper = kt_interval(whole, np.minimum(total, whole), log)
    mean = total / np.maximum(1, whole)
    drawn_in = (whole > 0) & (scale < 1.0)
    low: FloatArray = np.where(drawn_in, mean - scale * (mean - lower), lower)
    high: FloatArray = np.where(drawn_in, mean + scale * (upper - mean), upper)
    return low, high


def _refuse(wrong: BoolArray, name: str) -> None:
    if np.any(wrong):
        raise InvalidInput(f"state.boxes.{name} are not what any episodes with these counts make of them")


# --------------------------------------------------------------------------------------------------------------------
# Check that boxes follow from counts: a file cannot claim to know more than it has seen.
#
# Boxes that are rebuilt in every episode are a function of the counts. They are recomputed, the file has to agree up to
# TOLERANCE (another machine may round logarithms differently), and the recomputed ones are used.
#
# With epochs, boxes are those of earlier counts N', M', S'. Only N' is known, and that
#
#     M - (N - N') <= M' <= M,      S - (N - N') <= S' <= S     (for estimates that forget, see `_then`).
#
# A row that was not visited since is recomputed as well. In any other, bounds must lie where some M', S' would put
# them. Both p - epsilon(p) where it is positive and p + epsilon(p) where it is below 1 grow with p, so the ends of
# these ranges give the ends of the bounds.


LITTLE_LEFT = 1e-5
"""If an earlier estimate has less weight than this, the present one says nothing about it beyond rounding."""


def check_boxes(learner: MirrorLearner) -> None:
    """Check the boxes of the state, and replace them by recomputed ones where that is possible."""
    core, layout = learner.core, learner.layout
    if core.rule.box.gradual:
        check_gradual_boxes(learner)
        check_rows(layout, core.state.boxes)
        return
    state, counts, laws = core.state, core.state.counts, core.rule.box.laws
    fresh = boxes_of(learner, counts)
    then = state.epoch_visits if core.rule.epochs else counts.num_visits
    older = (counts.num_visits > then)[laws.moves_at]
    changed = (counts.num_visits > then)[laws.costs_at]
    apart = left_out(state) or (state.logged.episodes and state.logged.prefixes)  # K is not N
    if core.rule.epochs and left_out(state):
        older[:] = changed[:] = True  # unknown visits begin no epoch
    if np.any(older) or np.any(changed):
        if core.rule.tied:  # boxes of classes and of costs grow old by themselves
            older[:] = changed[:] = True
        num_costs = np.where(counts.num_visits > then, np.minimum(then, counts.num_costs), counts.num_costs)
        blank = counts.replace(num_visits=then.copy(), num_costs=num_costs)
        fresh.xi[:] = boxes_of(learner, blank).xi
        if not core.rule.tied and not apart:
            _check_older_costs(counts, then, core.rule.box, fresh.xi, changed, state.boxes)
            _check_older_transitions(layout, core, then, older[layout.row_of_triple])
        triples = older[layout.row_of_triple]
        for name, old in (("cost_lower", changed), ("cost_upper", changed), ("lower", triples), ("upper", triples)):
            getattr(fresh, name)[old] = getattr(state.boxes, name)[old]
        if core.rule.tied or apart:
            fresh.xi[changed] = state.boxes.xi[changed]
    for name in Boxes.fields:
        compare(name, getattr(state.boxes, name), getattr(fresh, name))
        getattr(state.boxes, name)[...] = getattr(fresh, name)
    check_rows(layout, state.boxes)


def boxes_of(learner: MirrorLearner, counts: Counts) -> Boxes:
    """The boxes that follow from the counts alone."""
    rule, view, settings = learner.core.rule.box, learner.view, learner.settings
    unknowns = make_unknowns(learner.layout, view.num_constraints, view.knowledge, ties=settings.ties)
    boxes = make_boxes(unknowns, clip_costs=rule.clip_costs)
    refresh_all(learner.core.index, counts, rule, boxes)
    return boxes


def compare(name: str, given: FloatArray, computed: FloatArray) -> None:
    wrong = np.argwhere(np.abs(given - computed) > TOLERANCE)
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise InvalidInput(
            f"state.boxes.{name} is {float(given[place])!r} at {place}; the counts make it {float(computed[place])!r}"
        )


def _check_older_costs(
    counts: Counts, then: IntArray, rule: BoxRule, xi: FloatArray, rows: NDArray[np.bool_], boxes: Boxes
) -> None:
    clip, changed = rule.clip_costs, rows & (rule.unknown_costs == 1).all(axis=1)
    least, most = _then(counts, then, rule.laws.forget, changed)
    radius = xi[changed, np.newaxis]
    low, high = (0.0, 1.0) if clip else (-1.0, 2.0)
    for name, shift in (("cost_lower", -radius), ("cost_upper", radius)):
        given = getattr(boxes, name)[changed]
        below = given < np.clip(least + shift, low, high) - TOLERANCE
        above = given > np.clip(most + shift, low, high) + TOLERANCE
        if np.any(below | above):
            raise InvalidInput(f"state.boxes.{name} are not those of any epoch with these counts")
    if not clip and np.any(np.abs(boxes.cost_upper[changed] - boxes.cost_lower[changed] - 2.0 * radius) > TOLERANCE):
        raise InvalidInput("state.boxes.cost_upper - cost_lower are not twice state.boxes.xi")


def _then(counts: Counts, then: IntArray, forget: float, changed: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The least and the largest g_hat (changed rows, m) that `then` visits can have led to.

    Of it the share W = prod (1 - b) over the visits since is left: W g' <= g_hat <= W g' + 1 - W.
    """
    sums, now, before = counts.cost_sums[changed], counts.num_visits[changed, np.newaxis], then[changed, np.newaxis]
    if forget == 0.0:
        number = np.maximum(1, before)
        return np.maximum(0.0, sums - (now - before)) / number, np.minimum(sums, before) / number
    mean, first = sums / np.maximum(1, now), np.floor(1.0 / forget)
    left = np.minimum(before, first) / np.minimum(np.maximum(1, now), first)
    left = left * (1.0 - forget) ** (np.maximum(now, first) - np.maximum(before, first))
    seen, share = before > 0, np.maximum(left, LITTLE_LEFT)
    least, most = np.clip((mean - (1.0 - left)) / share, 0.0, 1.0), np.clip(mean / share, 0.0, 1.0)
    known = seen & (left >= LITTLE_LEFT)
    return np.where(known, least, 0.0), np.where(known, most, seen)


def _check_older_transitions(layout: Layout, core: Core, then: IntArray, changed: NDArray[np.bool_]) -> None:
    counts, boxes = core.state.counts, core.state.boxes
    lower_most, upper_least = np.ones(layout.num_triples), np.zeros(layout.num_triples)
    _older_bounds(core.index, core.rule.box.radii, counts, then, lower_most, upper_least)
    narrow = (
        changed
        & (core.rule.box.uncertain == 1)[layout.row_of_triple]
        & ((boxes.lower > lower_most + TOLERANCE) | (boxes.upper < upper_least - TOLERANCE))
    )
    if np.any(narrow):
        where = layout.describe_triple(int(np.flatnonzero(narrow)[0]))
        raise InvalidInput(f"state.boxes.lower, state.boxes.upper of {where} are narrower than any epoch makes them")


@kernel
def _older_bounds(
    index: Index, radii: RadiusRule, counts: Counts, then: IntArray, lower_most: FloatArray, upper_least: FloatArray
) -> None:
    """The largest lo and the smallest hi of rows that were visited since their boxes were made, with N' = `then`."""
    num_visits, num_moves = counts.num_visits, counts.num_moves
    for r in range(len(num_visits)):
        start, stop = index.row_start[r], index.row_start[r + 1]
        if num_visits[r] == then[r] or stop - start < 2:
            continue
        variance_factor, offset = transition_terms(radii, then[r])
        sum_lower = sum_upper = 0.0
        for j in range(start, stop):
            most = min(num_moves[j], then[r]) / max(1, then[r])
            least = max(0, num_moves[j] - (num_visits[r] - then[r])) / max(1, then[r])
            lower_most[j] = max(0.0, most - epsilon(radii, most, variance_factor, offset))
            upper_least[j] = min(1.0, least + epsilon(radii, least, variance_factor, offset))
            sum_lower += lower_most[j]
            sum_upper += upper_least[j]
        for j in range(start, stop):
            # The most that tightening can have done: the others cannot all be at their ends at once. P_hat is inside.
            most = min(num_moves[j], then[r]) / max(1, then[r])
            least = max(0, num_moves[j] - (num_visits[r] - then[r])) / max(1, then[r])
            raw_lower, raw_upper = lower_most[j], upper_least[j]
            lower_most[j] = min(max(raw_lower, 1.0 - (sum_upper - raw_upper)), most)
            upper_least[j] = max(min(raw_upper, 1.0 - (sum_lower - raw_lower)), least)


def check_rows(layout: Layout, boxes: Boxes) -> None:
    """Check that lo <= hi and that no row's set is empty: kernels rely on it."""
    starts = layout.row_start[:-1]
    empty = (np.add.reduceat(boxes.lower, starts) > 1.0 + TOLERANCE) | (
        np.add.reduceat(boxes.upper, starts) < 1.0 - TOLERANCE
    )
    crossed = boxes.lower > boxes.upper
    if np.any(empty) or np.any(crossed):
        row = int(np.flatnonzero(empty)[0]) if np.any(empty) else int(layout.row_of_triple[np.flatnonzero(crossed)[0]])
        raise InvalidInput(f"state.boxes.lower, state.boxes.upper of {layout.describe_row(row)} hold no distribution")


# --------------------------------------------------------------------------------------------------------------------
# Check the tests of what a learner was told: can episodes have led to these streams, and to this refutation?


def check_premises(layout: Layout, core: Core, episode: int, *, forgotten: bool) -> None:
    """Check the streams of a learner that has observed so many episodes, and may have forgotten its first logs."""
    premises, logged = core.state.premises, core.state.logged.episodes
    numbers, streams = premises.numbers, len(premises.visits)
    demand(
        forgotten or numbers.logged <= logged, f"state.premises.numbers: {numbers.logged} logged episodes of {logged}"
    )
    demand(numbers.baseline_episodes <= episode, "state.premises.numbers: more baseline episodes than episodes")
    most = numbers.baseline_episodes * core.rule.premises.ceilings
    demand(bool(np.all(premises.baseline_sums <= most + 1e-6)), "state.premises.baseline_sums exceed the ceilings")
    demand(numbers.unknown <= episode, "state.premises.numbers: more unknown episodes than episodes")
    for stream, counted in ((OWN, episode - numbers.unknown), (LOGGED, numbers.logged - numbers.unknown_logged)):
        if stream < streams:
            moves = np.add.reduceat(premises.moves[stream], layout.row_start[:-1])
            demand(np.array_equal(moves, premises.visits[stream]), "state.premises.moves are not those of the visits")
            first = int(premises.visits[stream, : layout.num_actions].sum())
            demand(first <= counted, f"state.premises.visits of layer 0 are {first}; there are {counted} episodes")
            high = premises.visits[stream, :, np.newaxis] + 1e-6
            demand(bool(np.all(premises.sums[stream] <= high)), "state.premises.sums exceed the visits")
    _check_refutation(layout, core.rule.premises, premises, episode)


def _check_refutation(layout: Layout, rule: PremiseRule, premises: Premises, episode: int) -> None:
    numbers, figures = premises.numbers, premises.figures
    demand(
        numbers.said <= 1 and numbers.beside_logs <= 1 and numbers.stream <= LOGGED, "state.premises.numbers: a flag"
    )
    demand(numbers.what <= SHARED_TRANSITIONS, f"state.premises.numbers: kind is {numbers.what}")
    ordered = bool(
        np.all(premises.low_costs <= premises.high_costs) and np.all(premises.low_moves <= premises.high_moves)
    )
    demand(ordered, "state.premises: a lower bound is above its upper one")
    if numbers.what == NOTHING:
        unsaid = not numbers.said and not numbers.visits
        demand(unsaid, "state.premises.numbers: nothing is refuted, but it was said so")
        return
    moves = numbers.what in (TRANSITIONS, SHARED_TRANSITIONS)
    limit = layout.num_triples if moves else layout.num_rows
    demand(numbers.where < limit, f"state.premises.numbers: where is {numbers.where}; there are {limit}")
    columns = len(premises.baseline_sums)
    demand(moves or numbers.column < columns, "state.premises.numbers: column names no constraint")
    demand(numbers.episode <= episode, "state.premises.numbers: refuted in an episode that is still to come")
    demand(numbers.what != SHARED_COSTS or len(premises.visits) > 0, "state.premises.numbers: nothing was compared")
    demand(numbers.what != BASELINE or len(rule.beta) > 0, "state.premises.numbers: there is no baseline")
    apart = figures.seen_low > figures.told_high or figures.seen_high < figures.told_low
    demand(apart, "state.premises.figures do not contradict each other")
