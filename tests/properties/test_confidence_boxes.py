"""Confidence boxes always hold the empirical distribution, and never widen when there is more of the same data."""

from __future__ import annotations

from itertools import pairwise
from math import fsum

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from strategies import generators, layouts, random_rows

import hedgerow as hr
from hedgerow.confidence.boxes import Boxes, make_box_rule, make_boxes, refresh_all
from hedgerow.confidence.counts import Counts, make_counts, make_unknowns
from hedgerow.confidence.radii import Radii
from hedgerow.model.kernel_layout import index_of

M = 2
ROUNDING = 1e-12
kinds = st.sampled_from(["paper", "tight", "anytime"])
all_kinds = st.sampled_from(["paper", "tight", "anytime", "kt"])


def drawn_counts(layout: hr.Layout, rng: Generator, most: int) -> Counts:
    """As many visits of each row as it happens, 0 to `most`."""
    counts, p = make_counts(layout, M), random_rows(layout, rng)
    counts.num_visits[:] = counts.num_costs[:] = rng.integers(0, most + 1, layout.num_rows)
    for r, (start, stop) in enumerate(pairwise(layout.row_start)):
        counts.num_moves[start:stop] = rng.multinomial(counts.num_visits[r], p[start:stop])
        counts.cost_sums[r] = rng.random(M) * counts.num_visits[r]
    return counts


def times(counts: Counts, factor: int) -> Counts:
    """The same frequencies from `factor` times the data."""
    return counts.replace(
        num_visits=factor * counts.num_visits,
        num_moves=factor * counts.num_moves,
        num_costs=factor * counts.num_costs,
        cost_sums=float(factor) * counts.cost_sums,
    )


def boxes_of(layout: hr.Layout, counts: Counts, kind: str, scale: float = 1.0, *, clip: bool = True) -> Boxes:
    unknowns = make_unknowns(layout, M)
    boxes = make_boxes(unknowns, clip_costs=clip)
    rule = make_box_rule(Radii(kind, scale).rule(layout, M, 0.05, 1000), unknowns, clip)
    refresh_all(index_of(layout), counts, rule, boxes)
    return boxes


@given(layouts, generators, all_kinds, st.sampled_from([1.0, 0.1, 1e-3, 1e-9]), st.integers(0, 100_000))
def test_a_box_holds_the_empirical_distribution(
    layout: hr.Layout, rng: Generator, kind: str, scale: float, most: int
) -> None:
    counts = drawn_counts(layout, rng, most)
    boxes = boxes_of(layout, counts, kind, scale)
    assert np.all(boxes.lower >= 0.0)
    assert np.all(boxes.lower <= boxes.upper)
    assert np.all(boxes.upper <= 1.0)
    for r, (start, stop) in enumerate(pairwise(layout.row_start)):
        lower, upper = boxes.lower[start:stop], boxes.upper[start:stop]
        assert fsum(lower.tolist()) <= 1.0 <= fsum(upper.tolist())  # so that it holds some distribution
        visits = counts.num_visits[r]
        if visits > 0:
            frequencies = counts.num_moves[start:stop] / visits
            assert np.all(lower <= frequencies + ROUNDING)
            assert np.all(frequencies <= upper + ROUNDING)
            means = counts.cost_sums[r] / visits
            assert np.all(boxes.cost_lower[r] <= means + ROUNDING)
            assert np.all(means <= boxes.cost_upper[r] + ROUNDING)
        elif stop - start > 1:
            assert np.all(lower == 0.0)
            assert np.all(upper == 1.0)


@given(layouts, generators, kinds, st.integers(0, 10_000), st.integers(2, 50))
def test_more_of_the_same_data_never_widens_a_box(
    layout: hr.Layout, rng: Generator, kind: str, most: int, factor: int
) -> None:
    counts = drawn_counts(layout, rng, most)
    wide, narrow = boxes_of(layout, counts, kind), boxes_of(layout, times(counts, factor), kind)
    assert np.all(narrow.lower >= wide.lower - ROUNDING)
    assert np.all(narrow.upper <= wide.upper + ROUNDING)
    assert np.all(narrow.cost_lower >= wide.cost_lower - ROUNDING)
    assert np.all(narrow.cost_upper <= wide.cost_upper + ROUNDING)


@given(layouts, generators, kinds, st.integers(1, 10_000))
def test_clipping_costs_is_all_that_clipping_does(layout: hr.Layout, rng: Generator, kind: str, most: int) -> None:
    counts = drawn_counts(layout, rng, most)
    clipped, free = boxes_of(layout, counts, kind), boxes_of(layout, counts, kind, clip=False)
    np.testing.assert_array_equal(clipped.lower, free.lower)
    np.testing.assert_array_equal(clipped.upper, free.upper)
    np.testing.assert_array_equal(clipped.cost_lower, np.maximum(free.cost_lower, 0.0))
    np.testing.assert_array_equal(clipped.cost_upper, np.minimum(free.cost_upper, 1.0))
