"""docs/field.md: its tables are those of the registry and of the kept results, and so are its downloads."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hedgerow import cli
from hedgerow.report.board import around
from tools import write_field
from tools.write_learner_table import NAME, PAGE, learner_table

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
label = "always-baseline"
baseline = "offered"
[[learner]]
name = "oracle"
"""


@pytest.fixture
def finished_comparison(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(TINY)
    command = ["compare", str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out"), "--backend", "serial"]
    assert CliRunner().invoke(cli.app, command).exit_code == 0
    return tmp_path / "out"


def shown(marker: str, page: Path = PAGE) -> str:
    before, after = around(page, marker)
    text = page.read_text(encoding="utf-8")
    return text[len(before) : len(text) - len(after)].strip()


def test_the_table_of_learners_is_up_to_date() -> None:
    assert shown(NAME) == learner_table(), "run: python tools/write_learner_table.py"


@pytest.mark.parametrize(("marker", "content"), write_field.tables().items(), ids=write_field.tables())
def test_the_tables_of_the_comparison_are_up_to_date(marker: str, content: str) -> None:
    assert shown(marker) == content, "run: python tools/write_field.py"


def test_downloads_agree_with_each_other() -> None:
    summary, ranks, best = (write_field.entries(name) for name in ("summary", "ranks", "best"))
    assert [(entry["world"], entry["adversary"]) for entry in ranks] == [(e["world"], e["adversary"]) for e in best]
    for entry in summary:
        learner, status = entry["learner"], [rank[entry["learner"]] for rank in ranks]
        safe = len(status) - status.count("unsafe") - status.count("declined")
        assert (safe, status.count("1")) == (int(entry["safe"]), int(entry["first"])), learner


def test_results_become_the_files(tmp_path: Path, finished_comparison: Path) -> None:
    folder = tmp_path / "files"
    write_field.keep(finished_comparison, folder)
    summary, ranks, best = (write_field.entries(name, folder) for name in ("summary", "ranks", "best"))
    assert [entry["learner"] for entry in summary] == ["uniform", "always-baseline", "oracle"]
    assert [(rank["world"], rank["adversary"], rank["oracle"]) for rank in ranks] == [
        ("lower-bound-1", "own", "cheats")
    ]
    assert ranks[0][best[0]["first"]] == "1"
    assert float(best[0]["baseline"]) > 0.0
    assert "| oracle |" in write_field.tables(folder)["field-safe"]
