"""Robust value iteration against a linear program over Delta(P), and against all vertices in tiny worlds."""

import naive_boxes as naive
import naive_estimates
import numpy as np
import pytest

from hedgerow.model import occupancy
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.planning.decomposition import RobustScratch, least_cost, robust_scratch, row_mass_of_least_cost

TOL = 1e-12


def random_case(seed: int) -> tuple[Layout, np.ndarray, np.ndarray, np.ndarray]:
    """Layout, boxes, and a cost per row that may be negative."""
    rng = np.random.default_rng(1_000 + seed)
    layout = naive_estimates.some_layout(rng, full=seed % 2 == 0)
    return layout, *naive.boxes_of(rng, layout), rng.uniform(-0.5, 1.0, layout.num_rows)


def solve(layout: Layout, lower: np.ndarray, upper: np.ndarray, cost: np.ndarray) -> tuple[float, RobustScratch]:
    scratch = robust_scratch(layout)
    return least_cost(index_of(layout), lower, upper, cost, scratch), scratch


@pytest.mark.parametrize("seed", range(30))
def test_the_value_is_that_of_the_linear_program(seed: int) -> None:
    layout, lower, upper, cost = random_case(seed)
    assert solve(layout, lower, upper, cost)[0] == pytest.approx(
        naive.least_cost_by_lp(layout, lower, upper, cost), abs=TOL
    )
    largest = -solve(layout, lower, upper, -cost)[0]
    assert largest == pytest.approx(-naive.least_cost_by_lp(layout, lower, upper, -cost), abs=TOL)


@pytest.mark.parametrize("seed", range(30))
def test_the_minimiser_is_an_occupancy_within_the_boxes_that_attains_the_value(seed: int) -> None:
    layout, lower, upper, cost = random_case(seed)
    value, scratch = solve(layout, lower, upper, cost)
    w = np.full(layout.num_rows, np.nan)
    row_mass_of_least_cost(index_of(layout), scratch, w)
    p = scratch.p
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]
    assert np.all((p >= lower) | single)
    assert np.all((p <= upper + 1e-15) | single)
    np.testing.assert_allclose(np.add.reduceat(p, layout.row_start[:-1]), 1.0, atol=1e-14)
    policy = np.zeros(layout.num_rows)
    policy[np.arange(layout.num_decision_states) * layout.num_actions + scratch.action] = 1.0
    q = w[layout.row_of_triple] * p
    assert max(occupancy.residuals(layout, q, p)) < 1e-14
    np.testing.assert_allclose(w, occupancy.row_occupancy(layout, occupancy.occupancy(layout, p, policy)), atol=1e-14)
    assert cost @ w == pytest.approx(value, abs=TOL)


@pytest.mark.parametrize("seed", range(6))
def test_no_policy_and_no_vertex_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = Layout((1, 3, 1) if seed % 2 else (1, 2, 2, 1), num_actions=2)
    lower, upper = naive.boxes_of(rng, layout)
    cost = rng.uniform(-0.5, 1.0, layout.num_rows)
    enumerated = naive.least_cost_by_enumeration(layout, lower, upper, cost)
    assert solve(layout, lower, upper, cost)[0] == pytest.approx(enumerated, abs=TOL)


@pytest.mark.parametrize("seed", range(8))
def test_wider_boxes_are_cheaper_and_points_leave_only_the_policy(seed: int) -> None:
    layout, lower, upper, cost = random_case(seed)
    value, scratch = solve(layout, lower, upper, cost)
    anything, _ = solve(layout, np.zeros_like(lower), np.ones_like(upper), cost)
    assert anything <= value + TOL
    # With the minimising transitions as known ones the same value comes back.
    known = scratch.p.copy()
    assert solve(layout, known, known, cost)[0] == pytest.approx(value, abs=TOL)
    # Without any restriction of the transitions only the cheapest way through the layers counts.
    if layout.is_full:
        assert anything == pytest.approx(sum(block.min() for block in layout.split_rows(cost)), abs=TOL)


def test_the_layers_before_do_not_matter_to_the_value_of_a_state() -> None:
    layout, lower, upper, cost = random_case(4)
    _, scratch = solve(layout, lower, upper, cost)
    first = layout.num_actions
    cost[:first] += 0.25
    value, shifted = solve(layout, lower, upper, cost)
    np.testing.assert_array_equal(shifted.values[1:], scratch.values[1:])
    assert value == pytest.approx(scratch.values[0] + 0.25, abs=TOL)
