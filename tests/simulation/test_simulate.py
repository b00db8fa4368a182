"""Simulations: compiled and step-wise runs agree bit for bit, scores are exact, deterministic promises hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import KINDS, assert_same, make_learner, random_world, scores, snapshot, with_costs
from scipy import optimize

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops import base as learner_module
from hedgerow.learners.ops.fallback import fallback_solve
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.losses import oblivious
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import DeterministicCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline
from hedgerow.simulation.files import load
from hedgerow.simulation.run import Simulation, checkpoints, simulate

ADVERSARIES: dict[str, Any] = {
    "fixed": lambda world: oblivious.Fixed(np.random.default_rng(9).random(world.layout.num_rows)),
    "iid": lambda world: oblivious.IID(seed=1),
    "switching": lambda world: oblivious.Switching(period=20, seed=1),
    "drifting": lambda world: oblivious.Drifting(period=50, seed=1),
    "pursuit": lambda world: oblivious.Pursuit(),
}


@pytest.mark.parametrize("cost_kind", ["bernoulli", "beta", "empirical"])
@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_and_step_wise_runs_agree_bit_for_bit(kind: str, preset: str, cost_kind: str) -> None:
    world = with_costs(random_world(0), cost_kind)
    runs = []
    for step_wise in (False, True):
        learner = make_learner(kind, world, 300, preset=preset, confidence_scale=0.3, seed=2)
        run = simulate(world, learner, oblivious.Switching(period=7, seed=1), seed=4, step_wise=step_wise)
        runs.append((snapshot(learner), scores(run)))
    assert_same(runs[0][0], runs[1][0])
    assert_same(runs[0][1], runs[1][1])


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
def test_they_also_agree_when_projections_are_infeasible_and_with_doubling() -> None:
    layout = Layout((1, 2, 1), 2)
    world = CMDP(layout, [0.5] * 4 + [1.0] * 4, DeterministicCosts(np.full((1, 6), 0.9)), [0.5])
    runs = []
    for step_wise in (False, True):
        learner = make_learner("sv-ops", world, None, confidence_scale=0.02, horizon="doubling")
        run = simulate(world, learner, oblivious.IID(seed=1), episodes=80, step_wise=step_wise)
        runs.append((snapshot(learner), scores(run)))
    assert run["infeasible"][-1] > 10
    assert run["refuted_feasibility"] > 0  # clean, yet infeasible: no policy is feasible here
    assert np.isnan(run.optimum)
    assert_same(runs[0][0], runs[1][0])
    assert_same(runs[0][1], runs[1][1])


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
@pytest.mark.parametrize("step_wise", [False, True])
def test_an_interrupted_projection_is_finished_by_the_next_call(
    step_wise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third call of the slow solver dies: the episode is completed later, and nothing else changes."""
    entry = worlds.make("random-layered", layers=(1, 3, 3, 3, 1), actions=2, constraints=1)
    world = entry.cmdp.with_thresholds([0.0])  # next to nothing is allowed: many projections are hard

    def simulation() -> Simulation:
        learner = SVOPS(world.view(), 100_000, 0.05, "sharp", seed=3)
        return Simulation(world, learner, oblivious.IID(seed=1), episodes=100, step_wise=step_wise)

    whole = simulation()
    whole.finish()
    calls = 0

    def failing(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KeyboardInterrupt
        fallback_solve(*arguments)

    broken = simulation()
    monkeypatch.setattr(learner_module, "fallback_solve", failing)
    interrupts = 0
    while broken.done < 100 or broken._open is not None or not broken.watcher._closed:
        try:
            broken.finish()
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts > 5
    assert_same(snapshot(whole.learner), snapshot(broken.learner))
    assert_same(scores(whole.result()), scores(broken.result()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_through_a_file_is_the_run_without(kind: str, tmp_path: Path) -> None:
    world = random_world(1)
    whole = Simulation(world, make_learner(kind, world, 120), oblivious.IID(seed=1))
    whole.finish()
    first = Simulation(world, make_learner(kind, world, 120), oblivious.IID(seed=1))
    first.advance(50)
    first.learner.save(tmp_path / "learner.hedge")
    second = Simulation(world, load(tmp_path / "learner.hedge"), oblivious.IID(seed=1))
    second.watcher.stage = replace(second.watcher.stage, streams=first.watcher.stage.streams)
    second.finish()
    assert_same(snapshot(whole.learner), snapshot(second.learner))
    assert second.result().episodes[-1] == 70


@pytest.mark.slow
@pytest.mark.parametrize("adversary", list(ADVERSARIES))
@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_deterministic_promises(kind: str, preset: str, adversary: str) -> None:
    """T3, T4, T7, T8, T9, T18 of the specification, run by run, on the clean event."""
    for seed in range(2):
        world = random_world(seed, (1, 3, 3, 1), 3)
        episodes = 300 if adversary == "pursuit" else 3_000
        learner = make_learner(kind, world, episodes, 0.1, preset=preset)
        run = simulate(world, learner, ADVERSARIES[adversary](world), seed=seed, audit=True)
        assert run["unclean"][-1] == 0
        assert run["refuted_feasibility"] == 0
        assert run["infeasible"][-1] == 0
        assert -1e-12 <= run["least_excess"] < np.inf
        assert run["mirror_left"] <= run["mirror_right"] + 1e-6
        assert learner.diagnostics["failed"] == 0
        assert run["refuted_safety"] == 0
        if kind == "s-ops":
            assert run.safe.all()
            assert np.all(run["mixing_total"] <= run.episodes * (learner.first_mixing + 1e-9))
            assert run.violation[-1] == 0.0
            assert run["mixing_over"] <= 1e-9
            assert 0.0 <= run["mixing_slack"] < np.inf


def test_the_mirror_descent_inequality_against_its_worst_comparator() -> None:
    """T18 with P known, so that every policy is in every set: also for the q of least estimated loss, and not idly."""
    world = random_world(3, (1, 3, 3, 1), 3, m=0)
    learner = make_learner("sv-ops", world, 5_000, 0.1, transitions=world.transitions)
    simulation = Simulation(world, learner, oblivious.Switching(period=700, seed=1), seed=3)
    simulation.finish()
    run, score = simulation.result(), simulation.watcher.watch
    least = offline.optimum(world, score.estimates / score.estimates.max()).value * score.estimates.max()
    left = score.sums.mirror_linear - least
    assert run["mirror_left"] <= left <= run["mirror_right"]
    assert left > 0.2 * run["mirror_right"]


def test_scores_are_those_of_the_policies_played() -> None:
    """Step by step with `evaluate`: the mixture of the learner's policy and the baseline, never the branch."""
    world = random_world(4)
    adversary = oblivious.Switching(period=10, seed=1)
    learner = make_learner("s-ops", world, 60)
    simulation = Simulation(world, learner, adversary, seed=1)
    table = adversary.block(world.layout, 0, 60).dense()
    loss, violation, cost = 0.0, np.zeros(2), np.zeros(2)
    for t in range(60):
        lam = learner.core.state.reals.mixing
        own, base = evaluate(world, learner.policy, table[t]), evaluate(world, learner.baseline, table[t])
        loss += lam * base.loss + (1 - lam) * own.loss
        mixed = lam * base.costs + (1 - lam) * own.costs
        violation += np.maximum(mixed - world.thresholds, 0.0)
        cost += mixed
        simulation.advance(1)
    run = simulation.result()
    assert run.loss[-1] == pytest.approx(loss, abs=1e-10)
    np.testing.assert_allclose(run.violations[-1], violation, atol=1e-10)
    np.testing.assert_allclose(run.costs[-1], cost, atol=1e-10)
    best = offline.optimum(world, table.mean(axis=0))
    assert run.optimum == pytest.approx(best.value, abs=1e-9)
    assert run.regret[-1] == pytest.approx(loss - 60 * best.value, abs=1e-7)


def test_the_clean_event_is_watched() -> None:
    world = random_world(5)
    learner = make_learner("sv-ops", world, 400, confidence_scale=1e-3)
    run = simulate(world, learner, oblivious.IID(seed=1))
    assert run["unclean"][-1] > 0
    boxes = learner.core.state.boxes
    outside = (world.transitions < boxes.lower - 1e-12) | (world.transitions > boxes.upper + 1e-12)
    simulation = Simulation(world, make_learner("sv-ops", world, 400, confidence_scale=1e-3), oblivious.IID(seed=1))
    simulation.finish()
    rows = np.unique(world.layout.row_of_triple[outside])
    seen = simulation.watcher.event.outside
    np.testing.assert_array_equal(np.flatnonzero(seen[:, 0]), rows)
    costs = (boxes.cost_lower - 1e-12 > world.mean_costs.T) | (boxes.cost_upper + 1e-12 < world.mean_costs.T)
    np.testing.assert_array_equal(np.flatnonzero(seen[:, 1]), np.flatnonzero(costs.any(axis=1)))


def test_an_adaptive_adversary_sees_what_happened() -> None:
    class Diary:
        def __init__(self) -> None:
            self.seen: list[tuple[int, np.ndarray, np.ndarray]] = []

        def start(self, layout: Layout) -> None:
            self.layout = layout

        def loss(self, episode: int) -> np.ndarray:
            assert episode == len(self.seen)
            return np.full(self.layout.num_rows, 0.5)

        def observe(self, episode: int, policy: np.ndarray, trajectory: np.ndarray) -> None:
            self.seen.append((episode, policy, trajectory))

    world, diary = random_world(6), Diary()
    learner = make_learner("s-ops", world, 30)
    run = simulate(world, learner, diary)
    assert [episode for episode, _, _ in diary.seen] == list(range(30))
    visits = np.bincount(np.concatenate([rows for _, _, rows in diary.seen]), minlength=world.layout.num_rows)
    np.testing.assert_array_equal(visits, learner.core.state.counts.num_visits)
    for _, policy, rows in diary.seen:
        assert np.all(policy[rows] > 0.0)
    assert run.loss[-1] == pytest.approx(30 * 1.5)


def test_same_seed_same_run_other_seed_other_run() -> None:
    world = random_world(0)
    results = [
        scores(simulate(world, make_learner("s-ops", world, 100, seed=s), oblivious.IID(seed=1), seed=t))
        for s, t in [(0, 0), (0, 0), (0, 1), (1, 0)]
    ]
    assert_same(results[0], results[1])
    assert not np.array_equal(results[0]["loss"], results[2]["loss"])
    assert not np.array_equal(results[0]["branch"], results[3]["branch"])  # another coin


def test_learning_pays() -> None:
    """Against a fixed loss the regret grows more slowly than the number of episodes, below that of uniform play."""
    world = random_world(1, m=0)
    loss = np.random.default_rng(1).random(world.layout.num_rows)
    run = simulate(world, make_learner("sv-ops", world, 20_000, preset="sharp"), loss)
    uniform = evaluate(world, np.full(world.layout.num_rows, 0.5), loss).loss - run.optimum
    half = np.searchsorted(run.episodes, 10_000)
    assert run.regret[-1] - run.regret[half] < 0.7 * run.regret[half]
    assert run.regret[-1] < 0.5 * 20_000 * uniform


@pytest.mark.parametrize("episodes", [1, 7, 4_950, 10**6])
def test_checkpoints(episodes: int) -> None:
    marks = checkpoints(episodes)
    assert marks[0] == 1
    assert marks[-1] == episodes
    assert np.all(np.diff(marks) > 0)
    assert len(marks) <= 200


def test_misuse() -> None:
    world = random_world(0)
    with pytest.raises(InvalidInput, match="built for another world"):
        simulate(random_world(1), make_learner("sv-ops", world), oblivious.IID())
    with pytest.raises(InvalidInput, match="built for 10 episodes"):
        simulate(world, make_learner("sv-ops", world, 10), oblivious.IID(), episodes=11)
    with pytest.raises(InvalidInput, match="pass episodes="):
        simulate(world, make_learner("sv-ops", world, None, horizon="doubling"), oblivious.IID())
    learner = make_learner("sv-ops", world, 5)
    simulate(world, learner, oblivious.IID())
    with pytest.raises(InvalidInput, match="has played all of its 5 episodes"):
        simulate(world, learner, oblivious.IID())
    with pytest.raises(InvalidInput, match="is no adversary"):
        simulate(world, make_learner("sv-ops", world), 3)
    with pytest.raises(InvalidInput, match="the loss of episode 0"):
        simulate(
            world, make_learner("sv-ops", world), lambda layout, first, count: np.full((count, layout.num_rows), 2.0)
        )


@pytest.mark.slow
def test_comparators_of_all_checkpoints_cost_hardly_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum of every prefix is exact, but HiGHS is only asked for the whole run and for the Slater point."""
    world = random_world(5, m=2)
    expected: list[float] = []
    run = simulate(
        world, make_learner("sv-ops", world, 400), oblivious.Switching(period=20, seed=1), seed=0, progress=False
    )
    for sums, t in zip(run.losses, run.episodes, strict=True):
        expected.append(float(t) * offline.optimum(world, np.clip(sums / t, 0.0, 1.0)).value)
    asked: list[int] = []
    real = optimize.linprog
    monkeypatch.setattr(optimize, "linprog", lambda *args, **options: asked.append(1) or real(*args, **options))
    so_far = run.regret_so_far
    assert len(asked) <= 1
    assert len(so_far) > 100
    np.testing.assert_allclose(so_far, run.loss - np.array(expected), rtol=0.0, atol=1e-9 * 400)


def test_regret_against_nobody_is_not_a_number() -> None:
    world = random_world(5, m=1)
    nobody = world.with_thresholds([0.0])
    run = simulate(nobody, make_learner("sv-ops", nobody, 20), oblivious.IID(seed=1), seed=0, progress=False)
    assert np.isnan(run.optimum)
    assert np.all(np.isnan(run.regret_so_far))


MIXED_UP: dict[str, tuple[Any, str]] = {
    "losses and world swapped": (
        lambda i, learner, loss: (loss, learner, i.cmdp),
        "first argument .* is a world: .*, not an object of the class IID; the order is simulate\\(world, learner, ",
    ),
    "the order of former releases": (
        lambda i, learner, loss: (i.cmdp, loss, learner),
        "second argument .* is a learner: .*, not .* IID; the learner comes before the losses, which may be left out",
    ),
    "the order of former releases, without losses": (
        lambda i, learner, loss: (i, None, learner),
        "second argument .* is a learner: .*, not .* NoneType; the learner comes before the losses",
    ),
    "learner first": (lambda i, learner, loss: (learner, i.cmdp, loss), "a world: .*, not an object of .* SVOPS"),
    "the learner twice": (
        lambda i, learner, loss: (i.cmdp, learner, learner),
        "third argument .* is the losses, .*, not an object of the class SVOPS",
    ),
    "the world twice": (lambda i, learner, loss: (i.cmdp, learner, i.cmdp), "the losses, .*, not .* CMDP"),
    "a view": (lambda i, learner, loss: (i.cmdp.view(), learner, loss), "a world: .*, not .* View"),
    "an entry as losses": (
        lambda i, learner, loss: (i.cmdp, learner, i),
        "the losses, .*, not an object of the class World; pass its own loss, .loss; the order",
    ),
    "a class of worlds": (lambda i, learner, loss: (CMDP, learner, loss), "not the class CMDP; make an object of it"),
    "a class of losses": (
        lambda i, learner, loss: (i.cmdp, learner, oblivious.Switching),
        r"third .*, not the class Switching; make an object of it, Switching\(\.\.\.\); the order",
    ),
    "a class of learners": (
        lambda i, learner, loss: (i.cmdp, SVOPS, loss),
        r"second .* is a learner: .*, not the class SVOPS; make an object of it, SVOPS\(\.\.\.\)",
    ),
    "a name": (lambda i, learner, loss: (i.cmdp, "sv-ops", loss), "a learner: .*, not an object of the class str"),
    "nothing": (lambda i, learner, loss: (None, None, None), "a world: .*, not an object of the class NoneType"),
    "no losses where the world has none": (
        lambda i, learner, loss: (i.cmdp, learner),
        "no loss of its own: say which losses to play",
    ),
    "no learner": (lambda i, learner, loss: (i.cmdp,), "simulate needs the argument 'learner'"),
}


@pytest.mark.parametrize(("order", "message"), MIXED_UP.values(), ids=MIXED_UP)
def test_arguments_that_are_mixed_up_are_named(order: Any, message: str) -> None:
    entry = worlds.make("lower-bound-1")
    learner = make_learner("sv-ops", entry.cmdp, 10)
    before = snapshot(learner)
    with pytest.raises(InvalidInput, match=message):
        simulate(*order(entry, learner, oblivious.IID(seed=1)))
    assert_same(before, snapshot(learner))


@pytest.mark.parametrize("given", [CMDP, None, "world"])
def test_a_learner_says_what_it_was_built_on(given: Any) -> None:
    what = "the class CMDP" if given is CMDP else f"an object of the class {type(given).__name__}"
    for build in (
        lambda: SVOPS(given, 10, 0.1, "paper"),
        lambda: SOPS(given, 10, 0.1, "paper", baseline=[], baseline_costs=[]),
    ):
        with pytest.raises(InvalidInput, match=rf"a world or its view is needed here: .*, not {what}"):
            build()


def test_whatever_follows_the_learner_is_named() -> None:
    """`simulate(world, learner, losses, 1000)` took the 1000 for a seed and not for the number of episodes."""
    world = random_world(0)
    with pytest.raises(InvalidInput, match="simulate: too many positional arguments; its arguments are world, "):
        simulate(world, make_learner("sv-ops", world, 20), oblivious.IID(), 10)  # type: ignore[misc]
