"""Learners that absorb logs: what is counted, what follows from it, and that everything else goes on as ever."""

from __future__ import annotations

import copy
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import KINDS, assert_same, make_learner, random_world, scores, snapshot

import hedgerow as hr
from hedgerow.confidence.kl import kt_interval
from hedgerow.learners.ops import absorb
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.state import RELAXED
from hedgerow.model.cmdp import CMDP
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionResult
from hedgerow.simulation.run import Simulation

WORLD = random_world(4, (1, 3, 3, 1), m=2)
TIED = hr.unroll(
    np.random.default_rng(5).dirichlet([1.0, 1.0, 1.0], size=(3, 2)),
    horizon=4,
    start=0,
    costs=np.random.default_rng(6).uniform(0.1, 0.9, (2, 3, 2)),
    thresholds=[3.0, 3.2],
    support="full",
).cmdp


def uniform_log(world: CMDP, episodes: int, seed: int = 0) -> hr.Log:
    return hr.Log.played(world, hr.Policy.uniform(world), episodes, seed)


def ragged_log(world: CMDP, view: hr.View, episodes: int, seed: int = 0, costs: bool = True) -> hr.Log:
    """Every third episode is cut short, half of these without their last transition; some say why."""
    table = uniform_log(world, episodes, seed).table().to_pydict()
    rng = np.random.default_rng(seed)
    length = np.where(rng.random(episodes) < 1 / 3, rng.integers(1, world.layout.steps, episodes), world.layout.steps)
    silent = rng.random(episodes) < 0.5
    said = [bool(flag) for flag in rng.random(episodes) < 0.7]
    lines = [i for i, (e, k) in enumerate(zip(table["episode"], table["step"], strict=True)) if k < length[e]]
    columns: dict[str, list[Any]] = {name: [values[i] for i in lines] for name, values in table.items()}
    columns["next_state"] = [
        None if silent[e] else x for e, x in zip(columns["episode"], columns["next_state"], strict=True)
    ]
    columns["independent"] = ["power cut" if said[e] else None for e in columns["episode"]]
    columns["overridden"] = [e % 7 == 3 and k > 0 for e, k in zip(columns["episode"], columns["step"], strict=True)]
    columns["unknown_costs"] = [e % 5 == 2 for e in columns["episode"]]
    for e in range(len(columns["episode"])):
        if columns["unknown_costs"][e]:
            columns["cost 1"][e] = None
    return hr.Log.read(view, columns, costs=costs, open_ends=True)


def could_reach(layout: hr.Layout, states: set[int]) -> list[set[int]]:
    """The rows of each later layer that some policy visits from one of these states of a layer."""
    found = []
    while states != {layout.num_states - 1}:
        rows = {x * layout.num_actions + a for x in states for a in range(layout.num_actions)}
        found.append(rows)
        states = {int(y) for r in rows for y in layout.successor[layout.row_start[r] : layout.row_start[r + 1]]}
    return found


