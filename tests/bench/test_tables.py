"""The tables of docs/benchmarks.md: made from data, in place, and those of the page are those of the figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import tables
from bench.claims import Figures, pages
from hedgerow.errors import InvalidInput

DOCS = Path(__file__).resolve().parents[2] / "docs"
TIME = {"median": 2e-3, "p10": 1e-3, "p90": 4e-3, "count": 3}


def texts() -> list[str]:
    return [(DOCS / name).read_text(encoding="utf-8") for name in tables.PAGES]


def test_pages_say_what_the_figures_say() -> None:
    found = tables.tables(Figures(DOCS / tables.FIGURES))
    for page in texts():
        assert tables.replaced(page, found) == page, "run python -m bench.tables docs"


def test_every_table_is_on_a_page() -> None:
    for name in tables.makers():
        assert any(f"<!-- table: {name} -->" in page for page in texts()), name


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(InvalidInput, match="no table 'other'; known: contenders"):
        tables.replaced("<!-- table: other --><!-- end -->", {})


def test_a_table_without_figures_stays_as_it_is_and_is_named(tmp_path: Path) -> None:
    page = "<!-- table: stress -->\nold\n<!-- end -->"
    assert tables.tables(Figures(tmp_path)) == {}
    assert tables.replaced(page, {}) == page
    assert "stress" in tables.not_measured(Figures(tmp_path))


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
    car["worst_window"] = 0.1692
    shown = [tables.charging({"settings": {"cars": real}, "figures": [car]}).splitlines()[2] for real in (0, 1)]
    assert shown[1] == "| SV-OPS | 0.1 | 14.5 % | 394 | 2,271 | - | 0.169 |"
    assert shown[0] == "| SV-OPS | 0.1 | 14.5 % | 394 | 2,271 | - |"


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


def test_plans_and_learners_of_the_field_stand_in_tables() -> None:
    times = {"ours": TIME, "kept": {**TIME, "median": 0.2}, "anew": {**TIME, "median": 2.0}}
    row = {"world": "w", "triples": 1_640, "losses": "new"} | times
    assert tables.plan_times({"figures": [row]}).splitlines()[2] == (
        "| w | 1,640 | new | 2.00 ms | 200 ms, 100x | 2.00 s, 1000x |"
    )
    common = {"world": "w", "triples": 84, "time": TIME}
    rows = [common | {"contender": name, "times_ours": ratio} for name, ratio in (("S-OPS", 1.0), ("DOPE", 0.5))]
    assert tables.field_times({"figures": rows}).splitlines() == [
        "| learner | w: 84 transitions |",
        "| --- | --- |",
        "| S-OPS | 2.00 ms, 1.00x |",
        "| DOPE | 2.00 ms, 0.50x |",
    ]


def test_solvers_stand_beside_ours() -> None:
    common = {"triples": 45, "status": "solved"}
    rows = [
        common | {"contender": "hedgerow", "time": TIME, "factor": 1.0},
        common | {"contender": "Clarabel", "time": {**TIME, "median": 0.2}, "factor": 100.0},
        common | {"contender": "ECOS", "time": None, "factor": None},
    ]
    assert (
        tables.solvers({"figures": rows}).splitlines()[2] == "| 45 | 2.00 ms | - | - | - | 200 ms, 100x | - | - | - |"
    )


def test_hard_problems_and_a_service_stand_in_tables() -> None:
    counts = {"instances": 9, "solved": 8, "infeasible": 1, "wrong_verdicts": 0, "failures": 0}
    steps = {"median_iterations": 3.0, "p99_iterations": 40.2, "max_iterations": 50}
    row = counts | steps | {"family": "tight", "worst_certificate": 3e-10, "median_seconds": 2e-3, "max_seconds": 2.0}
    assert tables.hard_problems({"figures": [row]}).splitlines()[2] == (
        "| tight | 9 | 8 | 1 | 0 | 0 | 3e-10 | 3, 40, 50 | 2.00 ms, 2.00 s |"
    )
    served = {"database": "SQLite", "durability": "full", "group_commit": True, "clients": 8, "per_second": 68.4}
    times = {"p50": 0.1, "p99": 0.2, "processor": 3e-3}
    assert tables.load({"figures": [served | times]}).splitlines()[2] == (
        "| SQLite | full | shared | 8 | 68 | 100 ms | 200 ms | 3.00 ms |"
    )


def test_budgets_stand_in_two_tables() -> None:
    setting = {"world": "w", "adversary": "own", "baseline": 3150.0, "s_ops": 809.0, "bound": -1201.0}
    setting |= {"ceiling": -1163.0, "episodes": None}
    attack = {"rule": "bound", "constraints": 2, "runs": 33, "episodes": 20_000, "wrong": 0, "overdrawn": 0}
    attack |= {"refuted": 0, "own": 0.792}
    data = {"figures": [setting, attack]}
    assert tables.budgets(data).splitlines()[2:] == ["| w | own | 3,150 | 809 | **-1,201** | -1,163 | - |"]
    assert tables.budgets_kept(data).splitlines()[2:] == ["| bound | 2 | 33 x 20,000 | 0 | 0 | 0 | 79 % |"]


def test_pages_are_rewritten_once(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / tables.FIGURES).mkdir(parents=True)
    for file in (DOCS / tables.FIGURES).glob("*.json"):
        (docs / tables.FIGURES / file.name).write_bytes(file.read_bytes())
    for name in {*tables.PAGES, *pages()}:
        (docs / name).write_bytes((DOCS / name).read_bytes())
    page, before = docs / "benchmarks.md", (DOCS / "benchmarks.md").read_text()
    table = before[before.index("<!-- table: cores -->") :].partition("<!-- end -->")[0]
    changed = before.replace(table, "<!-- table: cores -->\nold\n").replace(
        "**An episode takes 7", "**An episode takes 8"
    )
    assert changed.count("old\n") > before.count("old\n")
    page.write_text(changed)
    command = [sys.executable, "-m", "bench.tables", str(docs)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rewritten"
    assert page.read_text() == before
    assert not tables.rewrite(docs)
    page.write_text(before.replace("times the episodes per second of one", "times as many"))
    failed = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "benchmarks.md has no such sentence" in failed.stderr
