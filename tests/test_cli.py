"""The command line: what it prints for people and machines, its exit codes, and that it starts fast."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli

NAME = "lower-bound-1"  # the smallest entry, with a closed form


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hedgerow", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


def test_demo_as_json_agrees_with_the_library() -> None:
    shown = json.loads(run("demo", NAME, "--json"))
    world = hr.catalogue.make(NAME)
    best, slater = hr.offline.optimum(world.cmdp, world.loss), hr.offline.slater(world.cmdp)
    policies = shown["policies"]
    # Properties: dropping the constraint can only help, and only the constrained policies keep within the threshold.
    assert policies["without constraints"]["loss"] <= policies["optimum"]["loss"] <= policies["safest"]["loss"] + 1e-12
    (threshold,) = shown["thresholds"].values()
    (free,) = policies["without constraints"]["costs"].values()
    (kept,) = policies["optimum"]["costs"].values()
    (safest,) = policies["safest"]["costs"].values()
    assert safest < kept <= threshold + 1e-9 < free
    # Numbers: the library's, and the source's scale is a reward of 1 - loss.
    assert policies["optimum"]["loss"] == pytest.approx(best.value, abs=1e-12)
    assert shown["slater_margin"] == pytest.approx(slater.margin, abs=1e-12)
    assert shown["slater_margin"] == pytest.approx(threshold - safest, abs=1e-9)
    assert policies["optimum"]["source_value"] == pytest.approx(1 - policies["optimum"]["loss"], abs=1e-12)
    assert max(abs(policy["gap"]) for policy in policies.values()) < 1e-8


def test_demo_for_people() -> None:
    shown = json.loads(run("demo", NAME, "--json"))
    text = run("demo", NAME)
    for word in (NAME, "without constraints", "optimum", "safest", "threshold", "Slater margin", "golden", "reward"):
        assert word in text
    assert f"{shown['policies']['optimum']['loss']:.6f}" in text
    assert f"{shown['slater_margin']:.6f}" in text
    assert "-0.000000" not in text


def test_default_demo_is_dope_media() -> None:
    text = run("demo")
    assert text.lstrip().startswith("dope-media")
    assert "6.746704" in text  # the published constrained optimum


def test_output_is_plain_when_piped() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "hedgerow", "demo", NAME], capture_output=True, text=True, check=True
    ).stdout
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= cli.PLAIN_WIDTH


def test_envs_lists_the_whole_catalogue() -> None:
    listed = json.loads(run("envs", "--json"))
    assert [entry["name"] for entry in listed] == list(hr.catalogue.names())
    text = run("envs")
    for entry in listed:
        assert entry["name"] in text
        assert entry["golden"] is not None
        assert f"{entry['golden']['optimum']:.6f}" in text


def test_no_constraints_means_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    world = hr.catalogue.make(NAME)
    free = dataclasses.replace(world, cmdp=hr.CMDP(world.cmdp.layout, world.cmdp.transitions), golden=None)
    monkeypatch.setattr(hr.catalogue, "make", lambda name: free)
    assert json.loads(run("demo", "--json"))["slater_margin"] is None
    assert "Slater" not in run("demo")


def test_unknown_entry_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, "demo", "atlantis") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hedgerow: the catalogue has no entry 'atlantis'; it has: ")
    assert captured.err.count("\n") == 1


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"hedgerow {hr.__version__}\n"


def test_help_is_light() -> None:
    script = (
        "import sys\nfrom hedgerow import cli\nsys.argv = ['hedgerow', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = [n for n in ('numpy', 'scipy', 'numba', 'plotly', 'cvxpy') if n in sys.modules]\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for command in ("demo", "envs"):
        assert command in result.stdout
