"""Layouts: flat arrays and arrays per layer say the same, in both directions, whatever the support."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from numpy.random import Generator
from strategies import generators, layouts, supports

import hedgerow as hr


@given(layouts, generators)
def test_rows_survive_splitting_and_joining(layout: hr.Layout, rng: Generator) -> None:
    flat = rng.normal(size=layout.num_rows)
    blocks = layout.split_rows(flat)
    assert [block.shape for block in blocks] == [(size, layout.num_actions) for size in layout.layer_sizes[:-1]]
    np.testing.assert_array_equal(layout.join_rows(blocks), flat)


@given(layouts, generators)
def test_triples_survive_splitting_and_joining(layout: hr.Layout, rng: Generator) -> None:
    flat = rng.normal(size=layout.num_triples)
    blocks = layout.split_triples(flat, outside=0.0)
    np.testing.assert_array_equal(layout.join_triples(blocks), flat)
    again = layout.split_triples(layout.join_triples(blocks))
    for one, other in zip(blocks, again, strict=True):
        np.testing.assert_array_equal(one, other)


@given(layouts, generators)
def test_a_triple_stands_where_its_state_action_and_successor_say(layout: hr.Layout, rng: Generator) -> None:
    flat = rng.normal(size=layout.num_triples)
    blocks = layout.split_triples(flat, outside=np.nan)
    seen = 0
    for triple, value in enumerate(flat):
        row = int(np.searchsorted(layout.row_start, triple, side="right")) - 1
        state, action = divmod(row, layout.num_actions)
        layer = int(np.searchsorted(layout.state_start, state, side="right")) - 1
        target = layout.successor[triple] - layout.state_start[layer + 1]
        assert blocks[layer][state - layout.state_start[layer], action, target] == value
        seen += 1
    assert sum(np.isfinite(block).sum() for block in blocks) == seen == layout.num_triples


@given(supports())
def test_a_support_comes_back_from_its_layout(support: list[np.ndarray]) -> None:
    layout = hr.Layout.from_support(support)
    blocks = layout.split_triples(np.ones(layout.num_triples))
    for given_block, found in zip(support, blocks, strict=True):
        np.testing.assert_array_equal(found == 1.0, given_block)
    again = hr.Layout.from_support([block != 0.0 for block in blocks])
    assert again == layout
    assert hash(again) == hash(layout)
    assert layout.is_full == all(block.all() for block in support)


@given(supports(), generators)
def test_what_is_outside_the_support_is_refused(support: list[np.ndarray], rng: Generator) -> None:
    layout = hr.Layout.from_support(support)
    blocks = layout.split_triples(rng.random(layout.num_triples) + 0.5)
    for block, allowed in zip(blocks, support, strict=True):
        for place in np.argwhere(~allowed)[:1]:
            block[tuple(place)] = 0.25
            with pytest.raises(hr.errors.InvalidInput, match="not in the support"):
                layout.join_triples(blocks)
            block[tuple(place)] = 0.0


@given(layouts)
def test_names_lead_to_their_numbers(layout: hr.Layout) -> None:
    states, actions = [f"s{x}" for x in range(layout.num_states)], [f"a{a}" for a in range(layout.num_actions)]
    named = layout.labelled(states, actions)
    assert named == layout
    for x in range(layout.num_decision_states):
        for a in range(layout.num_actions):
            assert named.row(f"s{x}", f"a{a}") == named.row(x, a) == layout.row(x, a) == x * layout.num_actions + a
