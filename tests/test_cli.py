"""The command line: what it prints for people and machines, its exit codes, and that it starts fast."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from small_experiments import own_loss
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli
from hedgerow.commands import episodes_of
from hedgerow.compiling import cache
from hedgerow.display import screen
from hedgerow.experiments import components
from hedgerow.forecast import preflight
from nightly import daily

NAME = "lower-bound-1"  # the smallest entry, with a closed form
NAMES = [name for commands in cli.COMMANDS.values() for name in commands]
EXPERIMENT = own_loss("sv-ops", "s-ops", seeds=2, episodes=60)


def run(*arguments: str, code: int = 0, columns: int | None = None) -> str:
    result = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": None if columns is None else str(columns)})
    assert result.exit_code == code, result.output
    return result.stdout


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hedgerow", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(EXPERIMENT)
    return file


# check ----------------------------------------------------------------------------------------------------------------


def test_check_as_json_agrees_with_the_library() -> None:
    shown = json.loads(run("check", NAME, "--json", "--no-probe"))
    world = hr.worlds.make(NAME)
    best, slater = hr.offline.optimum(world.cmdp, world.loss), hr.offline.slater(world.cmdp)
    policies = shown["offline"]["policies"]
    # Properties: dropping the constraint can only help, and only the constrained policies keep within the threshold.
    assert policies["without constraints"]["loss"] <= policies["optimum"]["loss"] <= policies["safest"]["loss"] + 1e-12
    (threshold,) = (entry["threshold"] for entry in shown["thresholds"])
    (free,) = policies["without constraints"]["costs"].values()
    (kept,) = policies["optimum"]["costs"].values()
    (safest,) = policies["safest"]["costs"].values()
    assert safest < kept <= threshold + 1e-9 < free
    # Numbers: the library's, and the source's scale is a reward of 1 - loss.
    assert policies["optimum"]["loss"] == pytest.approx(best.value, abs=1e-12)
    assert shown["rho"] == pytest.approx(slater.margin, abs=1e-12)
    assert shown["rho"] == pytest.approx(threshold - safest, abs=1e-9)
    assert policies["optimum"]["source_value"] == pytest.approx(1 - policies["optimum"]["loss"], abs=1e-12)
    assert max(abs(policy["gap"]) for policy in policies.values()) < 1e-8
    assert (shown["layers"], shown["reachable_states"], shown["feasible"]) == ([1, 1], 2, True)


@pytest.mark.slow
def test_check_for_people() -> None:
    shown = json.loads(run("check", NAME, "--json", "--no-probe"))
    text = run("check", NAME)
    words = (NAME, "without constraints", "optimum", "safest", "threshold", "Slater margin", "golden", "reward")
    for word in (*words, "strictly feasible", "paper", "tight", "anytime", "us/episode", "sv-ops", "s-ops", "MB"):
        assert word in text
    assert f"{shown['offline']['policies']['optimum']['loss']:.6f}" in text
    assert f"{shown['rho']:.6f}" in text
    assert "-0.000000" not in text


def test_check_knows_the_published_optimum() -> None:
    assert "6.746704" in run("check", "dope-media", "--no-probe")


def test_check_of_a_file(tmp_path: Path) -> None:
    cmdp = hr.worlds.make("random-layered", layers=(1, 3, 1), actions=2, constraints=2).cmdp
    cmdp.save(tmp_path / "world.npz")
    shown = json.loads(run("check", str(tmp_path / "world.npz"), "--json", "--no-probe"))
    assert shown["rho"] == pytest.approx(hr.offline.slater(cmdp).margin, abs=1e-12)
    assert shown["offline"] is None
    assert len(shown["thresholds"]) == 2
    policy = np.array(shown["strictly_feasible"]["policy"])
    assert np.all(hr.occupancy.evaluate(cmdp, policy).costs < cmdp.thresholds)


def test_an_infeasible_problem_ends_with_1_and_a_proof(tmp_path: Path) -> None:
    hr.worlds.make(NAME).cmdp.with_thresholds([0.2]).save(tmp_path / "hopeless.npz")
    text = run("check", str(tmp_path / "hopeless.npz"), "--no-probe", code=1)
    assert "infeasible: every policy has 1 x 'cost 1' >= 0.25, while the thresholds allow 0.2" in text
    assert "cannot be met" in text
    shown = json.loads(run("check", str(tmp_path / "hopeless.npz"), "--no-probe", "--json", code=1))
    assert (shown["feasible"], shown["strictly_feasible"]) == (False, None)


@pytest.mark.slow
def test_check_takes_parameters() -> None:
    shown = json.loads(
        run(
            "check",
            "random-layered",
            "--set",
            "layers=[1,3,1]",
            "--set",
            "actions=2",
            "--set",
            "constraints=1",
            "--json",
        )
    )
    assert shown["layers"] == [1, 3, 1]
    assert shown["parameters"]["actions"] == 2
    assert {entry["learner"] for entry in shown["runs"]} >= {"sv-ops", "s-ops", "uob-reps"}
    assert all(entry["microseconds_per_episode"] > 0 and entry["bytes"] > 0 for entry in shown["runs"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("atlantis",), "unknown world 'atlantis'; known: "),
        (("nowhere.npz",), "there is no file nowhere.npz"),
        ((NAME, "--set", "rho"), "is not KEY=VALUE as in TOML"),
        ((NAME, "--set", "rho='x'"), "rho must be a number"),
    ],
)
def test_check_of_nothing_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, "check", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hedgerow: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_check_refuses_an_experiment(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, "check", str(experiment)) == 2
    assert "is an experiment, not a problem" in capsys.readouterr().err


def test_no_constraints_means_no_margin() -> None:
    world = hr.worlds.make(NAME)
    asked = preflight.Request("free", [], 100, 0.1, None, None, probe=False)
    found = preflight.examine(asked, None, hr.CMDP(world.cmdp.layout, world.cmdp.transitions))
    assert found["rho"] is None
    assert found["certificate"] == "there are no constraints: every policy is feasible"
    json.dumps(found, allow_nan=False)


# check, of a view and before a run ------------------------------------------------------------------------------------


@pytest.fixture
def view_file(tmp_path: Path) -> str:
    states = [["home"], ["left", "right"]]
    view = hr.View.of(states, ["wait", "go"], {"delay": 0.4, "noise": 0.5})
    view.knowing(zero_costs=[True, False, True, True, False, False]).save(tmp_path / "view.npz")
    return str(tmp_path / "view.npz")


FORECAST = {
    "episodes": int, "delta": float, "lambda_0": float, "baseline": str, "model": dict, "marks": list, "last": dict,
    "mean": dict, "constraints": list, "worst": str, "rows": list, "wishes": list, "budget": float, "verdict": str,
}  # fmt: skip


def test_check_of_a_view_as_json(view_file: str) -> None:
    shown = json.loads(run("check", view_file, "-T", "5000", "--baseline-costs", "delay=0.1, noise=0.2", "--json"))
    assert set(shown) == {
        "problem", "kind", "hash", "layers", "steps", "states", "actions", "rows", "triples", "full_support", "known",
        "course", "forecast", "log",
    }  # fmt: skip
    assert (shown["kind"], shown["log"], shown["course"], shown["layers"]) == ("view", None, None, [1, 2, 1])
    assert shown["known"] == [
        "'delay': the mean costs of 3 pairs are known, 3 of them as 0",
        "'noise': the mean costs of 3 pairs are known, 3 of them as 0",
    ]
    found = shown["forecast"]
    assert {key: type(value) for key, value in found.items()} == FORECAST
    assert [mark["episodes"] for mark in found["marks"]] == [100, 1000, 5000, 10**4, 10**5, 10**6, 10**7]
    (mark,) = (mark for mark in found["marks"] if mark["episodes"] == 5000)
    assert mark["sharpest"] == found["last"]
    assert set(found["rows"][0]) == {"row", "pair", "share", "costs", "transitions", "visits"}
    assert set(found["wishes"][0]) == {"knowledge", "least", "most"}
    assert [entry["baseline_cost"] for entry in found["constraints"]] == [0.1, 0.2]
    assert found["lambda_0"] == pytest.approx(max(1.6 / 1.9, 1.5 / 1.8))
    assert max(entry["lambda"] for entry in found["constraints"]) == found["last"]["least"]


def test_check_of_a_view_for_people(view_file: str) -> None:
    text = run("check", view_file, "-T", "5000")
    found = json.loads(run("check", view_file, "-T", "5000", "--json"))["forecast"]
    words = ("all else here is assumed", "as known, else uniform", "an assumption: it costs half of each")
    for word in (
        *words,
        "3 of them as 0",
        "state 'right', action 'wait'",
        "if you knew",
        "all transitions",
        "sharpest",
    ):
        assert word in text
    assert found["verdict"] in text
    assert f"{found['last']['least']:.3f}" in text
    assert 0.0 < found["budget"] < 1.0
    assert f"B-OPS leaves up to {100.0 * found['budget']:.1f} % of the run for its account" in " ".join(text.split())


def test_check_of_a_world_has_the_same_forecast(tmp_path: Path) -> None:
    shown = json.loads(run("check", "dope-factored", "--no-probe", "--json", "-T", "1000"))
    assert {key: type(value) for key, value in shown["forecast"].items()} == FORECAST
    assert shown["forecast"]["model"]["transitions"] == "the true ones"
    assert shown["forecast"]["constraints"][0]["baseline_cost"] == pytest.approx(0.6)  # the source's budget
    assert "pairs share" in shown["known"][0]
    losses = [choice["loss"] for choice in shown["offline"]["baselines"]]
    assert losses[0] > losses[1] > losses[2] > shown["offline"]["policies"]["optimum"]["loss"]
    text = run("check", "dope-factored", "--no-probe", "-T", "1000")
    for word in (
        "Slater: the largest margin",
        "a tenth of it",
        "the world's baseline budget",
        "you would have a policy",
    ):
        assert word in text
    hr.worlds.make(NAME).cmdp.save(tmp_path / "world.npz")  # a world without a loss
    bare = json.loads(run("check", str(tmp_path / "world.npz"), "--no-probe", "--json"))
    assert bare["offline"] is None
    assert bare["forecast"]["baseline"].startswith("the Slater policy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--baseline-costs", "delai=0.1"), "no constraint 'delai'; did you mean 'delay'?"),
        (("--baseline-costs", "0.1"), "it names nothing"),
        (("--baseline-costs", "delay=much"), "'much' is not a number"),
        (("--baseline-costs", "delay=0.5"), "the baseline is not safe: 'delay' costs 0.5"),
        (("--baseline-costs", "delay=0.4"), "leaves no margin for 'delay'"),
        (("--baseline-costs", "delay=nan"), "nan"),
        (("--baseline-costs", "delay=-1"), "-1"),
        (("--delta", "2"), "delta"),
        (("--set", "layers=[1,1]"), "--set belongs to entries of the catalogue"),
        (("--log", "nowhere.csv"), "nowhere.csv"),
        (("--losses", "nowhere.csv", "--baseline", "go"), "cannot read the table of guesses nowhere.csv: there is no"),
        (("--losses", "nowhere.json", "--baseline", "go"), "cannot read the table of guesses nowhere.json"),
        (("--baseline", "stop"), "'stop'"),
        (("--baseline", "nowhere.csv"), "there is no such file"),
    ],
)
def test_what_is_wrong_about_a_view_is_one_line(
    view_file: str,
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_main(monkeypatch, "check", view_file, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hedgerow: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


DAYS = """episode,state,action,delay,noise
1,home,wait,0,0
1,left,wait,0,0
2,home,wait,0,0
2,right,go,1,0
3,home,wait,0,0
3,right,wait,0,0
4,home,go,0,1
4,left,wait,0,0
"""
GUESS = "state,action,loss\n" + "".join(
    f"{state},{action},{loss}\n"
    for state in ("home", "left", "right")
    for action, loss in (("wait", 0.75), ("go", 0.25))
)


def test_check_of_a_view_with_a_log_and_guessed_losses(view_file: str, tmp_path: Path) -> None:
    days, guess = tmp_path / "days.csv", tmp_path / "guess.csv"
    days.write_text(DAYS)
    guess.write_text(GUESS)
    asked = ("check", view_file, "-T", "300", "--log", str(days), "--losses", str(guess))
    shown = json.loads(run(*asked, "--json"))
    found = shown["course"]
    assert [mark["episodes"] for mark in found["marks"]] == [1, 10, 100, 300]
    assert (shown["log"]["episodes"], shown["log"]["rows_never_visited"]) == (4, 1)
    assert "the policy of the log, with the mean costs" in shown["forecast"]["baseline"]
    assert [entry["baseline_cost"] for entry in shown["forecast"]["constraints"]] == [0.25, 0.25]
    first, last = found["marks"][0], found["marks"][-1]
    assert first["lambda"]["most"] <= first["lambda_without_log"]["least"]  # later the runs go different ways
    assert 0.0 < last["share"]["least"] <= last["share"]["most"] <= 1.0
    text = " ".join(run(*asked).split())
    assert found["verdict"] in text
    assert "A forecast promises nothing" in text
    assert text.index("Worth it?") < text.index("without the log") < text.index("if you knew")
    assert "verdict:" not in text  # of the other forecast
    alone = json.loads(run("check", view_file, "-T", "300", "--log", str(days), "--json"))["course"]
    assert alone["paid_back"] is alone["saved_share"] is None
    assert alone["verdict"].startswith("Worth it? That takes a guess of the losses.")


def test_losses_need_a_baseline(
    view_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "guess.csv").write_text(GUESS)
    assert run_main(monkeypatch, "check", view_file, "--losses", str(tmp_path / "guess.csv")) == 2
    assert "your safe policy, which is not known here: give a --log" in capsys.readouterr().err


def test_files_of_other_kinds(
    tmp_path: Path, view_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = hr.SVOPS(hr.View.load(view_file), 10, 0.1, "paper")
    learner.save(tmp_path / "learner.npz")
    assert run_main(monkeypatch, "check", str(tmp_path / "learner.npz")) == 2
    assert "`check` looks at a 'cmdp' or a 'view'" in capsys.readouterr().err
    damaged = bytearray(Path(view_file).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.npz").write_bytes(damaged)
    assert run_main(monkeypatch, "check", str(tmp_path / "damaged.npz")) == 2
    assert "is corrupt" in capsys.readouterr().err


def test_check_explains_its_options() -> None:
    text = " ".join(run("check", "--help").split())
    for word in (
        "--baseline-costs",
        "--baseline",
        "--log",
        "--losses",
        "--episodes",
        "--delta",
        "--json",
        "view",
        "View.save",
    ):
        assert word in text


# run, resume, report --------------------------------------------------------------------------------------------------


def test_run_and_resume(experiment: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    shown = json.loads(run("run", str(experiment), "--out", out, "-j", "1", "--json"))
    assert shown["cells"] == {"total": 4, "skipped": 0, "done": 4, "failed": 0}
    rows = {row["learner"]: row for row in shown["results"]}
    assert set(rows) == {"sv-ops-sharpest", "s-ops-sharpest"}
    assert rows["s-ops-sharpest"]["safe"] == rows["s-ops-sharpest"]["seeds"] == 2
    results = hr.results.open(out)
    regrets = [results.table(cell.id).column("regret")[-1].as_py() for cell in results.cells if "sv-ops" in cell.id]
    assert rows["sv-ops-sharpest"]["regret"] == pytest.approx(np.mean(regrets))
    text = run("resume", out)
    assert "0 cells run, 4 finished before" in text
    assert "sv-ops-sharpest" in text
    assert run("resume", out, "--quiet") == ""


def test_a_failed_cell_is_exit_code_1_and_says_how_to_repeat_it(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.write_text(EXPERIMENT + "margin = 0.4\n")
    monkeypatch.setattr(components, "check_learner", lambda *arguments: None)  # nobody looked before
    out = str(tmp_path / "out")
    result = CliRunner().invoke(cli.app, ["run", str(experiment), "--out", out, "-j", "1", "--quiet"])
    assert result.exit_code == 1
    assert result.stdout == ""
    name = "lower-bound-1__own__s-ops-sharpest-margin=0.4__T60__seed0"
    assert f"the cell {name} failed: no policy keeps every cost 0.4 below its threshold" in result.stderr
    assert f"hedgerow resume {out} --backend serial --only {name}" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_existing_directory_is_exit_code_2(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    run("run", str(experiment), "--out", out, "-j", "1", "-q")
    assert run_main(monkeypatch, "run", str(experiment), "--out", out) == 2
    assert "pass --resume" in capsys.readouterr().err
    run("run", str(experiment), "--out", out, "--resume", "-q")


def test_a_place_that_cannot_be_written_is_exit_code_2(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run_main(monkeypatch, "run", str(experiment), "--out", str(tmp_path / "file" / "out")) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("hedgerow: cannot use ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("resume",), ("report",)])
def test_a_directory_without_results(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, *arguments, str(tmp_path)) == 2
    assert "holds no results" in capsys.readouterr().err


def test_the_list_and_the_cells(experiment: Path) -> None:
    listed = [entry["name"] for entry in json.loads(run("run", "--list", "--json"))]
    assert {"quickstart", "demo", "adversaries", "lower-bound"} <= set(listed)
    text = run("run", "--list")
    assert all(name in text for name in listed)
    cells = json.loads(run("run", str(experiment), "--cells", "--json"))
    assert len(cells) == 4
    assert all(cell["hash"][:12] in run("run", str(experiment), "--cells") for cell in cells)


def test_the_cells_are_not_listed_if_a_learner_cannot_be_built(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment.write_text(EXPERIMENT + "margin = 0.4\n")
    assert run_main(monkeypatch, "run", str(experiment), "--cells") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    words = (
        "line 11, learner 2, margin: in the world 'lower-bound-1': no policy keeps every cost 0.4 below its threshold"
    )
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_run_without_an_experiment() -> None:
    result = CliRunner().invoke(cli.app, ["run"])
    assert result.exit_code == 2
    assert "--list" in result.stderr


def test_a_report_is_written(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("run", str(experiment), "--out", str(out), "-j", "1", "-q")
    page = Path(run("report", str(out)).strip())
    assert page.is_file()
    assert "sv-ops-sharpest" in page.read_text()


def test_demo_opens_its_results_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table and the page of `demo` share what was read and fitted."""
    from hedgerow.experiments import source, spec
    from hedgerow.results import groups

    tiny = spec.parse(source.Source("demo", 'title = "Small [and] short"\n' + EXPERIMENT, tmp_path))
    monkeypatch.setattr(spec, "load", lambda name: tiny)
    opened, fitted = [], []
    own_open, own_fit = hr.results.open, groups.growth_exponent
    monkeypatch.setattr(hr.results, "open", lambda path: opened.append(path) or own_open(path))
    monkeypatch.setattr(groups, "growth_exponent", lambda t, y: fitted.append(t) or own_fit(t, y))
    text = run("demo", "--out", str(tmp_path / "out"), "-j", "1")
    assert "s-ops-sharpest" in text
    assert (len(opened), len(fitted)) == (1, 2)
    assert "<h1>Small [and] short</h1>" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_progress_is_plain_lines_on_stderr(experiment: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hedgerow", "run", str(experiment), "--out", str(tmp_path / "out"), "-j", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("[4/4] lower-bound-1__own__")
    assert "episodes/s" in lines[-1]
    for text in (result.stdout, result.stderr):
        assert "\x1b" not in text
    tables = [line for line in result.stdout.splitlines() if not line.endswith(".")]  # sentences are one line each
    assert max(map(len, tables)) <= screen.PLAIN_WIDTH


# The rest -------------------------------------------------------------------------------------------------------------


def test_worlds_lists_the_whole_catalogue() -> None:
    listed = json.loads(run("worlds", "--json"))
    assert [entry["name"] for entry in listed] == list(hr.worlds.names())
    text = run("worlds", "--verbose")
    for entry in listed:
        assert entry["name"] in text
        assert entry["golden"] is not None
        assert f"{entry['golden']['optimum']:.6f}" in text
    assert run("worlds", "-v") == text


def test_worlds_are_a_line_each_at_80_columns() -> None:
    listed = json.loads(run("worlds", "--json"))
    lines = run("worlds", columns=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= len(listed) + 8
    for entry in listed:
        (line,) = (line for line in lines if line.split()[:1] == [entry["name"]])
        assert line.split()[-2:] == [str(entry["steps"]), f"{entry['states']:,}"]
        assert entry["description"].partition(": ")[0] in line
    assert len({entry["description"].partition(": ")[0] for entry in listed}) == len(listed)


def test_learners_lists_all_of_them() -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("learners", "--json"))}
    assert tuple(listed) == hr.learners.names()
    assert listed["s-ops"]["needs_baseline"]
    assert not listed["sv-ops"]["needs_baseline"]
    assert "radii" in listed["s-ops"]["switches"]
    text, whole = run("learners", columns=80), run("learners", "-v")
    assert all(name in text for name in listed)
    assert len(text.splitlines()) <= 60
    for words in ("Sublinear Violation", "Stradi, Castiglioni", "clip_costs"):
        assert words not in text
        assert words in whole


