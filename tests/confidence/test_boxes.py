"""Boxes: never empty, never wider than the formulas, the same set as without tightening."""

from __future__ import annotations

from math import fsum

import naive_estimates as naive
import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow.confidence.boxes import Boxes, BoxRule, make_box_rule, make_boxes, refresh_all, refresh_rows
from hedgerow.confidence.counts import Counts, make_counts, make_unknowns, record, record_costs
from hedgerow.confidence.kl import kt_interval
from hedgerow.confidence.radii import KT, Radii, RadiusRule, cost_radius, transition_radius
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.knowledge import Knowledge
from hedgerow.model.layout import Layout

KINDS = ("paper", "tight", "anytime", "kt")


def some_counts(rng: np.random.Generator, layout: Layout, m: int, most: int) -> Counts:
    """Rows with 0 up to `most` visits, as if by episodes."""
    counts, p = make_counts(layout, m), naive.some_transitions(rng, layout)
    visits = rng.integers(0, 1 + rng.integers(1, most + 1, layout.num_rows))
    counts.num_visits[:] = counts.num_costs[:] = visits
    for r, row in enumerate(naive.rows_of(layout)):
        counts.num_moves[row] = rng.multinomial(counts.num_visits[r], p[row])
        counts.cost_sums[r] = rng.random(m) * counts.num_visits[r]
    return counts


def box_rule(radii: RadiusRule, layout: Layout, m: int, *, clip: bool) -> BoxRule:
    """Of a world of which nothing is known."""
    return make_box_rule(radii, make_unknowns(layout, m), clip)


def refreshed(layout: Layout, counts: Counts, rule: BoxRule) -> Boxes:
    boxes = make_boxes(make_unknowns(layout, counts.cost_sums.shape[1]), clip_costs=rule.clip_costs)
    refresh_all(index_of(layout), counts, rule, boxes)
    return boxes


def untightened(layout: Layout, counts: Counts, rule: RadiusRule) -> tuple[np.ndarray, np.ndarray]:
    """[max(0, P_hat - epsilon), min(1, P_hat + epsilon)], triple by triple; of kt its interval, drawn in."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    for r, row in enumerate(naive.rows_of(layout)):
        N = int(counts.num_visits[r])
        for j in range(row.start, row.stop):
            if N > 0:
                p_hat = counts.num_moves[j] / N
                eps = transition_radius(rule, p_hat, N)
                lower[j], upper[j] = max(0.0, p_hat - eps), min(1.0, p_hat + eps)
                if rule.kind == KT:
                    low, high = kt_interval(N, float(counts.num_moves[j]), rule.transition_log)
                    drawn_in = p_hat - rule.scale * (p_hat - low), p_hat + rule.scale * (high - p_hat)
                    lower[j], upper[j] = drawn_in if rule.scale < 1.0 else (low, high)
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
    boxes = refreshed(layout, counts, box_rule(rule, layout, 1, clip=False))
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
        rule = box_rule(Radii(kind, scale).rule(layout, 2, 0.05, 10**6), layout, 2, clip=True)
        boxes = refreshed(layout, counts, rule)
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
    boxes = refreshed(layout, counts, box_rule(rule, layout, 3, clip=clip))
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
    start = make_boxes(make_unknowns(layout, 2), clip_costs=clip)
    rule = box_rule(Radii("paper", scale).rule(layout, 2, 0.1, 9), layout, 2, clip=clip)
    again = refreshed(layout, make_counts(layout, 2), rule)
    for name, expected in start.as_dict().items():
        np.testing.assert_array_equal(expected, getattr(again, name))
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]
    np.testing.assert_array_equal(start.lower, single)
    np.testing.assert_array_equal(start.upper, 1.0)


def test_refreshing_the_visited_rows_is_enough() -> None:
    rng = np.random.default_rng(8)
    layout = naive.some_layout(rng, full=True)
    p, pi = naive.some_transitions(rng, layout), naive.some_policy(rng, layout)
    rule = box_rule(Radii("tight").rule(layout, 2, 0.05, 300), layout, 2, clip=True)
    counts, boxes = make_counts(layout, 2), make_boxes(make_unknowns(layout, 2), clip_costs=True)
    for _ in range(300):
        rows, triples = naive.some_episode(rng, layout, p, pi)
        record(index_of(layout), rule.laws, counts, np.array(rows), np.array(triples))
        record_costs(rule.laws, counts, np.array(rows), rng.random((layout.steps, 2)))
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
    unknowns = make_unknowns(layout, 1, Knowledge(transitions=p))
    boxes = make_boxes(unknowns)
    counts = some_counts(rng, layout, 1, 100)
    rule = make_box_rule(Radii().rule(layout, 1, 0.05, 100, unknowns), unknowns, False)
    refresh_all(index_of(layout), counts, rule, boxes)
    np.testing.assert_array_equal(boxes.lower, p)
    np.testing.assert_array_equal(boxes.upper, p)
    assert boxes.cost_upper[counts.num_visits > 0].max() > 1.0
