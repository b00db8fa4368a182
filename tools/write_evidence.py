"""Write the results of `hedgerow verify --full --figures` into docs/evidence.md: its tables, its figures, its data.

python tools/write_evidence.py out/verify-full     docs/evidence/* from these results, then as below
python tools/write_evidence.py                     tables and figures from docs/evidence/*

No number of a table of the page is typed by hand: all of them are in `verdicts.json` and in four Parquet files, which
`hedgerow verify` writes (`verify/tables.py`). Further results may follow, such as out/verify-quick: what was not run
in the first ones (`hedgerow verify --full --finished --figures`) is taken from them, and the page says so. A promise
that is judged nowhere is refused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from hedgerow.display.table import Table, TableCell  # noqa: E402
from hedgerow.errors import InvalidInput  # noqa: E402
from hedgerow.report.board import write_into  # noqa: E402
from hedgerow.report.export import FOR_DOCS, save_figures  # noqa: E402
from hedgerow.storage import atomic  # noqa: E402
from hedgerow.verify.claims import PROMISES  # noqa: E402
from hedgerow.verify.controls import CONTROLS  # noqa: E402
from hedgerow.verify.figures import plots  # noqa: E402
from hedgerow.verify.judging import Status  # noqa: E402
from hedgerow.verify.tables import PAGE_TABLES, CurvePoint, Rows, by_curve, exponents, load  # noqa: E402
from hedgerow.verify.tables import keep as write_tables  # noqa: E402

PAGE = ROOT / "docs" / "evidence.md"
FOLDER = ROOT / "docs" / "evidence"
PICTURES = ROOT / "docs" / "figures"
VERDICTS = "verdicts.json"
OF_THE_PAPER = 20
"""T1 to T20 are theorems and lemmas of the paper."""

Verdicts = dict[str, Any]


# From results to files ------------------------------------------------------------------------------------------------


def keep(results: Sequence[Path], folder: Path = FOLDER) -> None:
    """Copy what the page needs: each verdict, and each setting of the coverage, from the first results with it; all
    other tables from the first ones.
    """
    reports = [json.loads((one / VERDICTS).read_text(encoding="utf-8")) for one in results]
    promises, controls = ([{**one, "level": report["manifest"]["level"]} for report in reports for one in report[part]
                           if one["verdict"] != Status.UNRUN.value] for part in ("promises", "controls"))  # fmt: skip
    chosen = _first(promises, ["key"], [(promise.key,) for promise in PROMISES])
    wanted = [(control.name, key) for control in CONTROLS for key in control.promises]
    found: Verdicts = {"promises": chosen, "controls": _first(controls, ["name", "promise"], wanted)}
    found["runs"] = {report["manifest"]["level"]: report["manifest"]["runs"] for report in reports}
    folder.mkdir(parents=True, exist_ok=True)
    atomic.save(folder / VERDICTS, f"{json.dumps(_rounded(found), indent=1)}\n".encode(), overwrite=True)
    first, *others = [load(one) for one in results]
    settings = {row.setting for row in first["coverage"]}
    for other in others:  # the rows say how long and how many their runs are
        first["coverage"] += [row for row in other["coverage"] if row.setting not in settings]
    write_tables(folder, first)


def _first(judged: Sequence[dict[str, Any]], names: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> list[Any]:
    """The first verdict for each of what is wanted."""
    found: dict[tuple[str, ...], Any] = {}
    for one in judged:
        found.setdefault(tuple(one[name] for name in names), one)
    missing = [" ".join(key) for key in wanted if key not in found]
    if missing:
        raise InvalidInput(f"no verdict on {', '.join(missing)}; run: hedgerow verify --full --figures")
    return [found[key] for key in wanted]


def _rounded(part: Any) -> Any:
    """Numbers with six digits: the page shows four at most."""
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_rounded(value) for value in part]
    return float(f"{part:.6g}") if isinstance(part, float) else part


def verdicts(folder: Path = FOLDER) -> Verdicts:
    found: Verdicts = json.loads((folder / VERDICTS).read_text(encoding="utf-8"))
    return found


# From files to the page -----------------------------------------------------------------------------------------------


def tables(folder: Path = FOLDER) -> dict[str, str]:
    """What stands between the markers of the page, by their names."""
    found, measured = verdicts(folder), load(folder)
    promises = found["promises"]
    return {
        "evidence-headline": headline(found),
        "evidence-theorems": _theorems(found, measured),
        "evidence-runs": _runs(found),
        "evidence-paper": _promises(promises[:OF_THE_PAPER]),
        "evidence-further": _promises(promises[OF_THE_PAPER:]),
        "evidence-broken": _broken(found["controls"]),
        "evidence-controls": _controls(found["controls"]),
        "evidence-spending": _spending(measured),
        **{f"evidence-{name}": table(measured).to_markdown() for name, table in PAGE_TABLES.items()},
    }


def headline(found: Verdicts) -> str:
    """How many promises hold, and how many broken learners are refuted; what does not is named."""
    by_status: dict[str, list[str]] = {status.value: [] for status in Status}
    for promise in found["promises"]:
        by_status[promise["verdict"]].append(promise["key"])
    holding, total = len(by_status["holds"]), len(found["promises"])
    first = f"All {total} promises hold" if holding == total else f"{holding} of {total} promises hold"
    others = [f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} {status}"
              for status, keys in by_status.items() if keys and status != "holds"]  # fmt: skip
    caught, names = _caught(found["controls"])
    second = f"all {names}" if caught == names else f"{caught} of {names}"
    told = f"{first} on running code{''.join(f', {words}' for words in others)}"
    return f"**{told}, and {second} learners that were broken on purpose are refuted.**"


def _caught(controls: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many broken learners are refuted by all promises that must do so, and how many there are."""
    names = {control["name"] for control in controls}
    missed = {control["name"] for control in controls if not control["caught"]}
    return len(names) - len(missed), len(names)


