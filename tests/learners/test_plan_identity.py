"""An outcome belongs to one plan: delivered twice, or to another learner, it is refused."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from tests.learners.learner_cases import random_world

WORLD = random_world(3)
BASELINE = hr.offline.slater(WORLD)
LEARNERS: dict[str, Any] = {
    "sv-ops": lambda seed: hr.SVOPS(WORLD.view(), 50, 0.05, "paper", seed=seed),
    "s-ops": lambda seed: hr.SOPS(WORLD.view(), 50, 0.05, preset="sharpest", seed=seed, baseline=BASELINE),
    "c-ops": lambda seed: hr.COPS(WORLD.view(), 50, 0.05, preset="sharpest", seed=seed, baseline=BASELINE),
    "cv-ops": lambda seed: hr.CVOPS(WORLD.view(), 50, 0.05, "paper", seed=seed),
    "s-lp": lambda seed: hr.field.SLP(WORLD.view(), 50, 0.05, seed=seed, baseline=BASELINE),
    "uniform": lambda seed: hr.field.Uniform(WORLD.view(), 50 + seed),
}


def played(plan: hr.Plan, seed: int = 0) -> hr.Episode:
    return WORLD.play(plan.policy, np.random.default_rng(seed), np.full(WORLD.layout.num_rows, 0.5))


def content(learner: Any) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in learner.state().items()}


@pytest.fixture(params=LEARNERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_outcome_that_comes_twice_is_learnt_once(kind: str) -> None:
    learner = LEARNERS[kind](0)
    first = learner.plan()
    outcome = played(first)
    learner.observe(outcome, first)
    for _ in range(2):  # while nothing is planned, and while the next episode is
        before = content(learner)
        with pytest.raises(
            hr.errors.InvalidInput, match=r"the plan of episode 0 has ended: .* nothing is learnt twice"
        ):
            learner.observe(outcome, first)
        assert content(learner) == before
        if not learner.open_plans:
            learner.plan()
    assert learner.episode == 1


def test_with_and_without_the_plan_the_bits_are_the_same(kind: str) -> None:
    named, plain = LEARNERS[kind](0), LEARNERS[kind](0)
    for t in range(10):
        plan = named.plan()
        plain.plan()
        outcome = played(plan, t)
        if t % 2:
            named.observe(outcome.rows, outcome.losses, outcome.costs, plan=plan)
        else:
            named.observe(outcome, plan)
        plain.observe(outcome)
    assert content(named) == content(plain)


def test_plans_of_others_are_refused(kind: str) -> None:
    learner, other = LEARNERS[kind](0), LEARNERS[kind](1)
    own, foreign = learner.plan(), other.plan()
    outcome = played(own)
    before = content(learner)
    with pytest.raises(hr.errors.InvalidInput, match="was made by another learner"):
        learner.observe(outcome, foreign)
    with pytest.raises(hr.errors.InvalidInput, match="not one of this learner's; pass what plan"):
        learner.observe(outcome, hr.Plan(own.policy))
    later = dataclasses.replace(own, episode=own.episode + 3)
    with pytest.raises(hr.errors.InvalidInput, match="the plan of episode 3 is not open here"):
        learner.observe(outcome, later)
    assert content(learner) == before
    learner.observe(outcome, own)


def test_a_copy_that_went_another_way_has_other_plans() -> None:
    learner = hr.SVOPS(WORLD.view(), 50, 0.05, "paper")
    twin = copy.copy(learner)
    for t in range(5):
        for which, seed in ((learner, t), (twin, t + 100)):
            plan = which.plan()
            which.observe(played(plan, seed), plan)
    here, there = learner.plan(), twin.plan()
    with pytest.raises(hr.errors.InvalidInput, match="a copy of this learner that has seen other episodes"):
        learner.observe(played(here), there)
    learner.observe(played(here), here)


def test_a_plan_of_before_a_restart_fits_the_learner_that_was_loaded(kind: str, tmp_path: Path) -> None:
    learner = LEARNERS[kind](0)
    plan = learner.plan()
    learner.observe(played(plan), plan)
    plan = learner.plan()
    hr.save(learner, tmp_path / "learner.npz")
    loaded: Any = hr.load(tmp_path / "learner.npz")
    (found,) = loaded.open_plans
    assert (found.episode, found.branch, found.learner_key) == (plan.episode, plan.branch, plan.learner_key)
    loaded.observe(played(plan), plan)
    assert loaded.open_plans == ()
    assert loaded.episode == 2


def test_no_plan_is_open_before_the_first_and_after_the_last() -> None:
    learner = hr.SVOPS(WORLD.view(), 1, 0.05, "paper")
    assert learner.open_plans == ()
    plan = learner.plan()
    assert [found.episode for found in learner.open_plans] == [0]
    learner.observe(played(plan), plan)
    with pytest.raises(hr.errors.InvalidInput, match="has ended"):
        learner.observe(played(plan), plan)


def test_a_plan_can_be_abandoned(kind: str) -> None:
    learner = LEARNERS[kind](0)
    plan = learner.plan()
    before = content(learner)
    for reason in ("", "  ", None, 3):
        with pytest.raises(hr.errors.InvalidInput, match="needs the reason in words"):
            learner.abandon(plan, reason)
    with pytest.raises(hr.errors.InvalidInput, match="made by another learner"):
        learner.abandon(LEARNERS[kind](1).plan(), "charger off")
    assert content(learner) == before
    learner.abandon(plan, "charger off")
    assert learner.open_plans == ()
    assert learner.episode == 1
    with pytest.raises(hr.errors.InvalidInput, match="has ended"):
        learner.observe(played(plan), plan)
    with pytest.raises(hr.errors.InvalidInput, match="has ended"):
        learner.abandon(plan, "charger off")
    following = learner.plan()
    learner.observe(played(following), following)
    assert learner.episode == 2


def test_what_an_abandoned_plan_could_have_done_is_unknown_unless_the_reason_is_declared() -> None:
    def after(*, independent: bool) -> Any:
        learner = LEARNERS["s-ops"](0)
        for _ in range(10):
            learner.abandon(learner.plan(), "closed for a holiday", independent=independent)
        return learner

    unknown, declared = after(independent=False), after(independent=True)
    assert "closed for a holiday" in " ".join(declared.guarantees().assumptions)
    assert declared.core.state.counts.unknown_costs.max() == 0
    # Every plan could have visited the first state: one unknown visit each, of the pairs that were possible.
    assert unknown.core.state.counts.unknown_costs.max() == 10