@pytest.mark.parametrize(("command", "table"), [("adversaries", hr.losses), ("costs", hr.costs)])
def test_the_other_lists(command: str, table: Any) -> None:
    listed = json.loads(run(command, "--json"))
    assert [entry["name"] for entry in listed] == list(table.names())
    assert all(entry["description"] and (entry["parameters"] or entry["name"] == "cycle") for entry in listed)
    assert all(entry["name"] in run(command) for entry in listed)


def test_adversaries_say_what_an_experiment_fills_in() -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("adversaries", "--json"))}
    assert listed["tempting"]["filled_in"] == ["episodes", "world"]
    assert listed["tempting"]["parameters"] == ["world", "episodes: int", "turn: float = 0.5"]
    assert listed["early-bird"]["filled_in"] == ["episodes", "own_loss"]
    assert listed["ev-days"]["filled_in"] == []  # its world is a text with a default
    assert [name for name, entry in listed.items() if entry["stochastic"]] == ["fixed", "iid"]
    shown = run("adversaries")
    assert "until: float" in shown
    assert "episodes: int" not in shown


def test_installed_plug_ins_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listed_plugin.py").write_text(
        'class Shy:\n    """Does little."""\n\n    def __init__(self, view, rate=0.5): ...\n'
    )
    info = tmp_path / "listed_plugin-3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: listed-plugin\nVersion: 3.1\n")
    points = "".join(
        f"[hedgerow.{group}]\nshy = listed_plugin:Shy\nsad = listed_plugin:Sad\n"
        for group in ("learners", "worlds", "adversaries")
    )
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    for command in ("learners", "worlds", "adversaries"):
        listed = {entry["name"]: entry for entry in json.loads(run(command, "--json"))}
        assert listed["shy"]["way"] == "installed"
        assert listed["shy"]["description"] == "Does little."
        supplied = [] if command == "learners" else ["view"]  # what experiments fill in by themselves
        assert listed["shy"]["parameters"] == [*supplied, "rate: float = 0.5"]
        assert "has no 'Sad'; it has: Shy" in listed["sad"]["error"]
        assert "Does little." in run(command)


