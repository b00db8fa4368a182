"""Learners that learn nothing: compiled and step-wise runs have the same bits, also where an input is refuted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, random_world, scores

import hedgerow as hr
from hedgerow.errors import HedgerowError, InvalidInput

EPISODES = 150
KINDS = ("always-baseline", "uniform", "oracle")


def adversaries(world: hr.CMDP) -> dict[str, Any]:
    return {
        "switching": hr.losses.Switching(period=5, seed=1),
        "pursuit": hr.losses.Pursuit(),
        "fixed": np.random.default_rng(0).random(world.layout.num_rows),
    }


def made(kind: str, world: Any, losses: Any, episodes: int = EPISODES) -> Any:
    if kind == "always-baseline":
        return hr.field.AlwaysBaseline(world, episodes, baseline=hr.offline.slater(world))
    return hr.field.Uniform(world, episodes) if kind == "uniform" else hr.field.Oracle(world, episodes, losses=losses)


def both_ways(world: Any, learners: list[Any], losses: Any) -> list[hr.Run]:
    return [
        hr.simulate(world, learner, losses, seed=7, progress=False, step_wise=step_wise, marks="all")
        for learner, step_wise in zip(learners, (False, True), strict=True)
    ]


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_and_step_wise_runs_have_the_same_bits(kind: str, m: int) -> None:
    world = random_world(2, m=m)
    for name, losses in adversaries(world).items():
        if kind == "oracle" and name == "pursuit":  # which answers to the learner: no oracle knows it
            continue
        learners = [made(kind, world, losses) for _ in range(2)]
        runs = both_ways(world, learners, losses)
        assert [run.way for run in runs] == ["compiled", "step-wise"], name
        assert_same(*map(scores, runs))
        assert_same(*(learner.state() for learner in learners))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_in_the_middle_changes_nothing(kind: str, tmp_path: Path) -> None:
    world, losses = random_world(4, m=2), hr.losses.Switching(period=3)
    straight, broken = made(kind, world, losses, 90), made(kind, world, losses, 90)
    for learner in (straight, broken):
        hr.simulate(world, learner, losses, seed=1, progress=False, episodes=45)
    hr.save(broken, tmp_path / "learner")
    runs = [
        hr.simulate(world, learner, losses, seed=2, progress=False)
        for learner in (straight, hr.load(tmp_path / "learner"))
    ]
    assert_same(*map(scores, runs))


def test_a_refuted_baseline_is_announced_in_the_same_episode() -> None:
    """It is said to cost nothing, and costs something."""
    world = random_world(5, m=1)
    safe, words = hr.offline.slater(world), []
    learners = [
        hr.field.AlwaysBaseline(world, 400, baseline=safe.policy, baseline_costs=[0.1 * float(safe.costs[0])])
        for _ in range(2)
    ]
    for learner, step_wise in zip(learners, (False, True), strict=True):
        with warnings.catch_warnings(record=True, action="always") as found:
            hr.simulate(world, learner, "iid", seed=7, progress=False, step_wise=step_wise)
        words.append([str(warning.message) for warning in found])
    assert len(words[0]) == 1
    assert words[0] == words[1]
    assert_same(*(learner.state() for learner in learners))


def test_an_impossible_episode_is_refused_in_the_same_episode() -> None:
    world = random_world(6, m=1)
    view = world.view().knowing(max_episode_cost=[1.0])  # an episode of three steps can cost more
    found = []
    for step_wise in (False, True):
        learner = hr.field.Uniform(view, EPISODES)
        with pytest.raises(HedgerowError) as error:
            hr.simulate(world, learner, "iid", seed=7, progress=False, step_wise=step_wise)
        found.append((learner.episode, str(error.value)))
    assert found[0] == found[1]
    assert found[0][0] < EPISODES


def test_the_oracle_of_a_gymnasium_world() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from hedgerow.gym import GymWorld

    lake = gymnasium.make("FrozenLake-v1", success_rate=0.9)
    world = GymWorld(lake, steps=4, rewards=(0, 1), scored="exact")
    oracle = hr.field.Oracle(world, 5)
    assert hr.simulate(world, oracle, progress=False).regret[-1] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InvalidInput, match="the oracle needs the world itself"):
        hr.field.Oracle(GymWorld(lake, steps=4, rewards=(0, 1)), 5)
