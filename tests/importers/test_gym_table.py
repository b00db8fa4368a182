"""Tables of gymnasium's form: rewards and costs of every policy survive, as a recursion on the table says."""

import time
import warnings
from functools import cache

import numpy as np
import pytest

from hedgerow.errors import InvalidInput
from hedgerow.importers.gym_table import unroll_gymnasium
from hedgerow.model.occupancy import backward_induction, evaluate

# From 0 the first action may end the process in 1 or step into 1, which goes on; state 2 offers one action only.
TABLE = {
    0: {
        0: [(0.25, 0, -1.0, False), (0.25, 1, 4.0, False), (0.25, 1, 2.0, True), (0.25, 0, -2.0, False)],
        1: [(1.0, 2, 0.5, False)],
    },
    1: {0: [(0.5, 1, 1.0, True), (0.5, 0, -3.0, False)], 1: [(1.0, 0, 0.0, False)]},
    2: {1: [(1.0, 2, -1.0, True)]},
}


def naive_reward(P, table, start):
    """Expected reward of action probabilities (H, S, A), by recursion: nothing follows a terminated step."""
    value = np.zeros(len(P))
    for k in reversed(range(len(table))):
        value = np.array([
            sum(
                table[k, s, a] * p * (r + (0.0 if done else value[target]))
                for a, outcomes in P[s].items()
                for p, target, r, done in outcomes
            )
            for s in range(len(P))
        ])  # fmt: skip
    return float(np.asarray(start) @ value)


def naive_cost(P, table, cost, start):
    """The same for a cost (S, A): each step taken before the end is paid for."""
    paid = {
        s: {a: [(p, target, cost[s, a], done) for p, target, _, done in outcomes] for a, outcomes in P[s].items()}
        for s in P
    }
    return naive_reward(paid, table, start)


def tables_over_offered_actions(P, num_actions, horizon, rng):
    """Random action probabilities (H, S, A) that put nothing on actions the table lacks."""
    weights = rng.exponential(size=(horizon, len(P), num_actions))
    for s in P:
        weights[:, s, [a for a in range(num_actions) if a not in P[s]]] = 0.0
    return weights / weights.sum(axis=2, keepdims=True)


def check_values(P, num_actions, horizon, start, tol, repeats=3, **options):
    rng = np.random.default_rng(29)
    cost = rng.random((len(P), num_actions))
    world = unroll_gymnasium(P, horizon, start, costs=cost[None], thresholds=[1.0], **options)
    assert ((world.loss >= 0) & (world.loss <= 1)).all()
    distribution = np.eye(len(P))[start] if np.ndim(start) == 0 else start
    for _ in range(repeats):
        table = tables_over_offered_actions(P, num_actions, horizon, rng)
        found = evaluate(world.cmdp, world.policy(table), world.loss)
        reward = naive_reward(P, table, distribution)
        assert world.scale.total_reward(found.loss) == pytest.approx(reward, abs=tol)
        assert world.scale.total_loss(reward) == pytest.approx(found.loss, abs=tol)
        assert found.costs[0] == pytest.approx(naive_cost(P, table, cost, distribution), abs=tol)
    return world


@pytest.mark.parametrize("support", ["known", "full"])
@pytest.mark.parametrize("start", [0, 2, (0.5, 0.25, 0.25)])
@pytest.mark.parametrize(
    "shift", [0.0, 10.0, -10.0]
)  # all rewards positive, or all negative: the ended 0 is an extreme
def test_rewards_convert_back_exactly(support, start, shift):
    P = {s: {a: [(p, target, r + shift, done) for p, target, r, done in TABLE[s][a]] for a in TABLE[s]} for s in TABLE}
    world = check_values(P, 2, 5, start, 1e-12, repeats=10, support=support)
    ended = world.is_copy.nonzero()[0]
    np.testing.assert_allclose(world.loss.reshape(-1, 2)[ended], world.scale.best / world.scale.width)
    if shift:
        assert (world.scale.best if shift < 0 else world.scale.best - world.scale.width) == 0.0


def test_ended_copies_are_labelled_and_apart_from_the_state_they_copy():
    world = unroll_gymnasium(TABLE, 3, 0, state_names=["home", "shop", "park"])
    labels = world.cmdp.state_labels
    assert "(1, shop)" in labels
    assert "(1, shop ended)" in labels
    copy = labels.index("(1, shop ended)")
    assert (world.state_of[copy], bool(world.is_copy[copy])) == (1, True)
    original = labels.index("(1, shop)")
    assert (world.state_of[original], bool(world.is_copy[original])) == (1, False)
    assert world.num_original_states == 3