def recounted(learner: MirrorLearner, log: hr.Log) -> dict[str, np.ndarray]:
    """N, M, K and S of a log, counted step by step."""
    layout, known, m = learner.layout, learner.view.knowledge, learner.view.num_constraints
    rows = np.arange(layout.num_rows)
    ties = learner.settings.ties
    moves_at = known.same_transitions if ties and known.same_transitions is not None else rows
    costs_at = known.same_costs if ties and known.same_costs is not None else rows
    counts = {
        "num_visits": np.zeros(layout.num_rows, dtype=np.int64),
        "num_moves": np.zeros(layout.num_triples, dtype=np.int64),
        "num_costs": np.zeros(layout.num_rows, dtype=np.int64),
        "cost_sums": np.zeros((layout.num_rows, m)),
        "unknown_moves": np.zeros(layout.num_rows, dtype=np.int64),
        "unknown_costs": np.zeros((layout.num_rows, m), dtype=np.int64),
    }
    for e in range(len(log)):
        seen: set[int] = set()
        first, last, declared = log.starts[e], log.starts[e + 1], log.gaps.reason[e] >= 0
        chosen = int(log.gaps.overridden[e])
        own = last - first if chosen < 0 else chosen
        paid = last - first if declared or known.independent_costs else own
        for j in range(first, last):
            row, triple = int(log.rows[j]), int(log.triples[j])
            place = int(moves_at[row])
            if triple >= 0:
                counts["num_visits"][place] += 1
                counts["num_moves"][layout.row_start[place] + triple - layout.row_start[row]] += 1
            elif not declared:
                counts["unknown_moves"][place] += 1
            place, gone = int(costs_at[row]), log.gaps.unknown[j]
            if not log.gaps.with_costs or j - first >= paid:
                continue
            if place not in seen or known.independent_costs:
                seen.add(place)
                if not (declared and gone.any()):
                    counts["num_costs"][place] += 1
                    counts["cost_sums"][place] += np.where(gone, 0.0, log.costs[j])
                    counts["unknown_costs"][place] += gone
        if own == layout.steps or declared or known.independent_costs or not log.gaps.with_costs:
            continue
        if own < last - first:
            states = {int(log.rows[first + own]) // layout.num_actions}
        else:
            row, triple = int(log.rows[last - 1]), int(log.triples[last - 1])
            reached = layout.successor[layout.row_start[row] : layout.row_start[row + 1]]
            states = {int(layout.successor[triple])} if triple >= 0 else set(reached.tolist())
        for place in {int(costs_at[r]) for rows_of in could_reach(layout, states) for r in rows_of} - seen:
            counts["num_costs"][place] += 1
            counts["unknown_costs"][place] += 1
    return counts


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("costs", [True, False])
def test_counts_are_those_of_a_recount(ties: bool, independent: bool, costs: bool) -> None:
    view = TIED.view().knowing(independent_costs=independent)
    learner = hr.SVOPS(view, 100, 0.1, "sharpest", ties=ties)
    log = ragged_log(TIED, view, 60, costs=costs)
    assert learner.absorb(log) is log
    for name, expected in recounted(learner, log).items():
        np.testing.assert_array_equal(getattr(learner.core.state.counts, name), expected, err_msg=name)
    assert learner.logged == {
        "episodes": 60,
        "steps": log.num_steps,
        "truncated": log.num_prefixes,
        "costless": 0 if costs else 60,
        "off_policy": 0,
        "unknown": log.num_unknown,
        "independent": log.num_independent,
    }
    assert learner.declared == {"power cut": log.num_independent}
    assert log.num_unknown > 0
    assert log.num_open > 0
    assert learner.episode == 0
    copy.copy(learner)  # its file is sound


@pytest.mark.parametrize("radii", ["anytime", "kt"])
def test_boxes_are_those_of_the_counts(radii: str) -> None:
    """Absorbed or observed, the counts are the same; so are boxes that are a function of them."""
    options = {"radii": radii, "clip_costs": True}
    absorbed, observed = (make_learner("sv-ops", WORLD, **options) for _ in range(2))
    log = uniform_log(WORLD, 80)
    absorbed.absorb(log)
    for e in range(len(log)):
        own = slice(log.starts[e], log.starts[e + 1])
        observed.plan()
        observed.observe(
            hr.Episode(WORLD.view(), log.rows[own], [0.0] * 3, log.costs[own], overridden_from=0, independent="a drill")
        )
    one, other = absorbed.core.state, observed.core.state
    for name in one.counts.fields:
        np.testing.assert_array_equal(getattr(one.counts, name), getattr(other.counts, name))
    if radii == "anytime":
        for name in one.boxes.fields:
            np.testing.assert_array_equal(getattr(one.boxes, name), getattr(other.boxes, name), err_msg=name)
        return
    # kt: those that were observed are cut with all before, and may be older; those of the log are of these counts.
    num, rule = one.counts.num_costs, absorbed.core.sets.rule.box
    lower, upper = kt_interval(np.repeat(num, 2), one.counts.cost_sums.ravel(), rule.radii.cost_log)
    np.testing.assert_allclose(one.boxes.cost_lower.ravel(), lower, atol=1e-12)
    np.testing.assert_allclose(one.boxes.cost_upper.ravel(), upper, atol=1e-12)
    np.testing.assert_array_equal(one.boxes.cost_visits, num)
    fresh = (other.boxes.visits == other.counts.num_visits)[WORLD.layout.row_of_triple]
    assert fresh.any()
    for name in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(one.boxes, name)[fresh], getattr(other.boxes, name)[fresh])


