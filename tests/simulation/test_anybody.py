"""Learners, adversaries, costs and environments of somebody else's: the same scores as the house's own would get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_learners import FollowTheLeader, Informed, Uniform, Wrapped
from learner_cases import KINDS, make_learner, random_world
from numpy.random import Generator

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.report.page import run_results
from hedgerow.results import Column
from hedgerow.results.leaderboard import leaderboard
from hedgerow.simulation.run import Simulation

COMMON = ("episodes", "loss", "regret", "costs", "violations", "worst", "unsafe", "excess", "losses")


@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_behind_the_bare_protocol_scores_like_itself(kind: str, preset: str) -> None:
    """Nobody watches it and nothing is compiled, yet every score is the same, bit for bit."""
    world, adversary = random_world(2), hr.losses.Switching(period=13, seed=1)
    options = {"preset": preset, "confidence_scale": 0.4, "seed": 3}
    own = hr.simulate(world, make_learner(kind, world, 250, **options), adversary, seed=5, progress=False)
    wrapped = Wrapped(make_learner(kind, world, 250, **options))
    foreign = hr.simulate(world, wrapped, adversary, seed=5, progress=False, episodes=250)
    assert (own.way, foreign.way) == ("compiled", "step-wise")
    for name in COMMON:
        np.testing.assert_array_equal(getattr(own, name), getattr(foreign, name), err_msg=name)
    for name in ("mixing_weight", "branch", "bound_0", "bound_1"):  # what its plans note is what the watcher saw
        np.testing.assert_array_equal(own[name], foreign[name], err_msg=name)
    assert foreign.facts == {}


def test_scores_are_those_of_the_mixture() -> None:
    """Against `evaluate`, which shares no code: half of the coin's weight decides, not how it fell."""
    world, loss = random_world(4), np.linspace(0.0, 1.0, 12)
    learner = FollowTheLeader(world.view(), 40)
    plans: list[hr.Plan] = []
    real = learner.plan

    def kept() -> hr.Plan:
        plans.append(real())
        return plans[-1]

    learner.plan = kept  # type: ignore[method-assign]
    run = hr.simulate(world, learner, loss, seed=1, progress=False, marks="all")
    total, costs = 0.0, np.zeros(2)
    for t, plan in enumerate(plans):
        for weight, policy in plan.mixture.policies():  # type: ignore[union-attr]
            value = hr.occupancy.evaluate(world, policy, loss)
            total, costs = total + weight * value.loss, costs + weight * value.costs
        assert run.loss[t] == pytest.approx(total, abs=1e-11)
        np.testing.assert_allclose(run.costs[t], costs, atol=1e-11)
    np.testing.assert_array_equal(run["bold"], np.full(40, 0.75))
    np.testing.assert_array_equal(run["least"], [plan.notes["least"] for plan in plans])
    net = np.maximum(0.0, np.max(run.costs - run.episodes[:, None] * world.thresholds, axis=1))
    np.testing.assert_array_equal(run.net_violation, net)
    assert np.all(run.net_violation <= run.violation + 1e-12)


def test_a_learner_without_a_limit_needs_a_number_and_1e2_is_one() -> None:
    world = random_world(0)
    with pytest.raises(hr.errors.InvalidInput, match="pass episodes="):
        hr.simulate(world, Uniform(world.view()), np.zeros(12), seed=0, progress=False)
    assert (
        hr.simulate(world, Uniform(world.view()), np.zeros(12), seed=0, progress=False, episodes=1e2).episodes[-1]
        == 100
    )
    assert hr.SVOPS(world.view(), 1e5, 0.1, "paper").episodes == 100_000


def test_full_feedback_for_those_who_declare_it() -> None:
    world = random_world(0)
    learner, bandit = Informed(world.view()), Uniform(world.view())
    adversary = hr.losses.Switching(period=3, seed=2)
    run = hr.simulate(world, learner, adversary, seed=4, progress=False, episodes=200)
    other = hr.simulate(world, bandit, adversary, seed=4, progress=False, episodes=200)
    np.testing.assert_array_equal(run.loss, other.loss)
    np.testing.assert_array_equal(learner.losses, adversary.block(world.layout, 0, 200).dense())
    assert np.all(np.abs(np.mean(learner.costs, axis=0) - world.mean_costs.T) < 5 * np.sqrt(0.25 / 200))
    learner.feedback = "half"
    with pytest.raises(hr.errors.InvalidInput, match="choose 'bandit' or 'full'"):
        hr.simulate(world, learner, adversary, seed=4, progress=False, episodes=3)