THEOREMS = (
    ("SV-OPS: the violation grows like √T", "T5"),
    ("SV-OPS: the regret grows like √T against any losses", "T6"),
    ("S-OPS: every episode is safe", "T7"),
    ("S-OPS: the regret grows like √T", "T10"),
    ("CV-OPS: the violation stays constant after the search", "T15"),
    ("CV-OPS: the regret after the search grows like √T", "T16"),
    ("a safe learner must have regret of order √T / ρ", "T17"),  # noqa: RUF001
)
"""Theorems 1 to 7, and the promises that check them"""


def _theorems(found: Verdicts, measured: Rows) -> str:
    """The theorems of the paper in one line each."""
    by_key = {promise["key"]: promise for promise in found["promises"]}
    words = _measured(by_key, measured["curves"])
    table = Table("", ["theorem", "what it promises", "checked by", "verdict", "measured"], num_text=5)
    for number, (promise, key) in enumerate(THEOREMS, 1):
        table.add_row(str(number), promise, key, _status(by_key[key]), words[key])
    return table.to_markdown()


def _measured(by_key: Mapping[str, Any], curves: Sequence[CurvePoint]) -> dict[str, str]:
    """The last column of the theorems."""
    violation, regret = (_exponent(curves, "soft-violation", "violation"), _exponent(curves, "soft-regret", "regret"))
    sharp, paper = (_exponent(curves, "safe-growth", "regret", preset=preset) for preset in ("sharp", "paper"))
    return {
        "T5": f"exponent {violation}; above the bound of the proof in {_offences(by_key['T5'])} runs",
        "T6": f"exponent {regret}, against an adaptive adversary",
        "T7": f"an unsafe episode on the clean event in {_offences(by_key['T7'])} runs",
        "T10": f"exponent {sharp} (sharp), {paper} (paper)",
        "T15": f"{_level(curves)}; an unsafe episode after the search on the clean event in "
        f"{_offences(by_key['T15'])} runs",
        "T16": f"exponent {_exponent(curves, 'constant', 'regret_after')}",
        "T17": _least(by_key["T17"]),
    }


def _exponent(points: Sequence[CurvePoint], group: str, quantity: str, **wanted: str) -> str:
    """The exponents between the two largest horizons, of the curves that reach furthest."""
    curves = [
        curve
        for curve in by_curve(points, group, quantity)
        if all(getattr(curve[0], name) == value for name, value in wanted.items()) and len(curve) > 1
    ]
    if not curves:
        return "not measured"
    longest = max(curve[-1].episodes for curve in curves)
    ends = sorted({f"{exponents(curve)[-1]:.2f}" for curve in curves if curve[-1].episodes == longest})
    return f"{' to '.join(dict.fromkeys((ends[0], ends[-1])))} at T = {longest:,}"


