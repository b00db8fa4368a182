"""CV-OPS: from the search for a safe policy to episodes that never violate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, draw_path, make_learner, random_world, scores, snapshot, to_bytes

from hedgerow.errors import InvalidInput
from hedgerow.learners.ops import base
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.losses import oblivious
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import evaluate, occupancy
from hedgerow.planning import offline
from hedgerow.simulation.files import load
from hedgerow.simulation.run import Simulation, simulate


def wide_world(seed: int = 0, m: int = 2, margin: float = 1.0) -> CMDP:
    """Three layers with much room: some policy has at least this margin."""
    rng = np.random.default_rng(seed)
    layout = Layout((1, 3, 2, 1), 2)
    weights = rng.exponential(size=layout.num_triples) + 0.1
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = np.where(np.arange(layout.num_rows) % 2 == 0, 0.1, 0.9) + rng.uniform(-0.05, 0.05, (m, layout.num_rows))
    free = CMDP(layout, transitions, BernoulliCosts(costs), np.full(m, 3.0))
    return free.with_thresholds(offline.slater(free).costs + margin)


def cvops(world: CMDP, episodes: int | None = 3_000, delta: float = 0.05, **options: Any) -> CVOPS:
    learner = make_learner("cv-ops", world, episodes, delta, **options)
    assert isinstance(learner, CVOPS)
    return learner


def true_margin(world: CMDP, learner: CVOPS) -> float:
    """Of the uniform mixture of the baseline's policies, by `evaluate` alone."""
    costs = np.mean(
        [evaluate(world, policy, np.zeros(world.layout.num_rows)).costs for policy in learner.baseline_policies], axis=0
    )
    return float(np.min(world.thresholds - costs))


@pytest.mark.parametrize("preset", ["paper", "sharp"])
def test_a_whole_run(preset: str) -> None:
    world = wide_world()
    learner = cvops(world, preset=preset)
    assert learner.phase == 1
    assert learner.t_bar is None
    assert learner.rho_hat is None
    run = simulate(world, learner, oblivious.Switching(period=100, seed=1), seed=3, audit=True, marks="all")
    assert learner.phase == 2
    assert 100 < learner.t_bar < 2_500
    assert run["t_bar"] == learner.t_bar
    assert run["rho_hat"] == learner.rho_hat
    assert 0.0 < learner.rho_hat <= true_margin(world, learner) <= offline.slater(world).margin
    assert learner.rho_hat >= learner.margin / 2
    assert len(learner.baseline_policies) == learner.t_bar
    # Safe from then on, in every episode; before it, the uniform policy of the first episode is not.
    assert np.all(run.excess[learner.t_bar :] <= 0.0)
    assert run.violation[-1] == run.violation[learner.t_bar - 1]
    assert run["unclean"][-1] == 0
    assert run["refuted_safety"] == 0
    assert run["mixing_over"] <= 1e-9
    assert run["mixing_slack"] >= 0.0
    assert run["mirror_left"] <= run["mirror_right"]
    assert np.all(run["mixing_weight"][: learner.t_bar] == 0.0)
    assert np.any(run["branch"][learner.t_bar :] > 1)
    assert learner.diagnostics["failed"] == 0