class OneCoin(hr.costs.CostDistribution):
    """Costs 0 or 1 everywhere at once."""

    def __init__(self, probability: float, m: int, rows: int) -> None:
        self.probability, self.means = probability, np.full((m, rows), probability)

    def sample(self, rng: Generator) -> np.ndarray:
        return np.full(self.means.shape, float(rng.random() < self.probability))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"probability": np.array(self.probability)}


def test_costs_of_a_class_of_ones_own() -> None:
    plain = random_world(0)
    world = hr.CMDP(plain.layout, plain.transitions, OneCoin(0.25, 1, 12), [1.0])
    run = hr.simulate(world, hr.SVOPS(world.view(), 300, 0.1, "paper"), np.zeros(12), seed=0, progress=False)
    assert run.way == "step-wise"
    assert run.costs[-1, 0] == pytest.approx(300 * 3 * 0.25)  # exact scores come from the means
    sums = run.learner.core.state.counts.cost_sums.sum(axis=0)  # type: ignore[attr-defined]
    assert sums[0] % 3 == 0  # one coin for an episode
    assert abs(sums[0] - 225) < 5 * 3 * np.sqrt(300 * 0.1875)


class Bell:
    """An environment of which nobody knows the truth: it rings three times, costs what was asked for."""

    def __init__(self) -> None:
        self._view = hr.View(hr.Layout((1, 1, 1, 1), 2), [1.0], ["noise"])

    def view(self) -> hr.View:
        return self._view

    def play(self, policy: hr.Policy, rng: Generator) -> hr.Episode:
        actions = [policy.draw(state, rng) for state in range(3)]
        pairs = list(enumerate(actions))
        return hr.Episode(self._view, pairs, [0.5 * a for a in actions], [1.0 - a for a in actions])


def test_an_environment_without_a_model_is_sampled() -> None:
    bell = Bell()
    learner = hr.SVOPS(bell.view(), 200, 0.1, "paper")
    run = hr.simulate(bell, learner, seed=0, progress=False, marks="all")
    assert (run.scored, run.way) == ("sampled", "step-wise")
    assert np.all(np.isnan(run.regret))
    assert np.all(np.isnan(run.costs))
    assert not run.safe.any()
    np.testing.assert_allclose(run["observed_loss"] + 0.5 * run["observed_cost_0"], 1.5 * run.episodes)
    assert "observed_loss" in repr(run)
    again = hr.simulate(Bell(), hr.SVOPS(bell.view(), 200, 0.1, "paper"), seed=0, progress=False, marks="all")
    np.testing.assert_array_equal(run["observed_loss"], again["observed_loss"])
    with pytest.raises(hr.errors.InvalidInput, match="has its own losses; leave `losses` out"):
        hr.simulate(bell, hr.SVOPS(bell.view(), 5, 0.1, "paper"), np.zeros(6), seed=0, progress=False)
    with pytest.raises(hr.errors.InvalidInput, match="full feedback needs a CMDP"):
        hr.simulate(bell, Informed(bell.view()), seed=0, progress=False, episodes=5)


def test_a_foreign_run_has_a_page(tmp_path: Path) -> None:
    world = hr.worlds.make("dope-media")
    run = hr.simulate(world, FollowTheLeader(world.cmdp.view(), 100), seed=0, progress=False)
    text = hr.report(run, tmp_path / "run.html").read_text(encoding="utf-8")
    assert "follow-the-leader" in text
    assert "makes no promises" in text
    assert "step-wise" in text
    sampled = hr.simulate(Bell(), Uniform(Bell().view()), seed=0, progress=False, episodes=50)
    assert "Uniform" in hr.report(sampled, tmp_path / "sampled.html").read_text(encoding="utf-8")


class Faulty(Uniform):
    """Does one thing wrong."""

    def __init__(self, view: hr.View, plan: Any = None, fails: bool = False) -> None:
        super().__init__(view)
        self._plan, self._fails = plan, fails

    def plan(self) -> Any:
        return super().plan() if self._plan is None else self._plan

    def observe(self, episode: hr.Episode) -> None:
        if self._fails:
            raise RuntimeError("no")


