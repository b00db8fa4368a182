"""`python -m bench serve` and `replay`: small runs, and what a table says of known rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bench_runs import invoke

pytest.importorskip("sqlalchemy")
pytest.importorskip("uvicorn")

from bench.serve import LoadRow, Replay, ReplayRow, Serve


def test_rows_say_whether_everything_was_recorded() -> None:
    row = LoadRow("SQLite", "full", True, 8, 100, 250.0, 0.004, 0.02, 0.003, 0)
    assert Serve().is_right([row])
    assert not Serve().is_right([row, replace(row, failed=1)])
    whole = ReplayRow(10, 0, 4690, 0.1, 0.1, "")
    assert Replay().is_right([whole])
    assert not Replay().is_right([replace(whole, problem="after event 3: other bits")])


@pytest.mark.slow
def test_a_service_is_measured() -> None:
    data = json.loads(invoke("serve", "--quick", "--decisions", "4", "--json"))
    rows = data["figures"]
    assert [(row["clients"], row["group_commit"]) for row in rows] == [(1, True), (8, True), (1, False), (8, False)]
    for row in rows:
        assert 0 < row["decisions"] <= 4
        assert row["failed"] == 0
        assert 0.0 < row["p50"] <= row["p99"]


def test_a_journal_is_replayed() -> None:
    [row] = json.loads(invoke("replay", "--quick", "--events", "40", "--json"))["figures"]
    assert (row["events"], row["problem"]) == (40, "")
    assert row["bytes"] > 0
