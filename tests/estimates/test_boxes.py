"""Boxes: never empty, never wider than the formulas, the same set as without tightening."""

from __future__ import annotations

from math import fsum

import naive_estimates as naive
import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow.errors import InvalidInput
from hedgerow.estimates.boxes import Boxes, BoxRule, make_boxes, refresh_all, refresh_rows
from hedgerow.estimates.counts import Counts, make_counts, record
from hedgerow.estimates.radii import Radii, RadiusRule, cost_radius, transition_radius
from hedgerow.model.index import index_of
from hedgerow.model.layout import Layout

KINDS = ("paper", "tight", "anytime")


def some_counts(rng: np.random.Generator, layout: Layout, m: int, most: int) -> Counts:
    """Rows with 0 up to `most` visits, as if by episodes."""
    counts, p = make_counts(layout, m), naive.some_transitions(rng, layout)
    counts.num_visits[:] = rng.integers(0, 1 + rng.integers(1, most + 1, layout.num_rows))
    for r, row in enumerate(naive.rows_of(layout)):
        counts.num_moves[row] = rng.multinomial(counts.num_visits[r], p[row])
        counts.cost_sums[r] = rng.random(m) * counts.num_visits[r]
    return counts


def refreshed(layout: Layout, counts: Counts, rule: BoxRule) -> Boxes:
    boxes = make_boxes(layout, counts.cost_sums.shape[1], clip_costs=rule.clip_costs)
    refresh_all(index_of(layout), counts, rule, boxes)
    return boxes


def untightened(layout: Layout, counts: Counts, rule: RadiusRule) -> tuple[np.ndarray, np.ndarray]:
    """[max(0, P_hat - epsilon), min(1, P_hat + epsilon)], triple by triple."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    for r, row in enumerate(naive.rows_of(layout)):
        N = int(counts.num_visits[r])
        for j in range(row.start, row.stop):
            if N > 0:
                p_hat = counts.num_moves[j] / N
                eps = transition_radius(rule, p_hat, N)
                lower[j], upper[j] = max(0.0, p_hat - eps), min(1.0, p_hat + eps)
    return lower, upper


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_tightening_gives_the_range_of_each_probability_within_the_same_set(
    kind: str, full: bool, scale: float
) -> None:
    rng = np.random.default_rng(1)
    layout = naive.some_layout(rng, full=full)
    counts = some_counts(rng, layout, 1, 3000)
    rule = Radii(kind, scale).rule(layout, 1, 0.05, 10**4)
    boxes = refreshed(layout, counts, BoxRule(rule, False, False))
    lower, upper = untightened(layout, counts, rule)
    assert (boxes.lower >= lower).all()
    assert (boxes.upper <= upper).all()
    for row in naive.rows_of(layout):
        n = row.stop - row.start
        for j in range(n):
            unit = (np.arange(n) == j).astype(float)
            bounds = list(zip(lower[row], upper[row], strict=True))
            least, most = (
                sign * linprog(sign * unit, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=bounds).fun for sign in (1, -1)
            )
            assert boxes.lower[row][j] == pytest.approx(least, abs=1e-12)
            assert boxes.upper[row][j] == pytest.approx(most, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-300])
def test_no_box_is_empty_whatever_the_rounding(kind: str, scale: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        layout = naive.some_layout(rng, full=seed % 2 == 0, largest=9)
        counts = some_counts(rng, layout, 2, 10 ** int(rng.integers(1, 7)))
        boxes = refreshed(layout, counts, BoxRule(Radii(kind, scale).rule(layout, 2, 0.05, 10**6), True, False))
        assert (boxes.lower >= 0.0).all()
        assert (boxes.upper <= 1.0).all()
        assert (boxes.lower <= boxes.upper).all()
        for r, row in enumerate(naive.rows_of(layout)):
            assert fsum(boxes.lower[row].tolist()) <= 1.0 <= fsum(boxes.upper[row].tolist())
            if counts.num_visits[r] > 0 and row.stop - row.start > 1:
                p_hat = counts.num_moves[row] / counts.num_visits[r]
                assert (boxes.lower[row] <= p_hat).all()
                assert (boxes.upper[row] >= p_hat).all()


@pytest.mark.parametrize("clip", [True, False])
def test_cost_bounds_are_estimate_plus_and_minus_radius(clip: bool) -> None:
    rng = np.random.default_rng(2)
    layout = naive.some_layout(rng, full=True)
    counts = some_counts(rng, layout, 3, 5000)
    rule = Radii("tight").rule(layout, 3, 0.05, 10**4)
    boxes = refreshed(layout, counts, BoxRule(rule, clip, False))
    for r in range(layout.num_rows):
        N = int(counts.num_visits[r])
        g_hat, xi = counts.cost_sums[r] / max(1, N), cost_radius(rule, N)
        assert boxes.xi[r] == xi
        lower, upper = g_hat - xi, g_hat + xi
        np.testing.assert_array_equal(boxes.cost_lower[r], np.maximum(lower, 0.0) if clip else lower)
        np.testing.assert_array_equal(boxes.cost_upper[r], np.minimum(upper, 1.0) if clip else upper)


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_before_the_first_episode_nothing_is_known(clip: bool, scale: float) -> None:
    layout = naive.some_layout(np.random.default_rng(7), full=False)
    start = make_boxes(layout, 2, clip_costs=clip)
    again = refreshed(
        layout, make_counts(layout, 2), BoxRule(Radii("paper", scale).rule(layout, 2, 0.1, 9), clip, False)
    )
    for name, expected in start.as_dict().items():
        np.testing.assert_array_equal(expected, getattr(again, name))
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]
    np.testing.assert_array_equal(start.lower, single)
    np.testing.assert_array_equal(start.upper, 1.0)


def test_refreshing_the_visited_rows_is_enough() -> None:
    rng = np.random.default_rng(8)
    layout = naive.some_layout(rng, full=True)
    p, pi = naive.some_transitions(rng, layout), naive.some_policy(rng, layout)
    rule = BoxRule(Radii("tight").rule(layout, 2, 0.05, 300), True, False)
    counts, boxes = make_counts(layout, 2), make_boxes(layout, 2, clip_costs=True)
    for _ in range(300):
        rows, triples = naive.some_episode(rng, layout, p, pi)
        record(counts, np.array(rows), np.array(triples), rng.random((layout.steps, 2)))
        refresh_rows(index_of(layout), counts, rule, np.array(rows), boxes)
    fresh = refreshed(layout, counts, rule)
    for name, kept in boxes.as_dict().items():
        np.testing.assert_array_equal(kept, getattr(fresh, name))
    assert (boxes.lower <= p).all()  # the clean event, which fails in one of many thousand seeds
    assert (boxes.upper >= p).all()


def test_known_transitions_are_kept() -> None:
    rng = np.random.default_rng(9)
    layout = naive.some_layout(rng, full=True)
    p = naive.some_transitions(rng, layout)
    boxes = make_boxes(layout, 1, transitions=p)
    counts = some_counts(rng, layout, 1, 100)
    refresh_all(index_of(layout), counts, BoxRule(Radii().rule(layout, 1, 0.05, 100), False, True), boxes)
    np.testing.assert_array_equal(boxes.lower, p)
    np.testing.assert_array_equal(boxes.upper, p)
    assert boxes.cost_upper[counts.num_visits > 0].max() > 1.0
    with pytest.raises(InvalidInput, match="transition probability is"):
        make_boxes(layout, 1, transitions=np.full(layout.num_triples, 1.5))
