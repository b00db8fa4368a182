"""Several open plans of B-OPS and C-OPS: budget and safety against the exact truth, account and coin against twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, random_world, to_bytes
from test_bops import Twin
from test_open_plans import CHEAP, THRESHOLD, VIEW, WORLD, content, cost_of, played, unsafe_plans

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.b_ops import BOPS
from hedgerow.learners.ops.c_ops import COPS

SAFE = hr.SafePolicy(np.array([1.0, 0.0] * 3), np.array([2 * CHEAP]))
OTHER = random_world(3, (1, 2, 2, 1), 2, 2)


def bops(most: int, rule: Any = "bound", cls: type[BOPS] = BOPS, **options: Any) -> BOPS:
    learner = cls(VIEW, 20_000, 0.05, baseline=SAFE, rule=rule, **options)
    learner.max_open = most
    return learner


class Careless(BOPS):
    """What must be impossible: a B-OPS that forgets the plans that are open."""

    def _follow_queue(self) -> None:
        return


def least_left(
    learner: Any,
    most: int,
    rounds: int,
    delay: Callable[[float], float],
    change: Callable[[Any, int], Any] | None = None,
) -> tuple[float, int]:
    """Rounds of `most` plans: the least that the thresholds so far left of the exact expected costs, and own plans."""
    rng, left, least, own = np.random.default_rng(1), 0.0, np.inf, 0
    due: list[tuple[float, Any, hr.Episode]] = []
    for now in range(rounds):
        learner = learner if change is None else change(learner, now)
        for _ in range(most):
            plan = learner.plan()
            own += plan.branch == "own"
            left += float(plan.view.thresholds[0]) - cost_of(plan)
            least = min(least, left)
            episode = played(plan, rng)
            due.append((now + delay(float(episode.costs.sum())), plan, episode))
        late = [one for one in due if one[0] > now]
        for _, plan, episode in sorted((one for one in due if one[0] <= now), key=lambda one: one[2].costs.sum()):
            learner.observe(episode, plan)
        due = late
    return float(least), own


@pytest.mark.parametrize("rule", ["bound", "ceiling"])
@pytest.mark.parametrize(
    ("most", "rounds"), [(1, 200), (50, 12), (1000, 1), pytest.param(1000, 4, marks=pytest.mark.nightly)]
)
def test_the_budget_is_kept_however_many_plans_are_open(most: int, rounds: int, rule: str) -> None:
    learner = bops(most, rule)
    least, own = least_left(learner, most, rounds, lambda cost: 0.0)
    assert least >= 0.0
    assert own > 20
    assert learner.episode == most * rounds
    assert learner.guarantees()["budget"].holds
    assert (learner.reserve >= 0.0).all()
    if most > 1:
        assert any("independent of each other" in line for line in learner.guarantees().assumptions)
        assert not learner.guarantees()["regret"].holds


def test_a_learner_that_forgets_open_plans_overdraws() -> None:
    """The tests see what they are there for."""
    assert least_left(bops(200, "bound"), 200, 4, lambda cost: 0.0)[0] >= 0.0
    assert least_left(bops(200, "bound", Careless), 200, 4, lambda cost: 0.0)[0] < -1.0


@pytest.mark.parametrize("late", ["dear", "cheap"])
def test_the_budget_is_kept_if_delays_depend_on_costs(late: str) -> None:
    def delay(cost: float) -> float:
        return 4.0 if (cost > 0.0) == (late == "dear") else 0.0

    least, own = least_left(bops(500), 50, 14, delay)
    assert least >= 0.0
    assert own > 50


def limits(number: int) -> hr.View:
    return WORLD.with_thresholds([(THRESHOLD, 0.2, 0.45, 0.25)[number % 4]]).view()


def test_the_budget_is_the_sum_of_thresholds_that_change() -> None:
    def change(learner: Any, now: int) -> Any:
        return learner.with_view(limits(now // 5)) if now % 5 == 0 else learner

    last: list[Any] = []
    least, own = least_left(
        bops(60), 20, 40, lambda cost: cost, lambda old, now: last.append(change(old, now)) or last[-1]
    )
    assert least >= 0.0
    assert own > 100
    learner = last[-1]
    told = sum(20 * float(limits(now // 5).thresholds[0]) for now in range(40))
    assert float(learner.core.state.account.allowed[0]) <= told + 1e-9
    held = learner.core.buffers.held
    assert learner.core.state.account.allowed[0] + held[1, 0] == pytest.approx(told)
    ledger = learner.guarantees()
    assert ledger["budget"].holds
    assert "the sum of their thresholds" in ledger["budget"].statement
    loaded = from_bytes(to_bytes(learner))
    assert to_bytes(loaded) == to_bytes(learner)
    np.testing.assert_array_equal(loaded.reserve, learner.reserve)


def test_what_the_account_has_not_watched_cannot_bind_later() -> None:
    world = random_world(4)
    free = world.with_thresholds([world.thresholds[0], 3.0])
    learner = hr.BOPS(free.view(), 400, 0.05, baseline=hr.offline.slater(world))
    with pytest.raises(InvalidInput, match="its account has watched other constraints"):
        learner.with_view(world.view())
    with pytest.raises(InvalidInput, match="the baseline is not safe"):
        bops(1).with_view(WORLD.with_thresholds([0.09]).view())


@pytest.mark.parametrize("rule", ["bound", "ceiling"])
def test_the_account_of_open_plans_is_that_of_the_twin(rule: Any) -> None:
    """W of the closed ones in plan order, and min(U, ceiling) or beta of every open one; X' and skipped ones, too."""
    learner = hr.BOPS(OTHER.view(), 4000, 0.05, baseline=hr.offline.slater(OTHER), rule=rule)
    learner.max_open, rng = 9, np.random.default_rng(0)
    twin, branches = Twin(learner, rule == "bound"), set()
    waiting: list[list[Any]] = []  # plan, step, what it paid: None while nobody knows, "skipped" if it is left out
    for t in range(500):
        if learner.num_open == 9 or (waiting and rng.random() < 0.4):
            entry = next(one for one in rng.permutation(np.array(waiting, dtype=object)) if one[2] is None)
            entry = next(one for one in waiting if one[0] is entry[0])
            whole = OTHER.play(entry[0].policy, rng)
            if t % 7 == 0:
                learner.abandon(entry[0], "lost")
                entry[2] = np.full(2, 3.0)
            elif t % 11 == 0:
                learner.abandon(entry[0], "cut", independent=True)
                entry[2] = "skipped"
            else:
                learner.observe(whole, entry[0])
                entry[2] = whole.costs.sum(axis=0)
            while waiting and waiting[0][2] is not None:
                plan, step, paid = waiting.pop(0)
                twin.enter(step, plan.branch == "own", None if isinstance(paid, str) else paid)
            np.testing.assert_allclose(learner.core.state.account.charged, twin.charged, rtol=1e-11, atol=1e-11)
            continue
        step = twin.step(learner).copy()
        held = sum(((one[1] if one[0].branch == "own" else twin.beta) - twin.alpha for one in waiting), np.zeros(2))
        affords = bool(np.all(twin.charged + held + step <= twin.alpha * (twin.t + 1) + 1e-12))
        plan = learner.plan()
        assert (plan.branch == "own") == affords
        branches.add(plan.branch)
        waiting.append([plan, step, None])
    assert branches == {"own", "baseline"}
    assert twin.t > 100