def test_a_log_in_parts_is_the_same_log() -> None:
    log = uniform_log(WORLD, 100)
    table = log.table()
    whole, parts = (make_learner("s-ops", WORLD, preset="sharpest", radii="anytime") for _ in range(2))
    whole.absorb(log)
    for e in range(0, 100, 20):
        parts.absorb(table.slice(3 * e, 60))
    assert whole.logged == parts.logged
    for name in ("counts", "boxes"):
        one, other = getattr(whole.core.state, name), getattr(parts.core.state, name)
        for field in one.fields:
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


def test_more_data_less_baseline() -> None:
    weights = []
    for episodes in (0, 100, 1000, 10_000):
        learner = make_learner("s-ops", WORLD, 1000, preset="sharpest")
        if episodes:
            learner.absorb(uniform_log(WORLD, episodes))
        plan = learner.plan()
        assert np.all(plan.cost_bounds <= WORLD.thresholds + 1e-12)
        weights.append(plan.mixing_weight)
    assert weights[0] >= weights[1] > weights[2] > weights[3]
    assert weights[3] < 0.8 * weights[0]


def assert_projected(learner: MirrorLearner) -> None:
    """A policy within the sets; the bounds of its mixture keep the thresholds, and hold what it really costs."""
    core, layout = learner.core, learner.layout
    state = core.state
    assert state.numbers.open == state.numbers.pending == 0
    np.testing.assert_allclose(state.policy.reshape(-1, layout.num_actions).sum(axis=1), 1.0, atol=1e-12)
    assert np.all(state.conditional >= state.boxes.lower - 1e-9)
    assert np.all(state.conditional <= state.boxes.upper + 1e-9)
    w = np.exp(state.log_weight)
    binding = core.baseline.binding
    assert np.all(state.boxes.cost_lower[:, binding].T @ w <= core.baseline.thresholds[binding] + 1e-8)
    if len(core.baseline.policies):
        real = hr.occupancy.evaluate(WORLD, state.policy).costs
        assert np.all(real <= state.bounds + 1e-12)  # on the clean event, which this seed is on
        lam, beta = state.reals.mixing, core.baseline.costs
        assert np.all(lam * beta + (1.0 - lam) * np.minimum(state.bounds, layout.steps) <= WORLD.thresholds + 1e-12)


SWITCHES: list[dict[str, Any]] = [
    {"preset": "sharpest"},
    {"preset": "paper", "radii": "anytime"},
    {"preset": "sharp", "radii": "kt"},
    {"preset": "sharp", "radii": "anytime", "horizon": "doubling"},
]


