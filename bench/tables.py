"""Write the tables of the docs, and the numbers in their sentences, from the JSON files of the benchmarks.

python -m bench all                            or single benchmarks, with `--out docs/figures`
python -m bench.tables docs                    rewrites what stands between `<!-- table: name -->` and `<!-- end -->`,
                                               and the numbers of `bench/claims.py`

>>> in_one_unit(37.24e-6, 35.1e-6, 0.0791e-3)
'37.2 us (35.1 - 79.1)'
>>> replaced("a <!-- table: x -->old<!-- end --> b", {"x": "| new |"})
'a <!-- table: x -->\\n| new |\\n<!-- end --> b'
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import claims
from bench.claims import Figures
from bench.episode_goals import Goal
from bench.presets import WHY, goal_of, shown_efforts
from bench.samples import shown
from bench.timing import at_most, duration
from hedgerow.errors import InvalidInput
from hedgerow.storage import datafile

PAGES, FIGURES = ("benchmarks.md", "budget.md", "ev-workday.md", "projection.md", "years.md"), "figures"
EV_WORKDAYS = tuple(f"ev-workday{name}{preset}" for name in ("", "-hard", "-cars") for preset in ("", "-sharp"))
UNUSUAL = ("inexact", "no answer", "stopped early", "infeasible", "suspect", "failed")
"""Parts of a status that are shown beside a time"""
_MARKED = re.compile(r"<!-- table: ([\w-]+) -->.*?<!-- end -->", re.DOTALL)

Data = Mapping[str, Any]


def rewrite(docs: Path) -> bool:
    """Bring the tables and numbers of the pages up to date; whether anything changed."""
    found = Figures(docs / FIGURES)
    contents, changed = tables(found), False
    for name in dict.fromkeys((*PAGES, *claims.pages())):
        path = docs / name
        before = path.read_text(encoding="utf-8")
        after = claims.rewritten(name, replaced(before, contents), found)
        if after != before:
            datafile.save(path, after.encode(), overwrite=True)
            changed = True
    return changed


def replaced(text: str, contents: Mapping[str, str]) -> str:
    """`text` with its marked tables exchanged."""

    def fill(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in contents:
            return f"<!-- table: {name} -->\n{contents[name]}\n<!-- end -->"
        if name not in makers():
            raise InvalidInput(f"there is no table {name!r}; known: {', '.join(makers())}")
        return found.group()  # not measured yet

    return _MARKED.sub(fill, text)


def tables(found: Figures) -> dict[str, str]:
    """All tables that have figures, by name, as Markdown."""
    return {name: make(found[file]) for name, (make, file) in makers().items() if file in found}


def not_measured(found: Figures) -> list[str]:
    """The files that are missing: their tables stay as they are."""
    return sorted({file for _, file in makers().values() if file not in found})


def makers() -> dict[str, tuple[Callable[[Data], str], str]]:
    """What makes each table, and the file that it is made from."""
    made: dict[str, tuple[Callable[[Data], str], str]] = {
        "contenders": (contenders, "episode-speed"),
        "progress": (progress, "episode-progress"),
        "goals": (goals, "episode-speed"),
        "samples": (savings, "samples"),
        "samples-paper": (savings, "samples-paper"),
        "presets": (preset_times, "preset-times"),
        **{name: (charging, name) for name in EV_WORKDAYS},
        "budget": (budgets, "budget"),
        "budget-kept": (budgets_kept, "budget"),
        "cores": (throughput, "cores"),
        "scale": (growth, "projection-scale"),
        "calls": (calls, "calls"),
        "compile": (compilation, "compile"),
        "cells": (cell_times, "cells"),
        "field": (field_times, "field-speed"),
        "plans": (plan_times, "plans"),
        "projection": (solvers, "projection-speed"),
        "stress": (hard_problems, "stress"),
        "serve": (load, "serve"),
    }
    names = {"contenders": "episode"}
    without = ("progress", "goals", "budget-kept", "stress", *EV_WORKDAYS[1:])
    return made | {
        f"{names.get(name, name)}-setup": (setup, file) for name, (_, file) in made.items() if name not in without
    }


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def contenders(data: Data) -> str:
    """Worlds across, contenders down: median, 10th to 90th percentile, how many times SV-OPS."""
    rows = {(row["world"], row["contender"]): row for row in data["figures"]}
    worlds = _worlds(data)
    names = dict.fromkeys(name for _, name in rows)
    head = ["contender", *_heads(worlds)]
    return markdown(head, [[name, *(_cell(rows.get((world, name))) for world in worlds)] for name in names])


def _worlds(data: Data) -> dict[str, int]:
    return {row["world"]: row["triples"] for row in data["figures"]}


def _heads(worlds: Mapping[str, int]) -> list[str]:
    return [f"{world.replace(', m=', ' m=')}: {triples} transitions" for world, triples in worlds.items()]


def _cell(row: Data | None) -> str:
    if row is None:
        return "-"
    if row["time"] is None:
        return str(row["status"])
    time, factor = row["time"], row["factor"]
    cell = in_one_unit(time["median"], time["p10"], time["p90"])
    if row["contender"] != "SV-OPS":
        cell += f", {_times(factor)}"
    unusual = ", ".join(word for word in UNUSUAL if word in row["status"])
    return f"{cell}, {unusual}" if unusual else cell


def _times(factor: float) -> str:
    return f"{factor:.0f}x" if factor >= 10 else f"{factor:.2f}x"


def in_one_unit(median: float, low: float, high: float) -> str:
    """A median with its spread in the same unit."""
    value, unit = duration(median).split()
    factor = {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]
    return f"{value} {unit} ({_three_digits(low * factor)} - {_three_digits(high * factor)})"


def _three_digits(value: float) -> str:
    """Never with an exponent."""
    return f"{float(f'{value:.3g}'):g}"


def progress(data: Data) -> str:
    """Two versions by turns: learners down, worlds across; before, after, how many times as fast."""
    cells = {(row["learner"], row["world"]): row for row in data["figures"]}
    worlds = dict.fromkeys(world for _, world in cells)
    rows = []
    for name in dict.fromkeys(name for name, _ in cells):
        own = [cells[name, world] for world in worlds]
        times = [f"{duration(row['before'])} -> {duration(row['after'])}, {row['faster']:.2f}x" for row in own]
        rows.append([name, *times])
    return markdown(["learner", *worlds], rows)


def goals(data: Data) -> str:
    """Goals down, worlds across."""
    found = [Goal(**goal) for goal in data["goals"]]
    cells = {(goal.name, goal.world): f"{goal.shown_found}, {'met' if goal.met else 'not met'}" for goal in found}
    worlds = dict.fromkeys(goal.world for goal in found)
    names = dict.fromkeys(goal.name for goal in found)
    asked = {goal.name: goal.shown_asked if not goal.is_time else "8, 29, 128, 348 us" for goal in found}
    rows = [[name, asked[name], *(cells.get((name, world), "-") for world in worlds)] for name in names]
    return markdown(["goal", "target", *worlds], rows)


def savings(data: Data) -> str:
    """What presets save."""
    rows = []
    for row in data["figures"]:
        asked = f", {row['verdict']} (goal {row['goal']:g}x)" if row["goal"] else ""
        saving = f"{row['saving']:.1f}x{asked}" if row["saving"] else row["verdict"]
        ends = [shown(row["measure"], row["reference"]), shown(row["measure"], row["value"])]
        told = [row[name] for name in ("world", "learner", "losses", "measure", "variant")]
        rows.append([*told, f"{row['episodes']:,}", str(row["seeds"]), *ends, saving])
    head = ["world", "learner", "losses", "measure", "variant", "episodes", "seeds", "reference", "variant's", "saving"]
    return markdown(head, rows)


def preset_times(data: Data) -> str:
    """An episode of `sharpest` beside one of `sharp`."""
    rows = [
        [row["world"], f"{row['triples']:,}", row["learner"], duration(row["sharp"]), duration(row["sharpest"]),
         f"{row['sharpest'] / row['sharp']:.2f}x", f"at most {goal_of(row['triples']):g}x, {row['verdict']}",
         *shown_efforts(row["efforts"])]
        for row in data["figures"]
    ]  # fmt: skip
    return markdown(["world", "transitions", "learner", "sharp", "sharpest", "ratio", "goal", *WHY], rows)


def charging(data: Data) -> str:
    """What learners save on real charger-days; with the real cars also the worst days in a row."""
    cars = data["settings"]["cars"]
    names = {"regret": _whole, "unsafe": _whole, "mixing": "{:.3f}".format}
    names |= {"worst_window": "{:.3f}".format} if cars else {}
    rows = []
    for row in data["figures"]:
        cells = ["-" if row[name] is None else shape(row[name]) for name, shape in names.items()]
        rows.append([row["learner"], f"{row['alpha']:g}", f"{100 * row['saved']:.1f} %", *cells])
    worst = ["worst 500"] if cars else []
    return markdown(["learner", "threshold", "saved", "regret", "unsafe episodes", "lambda at T", *worst], rows)


def _whole(value: float) -> str:
    """Rounded, and never -0."""
    return f"{round(value):,}"


def budgets(data: Data) -> str:
    """Regret of B-OPS by both rules, beside S-OPS and its baseline."""
    rows = []
    for row in data["figures"]:
        if "adversary" in row:
            regrets = [_whole(row[name]) for name in ("baseline", "s_ops", "bound", "ceiling")]
            if row["bound"] < row["s_ops"]:
                regrets[2] = f"**{regrets[2]}**"
            until = "-" if row["episodes"] is None else f"{row['episodes']:,}"
            rows.append([row["world"], row["adversary"], *regrets, until])
    return markdown(["world", "losses", "baseline", "S-OPS", "B-OPS", "by the ceiling", "episodes"], rows)


def budgets_kept(data: Data) -> str:
    """Long runs of B-OPS: how often the account was wrong, and the budget exceeded."""
    rows = []
    for row in data["figures"]:
        if "rule" in row:
            counts = [str(row[name]) for name in ("wrong", "overdrawn", "refuted")]
            runs = f"{row['runs']} x {row['episodes']:,}"
            rows.append([row["rule"], str(row["constraints"]), runs, *counts, f"{100 * row['own']:.0f} %"])
    return markdown(["rule", "constraints", "runs x episodes", "wrong", "overdrawn", "refuted", "own episodes"], rows)


def growth(data: Data) -> str:
    """Time and memory by size."""
    rows = []
    for row in data["figures"]:
        per_triple = [f"{1e9 * row[name] / row['triples']:.0f} ns" for name in ("mirror_step", "cold_start", "episode")]
        times = [duration(row["mirror_step"]), duration(row["cold_start"]), duration(row["episode"])]
        cells = [f"{time}, {each}" for time, each in zip(times, per_triple, strict=True)]
        memory = [f"{row['bytes_per_triple']:.0f}", f"{row['learner_bytes_per_triple']:.0f}"]
        rows.append([row["size"], f"{row['triples']:,}", *cells, *memory])
    head = ["world", "transitions", "mirror step, per transition", "cold start", "episode of SV-OPS"]
    return markdown([*head, "bytes per transition, projection", "learner"], rows)


def throughput(data: Data) -> str:
    """Episodes per second by number of processes."""
    rows = [
        [str(row["processes"]), f"{row['episodes_per_second']:,.0f}", f"{row['speed_up']:.2f}x"]
        for row in data["figures"]
    ]
    return markdown(["processes", "episodes per second (wall)", "speed-up"], rows)


def calls(data: Data) -> str:
    """Calls down, worlds across: median, 10th to 90th percentile, the compiled code inside, whether a goal is met."""
    rows = {(row["world"], row["who"], row["call"]): row for row in data["figures"]}
    worlds = _worlds(data)
    lines = []
    for who, call in dict.fromkeys((who, call) for _, who, call in rows):
        own = [rows[world, who, call] for world in worlds]
        asked = next((row["asked"] for row in own if row["asked"] is not None), None)
        lines.append([f"{who}: `{call}`", at_most(asked), *map(_call_cell, own)])
    return markdown(["call", "target", *_heads(worlds)], lines)


def _call_cell(row: Data) -> str:
    time = row["time"]
    cell = in_one_unit(time["median"], time["p10"], time["p90"])
    inside = "" if row["inside"] is None else f", {duration(row['inside'])} inside"
    return cell + inside + (f", {row['verdict']}" if row["verdict"] else "")


def cell_times(data: Data) -> str:
    """Worlds down: processor time of a cell outside and inside of its episodes."""
    rows = []
    for row in data["figures"]:
        outside = row["outside"]
        times = [in_one_unit(outside["median"], outside["p10"], outside["p90"]), duration(row["inside"])]
        rows.append([row["world"], str(row["cells"]), *times, f"{at_most(row['asked'])}, {row['verdict']}"])
    return markdown(["world", "cells of a sweep", "outside of episodes", "inside", "goal"], rows)


def compilation(data: Data) -> str:
    """Processes down: seconds by the clock on the wall and of the processor, with their goals."""
    rows = []
    for row in data["figures"]:
        wall = [duration(row["wall"]["median"]), at_most(row["most_wall"])]
        cpu = [duration(row["cpu"]["median"]), at_most(row["most_cpu"])]
        rows.append([row["process"], *wall, *cpu, row["verdict"] or "-", str(row["cpu"]["count"]), str(row["files"])])
    return markdown(["process", "wall", "target", "processor time", "target", "met", "runs", "files kept"], rows)


def field_times(data: Data) -> str:
    """Learners of the field down, worlds across: time of an episode, how many times S-OPS."""
    rows = {(row["world"], row["contender"]): row for row in data["figures"]}
    worlds = _worlds(data)
    lines = []
    for name in dict.fromkeys(name for _, name in rows):
        own = [rows[world, name] for world in worlds]
        lines.append([name, *(f"{duration(row['time']['median'])}, {_times(row['times_ours'])}" for row in own)])
    return markdown(["learner", *_heads(worlds)], lines)


def plan_times(data: Data) -> str:
    """Sequences of programs down: ours, HiGHS with a kept model and anew, each with its ratio to ours."""
    lines = []
    for row in data["figures"]:
        ours = row["ours"]["median"]
        theirs = [f"{duration(row[way]['median'])}, {row[way]['median'] / ours:.0f}x" for way in ("kept", "anew")]
        lines.append([row["world"], f"{row['triples']:,}", row["losses"], duration(ours), *theirs])
    return markdown(["world", "transitions", "losses", "ours", "HiGHS, kept and warm", "HiGHS, anew"], lines)


def solvers(data: Data) -> str:
    """Sizes down, solvers across: ours, and how many times as long the others take."""
    rows = {(row["triples"], row["contender"]): row for row in data["figures"]}
    names = ["cvxpy + Clarabel, as written", "cvxpy + Clarabel, rows as variables", "cvxpy + Clarabel, built anew"]
    names += ["Clarabel", "ECOS", "SCS", "L-BFGS-B, large dual"]
    lines = []
    for triples in dict.fromkeys(triples for triples, _ in rows):
        others = [rows.get((triples, name)) for name in names]
        cells = ["-" if not row or not row["time"] else _times_ours(row) for row in others]
        lines.append([f"{triples:,}", duration(rows[triples, "hedgerow"]["time"]["median"]), *cells])
    return markdown(["transitions", "ours", *names], lines)


def _times_ours(row: Data) -> str:
    return f"{duration(row['time']['median'])}, {row['factor']:.0f}x"


def hard_problems(data: Data) -> str:
    """Families of hard projections down: verdicts, certificates, steps and times."""
    lines = []
    for row in data["figures"]:
        worst = "-" if row["worst_certificate"] is None else f"{row['worst_certificate']:.0e}"
        counts = [row[name] for name in ("instances", "solved", "infeasible", "wrong_verdicts", "failures")]
        steps = f"{row['median_iterations']:.0f}, {row['p99_iterations']:.0f}, {row['max_iterations']}"
        times = f"{duration(row['median_seconds'])}, {duration(row['max_seconds'])}"
        lines.append([row["family"], *map(str, counts), worst, steps, times])
    head = ["family", "instances", "solved", "infeasible", "wrong", "failures", "worst certificate"]
    return markdown([*head, "steps: median, 99 %, max", "time: median, max"], lines)


def load(data: Data) -> str:
    """Ways to serve down: decisions per second and latencies by the clock on the wall, and processor time."""
    lines = []
    for row in data["figures"]:
        commits = "shared" if row["group_commit"] else "one a call"
        times = [duration(row[name]) for name in ("p50", "p99", "processor")]
        where = [row["database"], row["durability"], commits, str(row["clients"])]
        lines.append([*where, f"{row['per_second']:.0f}", *times])
    head = ["database", "durability", "commits", "clients", "decisions/s (wall)", "p50 (wall)", "p99 (wall)"]
    return markdown([*head, "processor time"], lines)


def setup(data: Data) -> str:
    """The machine and its load, in one sentence."""
    busy = "" if data["load"] is None else f"; average load at the end {data['load']}"
    seeds = f", {data['settings']['seeds']} seeds" if "seeds" in data["settings"] else ""
    return f"Measured on {data['processor']}, {data['cores']} cores, Python {data['python']}{seeds}{busy}."


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.tables docs")
    docs = Path(sys.argv[1])
    print("rewritten" if rewrite(docs) else "nothing to change")
    found = Figures(docs / FIGURES)
    for file in not_measured(found):
        print(f"there is no {file}.json: its tables stay as they are", file=sys.stderr)
    wrong = claims.check(docs, found)
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
