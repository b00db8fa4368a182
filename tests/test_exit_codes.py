"""Every command: exit code 0 if its work was done, another one, and one line that says why, if it was not."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from small_experiments import own_loss
from typer.main import get_command

import hedgerow as hr
from hedgerow import cli
from hedgerow.experiments import source, spec
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.sweep import run_experiment

DONE, FAILED, REFUSED = 0, 1, 2
EXPERIMENT = own_loss("sv-ops", seeds=1, episodes=20)

# The arguments; {here} is a folder that holds tiny.toml, its results `finished` and, with a damaged cell, `damaged`,
# `file` (no folder), `infeasible.npz` and `world.npz`, and `damaged.npz`.
CASES: dict[str, tuple[int, str]] = {
    # Done
    "--version": (DONE, ""),
    "learners": (DONE, ""),
    "worlds": (DONE, ""),
    "adversaries": (DONE, ""),
    "costs": (DONE, ""),
    "learners --json": (DONE, ""),
    "run --list": (DONE, ""),
    "run {here}/tiny.toml --cells": (DONE, ""),
    "run {here}/tiny.toml --out {here}/new -j 1": (DONE, ""),
    "resume {here}/finished -j 1": (DONE, ""),
    "resume {here}/damaged -j 1": (DONE, ""),  # it runs the cell again
    "demo --out {here}/demo -j 1": (DONE, ""),
    "compare {here}/tiny.toml --out {here}/finished -j 1": (DONE, ""),
    "report {here}/finished": (DONE, ""),
    "check lower-bound-1 --no-probe": (DONE, ""),
    "check {here}/world.npz --no-probe": (DONE, ""),
    "compile --where": (DONE, ""),
    "journal show sqlite:///{here}/site.db site": (DONE, ""),
    # Not done
    "learners nobody": (REFUSED, "nobody"),
    "worlds nowhere": (REFUSED, "nowhere"),
    "adversaries nobody": (REFUSED, "nobody"),
    "costs nothing": (REFUSED, "nothing"),
    "nothing": (REFUSED, "there is no command 'nothing'"),
    "run": (REFUSED, "--list"),
    "run nowhere": (REFUSED, "cannot read the experiment nowhere"),
    "run {here}/tiny.toml --out {here}/finished": (REFUSED, "holds results already"),
    "run {here}/tiny.toml --out {here}/file/out": (REFUSED, "cannot use"),
    "run {here}/tiny.toml --out {here}/new --only nobody": (REFUSED, "there is no cell 'nobody'"),
    "run {here}/tiny.toml --out {here}/new --limit 0": (REFUSED, "must be positive"),
    "resume {here}/nowhere": (REFUSED, "nowhere"),
    "resume {here}/finished --only nobody": (REFUSED, "there is no cell 'nobody'"),
    "demo --out {here}/file": (REFUSED, "{here}/file"),
    "demo --out {here}/file/out": (REFUSED, "cannot use"),
    "demo --out {here}/finished": (REFUSED, "{here}/finished"),  # of another experiment
    "compare nowhere": (REFUSED, "cannot read the experiment nowhere"),
    "compare {here}/tiny.toml --learners nobody": (REFUSED, "'nobody'"),
    "compare {here}/tiny.toml --out {here}/file/out": (REFUSED, "cannot use"),
    "compare {here}/tiny.toml --markdown {here}/none.md": (REFUSED, "none.md"),
    "report {here}/nowhere": (REFUSED, "nowhere"),
    "report {here}": (REFUSED, "holds no results"),
    "report {here}/damaged": (REFUSED, "damaged"),
    "report {here}/finished --out {here}/file/page.html": (REFUSED, "{here}/file"),
    "report {here}/finished --width 10": (REFUSED, "--figures"),
    "check nowhere": (REFUSED, "unknown world 'nowhere'"),
    "check {here}/nowhere.npz": (REFUSED, "there is no file"),
    "check {here}/damaged.npz": (REFUSED, "corrupt"),
    "check {here}/infeasible.npz --no-probe": (FAILED, ""),
    "check lower-bound-1 --set nothing=1": (REFUSED, "nothing"),
    "compile --only nothing": (REFUSED, "nothing"),
    "journal verify sqlite:///{here}/site.db nothing": (REFUSED, "no journal 'nothing'"),
    "journal show sqlite:///{here}/none.db site": (REFUSED, "no database"),
    "serve sqlite:///{here}/none.db site": (REFUSED, "no database"),
    "serve sqlite:///{here}/site.db site --host 0.0.0.0": (REFUSED, "HEDGEROW_TOKEN"),
    "check-learner sv-ops --limit 0": (REFUSED, "must be positive"),
    "verify --quick --only T99": (REFUSED, "T99"),
    "verify --quick --out {here}/file": (REFUSED, "file"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiny.toml").write_text(EXPERIMENT)
    (folder / "file").write_text("in the way")
    run_experiment(spec.load(str(folder / "tiny.toml")), folder / "finished", RunOptions(backend="serial"))
    shutil.copytree(folder / "finished", folder / "damaged")
    (cell,) = (folder / "damaged").glob("cells/*.parquet")
    spoil(cell)
    world = hr.worlds.make("lower-bound-1").cmdp
    world.save(folder / "world.npz")
    world.save(folder / "damaged.npz")
    spoil(folder / "damaged.npz")
    world.with_thresholds([0.0] * world.num_constraints).save(folder / "infeasible.npz")
    hr.Journal.create(f"sqlite:///{folder}/site.db", "site", hr.SVOPS(world, 10)).close()
    return folder


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_every_command_is_here() -> None:
    """In both columns; the work of `verify`, `check-learner` and `serve` takes long and has tests of its own."""
    commands = set(get_command(cli.app).commands)  # type: ignore[attr-defined]
    done, undone = (
        {case.split()[0] for case, (code, _) in CASES.items() if (code == DONE) == is_done} for is_done in (True, False)
    )
    assert commands - done == {"verify", "check-learner", "serve"}
    assert commands - undone == set()


@pytest.mark.parametrize("case", CASES)
def test_exit_code(
    case: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here, (code, words) = tmp_path / "here", CASES[case]
    shutil.copytree(made, here)
    monkeypatch.chdir(tmp_path)
    tiny = spec.parse(source.Source("demo", f'title = "demo"\ndelta = 0.05\n{EXPERIMENT}', here))
    monkeypatch.setattr(spec, "load", lambda name: tiny)  # what `demo` runs
    monkeypatch.setattr(sys, "argv", ["hedgerow", *case.format(here=here).split()])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    told = capfd.readouterr()
    assert (stop.value.code or 0) == code, told
    assert words.format(here=here) in told.err
    assert "Traceback" not in told.err
    if code == REFUSED:
        assert told.err
        assert not (tmp_path / "out").exists()
