"""Columns that follow the boxes row by row say what columns that are loaded anew say, to the bit."""

from __future__ import annotations

import naive_estimates as naive
import numpy as np
import pytest
from loaded import reach_bounds

from hedgerow.confidence.bounds import (
    Columns,
    keep_columns,
    load_columns,
    make_columns,
    reach_of_states,
    update_columns,
)
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout


def reach_of(layout: Layout, columns: Columns) -> np.ndarray:
    reach = np.zeros(layout.num_decision_states)
    reach_of_states(index_of(layout), columns, np.arange(layout.num_decision_states), len(reach), reach)
    return reach


@pytest.mark.parametrize("seed", range(20))
def test_a_run_of_changed_rows_and_policies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = naive.some_layout(rng, full=seed % 2 == 0, largest=5)
    index, kept = index_of(layout), make_columns(layout)
    lower, upper = naive.some_boxes(rng, layout, naive.some_transitions(rng, layout))
    pi = naive.some_policy(rng, layout, zeros=seed % 3 == 0)
    for step in range(30):
        keep_columns(index, lower, upper, pi, kept)
        np.testing.assert_array_equal(reach_of(layout, kept), reach_bounds(layout, lower, upper, pi))
        if step % 7 == 3:  # other rows are played
            pi = naive.some_policy(rng, layout, zeros=True)
        else:
            weights = pi * rng.uniform(0.5, 1.5, size=len(pi))
            totals = np.add.reduceat(weights, np.arange(0, len(pi), layout.num_actions))
            pi = weights / np.repeat(totals, layout.num_actions)
        if step % 11 == 5:  # somebody else uses the buffers for boxes of their own
            load_columns(index, np.zeros_like(lower), np.ones_like(upper), pi, kept)
        other = naive.some_boxes(rng, layout, naive.some_transitions(rng, layout))
        rows = rng.choice(layout.num_rows, size=min(3, layout.num_rows), replace=False)
        for r in rows:
            own = slice(layout.row_start[r], layout.row_start[r + 1])
            lower[own], upper[own] = other[0][own], other[1][own]
        update_columns(index, lower, upper, rows, kept)


def test_boxes_that_nobody_spoke_of_are_not_seen_while_columns_are_kept() -> None:
    layout = Layout((1, 3, 1), 2)
    index, kept = index_of(layout), make_columns(layout)
    lower, upper, pi = np.zeros(layout.num_triples), np.ones(layout.num_triples), np.full(layout.num_rows, 0.5)
    keep_columns(index, lower, upper, pi, kept)
    upper[:6] = 0.5
    keep_columns(index, lower, upper, pi, kept)
    assert reach_of(layout, kept)[1] == 1.0
    update_columns(index, lower, upper, np.array([0, 1]), kept)
    assert reach_of(layout, kept)[1] == 0.5
