"""`python -m bench all`: what is finished, what is run, what failed. Nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_runs import invoke

from bench import manifest, sources, whole
from bench.whole import PARTS, Part

CORES = next(part for part in PARTS if part.name == "cores")


def measured(part: Part, figures: Path, **changes: Any) -> None:
    """Write the file that the part would."""
    figures.mkdir(parents=True, exist_ok=True)
    data = manifest.report(part.name, part.settings(False), [], part.module) | {"right": True, "seconds": 3.0}
    part.file(figures).write_text(manifest.as_json(data | changes))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are run; none of them is. Those of `cells` fail."""
    noted: list[list[str]] = []

    class Done:
        def __init__(self, command: list[str]) -> None:
            noted.append(command)
            self.returncode = 7 * ("cells" in command)

    monkeypatch.setattr(whole.subprocess, "run", lambda command, **_: Done(command))
    monkeypatch.setattr(whole, "check_browser", lambda: None)
    return noted


def test_parts_have_files_and_settings_of_their_own(tmp_path: Path) -> None:
    files = [part.file(tmp_path) for part in PARTS]
    assert len({part.name for part in PARTS}) == len(set(files)) == len(PARTS)
    assert next(part for part in PARTS if part.name == "compile").settings(False) == {"wheel": "build", "repeats": 3}


def test_all_benchmarks_are_parts() -> None:
    from bench.__main__ import BENCHMARKS

    assert set(BENCHMARKS) == {part.command or part.name for part in PARTS} - {"progress"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"sources": "0" * 64}, "measured with other sources"),
        ({"processor": "another"}, "measured on another machine"),
        ({"settings": {"rounds": 1}}, "measured with other settings"),
        ({"right": False}, "an answer was wrong"),
    ],
)
def test_what_is_finished(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    assert CORES.unfinished(tmp_path, False) == "not measured"
    measured(CORES, tmp_path, **changes)
    assert CORES.unfinished(tmp_path, False) == reason
    assert CORES.expected(tmp_path) == 3.0
    assert CORES.unfinished(tmp_path, quick=True)  # its settings are others
    CORES.file(tmp_path).write_text("{")
    assert CORES.unfinished(tmp_path, False) == "its file is damaged"


def test_where_runs_are_kept_makes_no_difference(tmp_path: Path) -> None:
    part = next(part for part in PARTS if part.name == "samples")
    assert sources.digest(part.module)[:12] in part.settings(False)["keep"]
    measured(part, tmp_path, settings={**part.settings(False), "keep": "elsewhere", "processes": 1})
    assert part.unfinished(tmp_path, False) == ""


def test_finished_parts_are_skipped_and_failed_ones_named(
    tmp_path: Path, calls: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    measured(CORES, tmp_path / "figures")
    arguments = ("all", "--only", "cores,cells,plans", "--docs", str(tmp_path))
    invoke(*arguments, code=1)
    assert [command[3] for command in calls if command[2] == "bench"] == ["plans", "cells"]
    assert calls[0][-2:] == ["--out", str(tmp_path / "figures")]
    assert calls[-1][2:] == ["bench.tables", str(tmp_path)]
    told = capsys.readouterr().err
    assert "1 of 3 parts are finished already" in told
    assert "2/2: cells failed (7)" in told
    assert told.endswith("bench all: failed: cells\n")
    calls.clear()
    invoke(*arguments, "--skip", "cells", "--fresh")
    assert [command[3] for command in calls if command[2] == "bench"] == ["plans", "cores"]


def test_the_list_says_what_is_left(tmp_path: Path, calls: list[list[str]]) -> None:
    measured(CORES, tmp_path / "figures")
    lines = invoke("all", "--list", "--docs", str(tmp_path)).splitlines()
    assert len(lines) == len(PARTS)
    assert "cores                   3 s  finished" in lines
    assert not calls


def test_an_unknown_part_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        invoke("all", "--only", "cores,nothing")
    assert stop.value.code == 2
    assert "there is no part 'nothing'; known: calls, plans" in capsys.readouterr().err


@pytest.mark.slow
def test_a_small_part_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    arguments = ("all", "--only", "cells", "--quick", "--docs", str(tmp_path))
    invoke(*arguments)
    data = json.loads((tmp_path / "figures" / "cells.json").read_text())
    assert data["sources"] == sources.digest("bench.cells")
    assert data["settings"]["sweeps"] == 3
    assert data["right"]
    assert data["seconds"] > 0.0
    assert invoke(*arguments, "--list").split()[-1] == "finished"
    assert "other settings" in invoke(*[word for word in arguments if word != "--quick"], "--list")


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (180, "3 min"), (9_000, "2.5 h")])
def test_times_for_people(seconds: float, text: str) -> None:
    assert whole.spoken(seconds) == text


def test_sources_are_the_package_and_what_a_benchmark_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"cells", "benchmark", "timing", "manifest", "sources"} <= sources.modules_of("bench.cells")
    assert "plans" not in sources.modules_of("bench.cells")
    assert sources.digest("bench.cells") != sources.digest("bench.cores")
    for name in sources.modules_of("bench.cores"):
        (tmp_path / f"{name}.py").write_bytes((sources.BENCH / f"{name}.py").read_bytes())
    monkeypatch.setattr(sources, "BENCH", tmp_path)
    monkeypatch.setattr(sources, "digest", sources.digest.__wrapped__)
    before = sources.digest("bench.cores")
    (tmp_path / "timing.py").write_text("changed = True\n")
    assert sources.digest("bench.cores") != before