@pytest.mark.parametrize("name", daily("full", nightly="bare"))
def test_check_looks_at_worlds_of_others(name: str, tmp_path: Path) -> None:
    text = (
        "import hedgerow as hr\ndef bare(width: int = 2):\n    costs = hr.costs.BernoulliCosts([[0.5] * width])\n"
        "    return hr.CMDP(hr.Layout((1, 1), width), [1.0] * width, costs, [0.75])\n"
        "def full(width: int = 2):\n    return bare(width), [0.5] * width\n"
    )
    (tmp_path / "mine.py").write_text(text)
    found = json.loads(run("check", f"{tmp_path}/mine.py:{name}", "--set", "width=3", "--no-probe", "--json"))
    assert (found["actions"], found["feasible"]) == (3, True)
    assert (found["offline"] is None) == (name == "bare")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(monkeypatch, flag) == 0
    assert capsys.readouterr().out == f"hedgerow {hr.__version__}\n"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("version", "--version"),
        ("envs", "worlds"),
        ("Environments", "worlds"),
        ("algorithms", "learners"),
        ("agents", "learners"),
        ("train", "run"),
        ("WORLDS", "worlds"),
        ("check_learner", "check-learner"),
        ("demmo", "demo"),
    ],
)
def test_a_command_that_is_nearly_right(given: str, meant: str) -> None:
    result = CliRunner().invoke(cli.app, [given], env={"COLUMNS": "100"})
    assert result.exit_code == 2
    assert f"there is no command {given!r}; did you mean {meant!r}?" in result.stderr


