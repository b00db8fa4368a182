"""The LP learners in whole runs: safety whatever the losses, the same bits in both ways, files, arguments, promises."""

from __future__ import annotations

import copy
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, random_world, scores
from lp_cases import SAFE, VARIANTS, make_lp, roomy_world, set_counts

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.learners.field.base import clean_probability
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import LPCore, next_plan
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.planning.decomposition import SOLVED
from hedgerow.simulation.run import Simulation


def adversaries(world: hr.CMDP) -> dict[str, Any]:
    return {
        "switching": hr.losses.Switching(period=5, seed=1),
        "pursuit": hr.losses.Pursuit(),
        "fixed": np.random.default_rng(0).random(world.layout.num_rows),
    }


def whole(learner: LPLearner) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in learner.state().items()}


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("name", VARIANTS)
def test_compiled_and_step_wise_runs_have_the_same_bits(name: str, m: int) -> None:
    world = random_world(2, m=m)
    for kind, losses in adversaries(world).items():
        learners = [make_lp(name, world, 120, seed=3) for _ in range(2)]
        runs = [
            hr.simulate(world, each, losses, seed=7, progress=False, step_wise=step_wise, marks="all")
            for each, step_wise in zip(learners, (False, True), strict=True)
        ]
        assert [run.way for run in runs] == ["compiled", "step-wise"], kind
        assert_same(*map(scores, runs))
        assert_same(*map(whole, learners))
        assert learners[0].statistics.num_episodes == 120


@pytest.mark.parametrize("name", ["dope epoch", "s-lp epoch", "safe-etc", "opt-pess-lp layered"])
def test_a_file_in_the_middle_of_a_run_changes_nothing(name: str, tmp_path: Path) -> None:
    world, loss = random_world(4, m=3), hr.losses.Switching(period=3)
    straight, broken = make_lp(name, world, 90), make_lp(name, world, 90)
    hr.simulate(world, straight, loss, seed=1, progress=False, episodes=45)
    hr.simulate(world, broken, loss, seed=1, progress=False, episodes=45)
    hr.save(broken, tmp_path / "learner")
    reread = hr.load(tmp_path / "learner")
    planned = copy.copy(broken)
    planned.plan()
    first, second = planned.open_plans[0], copy.copy(planned).open_plans[0]
    assert first.policy.probabilities.tolist() == second.policy.probabilities.tolist()
    for each in (reread, copy.deepcopy(broken)):
        first, second = (
            hr.simulate(world, learner, loss, seed=2, progress=False) for learner in (copy.copy(straight), each)
        )
        assert_same(scores(first), scores(second))


@pytest.mark.parametrize("name", SAFE)
def test_no_unsafe_episode_on_the_clean_event(name: str) -> None:
    """Whatever the losses; tight margins and an optimistic delta, so that learners leave their baselines soon."""
    left = 0
    for seed in range(6):
        m = (1, 3)[seed % 2]
        world, T = (roomy_world(seed, m), 2500) if seed < 4 else (random_world(seed, (1, 2, 2, 1), 2, m), 300)
        for losses in adversaries(world).values():
            learner = make_lp(name, world, T, 0.15, seed=seed)
            run = hr.simulate(world, learner, losses, seed=seed, progress=False, marks="all")
            assert run.facts["refuted_safety"] == 0
            assert not np.any((run["clean_now"]) & (np.diff(run.unsafe, prepend=0) > 0))
            left += np.sum(run["mixing_weight"] < 1.0)
    assert left > 0 or name == "opt-pess-lp"  # which needs more visits


@pytest.mark.parametrize("name", SAFE)
def test_with_much_data_the_baseline_is_left_and_the_plan_is_safe(name: str) -> None:
    """Counts of a long past: what is played then is certified, and better than the baseline."""
    world = random_world(1, (1, 2, 2, 1), 2, 3)
    loss = np.random.default_rng(1).random(world.layout.num_rows)
    learner = make_lp(name, world, 10**6, 0.1, **({"warmup": 0} if "dope" in name else {}))
    if name.startswith("safe-etc"):
        learner.progress.episode = learner.num_exploring - 1
    set_counts(learner.core, world, loss, 10**14)
    learner.progress.pending = 1
    learner.observe(world.play(learner.policy, np.random.default_rng(0), loss))
    assert learner.reals.mixing < 1e-3
    own, safe = (
        row_occupancy(world.layout, occupancy(world.layout, world.transitions, policy))
        for policy in (learner.policy, hr.offline.slater(world).policy)
    )
    played = learner.reals.mixing * safe + (1.0 - learner.reals.mixing) * own
    assert np.all(world.mean_costs @ played <= world.thresholds)
    assert loss @ played == pytest.approx(hr.offline.optimum(world, loss).value, abs=0.02)


