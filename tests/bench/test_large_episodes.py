"""Worlds of any size: sparse layouts on rings, and learners that are told what they would have seen."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from bench import inside
from bench.large_episodes import VISITS, ring_world, whole_episode
from bench.mirror_steps import Size, mirror_step
from hedgerow.forecast.preflight import num_bytes
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.simulation.run import Simulation

SPARSE = Size((1, *[7] * 4, 1), 3, 2, 4)


def test_rows_of_a_ring_lead_to_neighbours() -> None:
    layout = SPARSE.layout
    inner = slice(layout.rows(1).start, layout.rows(3).stop)
    assert (np.diff(layout.row_start)[inner] == 4).all()
    assert (np.diff(layout.row_start)[layout.rows(0)] == 7).all()
    assert (np.diff(layout.row_start)[layout.rows(4)] == 1).all()
    first = layout.state_start[2]
    for x, a in ((0, 0), (2, 1), (6, 2)):
        row = (layout.state_start[1] + x) * 3 + a
        found = layout.successor[layout.row_start[row] : layout.row_start[row + 1]] - first
        assert set(found.tolist()) == {(x + a + step) % 7 for step in range(4)}
    assert SPARSE.label == "(1,7^4,1)x3 to 4, m=2"
    assert mirror_step(SPARSE, 0).layout is layout


@pytest.mark.parametrize("size", [SPARSE, Size((1, 4, 4, 1), 3, 1)])
def test_a_told_learner_knows_the_world(size: Size) -> None:
    world, loss = ring_world(size, 0)
    learner, layout = SVOPS(world.view(), 1_000, 0.01, "sharp"), size.layout
    inside.tell(learner, world, VISITS)
    state = learner.core.state
    assert (state.counts.num_visits == VISITS).all()
    np.testing.assert_array_equal(np.add.reduceat(state.counts.num_moves, layout.row_start[:-1]), VISITS)
    boxes = state.boxes
    assert (boxes.lower <= world.transitions + 1e-3).all()
    assert (boxes.upper >= world.transitions - 1e-3).all()
    has_choice = (np.diff(layout.row_start) > 1)[layout.row_of_triple]
    assert np.mean((boxes.upper - boxes.lower)[has_choice]) < 0.25
    # What the kernels work on follows from the state.
    np.testing.assert_array_equal(
        learner.core.buffers.problem.costs, boxes.cost_lower[:, learner.core.baseline.binding]
    )
    Simulation(world, learner, loss, 0).advance(20)
    assert learner.diagnostics["infeasible"] == 0


def test_an_episode_is_timed() -> None:
    seconds, memory = whole_episode(Size((1, 3, 3, 1), 2, 1), 0)
    assert 0.0 < seconds < inf
    assert memory > 8.0
    assert num_bytes((np.zeros(2), ((), np.zeros(1)))) == 24