def test_a_group_enters_the_account_once_and_its_other_plans_are_charged_with_their_bounds() -> None:
    learner, rng = bops(4, "ceiling"), np.random.default_rng(0)
    for _ in range(40):
        plan = learner.plan()
        learner.observe(played(plan, rng), plan)
    account = learner.core.state.account
    alone = account.numbers.own
    for _ in range(100):
        before = account.numbers.own, account.numbers.skipped, float(account.fixed[0])
        plans = [learner.plan(group=f"day {learner.episode}") for _ in range(2)]
        for plan in plans:
            learner.observe(played(plan, rng), plan)
        learner.close_group(str(plans[0].group))
        first, second = (plan.branch == "own" for plan in plans)
        own, skipped, fixed = before
        assert (account.numbers.own, account.numbers.skipped) == (own + first, skipped + second)
        charged = 2 * CHEAP * (2 - first - second) + 2.0 * second
        assert account.fixed[0] == pytest.approx(fixed + charged)
    assert min(account.numbers.own - alone, account.numbers.skipped) > 3
    assert to_bytes(from_bytes(to_bytes(learner))) == to_bytes(learner)


# C-OPS ---------------------------------------------------------------------------------------------------------------


def cops(most: int, world: hr.CMDP = WORLD, **options: Any) -> COPS:
    baseline = SAFE if world is WORLD else hr.offline.slater(world)
    learner = hr.COPS(world.view(), 20_000, 0.05, baseline=baseline, **options)
    learner.max_open = most
    return learner


@pytest.mark.parametrize(
    ("most", "rounds"), [(1, 200), (50, 12), (1000, 1), pytest.param(1000, 4, marks=pytest.mark.nightly)]
)
def test_no_plan_of_c_ops_is_unsafe_however_many_are_open(most: int, rounds: int) -> None:
    learner = cops(most)
    assert unsafe_plans(learner, most, rounds, lambda cost: 0.0, seed=1) == 0
    assert learner.episode == most * rounds
    assert learner.guarantees()["safety"].holds
    assert learner.core.pool.reals.share > 0.0


@pytest.mark.parametrize("late", ["dear", "cheap"])
def test_no_plan_of_c_ops_is_unsafe_if_delays_depend_on_costs(late: str) -> None:
    learner = cops(500)
    assert unsafe_plans(learner, 50, 14, lambda cost: 4.0 * ((cost > 0.0) == (late == "dear")), seed=2) == 0
    assert learner.episode > 200