def test_safe_etc_explores_then_commits() -> None:
    world, T = random_world(2, (1, 2, 2, 1), 2, 1), 600
    learner = make_lp("safe-etc sharp", world, T, 0.15)
    N0 = ceil(T ** (2 / 3))
    assert learner.num_exploring == N0
    run = hr.simulate(
        world, learner, None if world is None else np.full(world.layout.num_rows, 0.5), progress=False, marks="all"
    )
    slater, alpha, L = hr.offline.slater(world), world.thresholds[0], world.layout.steps
    first = (L - alpha) / (L - slater.costs[0])
    lam = run["mixing_weight"]
    np.testing.assert_allclose(lam[:N0], first, rtol=1e-10)
    later = lam[2 * N0 :]
    assert np.all(later == later[0])  # committed
    assert learner.statistics.visits.min() > 10  # exploration has been everywhere


def test_safe_etc_commits_to_a_mixture_if_no_plan_is_known_to_be_safe() -> None:
    world, T = random_world(2, m=1), 60
    learner = make_lp("safe-etc", world, T, 0.01)
    run = hr.simulate(world, learner, np.zeros(world.layout.num_rows), progress=False, marks="all")
    N0 = learner.num_exploring
    assert run["infeasible"][-1] >= 2
    assert np.all(run["mixing_weight"][2 * N0 :] == run["mixing_weight"][2 * N0])
    np.testing.assert_allclose(run["mixing_weight"][: 2 * N0], run["mixing_weight"][0])


def test_s_lp_mixes_by_the_robust_cost() -> None:
    world = random_world(6, m=2)
    learner = make_lp("s-lp", world, 300)
    hr.simulate(world, learner, hr.losses.Switching(period=4), progress=False, episodes=250)
    U, alpha, beta = learner.statistics.robust_cost(learner.policy), world.thresholds, learner.baseline_costs
    U = np.minimum(U, world.layout.steps)
    expected = max([0.0, *((U - alpha) / (U - beta))[alpha < U]])
    assert learner.reals.mixing == pytest.approx(expected, abs=1e-9)


def test_opt_pess_lp_tests_its_baseline_first() -> None:
    """While the pessimistic cost of the baseline reaches the middle of beta and alpha, no program is solved."""
    world, loss, found = roomy_world(3, 2), np.zeros(6), []
    slater = hr.offline.slater(world)
    for visits in (1, 40, 60, 80, 100, 120, 150, 200, 300, 1000, 10**4):
        learner = make_lp("opt-pess-lp layered", world, 10**4, 0.15)
        set_counts(learner.core, world, loss, visits)
        estimate = np.array(learner.core.problem.lower)
        played = row_occupancy(world.layout, occupancy(world.layout, estimate, slater.policy))
        costs, beta = learner.core.problem.costs.T @ played, slater.costs
        next_plan(learner.core, learner.core.all_rows)
        is_dear = bool(np.any(costs >= 0.5 * (beta + world.thresholds)))
        assert learner.core.numbers.plans == (0 if is_dear else 1)
        assert not is_dear or learner.reals.mixing == 1.0
        found.append((is_dear, bool(np.any(costs >= world.thresholds))))
    assert {(True, True), (True, False), (False, False)} == set(found)  # the two thresholds differ


@pytest.mark.parametrize("name", ["opt-cmdp epoch", "dope epoch", "s-lp epoch"])
def test_epochs_plan_when_visits_have_doubled(name: str) -> None:
    world, T = roomy_world(1), 2000
    learner = make_lp(name, world, T)
    seen = np.zeros(world.layout.num_rows)
    run = Simulation(world, learner, hr.losses.Switching(period=3))
    planned = 0
    for _ in range(200):
        run.advance(1)
        doubled = bool(np.any(learner.statistics.visits >= np.maximum(1, 2 * seen)))
        if doubled or learner.episode == learner.core.rule.warmup:
            planned, seen = planned + 1, learner.statistics.visits.copy()
        np.testing.assert_array_equal(learner.planned_visits, seen)
    run.finish()
    assert 5 < planned < 60
    assert learner.core.numbers.plans < world.layout.num_rows * (np.log2(T) + 1) + 2


