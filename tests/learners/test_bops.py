"""B-OPS: its account against a twin in plain numpy, the budget against the exact truth, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, draw_path, from_bytes, make_learner, random_world, snapshot, to_bytes

import hedgerow as hr
from hedgerow.errors import InvalidInput, PremiseWarning
from hedgerow.learners.ops.account import make_account, make_account_rule, radius_of
from hedgerow.learners.ops.b_ops import BOPS, budget_share

RATES = [1.0 - 0.5**k for k in (4, 3, 2)] + [0.5**k for k in range(1, 15)]


def bops(world: hr.CMDP, episodes: int = 400, delta: float = 0.05, **options: Any) -> BOPS:
    return hr.BOPS(
        world.view(), episodes, delta, **{"preset": "sharpest", "baseline": hr.offline.slater(world), **options}
    )


def episodes_of(learner: BOPS, world: hr.CMDP, count: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Plans and what came of them; the learner has not been told yet."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        plan = learner.plan()
        yield plan, world.play(plan.policy, rng)


def radius(squares: float, ceiling: float, num: int, delta: float) -> float:
    """ceiling min_l (ln(17 m / delta) + psi(l) VV) / l, term by term."""
    terms = [(np.log(17 * num / delta) + (-np.log(1.0 - rate) - rate) * squares) / rate for rate in RATES]
    return ceiling * min(terms)


class Twin:
    """The account as docs/budget.md states it, from lists of what happened."""

    def __init__(self, learner: BOPS, by_bound: bool) -> None:
        view = learner.view
        self.alpha, self.most = view.thresholds[view.binding], view.ceilings[view.binding]
        self.beta, self.delta = learner.baseline_costs[view.binding], learner.delta
        self.binding, self.by_bound = view.binding, by_bound
        self.paid: list[np.ndarray] = []
        self.fixed, self.charged, self.t = np.zeros(len(self.alpha)), np.zeros(len(self.alpha)), 0

    def step(self, learner: BOPS) -> np.ndarray:
        bounds = learner.core.state.bounds[self.binding]
        return np.minimum(bounds, self.most) if self.by_bound else self.most

    def affords(self, learner: BOPS) -> bool:
        return bool(np.all((self.charged + self.step(learner)) * (1 + 1e-12) <= self.alpha * (self.t + 1)))

    def enter(self, step: np.ndarray, own: bool, costs: np.ndarray | None) -> None:
        if not own or costs is None:
            self.fixed = self.fixed + (step if own else self.beta)
        else:
            self.paid.append(costs[self.binding])
        paid = np.array(self.paid).reshape(-1, len(self.alpha))
        centres = [paid[:k].mean(axis=0) if k else np.zeros(len(self.alpha)) for k in range(len(paid))]
        squares = (((paid - centres) / self.most) ** 2).sum(axis=0) if len(paid) else np.zeros(len(self.alpha))
        pairs = zip(squares, self.most, strict=True)
        rad = np.array([radius(v, most, len(self.alpha), self.delta) for v, most in pairs])
        self.charged = np.minimum(self.charged + (step if own else self.beta), self.fixed + paid.sum(axis=0) + rad)
        self.t += 1


@pytest.mark.parametrize("rule", ["bound", "ceiling"])
def test_the_account_is_that_of_the_twin(rule: str) -> None:
    world = random_world(3, (1, 2, 2, 1), 2, 2)
    learner = bops(world, rule=rule)
    twin, branches = Twin(learner, rule == "bound"), set()
    for plan, seen in episodes_of(learner, world, 250):
        own, step = plan.branch == "own", twin.step(learner).copy()
        assert own == twin.affords(learner) == (plan.mixing_weight == 0.0)
        branches.add(plan.branch)
        learner.observe(seen)
        twin.enter(step, own, seen.costs.sum(axis=0))
        np.testing.assert_allclose(learner.core.state.account.charged, twin.charged, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(learner.reserve, 250 * twin.alpha - twin.charged, atol=1e-9)
    assert branches == {"own", "baseline"}


def test_the_radius_in_numbers() -> None:
    """VV = 0, ln(17/.05) = 5.828946: at l = 15/16; VV = 1,000: at l = 1/16."""
    world = random_world(0, m=1)
    baseline, rule = make_learner("b-ops", world).core.baseline, make_account_rule(1, 0.05, 1.0, by_bound=False)
    account = make_account(1)
    assert radius_of(rule, account, baseline, 0) == pytest.approx(3.0 * 5.828946 / 0.9375, rel=1e-6)
    account.squares[0] = 1000.0
    psi = -np.log(1 - 1 / 8) - 1 / 8
    assert radius_of(rule, account, baseline, 0) == pytest.approx(3.0 * (5.828946 + psi * 1000) * 8, rel=1e-6)


def test_the_forecast_is_that_of_the_lemma() -> None:
    """n_b <= (rad + R - beta) / (alpha - beta) if own episodes cost alpha on average, and vary as much as they can."""
    view = hr.View(hr.Layout((1, 2, 1), 2), [0.5, 0.8, 2.0], ("a", "b", "never"))
    beta, T = np.array([0.1, 0.6, 0.3]), 20_000  # the third one cannot be violated
    wanted = [
        (radius(T * a / 2 * (1 - a / 2), 2.0, 2, 0.05) + 2.0 - b) / (a - b) / T for a, b in ((0.5, 0.1), (0.8, 0.6))
    ]
    assert wanted[0] < wanted[1] < 1.0
    assert budget_share(view, beta, T, 0.05) == pytest.approx(wanted[1], rel=1e-9)
    assert budget_share(view, np.array([0.5, 0.6, 0.3]), T, 0.05) == 1.0  # without a margin
    assert budget_share(view, beta, 10, 0.05) == 1.0


def test_the_first_own_episode_comes_when_the_formula_says() -> None:
    """beta (t - 1) + ceiling <= alpha t: no radius is needed before it."""
    world = random_world(1, m=1)
    alpha, slater = world.thresholds[0], hr.offline.slater(world)
    learner = bops(world, rule="ceiling")
    first = int(np.ceil((3.0 - slater.costs[0]) / (alpha - slater.costs[0])))
    branches = []
    for plan, seen in episodes_of(learner, world, first + 2):
        branches.append(plan.branch)
        learner.observe(seen)
    assert branches.index("own") == first - 1


def test_losses_of_the_baseline_move_nothing() -> None:
    world = random_world(2)
    learners = [bops(world) for _ in range(2)]
    path = draw_path(world, hr.offline.slater(world).policy, np.random.default_rng(0))
    for learner, loss in zip(learners, (0.0, 1.0), strict=True):
        assert learner.plan().branch == "baseline"
        learner.observe(path, np.full(3, loss), np.zeros((3, 2)))
    assert_same(*(snapshot(learner) for learner in learners))
    assert learners[0].core.state.counts.num_visits.sum() == 3


def test_what_cannot_be_exceeded_blocks_nothing() -> None:
    world = random_world(4)
    free = bops(world.with_thresholds([3.0, 3.0]), baseline_costs=[3.0, 3.0], allow_no_margin=True)
    for plan, seen in episodes_of(free, world, 3):
        assert plan.branch == "own"
        free.observe(seen)
    assert np.all(np.isinf(free.reserve))
    assert free.guarantees()["budget"].holds
    half = bops(world.with_thresholds([world.thresholds[0], 3.0]), rule="ceiling")
    for _, seen in episodes_of(half, world, 60):
        half.observe(seen)
    assert half.core.state.account.numbers.own > 0
    assert len(half.core.state.account.allowed) == 1


# Episodes that are not whole ------------------------------------------------------------------------------------------


def own_plan(learner: BOPS, world: hr.CMDP) -> Any:
    """The first plan of its own."""
    for plan, seen in episodes_of(learner, world, 390):
        if plan.branch == "own":
            return plan
        learner.observe(seen)
    raise AssertionError("it never played its own policy")


OUTCOMES: dict[str, tuple[Callable[[hr.View, Any], hr.Episode], Callable[[Any], list[float]]]] = {
    "missing": (lambda view, seen: hr.Episode.missing(view), lambda seen: [3.0, 3.0]),
    "aborted": (
        lambda view, seen: hr.Episode(
            view, seen.rows[:1], seen.losses[:1], seen.costs[:1], ended_in=int(view.layout.successor[seen.triples[0]])
        ),
        lambda seen: list(seen.costs[0] + 2.0),
    ),
    "no costs": (
        lambda view, seen: hr.Episode(view, seen.rows, seen.losses, unknown_costs=True),
        lambda seen: [3.0, 3.0],
    ),
    "overridden": (
        lambda view, seen: hr.Episode(view, seen.rows, seen.losses, seen.costs, overridden_from=2),
        lambda seen: list(seen.costs[:2].sum(axis=0) + 1.0),
    ),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_nobody_observed_counts_as_one(outcome: str) -> None:
    """X' of Lemma B'. The same for known costs, which other sums take by their means."""
    world = random_world(5)
    known = np.full((2, world.layout.num_rows), np.nan)
    known[0, :4] = world.mean_costs[0, :4]
    for view in (world.view(), world.view().knowing(costs=known)):
        learner = hr.BOPS(view, 400, 0.05, baseline=hr.offline.slater(world))
        make, expected = OUTCOMES[outcome]
        plan = own_plan(learner, world)
        seen = world.play(plan.policy, np.random.default_rng(7))
        before = learner.core.state.account.seen.copy()
        learner.observe(make(view, seen), plan)
        np.testing.assert_allclose(learner.core.state.account.seen - before, expected(seen), atol=1e-12)


def test_what_is_left_out_for_a_declared_reason_is_charged_with_its_bound() -> None:
    world = random_world(5)
    learner = bops(world)
    plan, account = own_plan(learner, world), learner.core.state.account
    before, step = account.charged.copy(), np.minimum(learner.core.state.bounds, 3.0)
    learner.abandon(plan, "a power cut", independent=True)
    assert (account.numbers.own, account.numbers.skipped) == (0, 1)
    np.testing.assert_allclose(account.charged - before, step, rtol=1e-12)
    assert_same(snapshot(learner), snapshot(from_bytes(to_bytes(learner))))


def test_an_episode_of_the_baseline_is_a_plan_whatever_became_of_it() -> None:
    world = random_world(5)
    learner = bops(world)
    plan = learner.plan()
    assert plan.branch == "baseline"
    learner.abandon(plan, "nobody knows")
    np.testing.assert_array_equal(learner.core.state.account.charged, learner.baseline_costs)
    assert learner.core.state.account.numbers.baseline == 1


# The promise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["bound", "ceiling"])
def test_the_budget_is_kept_exactly(rule: str) -> None:
    """Dependent costs and losses that pursue the learner; `reserve` is that of the true expected costs."""
    base = random_world(8, (1, 2, 2, 1), 2, 2)
    means = base.mean_costs
    equal = hr.costs.EmpiricalCosts([np.minimum(2 * means, 1.0), np.maximum(2 * means - 1.0, 0.0)], [0.5, 0.5])
    world = hr.CMDP(base.layout, base.transitions, equal, base.thresholds)
    learner = bops(world, 2000, 0.05, rule=rule)
    run = hr.simulate(world, learner, hr.losses.Pursuit(), seed=1, progress=False, marks="all")
    spent = np.asarray(run.costs)
    left = np.arange(1, 2001)[:, np.newaxis] * world.thresholds - spent
    assert left.min() >= 0.0
    assert run["reserve"][-1] == pytest.approx(left.min(), abs=1e-9)
    assert (run["overdrawn"][-1], run.facts["account_breaches"], run.facts["refuted_budget"]) == (0, 0, 0)
    assert run.unsafe[-1] > 100  # single episodes are not safe, and none is said to be
    assert run.facts["refuted_safety"] == 0
    numbers = learner.core.state.account.numbers
    assert run["mixing_total"][-1] == numbers.baseline == 2000 - numbers.own


def test_costs_may_move_if_only_the_ceiling_is_charged() -> None:
    """A person raises the costs of whatever is played to 1 as soon as it has been cheap: neither A1 nor A2 is true."""
    world = random_world(6, m=1)
    learner, slater = bops(world, 1500, 0.05, rule="ceiling", on_refuted="warn"), hr.offline.slater(world)
    rng, total, own = np.random.default_rng(0), 0.0, 0
    for t in range(1, 1501):
        plan = learner.plan()
        mean = 0.0 if own < 200 else 1.0
        own += plan.branch == "own"
        total += 3 * mean if plan.branch == "own" else float(slater.costs[0])
        assert total <= world.thresholds[0] * t + 1e-9
        seen = world.play(plan.policy, rng)
        costs = np.full((3, 1), mean) if plan.branch == "own" else seen.costs
        learner.observe(seen.rows, np.zeros(3), costs)
    assert own > 200


def test_a_baseline_that_costs_more_is_found_out() -> None:
    world = random_world(7, m=1)
    uniform = hr.Policy.uniform(world)
    learner = bops(world, 3000, 0.05, baseline=uniform, baseline_costs=[0.1])
    with pytest.warns(PremiseWarning, match="the baseline costs between"):
        hr.simulate(world, learner, hr.losses.Switching(), seed=0, progress=False)
    assert learner.core.state.reals.mixing == 1.0
    assert "refuted" in learner.guarantees()["budget"].void_because
    assert learner.guarantees()["confidence"].holds


def test_the_ledger() -> None:
    world = random_world(0)
    kept = bops(world, 10_000, 0.01).guarantees()["budget"]
    assert kept.probability == pytest.approx(0.94)
    assert bops(world, 10_000, 0.01, rule="ceiling").guarantees()["budget"].probability == pytest.approx(0.99)
    even = bops(world, baseline_costs=world.thresholds, allow_no_margin=True).guarantees()
    assert even["budget"].holds
    assert "equals its threshold" in even["regret"].void_because


def test_switches_that_it_does_not_have() -> None:
    world = random_world(0)
    with pytest.raises(InvalidInput, match="rule is 'mean'; choose one of ceiling, bound"):
        bops(world, rule="mean")
    with pytest.raises(InvalidInput, match="SOPS has no switch 'rule'"):
        hr.SOPS(world.view(), 10, 0.05, baseline=hr.offline.slater(world), rule="bound")
    assert not bops(world, rule="ceiling").settings.aggregate
    assert bops(world).settings.aggregate
