"""Layouts, and what lives on them, for hypothesis: shapes are drawn (and shrunk), numbers come from a drawn seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator

import hedgerow as hr

generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
"""Random numbers."""


@st.composite
def supports(draw: st.DrawFn) -> list[np.ndarray]:
    """Truth values (states, actions, successors) for each layer: every row has a successor, and every state is one."""
    sizes = [1, *draw(st.lists(st.integers(1, 4), max_size=3)), 1]
    actions = draw(st.integers(1, 3))
    blocks = []
    for here, there in pairwise(sizes):
        cells = here * actions * there
        drawn = draw(st.lists(st.booleans(), min_size=cells, max_size=cells))
        block = np.array(drawn).reshape(here * actions, there)
        block[np.arange(here * actions), np.arange(here * actions) % there] = True
        block[np.arange(there) % (here * actions), np.arange(there)] = True
        blocks.append(block.reshape(here, actions, there))
    return blocks


layouts = st.one_of(
    supports().map(hr.Layout.from_support),
    st.builds(
        lambda sizes, actions: hr.Layout((1, *sizes, 1), actions),
        st.lists(st.integers(1, 4), max_size=3),
        st.integers(1, 3),
    ),
)


def random_rows(layout: hr.Layout, rng: Generator) -> np.ndarray:
    """Transitions (num_triples,): a distribution for each row."""
    weights = rng.exponential(size=layout.num_triples) + 1e-3
    return np.asarray(weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple])


def random_policy(layout: hr.Layout, rng: Generator) -> np.ndarray:
    """Action probabilities (num_rows,)."""
    weights = rng.exponential(size=(layout.num_decision_states, layout.num_actions)) + 1e-3
    return np.asarray((weights / weights.sum(axis=1, keepdims=True)).ravel())
