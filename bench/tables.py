"""Write the tables of docs/benchmarks.md from the JSON files of the benchmarks beside it: both say the same.

python -m bench episode --out docs/figures     (and calls, compile, cores, samples, scale)
python -m bench.tables docs                    rewrites what stands between `<!-- table: name -->` and `<!-- end -->`

>>> in_one_unit(37.24e-6, 35.1e-6, 0.0791e-3)
'37.2 us (35.1 - 79.1)'
>>> replaced("a <!-- table: x -->old<!-- end --> b", {"x": "| new |"})
'a <!-- table: x -->\\n| new |\\n<!-- end --> b'
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.calls import Calls
from bench.cells import Cells
from bench.compilation import Compilation
from bench.cores import Cores
from bench.episode import EpisodeSpeed
from bench.episode_goals import Goal
from bench.ev_workday import EVWorkday
from bench.presets import WHY, PresetTimes, goal_of, shown_efforts
from bench.samples import Samples, shown
from bench.scale import Scale
from bench.timing import at_most, duration
from hedgerow.errors import InvalidInput
from hedgerow.storage import datafile

PAGES, FIGURES = ("benchmarks.md", "ev-workday.md"), "figures"
PROGRESS_FILE = "episode-progress.json"
"""Two versions by turns, from tools/compare_episode.py"""
PAPER_FILE = "samples-paper.json"
"""From `python -m bench samples --reference paper`"""
UNUSUAL = ("inexact", "no answer", "stopped early", "infeasible", "suspect", "failed")
"""Parts of a status that are shown beside a time"""
_MARKED = re.compile(r"<!-- table: ([\w-]+) -->.*?<!-- end -->", re.DOTALL)

Data = Mapping[str, Any]


def rewrite(docs: Path) -> bool:
    """Bring the tables of the pages up to date; whether anything changed."""
    contents, changed = tables(docs / FIGURES), False
    for name in PAGES:
        before = (docs / name).read_text(encoding="utf-8")
        after = replaced(before, contents)
        if after != before:
            datafile.save(docs / name, after.encode(), overwrite=True)
            changed = True
    return changed


def replaced(text: str, contents: Mapping[str, str]) -> str:
    """`text` with its marked tables exchanged."""

    def fill(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in contents:
            raise InvalidInput(f"there is no table {name!r}; known: {', '.join(contents)}")
        return f"<!-- table: {name} -->\n{contents[name]}\n<!-- end -->"

    return _MARKED.sub(fill, text)


def tables(figures: Path) -> dict[str, str]:
    """All tables by name, as Markdown."""
    benchmarks = (EpisodeSpeed, Samples, Cores, Scale, Calls, Compilation, PresetTimes, EVWorkday, Cells)
    names = (PROGRESS_FILE, PAPER_FILE, *(benchmark.json_file for benchmark in benchmarks))
    found = (json.loads((figures / name).read_text(encoding="utf-8")) for name in names)
    turns, paper, episode, sample, core, large, call, compiling, preset, cars, cell = found
    measured = {
        "episode": episode,
        "samples": sample,
        "cores": core,
        "scale": large,
        "calls": call,
        "compile": compiling,
        "samples-paper": paper,
        "presets": preset,
        "ev-workday": cars,
        "cells": cell,
    }
    makers: dict[str, tuple[Callable[[Data], str], Data]] = {
        "contenders": (contenders, episode),
        "progress": (progress, turns),
        "goals": (goals, episode),
        "samples": (savings, sample),
        "samples-paper": (savings, paper),
        "presets": (preset_times, preset),
        "ev-workday": (charging, cars),
        "cores": (throughput, core),
        "scale": (growth, large),
        "calls": (calls, call),
        "compile": (compilation, compiling),
        "cells": (cell_times, cell),
        **{f"{name}-setup": (setup, data) for name, data in measured.items()},
    }
    return {name: make(data) for name, (make, data) in makers.items()}


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
        cell += f", {factor:.0f}x" if factor >= 10 else f", {factor:.2f}x"
    unusual = ", ".join(word for word in UNUSUAL if word in row["status"])
    return f"{cell}, {unusual}" if unusual else cell


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
    """What learners save on real charger-days."""
    rows = [
        [row["learner"], f"{row['alpha']:g}", f"{100 * row['saved']:.1f} %", f"{row['regret']:.0f}",
         f"{row['unsafe']:.0f}", "-" if row["mixing"] is None else f"{row['mixing']:.3f}"]
        for row in data["figures"]
    ]  # fmt: skip
    return markdown(["learner", "threshold", "saved", "regret", "unsafe episodes", "lambda at T"], rows)


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
    return markdown(["processes", "episodes per second", "speed-up"], rows)


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


def setup(data: Data) -> str:
    """The machine and its load, in one sentence."""
    busy = "" if data["load"] is None else f"; average load at the end {data['load']}"
    seeds = f", {data['settings']['seeds']} seeds" if "seeds" in data["settings"] else ""
    return f"Measured on {data['processor']}, {data['cores']} cores, Python {data['python']}{seeds}{busy}."


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.tables docs")
    print("rewritten" if rewrite(Path(sys.argv[1])) else "nothing to change")


if __name__ == "__main__":
    main()
