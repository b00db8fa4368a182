"""The joint robust cost against a linear program, its naive twin, the truth below it and the paper's bound above it."""

from __future__ import annotations

import naive_estimates as naive
import numpy as np
import pytest
from loaded import joint_costs, reach_bounds

from hedgerow.confidence.bounds import joint_costs_of_columns, make_columns
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, row_occupancy

TOL = 1e-12
Case = tuple[Layout, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def some_case(seed: int) -> Case:
    """Layout, transitions within their boxes, boxes, policy and three costs (num_rows, 3), one of them of any sign."""
    rng = np.random.default_rng(seed)
    layout = naive.some_layout(rng, full=seed % 2 == 0)
    p = naive.some_transitions(rng, layout)
    costs = rng.random((layout.num_rows, 3)) * [1.0, 2.0, 1.0] - [0.0, 0.0, 0.5]
    return layout, p, *naive.some_boxes(rng, layout, p), naive.some_policy(rng, layout, zeros=seed % 3 == 0), costs


@pytest.mark.parametrize("seed", range(24))
def test_the_bound_is_that_of_the_linear_program(seed: int) -> None:
    layout, _, lower, upper, pi, costs = some_case(seed)
    bounds = joint_costs(layout, lower, upper, pi, costs)
    for i in range(3):
        assert bounds[i] == pytest.approx(naive.largest_by_lp(layout, lower, upper, pi, costs[:, i]), abs=TOL)
        assert bounds[i] == pytest.approx(naive.joint_cost(layout, lower, upper, pi, costs[:, i]), abs=1e-14)


@pytest.mark.parametrize("seed", range(24))
def test_the_bound_lies_between_the_truth_and_the_sum_of_upper_occupancies(seed: int) -> None:
    layout, p, lower, upper, pi, costs = some_case(seed)
    index, columns = index_of(layout), make_columns(layout)
    u = pi * np.repeat(reach_bounds(layout, lower, upper, pi, columns), layout.num_actions)
    bounds = np.zeros(3)
    joint_costs_of_columns(index, columns, costs, bounds)  # boxes and policy are loaded already
    assert (bounds >= row_occupancy(layout, occupancy(layout, p, pi)) @ costs - TOL).all()
    assert (bounds[:2] <= u @ costs[:, :2] + TOL).all()  # for costs that are not negative


@pytest.mark.parametrize("seed", range(6))
def test_one_cost_and_all_costs_agree_bit_for_bit(seed: int) -> None:
    layout, _, lower, upper, pi, costs = some_case(seed)
    columns = make_columns(layout)
    single = [joint_costs(layout, lower, upper, pi, costs[:, i : i + 1].copy(), columns)[0] for i in range(3)]
    assert single == joint_costs(layout, lower, upper, pi, costs).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_known_transitions_give_the_cost_itself(seed: int) -> None:
    layout, p, _, _, pi, costs = some_case(seed)
    truth = row_occupancy(layout, occupancy(layout, p, pi)) @ costs
    np.testing.assert_allclose(joint_costs(layout, p, p, pi, costs), truth, atol=1e-14)


def test_equal_costs_cost_the_horizon_whatever_the_transitions() -> None:
    layout, _, lower, upper, pi, _ = some_case(2)
    np.testing.assert_allclose(joint_costs(layout, lower, upper, pi, np.ones((layout.num_rows, 1))), layout.steps)


def test_the_greedy_example() -> None:
    """f = (1, .5, 0), lo = (.1, .2, .1), hi = (.5, .9, .6): p = (.5, .4, .1), value .7."""
    layout = Layout((1, 3, 1), num_actions=1)
    lower, upper = np.array([0.1, 0.2, 0.1, 1, 1, 1.0]), np.array([0.5, 0.9, 0.6, 1, 1, 1.0])
    (value,) = joint_costs(layout, lower, upper, np.ones(4), np.array([[0.0], [1.0], [0.5], [0.0]]))
    assert value == pytest.approx(0.7, abs=1e-15)


def test_the_last_state_is_reached_surely_and_costs_nothing() -> None:
    layout, _, lower, upper, pi, costs = some_case(2)
    index, columns = index_of(layout), make_columns(layout)
    last = reach_bounds(layout, lower, upper, pi, columns, [layout.num_states - 1])
    assert last[0] == pytest.approx(1.0, abs=1e-15)
    bounds = np.zeros(3)
    joint_costs_of_columns(index, columns, costs, bounds)  # in the buffers that the pass before has used
    assert bounds.tolist() == joint_costs(layout, lower, upper, pi, costs).tolist()


def test_no_constraint() -> None:
    layout, _, lower, upper, pi, _ = some_case(0)
    assert joint_costs(layout, lower, upper, pi, np.zeros((layout.num_rows, 0))).shape == (0,)