def test_repeated_successors_are_added():
    world = unroll_gymnasium(TABLE, 2, 0)
    first = world.cmdp.layout.split_triples(world.cmdp.transitions)[0]
    assert world.state_of[1:5].tolist() == [0, 1, 2, 1]
    np.testing.assert_allclose(first[0, 0], [0.5, 0.25, 0.0, 0.25])


def test_a_missing_action_is_an_alias():
    world = unroll_gymnasium(TABLE, 2, 2)
    assert world.action_of[:2].tolist() == [1, 1]


def test_policy_tables_come_back_without_the_copies():
    table = tables_over_offered_actions(TABLE, 2, 4, np.random.default_rng(2))
    world = unroll_gymnasium(TABLE, 4, [0.25, 0.5, 0.25])
    back = world.table(world.policy(table))
    assert back.shape == (4, 3, 2)
    np.testing.assert_allclose(back[0], table[0], atol=1e-15)
    reached = {
        (k, s) for k, s, copy in zip(world.step_of, world.state_of, world.is_copy, strict=True) if s >= 0 and not copy
    }
    for k, s in reached:
        np.testing.assert_allclose(back[k, s], table[k, s], atol=1e-15)


def test_costs_may_differ_between_steps():
    costs = np.random.default_rng(3).random((1, 4, 3, 2))
    world = unroll_gymnasium(TABLE, 4, 0, costs=costs, thresholds=[2.0])
    table = tables_over_offered_actions(TABLE, 2, 4, np.random.default_rng(4))
    mass, expected = np.eye(3)[0], 0.0
    for k in range(4):
        moved = np.zeros(3)
        for s in TABLE:
            for a, outcomes in TABLE[s].items():
                weight = mass[s] * table[k, s, a]
                expected += weight * costs[0, k, s, a]
                for p, target, _, done in outcomes:
                    moved[target] += 0.0 if done else weight * p
        mass = moved
    assert evaluate(world.cmdp, world.policy(table)).costs[0] == pytest.approx(expected, abs=1e-12)


def test_equal_rewards_have_no_loss():
    world = unroll_gymnasium({0: {0: [(1.0, 0, 3.0, False)]}}, 4, 0)
    assert world.scale.total_reward(evaluate(world.cmdp, np.ones(4), world.loss).loss) == 12.0
    np.testing.assert_array_equal(world.loss, 0.0)


def test_lists_serve_as_tables():
    world = unroll_gymnasium([[[(1.0, 0, 1.0, False)], [(1.0, 0, 0.0, False)]]], 2, 0)
    assert world.loss.tolist() == [0.0, 1.0, 0.0, 1.0]


