"""The figures of `hedgerow bench episode`: as tables, as data and as a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.episode_goals import Goal, goals
from hedgerow.bench.episode_parts import LOOP, PARTS
from hedgerow.bench.mirror_steps import SIZES
from hedgerow.bench.timing import Spread, duration
from hedgerow.pages.log_plots import Line, log_plot

JSON_FILE, FIGURE_FILE = "episode-speed.json", "episode-speed.svg"


@dataclass(frozen=True)
class Row:
    """One contender in one world; times are seconds per episode, None if it could not run."""

    world: str
    triples: int
    contender: str
    status: str
    time: Spread | None = None
    factor: float | None = None
    """How many times our SV-OPS"""
    deviation: float | None = None
    """Of contenders that should follow our iterates: the largest difference of q_hat(x,a)"""


@dataclass(frozen=True)
class Activity:
    """What the timed episodes of SV-OPS were like."""

    world: str
    newton_steps: float
    """Per episode"""
    at_bound: float
    """Share of the triples at a bound of their box, among rows with a choice"""
    active: float
    """Share of the episodes after which some multiplier was positive"""


@dataclass(frozen=True)
class Report:
    rows: tuple[Row, ...]
    parts: tuple[Row, ...]
    """Of SV-OPS; `factor` is the share of the episode"""
    activities: tuple[Activity, ...]

    @property
    def goals(self) -> tuple[Goal, ...]:
        medians = {(row.world, row.contender): row.time.median for row in self.rows if row.time is not None}
        return goals(medians, {row.world: row.triples for row in self.rows})


def as_data(settings: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The report as JSON can hold it."""
    data = manifest.report("episode", settings, [asdict(row) for row in report.rows])
    data["parts"] = [asdict(row) for row in report.parts]
    data["activity"] = [asdict(activity) for activity in report.activities]
    data["goals"] = [asdict(goal) for goal in report.goals]
    return data


def write(folder: Path, data: dict[str, Any], report: Report) -> tuple[Path, Path]:
    """The figures as JSON and as a plot."""
    text = manifest.write(folder, JSON_FILE, manifest.as_json(data))
    return text, manifest.write(folder, FIGURE_FILE, plot(report))


def plot(report: Report) -> str:
    """Time over size, for the worlds with random layers."""
    sizes = {size.label for size in SIZES}
    timed = [row for row in report.rows if row.time is not None and row.world in sizes]
    lines = [
        Line(name, [(row.triples, 1e6 * row.time.median) for row in timed if row.contender == name and row.time])
        for name in dict.fromkeys(row.contender for row in timed)
    ]
    return log_plot("Time of an episode", "triples (x, a, x')", "microseconds", lines)


def show(report: Report) -> None:
    """A table per world, the parts of an episode, the goals."""
    out = output.Screen()
    for label in dict.fromkeys(row.world for row in report.rows):
        own = [row for row in report.rows if row.world == label]
        columns = ["contender", "status", "median", "p10 - p90", "n", "x SV-OPS", "deviation"]
        shown = output.Table(f"{label}: {own[0].triples} triples", columns, num_text=2)
        for row in own:
            shown.add_row(*_cells(row))
        out.table(shown)
    shown = output.Table("an episode of SV-OPS", ["world", "steps", "at bound", "active", *_part_names()])
    for activity in report.activities:
        prices = {row.contender: row for row in report.parts if row.world == activity.world}
        cells = [f"{activity.newton_steps:.1f}", f"{activity.at_bound:.0%}", f"{activity.active:.0%}"]
        cells += [duration(prices[name].time.median) for name in _part_names()]  # type: ignore[union-attr]
        shown.add_row(activity.world, *cells)
    out.table(shown)
    goals_table = output.Table("goals", ["goal", "world", "found", "asked", "met"], num_text=2, num_keys=2)
    for goal in report.goals:
        goals_table.add_row(goal.name, goal.world, goal.shown_found, goal.shown_asked, "met" if goal.met else "not met")
    out.table(goals_table)
    terminal.mention_load(out)
    for words in (
        "Ours: the compiled loop with sampling, learning and exact scoring. Others: learning alone, from our data.",
        "floor: the loop with one evaluation of the dual in the place of the projection.",
        "deviation: of q_hat from ours, for contenders that should follow it. steps: of Newton's method.",
        "projection: by difference, the evaluation in it. loop: what is left when all parts are taken out.",
        "at bound: share of the triples at a bound of their box. active: share of the episodes with an active cost.",
    ):
        out.line(words)


def _part_names() -> list[str]:
    return ["projection", *PARTS, LOOP]


def _cells(row: Row) -> list[str]:
    if row.time is None:
        return [row.contender, row.status, *["-"] * 5]
    spread = f"{duration(row.time.p10)} - {duration(row.time.p90)}"
    factor = "-" if row.factor is None else (f"{row.factor:.0f}" if row.factor >= 10 else f"{row.factor:.2f}")
    deviation = "-" if row.deviation is None else f"{row.deviation:.0e}"
    return [row.contender, row.status, duration(row.time.median), spread, str(row.time.count), factor, deviation]
