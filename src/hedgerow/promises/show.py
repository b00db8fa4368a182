"""The table of a verification for people, and as Markdown."""

from __future__ import annotations

from pathlib import Path

from hedgerow import disk, paper
from hedgerow.output import Screen, Table
from hedgerow.promises.promise import Status
from hedgerow.promises.verify import Report

COLOURS = {Status.HOLDS: "green", Status.REFUTED: "bold red", Status.UNTESTED: "yellow"}


def show(report: Report) -> None:
    """Print promises and controls as tables, and the verdict of all."""
    out = Screen()
    columns = ["", "promise", "runs", "verdict", "measured"]
    promises = Table(f"promises of arXiv {paper.ARXIV}, level {report.level}", columns, num_text=5)
    for one in report.promises:
        status = one.verdict.status
        verdict = (status.value, COLOURS[status])
        promises.add_row(
            one.promise.key,
            f"{one.promise.statement} ({one.promise.reference})",
            f"{one.runs:,}",
            verdict,
            one.verdict.sentence,
        )
    out.table(promises)
    if report.controls:
        controls = Table("controls: broken on purpose", ["control", "broken", "by", "refuted", "measured"], num_text=5)
        for control in report.controls:
            caught = ("yes", "green") if control.caught else ("NO", "bold red")
            name, broken = control.control.name, control.control.broken
            controls.add_row(name, broken, control.promise, caught, control.verdict.sentence)
        out.table(controls)
    out.line(summary(report))


def summary(report: Report) -> str:
    """One line."""
    counts = {status: sum(one.verdict.status is status for one in report.promises) for status in Status}
    told = ", ".join(f"{count} {status.value}" for status, count in counts.items())
    caught = sum(one.caught for one in report.controls)
    controls = f"; controls refuted: {caught} of {len(report.controls)}" if report.controls else ""
    ending = "" if report.passed else "  FAILED"
    return f"{told}{controls}; {report.manifest['runs']} runs, {report.manifest['seconds']:.0f} s{ending}"


def markdown(report: Report) -> str:
    """The same tables for a page."""
    lines = ["| | promise | reference | probability | runs | verdict | measured |", "|---|---|---|---|---|---|---|"]
    for one in report.promises:
        promise, verdict = one.promise, one.verdict
        cells = (
            promise.key, promise.statement, promise.reference, promise.probability, f"{one.runs:,}",
            f"**{verdict.status.value}**", verdict.sentence,
        )  # fmt: skip
        lines.append(_row(cells))
    lines += ["", "| control | broken | judged by | refuted | measured |", "|---|---|---|---|---|"]
    for control in report.controls:
        caught = "yes" if control.caught else "**NO**"
        named = (control.control.name, control.control.broken, control.promise)
        lines.append(_row((*named, caught, control.verdict.sentence)))
    return "\n".join([*lines, "", summary(report), ""])


def write_markdown(report: Report, folder: Path) -> Path:
    """The tables as `verdicts.md`."""
    disk.save(folder / "verdicts.md", markdown(report).encode(), overwrite=True)
    return folder / "verdicts.md"


def _row(cells: tuple[str, ...]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