def test_dope_warms_up() -> None:
    world = hr.worlds.make("dope-factored")
    best = hr.offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    given = {"baseline": best.policy, "baseline_costs": world.baseline_thresholds}
    assert hr.field.DOPE(world.view(), 10**5, 0.01, **given).num_warmup == 675
    media = hr.worlds.make("dope-media")
    best = hr.offline.optimum(media.cmdp.with_thresholds(media.baseline_thresholds), media.loss)
    given = {"baseline": best.policy, "baseline_costs": media.baseline_thresholds}
    assert hr.field.DOPE(media.view(), 10**5, 0.01, **given).num_warmup == 12_500
    assert hr.field.DOPE(media.view(), 10**4, 0.01, **given).num_warmup == 10**4
    assert hr.field.DOPE(media.view(), 10**4, 0.01, warmup=0, **given).num_warmup == 0
    small = roomy_world(0)
    learner = make_lp("dope sharp", small, 3000, 0.15, warmup=1000)
    run = hr.simulate(small, learner, np.zeros(small.layout.num_rows), progress=False, marks="all")
    assert np.all(run["mixing_weight"][:1000] == 1.0)
    assert run["mixing_weight"][1000] == 0.0
    assert run["infeasible"][-1] == 0


def test_an_infeasible_optimist_violates_least() -> None:
    """Thresholds that no policy meets: OptCMDP plays the least violating one, never the uniform one."""
    layout = hr.Layout((1, 1), 3)
    world = hr.CMDP(layout, np.ones(3), hr.costs.DeterministicCosts([[1.0, 0.75, 1.0]]), [0.25])
    learner = hr.field.OptCMDP(world.view(), 3000, 0.5)
    run = hr.simulate(world, learner, np.zeros(3), progress=False)
    assert run["infeasible"][-1] > 100
    assert learner.policy.tolist() == [0.0, 1.0, 0.0]


class Doubting(hr.field.SLP):
    """S-LP whose planner never proves anything: thresholds that are not numbers while compiled code looks at them."""

    def _make_core(self) -> LPCore:
        core = super()._make_core()
        self.alpha = core.problem.thresholds.copy()
        core.problem.thresholds[:] = np.nan
        return core

    def _solve_slowly(self) -> int:
        self.core.problem.thresholds[:] = self.alpha
        code = super()._solve_slowly()
        self.core.problem.thresholds[:] = np.nan
        return code


@pytest.mark.parametrize("m", [1, 2])
def test_what_the_planner_leaves_unsolved_highs_solves(m: int) -> None:
    """Such programs are counted, in both ways of running, and the plans are those that the planner would have made."""
    world = random_world(1, (1, 2, 2, 1), 2, m)
    loss, options = np.random.default_rng(2).random(world.layout.num_rows), {"baseline": hr.offline.slater(world)}
    doubting = [Doubting(world.view(), 30, 0.5, **options) for _ in range(2)]
    runs = [
        hr.simulate(world, each, loss, progress=False, step_wise=step_wise, marks="all")
        for each, step_wise in zip(doubting, (False, True), strict=True)
    ]
    assert_same(*map(scores, runs))
    assert runs[0]["unsolved"].tolist() == list(range(1, 31))  # one before the first episode
    sure = hr.field.SLP(world.view(), 30, 0.5, **options)
    run = hr.simulate(world, sure, loss, progress=False, marks="all")
    assert run["unsolved"][-1] == 0
    np.testing.assert_allclose(runs[0]["plan_value"], run["plan_value"], atol=1e-6)
    np.testing.assert_allclose(runs[0]["mixing_weight"], run["mixing_weight"], atol=1e-5)


def test_slow_plans_of_safe_learners_keep_a_distance() -> None:
    """HiGHS meets thresholds up to its tolerance; a plan that has to be safe is given lower ones."""
    world = random_world(1, (1, 2, 2, 1), 2, 1)
    learner = make_lp("dope", world, 100)
    set_counts(learner.core, world, np.linspace(0.0, 1.0, world.layout.num_rows), 10**14)
    assert learner._solve_slowly() == SOLVED
    reached = learner.core.problem.costs.T @ learner.core.workspace.masses
    assert np.all(reached <= learner.core.problem.thresholds - 5e-7)


def test_step_wise_learners_take_aborted_and_overridden_episodes() -> None:
    world = random_world(2, m=1)
    learner = make_lp("s-lp", world)
    learner.plan()
    learner.observe(hr.Episode(world.view(), [0], [0.5], [[1.0]], ended_in=int(world.layout.successor[0])))
    assert learner.statistics.visits[0] == 1
    assert learner.episode == 1


