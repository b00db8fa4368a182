"""The oracle has no regret, knows what it was told also after a file, and refuses losses that answer to the learner."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import random_world

import hedgerow as hr
from hedgerow.testing.trial import build, small_worlds

EPISODES = 200


@pytest.mark.parametrize("name", ["random-layered", "dope-factored", "lower-bound-2"])
@pytest.mark.parametrize("losses", [hr.losses.Switching(period=30, seed=3), hr.losses.IID(seed=2), None])
def test_no_regret_and_no_violation(name: str, losses: Any) -> None:
    world = hr.worlds.make(name)
    told = world.loss if losses is None else losses
    learner = hr.field.Oracle(world.view(), EPISODES, world=world, losses=told)
    run = hr.simulate(world, learner, losses, progress=False)
    assert abs(run.regret[-1]) <= 1e-9 * EPISODES
    assert run.violations[-1].max() <= 1e-8 * EPISODES


def test_losses_of_your_own() -> None:
    world = random_world(1)

    def alternating(layout: hr.Layout, first: int, count: int) -> np.ndarray:
        return np.stack([np.full(layout.num_rows, (first + i) % 2) * world.mean_costs[0] for i in range(count)])

    learner = hr.field.Oracle(world.view(), EPISODES, world=world, losses=alternating)
    assert abs(hr.simulate(world, learner, alternating, progress=False).regret[-1]) <= 1e-9 * EPISODES
    mean = 0.5 * world.mean_costs[0]
    np.testing.assert_array_equal(learner.policy, hr.offline.optimum(world, mean).policy)


def test_what_it_cannot_be_told_is_named() -> None:
    world, other = random_world(0), random_world(1)
    for arguments, message in (
        ({"world": world, "losses": hr.losses.Pursuit()}, "those of Pursuit answer to the learner"),
        ({"world": world.view(), "losses": np.zeros(12)}, "needs the world itself, a CMDP"),
        ({"world": other, "losses": np.zeros(12)}, "that of another world"),
        ({"world": world, "losses": np.zeros(5)}, "5"),
        ({"world": world, "losses": 3}, "no adversary"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.field.Oracle(world.view(), 10, **arguments)


def test_a_file_keeps_its_policy(tmp_path: Path) -> None:
    world = random_world(2)
    learner = hr.field.Oracle(world.view(), 10, world=world, losses=hr.losses.IID(seed=5))
    learner.plan()
    hr.save(learner, tmp_path / "oracle.npz")
    for other in (hr.load(tmp_path / "oracle.npz"), copy.copy(learner)):
        assert isinstance(other, hr.field.Oracle)
        assert other.open_plans
        np.testing.assert_array_equal(other.policy, learner.policy)
        np.testing.assert_array_equal(other.open_plans[0].policy.probabilities, learner.policy)
    state = learner.state()
    with pytest.raises(hr.errors.InvalidInput):
        hr.field.Oracle.restored(world.view(), {**state, "own.own_policy": 2.0 * state["own.own_policy"]})


def test_what_it_is_told_is_said() -> None:
    assert str(hr.field.Oracle.inputs) == "T; knows the world and all losses"
    world = random_world(2)
    ledger = hr.field.Oracle(world.view(), 10, world=world, losses=np.zeros(12)).guarantees()
    assert all(promise.holds for promise in ledger)


def test_the_contract_fills_in_what_a_learner_needs() -> None:
    assert hr.check_learner(hr.field.Oracle, episodes=6).ok
    given: dict[str, Any] = {}

    class Needy(hr.field.Uniform):
        def __init__(self, view: hr.View, episodes: int, *, slater: float, world: hr.CMDP, losses: Any) -> None:
            super().__init__(view, episodes)
            given.update(slater=slater, world=world, losses=losses)

    small = small_worlds()[0].cmdp
    build(Needy, small, 5, 0.05, 0, {})
    assert given["slater"] == hr.offline.slater(small).margin
    assert given["world"] is small
    assert given["losses"].block(small.layout, 0, 1).dense().shape == (1, small.layout.num_rows)
    build(Needy, small, 5, 0.05, 0, {"slater": 0.125})
    assert given["slater"] == 0.125
