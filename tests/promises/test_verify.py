"""The command and what is around it: levels, resuming, exit codes, figures; a slice of the checks themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from hedgerow import cli
from hedgerow.errors import InvalidInput
from hedgerow.promises import levels, verify
from hedgerow.promises.controls import CONTROLS
from hedgerow.promises.figures import draw
from hedgerow.promises.levels import Level, make_level
from hedgerow.promises.promise import Status
from hedgerow.promises.specs import RunSpec
from hedgerow.promises.store import Store

pytestmark = pytest.mark.slow


def shortened(level: Level, episodes: int, seeds: int) -> Level:
    groups = {
        name: [replace(spec, episodes=min(spec.episodes, episodes)) for spec in specs if spec.seed < seeds]
        for name, specs in level.groups.items()
    }
    return Level(level.name, groups, {})


def test_deterministic_promises_on_the_catalogue(tmp_path: Path) -> None:
    """A slice of `hedgerow verify --deterministic`: five worlds, three adversaries, both presets, run by run."""
    level = shortened(make_level("deterministic"), episodes=150, seeds=1)
    assert len(level.groups["deterministic"]) == 60
    report = verify.verify(level, tmp_path, processes=1)
    assert [one.promise.key for one in report.promises] == ["T3", "T4", "T7", "T8", "T9", "T18"]
    for one in report.promises:
        assert one.verdict.status is Status.HOLDS, one.verdict.sentence
    assert report.passed


@pytest.mark.parametrize(
    "name", ["literal-sigma", "index-drawn-once", "per-step-mixing", "wrong-counts", "wrong-box", "backward-steps"]
)
def test_broken_learners_are_refuted(name: str, tmp_path: Path) -> None:
    control = next(control for control in CONTROLS if control.name == name)
    level = Level("one", {"deterministic": [RunSpec("deterministic", "two-actions", "s-ops", 50, audit=True)]},
                  {name: levels.controls()[name]})  # fmt: skip
    report = verify.verify(level, tmp_path, only=control.promises, processes=1)
    (caught,) = report.controls
    assert caught.control is control
    assert caught.caught, caught.verdict.sentence


def test_every_control_has_runs_and_a_promise() -> None:
    assert set(levels.controls()) == {control.name for control in CONTROLS}
    for control in CONTROLS:
        assert set(control.promises) <= set(verify.BY_KEY)


@pytest.mark.parametrize("name", ["quick", "default", "full"])
def test_levels_feed_every_promise(name: str) -> None:
    level = make_level(name)
    for promise in verify.PROMISES:
        for group in promise.groups:
            assert level.groups[group], group
    for specs in level.groups.values():
        assert len({spec.digest for spec in specs}) == len(specs)


def test_the_deterministic_level_is_as_large_as_it_claims() -> None:
    specs = make_level("deterministic").groups["deterministic"]
    assert len({(spec.world, spec.world_params) for spec in specs}) == 5
    assert len({spec.adversary for spec in specs}) == 3
    assert len({spec.seed for spec in specs}) == 20
    assert {spec.preset for spec in specs} == {"paper", "sharp"}
    assert {spec.episodes for spec in specs} == {20_000}
    assert all(spec.audit for spec in specs)


def test_a_verification_is_resumed(tmp_path: Path) -> None:
    level = shortened(make_level("quick"), episodes=60, seeds=1)
    level.groups["deterministic"] = level.groups["deterministic"][:6]
    first = verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert first.manifest["found_finished"] == 0
    store = Store(tmp_path)
    lost, damaged = (store.path(spec) for spec in level.groups["deterministic"][:2])
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-9])
    second = verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert second.manifest["found_finished"] == 4
    assert second.promises[0].verdict == first.promises[0].verdict
    assert verify.verify(level, tmp_path, only=["T4"], processes=1, fresh=True).manifest["found_finished"] == 0
    kept = json.loads((tmp_path / "verdicts.json").read_text())
    assert kept["promises"][0]["key"] == "T4"
    assert json.loads((tmp_path / "manifest.json").read_text())["level"] == "quick"


def test_the_command_says_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = shortened(make_level("quick"), episodes=60, seeds=1)
    short.groups["deterministic"] = short.groups["deterministic"][:4]
    monkeypatch.setattr(levels, "make_level", lambda name: short)
    arguments = ["verify", "--quick", "--only", "t4,T9", "-j", "1", "--out", str(tmp_path)]
    told = CliRunner().invoke(cli.app, [*arguments, "--json"])
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert data["passed"]
    assert [one["key"] for one in data["promises"]] == ["T4", "T9"]
    shown = CliRunner().invoke(cli.app, arguments)
    assert "T4" in shown.stdout
    assert "Theorem 4 (reg_hard)" in shown.stdout
    assert "holds" in shown.stdout
    # A broken run in the place of a sound one turns the command red.
    broken = levels.controls()["wrong-counts"]
    monkeypatch.setattr(levels, "make_level", lambda name: Level("quick", {"deterministic": broken}, {}))
    red = CliRunner().invoke(cli.app, arguments)
    assert red.exit_code == 1
    assert "FAILED" in red.stdout


def test_a_control_that_is_not_refuted_fails(tmp_path: Path) -> None:
    sound = [RunSpec("deterministic", "two-actions", "sv-ops", 50, audit=True)]
    report = verify.verify(Level("x", {"deterministic": sound}, {"wrong-counts": sound}), tmp_path, only=["T4"])
    assert report.promises[0].verdict.status is Status.HOLDS
    assert not report.controls[0].caught
    assert not report.passed


def test_requests_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no promise 'T21'"):
        verify.verify(make_level("quick"), tmp_path, only=["T21"])
    with pytest.raises(InvalidInput, match="no runs for T1"):
        verify.verify(make_level("deterministic"), tmp_path, only=["T1"])
    with pytest.raises(InvalidInput, match="no level"):
        make_level("slow")


def test_figures_are_drawn_from_what_is_there(tmp_path: Path) -> None:
    base = RunSpec("safe-growth", "two-actions", "s-ops", 0)
    level = Level("x", {"safe-growth": [replace(base, episodes=T) for T in (64, 128)], "constant": [
        replace(base, group="constant", learner="cv-ops", episodes=T) for T in (400, 800)]}, {})  # fmt: skip
    verify.verify(level, tmp_path, only=["T10", "T15"], processes=1)
    written = {path.name for path in draw(level, tmp_path)}
    assert written == {"safe-growth.svg", "constant-violation.svg", "growth.md", "constants.md"}
    assert "sum lambda of S-OPS" in (tmp_path / "growth.md").read_text()
    for name in ("safe-growth.svg", "constant-violation.svg"):
        ElementTree.parse(tmp_path / name)
