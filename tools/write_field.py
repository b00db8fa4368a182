"""Write the results of `hedgerow compare hour` into docs/field.md: its tables, its picture, and the files to download.

python tools/write_field.py out/compare-hour     the files docs/field/*.csv from these results, then as below
python tools/write_field.py                      tables and picture from docs/field/*.csv
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
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
PICTURE = ROOT / "docs" / "figures" / "field.svg"
OURS = ("s-ops", "cv-ops", "sv-ops")
"""Where the names of the learners of the paper begin."""
HEIGHT_MM = 150.0
CONTROLS = ("oracle", "always-baseline", "uniform")
SUMMARY_FIELDS = ("learner", "inputs", "radii", "settings", "safe", "first", "mean rank", "ranked", "share", "declined")
BEST_FIELDS = (
    "world", "adversary", "first", "regret", "low", "high", "second", "more regret", "distinguishable", "baseline",
)  # fmt: skip

Entries = list[dict[str, str]]


# From results to files ------------------------------------------------------------------------------------------------


def keep(directory: Path, folder: Path = FOLDER) -> None:
    """Write the three files of a comparison."""
    board = leaderboard(open_results(directory))
    _write(folder / "summary.csv", SUMMARY_FIELDS, map(_summary, board.summaries))
    learners = [summary.learner for summary in board.summaries]
    _write(folder / "ranks.csv", ("world", "adversary", *learners), (_ranks(board, learners, b) for b in board.blocks))
    _write(folder / "best.csv", BEST_FIELDS, map(_best, board.blocks))


def _summary(summary: Any) -> Sequence[object]:
    rank = "reference" if summary.cheats else "" if summary.mean_rank is None else f"{summary.mean_rank:.1f}"
    share = "" if summary.share is None else f"{summary.share:.3f}"
    counts = summary.safe + summary.unsafe, summary.safe, summary.firsts
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
    }


def _always_safe(entry: dict[str, str]) -> bool:
    return entry["safe"] == entry["settings"]


def _learners(found: Entries, details: bool = False) -> str:
    more = ("radii", "mean rank", "declined") if details else ()
    table = Table("", ["learner", "inputs", "safe in", "first in", "regret / baseline's", *more])
    for entry in found:
        rank = f"{entry['mean rank']} (in {entry['ranked']})" if entry["ranked"] != "0" else entry["mean rank"]
        first = entry["first"] if entry["ranked"] != "0" else NOTHING
        share = NUMBERS.percent(float(entry["share"])) if entry["share"] else NOTHING
        shown = {"radii": entry["radii"], "mean rank": rank, "declined": entry["declined"].replace("0", "")}
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
    for directory in sys.argv[1:2]:
        keep(Path(directory))
    for marker, content in tables().items():
        write_into(PAGE, content, marker)
    save_figures([(picture(), PICTURE)], replace(FOR_DOCS, height_mm=HEIGHT_MM))
    print(PAGE.relative_to(ROOT), PICTURE.relative_to(ROOT))
