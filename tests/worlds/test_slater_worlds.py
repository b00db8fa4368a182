"""The chain, the needle and the lock: closed forms, brute force over policies, and the Slater margin that was asked."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline
from hedgerow.worlds.closed_forms import chain_optimum, hidden_actions, lock_optimum

TOL = 1e-7


@pytest.mark.parametrize(("rho", "known"), [(0.5, 3.428571), (0.1, 3.870968), (0.01, 3.986711)])
@pytest.mark.parametrize("name", ["slater-chain", "slater-needle"])
def test_known_optima(name, rho, known):
    world = worlds.make(name, rho=rho)
    assert offline.optimum(world).value == pytest.approx(known, abs=1e-6)
    assert 4 - rho / (1 - (1 - rho) / 4) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("rho", [0.003, 0.2, 0.5])
@pytest.mark.parametrize(
    ("steps", "constraints", "rotated"), [(2, 1, False), (5, 3, False), (7, 3, True), (4, 4, True)]
)
def test_chain_in_closed_form(rho, alpha, steps, constraints, rotated):
    given = {"rho": rho, "alpha": alpha, "steps": steps, "constraints": constraints, "rotated": rotated}
    world = worlds.make("slater-chain", **given)
    assert world.cmdp.num_constraints == constraints
    assert offline.slater(world).margin == pytest.approx(rho, abs=1e-9)
    assert offline.optimum(world).value == pytest.approx(chain_optimum(**given), abs=TOL)
    if not rotated:
        assert chain_optimum(**given) == pytest.approx(steps - rho / (1 - (alpha - rho) / steps), abs=1e-12)
    baseline = offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    assert np.min(world.cmdp.thresholds - baseline.costs) == pytest.approx(rho / 2, abs=1e-9)


def test_rotated_constraints_may_have_more_room_than_layers():
    """Two steps, each with its own constraint and a budget of 2: risky in both costs 1 + c <= 2."""
    given = {"rho": 1.9, "alpha": 2.0, "steps": 2, "constraints": 2, "rotated": True}
    assert chain_optimum(**given) == 0.0
    assert offline.optimum(worlds.make("slater-chain", **given)).value == pytest.approx(0.0, abs=TOL)


@pytest.mark.parametrize(("actions", "seed", "steps"), [(2, 0, 3), (5, 1, 6), (30, 2, 4)])
def test_needle_has_one_safe_action_per_layer_and_it_moves(actions, seed, steps):
    world = worlds.make("slater-needle", actions=actions, seed=seed, steps=steps, rho=0.25)
    costs = world.cmdp.mean_costs[0].reshape(steps, actions)
    assert (costs < 1).sum(axis=1).tolist() == [1] * steps
    needles = costs.argmin(axis=1)
    assert np.all(needles[1:] != needles[:-1])
    assert world.loss.reshape(steps, actions)[np.arange(steps), needles].tolist() == [1.0] * steps
    assert world.loss.sum() == steps
    assert offline.slater(world).margin == pytest.approx(0.25, abs=1e-9)
    assert offline.optimum(world).value == pytest.approx(chain_optimum(0.25, steps), abs=TOL)


def test_hidden_actions_depend_on_the_seed_and_use_all_actions():
    drawn = np.array([hidden_actions(6, 4, seed) for seed in range(200)])
    assert np.all(drawn[:, 1:] != drawn[:, :-1])
    for k in range(6):
        assert np.bincount(drawn[:, k], minlength=4).min() > 20
    np.testing.assert_array_equal(hidden_actions(6, 4, 7), drawn[7])


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_lock_by_brute_force(steps):
    """All deterministic policies; with one constraint the optimum is a coin between at most two of them."""
    world = worlds.make("lock", steps=steps, actions=2, seed=3)
    states, alpha = world.cmdp.layout.num_decision_states, float(world.cmdp.thresholds[0])
    points = []
    for choice in product(range(2), repeat=states):
        found = evaluate(world.cmdp, np.eye(2)[list(choice)].ravel(), world.loss)
        points.append((found.costs[0], world.source_value(found.loss)))
    points = sorted(set(points))
    safe = max(reward for cost, reward in points if cost <= alpha)
    mixed = [
        low[1] + (alpha - low[0]) / (high[0] - low[0]) * (high[1] - low[1])
        for low in points
        for high in points
        if low[0] <= alpha < high[0]
    ]
    brute = max([safe, *mixed])
    assert brute == pytest.approx(lock_optimum(steps), abs=1e-12)
    assert world.source_value(offline.optimum(world).value) == pytest.approx(brute, abs=TOL)


@pytest.mark.parametrize("steps", [2, 4, 5, 6, 8, 12])
def test_lock_in_closed_form_and_when_it_is_a_control(steps):
    world = worlds.make("lock", steps=steps, actions=3)
    assert world.source_value(offline.optimum(world).value) == pytest.approx(lock_optimum(steps), abs=TOL)
    assert offline.slater(world).margin == pytest.approx(steps - 1, abs=1e-8)
    full = (1 - 0.9**steps) / 0.1  # what always right costs
    assert (lock_optimum(steps) < 0.9**steps - 1e-12) == (full > steps - 1) == (steps <= 5)
    assert world.cmdp.layout.num_states == 2 * steps


def test_only_the_right_actions_open_the_lock_and_each_costs():
    world = worlds.make("lock", steps=3, actions=4, seed=1)
    right = hidden_actions(3, 4, 1)
    layout = world.cmdp.layout
    policy = np.zeros(layout.num_rows)
    for x in range(layout.num_decision_states):
        policy[layout.row(x, int(right[layout.layer_of_state[x]]))] = 1.0
    found = evaluate(world.cmdp, policy, world.loss)
    assert world.source_value(found.loss) == pytest.approx(0.9**3)
    assert found.costs[0] == pytest.approx(3.0)  # off, right is as dear, and useless
    policy[layout.rows(0)] = np.eye(4)[(right[0] + 1) % 4]
    assert world.source_value(evaluate(world.cmdp, policy, world.loss).loss) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("slater-chain", {"rho": 0.0}, "slater-chain: rho is 0; a Slater margin lies above 0 and is at most alpha = 1"),
        ("slater-chain", {"rho": 1.5}, "slater-chain: rho is 1.5; a Slater margin lies above 0"),
        ("slater-chain", {"steps": 0}, "slater-chain: steps is 0; it must be at least 1"),
        ("slater-chain", {"alpha": 5.0}, r"slater-chain: alpha is 5.0; it must lie in \[0, 4\]"),
        ("slater-chain", {"constraints": 0}, "slater-chain: constraints is 0; it must be at least 1"),
        ("slater-chain", {"constraints": 5, "rotated": True}, "slater-chain: constraints is 5; it must be at most 4"),
        ("slater-needle", {"actions": 1}, "slater-needle: actions is 1; it must be at least 2"),
        ("slater-needle", {"rho": float("nan")}, "slater-needle: rho is nan"),
        ("lock", {"steps": 1}, "lock: steps is 1; it must be at least 2"),
        ("lock", {"actions": 1}, "lock: actions is 1; it must be at least 2"),
    ],
)
def test_bad_input(name, params, message):
    with pytest.raises(InvalidInput, match=message):
        worlds.make(name, **params)
