"""Counts that episodes can have produced: what a file claims to have seen has to add up.

Every episode visits one pair per layer and moves on from it once, so that for the t episodes counted

    sum of N over a layer = t,    sum_x' M(x,a,x') = N(x,a),    sum_a N(x',a) = sum of M into x',    0 <= S <= N

all exactly: sums of t costs in [0, 1] are rounded to at most t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.estimates.counts import Counts
from hedgerow.learners.mirror.state import State
from hedgerow.model.layout import Layout


def check_counts(layout: Layout, counts: Counts, counted: int) -> None:
    """N, M and S of `counted` episodes."""
    visits, moves = counts.num_visits.astype(np.float64), counts.num_moves.astype(np.float64)
    _check_layers(layout, "counts.num_visits", visits, counted)
    _refuse_rows(layout, np.add.reduceat(moves, layout.row_start[:-1]) != visits, "counts.num_moves", "do not add up")
    into = np.bincount(layout.successor, moves, minlength=layout.num_states)[1:-1]
    of_state = visits.reshape(-1, layout.num_actions).sum(axis=1)[1:]
    if np.any(into != of_state):
        x = 1 + int(np.flatnonzero(into != of_state)[0])
        raise InvalidInput(f"state.counts: {layout.describe_state(x)} is left more or less often than it is entered")
    _refuse_rows(layout, np.any(counts.cost_sums > visits[:, np.newaxis], axis=1), "counts.cost_sums", "exceed visits")


def check_epochs(layout: Layout, state: State, epochs: bool, kept: int) -> None:
    """N when the boxes were last rebuilt; without epochs, when the phase began, after `kept` counted episodes."""
    then, now = state.epoch_visits, state.counts.num_visits
    name = "epoch_visits"
    _refuse_rows(layout, then > now, name, "exceed counts.num_visits")
    if epochs:
        _check_layers(layout, name, then.astype(np.float64), None)
        _refuse_rows(layout, now >= np.maximum(1, 2 * then), name, "have doubled, but the boxes were not rebuilt")
    else:
        _check_layers(layout, name, then.astype(np.float64), kept)


def check_cached_visits(layout: Layout, state: State) -> None:
    """N when the bounds of the baselines were computed, while these are still used."""
    then, now = state.baseline_visits, state.counts.num_visits
    _refuse_rows(layout, then > now, "baseline_visits", "exceed counts.num_visits")
    _refuse_rows(layout, now >= np.maximum(1, 2 * then), "baseline_visits", "have doubled, but the bounds are kept")
    _check_layers(layout, "baseline_visits", then.astype(np.float64), None)


def layer_sums(layout: Layout, over_rows: FloatArray) -> FloatArray:
    """(L,): sums over the rows of each layer."""
    sums: FloatArray = np.add.reduceat(over_rows, layout.state_start[:-2] * layout.num_actions)
    return sums


def _check_layers(layout: Layout, name: str, visits: FloatArray, episodes: int | None) -> None:
    """Every layer was visited once per episode; None stands for any number of episodes, the same in all layers."""
    sums = layer_sums(layout, visits)
    wrong = np.flatnonzero(sums != (sums[0] if episodes is None else episodes))
    if len(wrong):
        expected = f"{sums[0]:.0f} in layer 0" if episodes is None else f"{episodes} episodes"
        raise InvalidInput(f"state.{name} of layer {wrong[0]} sum to {sums[wrong[0]]:.0f}; there are {expected}")


def _refuse_rows(layout: Layout, wrong: NDArray[np.bool_], name: str, problem: str) -> None:
    if np.any(wrong):
        raise InvalidInput(f"state.{name} of {layout.describe_row(int(np.flatnonzero(wrong)[0]))} {problem}")
