"""The command and what is around it: levels, resuming, exit codes, figures; a slice of the checks themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hedgerow import cli, results
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report import export
from hedgerow.verify import levels, tables, verify
from hedgerow.verify import verify as evidence
from hedgerow.verify.controls import CONTROLS
from hedgerow.verify.judging import Status
from hedgerow.verify.levels import Level, deterministic, make_level, runs
from hedgerow.verify.verify import Evidence, draw
from hedgerow.verify.worlds import two_actions

pytestmark = pytest.mark.slow


def short(count: int) -> Level:
    return Level("quick", {"deterministic": deterministic(60, 1)[:count]})


@pytest.mark.nightly
def test_deterministic_promises_on_the_catalogue(tmp_path: Path) -> None:
    """A slice of `hedgerow verify --deterministic`: five worlds, three adversaries, all presets, run by run; and the
    worlds of which more is known.
    """
    level = Level("deterministic", {"deterministic": deterministic(120, 1)})
    assert len(level.groups["deterministic"]) == 90 + 39
    report = verify.verify(level, tmp_path, processes=1)
    assert [one.promise.key for one in report.promises] == ["T3", "T4", "T7", "T8", "T9", "T18", "T25", "T33"]
    for one in report.promises:
        assert one.verdict.status is Status.HOLDS, one.verdict.sentence
    assert report.passed


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["literal-sigma", "index-drawn-once", "per-step-mixing", "wrong-counts", "wrong-box", "backward-steps"]
)
def test_broken_learners_are_refuted(name: str, tmp_path: Path) -> None:
    control = next(control for control in CONTROLS if control.name == name)
    sound = runs(two_actions, "s-ops", 50, [0], audit=True)
    level = Level("one", {"deterministic": sound}, {name: levels.controls()[name]})
    report = verify.verify(level, tmp_path, only=control.promises, processes=1)
    (caught,) = report.controls
    assert caught.control is control
    assert caught.caught, caught.verdict.sentence


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["hundred-delta", "false-ties", "false-baseline", "selected-log", "counts-all"])
def test_learners_that_are_too_sure_are_refuted(name: str, tmp_path: Path) -> None:
    control = next(control for control in CONTROLS if control.name == name)
    sound = runs(two_actions, "s-ops", 50, [0], presets=("sharpest",))
    level = Level("one", {"coverage": sound}, {name: levels.controls()[name]})
    report = verify.verify(level, tmp_path, only=control.promises, processes=1)
    assert [one.promise.key for one in report.controls] == list(control.promises)
    for one in report.controls:
        assert one.caught, one.verdict.sentence
    assert report.passed


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
    for cells in level.groups.values():
        assert len({cell.hash for cell in cells}) == len(cells)
    assert len({cell.hash for cell in level.cells.values()}) == len(level.cells)


def test_the_deterministic_level_is_as_large_as_it_claims() -> None:
    specs = [cell.data for cell in make_level("deterministic").groups["deterministic"]]
    assert len(specs) == 5 * 2 * 3 * 3 * 20 + (6 * 2 + 1) * 3 * 5
    assert len({spec["label"]["world"] for spec in specs}) == 5 + 6
    assert len({spec["label"]["adversary"] for spec in specs}) == 3
    assert len({spec["seed"] for spec in specs}) == 20
    assert {spec["learner"]["preset"] for spec in specs} == {"paper", "sharp", "sharpest"}
    assert {spec["episodes"] for spec in specs} == {20_000}
    assert all(spec["watch"]["audit"] for spec in specs)


def test_cells_that_differ_cannot_share_a_name() -> None:
    (one,) = runs(two_actions, "s-ops", 50, [0])
    other = replace(one, delta=0.5)
    with pytest.raises(InvalidInput, match="two cells would be called"):
        _ = Level("x", {"a": [one], "b": [other]}).cells


def test_a_verification_is_resumed(tmp_path: Path) -> None:
    level = short(6)
    first = verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert first.manifest["found_finished"] == 0
    directory = Evidence(level, tmp_path).directory
    assert len(results.open(directory).done) == 6
    lost, damaged = sorted((directory / "cells").iterdir())[:2]
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-9])
    second = verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert second.manifest["found_finished"] == 4
    assert second.promises[0].verdict == first.promises[0].verdict
    assert verify.verify(level, tmp_path, only=["T4"], processes=1, fresh=True).manifest["found_finished"] == 0
    kept = json.loads((tmp_path / "verdicts.json").read_text())
    assert kept["promises"][0]["key"] == "T4"
    assert kept["manifest"]["level"] == "quick"
    assert kept["manifest"]["results"] == directory.name


def test_what_is_not_finished_is_not_judged(tmp_path: Path) -> None:
    level = short(2)
    assert verify.verify(level, tmp_path, only=["T4"], processes=1).passed
    longer = Level("quick", {**level.groups, "coverage": runs(two_actions, "s-ops", 40, [0])})
    assert Evidence(longer, tmp_path).directory != Evidence(level, tmp_path).directory
    verify.verify(longer, tmp_path, only=["T4"], processes=1)
    report = verify.verify(longer, tmp_path, only=["T4", "T7"], finished=True)
    told = [(one.verdict.status, one.verdict.sentence) for one in report.promises]
    assert told[0][0] is Status.HOLDS
    assert told[1] == (Status.UNRUN, "2 of 3 runs are finished")
    assert not report.passed
    assert report.summary().startswith("1 holds, 0 refuted, 0 not tested here, 1 not run at this level; 2 runs")
    assert verify.verify(longer, tmp_path, only=["T7"], processes=1).manifest["found_finished"] == 2


def test_other_code_is_another_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    level = short(1)
    verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert verify.verify(level, tmp_path, only=["T4"], processes=1).manifest["found_finished"] == 1
    monkeypatch.setattr(evidence, "sources", lambda: "changed")
    assert verify.verify(level, tmp_path, only=["T4"], processes=1).manifest["found_finished"] == 0


def test_a_run_that_fails_is_an_error(tmp_path: Path) -> None:
    (cell,) = runs(two_actions, "s-ops", 50, [0], audit=True)
    wrong = replace(cell, learner={**cell.learner, "no-switch": 1})
    with pytest.raises(HedgerowError, match=r"1 of 1 runs failed.*no-switch"):
        verify.verify(Level("x", {"deterministic": [wrong]}), tmp_path, only=["T4"], processes=1)


def test_the_command_says_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "make_level", lambda name: short(4))
    arguments = ["verify", "--quick", "--only", "t4,T9", "-j", "1", "--out", str(tmp_path)]
    told = CliRunner().invoke(cli.app, [*arguments, "--json"])
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert data["passed"]
    assert [one["key"] for one in data["promises"]] == ["T4", "T9"]
    shown = CliRunner().invoke(cli.app, arguments)
    assert "T4" in shown.stdout
    assert "reg_hard" in shown.stdout
    assert "holds" in shown.stdout
    # A broken run in the place of a sound one turns the command red.
    broken = levels.controls()["wrong-counts"]
    monkeypatch.setattr(levels, "make_level", lambda name: Level("quick", {"deterministic": broken}, {}))
    red = CliRunner().invoke(cli.app, arguments)
    assert red.exit_code == 1
    assert "FAILED" in red.stdout


def test_a_control_that_is_not_refuted_fails(tmp_path: Path) -> None:
    sound = runs(two_actions, "sv-ops", 50, [0], audit=True)
    level = Level("x", {"deterministic": sound}, {"wrong-counts": sound})
    report = verify.verify(level, tmp_path, only=["T4"], processes=1)
    assert report.promises[0].verdict.status is Status.HOLDS
    assert not report.controls[0].caught
    assert not report.passed


def test_requests_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no promise 'T99'"):
        verify.verify(make_level("quick"), tmp_path, only=["T99"])
    with pytest.raises(InvalidInput, match="no runs for T1"):
        verify.verify(make_level("deterministic"), tmp_path, only=["T1"])
    with pytest.raises(InvalidInput, match="no level"):
        make_level("slow")


def test_who_has_no_browser_hears_of_it_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise HedgerowError("install hedgerow[figures]")

    monkeypatch.setattr(export, "check_browser", missing)
    monkeypatch.setattr(verify, "verify", lambda *_, **__: pytest.fail("ran"))
    done = CliRunner().invoke(cli.app, ["verify", "--quick", "--figures", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, HedgerowError)
    assert "install hedgerow[figures]" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_figures_are_drawn_from_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}

    def save(jobs: list[tuple[Any, Path]], paper: Any) -> list[Path]:  # how a browser draws is tested with the pages
        drawn.update({path.name: plot for plot, path in jobs})
        return [path for _, path in jobs]

    monkeypatch.setattr(verify, "save_figures", save)
    safe, constant = (
        runs(two_actions, learner, T, [0]) for learner, T in (("s-ops", (64, 128)), ("cv-ops", (400, 800)))
    )
    covered = runs(two_actions, "s-ops", 64, 2, presets=("sharpest",))
    level = Level("x", {"safe-growth": safe, "constant": constant, "coverage": covered})
    verify.verify(level, tmp_path, only=["T1", "T10", "T15"], processes=1)
    written = {path.name for path in draw(level, tmp_path)}
    assert written == {
        *(f"{name}.svg" for name in ("safe-growth", "constant-violation", "coverage")),
        *(f"{name}.parquet" for name in tables.KINDS),
        *(f"{name}.md" for name in tables.PAGE_TABLES),
    }
    # No transition is uncertain: costs have five sixths of 5 delta, the certificate one, and there are no balls.
    assert (
        "| two-actions, independent costs, s-ops | sharpest | 64 | 2 | 0.25 |  |  |"
        " 0.0000 \\[0.000, 0.900\\] (0.208) |"
        " 0.0000 \\[0.000, 0.900\\] (0.0417) | 0.0000 \\[0.000, 0.900\\] (0.25) | 0 |"
    ) in (tmp_path / "coverage.md").read_text()
    assert "sum lambda of S-OPS" in (tmp_path / "growth.md").read_text()
    assert {name: plot["layout"]["title"]["text"] for name, plot in drawn.items()} == {
        "safe-growth.svg": "S-OPS: regret and mixing weights",
        "constant-violation.svg": "CV-OPS: constant violation",
        "coverage.svg": "Failures of confidence sets (2 runs each)",
    }
    names = [trace["name"] for trace in drawn["safe-growth.svg"]["data"]]
    assert names[-2:] == ["slope 1", "slope 1/2"]
    assert drawn["safe-growth.svg"]["data"][0]["x"] == [64, 128]
