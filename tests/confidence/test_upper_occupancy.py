"""COMP-UOB against its naive twin, a linear program with the policy fixed, and cases with a known answer."""

from __future__ import annotations

import naive_estimates as naive
import numpy as np
import pytest
from loaded import reach_bounds

from hedgerow.confidence.bounds import load_columns, make_columns, reach_of_states
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, row_occupancy, state_occupancy

TOL = 1e-12
Case = tuple[Layout, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def some_case(seed: int, largest: int = 5) -> Case:
    """Layout, transitions within their boxes, boxes, policy; full and sparse, with and without unplayed actions."""
    rng = np.random.default_rng(seed)
    layout = naive.some_layout(rng, full=seed % 2 == 0, largest=largest)
    p = naive.some_transitions(rng, layout)
    return layout, p, *naive.some_boxes(rng, layout, p), naive.some_policy(rng, layout, zeros=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_dominate_the_truth_and_are_those_of_the_linear_program(seed: int) -> None:
    layout, p, lower, upper, pi = some_case(seed)
    reach = reach_bounds(layout, lower, upper, pi)
    assert (reach <= 1.0).all()
    assert (reach >= state_occupancy(layout, occupancy(layout, p, pi)) - TOL).all()
    for x in range(layout.num_decision_states):
        assert reach[x] == pytest.approx(naive.reach_by_lp(layout, lower, upper, pi, x), abs=TOL)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_are_those_of_the_naive_twin(seed: int) -> None:
    layout, _, lower, upper, pi = some_case(seed, largest=7)
    expected = [naive.reach(layout, lower, upper, pi, x) for x in range(layout.num_decision_states)]
    np.testing.assert_allclose(reach_bounds(layout, lower, upper, pi), expected, atol=1e-14)


@pytest.mark.parametrize("full", [True, False])
def test_wide_layers(full: bool) -> None:
    """Layers of 40 states use the larger gaps of the sort."""
    rng = np.random.default_rng(3)
    blocks = [np.ones((1, 2, 40), bool), rng.random((40, 2, 40)) < (2.0 if full else 0.3), np.ones((40, 2, 1), bool)]
    layout = Layout.from_support([blocks[0], blocks[1], blocks[1], blocks[2]])
    p, pi = naive.some_transitions(rng, layout), naive.some_policy(rng, layout)
    lower, upper = naive.some_boxes(rng, layout, p)
    reach = reach_bounds(layout, lower, upper, pi)
    for x in (0, 1, 40, 41, 60, 80, 81, 100, 120):
        assert reach[x] == pytest.approx(naive.reach(layout, lower, upper, pi, x), abs=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_one_state_a_path_and_all_states_agree_bit_for_bit(seed: int) -> None:
    layout, p, lower, upper, pi = some_case(seed)
    index, columns = index_of(layout), make_columns(layout)
    reach = reach_bounds(layout, lower, upper, pi)
    single = [reach_bounds(layout, lower, upper, pi, columns, [x])[0] for x in range(layout.num_decision_states)]
    assert single == reach.tolist()
    rows, _ = naive.some_episode(
        np.random.default_rng(seed), layout, p, naive.some_policy(np.random.default_rng(0), layout)
    )
    path = np.array(rows) // layout.num_actions
    found = reach_bounds(layout, lower, upper, pi, columns, path)
    assert found.tolist() == reach[path].tolist()
    backwards = path[::-1].copy()
    reach_of_states(index, columns, backwards, len(backwards), found)
    assert found.tolist() == reach[backwards].tolist()


def test_columns_keep_nothing_of_what_they_held_before() -> None:
    layout, _, lower, upper, pi = some_case(4)
    columns = make_columns(layout)
    rng = np.random.default_rng(0)
    other = naive.some_policy(rng, layout, zeros=True)
    reach_bounds(layout, *naive.some_boxes(rng, layout, naive.some_transitions(rng, layout)), other, columns)
    again = reach_bounds(layout, lower, upper, pi, columns)
    assert again.tolist() == reach_bounds(layout, lower, upper, pi).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_trivial_boxes_let_every_state_be_reached_surely(seed: int) -> None:
    layout, *_ = some_case(2 * seed)  # full support
    pi = naive.some_policy(np.random.default_rng(seed), layout)
    reach = reach_bounds(layout, np.zeros(layout.num_triples), np.ones(layout.num_triples), pi)
    np.testing.assert_allclose(pi * np.repeat(reach, layout.num_actions), pi, rtol=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_known_transitions_give_the_occupancy_itself(seed: int) -> None:
    layout, p, _, _, pi = some_case(seed)
    u = pi * np.repeat(reach_bounds(layout, p, p, pi), layout.num_actions)
    np.testing.assert_allclose(u, row_occupancy(layout, occupancy(layout, p, pi)), atol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_smaller_boxes_give_smaller_bounds(seed: int) -> None:
    layout, p, lower, upper, pi = some_case(seed)
    half = reach_bounds(layout, (lower + p) / 2, (upper + p) / 2, pi)
    assert (half <= reach_bounds(layout, lower, upper, pi) + TOL).all()


def test_a_state_that_the_policy_cannot_reach_has_bound_zero() -> None:
    """Two actions of x_0 lead to two different states; the second is never played."""
    support = [np.array([[[True, False], [False, True]]]), np.ones((2, 2, 1), bool)]
    layout = Layout.from_support(support)
    pi = np.array([1.0, 0.0, 0.5, 0.5, 0.5, 0.5])
    boxes = np.ones(layout.num_triples)
    assert reach_bounds(layout, boxes, boxes, pi).tolist() == [1.0, 1.0, 0.0]


def test_the_step_before_the_target_has_its_closed_form() -> None:
    """min(hi, 1 - sum of the other lo): once the first term, once the second."""
    layout = Layout((1, 3, 1), num_actions=1)
    lower, upper = np.array([0.1, 0.2, 0.3, 1, 1, 1.0]), np.array([0.2, 0.9, 0.5, 1, 1, 1.0])
    reach = reach_bounds(layout, lower, upper, np.ones(4))
    np.testing.assert_allclose(reach, [1.0, 0.2, 0.6, 0.5], rtol=1e-14)


def test_one_layer() -> None:
    layout = Layout((1, 1), num_actions=3)
    columns = make_columns(layout)
    load_columns(index_of(layout), np.ones(3), np.ones(3), np.array([0.2, 0.0, 0.8]), columns)
    assert reach_bounds(layout, np.ones(3), np.ones(3), np.array([0.2, 0.0, 0.8]), columns).tolist() == [1.0]
