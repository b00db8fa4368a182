"""`bench field` and `bench safety`: what they measure is right, and an unsafe learner is found out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench_runs import invoke

from bench import field, safety
from bench.episode_worlds import catalogue_world
from hedgerow.learners.field.s_lp import SLP
from hedgerow.planning import offline


@pytest.mark.slow
def test_field_times_every_learner(tmp_path: Path) -> None:
    shown = invoke("field", "--quick", "--warm_up", "300", "--turns", "2", "--programs", "1", "--out", str(tmp_path))
    rows = json.loads((tmp_path / field.FieldSpeed.json_file).read_text())["figures"]
    assert {row["world"] for row in rows} == set(field.WORLDS)
    for row in rows:
        assert row["contender"] in shown
        assert 0.0 < row["time"]["p10"] <= row["time"]["median"]
        if row["contender"] == field.HIGHS:
            assert row["status"] == "same value"
        else:
            assert row["status"].startswith("compiled")
            if row["plans"]:
                assert "0 unsolved" in row["status"]
                assert row["faster"] > 10.0  # not a benchmark, but less was not measured right


def test_much_data_is_the_same_data_more_often() -> None:
    learner = field.contenders(catalogue_world("dope-factored"), 100)["S-LP"]
    world = catalogue_world("dope-factored").cmdp
    rng = np.random.default_rng(0)
    for _ in range(50):
        plan = learner.plan()
        learner.observe(world.play(plan.policy, rng))
    rich = field.much_data(learner)
    np.testing.assert_array_equal(rich.statistics.visits, field.RICHER * learner.statistics.visits)
    np.testing.assert_allclose(rich.statistics.mean_costs, learner.statistics.mean_costs)
    assert np.all(rich.statistics.upper - rich.statistics.lower <= learner.statistics.upper - learner.statistics.lower)


def test_safe_learners_are_safe(tmp_path: Path) -> None:
    shown = invoke("safety", "--runs", "4", "--episodes", "200", "--out", str(tmp_path))
    rows = json.loads((tmp_path / safety.Safety.json_file).read_text())["figures"]
    names = [row["learner"] for row in rows]
    assert names == ["s-ops", "c-ops", "opt-pess-lp", "dope", "s-lp", "safe-etc", "opse-dp", "dope-plus"]
    for row in rows:
        assert row["learner"] in shown
        assert row["refuted"] == 0
        assert row["verdict"] == "safe"
        assert row["episodes"] == 800


def test_an_unsafe_learner_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-LP that believes that no episode costs more than the threshold."""

    def careless(name: str, world: safety.CMDP, episodes: int, number: int) -> SLP:
        learner = SLP(world.view(), episodes, safety.DELTA, baseline=offline.slater(world))
        learner.core.baseline.ceilings[:] = learner.core.baseline.thresholds  # lambda = 0, whatever it costs
        return learner

    monkeypatch.setattr(safety, "build", careless)
    monkeypatch.setattr(safety, "SAFE", ("s-lp",))
    monkeypatch.setattr(safety, "losses_of", lambda number: np.tile([1.0, 0.0], 3))
    monkeypatch.setattr(safety, "world_of", lambda number, one_constraint: safety.roomy_world(number, 1))
    found = safety.Safety(runs=1, episodes=300).run()
    assert found[0].refuted > 0
    assert found[0].verdict == "NOT SAFE"
    assert not safety.Safety().is_right(found)
