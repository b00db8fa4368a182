"""`python -m bench compile`: what its processes are told, what they leave behind, goals. Nothing is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench_runs import invoke

from bench import compilation
from bench.compilation import ALONE, BLOCKS, DEMO, DEMO_WARM, WARM, WHEEL, WHOLE, Compilation, Spent
from hedgerow.compiling.cache import INHERITED

GOOD = {
    WHOLE: [Spent(20.0, 36.0, 46)],
    WARM: [Spent(1.0, 1.0, 0)],
    ALONE: [Spent(30.0, 30.0, 46)],
    BLOCKS: [Spent(25.0, 26.0, 16)],
    DEMO: [Spent(30.0, 30.0, 16)],
    DEMO_WARM: [Spent(15.0, 15.0, 0)],
}


class Runner:
    """In the place of `spend`: notes commands, caches and settings; a compilation leaves a file."""

    def __init__(self) -> None:
        self.noted: list[tuple[list[str], int, Mapping[str, str]]] = []

    def __call__(self, command: Sequence[str], cache: Path, settings: Mapping[str, str] | None = None) -> Spent:
        self.noted.append((list(command), len(list(cache.iterdir())), settings or {}))
        compiles = "compile" in command
        if compiles:
            (cache / "kernel").touch()
        return Spent(float(len(self.noted)), 2.0, int(compiles))


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    made = Runner()
    monkeypatch.setattr(compilation, "spend", made)
    return made


def test_every_compilation_has_an_empty_cache(runner: Runner, tmp_path: Path) -> None:
    shown = invoke("compile", "--repeats", "2", "--out", str(tmp_path))
    whole = ["-m", "hedgerow", "compile", "--quiet", "--native"]
    alone, blocks = [*whole, "-j", "1"], [*whole, "--only", "blocks"]
    kinds = [(command, found) for command, found, _ in runner.noted if "compile" in command]
    assert kinds == 2 * [(whole, 0), (alone, 0), (blocks, 0)]
    others = [(command[1:3], found) for command, found, _ in runner.noted if "compile" not in command]
    demo = ["hedgerow", "demo"]
    assert [found for command, found in others if command != demo] == [1, 1]  # what `whole` left
    assert [found for command, found in others if command == demo] == [1, 0, 1, 0]
    figures = json.loads((tmp_path / Compilation.json_file).read_text())["figures"]
    assert [(row["process"], row["wall"]["median"], row["files"], row["verdict"]) for row in figures] == [
        (WHOLE, 4.0, 1, ""),
        (WARM, 5.0, 0, ""),
        (DEMO_WARM, 6.0, 0, ""),
        (ALONE, 7.0, 1, "met"),
        (BLOCKS, 8.0, 1, "met"),
        (DEMO, 9.0, 0, ""),
    ]
    assert WHOLE in shown


def test_a_wheel_is_measured_alone(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "some.whl"
    wheel.touch()
    installed: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: installed.append(command))
    invoke("compile", "--quick", "--wheel", str(wheel))
    ((*_, target, given),) = installed
    assert given == str(wheel)
    command, found, settings = runner.noted[-1]
    assert command[-1] == settings["PYTHONPATH"] == target
    assert found == 0


def test_a_wheel_can_be_built_first(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[list[str]] = []

    def run(command: list[str], **options: Any) -> None:
        noted.append(command)
        if "hatchling" in command:
            assert options["env"]["HEDGEROW_COMPILED"] == "1"
            Path(command[-1]).mkdir()
            Path(command[-1], "some.whl").touch()

    monkeypatch.setattr(subprocess, "run", run)
    invoke("compile", "--quick", "--wheel", "build")
    build, install = noted
    assert install[-1] == str(Path(build[-1], "some.whl"))
    assert runner.noted[-1][2]["PYTHONPATH"] == install[-2]


def test_a_demo_may_compile_unless_everything_was_compiled() -> None:
    made = Compilation()
    for files in (0, 16):
        assert made.is_right({**GOOD, DEMO: [Spent(1.0, 1.0, files)]})
    assert not made.is_right({**GOOD, DEMO_WARM: [Spent(1.0, 1.0, 1)]})


def test_a_missing_wheel_ends_with_2(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    invoke("compile", "--quick", "--wheel", "gone.whl", code=2)
    assert "there is no wheel 'gone.whl'" in capsys.readouterr().err
    assert not runner.noted


def test_processor_time_and_the_wall_have_goals() -> None:
    found = {name: GOOD[name] for name in (WHOLE, WARM, ALONE, BLOCKS)} | {WHEEL: [Spent(3.5, 1.0, 0)]}
    whole, warm, alone, blocks, wheel = Compilation().figures(found)
    verdicts = ["", "", "met", "not met", "not met"]
    assert [row.verdict for row in (whole, warm, alone, blocks, wheel)] == verdicts
    assert (alone.most_wall, alone.most_cpu, wheel.most_wall, wheel.most_cpu) == (None, 32.0, 3.0, None)


@pytest.mark.parametrize(
    ("process", "files", "words"), [(WHOLE, 0, "compiled nothing"), (WARM, 1, "compiled something"), (WHEEL, 2, "some")]
)
def test_who_compiles_is_checked(process: str, files: int, words: str) -> None:
    made = Compilation()
    assert made.is_right(GOOD)
    assert len(list(made.shown(GOOD))) == 1
    wrong = {**GOOD, process: [Spent(1.0, 1.0, files)]}
    assert not made.is_right(wrong)
    assert words in str(list(made.shown(wrong))[1])


def test_a_process_has_its_own_cache_and_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INHERITED, "elsewhere")
    script = (
        "import os, pathlib, sys, time\n"
        f"assert {INHERITED!r} not in os.environ and os.environ['OWN'] == 'yes'\n"
        "pathlib.Path(os.environ['NUMBA_CACHE_DIR'], 'new').touch()\n"
        "while time.process_time() < 0.2: pass\n"
    )
    (tmp_path / "old").touch()
    spent = compilation.spend(["-c", script], tmp_path, {"OWN": "yes"})
    assert spent.files == 1
    assert spent.cpu >= 0.2
    assert spent.wall >= 0.2
    with pytest.raises(subprocess.CalledProcessError):
        compilation.spend(["-c", "raise SystemExit(3)"], tmp_path)


@pytest.mark.slow
def test_the_first_episode_is_simulated_by_the_package_that_is_meant(tmp_path: Path) -> None:
    command = [sys.executable, *compilation.episode_command()]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    other = [sys.executable, *compilation.episode_command(tmp_path)]
    failed = subprocess.run(other, capture_output=True, text=True)
    assert failed.returncode == 1
    assert f"not from {tmp_path}" in failed.stderr