def test_the_mixture_is_scored_as_the_average_of_its_policies() -> None:
    world = wide_world(1)
    learner = cvops(world)
    simulation = Simulation(world, learner, oblivious.IID(seed=1), seed=0)
    while learner.phase == 1:
        simulation.advance(100)
    costs = np.mean([evaluate(world, policy, np.zeros(12)).costs for policy in learner.baseline_policies], axis=0)
    np.testing.assert_allclose(world.mean_costs @ simulation.watcher.watch.baseline, costs, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "sharp"},
        {"phase2_stats": "discard"},
        {"memory_budget": 12 * 8 * 100, "confidence_scale": 0.25},
        {"most_cached": 50},
        {"episodes": None, "horizon": "doubling"},
    ],
)
def test_step_wise_and_compiled_runs_agree_across_the_phases(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, runs, most_cached = wide_world(2), [], options.get("most_cached", base.MOST_CACHED)
    monkeypatch.setattr(base, "MOST_CACHED", most_cached)  # more baselines than that are not averaged
    for step_wise in (False, True):
        switches = {name: value for name, value in options.items() if name != "most_cached"}
        learner = cvops(world, **{"episodes": 600, "confidence_scale": 0.4, "seed": 2, **switches})
        run = simulate(world, learner, oblivious.Switching(period=7, seed=1), seed=4, step_wise=step_wise, episodes=600)
        assert learner.phase == 2
        assert learner.t_bar < 500
        assert learner.core.rule.realised == (len(learner.baseline_policies) > most_cached)
        runs.append((snapshot(learner), scores(run)))
    assert_same(runs[0][0], runs[1][0])
    assert_same(runs[0][1], runs[1][1])


@pytest.mark.parametrize("stop_at", [5, 60, 400])
@pytest.mark.parametrize("options", [{}, {"memory_budget": 12 * 8 * 100}])
def test_files_at_any_point_of_either_phase(stop_at: int, options: dict[str, Any], tmp_path: Path) -> None:
    world = wide_world(2)
    original = cvops(world, 600, confidence_scale=0.3, seed=5, **options)
    simulate(world, original, oblivious.IID(seed=1), episodes=stop_at)
    assert original.phase == (2 if stop_at == 400 else 1)
    original.plan()
    original.save(tmp_path / "learner.hedge")
    copy = load(tmp_path / "learner.hedge")
    assert isinstance(copy, CVOPS)
    assert (copy.phase, copy.t_bar, copy.rho_hat) == (original.phase, original.t_bar, original.rho_hat)
    assert_same(snapshot(original), snapshot(copy))
    np.testing.assert_array_equal(copy.baseline_costs, original.baseline_costs)
    learner: Learner
    for learner in (original, copy):
        rng = np.random.default_rng(1)
        plan = learner.open_plans[0]
        learner.observe(draw_path(world, plan.policy, rng), rng.random(3), rng.random((3, 2)))
        simulate(world, learner, oblivious.IID(seed=3), seed=7, episodes=150)
    assert_same(snapshot(original), snapshot(copy))
    assert to_bytes(original) == to_bytes(copy)


def test_rho_hat_is_below_the_true_margin_in_all_of_many_runs() -> None:
    """A slice of the 500 runs of `hedgerow verify`: also with fewer places than policies."""
    for seed in range(12):
        world = wide_world(seed, m=1 + seed % 3)
        budget = {"memory_budget": 12 * 8 * 400} if seed % 2 else {}
        learner = cvops(world, 20_000, delta=0.1, seed=seed, **budget)
        simulation = Simulation(world, learner, oblivious.IID(seed=seed), seed=seed)
        while learner.phase == 1 and learner.episode < 20_000:
            simulation.advance(500)
        assert learner.phase == 2
        assert learner.subsampled == (learner.t_bar > 400 and seed % 2 == 1)
        assert learner.rho_hat <= true_margin(world, learner)


def test_one_draw_for_ever_may_violate_where_the_mixture_does_not() -> None:
    """D5: some policy of phase 1 violates a constraint on its own, although the mixture of all is safe."""
    world = wide_world(3, margin=0.9)
    learner = cvops(world)
    run = simulate(world, learner, oblivious.IID(seed=1), seed=3)
    assert learner.phase == 2
    alone = [evaluate(world, policy, np.zeros(12)).costs for policy in learner.baseline_policies]
    assert np.max(np.array(alone) - world.thresholds) > 0.0
    assert true_margin(world, learner) >= learner.rho_hat
    assert run["refuted_safety"] == 0
    branches = {next_branch(learner) for _ in range(40)}
    assert len(branches) > 10


def next_branch(learner: CVOPS) -> int:
    """Which baseline policy the next episode that is left to the baseline plays."""
    while True:
        learner.core.state.numbers.pending = 0  # forget the last plan
        if learner.episode == learner.episodes:
            learner.core.state.numbers.episode -= 1
        if learner.plan().branch == "baseline":
            return learner.core.state.numbers.branch
        learner.core.state.reals.mixing = 0.9


def test_costs_one_by_one_are_never_above_those_by_the_margin() -> None:
    world = wide_world(4)
    found = {}
    for bound in ("margin", "each"):
        learner = cvops(world, baseline_bound=bound)
        simulate(world, learner, oblivious.IID(seed=1), seed=1)
        found[bound] = learner
    assert found["margin"].t_bar == found["each"].t_bar
    np.testing.assert_allclose(found["margin"].baseline_costs, world.thresholds - found["margin"].rho_hat)
    assert np.all(found["each"].baseline_costs <= found["margin"].baseline_costs)
    true = np.mean([evaluate(world, p, np.zeros(12)).costs for p in found["each"].baseline_policies], axis=0)
    assert np.all(true <= found["each"].baseline_costs)


def test_kept_statistics_make_the_second_phase_better_informed() -> None:
    world = wide_world(5)
    weights = {}
    for stats in ("keep", "discard"):
        learner = cvops(world, preset="sharp", phase2_stats=stats)
        simulation = Simulation(world, learner, oblivious.IID(seed=1), seed=1)
        while learner.phase == 1:
            simulation.advance(50)
        weights[stats] = learner.core.state.counts.num_visits.sum()
    assert weights["keep"] >= 3 * learner.t_bar > weights["discard"]


def test_cached_bounds_of_the_mixture_are_bounds() -> None:
    """The average over all policies, refreshed only when visits have doubled, never falls below the true occupancy."""
    world = wide_world(6)
    learner = cvops(world, confidence_scale=0.4)
    run = simulate(world, learner, oblivious.IID(seed=1), seed=1)
    assert learner.phase == 2
    assert learner.core.state.baseline_visits.max() > 0
    truth = np.zeros(12)
    for policy in learner.baseline_policies:
        q = occupancy(world.layout, world.transitions, policy)
        truth += np.add.reduceat(q, world.layout.row_start[:-1]) / len(learner.baseline_policies)
    assert run["least_excess"] >= -1e-12
    assert np.all(learner.core.state.baseline_u >= truth - 1e-12)


def test_a_search_that_never_ends_says_so() -> None:
    world = random_world(0)  # margin .25 needs thousands of episodes
    learner = cvops(world, 300)
    run = simulate(world, learner, oblivious.IID(seed=1))
    assert run["t_bar"] is None
    assert run["rho_hat"] is None
    assert learner.phase == 1
    assert learner.guarantees()["safety"].status == "void: phase 1 has not ended in 300 episodes: nothing is protected"
    assert learner.guarantees()["confidence"].holds


def test_the_ledger_of_a_protected_learner() -> None:
    world = wide_world()
    learner = cvops(world)
    simulate(world, learner, oblivious.IID(seed=1))
    ledger = learner.guarantees()
    assert all(promise.holds for promise in ledger.promises)
    assert f"t_bar = {learner.t_bar}" in ledger["margin"].statement


def test_the_search_alternates_between_constraints() -> None:
    """Two opposing constraints: the dual player moves its weights to the one that is violated."""
    layout = Layout((1, 1), 3)
    costs = np.array([[0.0, 1.0, 0.3], [1.0, 0.0, 0.3]])
    world = CMDP(layout, np.ones(3), BernoulliCosts(costs), [0.5, 0.5])
    learner = cvops(world, 40_000)
    run = simulate(world, learner, oblivious.IID(seed=1), seed=2)
    assert learner.phase == 2
    assert learner.rho_hat <= true_margin(world, learner) <= offline.slater(world).margin == pytest.approx(0.2)
    assert run["refuted_safety"] == 0


def test_bad_arguments() -> None:
    world = wide_world()
    for options, message in [
        ({"memory_budget": 0}, "memory_budget is 0"),
        ({"phase2_stats": "some"}, "phase2_stats is 'some'"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            cvops(world, **options)