@pytest.mark.parametrize("cls", [hr.field.OptCMDP, hr.field.OptPessLP, hr.field.DOPE, hr.field.SLP, hr.field.SafeETC])
def test_they_are_known_by_their_kinds(cls: type[LPLearner]) -> None:
    assert cls.kind in hr.learners.names()
    assert cls.inputs == hr.learners.find(cls.kind).inputs


@pytest.mark.parametrize("name", VARIANTS)
def test_promises(name: str) -> None:
    world = random_world(0, m=2)
    learner = make_lp(name, world, 1000, 0.01)
    ledger = learner.guarantees()
    assert ("safety" in ledger) == (learner.baseline is not None)
    for promise in ledger:
        assert 0.0 < promise.probability <= 1.0
        assert promise.assumes == (INDEPENDENT_LOSSES if promise.name == "regret" else "")
    assert ("regret" in ledger) == (not name.startswith("s-lp"))
    assert learner.title in str(ledger)
    # A union bound by hand: 4 e^-iota for each of n triples of rows with several successors, and T visits.
    layout = world.layout
    n = int(np.diff(layout.row_start)[np.diff(layout.row_start) > 1].sum())
    share = 4 * n * 1000 * 0.01 / (6 * max(layout.layer_sizes) * 2 * layout.steps * 1000)
    expected = 1.0 - share if learner.sets == "source" else 0.95
    assert clean_probability(learner) == pytest.approx(expected, abs=1e-6)
    if name == "opt-pess-lp":  # its own radius b misses some mean or probability, at some visit, with hardly any
        unknown = layout.num_rows * 3 + layout.num_triples
        miss = 2 * unknown * 1000 * (0.01 / (16 * max(layout.layer_sizes) ** 2 * 2 * layout.steps * 1000)) ** 2
        assert ledger["safety"].probability == pytest.approx(1.0 - miss, abs=1e-15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replan": "week"}, "episode"),
        ({"sets": "narrow"}, "sharpest"),
        ({"warmup": -1}, "warmup"),
        ({"sharp": 3}, "sharp"),
        ({"warmup": "long"}, "warmup"),
        ({"delta": 1.5}, "delta"),
        ({"baseline_costs": [9.0]}, "baseline"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    world = random_world(0, m=1)
    slater = hr.offline.slater(world)
    given = {"episodes": 10, "delta": 0.1, "baseline": slater.policy, "baseline_costs": slater.costs, **options}
    with pytest.raises(HedgerowError, match=words):
        hr.field.DOPE(world.view(), **given)
    with pytest.raises(HedgerowError, match="bonus"):
        hr.field.OptCMDP(world.view(), 10, 0.1, optimism="much")


def test_a_foreign_state_is_refused() -> None:
    world = random_world(0, m=1)
    learner = make_lp("s-lp", world)
    for name, wrong in (("own.tallies", -1.0), ("own.planned_visits", 1e6), ("own.own_policy", 0.7)):
        state = {**learner.state()}
        state[name] = np.full(state[name].shape, wrong)
        with pytest.raises(HedgerowError):
            type(learner).restored(world.view(), state)


def test_a_pending_plan_is_not_simulated() -> None:
    world = random_world(0, m=1)
    learner = make_lp("s-lp", world)
    learner.plan()
    with pytest.raises(HedgerowError, match="planned already"):
        Simulation(world, learner, np.zeros(world.layout.num_rows)).advance(1)


def test_known_costs_and_transitions_are_used() -> None:
    """With everything known the programs are exact from the start, and safe to the last digit."""
    world = random_world(5, m=2)
    loss = np.random.default_rng(0).random(world.layout.num_rows)
    view = world.view().knowing(costs=world.mean_costs, transitions=world.transitions)
    slater = hr.offline.slater(world)
    for cls, options in ((hr.field.DOPE, {"warmup": 0, "sharp": True}), (hr.field.OptPessLP, {"sets": "sharp"})):
        learner = cls(view, 200, 0.1, baseline=slater, **options)
        run = hr.simulate(world, learner, loss, progress=False)
        assert run["mixing_total"][-1] == 0.0
        assert run.unsafe[-1] == 0
        best = hr.offline.optimum(world, loss)
        assert run["plan_value"][-1] != best.value  # its loss has a bonus
