"""`python -m bench episode`: recorded episodes, goals that are judged right, peers that never disappear."""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_runs import invoke

from bench import inside
from bench.episode import EpisodeSpeed, our_learners, plain_learners
from bench.episode_contenders import Compiled, Plain, Recorded, record
from bench.episode_goals import goals
from bench.episode_worlds import LABELS, BenchWorld, frozen_lake, random_world
from bench.mirror_steps import SIZES
from bench.presets import PresetTimes
from bench.pynol_peer import PyNOLHedge
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.planning import offline
from hedgerow.simulation.run import Simulation

SMALL = SIZES[0].label
TINY = EpisodeSpeed(1, episodes=3_000, warm_up=600, turns=3, turn=1e-3, most_per_turn=20, budget=5.0)


@pytest.fixture(scope="module")
def world() -> BenchWorld:
    return random_world(SIZES[0])


@pytest.fixture
def learner(world: BenchWorld) -> MirrorLearner:
    made = SVOPS(world.cmdp.view(), 3_000, 0.01, "sharp")
    Simulation(world.cmdp, made, world.loss, 0, episodes=600).finish()
    return made


@pytest.fixture
def recorded(world: BenchWorld, learner: MirrorLearner) -> Recorded:
    return record(world, learner, TINY.turns, seed=2)


def test_recorded_episodes_are_paths(world: BenchWorld, learner: MirrorLearner) -> None:
    before = inside.seen(learner)
    recorded = record(world, learner, TINY.turns, seed=2)
    layout, after = world.cmdp.layout, inside.seen(learner)
    assert recorded.rows.shape == (TINY.turns, layout.steps)
    # The learner counted exactly these visits and costs.
    seen = np.bincount(recorded.rows.ravel(), minlength=layout.num_rows)
    np.testing.assert_array_equal(after.visits - before.visits, seen)
    paid = np.bincount(recorded.rows.ravel(), recorded.costs[..., 0].ravel(), minlength=layout.num_rows)
    np.testing.assert_allclose(after.cost_sums[0] - before.cost_sums[0], paid, atol=1e-9)
    np.testing.assert_array_equal(recorded.losses, world.loss[recorded.rows])
    np.testing.assert_array_equal(recorded.occupancy[-1], inside.row_iterate(learner))
    np.testing.assert_allclose(inside.triple_iterate(learner).sum(), layout.steps)


def test_goals_are_judged() -> None:
    times = {
        (SMALL, "SV-OPS"): 8e-6,
        (SMALL, "S-OPS, joint"): 13e-6,
        (SMALL, "SV-OPS with cvxpy + Clarabel"): 7.9e-3,
        ("dope-media", "SV-OPS"): 1.0,
    }
    found = {goal.name: goal for goal in goals(times, {SMALL: 45, "dope-media": 1640})}
    assert {name: goal.met for name, goal in found.items()} == {
        "SV-OPS": True,
        "cvxpy learner / SV-OPS": False,
        "S-OPS joint / SV-OPS": False,
    }
    assert found["cvxpy learner / SV-OPS"].found == pytest.approx(987.5)
    assert found["cvxpy learner / SV-OPS"].shown_asked == ">= 1000x"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("episode")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpisodeSpeed, "quick", classmethod(lambda cls: TINY))
        shown = invoke("episode", "--quick", "--out", str(folder))
    return shown, json.loads((folder / EpisodeSpeed.json_file).read_text()), folder


def test_every_contender_has_a_row(measured: tuple[str, dict[str, Any], Path]) -> None:
    shown, data, _ = measured
    rows = {row["contender"]: row for row in data["figures"]}
    ours = ("SV-OPS", "S-OPS, joint", "S-OPS, all pairs", "CV-OPS, phase 1", "UOB-REPS")
    for name in (*ours, "SV-OPS with cvxpy + Clarabel", "optimistic LP with HiGHS"):
        assert rows[name]["time"]["median"] > 0.0
        assert rows[name]["factor"] == pytest.approx(rows[name]["time"]["median"] / rows["SV-OPS"]["time"]["median"])
    assert rows[PyNOLHedge.name]["time"] or rows[PyNOLHedge.name]["status"] == "not installed (pynol)"
    assert rows[PyNOLHedge.name]["status"] in shown
    assert rows["SV-OPS with cvxpy + Clarabel"]["deviation"] < 5e-4
    # Not a benchmark, but a general solver that is not at least this much slower was not measured right.
    assert rows["SV-OPS with cvxpy + Clarabel"]["factor"] > 10.0
    assert {goal["name"] for goal in data["goals"]} >= {"SV-OPS", "cvxpy learner / SV-OPS", "S-OPS joint / SV-OPS"}


