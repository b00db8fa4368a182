"""The small worlds that learners are checked on: one step, no constraint, three constraints, a sparse support."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline

MARGIN = 0.25
"""Between the thresholds and the least costs: every world has a strictly safe policy."""


class SmallWorld(NamedTuple):
    """A world and what it is there for."""

    name: str
    cmdp: CMDP


def small_worlds() -> tuple[SmallWorld, ...]:
    """All of them, the same in every process, and new ones in every call: learners that are checked may damage them."""
    # Each has a layout of its own: a learner that damages one must not damage the others.
    plain = [Layout((1, 3, 2, 1), 2) for _ in range(3)]
    short, thin = Layout((1, 1), 3), _sparse_layout()
    return (
        SmallWorld("m = 1", _world(1, plain[0], 1)),
        SmallWorld("m = 0", _world(2, plain[1], 0)),
        SmallWorld("m = 3", _world(3, plain[2], 3)),
        SmallWorld("L = 1", _world(4, short, 1)),
        SmallWorld("sparse", _world(5, thin, 1)),
    )


def _world(seed: int, layout: Layout, m: int) -> CMDP:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 8, layout.num_triples).astype(np.float64)
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = BernoulliCosts(rng.integers(1, 16, (m, layout.num_rows)) / 16.0)
    free = CMDP(layout, transitions, costs, np.full(m, float(layout.steps)))
    least = offline.slater(free).costs if m else np.zeros(0)
    return free.with_thresholds(np.minimum(least + MARGIN, layout.steps))


def _sparse_layout() -> Layout:
    """Some rows with one successor, some with two, none with all three."""
    first = np.array([[[1, 1, 0], [0, 1, 1]]], dtype=bool)
    second = np.array([[[1, 0], [0, 1]], [[1, 1], [1, 0]], [[0, 1], [1, 1]]], dtype=bool)
    return Layout.from_support([first, second, np.ones((2, 2, 1), dtype=bool)])
