"""`hedgerow journal`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.errors import InvalidInput
from hedgerow.journal.journal import Journal
from tests.journal.test_journal import make, play


@pytest.fixture
def site(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/site.db"
    with make(url, "site") as journal:
        play(journal, 0, 6)
        journal.ask("open one")
    return url


def call(*words: str) -> str:
    result = CliRunner().invoke(app, ["journal", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_where_it_stands_and_why_a_decision_was_allowed(site: str) -> None:
    assert "6 whole outcomes of 7 decisions" in call("show", site, "site")
    assert json.loads(call("show", site, "site", "--json"))["learnt"] == 6
    why = call("show", site, "site", "--id", "day 3")
    assert "day 3: told. " in why
    assert call("show", site, "site", "--episode", "3") == why
    assert "open one: open. " in call("show", site, "site", "--episode", "6")
    for number in ("-1", "7", "4711"):
        with pytest.raises(InvalidInput, match=f"has the episode {number}"):
            call("show", site, "site", "--episode", number)
    assert "after 3 outcomes were learnt (event 7)" in why
    assert "delay: limit 0.8" in why
    found = json.loads(call("show", site, "site", "--id", "open one", "--json"))
    assert (found["status"], [event["kind"] for event in found["events"]]) == ("open", ["ask"])
    with pytest.raises(InvalidInput, match="no decision"):
        call("show", site, "site", "--id", "nothing")


def test_verify_export_page_and_fork(site: str, tmp_path: Path) -> None:
    assert "whole: 13 events" in call("verify", site, "site")
    assert "6 episodes" in call("export", site, "site", str(tmp_path / "days.parquet"))
    page = tmp_path / "page.html"
    with Journal.open(site, "site"):  # it is only read
        done = CliRunner().invoke(app, ["report", site, "site", "--out", str(page)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "6 whole outcomes" in page.read_text()
    for wrong in (["report", site], ["report", str(tmp_path), "site"], ["report", site, "site", "--figures", "x"]):
        assert CliRunner().invoke(app, wrong).exit_code == 2
    with Journal.open(site, "site") as journal:
        assert len(hr.Log.read(journal.learner.view, tmp_path / "days.parquet")) == 6
        assert journal.status()["open"] == 1
    assert "of the next decision" in call("fork", site, "site", "other", "--threshold", "delay=0.7").replace(
        "the next decision leaves", "of the next decision"
    )