def test_steps_are_told_and_times_drawn(measured: tuple[str, dict[str, Any], Path]) -> None:
    shown, data, folder = measured
    assert data["figures"][0]["status"].startswith("exact, ")
    assert data["figures"][0]["status"] in shown
    assert data["figures"][0]["status"].endswith(" steps")
    lines = json.loads((folder / EpisodeSpeed.figure_file).read_text())["data"]
    assert len(lines) == sum(row["time"] is not None for row in data["figures"])


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def absent() -> BenchWorld:
        raise ImportError("no such module", name="gymnasium")

    monkeypatch.setitem(LABELS, SMALL, absent)
    rows = EpisodeSpeed(1).run()
    assert [row.status for row in rows] == ["not installed (gymnasium)"]
    EpisodeSpeed().show(rows)
    assert "not installed (gymnasium)" in capsys.readouterr().out


def test_a_missing_solver_is_told(
    monkeypatch: pytest.MonkeyPatch, world: BenchWorld, learner: MirrorLearner, recorded: Recorded
) -> None:
    real = builtins.__import__

    def without_sparse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "scipy" and rest[2] == ("sparse",):
            raise ImportError("no such module", name="scipy")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_sparse)
    able, missing = plain_learners(world, learner, recorded)
    assert [contender.name for contender in able] == ["O-REPS, plain: P and losses known, no constraints"]
    assert missing["SV-OPS with cvxpy + Clarabel"] == "not installed (scipy)"


def test_an_inexact_peer_says_so(recorded: Recorded) -> None:
    class Lazy:
        name = "lazy"
        occupancy = np.zeros(recorded.occupancy.shape[1])

        def observe(self, rows: object, losses: object, costs: object) -> str:
            return "done"

    peer = Plain("lazy", Lazy(), recorded, follows=True)
    assert peer.turn() >= 0.0
    assert peer.status == "done 1, inexact"
    assert peer.deviation == pytest.approx(recorded.occupancy[0].max())
    assert Plain("lazy", Lazy(), recorded, False, statuses=Counter(done=2)).status == "done 2"


def test_search_of_cvops_does_not_end(world: BenchWorld) -> None:
    searching = our_learners(world, 3_000)["CV-OPS, phase 1"]
    Simulation(world.cmdp, searching, world.loss, 0).finish()
    assert searching.phase == 1  # type: ignore[attr-defined]


def test_frozen_lake_has_its_risk_as_cost() -> None:
    pytest.importorskip("gymnasium")
    lake = frozen_lake()
    assert not lake.cmdp.layout.is_full
    # Walls are safe to lean on: a policy without any risk exists.
    assert offline.slater(lake.cmdp).margin == pytest.approx(0.1)
    assert lake.cmdp.mean_costs.max() == pytest.approx(2 / 3)  # at most two of three slips lead into a hole


def test_presets_are_timed_over_the_same_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long an episode takes: its cost changes on the way."""
    ends = {}

    def watched(speed: EpisodeSpeed, able: Sequence[Compiled], advance: Callable[[], None]) -> dict[str, list[float]]:
        times = {each.name: [each.turn() for _ in range(speed.turns)] for each in able}
        ends.update({each.name: each.learner.episode for each in able})
        return times

    monkeypatch.setattr(EpisodeSpeed, "take_turns", watched)
    rows = PresetTimes(worlds=1, warm_up=40, turns=3, per_turn=5).run()
    assert len(rows) == 2
    assert set(ends.values()) == {40 + 3 * 5}
    assert len(ends) == 4
