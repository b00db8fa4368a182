"""Worlds as Gymnasium environments: the checker is silent, the dynamics are those of the world, costs in any vector."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_envs import costly_world

import hedgerow as hr
import hedgerow.gym as hg
from hedgerow.model.occupancy import evaluate


@pytest.mark.parametrize("name", hr.worlds.names())
def test_the_checker_is_silent(name: str) -> None:
    env = gymnasium.make(hg.env_id(name))
    check_env(env.unwrapped)
    world = hr.worlds.make(name)
    assert env.observation_space == gymnasium.spaces.Discrete(world.cmdp.layout.num_states)
    assert env.action_space == gymnasium.spaces.Discrete(world.cmdp.layout.num_actions)
    assert env.unwrapped.cmdp.content_hash == world.cmdp.content_hash  # type: ignore[attr-defined]
    env.close()


def test_the_name_brings_its_module() -> None:
    code = 'import gymnasium; print(gymnasium.make("hedgerow.gym:hedgerow/dope-media-v0").unwrapped.num_constraints)'
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_without_gymnasium_the_error_says_what_to_install() -> None:
    code = 'import sys; sys.modules["gymnasium"] = None; import hedgerow.gym'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("hedgerow.gym needs Gymnasium: pip install 'hedgerow[gym]'")


def test_registering_twice_is_silent_and_parameters_reach_the_builder() -> None:
    hg.register_world("dope-media")
    env = gymnasium.make("hedgerow/random-layered-v0", seed=3)
    other = hr.worlds.make("random-layered", seed=3)
    assert env.unwrapped.cmdp.content_hash == other.cmdp.content_hash  # type: ignore[attr-defined]


def test_an_episode_has_the_steps_losses_and_costs_of_the_world() -> None:
    world, loss = costly_world()
    env = hg.CMDPEnv(world, loss)
    state, info = env.reset(seed=4)
    assert (state, info) == (0, {})
    for k in range(3):
        row = world.layout.row(state, k % 2)
        following, reward, terminated, truncated, info = env.step(k % 2)
        assert reward == -loss[row]
        np.testing.assert_array_equal(info["cost"], world.mean_costs[:, row])
        assert world.layout.layer_of_state[following] == k + 1
        assert (terminated, truncated) == (k == 2, False)
        state = following
    with pytest.raises(hr.errors.InvalidInput, match="call reset"):
        env.step(0)


def test_samples_agree_with_the_expectations() -> None:
    world = hr.worlds.make("dope-factored")
    env, rng = hg.CMDPEnv(world), np.random.default_rng(0)
    totals = []
    env.reset(seed=1)
    for _ in range(1500):
        env.reset()
        total, terminated = np.zeros(2), False
        while not terminated:
            _, reward, terminated, _, info = env.step(int(rng.integers(2)))
            total += [-reward, info["cost"][0]]
        totals.append(total)
    expected = evaluate(world, hr.Policy.uniform(world), world.loss)
    off = np.abs(np.mean(totals, axis=0) - [expected.loss, expected.costs[0]])
    assert (off < 4.5 * np.std(totals, axis=0) / np.sqrt(len(totals))).all()


def test_the_table_is_that_of_the_world() -> None:
    world, loss = costly_world()
    env = hg.CMDPEnv(world, loss)
    unrolled = hg.unroll_gymnasium(env.P, world.layout.steps, env.initial_state_distrib)
    for seed in range(3):
        weights = np.random.default_rng(seed).exponential(size=(world.layout.num_decision_states, 2))
        policy = weights / weights.sum(axis=1, keepdims=True)
        table = np.vstack([policy, [[0.5, 0.5]]])
        again = evaluate(unrolled.cmdp, unrolled.policy(table), unrolled.loss).loss
        assert unrolled.scale is not None
        assert -unrolled.scale.total_reward(again) == pytest.approx(evaluate(world, policy, loss).loss)


def test_rendering_shows_labels() -> None:
    env = gymnasium.make("hedgerow/dope-media-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "now layer 0, state '(0, 0)'"
    env.step(0)
    assert "action 'fast': loss 1, cost [1.0]; now layer 1, state '(1, " in str(env.render())
    assert hg.CMDPEnv(*costly_world()).render() is None


def test_refusals() -> None:
    world, loss = costly_world()
    with pytest.raises(hr.errors.InvalidInput, match="no loss of its own"):
        hg.CMDPEnv(world)
    with pytest.raises(hr.errors.InvalidInput, match="the loss"):
        hg.CMDPEnv(world, loss + 1.0)
    with pytest.raises(hr.errors.InvalidInput, match="render mode is 'human'"):
        hg.CMDPEnv(world, loss, render_mode="human")
    env = hg.CMDPEnv(world, loss)
    with pytest.raises(hr.errors.InvalidInput, match="call reset"):
        env.step(0)
    env.reset()
    for action in (2, -1, 0.5):
        with pytest.raises(hr.errors.InvalidInput, match="the action"):
            env.step(action)
