"""Rates: the compiled step against a slow twin, the inequalities of docs/rates.md, files, and what is refused."""

from __future__ import annotations

from math import exp, expm1, log, log1p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import draw_path, make_learner, random_world
from naive_svops import NaiveSVOPS

import hedgerow as hr
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners.ops.rates import FIRST, GAIN, MIXED_EVERY, STEP, mirror_gap
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.learners.ops.uob_reps import UOBREPS

TOL_TWIN = 1e-6
"""Both projections are exact to 1e-10; large rates amplify what is left over the episodes."""


class NaiveRates(NaiveSVOPS):
    """Changes the weights on triples before each projection, in the words of docs/rates.md."""

    def __init__(self, *given: Any, eta: float, gamma: float, share: float = 0.0, gain: float = 0.0) -> None:
        super().__init__(*given)
        self.eta, self.gamma, self.share, self.gain = self.eta * eta, self.gamma * gamma, share, gain
        self.uniform, self.gap, self.done, self.falls = self.q.copy(), 0.0, 0, 0
        self.layers = [self.layout.triples(k) for k in range(self.layout.steps)]
        self.entropy = sum(log(layer.stop - layer.start) for layer in self.layers)

    def base(self, estimate: np.ndarray) -> np.ndarray:
        """ln q~ (num_triples,)."""
        on_triples, q = estimate[self.layout.row_of_triple], self.q.copy()
        for layer in self.layers:
            own = q[layer] * np.exp(-self.eta * on_triples[layer])
            self.gap += q[layer] @ on_triples[layer] + log(own.sum()) / self.eta
            q[layer] = own / own.sum()
        self.done += 1
        if self.share and self.done % MIXED_EVERY == 0:
            kept = (1.0 - self.share) ** MIXED_EVERY
            q = kept * q + (1.0 - kept) * self.uniform
        wanted = self.gain * self.entropy / self.gap if self.gain else self.eta
        if wanted * STEP < self.eta:
            power = wanted / self.eta
            q, self.eta, self.falls = q**power * self.uniform ** (1.0 - power), wanted, self.falls + 1
        return np.log(q)


@pytest.mark.parametrize(
    "given", [{"eta": 4.0, "gamma": 0.1}, {"eta": "adaptive", "gamma": 0.3}, {"eta": 2.0, "gamma": 1.0, "share": 0.005}]
)
def test_agrees_with_a_twin_on_triples(given: dict[str, Any]) -> None:
    world, episodes, rng = random_world(0), 160, np.random.default_rng(0)
    learner = SVOPS(world.view(), episodes, 0.1, "paper", confidence_scale=0.05, **given)
    adaptive = given["eta"] == "adaptive"
    rule = given | {"eta": FIRST, "gain": GAIN} if adaptive else given
    twin = NaiveRates(world.view(), episodes, 0.1, 0.05, **rule)
    for _ in range(episodes):
        plan = learner.plan()
        np.testing.assert_allclose(plan.policy, twin.policy, atol=TOL_TWIN)
        rows = draw_path(world, plan.policy, rng)
        losses = 1.0 - world.mean_costs[0, rows]
        costs = (rng.random((len(rows), 2)) < world.mean_costs[:, rows].T).astype(float)
        learner.observe(rows, losses, costs)
        twin.observe(rows, losses, costs)
        assert learner.eta == pytest.approx(twin.eta, rel=1e-9)
    assert learner.gamma == pytest.approx(twin.gamma, rel=1e-14)
    assert adaptive == (twin.falls >= 2)
    if adaptive:
        assert learner.core.state.pace.gap == pytest.approx(twin.gap, rel=1e-7)


@pytest.mark.parametrize(
    ("q", "estimate", "eta"), [(0.3, 2.0, 0.1), (1.0, 5.0, 1.0), (1e-9, 900.0, 0.05), (0.5, 0.0, 1)]
)
def test_the_gap_lies_between_zero_and_half_of_eta_times_the_square(q: float, estimate: float, eta: float) -> None:
    gap = mirror_gap(q, estimate, eta)
    assert 0.0 <= gap <= 0.5 * eta * q * estimate**2 + 1e-15
    assert gap == pytest.approx(q * estimate + log1p(q * (exp(-eta * estimate) - 1.0)) / eta, abs=1e-12)


def play(learner: Any, world: hr.CMDP, episodes: int, rng: np.random.Generator) -> None:
    for _ in range(episodes):
        rows = draw_path(world, learner.plan().policy, rng)
        learner.observe(rows, rng.random(len(rows)), (rng.random((len(rows), 2)) < 0.3).astype(float))


def bandit(episodes: int, **switches: Any) -> UOBREPS:
    """Three actions, one step, nothing to be learnt but losses."""
    return UOBREPS(hr.View.of([["home"]], ["a", "b", "c"], thresholds={}), episodes, 0.1, "paper", **switches)


