"""Random layered worlds: exact numbers, stated margin, constraints that bind."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.model.occupancy import backward_induction, evaluate
from hedgerow.planning import offline
from hedgerow.worlds.random import MARGIN, MASS, UNIT

SHAPES = [
    {"layers": (1, 1), "actions": 1, "constraints": 1},
    {"layers": (1, 1, 1, 1), "actions": 3, "constraints": 2},
    {"layers": (1, 3, 3, 1), "actions": 3, "constraints": 1},
    {"layers": (1, 2, 7, 1), "actions": 2, "constraints": 4},
    {"layers": (1, 40, 1), "actions": 2, "constraints": 2},
    {"layers": (1, 5, 5, 1), "actions": 4, "constraints": 0},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0])
def test_numbers_are_exact_and_the_margin_is_kept(shape, tightness):
    for seed in range(8):
        world = worlds.make("random-layered", seed=seed, tightness=tightness, **shape)
        cmdp = world.cmdp
        parts = cmdp.transitions * MASS
        np.testing.assert_array_equal(parts, np.round(parts))
        assert parts.min() >= 1
        np.testing.assert_array_equal(np.add.reduceat(parts, cmdp.layout.row_start[:-1]), MASS)
        for numbers in (world.loss, cmdp.mean_costs, cmdp.thresholds):
            np.testing.assert_array_equal(numbers * UNIT % 1, 0)
        assert offline.slater(cmdp).margin >= MARGIN
        assert np.all(cmdp.thresholds < cmdp.layout.steps)


def test_thresholds_follow_their_formula():
    world = worlds.make("random-layered", tightness=0.25)
    cmdp = world.cmdp
    equal = cmdp.with_thresholds(np.full(2, float(cmdp.layout.steps)))
    c = offline.slater(equal).costs
    u = evaluate(cmdp, backward_induction(cmdp.layout, cmdp.transitions, world.loss).policy).costs
    excess = cmdp.thresholds - (c + np.maximum(MARGIN, 0.75 * (u - c)))
    assert np.all(excess >= -1e-5)
    assert np.all(excess <= 2 / UNIT)


@pytest.mark.parametrize("constraints", [1, 2])
def test_constraints_bind_at_the_default_tightness(constraints):
    for seed in range(20):
        world = worlds.make("random-layered", constraints=constraints, seed=seed)
        best = offline.optimum(world.cmdp, world.loss)
        free = backward_induction(world.cmdp.layout, world.cmdp.transitions, world.loss)
        assert np.any(evaluate(world.cmdp, free.policy).costs > world.cmdp.thresholds + 0.05)
        assert best.value > free.value + 0.05
        assert best.multipliers.sum() > 0.1


def test_both_constraints_bind_in_every_frozen_instance():
    for params in worlds.describe("random-layered").frozen:
        world = worlds.make("random-layered", **params)
        assert np.all(offline.optimum(world.cmdp, world.loss).multipliers > 0.1)


def test_the_tighter_the_dearer():
    values = []
    for tightness in (0.0, 0.25, 0.5, 0.75, 1.0):
        world = worlds.make("random-layered", tightness=tightness)
        values.append(offline.optimum(world.cmdp, world.loss).value)
    free = backward_induction(world.cmdp.layout, world.cmdp.transitions, world.loss).value
    assert np.all(np.diff(values) > 0.01)
    assert values[0] == pytest.approx(free, abs=1e-9)


def test_transitions_are_skewed():
    world = worlds.make("random-layered", layers=(1, *[10] * 9, 1), actions=5)
    inner = np.concatenate(
        [block.reshape(-1, 10) for block in world.cmdp.layout.split_triples(world.cmdp.transitions)[:-1]]
    )
    largest = inner.max(axis=1)
    assert 0.3 < largest.mean() < 0.6  # uniform rows would have 0.1


def test_seeds_differ_and_repeat():
    hashes = [worlds.make("random-layered", seed=seed).hash for seed in (0, 1, 2, 0)]
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
