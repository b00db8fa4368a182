"""Other thresholds, other costs of the baseline, more episodes, a log: between two plans, open ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, to_bytes
from test_open_plans import CHEAP, OTHER, THRESHOLD, VIEW, WORLD, content, cost_of, played, sops

import hedgerow as hr

ROOMY = OTHER.with_thresholds(OTHER.thresholds + 0.8)
"""A search ends soon where the margin is large"""


def taught(learner: Any, episodes: int, world: hr.CMDP = WORLD) -> Any:
    rng = np.random.default_rng(4)
    for _ in range(episodes):
        plan = learner.plan()
        learner.observe(played(plan, rng, world), plan)
    return learner


def with_limit(threshold: float) -> hr.View:
    return WORLD.with_thresholds([threshold]).view()


@pytest.mark.parametrize("threshold", [0.2, 0.45, 2.0])
def test_other_thresholds_hold_for_later_plans_and_open_ones_keep_theirs(threshold: float) -> None:
    learner, rng = taught(sops(most=4), 400), np.random.default_rng(0)
    before = [learner.plan(), learner.plan()]
    kept = content(learner)
    other = learner.with_view(with_limit(threshold))
    assert content(learner) == kept
    for name in ("num_visits", "num_moves", "num_costs", "cost_sums"):
        ours, theirs = (getattr(one.core.state.counts, name) for one in (learner, other))
        np.testing.assert_array_equal(ours, theirs)
    assert [plan.to_dict() for plan in other.open_plans] == [plan.to_dict() for plan in before]
    other.observe(played(before[1], rng), before[1])
    after = other.plan()
    assert (after.episode, after.view.thresholds.tolist()) == (402, [threshold])
    assert cost_of(after) <= threshold + 1e-9
    # The weight by hand, and a projection that meets the new threshold as far as is known.
    bound = float(after.own_bounds[0])
    weight = max(0.0, (bound - threshold) / (bound - 2 * CHEAP)) if bound > threshold else 0.0
    assert after.mixing_weight == pytest.approx(weight, abs=1e-11)
    other = from_bytes(to_bytes(other))
    for plan in (before[0], after):
        other.observe(played(plan, rng), plan)
    assert other.episode == 403
    with pytest.raises(hr.errors.InvalidInput, match="has ended"):
        other.observe(played(before[0], rng), before[0])
    for _ in range(100):
        plan = other.plan()
        assert cost_of(plan) <= threshold + 1e-9
        other.observe(played(plan, rng), plan)
    ledger = other.guarantees()
    assert ledger["safety"].holds
    assert not ledger["regret"].holds
    assert any(f"cost 1 {THRESHOLD:g} -> {threshold:g}" in line for line in ledger.assumptions)


def test_the_same_thresholds_project_nothing_anew() -> None:
    learner = taught(sops(), 200)
    same = learner.with_view(VIEW)
    np.testing.assert_allclose(same.policy, learner.policy, atol=1e-8)
    np.testing.assert_array_equal(same.core.state.counts.cost_sums, learner.core.state.counts.cost_sums)


def test_what_cannot_be_changed_is_refused() -> None:
    learner = taught(sops(), 5)
    for view in (OTHER.view(), VIEW.knowing(independent_costs=True)):
        with pytest.raises(hr.errors.InvalidInput, match="other thresholds only"):
            learner.with_view(view)
    with pytest.raises(hr.errors.InvalidInput, match="the baseline is not safe"):
        learner.with_view(with_limit(0.09))
    looser = learner.with_view(with_limit(0.09), baseline_costs={"cost 1": 0.05})
    assert looser.baseline_costs.tolist() == [0.05]
    with pytest.raises(hr.errors.InvalidInput, match="at least that"):
        learner.with_episodes(4)
    for preset in ("paper", "sharp"):
        with pytest.raises(hr.errors.InvalidInput, match="hold for one number of episodes"):
            sops(preset=preset).with_episodes(50_000)
    with pytest.raises(hr.errors.InvalidInput, match="needs no number of episodes"):
        hr.SVOPS(VIEW, None, 0.05, horizon="doubling").with_episodes(10)
    with pytest.raises(hr.errors.InvalidInput, match="no baseline"):
        hr.SVOPS(VIEW, 10, 0.05).with_view(VIEW, baseline_costs=[0.1])


def test_more_episodes_change_the_rates() -> None:
    learner = taught(sops(episodes=100), 100)
    with pytest.raises(hr.errors.InvalidInput, match="built for 100 episodes"):
        learner.plan()
    more = learner.with_episodes(400)
    assert more.eta == pytest.approx(learner.eta / 2.0)
    np.testing.assert_array_equal(more.core.state.counts.cost_sums, learner.core.state.counts.cost_sums)
    assert from_bytes(to_bytes(more)).eta == more.eta
    assert taught(more, 20).episode == 120


def test_an_adaptive_rate_falls_to_the_first_one_of_more_episodes() -> None:
    learner = taught(hr.SVOPS(ROOMY.view(), 100, 0.05, "sharpest", seed=1), 20, ROOMY)
    more = learner.with_episodes(10_000)
    first = hr.SVOPS(ROOMY.view(), 10_000, 0.05, "sharpest").eta
    assert more.eta == pytest.approx(min(first, learner.eta))
    assert more.eta < learner.eta
    less = more.with_episodes(5_000)
    assert less.eta == more.eta
    assert taught(less, 20, ROOMY).episode == 40


def test_the_mixture_of_a_search_has_another_margin_to_other_thresholds() -> None:
    learner = taught(hr.CVOPS(ROOMY.view(), 20_000, 0.05, "sharpest", seed=1), 600, ROOMY)
    assert learner.phase == 2
    higher = OTHER.with_thresholds(ROOMY.thresholds + 0.05).view()
    other = learner.with_view(higher)
    assert (other.phase, other.t_bar) == (2, learner.t_bar)
    assert other.rho_hat == pytest.approx(learner.rho_hat + 0.05)
    np.testing.assert_allclose(other.baseline_costs, learner.baseline_costs, atol=1e-12)
    much = OTHER.with_thresholds(ROOMY.thresholds - learner.rho_hat - 0.01).view()
    with pytest.raises(hr.errors.InvalidInput, match="cannot go on with this"):
        learner.with_view(much)


def test_the_policies_of_a_search_enter_its_mixture_in_the_order_of_the_plans() -> None:
    learner, rng = hr.CVOPS(ROOMY.view(), 20_000, 0.05, "sharpest", seed=1), np.random.default_rng(0)
    learner.max_open = 30
    plans: list[Any] = []
    made: list[Any] = []
    while learner.phase == 1:
        while learner.num_open < 30:
            made.append(learner.plan())
            plans.append(made[-1])
        plan = plans.pop(int(rng.integers(len(plans))))
        learner.observe(played(plan, rng, ROOMY), plan)
    t_bar = learner.t_bar
    expected = np.array([plan.policy.probabilities for plan in made[:t_bar]])
    np.testing.assert_array_equal(learner.baseline_policies, expected)
    unprotected = len(made) - t_bar
    assert learner.queue.unprotected == unprotected > 0
    assert f"(t_bar + {unprotected})" in learner.guarantees()["violation"].statement
    loaded = from_bytes(to_bytes(learner))
    for each in (learner, loaded):
        for plan in plans:
            each.observe(played(plan, np.random.default_rng(plan.episode), ROOMY), plan)
        assert each.plan().mixing_weight <= 1.0
    assert content(learner) == content(loaded)
    ledger = learner.guarantees()
    assert ledger["violation"].holds
    assert ledger["safety"].holds


def test_a_log_takes_its_place_behind_the_open_plans() -> None:
    learner, rng = sops(most=3), np.random.default_rng(0)
    plans = [learner.plan(), learner.plan()]
    log = hr.Log.played(WORLD, [1.0, 0.0] * 3, 30)
    learner.absorb(log)
    last = learner.plan()
    assert learner.logged["episodes"] == 0
    with pytest.raises(hr.errors.InvalidInput, match="absorbed before"):
        learner.absorb(log)
    learner = from_bytes(to_bytes(learner))
    learner.observe(played(last, rng), last)
    learner.observe(played(plans[0], rng), plans[0])
    assert (learner.episode, learner.logged["episodes"]) == (1, 0)
    learner.observe(played(plans[1], rng), plans[1])
    assert (learner.episode, learner.logged["episodes"]) == (3, 30)
    with pytest.raises(hr.errors.InvalidInput, match="absorbed before"):
        learner.absorb(log)
    alone = sops()
    alone.plan()
    with pytest.raises(hr.errors.InvalidInput, match="before a log is absorbed"):
        alone.absorb(log)
