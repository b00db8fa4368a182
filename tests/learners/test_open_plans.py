"""Several open plans: safe however late outcomes come and why, learnt in the order of the plans, saved with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, random_world, to_bytes

import hedgerow as hr
from hedgerow.learners.open_plans import INDEPENDENT, SILENT

LAYOUT = hr.Layout((1, 2, 1), 2)
CHEAP, DEAR, THRESHOLD = 0.05, 0.45, 0.3
WORLD = hr.CMDP(
    LAYOUT,
    [0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0],
    hr.costs.BernoulliCosts(np.array([[CHEAP, DEAR] * 3])),
    [THRESHOLD],
)
VIEW = WORLD.view()
LOSS = np.array([1.0, 0.0] * 3)
OTHER = random_world(3)
BASELINE = hr.offline.slater(OTHER)
Outcome = tuple[float, Any, hr.Episode]


def sops(seed: int = 0, episodes: int = 20_000, most: int = 1, preset: Any = "sharpest", **options: Any) -> hr.SOPS:
    baseline = hr.SafePolicy(np.array([1.0, 0.0] * 3), np.array([2 * CHEAP]))
    learner = hr.SOPS(options.pop("view", VIEW), episodes, 0.05, preset, seed, baseline=baseline, **options)
    learner.max_open = most
    return learner


def cost_of(plan: Any) -> float:
    """The expected cost of the mixture, by hand."""
    cost = 0.0
    for weight, policy in plan.mixture.policies():
        dear = policy.probabilities[1::2] @ [1.0, 0.5, 0.5]
        cost += weight * (2 * CHEAP + dear * (DEAR - CHEAP))
    return float(cost)


def played(plan: Any, rng: np.random.Generator, world: hr.CMDP = WORLD) -> hr.Episode:
    loss = LOSS if world is WORLD else np.full(world.layout.num_rows, 0.5)
    return world.play(plan.policy, rng, loss)


def content(learner: Any) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in learner.state().items()}


# Safety --------------------------------------------------------------------------------------------------------------


class InArrivalOrder:
    """What must be impossible: an S-OPS that learns from outcomes as they come."""

    def __init__(self, learner: hr.SOPS) -> None:
        self.learner = learner

    def plan(self) -> Any:
        plan = self.learner.plan()
        self.learner.core.state.numbers.pending = 0
        return plan

    def observe(self, episode: hr.Episode, plan: Any) -> None:
        numbers = self.learner.core.state.numbers
        numbers.pending, numbers.branch = 1, int(plan.notes["branch"])
        self.learner._end(episode)
        self.learner._complete()


def unsafe_plans(learner: Any, most: int, rounds: int, delay: Callable[[float], float], seed: int) -> int:
    """Rounds of `most` plans, whose outcomes come after a delay that depends on their costs; how many were unsafe."""
    rng, unsafe, due = np.random.default_rng(seed), 0, list[Outcome]()
    for now in range(rounds):
        for _ in range(most):
            plan = learner.plan()
            unsafe += cost_of(plan) > THRESHOLD + 1e-9
            episode = played(plan, rng)
            due.append((now + delay(episode.costs.sum()), plan, episode))
        late = [one for one in due if one[0] > now]
        for _, plan, episode in sorted((one for one in due if one[0] <= now), key=lambda one: one[2].costs.sum()):
            learner.observe(episode, plan)
        due = late
    return unsafe


@pytest.mark.parametrize(("most", "rounds"), [(1, 300), (50, 40), (1000, 3)])
def test_no_plan_is_unsafe_however_many_are_open(most: int, rounds: int) -> None:
    learner = sops(most=most)
    assert unsafe_plans(learner, most, rounds, lambda cost: 0.0, seed=1) == 0
    assert learner.episode == most * rounds
    assert learner.guarantees()["safety"].holds
    assert learner.queue.widest == most


@pytest.mark.parametrize("late", ["dear", "cheap"])
def test_no_plan_is_unsafe_if_delays_depend_on_costs(late: str) -> None:
    def delay(cost: float) -> float:
        return 4.0 if (cost > 0.0) == (late == "dear") else 0.0

    learner = sops(most=500)
    assert unsafe_plans(learner, 50, 40, delay, seed=2) == 0
    assert learner.episode > 1000
    if late == "dear":  # cheap days first: the test sees what it is there for
        assert unsafe_plans(InArrivalOrder(sops()), 50, 40, delay, seed=2) > 500


# Order ---------------------------------------------------------------------------------------------------------------

LEARNERS: dict[str, Callable[[], Any]] = {
    "sv-ops": lambda: hr.SVOPS(OTHER.view(), 400, 0.05, "sharp"),
    "s-ops": lambda: hr.SOPS(OTHER.view(), 400, 0.05, "sharpest", baseline=BASELINE),
    "b-ops": lambda: hr.BOPS(OTHER.view(), 400, 0.05, "sharpest", baseline=BASELINE),
    "c-ops": lambda: hr.COPS(OTHER.view(), 400, 0.05, "sharpest", baseline=BASELINE),
    "cv-ops": lambda: hr.CVOPS(OTHER.view(), 400, 0.05, "paper"),
    "s-lp": lambda: hr.field.SLP(OTHER.view(), 400, 0.05, baseline=BASELINE),
}


@pytest.fixture(params=LEARNERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rounds_of(learner: Any, order: Callable[[int], Any], rounds: int = 4, most: int = 12) -> list[hr.Episode]:
    learner.max_open, rng, seen = most, np.random.default_rng(5), []
    for now in range(rounds):
        plans = [learner.plan() for _ in range(most)]
        assert [plan.episode for plan in plans] == list(range(now * most, (now + 1) * most))
        episodes = [played(plan, rng, OTHER) for plan in plans]
        seen += episodes
        for j in order(most):
            learner.observe(episodes[j], plans[j])
    return seen


def test_the_order_of_arrival_changes_no_bit(kind: str) -> None:
    shuffled, sorted_, rng = LEARNERS[kind](), LEARNERS[kind](), np.random.default_rng(0)
    rounds_of(shuffled, rng.permutation)
    seen = rounds_of(sorted_, range)
    assert content(shuffled) == content(sorted_)
    # A slow twin of the counts: one visit, one move and one cost for each step, and nothing else.
    state = shuffled.statistics if kind == "s-lp" else shuffled.core.state
    visits, moves, sums = np.zeros(OTHER.layout.num_rows), np.zeros(OTHER.layout.num_triples), 0.0
    for episode in seen:
        np.add.at(visits, episode.rows, 1)
        np.add.at(moves, episode.triples, 1)
        sums += episode.costs.sum()
    np.testing.assert_array_equal(state.counts.num_visits, visits)
    np.testing.assert_array_equal(state.counts.num_moves, moves)
    if kind != "s-lp":
        assert state.counts.cost_sums.sum() == pytest.approx(sums)


def test_an_early_outcome_waits(kind: str) -> None:
    learner, rng = LEARNERS[kind](), np.random.default_rng(0)
    learner.max_open = 3
    plans = [learner.plan() for _ in range(3)]
    before = learner.policy
    for j in (2, 1):
        learner.observe(played(plans[j], rng, OTHER), plans[j])
        assert learner.episode == 0
        np.testing.assert_array_equal(learner.policy, before)
    assert (learner.num_open, learner.num_waiting) == (1, 2)
    assert [plan.episode for plan in learner.open_plans] == [0]
    learner.observe(played(plans[0], rng, OTHER))  # the only open one
    assert (learner.episode, learner.num_open, learner.num_waiting) == (3, 0, 0)


def test_one_open_plan_is_as_before_bit_for_bit(kind: str) -> None:
    one, several, rng = LEARNERS[kind](), LEARNERS[kind](), np.random.default_rng(0)
    several.max_open = 7
    for _ in range(20):
        episode = played(one.plan(), rng, OTHER)
        one.observe(episode)
        several.plan()
        several.observe(episode)
    several.max_open = 1
    assert content(one) == content(several)


def test_the_loss_estimate_of_a_late_plan_has_the_bounds_of_its_time() -> None:
    twin, learner, rng = sops(), sops(most=2), np.random.default_rng(0)
    for _ in range(30):
        for each in (twin, learner):
            plan = each.plan()
            episode = played(plan, np.random.default_rng(7), WORLD)
            each.observe(episode, plan)
    first, second = learner.plan(), learner.plan()
    episode = played(second, rng)
    twin.plan()
    twin.core.state.numbers.branch = int(second.notes["branch"])
    twin.observe(episode)  # what the second plan would have been taught had it been the first
    expected = twin.core.buffers.trace.u.copy()
    learner.observe(played(first, rng), first)
    learner.observe(episode, second)
    trace, reals = learner.core.buffers.trace, learner.core.state.reals
    np.testing.assert_array_equal(trace.u, expected)
    np.testing.assert_array_equal(trace.estimate, episode.losses / (expected + reals.gamma))


def test_plans_share_their_policy_while_nothing_is_learnt() -> None:
    learner = sops(most=100)
    plans = [learner.plan() for _ in range(100)]
    own = {id(entry.own.probabilities) for entry in learner.queue.entries}
    assert len(own) == 1
    assert 0 < sum(plan.branch == "own" for plan in plans) < 100  # each has a coin of its own
    assert len({tuple(plan.actions.numbers) for plan in plans if plan.branch == "own"}) > 1  # and actions of its own
    for plan in plans[:2]:
        learner.observe(played(plan, np.random.default_rng(0)), plan)
    assert len({id(entry.u) for entry in learner.queue.entries}) == 1


# Refusals ------------------------------------------------------------------------------------------------------------


def test_what_is_refused_changes_nothing(kind: str) -> None:
    learner, other, rng = LEARNERS[kind](), LEARNERS[kind](), np.random.default_rng(0)
    learner.max_open = 2
    plans = [learner.plan(), learner.plan()]
    foreign = hr.field.Uniform(OTHER.view(), 10).plan()
    episode = played(plans[1], rng, OTHER)
    learner.observe(episode, plans[1])
    learner.plan()
    before = content(learner)
    refusals: list[tuple[Callable[[], Any], str]] = [
        (learner.plan, "2 plans are open, and max_open is 2"),
        (lambda: learner.observe(episode, plans[1]), "has come already, and waits .* nothing is learnt twice"),
        (lambda: learner.abandon(plans[1], "lost"), "has come already"),
        (lambda: learner.observe(episode), "2 plans wait for their outcomes; say whose this is"),
        (lambda: learner.observe(episode, foreign), "made by another learner"),
        (lambda: learner.observe(episode, hr.Plan(plans[0].policy)), "not one of this learner's"),
        (lambda: learner.observe([0, 0, 0], [0, 0, 0], plan=plans[0]), "trajectory|missing"),
        (lambda: learner.close_group("today"), "no open plan has the group 'today'"),
        (lambda: setattr(learner, "max_open", 0), "max_open is 0; it must be at least 1"),
    ]
    for call, words in refusals:
        with pytest.raises(hr.errors.InvalidInput, match=words):
            call()
    assert content(learner) == before
    learner.observe(played(plans[0], rng, OTHER), plans[0])
    assert learner.episode == 2
    with pytest.raises(hr.errors.InvalidInput, match="has ended"):
        learner.observe(episode, plans[1])
    assert other.max_open == 1


def test_the_number_of_plans_is_limited_where_sets_need_it() -> None:
    for preset in ("paper", "sharp"):
        learner = sops(episodes=5, most=10, preset=preset)
        plans = [learner.plan() for _ in range(5)]
        learner.abandon(plans[0], "lost")
        with pytest.raises(hr.errors.InvalidInput, match="built for 5 episodes"):
            learner.plan()
    learner, rng = sops(episodes=5, most=10), np.random.default_rng(0)
    plans = [learner.plan() for _ in range(8)]
    for plan in plans:
        learner.observe(played(plan, rng), plan)
    assert learner.episode == 8
    assert "rates were chosen for 5 episodes" in learner.guarantees()["regret"].void_because
    assert from_bytes(to_bytes(learner)).episode == 8


def test_some_learners_keep_one_open_plan() -> None:
    learner = hr.field.Uniform(VIEW, 10)
    learner.max_open = 1
    with pytest.raises(hr.errors.InvalidInput, match="keeps one open plan"):
        learner.max_open = 2
    with pytest.raises(hr.errors.InvalidInput, match="cannot be in groups"):
        learner.plan(group="today")
    with pytest.raises(hr.errors.InvalidInput, match="episode 0 is planned already"):
        learner.plan() and learner.plan()


# Files ---------------------------------------------------------------------------------------------------------------


def irregular(view: hr.View, plan: Any, rng: np.random.Generator, world: hr.CMDP, way: int) -> hr.Episode | None:
    whole = played(plan, rng, world)
    rows, losses, costs = whole.rows, whole.losses, whole.costs
    if way == 1:
        return hr.Episode(view, rows[:1], losses[:1], costs[:1], end_unseen=True)
    if way == 2:
        return hr.Episode(view, rows, losses, costs, overridden_from=1)
    if way == 3:
        return hr.Episode(view, rows, losses, costs, unknown_costs=rng.random(costs.shape) < 0.5)
    if way == 4:
        return hr.Episode(view, [], [], ended_in=0, independent="power cut", actions=plan.actions)
    return None if way == 5 else whole


def test_a_learner_goes_on_from_its_file_with_open_plans_and_outcomes_that_wait(kind: str) -> None:
    learner, rng = LEARNERS[kind](), np.random.default_rng(0)
    learner.max_open = 40
    plans: list[Any] = []
    for t in range(60):
        plans.append(learner.plan())
        if t % 3:
            plan = plans.pop(int(rng.integers(len(plans))))
            outcome = irregular(OTHER.view(), plan, rng, OTHER, t % 8)
            if outcome is None:
                learner.abandon(plan, "lost")
            else:
                learner.observe(outcome, plan)
    assert learner.num_waiting > 2
    loaded = from_bytes(to_bytes(learner))
    assert to_bytes(loaded) == to_bytes(learner)
    assert [plan.to_dict() for plan in loaded.open_plans] == [plan.to_dict() for plan in learner.open_plans]
    for each in (learner, loaded):
        for plan in plans:
            each.observe(played(plan, np.random.default_rng(plan.episode), OTHER), plan)
        each.plan()
    assert (learner.num_open, learner.num_waiting, learner.episode) == (1, 0, 60)
    assert content(learner) == content(loaded)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text["entries"].pop(0), "stands in the place of"),
        (lambda text: text["entries"][0].update(branch=3), "branch"),
        (lambda text: text["entries"][1]["outcome"].update(path=[0, 99]), "trajectory"),
        (lambda text: text["entries"][1]["outcome"].update(losses=[2.0, 0.0]), "the loss"),
        (lambda text: text.update(most=-1), "most"),
        (lambda text: text.update(keys=[3]), "not a text"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(change: Callable[[Any], Any], words: str) -> None:
    learner, rng = sops(most=3), np.random.default_rng(0)
    plans = [learner.plan() for _ in range(3)]
    learner.observe(played(plans[1], rng), plans[1])
    state = learner.state()
    text = json.loads(str(state["open"]))
    change(text)
    state["open"] = np.array(json.dumps(text))
    with pytest.raises(hr.errors.InvalidInput, match=words):
        hr.SOPS.restored(VIEW, state)


# What is said --------------------------------------------------------------------------------------------------------


def test_the_ledger_states_both_assumptions_and_claims_no_regret() -> None:
    learner = sops(most=3)
    assert learner.guarantees()["regret"].holds
    for _ in range(2):
        learner.plan()
    ledger = learner.guarantees().to_dict()
    assert {INDEPENDENT, SILENT} <= set(ledger["rests_on"])
    holds = {promise["name"]: promise["holds"] for promise in ledger["promises"]}
    assert holds == {"confidence": True, "feasibility": True, "safety": True, "mixing": True, "regret": False}
    json.dumps(ledger, allow_nan=False)


def test_a_plan_says_why_it_was_allowed() -> None:
    learner = sops(most=300)
    plans = [learner.plan() for _ in range(300)]
    left = next(plan for plan in plans if plan.branch == "baseline")
    assert (
        left.explain()
        == "baseline, because the bound of 'cost 1' was 2 > 0.3: its own policy had the probability 0.105"
    )
    own = next(plan for plan in plans if plan.branch == "own")
    assert own.explain() == "own, with the probability 0.105, because the bound of 'cost 1' was 2 > 0.3"
    described = json.loads(json.dumps(own.to_dict(), allow_nan=False))
    assert described["cost_bounds"] == {"cost 1": pytest.approx(THRESHOLD)}
    assert (described["episode"], described["group"]) == (own.episode, None)
    assert described["policy"] == own.policy.probabilities.reshape(-1, 2).tolist()
    free = hr.SVOPS(VIEW, 10, 0.05).plan().explain()
    assert free == "own policy; its expected costs are bounded by 'cost 1' <= 2"


def test_threads_that_are_refused_and_try_again_lose_nothing() -> None:
    learner = sops(most=8)

    def tried(call: Callable[[], Any]) -> Any:
        while True:
            try:
                return call()
            except hr.errors.BusyError:
                time.sleep(1e-4)

    def work(seed: int) -> list[int]:
        rng, numbers = np.random.default_rng(seed), []
        for _ in range(25):
            plan = tried(learner.plan)
            episode = played(plan, rng)
            tried(lambda episode=episode, plan=plan: learner.observe(episode, plan))
            numbers.append(plan.episode)
        return numbers

    with ThreadPoolExecutor(8) as pool:
        made = sorted(number for numbers in pool.map(work, range(8)) for number in numbers)
    assert made == list(range(200))
    assert (learner.episode, learner.num_open, learner.num_waiting) == (200, 0, 0)
