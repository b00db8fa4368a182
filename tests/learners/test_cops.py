"""C-OPS: its pool against a linear program and against the truth, the test that closes it, pauses, and its files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, make_learner, random_world, to_bytes
from loaded import reach_bounds
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.confidence.sets import REASONS
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.ops import pool as pools
from hedgerow.learners.ops.c_ops import COPS, FLOOR
from hedgerow.learners.ops.choice import MOST_BOUNDED
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, row_occupancy

WORLD = random_world(0, (1, 3, 3, 2, 1), 3)


def after(episodes: int, world: hr.CMDP = WORLD, seed: int = 0, **options: Any) -> COPS:
    """C-OPS after some episodes of random losses, between two."""
    learner = make_learner("c-ops", world, 2_000, preset="sharpest", seed=seed, **options)
    rng = np.random.default_rng(seed)
    for _ in range(episodes):
        learner.observe(world.play(learner.plan().policy, rng, rng.random(world.layout.num_rows)))
    assert isinstance(learner, COPS)
    return learner


@pytest.mark.parametrize("episodes", [0, 30, 400])
@pytest.mark.parametrize("m", [1, 2])
def test_the_pool_is_the_best_certified_mixture(episodes: int, m: int) -> None:
    """The linear program over all candidates whose bounds were computed has the same value; one over all of them, with
    estimated costs for the others, is not better, unless too many were worth a bound.
    """
    learner = after(episodes, random_world(1, (1, 3, 3, 2, 1), 3, m))
    learner.core.pool.numbers.due = 0
    learner._complete()
    core, choice = learner.core, learner._choice_buffers
    count, alpha = choice.tallies.count, learner.view.thresholds
    values, costs = choice.values[:count], choice.costs[:count]
    exact = choice.exact[:count] == 1
    assert exact[0]
    np.testing.assert_array_equal(costs[0], learner.baseline_costs)
    found = core.pool.reals.base * values[0]
    for j in range(core.pool.numbers.size):
        same = [i for i in range(count) if np.array_equal(choice.policies[i], core.pool.policies[j])]
        assert any(exact[i] for i in same)
        found += core.pool.weights[j] * values[same[0]]
    for some in [exact] + ([np.full(count, True)] if choice.tallies.bounded < MOST_BOUNDED else []):
        best = linprog(values[some], costs[some].T, alpha, np.ones((1, some.sum())), [1.0])
        assert found == pytest.approx(best.fun, abs=1e-7)


@pytest.mark.parametrize("seed", [0, 1])
def test_older_losses_weigh_less(seed: int) -> None:
    """The mean losses of the pool against the losses that were seen, each with its weight: about s / t."""
    learner, rng = after(0, seed=seed), np.random.default_rng(seed)
    seen: list[tuple[Any, Any]] = []
    chosen = []
    for t in range(400):
        episode = WORLD.play(learner.plan().policy, rng, rng.random(WORLD.layout.num_rows))
        learner.observe(episode)
        seen.append((episode.rows, episode.losses))
        chosen += [t] * (learner.core.pool.numbers.plans > 1 + len(chosen))
    sums, weights = np.zeros(WORLD.layout.num_rows), np.zeros(WORLD.layout.num_rows)
    for s, (rows, losses) in enumerate(seen):
        weight = 0.96 ** sum(t >= s for t in chosen)
        np.add.at(sums, rows, weight * losses)
        np.add.at(weights, rows, weight)
        if s >= 150:
            assert weight == pytest.approx(s / 400, abs=0.06)
    np.testing.assert_allclose(learner.core.pool.loss_sums, sums, rtol=1e-12)
    np.testing.assert_allclose(learner.core.pool.visits, weights, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_members_are_certified_and_safe(seed: int) -> None:
    """In a world where its sets hold: U_j is at least the cost of each member, and the mixture respects the limits."""
    world = random_world(seed, (1, 3, 3, 2, 1), 3)
    learner = after(150, world, seed)
    core = learner.core
    pool, beta = core.pool, learner.baseline_costs
    total = pool.reals.base * beta
    for weight, policy, bounds in learner.pool:
        costs = row_occupancy(world.layout, occupancy(world.layout, world.transitions, policy.probabilities))
        for i, (bound, reason) in enumerate(bounds.values()):
            assert float(world.mean_costs[i] @ costs) <= bound + 1e-12
            assert reason in REASONS
        total = total + weight * np.array([bound for bound, _ in bounds.values()])
    assert pool.reals.base + pool.weights[: pool.numbers.size].sum() == pytest.approx(1.0, abs=1e-12)
    assert (total <= learner.view.thresholds).all()
    plan = learner.plan()
    assert plan.cost_bounds is not None
    assert (plan.cost_bounds <= learner.view.thresholds + 1e-12).all()


def test_the_plan_announces_the_whole_mixture() -> None:
    learner = after(60)
    plan, pool = learner.plan(), learner.core.pool
    assert pool.reals.share == 1.0 - FLOOR == plan.notes["pool_weight"]
    parts = list(plan.mixture.policies())  # type: ignore[union-attr]
    assert sum(weight for weight, _ in parts) == pytest.approx(1.0, abs=1e-12)
    baseline = sum(weight for weight, policy in parts if np.array_equal(policy.probabilities, learner.baseline))
    assert plan.mixing_weight == pytest.approx(baseline, abs=1e-12)
    own = [weight for weight, policy in parts if np.array_equal(policy.probabilities, learner.policy)]
    assert own[0] == pytest.approx(FLOOR * (1.0 - learner.core.state.reals.mixing), abs=1e-12)
    assert any(np.array_equal(policy.probabilities, plan.policy.probabilities) for _, policy in parts)


def test_members_are_drawn_by_their_weights() -> None:
    learner = after(60)
    core, names = learner.core, {}
    for _ in range(20_000):
        learner._begin()
        names[learner.progress.branch] = names.get(learner.progress.branch, 0) + 1
        learner.progress.pending = 0
    pool, lam = core.pool, core.state.reals.mixing
    share, size = pool.reals.share, pool.numbers.size
    expected = {0: (1 - share) * (1 - lam), 1: (1 - share) * lam + share * pool.reals.base}
    expected |= {2 + j: share * pool.weights[j] for j in range(size)}
    for branch, p in expected.items():
        assert names.get(branch, 0) / 20_000 == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 20_000) + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_estimate_divides_by_the_bound_of_the_whole(seed: int) -> None:
    learner, rng = after(60, seed=seed), np.random.default_rng(7)
    core, layout = learner.core, WORLD.layout
    plan, boxes = learner.plan(), core.state.boxes
    assert plan.notes["pool_weight"] > 0.0
    whole = np.zeros(layout.num_rows)
    for weight, policy in plan.mixture.policies():  # type: ignore[union-attr]
        reach = reach_bounds(layout, boxes.lower, boxes.upper, policy.probabilities)
        whole += weight * policy.probabilities * np.repeat(reach, layout.num_actions)
    gamma = learner.gamma
    episode = WORLD.play(plan.policy, rng, rng.random(layout.num_rows))
    learner.observe(episode)
    wanted = episode.losses / (whole[episode.rows] + gamma)
    np.testing.assert_allclose(core.buffers.trace.estimate, wanted, rtol=1e-10)


# The test and the pauses ---------------------------------------------------------------------------------------------


def empty(steps: int, delta: float) -> tuple[pools.Pool, pools.PoolRule]:
    layout = Layout((1,) * (steps + 1), 2)
    pool = pools.make_pool(layout, 2, 1)
    pool.numbers.size, pool.reals.share = 1, 1.0 - FLOOR
    return pool, pools.make_pool_rule(layout, FLOOR, delta, 2)


def outcome(rng: np.random.Generator, worse: float, steps: int) -> tuple[int, float]:
    """Whether the pool is drawn, and X: the pool loses `worse` more than S-OPS."""
    drawn = int(rng.random() < 1.0 - FLOOR)
    return drawn, steps * float(rng.random() < 0.3 + drawn * worse / steps)


def test_the_sum_of_the_test_has_the_right_mean() -> None:
    pool, rule = empty(3, 0.01)
    rng, count = np.random.default_rng(0), 200_000
    for _ in range(count):
        pool.numbers.drawn, loss = outcome(rng, 0.6, 3)
        pools._test(pool, rule, 1.0 - FLOOR, loss - 1.0, 3.0)
    spread = np.sqrt(pool.reals.spread) * 3.0 * (1.0 - FLOOR) / FLOOR
    assert abs(pool.reals.excess - count * (1.0 - FLOOR) * 0.6) < 4.0 * spread


@pytest.mark.parametrize(("worse", "closes"), [(0.0, False), (-0.5, False), (1.5, True)])
def test_a_pool_that_loses_is_closed_and_no_other(worse: float, closes: bool) -> None:
    """At delta = .05: of 100 pools that lose no more than S-OPS at most 11 may be closed (level 1 %)."""
    closed, rng = 0, np.random.default_rng(1)
    for _ in range(100):
        pool, rule = empty(3, 0.05)
        for _ in range(1_500):
            pool.numbers.drawn, loss = outcome(rng, worse, 3)
            pools._test(pool, rule, 1.0 - FLOOR, loss - 1.0, 3.0)
        closed += pool.numbers.closed
    assert closed >= 95 if closes else closed <= 11


def test_pauses_grow_and_a_closed_pool_is_never_played() -> None:
    pool, rule = empty(3, 0.05)
    for k, episode in enumerate((10, 100, 700), 1):
        pools._pause(pool, episode)
        assert pool.numbers.resumes == (k + 1) * episode == pool.numbers.due
        assert pools.share_of(pool, rule, pool.numbers.resumes - 1) == 0.0
        assert pools.share_of(pool, rule, pool.numbers.resumes) == 1.0 - FLOOR
    pool.numbers.closed = 1
    assert pools.share_of(pool, rule, 10**9) == 0.0


def test_while_the_pool_pauses_it_is_s_ops() -> None:
    """Without the pool, C-OPS and S-OPS that have seen the same play the same, bit for bit."""
    learner = after(0)
    twin = make_learner("s-ops", WORLD, 2_000, preset="sharpest", eta="paper", gamma="paper")
    learner.core.pool.numbers.closed, learner.core.pool.reals.share = 1, 0.0
    rng = np.random.default_rng(0)
    for _ in range(50):
        plan = learner.plan()
        twin.plan()
        twin.progress.branch = learner.progress.branch
        episode = WORLD.play(plan.policy, rng, rng.random(WORLD.layout.num_rows))
        learner.observe(episode)
        twin.observe(episode)
        np.testing.assert_array_equal(learner.policy, twin.policy)
        assert learner.core.state.reals.mixing == twin.core.state.reals.mixing


def test_what_is_refuted_ends_the_pool() -> None:
    learner = after(60)
    learner.core.state.premises.numbers.what = learner.core.state.premises.numbers.said = 1
    rng = np.random.default_rng(3)
    learner.observe(WORLD.play(learner.plan().policy, rng, rng.random(WORLD.layout.num_rows)))
    assert learner.core.pool.reals.share == 0.0
    assert learner.core.state.reals.mixing == 1.0


# Files ---------------------------------------------------------------------------------------------------------------


def test_what_was_played_stays_when_the_members_change() -> None:
    learner, rng, changed = after(30), np.random.default_rng(2), 0
    for _ in range(120):
        plan = learner.plan()
        learner.core.pool.numbers.due = 0  # new members after every episode
        learner.observe(WORLD.play(plan.policy, rng, rng.random(WORLD.layout.num_rows)))
        if learner.progress.branch > 1:
            np.testing.assert_array_equal(learner.played, plan.policy.probabilities)
        np.testing.assert_array_equal(from_bytes(to_bytes(learner)).played, learner.played)
        changed += learner.progress.branch == 1 + len(learner.core.pool.policies)
    assert changed > 5


def test_a_file_holds_the_pool() -> None:
    learner = after(77)
    learner.plan()
    other = from_bytes(to_bytes(learner))
    for name, array in flat_arrays(learner.core.pool).items():
        np.testing.assert_array_equal(array, flat_arrays(other.core.pool)[name], err_msg=name)
    np.testing.assert_array_equal(learner.played, other.played)
    for one in (learner, other):
        rng = np.random.default_rng(5)
        for k in range(60):
            plan = one.open_plans[0] if k == 0 else one.plan()
            one.observe(WORLD.play(plan.policy, rng, rng.random(WORLD.layout.num_rows)))
    assert to_bytes(learner) == to_bytes(other)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("pool.weights", lambda a: a * 0.5, "do not sum to 1"),
        ("pool.policies", lambda a: a * 0.5, "pool.policies do not sum to 1"),
        ("pool.p_hat", lambda a: a * 0.5, "p_hat of a row"),
        ("pool.bounds", lambda a: a + 9.0, "not certified to be safe"),
        ("pool.reasons", lambda a: a + 4, r"it must lie in \[0, 3\]"),
        ("pool.numbers", lambda a: a + 9, "there is room for 4"),
        ("pool.reals", lambda a: a * np.nan, "pool.reals is nan"),
        ("pool.visits", lambda a: a[:-1], "pool.visits must be float64 of shape"),
    ],
)
def test_a_damaged_pool_is_refused(name: str, change: Any, message: str) -> None:
    learner = after(60)
    state = learner.state()
    state[name] = change(state[name])
    with pytest.raises(hr.errors.InvalidInput, match=message):
        COPS.restored(learner.view, state)