def test_switching_comparators_pay_an_entropy_and_a_share_each() -> None:
    """Losses change at multiples of MIXED_EVERY; both sides of the tracking inequality of docs/rates.md, pathwise."""
    period, parts, share, rng = 10 * MIXED_EVERY, 4, 0.002, np.random.default_rng(1)
    learner = bandit(parts * period, eta=8.0, share=share)
    eta, mixed = learner.eta, -expm1(MIXED_EVERY * log1p(-share))
    estimates, linear, gaps = np.zeros((parts, 3)), 0.0, 0.0
    for t in range(parts * period):
        policy = np.array(learner.plan().policy)
        action = int(rng.choice(3, p=policy / policy.sum()))
        loss = float(action != (t // period) % 3)
        learner.observe([("home", "abc"[action])], losses=[loss])
        estimate = loss / (policy[action] + learner.gamma)
        estimates[t // period, action] += estimate
        linear += policy[action] * estimate
        gaps += policy[action] * estimate + log(1 - policy[action] + policy[action] * exp(-eta * estimate)) / eta
    assert learner.core.state.pace.gap == pytest.approx(gaps, rel=1e-9)
    left = linear - estimates.min(axis=1).sum()
    mixtures = parts * period / MIXED_EVERY * -log1p(-mixed)
    right = (log(3) + (parts - 1) * (log(3) - log(mixed)) + mixtures) / eta + gaps
    assert 0.0 < left <= right
    assert estimates.argmin(axis=1).tolist() == [0, 1, 2, 0]


def test_without_a_horizon_adaptive_rates_forget_nothing() -> None:
    learners = {eta: bandit(600, horizon="doubling", radii="anytime", eta=eta) for eta in ("paper", "adaptive")}
    for learner in learners.values():
        for t in range(511):  # the next segment begins with the 512th
            learner.plan()
            action = t % 3 if t < 30 else 2
            learner.observe([("home", "abc"[action])], losses=[float(action != 2)])
    assert learners["paper"].policy[2] == pytest.approx(1 / 3)
    assert learners["adaptive"].policy[2] > 0.5


@pytest.mark.parametrize("options", [{"eta": "adaptive"}, {"eta": "adaptive", "horizon": "doubling"}, {"share": 0.01}])
def test_a_file_holds_how_far_the_rates_are(tmp_path: Path, options: dict[str, Any]) -> None:
    world = random_world(1)
    learner = make_learner("s-ops", world, 120, preset="sharpest", **options)
    play(learner, world, 70, np.random.default_rng(2))
    learner.save(tmp_path / "learner.npz")
    again = hr.load(tmp_path / "learner.npz")
    for one in (learner, again):
        play(one, world, 50, np.random.default_rng(3))
    assert learner.eta == again.eta
    assert learner.core.state.pace.gap == again.core.state.pace.gap > 0.0
    np.testing.assert_array_equal(learner.policy, again.policy)


def test_a_file_with_a_rate_that_is_too_large_is_refused(tmp_path: Path) -> None:
    learner = bandit(10, eta="adaptive")
    learner.core.state.reals.eta *= 2.0
    learner.save(tmp_path / "learner.npz")
    with pytest.raises((FileFormatError, InvalidInput), match=r"state.reals: eta is"):
        hr.load(tmp_path / "learner.npz")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eta": "fast"}, r"'paper'|'adaptive'"),
        ({"eta": 0.0}, r"eta is 0.0; it must lie in \[0.001, 1000\]"),
        ({"gamma": "adaptive"}, "'paper'"),
        ({"gamma": float("nan")}, "gamma"),
        ({"share": 0.5}, r"share is 0.5; it must lie in \[0, 0.01\]"),
        ({"share": -1e-9}, "share"),
    ],
)
def test_rates_that_are_none_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        bandit(10, **given)


def test_the_ledger_says_what_the_rates_account_for() -> None:
    plain, small, shared = bandit(1000), bandit(1000, gamma=0.1), bandit(1000, gamma=0.1, share=0.001)
    assert "rates" not in plain.guarantees()["regret"].statement
    assert "the rates account for at most" in small.guarantees()["regret"].statement
    assert "tracking" not in small.guarantees()
    assert "every change adds at most" in shared.guarantees()["tracking"].statement
    assert shared.guarantees()["tracking"].probability == shared.guarantees()["regret"].probability


def test_the_search_of_cv_ops_keeps_the_papers_rates() -> None:
    world = random_world(0)
    one, other = (
        make_learner("cv-ops", world, 50, preset="sharp", **more) for more in ({}, {"eta": 9.0, "gamma": 0.1})
    )
    assert (one.eta, one.gamma) == (other.eta, other.gamma)