GOOD = [(1.0, 0, 0.0, False)]
BAD = {
    "empty": ({}, {}, "non-empty mapping"),
    "not a table": (3, {}, "non-empty mapping"),
    "gap": ({0: {0: GOOD}, 2: {0: GOOD}}, {}, "has 2 entries but none for 1"),
    "text key": ({"a": {0: GOOD}}, {}, "index of the table must be a whole number"),
    "no action": ({0: {}}, {}, "table of state 0 must be a non-empty mapping"),
    "no outcome": ({0: {0: GOOD, 1: []}}, {}, "state 0, action 1 lists no outcomes"),
    "short outcome": ({0: {0: [(1.0, 0, 0.0)]}}, {}, r"expected \(probability, next state, reward, terminated\)"),
    "successor": ({0: {0: [(1.0, 1, 0.0, False)]}}, {}, "state 0, action 0 leads to state 1"),
    "fractional successor": ({0: {0: [(1.0, 0.5, 0.0, False)]}}, {}, "next state must be a whole number"),
    "negative": ({0: {0: [(1.5, 0, 0.0, False), (-0.5, 0, 0.0, False)]}}, {}, "probability is 1.5; it must lie in"),
    "sum": ({0: {0: [(0.5, 0, 0.0, False)]}}, {}, "transitions of state 0, action 0 sum to 0.5"),
    "NaN": ({0: {0: [(np.nan, 0, 0.0, False)]}}, {}, "probability is nan"),
    "reward": ({0: {0: [(1.0, 0, np.inf, False)]}}, {}, "reward is inf"),
    "terminated": ({0: {0: [(1.0, 0, 0.0, 2)]}}, {}, "terminated must be True or False, not 2"),
    "start": (TABLE, {"start": [0.5, 0.5]}, r"start probability has shape \(2,\), expected \(3,\)"),
    "start in a copy": (TABLE, {"start": 3}, "start state is 3; the states are numbered 0 to 2"),
    "horizon": (TABLE, {"horizon": 0}, "horizon is 0"),
    "cost states": (TABLE, {"costs": np.ones((1, 2, 2)), "thresholds": [1]}, "axis of states, .* must have length 3"),
    "cost axes": (TABLE, {"costs": np.ones(3), "thresholds": [1]}, r"costs have shape \(3,\)"),
    "ragged costs": (TABLE, {"costs": [[[1.0], [1.0, 2.0]]], "thresholds": [1]}, "costs must be an array of numbers"),
    "names": (TABLE, {"state_names": ["a", "b"]}, "state names: 2 given, 3 needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named(case):
    P, change, message = BAD[case]
    arguments = {"horizon": 3, "start": 0} | change
    with pytest.raises(InvalidInput, match=message):
        unroll_gymnasium(P, **arguments)


@cache
def environment(name, **options):
    """The newest version of one of gymnasium's environments; what the package warns about itself is not our matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gymnasium = pytest.importorskip("gymnasium")
        versions = [spec.version for spec in gymnasium.registry.values() if spec.name == name]
        return gymnasium.make(f"{name}-v{max(versions)}", **options).unwrapped


def test_frozen_lake_stays_sparse_and_is_quick():
    P = environment("FrozenLake8x8", is_slippery=True).P
    begin = time.process_time()
    world = unroll_gymnasium(P, 50, 0)
    assert time.process_time() - begin < 1.0  # about 0.02 s
    layout = world.cmdp.layout
    assert (layout.num_states, layout.num_rows, layout.num_triples) == (2745, 10976, 28614)
    assert layout.num_dense_triples == 662_476
    # The best chance to reach the goal, by backward induction on the table itself.
    value = np.zeros(64)
    for _ in range(50):
        value = np.array([
            max(sum(p * (r + (0.0 if done else value[y])) for p, y, r, done in P[s][a]) for a in range(4))
            for s in range(64)
        ])  # fmt: skip
    best = backward_induction(layout, world.cmdp.transitions, world.loss).value
    assert world.scale.total_reward(best) == pytest.approx(value[0], abs=1e-12)


def test_frozen_lake_values():
    env = environment("FrozenLake8x8", is_slippery=True)
    check_values(env.P, 4, 50, 0, 1e-12)
    check_values(env.P, 4, 6, env.initial_state_distrib, 1e-12, support="full")


@pytest.mark.parametrize("is_slippery", [False, True])
def test_cliff_walking_values(is_slippery):
    try:
        env = environment("CliffWalking", is_slippery=is_slippery)
    except TypeError:
        pytest.skip("this release of gymnasium has no slippery cliff")
    world = check_values(env.P, 4, 15, env.initial_state_distrib, 1e-10)  # rewards down to -100
    assert world.has_root
    assert world.scale.best == 0.0  # the end of the walk is better than any step of it


def test_taxi_values():
    env = environment("Taxi")
    world = check_values(env.P, 6, 10, env.initial_state_distrib, 1e-11, repeats=1)
    assert world.cmdp.layout.num_triples < 0.01 * world.cmdp.layout.num_dense_triples


def test_an_environment_says_where_its_episodes_start() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1")
    P = lake.unwrapped.P
    for made, meant in (
        (unroll_gymnasium(lake, 4), unroll_gymnasium(P, 4, 0)),
        (unroll_gymnasium(lake, 4, start=2), unroll_gymnasium(P, 4, 2)),
    ):
        assert made.cmdp.content_hash == meant.cmdp.content_hash
    lake.unwrapped.initial_state_distrib = np.full(16, 1 / 16)
    both = unroll_gymnasium(lake, 4), unroll_gymnasium(P, 4, np.full(16, 1 / 16))
    assert both[0].has_root
    assert both[0].cmdp.content_hash == both[1].cmdp.content_hash
    del lake.unwrapped.initial_state_distrib
    for given, words in (
        (P, "a table does not say where episodes start"),
        (lake, "FrozenLakeEnv has no initial_state_distrib"),
        (gymnasium.make("CartPole-v1"), "CartPoleEnv has no table P"),
    ):
        with pytest.raises(InvalidInput, match=words):
            unroll_gymnasium(given, 4)
