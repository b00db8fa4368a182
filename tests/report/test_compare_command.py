"""`hedgerow compare`: from a file to a page, again after an interruption, and one line for what cannot be met."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from page_reader import Reader
from small_experiments import HUNG, cell_files, start
from typer.testing import CliRunner

from hedgerow import cli
from hedgerow.commands.compare import SIZES
from hedgerow.experiments import backends
from hedgerow.experiments.source import find
from hedgerow.experiments.worker import perform
from hedgerow.results.manifest import read_manifest

TINY = """\
title = "Tiny"
seeds = 2
episodes = 50
declined = "skip"
[[world]]
name = "lower-bound-1"
[[adversary]]
name = "own"
[[learner]]
name = "uniform"
[[learner]]
name = "always-baseline"
baseline = "offered"
label = "baseline"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    return "tiny.toml"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, ["compare", *arguments, "--backend", "serial"])
    assert result.exit_code == code, result.output
    return result.stdout


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command is refused."""
    monkeypatch.setattr(sys, "argv", ["hedgerow", "compare", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    said = capsys.readouterr()
    (line,) = said.err.strip().splitlines()
    assert not said.out
    return line


def test_from_a_file_to_a_page(file: str) -> None:
    text = run(file)
    page = Path("out/tiny/compare.html")
    assert "page: out/tiny/compare.html" in text
    for word in ("rank", "uniform", "baseline", "over all settings", "mind the noise"):
        assert word in text
    read = Reader(page.read_text(encoding="utf-8"))
    assert read.titles["h1"] == "Tiny"
    assert any("baseline" in row.get("learner", "") and "violation VT" in row for row in read.named)


def test_the_same_command_again_goes_on(file: str) -> None:
    run(file)
    whole = cell_files(Path("out/tiny"))
    lost = sorted(whole)[0]
    (Path("out/tiny") / lost).unlink()
    (Path("out/tiny/compare.html")).unlink()
    run(file)
    assert cell_files(Path("out/tiny")) == whole
    assert Path("out/tiny/compare.html").exists()
    assert len(read_manifest("out/tiny")["resumed"]) == 1


def test_data_for_machines(file: str) -> None:
    shown = json.loads(run(file, "--json", "-q"))
    (block,) = shown["blocks"]
    assert [item["rank"] for item in block["standings"]] in ([1, 2], [1, None])
    assert shown["page"] == "out/tiny/compare.html"
    assert run(file, "-q") == ""


def test_options_choose_and_have_a_directory_of_their_own(file: str) -> None:
    shown = json.loads(run(file, "--learners", "baseline", "--seeds", "3", "--episodes", "20", "--json", "-q"))
    assert shown["directory"].startswith("out/tiny-")
    (standing,) = shown["blocks"][0]["standings"]
    assert (standing["learner"], list(standing["scores"]["by_seed"])) == ("baseline", ["0", "1", "2"])
    again = json.loads(run(file, "--learners", "baseline", "--seeds", "3", "--episodes", "20", "--json", "-q"))
    assert again["directory"] == shown["directory"]
    assert again["blocks"] == shown["blocks"]


def test_a_learner_that_the_file_does_not_have(file: str) -> None:
    Path("mine.py").write_text("import hedgerow as hr\nclass Mine(hr.field.Uniform):\n    pass\n")
    shown = json.loads(run(file, "--learners", "mine.py:Mine,baseline", "--out", "mine", "--json", "-q"))
    assert {item["learner"] for item in shown["blocks"][0]["standings"]} == {"Mine", "baseline"}


def test_tables_go_into_a_page(file: str) -> None:
    Path("page.md").write_text("# Ours\n<!-- table: comparison -->\n<!-- end -->\nwords\n")
    run(file, "--markdown", "page.md", "-q")
    text = Path("page.md").read_text()
    assert text.startswith("# Ours\n")
    assert text.endswith("<!-- end -->\nwords\n")
    assert "| uniform | nothing |" in text


@pytest.mark.slow
def test_a_killed_comparison_goes_on(file: str) -> None:
    """A violent end in the middle: finished cells are kept, and the same command does the rest."""
    long = TINY.replace("episodes = 50", "episodes = 3_000").replace("seeds = 2", "seeds = 5")
    Path(file).write_text(long)
    process = start("compare", file, "--backend", "serial")
    cells = Path("out/tiny/cells")
    while len(list(cells.glob("*.parquet"))) < 2 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=HUNG)
    kept = cell_files(Path("out/tiny"))
    assert 2 <= len(kept) < 10
    assert not Path("out/tiny/compare.html").exists()
    run(file)
    after = cell_files(Path("out/tiny"))
    assert kept.items() <= after.items()
    assert len(after) == 10
    assert Path("out/tiny/compare.html").exists()


def test_an_interrupted_comparison_has_no_page_yet(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def interrupted(task: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.cell.id)
        return perform(task)

    with monkeypatch.context() as patch:
        patch.setattr(backends, "perform", interrupted)
        result = CliRunner().invoke(cli.app, ["compare", file, "--backend", "serial"])
    assert result.exit_code == 130
    assert "interrupted with 2 of 4 cells to do: hedgerow resume out/tiny" in result.output
    assert not Path("out/tiny/compare.html").exists()
    run(file)
    assert len(cell_files(Path("out/tiny"))) == 4
    assert Path("out/tiny/compare.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fortnight",), "cannot read the experiment fortnight"),
        (
            ("tiny.toml", "--learners", "dopey"),
            "'dopey'; did you mean 'dope' or 'dope-plus'? tiny.toml has: ",
        ),
        (("tiny.toml", "--worlds", "atlantis"), "unknown world 'atlantis'"),
        (("tiny.toml", "--adversaries", "clever"), "unknown adversary 'clever'"),
        (("tiny.toml", "--sets", "loose"), "the sets are 'loose'; choose one of source, paper, sharp, sharpest"),
        (("tiny.toml", "--backend", "cloud"), "the backend is 'cloud'"),
        (("tiny.toml", "--markdown", "nowhere.md"), "cannot read the page nowhere.md"),
    ],
)
def test_what_cannot_be_met_is_one_line(
    file: str,
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert words in refused(monkeypatch, capsys, *arguments, "-q")
    assert not Path("out").exists()


def test_a_directory_of_something_else_is_not_touched(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(file, "--out", "here", "-q")
    before = cell_files(Path("here"))
    line = refused(monkeypatch, capsys, file, "--out", "here", "--seeds", "3", "-q")
    assert "here holds the results of another experiment" in line
    assert cell_files(Path("here")) == before


def test_failed_cells_end_with_1_and_are_on_the_page(file: str) -> None:
    Path("late.py").write_text(
        "import hedgerow as hr\nclass Late(hr.field.Uniform):\n"
        "    def plan(self):\n        raise ValueError('too late')\n"
    )
    run(file, "--learners", "late.py:Late,uniform", "--out", "late", code=1)
    words = "".join(Reader(Path("late/compare.html").read_text(encoding="utf-8")).words)
    assert "too late" in words
    assert "Late has not run: it failed in 1 setting." in words


def test_help_says_what_it_does() -> None:
    shown = " ".join(CliRunner().invoke(cli.app, ["compare", "--help"]).stdout.split())
    for word in ("minute, hour, long or day", "--learners", "--sets", "--markdown", "--backend", "goes on where"):
        assert word in shown


@pytest.mark.parametrize("size", SIZES)
def test_sizes_ship_and_skip_what_is_declined(size: str) -> None:
    data = find(SIZES[size]).data()
    assert data["declined"] == "skip"
    names = {table["name"] for table in data["learner"]}
    assert {"oracle", "always-baseline", "sv-ops", "s-ops", "cv-ops"} <= names
