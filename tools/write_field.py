"""Write the results of `hedgerow compare hour` and `compare long` into docs/field.md: tables, picture, downloads.

python tools/write_field.py out/compare-hour out/compare-long     docs/field/*.csv and long/*.csv there, then as below
python tools/write_field.py                                       tables and picture from these files
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hedgerow.display.numbers import PAGE as NUMBERS  # noqa: E402
from hedgerow.display.table import NOTHING, Table, TableCell  # noqa: E402
from hedgerow.report.board import write_into  # noqa: E402
from hedgerow.report.export import FOR_DOCS, save_figures  # noqa: E402
from hedgerow.report.plots import BLUE, GREY, GRID, INK, PAPER  # noqa: E402
from hedgerow.results.leaderboard import DIFFERENT, Block, Leaderboard, Rank, leaderboard  # noqa: E402
from hedgerow.results.store import open as open_results  # noqa: E402

PAGE = ROOT / "docs" / "field.md"
FOLDER = ROOT / "docs" / "field"
LONG = FOLDER / "long"
PICTURE = ROOT / "docs" / "figures" / "field.svg"
OURS = ("s-ops", "c-ops", "b-ops", "cv-ops", "sv-ops")
"""Where the names of the learners of the paper, and of ours, begin."""
COMPARED = ("always-baseline", "s-ops-sharpest", "c-ops-sharpest", "b-ops-sharpest", "s-lp-sharpest")
"""Those whose regret is shown for every setting"""
REVEALING = ("own", "betrayal", "pursuit")
"""Adversaries with which the baseline leaves something to gain in most worlds"""
BUDGETS = ("b-ops-sharpest",)
"""Those that promise a budget: an episode above the threshold breaks nothing"""
HEIGHT_MM = 230.0
CONTROLS = ("oracle", "always-baseline", "uniform")
SUMMARY_FIELDS = (
    "learner", "inputs", "radii", "settings", "safe", "budget", "first", "mean rank", "ranked", "share",
    "declined",
)  # fmt: skip
BEST_FIELDS = (
    "world", "adversary", "first", "regret", "low", "high", "second", "more regret", "distinguishable", "baseline",
)  # fmt: skip
REGRET_FIELDS = ("world", "adversary", "learner", "regret", "low", "high", "share", "safe")

Entries = list[dict[str, str]]


# From results to files ------------------------------------------------------------------------------------------------


def keep(directory: Path, folder: Path = FOLDER) -> None:
    """Write the three files of a comparison."""
    board = leaderboard(open_results(directory))
    _write(folder / "summary.csv", SUMMARY_FIELDS, map(_summary, board.summaries))
    learners = [summary.learner for summary in board.summaries]
    _write(folder / "ranks.csv", ("world", "adversary", *learners), (_ranks(board, learners, b) for b in board.blocks))
    _write(folder / "best.csv", BEST_FIELDS, map(_best, board.blocks))
    _write(folder / "regret.csv", REGRET_FIELDS, (line for block in board.blocks for line in _regrets(block)))


def _regrets(block: Block) -> Iterable[Sequence[object]]:
    for standing in block.standings:
        if standing.scores is not None:
            found, share = standing.scores.numbers["regret"], standing.scores.share
            numbers = ("" if value is None else f"{value:.6g}" for value in (found.value, found.low, found.high, share))
            safe = "yes" if standing.scores.is_safe else "no"
            yield block.setting.world, block.setting.adversary, standing.learner, *numbers, safe


def _summary(summary: Any) -> Sequence[object]:
    rank = "reference" if summary.cheats else "" if summary.mean_rank is None else f"{summary.mean_rank:.1f}"
    share = "" if summary.share is None else f"{summary.share:.3f}"
    counts = summary.ran, summary.safe, summary.budget, summary.firsts
    return summary.learner, summary.inputs, summary.radii, *counts, rank, summary.ranked, share, summary.declined


def _ranks(board: Leaderboard, learners: Sequence[str], block: Block) -> Sequence[object]:
    standings = (board.status(block, learner) for learner in learners)
    return block.setting.world, block.setting.adversary, *("" if s is None else s.rank or s.status for s in standings)


def _best(block: Block) -> Sequence[object]:
    ranked = [standing for standing in block.standings if standing.rank is not None]
    first, second = (ranked[place] if place < len(ranked) else None for place in (0, 1))
    baseline = next((standing for standing in block.standings if standing.kind == "always-baseline"), None)
    ahead = first.next if first else None
    found = first.scores.numbers["regret"] if first and first.scores else None
    return (
        block.setting.world,
        block.setting.adversary,
        first.learner if first else "",
        *((found.value, found.low, found.high) if found else ("", "", "")),
        second.learner if second else "",
        ahead.found.value if ahead else "",
        "" if ahead is None else "yes" if ahead.verdict == DIFFERENT else "no",
        _regret(baseline),
    )


def _regret(standing: Rank | None) -> float | str:
    return standing.scores.numbers["regret"].value if standing and standing.scores else ""


def _write(file: Path, fields: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(fields)
        writer.writerows(lines)


def entries(name: str, folder: Path = FOLDER) -> Entries:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# From files to the page -----------------------------------------------------------------------------------------------


def tables(folder: Path = FOLDER) -> dict[str, str]:
    """The tables of the page, by the names of their markers."""
    learners = entries("summary", folder)
    return {
        "field-safe": _learners(sorted(filter(_always_safe, learners), key=lambda entry: float(entry["share"]))),
        "field-all": _learners(learners, details=True),
        "field-best": _first_and_second(entries("best", folder)),
        "field-regret": _by_setting(entries("regret", folder)),
        "field-shares": _shares(entries("regret", folder), entries("regret", LONG)),
    }


def _by_setting(found: Entries) -> str:
    """The regret of some learners in every setting, with intervals."""
    compared = [name for name in COMPARED if any(entry["learner"] == name for entry in found)]
    table = Table("", ["setting", *compared])
    by_name = {(entry["world"], entry["adversary"], entry["learner"]): entry for entry in found}
    for world, adversary in dict.fromkeys((entry["world"], entry["adversary"]) for entry in found):
        table.add_row(f"{world}, {adversary}", *(_interval(by_name[world, adversary, name]) for name in compared))
    return table.to_markdown()


def _interval(entry: dict[str, str]) -> TableCell:
    value, low, high = (float(entry[key]) if entry[key] else None for key in ("regret", "low", "high"))
    note = "" if low is None or high is None or low == high else NUMBERS.interval(low, high)
    return TableCell(NOTHING if value is None else NUMBERS.number(value), note=note)


def shares(found: Entries) -> dict[str, dict[str, float]]:
    """By learner and adversary, and "all": the median of regret / baseline's, where there is anything to gain."""
    collected: dict[str, dict[str, list[float]]] = {}
    for entry in found:
        if entry["share"]:
            own = collected.setdefault(entry["learner"], {})
            for key in (entry["adversary"], "all"):
                own.setdefault(key, []).append(float(entry["share"]))
    return {learner: {key: median(values) for key, values in own.items()} for learner, own in collected.items()}


