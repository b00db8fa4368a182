"""Intervals of the kind kt, for every delta, number of samples and sum: within [0, 1], in order, and monotone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.confidence.kl import kt_bounds
from hedgerow.confidence.radii import Radii, cost_radius, scaled_bounds, transition_radius
from hedgerow.model.layout import Layout

SMALLEST = float(np.finfo(np.float64).tiny)
DELTAS = st.one_of(
    st.floats(SMALLEST, 0.2, exclude_max=True), st.floats(-307.0, -0.7).map(lambda power: 10.0**power)
)  # fmt: skip
VISITS = st.one_of(st.integers(1, 50), st.integers(1, 2**40))
PARTS = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))


@given(DELTAS, VISITS, PARTS, st.floats(1e-3, 1.0))
def test_lower_and_upper_bounds_lie_in_order_within_0_and_1(delta: float, n: int, part: float, scale: float) -> None:
    total = min(part * n, float(n))
    rule = Radii("kt", scale).rule(Layout((1, 1), 1), 1, delta)
    for logarithm in (rule.cost_log, rule.transition_log):
        lower, upper = scaled_bounds(rule, n, total, logarithm)
        assert 0.0 <= lower <= upper <= 1.0
        assert lower <= total / n * (1.0 + 1e-12)
        assert upper >= total / n * (1.0 - 1e-12)


@given(DELTAS, DELTAS, VISITS, PARTS, PARTS)
def test_bounds_are_monotone_in_delta_and_in_the_sum(
    one: float, other: float, n: int, first: float, second: float
) -> None:
    small, large = sorted((one, other))
    low, high = sorted((min(first * n, float(n)), min(second * n, float(n))))
    sure, unsure = -np.log(small), -np.log(large)
    wide, narrow = kt_bounds(n, low, sure), kt_bounds(n, low, unsure)
    slack = 1e-12  # each end is rounded outward by less
    assert wide[0] <= narrow[0] + slack
    assert narrow[1] <= wide[1] + slack
    more = kt_bounds(n, high, unsure)
    assert narrow[0] <= more[0] + slack
    assert narrow[1] <= more[1] + slack


@given(st.sampled_from(["paper", "tight", "anytime", "efroni", "kt"]), DELTAS, VISITS, PARTS)
def test_radii_are_numbers_of_at_least_0(kind: str, delta: float, n: int, part: float) -> None:
    rule = Radii(kind).rule(Layout((1, 2, 1), 2), 1, delta, 1000)
    assert 0.0 <= cost_radius(rule, n) <= 1.0
    assert transition_radius(rule, part, n) >= 0.0
