"""Check that episodes can have produced the counts of a file: its numbers have to add up.

Every episode visits one pair per layer and moves on from it once. For the t episodes counted, therefore,

    sum of N over a layer = t,    sum_x' M(x,a,x') = N(x,a),    sum_a N(x',a) = sum of M into x',    0 <= S <= N

all exactly: sums of t costs in [0, 1] are rounded to at most t. An episode that was cut short misses its last layers,
and may have a last cost without a transition: K may exceed N by their number, and by that of unknown visits, of which
an episode with unknown values adds one to a row. Where rows share a law, the first row of a class has the counts of
all: then only totals can be compared with t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.estimates.unknowns import Laws
from hedgerow.learners.mirror.state import State
from hedgerow.model.layout import Layout


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
    _check_costs(layout, state, laws, tied, counted)
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


def _check_costs(layout: Layout, state: State, laws: Laws, tied: bool, counted: int) -> None:
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