def _shares(hour: Entries, long: Entries) -> str:
    """Medians by adversary at both horizons: those that are safe in every setting, and B-OPS, which keeps a budget."""
    columns = [f"{key}, T = {episodes}" for episodes in ("10⁴", "10⁵") for key in (*REVEALING, "all three")]
    table = Table("", ["learner", *columns])
    at_hour, at_long = shares(hour), shares(long)
    broken = {entry["learner"] for entry in hour if entry["safe"] == "no"} - set(BUDGETS)
    for learner in sorted(at_hour.keys() - broken - {"oracle"}, key=lambda name: (at_hour[name]["all"], name)):
        medians = (own.get(key) for own in (at_hour[learner], at_long.get(learner, {})) for key in (*REVEALING, "all"))
        table.add_row(TableCell(learner), *(NOTHING if each is None else NUMBERS.percent(each) for each in medians))
    return table.to_markdown()


def _always_safe(entry: dict[str, str]) -> bool:
    return entry["safe"] == entry["settings"]


def _learners(found: Entries, details: bool = False) -> str:
    more = ("budget", "radii", "mean rank", "declined") if details else ()
    table = Table("", ["learner", "inputs", "safe in", "first in", "regret / baseline's", *more])
    for entry in found:
        rank = f"{entry['mean rank']} (in {entry['ranked']})" if entry["ranked"] != "0" else entry["mean rank"]
        first = entry["first"] if entry["ranked"] != "0" else NOTHING
        share = NUMBERS.percent(float(entry["share"])) if entry["share"] else NOTHING
        some = {column: entry[column] if entry[column] != "0" else "" for column in ("budget", "declined")}
        shown = {"radii": entry["radii"], "mean rank": rank, **some}
        cells = (entry["inputs"], f"{entry['safe']} of {entry['settings']}", first, share)
        table.add_row(TableCell(entry["learner"]), *cells, *(shown[column] or NOTHING for column in more))
    return table.to_markdown()


