"""A path of the original process is fed back to a learner of the unrolled world."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.importers.gym_table import unroll_gymnasium

SWAP_OR_STAY = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
COSTS = [[[0.0, 1.0], [0.5, 0.5]]]


def test_a_path_of_states_and_actions() -> None:
    world = hr.unroll(SWAP_OR_STAY, horizon=3, start=0, loss=[[0.5, 1.0], [0.0, 1.0]], costs=COSTS, thresholds=[1.0])
    learner = hr.SVOPS(world.cmdp.view(), 100, 0.1, "paper")
    learner.plan()
    episode = world.episode([0, 1, 1], [1, 0, 1], [1.0, 0.0, 1.0], [1.0, 0.5, 0.5])
    names = [world.cmdp.layout.describe_row(int(row)) for row in episode.rows]
    assert names == [
        "layer 0, state '(0, 0)', action 1",
        "layer 1, state '(1, 1)', action 0",
        "layer 2, state '(2, 1)', action 1",
    ]
    learner.observe(episode)
    assert learner.core.state.counts.num_visits[episode.rows].tolist() == [1, 1, 1]
    with pytest.raises(hr.errors.InvalidInput, match="state 1 is not possible before step 0"):
        world.episode([1, 1, 1], [0, 0, 0], np.zeros(3), np.zeros(3))
    with pytest.raises(hr.errors.InvalidInput, match="4 actions and 4 states"):
        world.episode([0, 0, 0, 0], [0, 0, 0, 0], np.zeros(4), np.zeros(4))
    with pytest.raises(hr.errors.InvalidInput, match="no path"):
        world.episode([0, 1, 1], [0, 0, 0], np.zeros(3), np.zeros(3))


def test_an_aborted_path_teaches_the_confidence_sets() -> None:
    world = hr.unroll(SWAP_OR_STAY, horizon=3, start=[0.5, 0.5], loss=[[0.5, 1.0], [0.0, 1.0]], support="full")
    learner = hr.SVOPS(world.cmdp.view(), 100, 0.1, "paper")
    before = np.array(learner.policy)
    learner.plan()
    episode = world.episode([1, 1, 0], [0, 1], [0.0, 1.0])
    assert not episode.complete
    assert len(episode.rows) == 3  # the root, and two steps
    learner.observe(episode)
    counts = learner.core.state.counts
    assert counts.num_visits.sum() == 3
    np.testing.assert_array_equal(learner.core.buffers.trace.estimate, np.zeros(4))  # its losses say nothing
    assert np.allclose(before, learner.policy, atol=0.05)
    with pytest.raises(hr.errors.InvalidInput, match="2 actions and 2 states"):
        world.episode([1, 1], [0, 1], [0.0, 1.0])


def test_a_table_whose_process_ends() -> None:
    P = {
        0: {0: [(1.0, 1, 1.0, True)], 1: [(1.0, 0, 0.0, False)]},
        1: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 1, 0.0, False)]},
    }
    world = unroll_gymnasium(P, horizon=3, start=0)
    learner = hr.SVOPS(world.cmdp.view(), 100, 0.1, "paper")
    learner.plan()
    episode = world.episode([0, 0, 1], [1, 0], [1.0, 0.0], ended=True)
    assert episode.complete
    labels = world.cmdp.state_labels
    assert labels is not None
    assert labels[episode.rows[-1] // 2] == "(2, 1 ended)"
    assert episode.losses[-1] == world.loss[episode.rows[-1]]
    learner.observe(episode)
