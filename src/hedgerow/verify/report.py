"""The table of a verification: as data, for people, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from hedgerow import paper
from hedgerow.display.output import Screen, Table
from hedgerow.verify.controls import Control
from hedgerow.verify.judging import Claim, Status, Verdict

COLOURS = {Status.HOLDS: "green", Status.REFUTED: "bold red", Status.UNTESTED: "yellow"}


@dataclass(frozen=True)
class Judged:
    """A promise with its verdict, on sound learners or on a control that it must refute."""

    promise: Claim
    verdict: Verdict
    runs: int
    control: Control | None = None

    @property
    def caught(self) -> bool:
        return self.verdict.status is Status.REFUTED

    def as_data(self) -> dict[str, Any]:
        promise, verdict, control = self.promise, self.verdict, self.control
        if control is None:
            names = ("key", "statement", "reference", "probability")
            told = {**{name: getattr(promise, name) for name in names}, "refuted_if": promise.rule}
        else:
            told = {"name": control.name, "broken": control.broken, "promise": promise.key, "caught": self.caught}
        figures = {name: value if isfinite(value) else None for name, value in verdict.figures.items()}
        found = {"verdict": verdict.status.value, "sentence": verdict.sentence, "figures": figures}
        return {**told, "runs": self.runs, **found}


@dataclass(frozen=True)
class Report:
    """The verdicts on promises and controls."""

    level: str
    promises: tuple[Judged, ...]
    controls: tuple[Judged, ...]
    manifest: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether no promise is refuted, and every control is."""
        return not any(one.caught for one in self.promises) and all(one.caught for one in self.controls)

    def as_data(self) -> dict[str, Any]:
        told = {name: [one.as_data() for one in getattr(self, name)] for name in ("promises", "controls")}
        return {"passed": self.passed, **told, "manifest": self.manifest}

    def summary(self) -> str:
        """One line."""
        statuses = [one.verdict.status for one in self.promises]
        told = ", ".join(f"{statuses.count(status)} {status.value}" for status in Status)
        caught = sum(one.caught for one in self.controls)
        controls = f"; controls refuted: {caught} of {len(self.controls)}" if self.controls else ""
        ending = "" if self.passed else "  FAILED"
        return f"{told}{controls}; {self.manifest['runs']} runs, {self.manifest['seconds']:.0f} s{ending}"


def show(report: Report) -> None:
    """Print promises and controls as tables, and the overall verdict."""
    out, columns = Screen(), ["", "promise", "runs", "verdict", "measured"]
    promises = Table(f"promises of arXiv {paper.ARXIV}, level {report.level}", columns, num_text=5)
    for one in report.promises:
        promise, status = one.promise, one.verdict.status
        statement = f"{promise.statement} ({promise.reference})"
        promises.add_row(promise.key, statement, f"{one.runs:,}", (status.value, COLOURS[status]), one.verdict.sentence)
    out.table(promises)
    controls = Table("controls: broken on purpose", ["control", "broken", "by", "refuted", "measured"], num_text=5)
    for one in report.controls:
        data, caught = one.as_data(), ("yes", "green") if one.caught else ("NO", "bold red")
        controls.add_row(data["name"], data["broken"], data["promise"], caught, data["sentence"])
    if report.controls:
        out.table(controls)
    out.line(report.summary())


def markdown(report: Report) -> str:
    """The same tables for a page."""
    lines = ["| | promise | reference | probability | runs | verdict | measured |", "|---|---|---|---|---|---|---|"]
    for one in report.promises:
        p, status = one.promise, f"**{one.verdict.status.value}**"
        cells = (p.key, p.statement, p.reference, p.probability, f"{one.runs:,}", status, one.verdict.sentence)
        lines.append(_row(cells))
    lines += ["", "| control | broken | judged by | refuted | measured |", "|---|---|---|---|---|"]
    for one in report.controls:
        told, caught = one.as_data(), "yes" if one.caught else "**NO**"
        lines.append(_row((told["name"], told["broken"], told["promise"], caught, told["sentence"])))
    return "\n".join([*lines, "", report.summary(), ""])


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