def _first_and_second(found: Entries) -> str:
    table = Table("", ["setting", "first", "regret", "second", "more regret", "always the baseline"])
    for entry in found:
        value, low, high = (float(entry[key]) if entry[key] else None for key in ("regret", "low", "high"))
        interval = "" if low is None or high is None else NUMBERS.interval(low, high)
        more = f"{_number(entry['more regret'])}{' (not distinguishable)' * (entry['distinguishable'] == 'no')}"
        regret = NOTHING if value is None else TableCell(NUMBERS.number(value), note=interval)
        setting = f"{entry['world']}, {entry['adversary']}"
        table.add_row(setting, entry["first"], regret, entry["second"], more, _number(entry["baseline"]))
    return table.to_markdown()


def _number(text: str) -> str:
    return NUMBERS.number(float(text)) if text else NUMBERS.nothing


def picture(folder: Path = FOLDER) -> dict[str, Any]:
    """Two bars for every learner: in how many settings it is safe, and its regret if it is safe in all of them."""
    found = entries("summary", folder)
    by_share = sorted(filter(_always_safe, found), key=lambda entry: float(entry["share"]))
    order = [*by_share, *sorted((e for e in found if not _always_safe(e)), key=lambda entry: -int(entry["safe"]))]
    names = [entry["learner"] for entry in order]
    safe = [100.0 * int(entry["safe"]) / int(entry["settings"]) for entry in order]
    shares = [100.0 * float(entry["share"]) if _always_safe(entry) else None for entry in order]
    marks = ["" if share is None else f"{share:.0f} %" for share in shares]
    bars = {
        "type": "bar", "orientation": "h", "y": names, "marker": {"color": [_colour(name) for name in names]},
        "textposition": "outside", "cliponaxis": False,
    }  # fmt: skip
    names_axis = {"autorange": "reversed", "ticks": "", "showgrid": False, "dtick": 1}
    percent = {"ticksuffix": " %", "gridcolor": GRID, "zeroline": False, "range": [0, 115], "dtick": 50}
    return {
        "data": [
            {**bars, "x": safe, "text": [f"{each:.0f} %" for each in safe]},
            {**bars, "x": shares, "text": marks, "xaxis": "x2", "yaxis": "y2"},
        ],
        "layout": {
            "title": {"text": "Safety of all learners, and the regret of the safe ones"},
            "showlegend": False,
            "bargap": 0.25,
            "font": {"color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "xaxis": {**percent, "domain": [0, 0.47], "title": {"text": "settings in which it is safe"}},
            "xaxis2": {**percent, "domain": [0.53, 1], "anchor": "y2", "title": {"text": "regret / baseline regret"}},
            "yaxis": names_axis,
            "yaxis2": {**names_axis, "anchor": "x2", "showticklabels": False},
        },
    }


def _colour(name: str) -> str:
    return BLUE if name.startswith(OURS) else "#b9b9b4" if name in CONTROLS else GREY


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("hour", nargs="?", type=Path, help="a directory of results of `hedgerow compare hour`")
    parser.add_argument("long", nargs="?", type=Path, help="one of `hedgerow compare long`")
    given = parser.parse_args()
    for directory, folder in ((given.hour, FOLDER), (given.long, LONG)):
        if directory is not None:
            keep(directory, folder)
    for marker, content in tables().items():
        write_into(PAGE, content, marker)
    save_figures([(picture(), PICTURE)], replace(FOR_DOCS, height_mm=HEIGHT_MM))
    print(PAGE.relative_to(ROOT), PICTURE.relative_to(ROOT))