def _offences(promise: Mapping[str, Any]) -> str:
    """How often the first implication of a promise that must never fail did so: `0 of 72`."""
    figures = promise["figures"]
    prefix = next((name.removesuffix("cases") for name in figures if name.endswith("cases")), None)
    return "no" if prefix is None else f"{figures[prefix + 'offences']:.0f} of {figures[prefix + 'cases']:,.0f}"


def _level(points: Sequence[CurvePoint]) -> str:
    """The mean violation of CV-OPS at all horizons."""
    (curve,) = by_curve(points, "constant", "violation")
    shown = sorted({f"{point.mean:.1f}" for point in curve}, key=float)
    return f"{' to '.join(dict.fromkeys((shown[0], shown[-1])))} at T = {curve[0].episodes:,} to {curve[-1].episodes:,}"


def _least(promise: Mapping[str, Any]) -> str:
    """By how much the regret is above the lower bound."""
    found = re.search(r"R_2 at least ([\d.e+]+) times the bound", promise["sentence"])
    below = re.search(r"in (\d+) of (\d+) runs", promise["sentence"])
    if not found or not below:
        return str(promise["sentence"])
    return f"regret at least {found[1]} times the lower bound, below it in {below[1]} of {below[2]} runs"


def _status(promise: Mapping[str, Any]) -> TableCell:
    return TableCell(promise["verdict"], tone="strong" if promise["verdict"] != "holds" else "")


def _runs(found: Verdicts) -> str:
    """What was run, at which level."""
    first, *others = found["runs"]
    runs = f"{found['runs'][first]:,} runs by `hedgerow verify --{first} --figures`"
    shorter = {level: [one["key"] for one in found["promises"] if one["level"] == level] for level in others}
    told = [f"{', '.join(parts)} by `hedgerow verify --{level}`" for level, parts in shorter.items() if parts]
    if not told:
        return f"All verdicts are those of {runs}."
    return f"The verdicts are those of {runs}. Those whose runs at that level are missing: {'; '.join(told)}."


def _promises(promises: Sequence[Mapping[str, Any]]) -> str:
    heads = ["", "promise", "reference", "probability", "level", "runs", "verdict", "measured"]
    table = Table("", heads, num_text=len(heads))
    for one in promises:
        words = (one["key"], one["statement"], one["reference"], one["probability"])
        table.add_row(*words, one["level"], f"{one['runs']:,}", _status(one), one["sentence"])
    return table.to_markdown()


def _broken(controls: Sequence[Mapping[str, Any]]) -> str:
    caught, names = _caught(controls)
    refutations = sum(control["caught"] for control in controls)
    return (
        f"{names} learners with a deliberate error go through the same measurements and the same rules; {caught} of "
        f"them are refuted, by {refutations} of {len(controls)} verdicts."
    )


def _controls(controls: Sequence[Mapping[str, Any]]) -> str:
    heads = ["control", "broken", "judged by", "refuted", "measured"]
    table = Table("", heads, num_text=len(heads))
    for one in controls:
        table.add_row(one["name"], one["broken"], one["promise"], "yes" if one["caught"] else "NO", one["sentence"])
    return table.to_markdown()


def _spending(measured: Rows) -> str:
    """What the sets of `sharpest` spend, in one paragraph."""
    rows = [row for row in measured["coverage"] if row.preset == "sharpest"]
    runs = sum(row.runs for row in rows if row.kind == "any of them")
    above = [row for row in rows if row.failed / row.runs > row.allowed]
    refuted = [row for row in rows if row.low > row.allowed]
    unsafe = sum(row.failed for row in rows if row.kind == "unsafe")
    safe_runs = sum(row.runs for row in rows if row.kind == "unsafe")
    return (
        f"In {runs:,} runs of the preset `sharpest` with up to 5δ = {5 * max(row.delta for row in rows):g}, "
        f"{len(above)} of {len(rows)} shares of failures are above what is allowed, {len(refuted)} of them with their "
        f"whole interval. {unsafe} of {safe_runs:,} runs of S-OPS had an unsafe episode."
    )


def pictures(folder: Path = FOLDER) -> list[tuple[Any, Path]]:
    """The figures of the page and their files."""
    return [(plot, PICTURES / f"evidence-{name}.svg") for name, plot in plots(load(folder)).items()]


if __name__ == "__main__":
    if sys.argv[1:]:
        keep(list(map(Path, sys.argv[1:])))
    for marker, content in tables().items():
        write_into(PAGE, content, marker)
    save_figures(pictures(), FOR_DOCS)
    print(PAGE.relative_to(ROOT), *(path.relative_to(ROOT) for _, path in pictures()))
