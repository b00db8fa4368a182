"""What every learner keeps to: plan, observe, in turn; refused calls change nothing; files continue bit by bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import KINDS, WITH_BASELINE, assert_same, draw_path, make_learner, random_world, snapshot, to_bytes

import hedgerow as hr
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners.files import FILE_VERSION
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture
from hedgerow.planning import offline
from hedgerow.simulation.files import load
from hedgerow.storage import datafile


def play(learner: Learner, world: CMDP, episodes: int, rng: np.random.Generator) -> None:
    for _ in range(episodes):
        rows = draw_path(world, learner.plan().policy, rng)
        costs = (rng.random((len(rows), world.num_constraints)) < world.mean_costs[:, rows].T).astype(float)
        learner.observe(rows, rng.random(len(rows)), costs)


@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_policies_with_honest_numbers(kind: str, preset: str) -> None:
    world, rng = random_world(0), np.random.default_rng(0)
    learner = make_learner(kind, world, preset=preset)
    for t in range(30):
        plan = learner.plan()
        assert plan.episode == learner.episode == t
        played = plan.policy.probabilities
        np.testing.assert_allclose(played.reshape(-1, 2).sum(axis=1), 1.0, atol=1e-12)
        assert np.all(played >= 0.0)
        assert plan.notes["bound_1"] == plan.cost_bounds[1]
        assert plan.notes["branch"] == 0 or isinstance(plan.mixture, Mixture)
        assert plan.branch in ("own", "baseline")
        assert 0.0 <= plan.mixing_weight <= 1.0
        assert plan.cost_bounds.shape == (2,)
        assert np.all(plan.cost_bounds <= world.layout.steps)
        with pytest.raises(ValueError, match="read-only"):
            played[0] = 0.5
        rows = draw_path(world, plan.policy, rng)
        learner.observe(rows, rng.random(3), rng.random((3, 2)))
    assert learner.core.state.counts.num_visits.sum() == 30 * 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_switch_runs(kind: str) -> None:
    world = random_world(1)
    variants: list[dict[str, Any]] = [
        {"radii": "tight"},
        {"clip_costs": True},
        {"confidence_scale": 0.1},
        {"transitions": world.transitions},
    ]
    if kind in WITH_BASELINE:
        variants.append({"joint_cost": True})
    if kind == "b-ops":
        variants.append({"rule": "ceiling"})
    for options in variants:
        learner = make_learner(kind, world, 60, **options)
        play(learner, world, 60, np.random.default_rng(1))
        assert learner.episode == 60
        assert learner.diagnostics["failed"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_doubling_needs_no_horizon_and_restarts(kind: str) -> None:
    world = random_world(2)
    learner = make_learner(kind, world, None, horizon="doubling")
    assert learner.settings.radii == "anytime"
    rates = []
    for _ in range(70):
        play(learner, world, 1, np.random.default_rng(learner.episode))
        rates.append(learner.eta)
    changes = [t + 1 for t in range(69) if rates[t] != rates[t - 1] and t]
    assert changes == [3, 7, 15, 31, 63]  # the segments 1, 2, 4, 8, ... end here
    assert rates[-1] < rates[10] < rates[0]


@pytest.mark.parametrize("kind", KINDS)
def test_out_of_turn(kind: str) -> None:
    world = random_world(0)
    learner = make_learner(kind, world, 2)
    with pytest.raises(InvalidInput, match="no episode is planned; call plan"):
        learner.observe([0, 2, 8], np.zeros(3), np.zeros((3, 2)))
    assert learner.open_plans == ()
    learner.plan()
    before = snapshot(learner)
    with pytest.raises(InvalidInput, match="episode 0 is planned already; call observe"):
        learner.plan()
    assert_same(before, snapshot(learner))
    learner.observe(
        draw_path(world, learner.open_plans[0].policy, np.random.default_rng(0)), np.zeros(3), np.zeros((3, 2))
    )
    play(learner, world, 1, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="built for 2 episodes and has played 2"):
        learner.plan()


def bad_observations(world: CMDP, rows: np.ndarray) -> list[tuple[Any, Any, Any, str]]:
    good_loss, good_cost = np.zeros(3), np.zeros((3, 2))
    swapped = rows[::-1]
    nan, high = np.array([0.0, np.nan, 0.0]), np.array([0.0, 1.5, 0.0])
    return [
        (rows[:2], good_loss, good_cost, "has 2 of 3 steps; if it was aborted"),
        (rows.astype(float), good_loss, good_cost, "whole numbers"),
        ("path", good_loss, good_cost, "a trajectory is 3 rows"),
        (swapped, good_loss, good_cost, "step 0 of the trajectory is row"),
        ([rows[0], rows[1], 10**9], good_loss, good_cost, "step|no path"),
        ([-1, rows[1], rows[2]], good_loss, good_cost, "step 0 of the trajectory is row -1"),
        (rows, good_loss[:2], good_cost, r"the loss has shape \(2,\), expected \(3,\)"),
        (rows, nan, good_cost, "the loss is nan at index 1"),
        (rows, high, good_cost, "the loss is 1.5 at index 1"),
        (rows, -high, good_cost, "the loss is -1.5 at index 1"),
        (rows, "loss", good_cost, "the loss must be an array of numbers"),
        (rows, good_loss, good_cost.T, r"the cost has shape \(2, 3\), expected \(3, 2\)"),
        (rows, good_loss, np.full((3, 2), np.nan), "the cost is nan"),
        (rows, good_loss, np.full((3, 2), -0.1), "the cost is -0.1"),
        (rows, good_loss, None, r"the costs of the 2 constraints .* are missing: shape \(3, 2\)"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_observations_are_refused_and_change_nothing(kind: str) -> None:
    world = random_world(0)
    learner = make_learner(kind, world)
    rows = draw_path(world, learner.plan().policy, np.random.default_rng(0))
    before = snapshot(learner)
    for trajectory, losses, costs, message in bad_observations(world, rows):
        with pytest.raises(InvalidInput, match=message):
            learner.observe(trajectory, losses, costs)
        assert_same(before, snapshot(learner))
    learner.observe(rows, np.zeros(3), np.zeros((3, 2)))


def test_a_path_must_exist_and_be_possible_under_the_plan() -> None:
    world = random_world(7, (1, 3, 3, 1), 2, sparse=True)
    layout = world.layout
    learner = make_learner("sv-ops", world)
    learner.plan()
    row = next(r for r in range(2, layout.num_rows) if layout.row_start[r + 1] - layout.row_start[r] < 3 and r < 8)
    missing = next(
        y for y in range(4, 7) if y not in layout.successor[layout.row_start[row] : layout.row_start[row + 1]]
    )
    with pytest.raises(InvalidInput, match=f"no path: .* cannot lead to layer 2, state {missing - 4}"):
        learner.observe([0, row, missing * 2], np.zeros(3), np.zeros((3, 2)))
    safe = make_learner("s-ops", random_world(0))
    while safe.plan().branch != "baseline":
        safe.observe(draw_path(random_world(0), safe.policy, np.random.default_rng(0)), np.zeros(3), np.zeros((3, 2)))
    shunned = int(np.flatnonzero(safe.played[:2] == 0.0)[0])
    with pytest.raises(InvalidInput, match="has probability 0 under the plan"):
        safe.observe([shunned, 2, 8], np.zeros(3), np.zeros((3, 2)))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_construction(kind: str) -> None:
    world = random_world(0)
    for options, message in [
        ({"episodes": 0}, "the number of episodes is 0"),
        ({"episodes": None}, "give the number of episodes, or horizon='doubling'"),
        ({"delta": 0.0}, r"delta is 0.0; it must lie in \(0, 1\)"),
        ({"delta": 1.0}, r"delta is 1.0; it must lie in \(0, 1\)"),
        ({"seed": -1}, "the seed is -1"),
        ({"preset": "bold"}, "the preset is 'bold'; choose one of paper, sharp"),
        ({"radii": "guess"}, "the radii are 'guess'"),
        ({"confidence_scale": 2.0}, "the confidence scale is 2.0"),
        ({"on_refuted": "never"}, "on_refuted is 'never'; choose one of stay, warn, raise"),
        ({"clip_costs": 1}, "clip_costs must be True or False"),
        ({"colour": "red"}, "has no switch 'colour'; its switches are"),
        ({"horizon": "doubling", "radii": "tight"}, "the radii must be 'anytime'"),
        ({"transitions": world.transitions * 0.5}, "sum to"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            make_learner(kind, world, **options)
    with pytest.raises(InvalidInput, match=r"a world or its view is needed here.* not an object of the class Layout"):
        type(make_learner(kind, world))(world.layout, 10, 0.1, **_baseline_of(kind, world))


def _baseline_of(kind: str, world: CMDP) -> dict[str, Any]:
    return {"baseline": offline.slater(world)} if kind in WITH_BASELINE else {}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"preset": "sharp"}, {"episodes": None, "horizon": "doubling"}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_learner_goes_on_bit_by_bit(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    world = random_world(3)
    if kind == "cv-ops":
        options = {"memory_budget": 8 * world.layout.num_rows * 1000, **options}  # the default would be 256 MB to save
    # Radii so small that boxes and costs bind: whatever a file forgot would show.
    original = make_learner(kind, world, seed=5, **{"episodes": 80, "confidence_scale": 0.05, **options})
    play(original, world, 37, np.random.default_rng(0))
    original.plan()
    original.save(tmp_path / "learner.hedge")
    copy = load(tmp_path / "learner.hedge")
    assert type(copy) is type(original)
    assert copy.settings == original.settings
    assert_same(snapshot(original), snapshot(copy))
    for learner in (original, copy):
        rng = np.random.default_rng(1)
        plan = learner.open_plans[0]
        learner.observe(draw_path(world, plan.policy, rng), rng.random(3), rng.random((3, 2)))
        play(learner, world, 42, rng)
    assert_same(snapshot(original), snapshot(copy))
    assert to_bytes(original) == to_bytes(copy)
    with pytest.raises(InvalidInput, match="exists already"):
        original.save(tmp_path / "learner.hedge")


def test_sparse_support_and_known_transitions_survive_a_file(tmp_path: Path) -> None:
    world = random_world(7, (1, 3, 3, 1), 2, sparse=True)
    original = make_learner("sv-ops", world, transitions=world.transitions)
    play(original, world, 10, np.random.default_rng(0))
    original.save(tmp_path / "learner.hedge")
    copy = load(tmp_path / "learner.hedge")
    assert copy.layout == world.layout
    np.testing.assert_array_equal(copy.transitions, world.transitions)
    for learner in (original, copy):
        play(learner, world, 10, np.random.default_rng(1))
    assert_same(snapshot(original), snapshot(copy))


def argue(arrays: dict[str, np.ndarray], **changes: Any) -> None:
    """Change the arguments in a file."""
    arguments = {**json.loads(str(arrays["state.arguments"])), **changes}
    arrays["state.arguments"] = np.array(json.dumps(arguments))


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    learner = make_learner("sv-ops", random_world(0))
    blob = to_bytes(learner)
    path = tmp_path / "learner.hedge"
    path.write_bytes(blob[:200] + bytes([blob[200] ^ 1]) + blob[201:])
    with pytest.raises(FileFormatError, match="corrupt"):
        load(path)
    for change, message in [
        (lambda meta, arrays: meta.update(learner="oracle"), "names the learner 'oracle', but does not hold its state"),
        (lambda meta, arrays: argue(arrays, colour="red"), "SVOPS has no switch 'colour'"),
        (lambda meta, arrays: argue(arrays, delta=None), "delta"),
        (lambda meta, arrays: arrays.pop("state.policy"), "the state needs the arrays"),
        (lambda meta, arrays: arrays.update({"state.policy": np.full(12, 0.7)}), "does not sum to 1"),
        (lambda meta, arrays: arrays.update({"state.policy": np.full(12, np.nan)}), "state.policy is nan at"),
        (
            lambda meta, arrays: arrays.update({"state.policy": np.zeros(3)}),
            r"state.policy must have the shape \(12,\)",
        ),
        (lambda meta, arrays: arrays["state.system.candidate"].fill(5), "a constraint that does not exist"),
        (lambda meta, arrays: arrays["state.system.num_candidates"].fill(7), "a constraint that does not exist"),
    ]:
        data = datafile.unpack(blob)
        change(data.meta, data.arrays)
        path.write_bytes(datafile.pack("learner", FILE_VERSION, data.meta, data.arrays))
        with pytest.raises(FileFormatError, match=message):
            load(path)
    data = datafile.unpack(blob)
    path.write_bytes(datafile.pack("learner", FILE_VERSION - 1, data.meta, data.arrays))
    with pytest.raises(FileFormatError, match=f"schema version {FILE_VERSION - 1}; .* reads version {FILE_VERSION}"):
        load(path)


def test_no_constraints_at_all() -> None:
    world = CMDP(Layout((1, 2, 1), 2), [0.25, 0.75] * 2 + [1.0] * 4)
    with pytest.raises(InvalidInput, match="no constraint of this world can be violated"):
        make_learner("cv-ops", world)
    for kind in ("sv-ops", "s-ops", "c-ops", "uob-reps"):
        learner, rng = make_learner(kind, world), np.random.default_rng(0)
        for _ in range(20):
            plan = learner.plan()
            assert plan.branch == "own"
            learner.observe(draw_path(world, plan.policy, rng), rng.random(2))
        assert learner.episode == 20


def test_a_plan_that_waits_is_seen_after_a_restart(tmp_path: Path) -> None:
    learner = hr.SVOPS(hr.View(hr.Layout((1, 2, 1), 2), [1.0], ["c"]), 10, 0.1, "paper")
    assert not learner.open_plans
    plan = learner.plan()
    learner.save(tmp_path / "learner.npz")
    loaded = hr.load(tmp_path / "learner.npz")
    assert isinstance(loaded, hr.SVOPS)
    assert loaded.open_plans
    np.testing.assert_array_equal(loaded.open_plans[0].policy.probabilities, plan.policy.probabilities)
    loaded.observe([0, 2], [0.5, 0.5], [0.0, 0.0])
    assert not loaded.open_plans
