"""Caps against a linear program for each state, and bounds of long worlds against the whole passes of COMP-UOB."""

from __future__ import annotations

import naive_estimates as naive
import numpy as np
import pytest

from hedgerow.confidence.bounds import WINDOW, fill_caps, load_columns, make_columns, reach_of_states, reach_within
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, state_occupancy

Case = tuple[Layout, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
TOL = 1e-12


def some_case(seed: int, layout: Layout | None = None) -> Case:
    """Layout, transitions, boxes around them, policy."""
    rng = np.random.default_rng(seed)
    layout = layout or naive.some_layout(rng, full=seed % 2 == 0, largest=4)
    p = naive.some_transitions(rng, layout)
    return layout, p, *naive.some_boxes(rng, layout, p), naive.some_policy(rng, layout, zeros=seed % 3 == 0)


def bounds(case: Case, window: int) -> np.ndarray:
    layout, _, lower, upper, pi = case
    columns, reach = make_columns(layout), np.full(layout.num_decision_states, np.nan)
    load_columns(index_of(layout), lower, upper, pi, columns)
    reach_within(index_of(layout), columns, columns.states, len(reach), window, reach)
    return reach


@pytest.mark.parametrize("seed", range(12))
def test_caps_are_those_of_the_linear_programs(seed: int) -> None:
    layout, p, lower, upper, pi = some_case(seed)
    columns = make_columns(layout)
    load_columns(index_of(layout), lower, upper, pi, columns)
    columns.caps[:] = np.nan
    fill_caps(index_of(layout), columns, layout.steps)
    np.testing.assert_allclose(columns.caps, naive.caps(layout, lower, upper, pi), atol=1e-9)
    assert (columns.caps[:-1] >= state_occupancy(layout, occupancy(layout, p, pi)) - TOL).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_shorter_pass_gives_a_larger_bound_that_a_longer_one_improves(seed: int, window: int) -> None:
    case = some_case(seed)
    whole, short, longer = (bounds(case, layers) for layers in (WINDOW, window, window + 1))
    assert (short >= whole - TOL).all()
    assert (longer <= short + TOL).all()
    shallow = case[0].layer_of_state[: len(whole)] <= window
    assert short[shallow].tolist() == whole[shallow].tolist()


def test_wide_layers_have_bounds_that_differ() -> None:
    """Else the tests above would compare equal numbers."""
    case = some_case(0, Layout((1, 4, 4, 4, 1), num_actions=2))
    assert np.max(bounds(case, 1) - bounds(case, WINDOW)) > 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_two_states_in_a_layer_need_no_longer_pass(seed: int) -> None:
    case = some_case(seed, Layout((1, *[2] * 6, 1), num_actions=2))
    np.testing.assert_allclose(bounds(case, 1), bounds(case, WINDOW), atol=TOL)


@pytest.mark.parametrize("window", [1, 3])
def test_known_transitions_need_no_longer_pass(window: int) -> None:
    layout, p, _, _, pi = some_case(4)
    expected = state_occupancy(layout, occupancy(layout, p, pi))
    np.testing.assert_allclose(bounds((layout, p, p, p, pi), window), expected, atol=TOL)


def test_a_long_world_has_the_bounds_of_whole_passes_where_layers_are_narrow() -> None:
    layout = Layout((1, *[2] * (WINDOW + 20), 1), num_actions=2)
    layout, _, lower, upper, pi = some_case(1, layout)
    columns, targets = make_columns(layout), np.array([5, 2 * WINDOW + 3, layout.num_states - 2])
    load_columns(index_of(layout), lower, upper, pi, columns)
    reach = np.zeros(3)
    reach_of_states(index_of(layout), columns, targets, 3, reach)
    expected = [naive.reach(layout, lower, upper, pi, int(x)) for x in targets]
    np.testing.assert_allclose(reach, expected, atol=TOL)
