"""`python -m bench calls`: the same episodes for everybody, active boxes, goals that are judged right, a small run."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from bench_runs import invoke

import hedgerow as hr
from bench import calls, inside
from bench.calls import Caller, CallRow, Calls
from bench.episode_worlds import LABELS, BenchWorld
from bench.timing import Spread
from hedgerow.simulation.run import Simulation

SMALL, MIDDLE, _ = calls.WORLDS
TINY = Calls(1, episodes=300, warm_up=100, first=5, turns=2, per_turn=10, files=2)


@pytest.fixture(scope="module")
def world() -> BenchWorld:
    return LABELS[SMALL]()


def row(world: str, call: str, seconds: float) -> CallRow:
    return CallRow(world, 45, "SV-OPS", call, Spread.of([seconds]), asked=calls.asked(world, call))


@pytest.mark.parametrize("name", ["SV-OPS", "S-OPS"])
def test_a_caller_plays_the_episodes_of_the_loop(world: BenchWorld, name: str) -> None:
    learner = calls.our_learners(world, 200)[name]
    arrays, whole = (Caller(world, copy.copy(learner), 3, by) for by in (calls.as_arrays, calls.as_episode))
    loop, other = copy.copy(learner), copy.copy(learner)
    arrays.play(30)
    whole.play(30)
    Simulation(world.cmdp, loop, world.loss, 3).advance(30)
    Simulation(world.cmdp, other, world.loss, 4).advance(30)
    calls.check_equal(arrays.learner, whole.learner, loop)
    np.testing.assert_array_equal(inside.seen(arrays.learner).visits, inside.seen(loop).visits)
    assert np.array(arrays.seconds).shape == (30, 2)
    assert np.all(np.array(arrays.seconds) > 0.0)
    with pytest.raises(RuntimeError, match="different policies"):
        calls.check_equal(arrays.learner, other)


@pytest.mark.parametrize("label", calls.WORLDS)
def test_projections_have_active_boxes(label: str) -> None:
    world = LABELS[label]()
    arrays = calls.boxed(world, 0)
    result = hr.projection.Projector(world.cmdp.layout, world.cmdp.num_constraints).project(*arrays)
    assert result.solved
    layout, q = world.cmdp.layout, np.exp(result.log_occupancy)
    share = q / np.add.reduceat(q, layout.row_start[:-1])[layout.row_of_triple]
    _, lower, upper, *_ = arrays
    active = ((np.abs(share - lower) < 1e-9) & (lower > 0.0)) | ((np.abs(share - upper) < 1e-9) & (upper < 1.0))
    assert np.mean(active) > 0.1


def test_the_compiled_call_starts_over(world: BenchWorld) -> None:
    projector = hr.projection.Projector(world.cmdp.layout, world.cmdp.num_constraints)
    result = projector.project(*calls.boxed(world, 0))
    solve = inside.compiled_solve(projector)
    assert solve().iterations < result.iterations  # from the solution itself
    inside.start_over(projector)
    again = solve()
    assert (again.iterations, again.objective) == (result.iterations, result.objective)


@pytest.mark.parametrize(
    ("world", "call", "seconds", "verdict"),
    [
        (SMALL, calls.BOTH, 45e-6, "met"),
        (SMALL, calls.BOTH, 46e-6, "not met"),
        (SMALL, calls.PROJECTOR, 25.1e-6, "not met"),
        (SMALL, calls.PROJECT, 1.0, ""),
        (MIDDLE, calls.BOTH, 1.0, ""),
        (MIDDLE, calls.LOAD, 0.3, "met"),
        (MIDDLE, calls.LOAD, 0.4, "not met"),
    ],
)
def test_goals(world: str, call: str, seconds: float, verdict: str) -> None:
    assert row(world, call, seconds).verdict == verdict


def test_calls_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Calls, "quick", classmethod(lambda cls: TINY))
    shown = invoke("calls", "--quick", "--out", str(tmp_path))
    figures = json.loads((tmp_path / Calls.json_file).read_text())["figures"]
    of_learners = [calls.PLAN, calls.OBSERVE, calls.BOTH, calls.OBSERVE_EPISODE, calls.LOAD, calls.COPY]
    assert [(row["who"], row["call"]) for row in figures] == [
        *(("SV-OPS", call) for call in of_learners),
        *(("S-OPS", call) for call in of_learners),
        ("projection", calls.PROJECTOR),
        ("projection", calls.PROJECT),
    ]
    for row in figures:
        assert row["triples"] == 45
        assert row["time"]["count"] == (TINY.files if row["call"] in (calls.LOAD, calls.COPY) else 20)
        assert (row["inside"] is None) == (row["call"] not in (calls.BOTH, calls.PROJECTOR, calls.PROJECT))
        assert row["call"] in shown
    judged = [row["call"] for row in figures if row["verdict"]]
    assert judged == [calls.BOTH, calls.LOAD, calls.BOTH, calls.LOAD, calls.PROJECTOR]