@pytest.mark.parametrize("options", SWITCHES, ids=range(len(SWITCHES)))
@pytest.mark.parametrize("kind", KINDS)
def test_between_episodes(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Before and between: projected, sound in a file, and then compiled = step by step = loaded."""
    learner = make_learner(kind, WORLD, 400, **options)
    learner.absorb(ragged_log(WORLD, WORLD.view(), 50, seed=1))
    assert_projected(learner)
    hr.simulate(WORLD, learner, hr.losses.IID(seed=1), seed=2, episodes=40, progress=False)
    before = snapshot(learner)
    learner.absorb(ragged_log(WORLD, WORLD.view(), 500, seed=2))
    assert_projected(learner)
    assert learner.episode == 40
    assert learner.logged["episodes"] == 550
    if learner.core.state.aggregate.generation.size:
        for name in ("sums", "squares", "visits", "episodes"):  # own episodes only
            np.testing.assert_array_equal(getattr(learner.core.state.aggregate, name), before[f"aggregate.{name}"])
        assert learner.core.state.aggregate.numbers.own == before["aggregate.numbers"][0]
    learner.save(tmp_path / "learner")
    twins = [learner, copy.copy(learner), hr.load(tmp_path / "learner")]
    runs = [
        hr.simulate(WORLD, twin, hr.losses.IID(seed=3), seed=4, episodes=60, progress=False, step_wise=i == 1)
        for i, twin in enumerate(twins)
    ]
    for twin, run in zip(twins[1:], runs[1:], strict=True):
        assert_same(snapshot(learner), snapshot(twin))
        assert_same(scores(runs[0]), scores(run))
    copy.copy(learner)


def test_centres_and_balls_follow() -> None:
    world = hr.worlds.make("dope-media", support="full").cmdp
    learner = make_learner("s-ops", world, 1000, preset="sharpest")
    assert learner.core.state.balls.radius.size
    learner.absorb(uniform_log(world, 2000))
    state, laws, layout = learner.core.state, learner.core.sets.rule.box.laws, learner.layout
    visits = state.counts.num_visits[laws.moves_at]
    row, wide = layout.row_of_triple, learner.core.sets.rule.ball.wide == 1
    twin = layout.row_start[laws.moves_at[row]] + np.arange(layout.num_triples) - layout.row_start[row]
    seen = (visits > 0)[row] & (learner.core.sets.rule.box.uncertain == 1)[row]
    np.testing.assert_allclose(state.aggregate.p_hat[seen], (state.counts.num_moves[twin] / visits[row])[seen])
    np.testing.assert_array_equal(state.balls.visits[wide], visits[wide])
    copy.copy(learner)


def test_the_projection_is_that_of_the_weights_before() -> None:
    """q_hat after the log is the projection of q_hat before it, by the independent certificate."""
    learner = make_learner("sv-ops", WORLD, 400, preset="sharpest")
    hr.simulate(WORLD, learner, hr.losses.IID(seed=1), seed=2, episodes=30, progress=False)
    state, layout = learner.core.state, learner.layout
    log_base = state.log_weight[layout.row_of_triple] + np.log(state.conditional)
    learner.absorb(uniform_log(WORLD, 300))
    problem = hr.projection.ProjectionProblem(
        layout, log_base, state.boxes.lower, state.boxes.upper, state.boxes.cost_lower.T, WORLD.thresholds
    )
    expected = hr.projection.project(problem)
    assert isinstance(expected, ProjectionResult)
    certify(problem, expected)
    q = np.exp(state.log_weight)[layout.row_of_triple] * state.conditional
    np.testing.assert_allclose(q, np.exp(expected.log_occupancy), atol=1e-8)


@pytest.mark.parametrize("phase2_stats", ["keep", "discard"])
def test_both_phases_of_cvops(phase2_stats: str) -> None:
    world = random_world(4, (1, 3, 2, 1), m=1)
    world = world.with_thresholds(world.thresholds + 0.9)
    learner = make_learner("cv-ops", world, 6000, 0.1, preset="sharpest", phase2_stats=phase2_stats)
    assert isinstance(learner, hr.CVOPS)
    hr.simulate(world, learner, hr.losses.IID(seed=1), seed=2, episodes=100, progress=False)
    before = snapshot(learner)
    learner.absorb(uniform_log(world, 2000))
    for name in before:
        if name.startswith("search."):
            np.testing.assert_array_equal(snapshot(learner)[name], before[name])
    copy.copy(learner)
    run = hr.simulate(world, learner, hr.losses.IID(seed=3), seed=4, episodes=4900, progress=False)
    assert learner.phase == 2, (learner.margin, learner.radius)
    assert learner.logged["episodes"] == (2000 if phase2_stats == "keep" else 0)
    assert len(learner.absorbed) == (phase2_stats == "keep")
    assert run["refuted_safety"] == 0
    copy.copy(learner)
    lam = learner.core.state.reals.mixing
    learner.absorb(uniform_log(world, 20_000, seed=9))
    assert learner.core.state.reals.mixing <= lam
    assert learner.core.state.numbers.stale == 1
    twin = copy.copy(learner)
    for other in (learner, twin):
        hr.simulate(world, other, hr.losses.IID(seed=5), seed=6, episodes=50, progress=False, step_wise=other is twin)
    assert_same(snapshot(learner), snapshot(twin))


def test_thresholds_that_a_log_refutes() -> None:
    """Data that no policy is safe under: raised thresholds, the baseline alone, and on it goes."""
    tight = WORLD.with_thresholds(np.minimum(WORLD.thresholds, hr.offline.slater(WORLD).costs - 0.2))
    learner = make_learner("sv-ops", tight, 400, preset="sharpest")
    with pytest.warns(hr.errors.InfeasibleWarning, match="no policy meets the thresholds"):
        learner.absorb(uniform_log(tight, 20_000))
    assert learner.core.state.numbers.last_status == RELAXED
    assert learner.diagnostics["infeasible"] == 1
    learner.absorb(uniform_log(tight, 100, seed=1))
    assert learner.diagnostics["infeasible"] == 2
    copy.copy(learner)
    hr.simulate(tight, learner, hr.losses.IID(seed=1), seed=2, episodes=30, progress=False)
    learner.absorb(uniform_log(tight, 100, seed=2))
    assert learner.core.state.reals.slack > 0.0
    copy.copy(learner)


def test_refusals_change_nothing() -> None:
    view, log = WORLD.view(), uniform_log(WORLD, 10)
    for radii in ("paper", "tight"):
        old = make_learner("s-ops", WORLD, radii=radii)
        with pytest.raises(hr.errors.InvalidInput, match=r"fixed number of episodes.*'kt' or 'anytime', or preset='sh"):
            old.absorb(log)
    learner = make_learner("s-ops", WORLD, preset="sharpest")
    other = random_world(1, (1, 2, 1))
    renamed = hr.View(view.layout, view.thresholds, ("these", "those"))
    knowing = view.knowing(independent_costs=True)
    labelled = view.layout.labelled([f"s{i}" for i in range(8)], None)
    one = make_learner("sv-ops", WORLD, preset="sharpest")
    one.view = hr.View(labelled, view.thresholds, view.constraint_names)
    relabelled = hr.View(labelled.labelled([f"t{i}" for i in range(8)], None), view.thresholds, view.constraint_names)
    with pytest.raises(hr.errors.InvalidInput, match="its states are 't0'"):
        one.absorb(hr.Log.read(relabelled, log.table()))
    before = snapshot(learner)
    for given, how, message in (
        (uniform_log(other, 3), {}, "of another world than the learner: its "),
        (
            hr.Log.read(renamed, log.table(), columns={"these": "cost 1", "those": "cost 2"}),
            {},
            "its constraints are 'these'",
        ),
        (hr.Log.read(knowing, log.table()), {}, "knows costs to be independent"),
        (log, {"costs": False}, "read already; pass costs to Log.read"),
        (log.table().drop_columns(["cost 1"]), {}, "no column 'cost 1'"),
        ({}, {}, "the log is empty"),
        (17, {}, "not an object of the class int"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            learner.absorb(given, **how)
        assert_same(snapshot(learner), before)
    with pytest.raises(TypeError, match="unexpected keyword"):
        learner.absorb(log.table(), colour="red")
    learner.plan()
    before = snapshot(learner)
    with pytest.raises(hr.errors.InvalidInput, match="episode 0 is planned; call observe"):
        learner.absorb(log)
    assert_same(snapshot(learner), before)


def test_one_call_at_a_time() -> None:
    learner, log, refused = make_learner("sv-ops", WORLD, preset="sharpest"), uniform_log(WORLD, 10), []

    class Slow:
        """A source that takes its time."""

        columns = ()

        def to_arrow(self) -> Any:
            def other() -> None:
                try:
                    learner.absorb(log)
                except hr.errors.BusyError as error:
                    refused.append(str(error))

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            return log.table()

    learner.absorb(Slow())
    assert learner.logged["episodes"] == 10
    assert "absorb is already using" in refused[0]


def test_an_interrupted_projection_is_found_later(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, twin = (make_learner("s-ops", WORLD, preset="sharpest") for _ in range(2))

    def interrupted(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(absorb, "project_all", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.absorb(uniform_log(WORLD, 500))
    assert learner.core.state.numbers.open == 1
    late = copy.copy(learner)  # a file holds it as it is
    twin.absorb(uniform_log(WORLD, 500))
    for other in (learner, late):
        other.complete()
        assert_projected(other)
        np.testing.assert_allclose(other.policy, twin.policy, atol=1e-8)
        assert abs(other.core.state.reals.mixing - twin.core.state.reals.mixing) < 1e-8


@pytest.mark.parametrize("step_wise", [False, True])
def test_a_log_within_a_simulation(step_wise: bool) -> None:
    """The watcher sees that all sets have changed, here for the worse: the log is of another world."""
    learner = make_learner("sv-ops", WORLD, 200, preset="sharpest")
    run = Simulation(WORLD, learner, hr.losses.IID(seed=1), 7, episodes=100, step_wise=step_wise, marks=[100])
    run.advance(20)
    false = CMDP(WORLD.layout, WORLD.transitions, hr.costs.BernoulliCosts(1.0 - WORLD.mean_costs), WORLD.thresholds)
    with warnings.catch_warnings(category=hr.errors.InfeasibleWarning, action="ignore"):
        with pytest.warns(hr.errors.PremiseWarning, match="logged visits show; the own episodes say"):
            learner.absorb(uniform_log(false, 5000))
        result = run.run()
    assert result["unclean"][-1] == 80


def test_why_nothing_may_be_left_out_without_a_word() -> None:
    """Episodes that are stopped when they are costly: the costs of the others alone are wrong, and surely so."""
    view = hr.View(hr.Layout((1, 1, 1), 1), [0.9], ["delay"])
    first = (np.random.default_rng(0).random(2000) < 0.5).astype(float)  # a mean of 0.5
    lines: dict[str, list[Any]] = {"episode": [], "state": [], "action": [], "next_state": [], "delay": [], "said": []}
    for e, cost in enumerate(first):
        steps = [(0, cost)] if cost == 1.0 else [(0, cost), (1, 0.0)]
        for k, delay in steps:
            for name, value in zip(lines, (e, k, 0, k + 1, delay, cost == 0.0), strict=True):
                lines[name].append(value)
    cheap = {name: [value for value, said in zip(lines[name], lines["said"], strict=True) if said] for name in lines}
    for given, how, holds in (
        (lines, {}, True),
        (lines, {"costs": False}, True),
        (cheap, {}, False),  # nobody can tell that the others were left out
    ):
        learner = hr.SVOPS(view, 100, 0.01, "sharpest")
        learner.absorb(given, **how)
        boxes = learner.core.state.boxes
        assert (boxes.cost_lower[0, 0] <= 0.5 <= boxes.cost_upper[0, 0]) == holds


@pytest.mark.slow
def test_fewer_own_episodes() -> None:
    """The first 3000 episodes of S-OPS cost much less after 3000 uniformly played ones (10^4: 4028 -> 2423)."""
    world = hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=3, constraints=1)
    regret = []
    for logged in (0, 3000):
        learner = hr.SOPS(world.cmdp.view(), 3000, 0.01, "sharpest", baseline=hr.offline.slater(world.cmdp))
        if logged:
            learner.absorb(uniform_log(world.cmdp, logged, seed=5))
        run = hr.simulate(world.cmdp, learner, world.loss, seed=1, progress=False)
        assert bool(run.safe[-1])
        regret.append(float(run.regret[-1]))
    assert regret[1] < 0.8 * regret[0], regret
