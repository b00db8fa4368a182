"""The tables of docs/benchmarks.md: made from data, in place, and those of the page are those of the figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow.bench import tables
from hedgerow.errors import InvalidInput

DOCS = Path(__file__).resolve().parents[2] / "docs"
TIME = {"median": 2e-3, "p10": 1e-3, "p90": 4e-3, "count": 3}


def test_page_says_what_the_figures_say() -> None:
    page = (DOCS / tables.PAGE).read_text(encoding="utf-8")
    assert tables.replaced(page, tables.tables(DOCS / tables.FIGURES)) == page, (
        "run python -m hedgerow.bench.tables docs"
    )


def test_every_table_is_on_the_page() -> None:
    page = (DOCS / tables.PAGE).read_text(encoding="utf-8")
    for name in tables.tables(DOCS / tables.FIGURES):
        assert f"<!-- table: {name} -->" in page


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(InvalidInput, match="no table 'other'; known: one"):
        tables.replaced("<!-- table: other --><!-- end -->", {"one": ""})


def test_contenders_that_did_not_run_or_were_inexact_are_told() -> None:
    common = {"world": "w", "triples": 45, "deviation": None}
    figures = [
        common | {"contender": "SV-OPS", "status": "exact", "time": TIME, "factor": 1.0},
        common | {"contender": "rough", "status": "optimal 3, inexact", "time": TIME, "factor": 12.34},
        common | {"contender": "absent", "status": "not installed (x)", "time": None, "factor": None},
    ]
    assert tables.contenders({"figures": figures}).splitlines() == [
        "| contender | w: 45 triples |",
        "| --- | --- |",
        "| SV-OPS | 2.00 ms (1 - 4) |",
        "| rough | 2.00 ms (1 - 4), 12x, inexact |",
        "| absent | not installed (x) |",
    ]


def test_before_and_after_stand_side_by_side() -> None:
    def run(whole: float, part: float, steps: float) -> dict[str, object]:
        def row(name: str, seconds: float) -> dict[str, object]:
            return {"world": "w", "contender": name, "time": {"median": seconds}}

        return {
            "figures": [row("SV-OPS", whole), row("other", 1.0)],
            "parts": [row(name, part) for name in tables.COMPARED],
            "activity": [{"world": "w", "newton_steps": steps}],
        }

    (line,) = tables.progress(run(3e-5, 2e-6, 4.0), run(2e-5, 1e-6, 3.25)).splitlines()[2:]
    parts = " | ".join(["2.00 us -> 1.00 us"] * len(tables.COMPARED))
    assert line == f"| w | 30.0 us -> 20.0 us | 1.5x | 4.0 -> 3.2 | {parts} |"


def test_savings_are_told_with_their_verdict() -> None:
    common = {"world": "w", "learner": "S-OPS", "episodes": 10_000, "paper": 12.3, "sharp": 4.6}
    figures = [
        common | {"measure": "regret", "saving": 7.25, "verdict": "met"},
        common | {"measure": "violation", "saving": None, "verdict": "no violation"},
    ]
    assert tables.savings({"figures": figures}).splitlines()[2:] == [
        "| w | S-OPS | regret | 10,000 | 12 | 5 | 7.2x, met |",
        "| w | S-OPS | violation | 10,000 | 12 | 5 | no violation |",
    ]


def test_a_page_is_rewritten_once(tmp_path: Path) -> None:
    (tmp_path / tables.FIGURES).mkdir()
    for file in (DOCS / tables.FIGURES).glob("*.json"):
        (tmp_path / tables.FIGURES / file.name).write_text(json.dumps(json.loads(file.read_text())))
    page = tmp_path / tables.PAGE
    page.write_text("before\n<!-- table: cores -->\nold\n<!-- end -->\nafter\n")
    command = [sys.executable, "-m", "hedgerow.bench.tables", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "rewritten"
    text = page.read_text()
    assert text.startswith("before\n<!-- table: cores -->\n| processes |")
    assert text.endswith("|\n<!-- end -->\nafter\n")
    assert not tables.rewrite(tmp_path)
