"""Running tests of the inputs of a learner, by its own observations.

Its inputs are numbers (known means and transitions), that rows share laws, that a log is of the same world, and that
a baseline costs at most beta. Every row gives two *streams* of observations: the learner's own, and that of logs. A
stream of n visits with the sum S gives an interval for each mean of its law, by `kl.py`:

    [LCB(n + K, S), UCB(n + K, S + K)]        K: episodes of which not everything may be counted

(such an episode holds at most one visit of the row, whose value is not known: both ends allow for each). All intervals
of one law, from all rows that share it, from both streams and of all times, and the number that is declared, must
have a point in common. `low` and `high` keep the intersection so far. Where it is empty, a premise is refuted.

The baseline is tested by the summed costs S_i of the n episodes that were left to it, each at most its ceiling B_i:

    refuted if  B_i LCB(n, S_i / B_i) > beta_i

(an episode that may not be counted adds 0 to S, which is never too much). What is declared is refuted though it is true
with probability FALSE_ALARM delta at most, at any time: half of it is for the baseline, divided among the constraints,
half for the streams, divided among the numbers that are compared. A row is tested when its visits have grown by an
eighth, about 8 ln T times in a run. What is simply impossible is refused before it is counted (`model/episode.py`).
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.counts import Unknowns
from hedgerow.confidence.kl import kt_bounds
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.knowledge import TOL_TRUE
from hedgerow.model.view import View

FALSE_ALARM = 0.1
"""Of delta: how often something true is refuted, at most"""
GROWTH = 8
"""A stream is tested again when its visits have grown by one in so many."""
PARTLY_UNKNOWN, WHOLE, LEFT_OUT = 0, 1, 2
"""What may be counted of a logged episode: not all of it, all of it, or nothing, as if it had not been played"""
OWN, LOGGED = 0, 1
"""The two streams"""
NOTHING, BASELINE, COSTS, TRANSITIONS, SHARED_COSTS, SHARED_TRANSITIONS = range(6)
"""What was refuted: the costs of the baseline, a known number, or that two streams have one law"""


class PremiseNumbers(Record):
    """Counters, and the first refutation."""

    baseline_episodes: int
    """Episodes that were left to the baseline"""
    baseline_due: int
    """After so many of them it is tested again"""
    unknown: int
    """K of the own streams"""
    logged: int
    """Logged episodes in the streams"""
    unknown_logged: int
    """K of the streams of logs"""
    what: int
    """What was refuted; NOTHING as long as nothing was"""
    where: int
    """The row, or the triple of a transition"""
    column: int
    """The constraint"""
    stream: int
    """The stream that refuted it"""
    visits: int
    """Its visits, or the episodes of the baseline"""
    episode: int
    """The number of episodes observed until then, that one included"""
    beside_logs: int
    """1 if logs had been absorbed"""
    said: int
    """1 once it was said"""


class PremiseFigures(Record):
    """The numbers of the refutation."""

    told_low: float
    """What was declared or seen elsewhere lies between these; for a baseline from 0 to beta"""
    told_high: float
    seen_low: float
    """What was seen says that it lies between these"""
    seen_high: float


class Premises(Bundle):
    """The streams and what follows from them. Where there is nothing to compare, all arrays but the sums of the
    baseline are empty. The first axis of the streams is OWN, LOGGED for learners that can absorb logs.
    """

    visits: IntArray
    """(streams, num_rows)"""
    moves: IntArray
    """(streams, num_triples)"""
    sums: FloatArray
    """(streams, num_rows, m): summed costs"""
    due: IntArray
    """(num_rows,): own visits at which the row is tested again"""
    low_moves: FloatArray
    """(num_triples,): the intersection of all intervals so far, at the first row of each law"""
    high_moves: FloatArray
    low_costs: FloatArray
    """(num_rows, m): likewise"""
    high_costs: FloatArray
    baseline_sums: FloatArray
    """(m,): costs of the episodes that were left to the baseline"""
    numbers: PremiseNumbers
    figures: PremiseFigures


class PremiseRule(Bundle):
    """What stays the same."""

    stays: bool
    """Whether the learner leaves all episodes to its baseline once something is refuted"""
    log_streams: float
    """ln(1/delta') of one number of a stream"""
    log_baseline: float
    """ln(1/delta') of one constraint"""
    beta: FloatArray
    """(m,): what the baseline is said to cost; empty without a baseline"""
    ceilings: FloatArray
    """(m,): what an episode costs at most"""
    capped: bool
    """Whether `ceilings` are declared"""
    told_moves: FloatArray
    """(num_triples,): known probabilities, -1 where not known; empty where none is"""
    told_costs: FloatArray
    """(num_rows, m): known means, -1 where not known; empty where none is"""
    compared_moves: NDArray[np.int8]
    """(num_rows,): 1 where the transitions were told, or are shared"""
    compared_costs: NDArray[np.int8]
    """(num_rows, m): likewise"""
    uncertain: NDArray[np.int8]
    """(num_rows,): 0 where there is one successor, and nothing to be compared"""
    moves_at: IntArray
    """(num_rows,): the first row of the law"""
    costs_at: IntArray


def make_premise_rule(
    view: View, unknowns: Unknowns, delta: float, *, beta: FloatArray | None, absorbs: bool, stays: bool
) -> PremiseRule:
    """The rule for what `view` knows, as far as `unknowns` say that it is used, and for a baseline that costs `beta`.

    `absorbs` says whether logs may come: then every row may have to be compared.
    """
    layout, m, laws = view.layout, view.num_constraints, unknowns.laws
    known, size = view.knowledge, np.diff(layout.row_start)
    uncertain = size > 1
    told_moves = np.zeros(0) if known.transitions is None else np.nan_to_num(known.transitions, nan=-1.0)
    told_costs = np.zeros((0, m)) if known.costs is None else np.nan_to_num(known.costs.T, nan=-1.0)
    moves, costs = _shared(laws.moves_at), np.repeat(_shared(laws.costs_at)[:, np.newaxis], m, axis=1)
    if len(told_moves):
        moves |= told_moves[layout.row_start[:-1]] >= 0.0
    if len(told_costs):
        costs |= told_costs >= 0.0
    moves &= uncertain
    compared = int(size[moves].sum() + costs.sum())
    if absorbs:
        compared = 2 * int(size[uncertain].sum() + layout.num_rows * m)
    share = -log(0.5 * FALSE_ALARM) - log(delta)
    return PremiseRule(
        stays=stays,
        log_streams=log(max(1, compared)) + share,
        log_baseline=log(max(1, m)) + share,
        beta=np.zeros(0) if beta is None else np.array(beta, dtype=np.float64),
        ceilings=np.array(view.ceilings, dtype=np.float64),
        capped=known.max_episode_cost is not None,
        told_moves=told_moves,
        told_costs=np.ascontiguousarray(told_costs),
        compared_moves=moves.astype(np.int8),
        compared_costs=costs.astype(np.int8),
        uncertain=uncertain.astype(np.int8),
        moves_at=laws.moves_at.copy(),
        costs_at=laws.costs_at.copy(),
    )


def _shared(first: IntArray) -> NDArray[np.bool_]:
    """(num_rows,): whether a row shares its law with others."""
    return np.asarray(np.bincount(first, minlength=len(first))[first] > 1)


def make_premises(rule: PremiseRule, num_triples: int, *, absorbs: bool) -> Premises:
    """Nothing seen yet: `low` and `high` hold what is declared."""
    rows, m = rule.compared_costs.shape
    streams = 2 if absorbs else int(rule.compared_moves.any() or rule.compared_costs.any())
    kept, triples = (rows, num_triples) if streams else (0, 0)
    told_moves = rule.told_moves if len(rule.told_moves) and kept else np.full(triples, -1.0)
    told_costs = rule.told_costs if len(rule.told_costs) and kept else np.full((kept, m), -1.0)
    return Premises(
        visits=np.zeros((streams, kept), dtype=np.int64),
        moves=np.zeros((streams, triples), dtype=np.int64),
        sums=np.zeros((streams, kept, m)),
        due=np.ones(kept, dtype=np.int64),
        low_moves=np.where(told_moves < 0.0, 0.0, told_moves),
        high_moves=np.where(told_moves < 0.0, 1.0, told_moves),
        low_costs=np.where(told_costs < 0.0, 0.0, told_costs),
        high_costs=np.where(told_costs < 0.0, 1.0, told_costs),
        baseline_sums=np.zeros(m),
        numbers=PremiseNumbers(),
        figures=PremiseFigures(),
    )


@kernel
def is_impossible(rule: PremiseRule, rows: IntArray, triples: IntArray, costs: FloatArray) -> bool:
    """Whether what is declared rules out a step (`model/episode.py`) of rows and triples (n,), costs (n, m)."""
    wrong = False
    if len(rule.told_moves) > 0:
        for k in range(len(rows)):
            wrong |= rule.told_moves[triples[k]] == 0.0
    if len(rule.told_costs) > 0:
        for k in range(len(rows)):
            for i in range(costs.shape[1]):
                told = rule.told_costs[rows[k], i]
                wrong |= (told == 0.0 or told == 1.0) and abs(costs[k, i] - told) > TOL_TRUE
    if rule.capped:
        for i in range(costs.shape[1]):
            total = 0.0
            for k in range(len(rows)):
                total += costs[k, i]
            wrong |= total > rule.ceilings[i] + TOL_TRUE * (1.0 + rule.ceilings[i])
    return wrong


@kernel
def count_episode(
    index: LayoutArrays,
    rule: PremiseRule,
    premises: Premises,
    rows: IntArray,
    triples: IntArray,
    costs: FloatArray,
    branch: int,
    whole: bool,
    episode: int,
) -> None:
    """Count the `episode`-th episode, which was left to the baseline if `branch` > 0, and test what it is about.

    `whole`: it was played as planned to its end, and all of it may be counted. One that is left out for a declared
    reason is not passed at all.
    """
    if branch > 0 and len(rule.beta) > 0:
        _count_baseline(rule, premises, costs, whole, episode)
    if len(premises.visits) == 0:
        return
    if not whole:
        premises.numbers.unknown += 1
        return
    for k in range(len(rows)):
        row = rows[k]
        premises.visits[OWN, row] += 1
        premises.moves[OWN, triples[k]] += 1
        for i in range(costs.shape[1]):
            premises.sums[OWN, row, i] += costs[k, i]
    for k in range(len(rows)):
        row = rows[k]
        visits = premises.visits[OWN, row]
        if visits >= premises.due[row]:
            premises.due[row] = visits + visits // GROWTH + 1
            compare_row(index, rule, premises, OWN, row, episode)


@kernel
def _count_baseline(rule: PremiseRule, premises: Premises, costs: FloatArray, whole: bool, episode: int) -> None:
    numbers, sums = premises.numbers, premises.baseline_sums
    numbers.baseline_episodes += 1
    if whole:
        for i in range(len(sums)):
            total = 0.0
            for k in range(len(costs)):
                total += costs[k, i]
            sums[i] += min(total, rule.ceilings[i])
    n = numbers.baseline_episodes
    if n < numbers.baseline_due:
        return
    numbers.baseline_due = n + n // GROWTH + 1
    for i in range(len(sums)):
        most = rule.ceilings[i]
        if rule.beta[i] < most:
            low, high = kt_bounds(n, min(sums[i] / most, float(n)), rule.log_baseline)
            if most * low > rule.beta[i]:
                _refute(premises, BASELINE, 0, i, 0.0, rule.beta[i], most * low, most * high)
                _note(premises, OWN, n, episode)


@kernel
def compare_row(
    index: LayoutArrays, rule: PremiseRule, premises: Premises, stream: int, row: int, episode: int
) -> None:
    """Compare the intervals of a row's stream with what is declared, and with all other intervals of its laws."""
    numbers, n = premises.numbers, premises.visits[stream, row]
    unknown = numbers.unknown if stream == OWN else numbers.unknown_logged
    logs = numbers.logged > 0
    for i in range(premises.sums.shape[2]):
        if logs or rule.compared_costs[row, i] == 1:
            low, high = _interval(n, unknown, min(premises.sums[stream, row, i], float(n)), rule.log_streams)
            place = rule.costs_at[row]
            if low > premises.high_costs[place, i] or high < premises.low_costs[place, i]:
                exact = len(rule.told_costs) > 0 and rule.told_costs[row, i] >= 0.0
                kind, told_low, told_high = (
                    COSTS if exact else SHARED_COSTS, premises.low_costs[place, i], premises.high_costs[place, i]
                )  # fmt: skip
                _refute(premises, kind, row, i, told_low, told_high, low, high)
                _note(premises, stream, n, episode)
            else:
                premises.low_costs[place, i] = max(premises.low_costs[place, i], low)
                premises.high_costs[place, i] = min(premises.high_costs[place, i], high)
    if rule.uncertain[row] == 1 and (logs or rule.compared_moves[row] == 1):
        away = index.row_start[rule.moves_at[row]] - index.row_start[row]
        for j in range(index.row_start[row], index.row_start[row + 1]):
            low, high = _interval(n, unknown, float(premises.moves[stream, j]), rule.log_streams)
            place = j + away
            if low > premises.high_moves[place] or high < premises.low_moves[place]:
                exact = len(rule.told_moves) > 0 and rule.told_moves[j] >= 0.0
                kind, told_low, told_high = (
                    TRANSITIONS if exact else SHARED_TRANSITIONS, premises.low_moves[place], premises.high_moves[place]
                )  # fmt: skip
                _refute(premises, kind, j, 0, told_low, told_high, low, high)
                _note(premises, stream, n, episode)
            else:
                premises.low_moves[place] = max(premises.low_moves[place], low)
                premises.high_moves[place] = min(premises.high_moves[place], high)


@kernel
def _interval(n: int, unknown: int, total: float, log_inverse_delta: float) -> tuple[float, float]:
    """[LCB(n + K, S), UCB(n + K, S + K)]."""
    low, high = kt_bounds(n + unknown, total, log_inverse_delta)
    if unknown > 0:
        high = kt_bounds(n + unknown, total + unknown, log_inverse_delta)[1]
    return low, high


@kernel
def _refute(
    premises: Premises,
    kind: int,
    place: int,
    column: int,
    told_low: float,
    told_high: float,
    seen_low: float,
    seen_high: float,
) -> None:
    """Note a refutation, unless there is one already."""
    numbers, figures = premises.numbers, premises.figures
    if numbers.what == NOTHING:
        numbers.what, numbers.where, numbers.column = kind, place, column
        figures.told_low, figures.told_high = told_low, told_high
        figures.seen_low, figures.seen_high = seen_low, seen_high


@kernel
def _note(premises: Premises, stream: int, visits: int, episode: int) -> None:
    """Note which stream showed it, after how many visits and in which episode, unless that was noted before."""
    numbers = premises.numbers
    if numbers.visits == 0:
        numbers.stream, numbers.visits, numbers.episode = stream, visits, episode
        numbers.beside_logs = 1 if numbers.logged > 0 else 0


@kernel
def count_logged(
    premises: Premises, starts: IntArray, rows: IntArray, triples: IntArray, costs: FloatArray, whole: NDArray[np.int8]
) -> None:
    """Count a log in the stream of logs: its steps and what may be counted of its episodes, as in `LogArrays`."""
    for e in range(len(whole)):
        premises.numbers.logged += 1
        if whole[e] == PARTLY_UNKNOWN:
            premises.numbers.unknown_logged += 1
        if whole[e] != WHOLE:
            continue
        for k in range(starts[e], starts[e + 1]):
            premises.visits[LOGGED, rows[k]] += 1
            premises.moves[LOGGED, triples[k]] += 1
            for i in range(costs.shape[1]):
                premises.sums[LOGGED, rows[k], i] += costs[k, i]


@kernel
def compare_all(index: LayoutArrays, rule: PremiseRule, premises: Premises, episode: int) -> None:
    """Test both streams of all rows, after a log was counted."""
    for stream in range(len(premises.visits)):
        for row in range(premises.visits.shape[1]):
            if premises.visits[stream, row] > 0:
                compare_row(index, rule, premises, stream, row, episode)


@kernel
def is_fresh(premises: Premises) -> bool:
    """Whether something was refuted and has not been announced yet."""
    return premises.numbers.what != NOTHING and premises.numbers.said == 0


def carry_over(old: Premises, new: Premises) -> None:
    """Copy the streams, and what they refuted, into a new phase, whose baseline has not been tested yet."""
    for name, array in new.as_dict().items():
        if isinstance(array, np.ndarray) and name != "baseline_sums":
            array[...] = getattr(old, name)
    new.figures.values[:] = old.figures.values
    new.numbers.values[:] = old.numbers.values
    new.numbers.baseline_episodes = new.numbers.baseline_due = 0