def test_what_others_do_wrong_is_named() -> None:
    world = random_world(0)
    other = hr.Policy.uniform(hr.Layout((1, 1), 2))
    for plan, message in (
        (np.full(12, 0.5), "plan of Faulty returns a Plan or a Policy, not"),
        (hr.Plan(other), "belongs to another layout"),
        (hr.Plan(hr.Policy.uniform(world), notes={"regret": 1.0}), "a note cannot be called 'regret'"),
        (hr.Plan(hr.Policy.uniform(world), notes={"cost_1": 1.0}), "a note cannot be called 'cost_1'"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.simulate(world, Faulty(world.view(), plan), np.zeros(12), seed=0, progress=False, episodes=2)
    simulation = Simulation(world, Faulty(world.view(), fails=True), np.zeros(12), episodes=5)
    with pytest.raises(RuntimeError, match="no"):
        simulation.finish()
    with pytest.raises(hr.errors.InvalidInput, match=r"Faulty\.observe failed in episode 0; begin a new simulation"):
        simulation.finish()


def test_a_subclass_that_plans_in_its_own_way_is_not_run_compiled() -> None:
    class Timid(hr.SVOPS):
        def plan(self) -> Any:
            plan = super().plan()
            uniform = hr.Policy.uniform(self.view)
            return hr.Plan(uniform, uniform, plan.notes)

    world = random_world(0)
    run = hr.simulate(world, Timid(world.view(), 50, 0.1), np.linspace(0, 1, 12), seed=0, progress=False)
    assert run.way == "step-wise"
    uniform = hr.occupancy.evaluate(world, np.full(12, 0.5), np.linspace(0, 1, 12)).loss
    assert run.loss[-1] == pytest.approx(50 * uniform)


def test_notes_of_ones_own_are_drawn(tmp_path: Path) -> None:
    world = random_world(0)
    run = hr.simulate(world, FollowTheLeader(world.view(), 50), np.linspace(0, 1, 12), seed=0, progress=False)
    text = hr.report(run, tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Note: least" in text
    assert "Note: bold" in text
    own = hr.simulate(world, hr.SVOPS(world.view(), 50, 0.1, "paper"), np.linspace(0, 1, 12), seed=0, progress=False)
    assert "Note: " not in hr.report(own, tmp_path / "own.html").read_text(encoding="utf-8")
    sampled = hr.simulate(Bell(), Uniform(Bell().view()), seed=0, progress=False, episodes=50)
    page = hr.report(sampled, tmp_path / "bell.html").read_text(encoding="utf-8")
    assert "Mean loss of the episodes between two checkpoints, as observed." in page
    assert "loss observed" in page


class Moody(Uniform):
    """Declares a note, which then stands in every table that it names."""

    columns: Any = (
        Column(
            "mood", label="worst mood", words="the lowest mood", reduce="least", tables=("answer", "short", "latex")
        ),
        Column("temper", tables=("board", "figures"), each=True),
    )

    def plan(self) -> hr.Plan:
        made = super().plan()
        return hr.Plan(made.mixture, made.policy, notes={"mood": 0.25, "temper_0": 1.0, "luck": 7.0})


def test_a_learner_declares_its_columns(tmp_path: Path) -> None:
    world = random_world(4)
    run = hr.simulate(world, Moody(world.view()), np.zeros(12), episodes=20, progress=False)
    results = run_results(run)
    (group,) = results.groups
    assert (group["mood"].value, group["luck"].value) == (0.25, 7.0)
    assert "worst mood" in group.shown("answer")
    assert group.notes == ("temper_0", "luck")
    assert "Worst mood" in results.to_latex()
    content = hr.report(run, tmp_path / "moody.html").read_text(encoding="utf-8")
    assert "the lowest mood" in content
    assert "Note: luck" in content
    assert "temper_0" in [column.name for column in leaderboard(results).columns]
    (row,) = results.summary().to_pylist()
    assert (row["mood"], row["temper_0"]) == (0.25, 1.0)


def test_declarations_of_the_wrong_kind_are_named() -> None:
    world = random_world(4)
    learner = Moody(world.view())
    learner.columns = ("mood",)
    with pytest.raises(InvalidInput, match=r"Moody.columns must be a tuple of hedgerow.results.Column"):
        hr.simulate(world, learner, np.zeros(12), episodes=20, progress=False)
