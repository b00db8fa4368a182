"""The table of a verification: as data, for people, and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from hedgerow import paper
from hedgerow.display.screen import Screen
from hedgerow.display.table import Table, TableCell
from hedgerow.verify.controls import Control
from hedgerow.verify.judging import Claim, Status, Verdict

TONES = {Status.HOLDS: "good", Status.REFUTED: "bad", Status.UNTESTED: "open"}


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
    out = Screen()
    for table in _tables(report):
        out.table(table)
    out.line(report.summary())


def markdown(report: Report) -> str:
    """The same tables for a page."""
    return "\n\n".join([*(table.to_markdown() for table in _tables(report)), report.summary(), ""]).rstrip() + "\n"


def _tables(report: Report) -> list[Table]:
    columns = ["", "promise", "probability", "runs", "verdict", "measured"]
    promises = Table(f"promises of arXiv {paper.ARXIV}, level {report.level}", columns, num_text=6)
    for one in report.promises:
        promise, verdict = one.promise, one.verdict
        status = TableCell(verdict.status.value, tone=TONES[verdict.status])
        statement = f"{promise.statement} ({promise.reference})"
        promises.add_row(promise.key, statement, promise.probability, f"{one.runs:,}", status, verdict.sentence)
    controls = Table("controls: broken on purpose", ["control", "broken", "by", "refuted", "measured"], num_text=5)
    for one in report.controls:
        data, caught = one.as_data(), TableCell("yes", tone="good") if one.caught else TableCell("NO", tone="bad")
        controls.add_row(data["name"], data["broken"], data["promise"], caught, data["sentence"])
    return [promises, controls] if report.controls else [promises]
