"""`python -m bench`: what it prints for people and machines, the files it writes, the figures it draws."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from bench_runs import invoke

from bench import benchmark, manifest, terminal
from bench.__main__ import BENCHMARKS, main
from bench.projection import ProjectionSpeed, SolverRow
from bench.scale import Scale
from bench.timing import Spread, duration
from hedgerow.display.screen import Screen
from hedgerow.errors import HedgerowError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def projection_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("projection") / "new"
    shown = invoke("projection", "--quick", "--sizes", "1", "--out", str(folder))
    return shown, json.loads((folder / ProjectionSpeed.json_file).read_text())


@pytest.mark.slow
def test_projection_measures_every_contender(projection_run: tuple[str, dict[str, Any]]) -> None:
    shown, data = projection_run
    names = [row["contender"] for row in data["figures"]]
    assert names[0] == "hedgerow"
    for name in (
        "cvxpy + Clarabel, as written",
        "cvxpy + Clarabel, rows as variables",
        "Clarabel",
        "ECOS",
        "SCS",
        "L-BFGS-B, large dual",
    ):
        assert name in names
        assert name in shown
    measured = {row["contender"]: row for row in data["figures"] if row["time"] is not None}
    ours = measured["hedgerow"]
    assert max(ours["infeasibility"], ours["gap"]) <= 1e-9
    for row in measured.values():
        assert 0.0 < row["time"]["p10"] <= row["time"]["median"] <= row["time"]["p90"]
        if row["factor"] is not None:
            assert row["factor"] == pytest.approx(row["time"]["median"] / ours["time"]["median"])
            assert max(row["infeasibility"], row["gap"]) <= 1e-6
    # Not a benchmark, but a general solver that is not at least this much slower was not measured right.
    assert measured["cvxpy + Clarabel, as written"]["factor"] > 5.0


@pytest.mark.slow
def test_manifest_says_where_figures_come_from(projection_run: tuple[str, dict[str, Any]]) -> None:
    _, data = projection_run
    assert data["schema"] == manifest.SCHEMA
    assert data["benchmark"] == "projection"
    assert data["settings"]["sizes"] == 1
    assert {"date", "python", "processor", "cores", "load", "versions"} <= set(data)
    assert data["versions"]["numba"]


@pytest.mark.slow
def test_scale_prints_json_and_writes_a_figure(tmp_path: Path) -> None:
    data = json.loads(invoke("scale", "--quick", "--sizes", "2", "--json", "--out", str(tmp_path)))
    assert [(row["triples"], row["sparse"]) for row in data["figures"]] == [(120, False), (340, False), (80, True)]
    for row in data["figures"]:
        assert row["episode"] > 0.0
        assert row["learner_bytes_per_triple"] < 500.0
        assert row["unsolved"] == 0
        assert row["certificate"] <= 1e-9
        assert row["bytes_per_triple"] < 100.0
    assert json.loads((tmp_path / Scale.json_file).read_text())["figures"] == data["figures"]
    lines = json.loads((tmp_path / Scale.figure_file).read_text())["data"]
    assert [len(line["x"]) for line in lines] == [2, 2, 2, 1, 1, 1]


def test_what_could_not_run_stays_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        SolverRow("size", 45, "hedgerow", "solved 3", Spread.of([1e-5, 2e-5, 3e-5]), 1.0, 1e-15, 1e-14),
        SolverRow("size", 45, "rough", "failed 1", Spread.of([0.5]), 25_000.0, None, None),
        SolverRow("size", 45, "ECOS", "not installed (ecos)"),
    ]
    ProjectionSpeed().show(rows)
    shown = capsys.readouterr().out
    assert "not installed (ecos)" in shown
    assert "20.0 us" in shown
    assert "25000" in shown


def test_progress_speaks_only_of_what_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 1.0, 3.0, 3.5])
    monkeypatch.setattr(terminal, "perf_counter", lambda: next(clock))
    with terminal.progress("work", 3) as advance:
        for what in ("a", "b", "c"):
            advance(what)
    assert capsys.readouterr().err.splitlines() == ["work 2/3: b, 3 s", "work 3/3: c, 4 s"]


def test_progress_of_many_alike_steps_says_how_fast_and_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 1.0, 4.0])
    monkeypatch.setattr(terminal, "perf_counter", lambda: next(clock))
    with terminal.progress("work", 10, forecast=True) as advance:
        for what in ("a", "b"):
            advance(what)
    assert capsys.readouterr().err.splitlines() == ["work 2/10: b, 4 s, 0.5/s, 16 s left"]


def test_a_busy_machine_is_mentioned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for load, mentioned in ((0.1, False), (1e3, True), (None, False)):
        monkeypatch.setattr(manifest, "load", lambda load=load: load)
        terminal.mention_load(Screen())
        assert ("The machine is busy" in capsys.readouterr().out) == mentioned


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.234, "1.23 s"), (0.012345, "12.3 ms"), (123.4e-6, "123 us"), (9.996e-6, "10.0 us"), (0.9996e-3, "1.00 ms")],
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_who_has_no_browser_hears_of_it_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise HedgerowError("install hedgerow[figures]")

    monkeypatch.setattr(benchmark, "check_browser", missing)
    monkeypatch.setattr(Scale, "run", lambda self: pytest.fail("measured"))
    assert main(["scale", "--quick", "--out", str(tmp_path)]) == 2
    assert "install hedgerow[figures]" in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_named_once_and_explains_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, made = BENCHMARKS[name]
    found = getattr(import_module(module), made)
    assert found.name == name
    assert found.json_file.endswith(".json")
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--quick", "--json", "--out", *(f"--{f.name}" for f in fields(found) if "help" in f.metadata)):
        assert option in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "python -m bench scale"),
        ([], "python -m bench scale"),
        (["scale", "--sizes", "0"], "'0' is not a whole number of at least 1"),
        (["scale", "--out", __file__], "is not a folder"),
        (["stress", "--first", "-1"], "'-1' is not a whole number of at least 0"),
    ],
)
def test_a_wrong_request_ends_with_2(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert complaint in capsys.readouterr().err


def test_help_is_light_to_import() -> None:
    script = "import bench.__main__ as b, sys; b.main(['-h']); sys.exit(bool({'numpy', 'rich'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