def test_the_coins_and_losses_of_late_plans_are_those_of_their_time() -> None:
    """The sum of y by hand, in plan order; d and u of every plan as they would have been had it been the only one."""
    world = random_world(0, (1, 3, 3, 2, 1), 3)
    learner, rng = cops(8, world), np.random.default_rng(0)
    waiting: list[list[Any]] = []
    excess, losses, shares, gap, folded = 0.0, list[float](), set[float](), 0.0, 0
    for _ in range(700):
        if learner.num_open == 8 or (waiting and rng.random() < 0.45):
            open_ones = [one for one in waiting if one[3] is None]
            entry = open_ones[int(rng.integers(len(open_ones)))]
            episode = world.play(entry[0].policy, rng, rng.random(world.layout.num_rows))
            entry[3] = episode
            pauses = learner.core.pool.numbers.pauses
            learner.observe(episode, entry[0])
            while waiting and waiting[0][3] is not None:
                plan, drawn, tilt, outcome = waiting.pop(0)
                paid, share = float(outcome.losses.sum()), plan.notes["pool_weight"]
                above = paid - (np.mean(losses) if losses else 0.5 * world.layout.steps)
                losses.append(paid)
                folded += 1
                if share > 0.0:
                    excess += above if drawn else -above * share / (1.0 - share)
                    gap += float(tilt[outcome.rows] @ outcome.losses)
                shares.add(share)
            assert learner.core.pool.reals.excess == pytest.approx(excess, abs=1e-9)
            if pauses == learner.core.pool.numbers.pauses == 0:
                assert learner.core.pool.reals.gap == pytest.approx(gap, abs=1e-9)
            continue
        plan = learner.plan()
        pool = learner.core.pool
        waiting.append([plan, pool.numbers.drawn, tilt_by_hand(learner, plan), None])
    assert len(shares) == 2
    assert folded > 200


def tilt_by_hand(learner: COPS, plan: Any) -> np.ndarray:
    """(q_P - q_S) / q under the transitions with which the pool was chosen."""
    share = plan.notes["pool_weight"]
    if share == 0.0:
        return np.zeros(learner.layout.num_rows)

    def of(mixture: Any) -> np.ndarray:
        found = np.zeros(learner.layout.num_rows)
        for weight, policy in mixture.policies():
            reach = np.zeros(learner.layout.num_states)
            reach[0] = 1.0
            for row in range(learner.layout.num_rows):
                q = reach[row // learner.layout.num_actions] * policy.probabilities[row]
                found[row] += weight * q
                own = slice(learner.layout.row_start[row], learner.layout.row_start[row + 1])
                np.add.at(reach, learner.layout.successor[own], q * learner.core.pool.p_hat[own])
        return found

    (_, pooled), (_, rest) = plan.mixture.parts
    q_p, q_s = of(pooled), of(rest)
    q = share * q_p + (1.0 - share) * q_s
    return np.divide(q_p - q_s, q, out=np.zeros_like(q), where=q > 0.0)


def test_files_hold_the_mixtures_of_open_plans() -> None:
    world = random_world(0, (1, 3, 3, 2, 1), 3)
    learner, rng, plans = cops(30, world), np.random.default_rng(0), list[Any]()
    for _ in range(120):
        plans.append(learner.plan())
        if len(plans) == 30:
            for _ in range(10):
                plan = plans.pop(int(rng.integers(len(plans))))
                learner.observe(world.play(plan.policy, rng, rng.random(world.layout.num_rows)), plan)
    loaded = from_bytes(to_bytes(learner))
    assert to_bytes(loaded) == to_bytes(learner)
    for ours, theirs in zip(learner.open_plans, loaded.open_plans, strict=True):
        assert ours.to_dict() == theirs.to_dict()
        for (weight, policy), (other, same) in zip(ours.mixture.policies(), theirs.mixture.policies(), strict=True):
            assert weight == other
            np.testing.assert_array_equal(policy.probabilities, same.probabilities)
    for each in (learner, loaded):
        for plan in plans:
            own = np.random.default_rng(plan.episode)
            each.observe(world.play(plan.policy, own, own.random(world.layout.num_rows)), plan)
        each.plan()
    assert content(learner) == content(loaded)
    assert len({id(policy) for plan in (learner.plan(), learner.plan()) for _, policy in plan.mixture.policies()}) < 8


def test_other_thresholds_of_c_ops_hold_for_later_plans() -> None:
    learner, rng = cops(5), np.random.default_rng(0)
    for _ in range(150):
        plan = learner.plan()
        learner.observe(played(plan, rng), plan)
    kept = [learner.plan() for _ in range(3)]
    strict: Any = learner.with_view(limits(1))
    assert [plan.to_dict() for plan in strict.open_plans] == [plan.to_dict() for plan in kept]
    strict = from_bytes(to_bytes(strict))
    for plan in kept:
        strict.observe(played(plan, rng), plan)
    for _ in range(60):
        plan = strict.plan()
        assert cost_of(plan) <= 0.2 + 1e-9
        strict.observe(played(plan, rng), plan)
    assert strict.core.pool.reals.share > 0.0
    assert strict.with_view(WORLD.with_thresholds([2.0]).view()).plan().mixing_weight == 0.0  # nothing can bind
    ledger = strict.guarantees()
    assert ledger["safety"].holds
    assert "L for each of the 3 plans" in ledger["choice"].statement