def test_a_command_that_is_far_off_is_answered_with_all_of_them() -> None:
    result = CliRunner().invoke(cli.app, ["xyz"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert f"there is no command 'xyz'; known: {', '.join(NAMES)}" in result.stderr


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("che", ["check", "check-learner"]),
        ("check dope", ["dope-factored", "dope-media", "dope-inventory"]),
        ("check-learner sv", ["sv-ops"]),
        ("run qui", ["quickstart"]),
        ("compare h", ["hour"]),
        ("compare minute --learners s-ops,opt-p", ["s-ops,opt-pess-lp", "s-ops,opt-primal-dual"]),
        ("compare --worlds lo", ["lower-bound-1", "lower-bound-2", "lock"]),
        ("run quickstart --backend s", ["serial"]),
        ("resume out", []),  # left to the shell, which completes files
    ],
)
def test_the_shell_completes_names(words: str, completed: list[str]) -> None:
    typed = ["hedgerow", *words.split()]
    asked = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1), "_HEDGEROW_COMPLETE": "complete_bash"}
    result = CliRunner().invoke(cli.app, [], prog_name="hedgerow", env=asked)
    assert (result.exit_code, result.stdout.split()) == (0, completed)


def test_completion_is_offered_under_the_name_of_the_program() -> None:
    # The shell is the parent of the program: bash would replace itself by a single command.
    command = ["bash", "-c", f"{sys.executable} -m hedgerow --show-completion; exit $?"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "complete -o default -F _hedgerow_completion hedgerow" in result.stdout
    assert "_HEDGEROW_COMPLETE=" in result.stdout


def test_completion_needs_no_compiler() -> None:
    script = (
        "import atexit, sys\nfrom hedgerow import cli\nsys.argv = ['hedgerow']\n"
        "atexit.register(lambda: print(*[n for n in ('numba', 'scipy', 'pyarrow') if n in sys.modules]))\ncli.main()"
    )
    asked = {"COMP_WORDS": "hedgerow check lower", "COMP_CWORD": "2", "_HEDGEROW_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **asked})
    assert result.stdout.splitlines() == ["lower-bound-1", "lower-bound-2", ""]


def test_help_is_light() -> None:
    heavy = ("numpy", "scipy", "numba", "plotly", "pyarrow", "joblib", "distributed", "cvxpy")
    script = (
        "import sys\nfrom hedgerow import cli\nsys.argv = ['hedgerow', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        f"heavy = [n for n in {heavy!r} if n in sys.modules]\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for command in NAMES:
        assert command in result.stdout


@pytest.mark.parametrize("command", ["", *NAMES])
def test_every_command_explains_itself(command: str) -> None:
    text = run(*command.split(), "--help", columns=80)
    assert "Usage: " in text
    assert "<bool>" not in text  # a flag takes no value
    assert re.search(r"--help +-h +Show", text)
    assert max(map(len, text.splitlines())) <= 80
    assert run(*command.split(), "-h", columns=80) == text


def test_help_is_shown_as_it_is_written() -> None:
    """Brackets are no markup, and a paragraph has no line breaks of its own."""
    text = run("report", "--help", columns=200)
    assert "(needs hedgerow[figures])" in text
    assert "It is one HTML file that needs no network. With --figures, the figures are also drawn into files." in text
    assert " or took too long before the first; 2 if the request cannot be met; " in run("run", "--help", columns=250)


def test_compile_says_what_it_does() -> None:
    assert re.fullmatch(r"compiled, or loaded, in \d+ s; hedgerow compile --where tells where it is\n", run("compile"))
    assert run("compile", "--quiet") == ""
    assert run("compile", "--quiet", "--only", "blocks") == ""


def test_compiled_code_can_be_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    (tmp_path / "step-0123456789abcdef").mkdir()
    (tmp_path / "step-0123456789abcdef" / "step.learn.nbi").write_bytes(b"12345")
    (tmp_path / "letters").mkdir()
    assert run("compile", "--where").splitlines()[0] == f"compiled on this machine: {tmp_path}, 1 files, 0.0 MB"
    assert run("compile", "--clean") == f"removed 1 files, 0.0 MB, from {tmp_path}\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["letters"]  # nobody else's


def test_compiled_code_that_cannot_be_removed_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    monkeypatch.setattr(cache.shutil, "rmtree", lambda folder, ignore_errors: None)  # as where it is not allowed
    (tmp_path / "step-0123456789abcdef").mkdir()
    (tmp_path / "step-0123456789abcdef" / "step.learn.nbi").write_bytes(b"12345")
    result = CliRunner().invoke(cli.app, ["compile", "--clean"])
    assert (result.exit_code, result.stdout) == (1, f"removed 0 files, 0.0 MB, from {tmp_path}\n")
    assert result.stderr == f"hedgerow: 1 files could not be removed from {tmp_path}\n"


@pytest.mark.parametrize("written", ["24", "0.024k", "2.4e1"])
def test_numbers_of_episodes_as_people_write_them(written: str) -> None:
    assert episodes_of(written) == 24


@pytest.mark.parametrize("written", ["1.5", "-3", "k", "", "0"])
def test_other_numbers_of_episodes_are_refused(written: str) -> None:
    with pytest.raises(typer.BadParameter, match="number of episodes"):
        episodes_of(written)
