"""The tables of docs/benchmarks.md: made from data, in place, and those of the page are those of the figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import tables
from hedgerow.errors import InvalidInput

DOCS = Path(__file__).resolve().parents[2] / "docs"
TIME = {"median": 2e-3, "p10": 1e-3, "p90": 4e-3, "count": 3}


def pages() -> list[str]:
    return [(DOCS / name).read_text(encoding="utf-8") for name in tables.PAGES]


def test_pages_say_what_the_figures_say() -> None:
    for page in pages():
        assert tables.replaced(page, tables.tables(DOCS / tables.FIGURES)) == page, "run python -m bench.tables docs"


def test_every_table_is_on_a_page() -> None:
    for name in tables.tables(DOCS / tables.FIGURES):
        assert any(f"<!-- table: {name} -->" in page for page in pages()), name


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
        "| contender | w: 45 transitions |",
        "| --- | --- |",
        "| SV-OPS | 2.00 ms (1 - 4) |",
        "| rough | 2.00 ms (1 - 4), 12x, inexact |",
        "| absent | not installed (x) |",
    ]


def test_versions_stand_side_by_side() -> None:
    rows = [
        {"world": world, "learner": name, "before": 3e-5, "after": 2e-5, "faster": 1.49}
        for world in ("one", "two")
        for name in ("SV-OPS", "other")
    ]
    cell = "30.0 us -> 20.0 us, 1.49x"
    assert tables.progress({"figures": rows}).splitlines() == [
        "| learner | one | two |",
        "| --- | --- | --- |",
        f"| SV-OPS | {cell} | {cell} |",
        f"| other | {cell} | {cell} |",
    ]


def test_savings_are_told_with_their_verdict() -> None:
    common = {"world": "w", "losses": "own", "variant": "sharpest", "episodes": 10_000, "seeds": 3}
    figures = [
        common
        | {"learner": "S-OPS", "measure": "regret", "saving": 7.25, "verdict": "met", "goal": 3.0}
        | {"reference": 12.3, "value": 4.6},
        common
        | {"learner": "SV-OPS", "measure": "violation", "saving": None, "verdict": "no violation", "goal": None}
        | {"reference": 0.0, "value": 0.0},
        common
        | {"learner": "S-OPS", "measure": "mixing", "saving": 2.0, "verdict": "", "goal": None}
        | {"reference": 0.5, "value": 0.25},
    ]
    assert tables.savings({"figures": figures}).splitlines()[2:] == [
        "| w | S-OPS | own | regret | sharpest | 10,000 | 3 | 12 | 5 | 7.2x, met (goal 3x) |",
        "| w | SV-OPS | own | violation | sharpest | 10,000 | 3 | 0 | 0 | no violation |",
        "| w | S-OPS | own | mixing | sharpest | 10,000 | 3 | 0.500 | 0.250 | 2.0x |",
    ]


def test_presets_and_charging_stand_in_tables() -> None:
    row = {"world": "w", "triples": 45, "learner": "S-OPS", "sharp": 1e-5, "sharpest": 1.2e-5, "verdict": "met"}
    efforts = [{"steps": 1.14, "own": 0.56, "held": 0.01}, {"steps": 3.2, "own": 0.84, "held": 0.5}]
    assert tables.preset_times({"figures": [row | {"efforts": efforts}]}).splitlines()[2] == (
        "| w | 45 | S-OPS | 10.0 us | 12.0 us | 1.20x | at most 1.5x, met | 1.14, 3.20 | 56%, 84% | 1%, 50% |"
    )
    car = {"learner": "SV-OPS", "alpha": 0.1, "saved": 0.145, "regret": 394.4, "unsafe": 2271.0, "mixing": None}
    assert tables.charging({"figures": [car]}).splitlines()[2] == "| SV-OPS | 0.1 | 14.5 % | 394 | 2271 | - |"


def test_calls_stand_in_a_table_with_their_goals() -> None:
    time = {"median": 2e-5, "p10": 1e-5, "p90": 4e-5, "count": 3}
    common: dict[str, Any] = {"who": "SV-OPS", "call": "plan + observe", "time": time}
    figures = [
        common | {"world": "one", "triples": 45, "inside": 8e-6, "asked": 45e-6, "verdict": "met"},
        common | {"world": "two", "triples": 240, "inside": None, "asked": None, "verdict": ""},
    ]
    assert tables.calls({"figures": figures}).splitlines() == [
        "| call | target | one: 45 transitions | two: 240 transitions |",
        "| --- | --- | --- | --- |",
        "| SV-OPS: `plan + observe` | <= 45.0 us | 20.0 us (10 - 40), 8.00 us inside, met | 20.0 us (10 - 40) |",
    ]


def test_processes_stand_in_a_table() -> None:
    time: dict[str, Any] = {"median": 20.0, "p10": 20.0, "p90": 20.0, "count": 3}
    row = {"process": "compile", "wall": time, "cpu": time, "most_wall": None, "most_cpu": 32.0, "files": 46}
    table = tables.compilation({"figures": [row | {"verdict": "met"}]})
    assert table.splitlines()[2] == "| compile | 20.0 s | - | 20.0 s | <= 32.0 s | met | 3 | 46 |"


def test_a_page_is_rewritten_once(tmp_path: Path) -> None:
    (tmp_path / tables.FIGURES).mkdir()
    for file in (DOCS / tables.FIGURES).glob("*.json"):
        (tmp_path / tables.FIGURES / file.name).write_text(json.dumps(json.loads(file.read_text())))
    page, other = (tmp_path / name for name in tables.PAGES)
    other.write_text("nothing to exchange\n")
    page.write_text("before\n<!-- table: cores -->\nold\n<!-- end -->\nafter\n")
    command = [sys.executable, "-m", "bench.tables", str(tmp_path)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rewritten"
    text = page.read_text()
    assert text.startswith("before\n<!-- table: cores -->\n| processes |")
    assert text.endswith("|\n<!-- end -->\nafter\n")
    assert not tables.rewrite(tmp_path)
