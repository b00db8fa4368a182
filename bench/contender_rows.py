"""Rows of contenders that took turns on the same work, and their table: who, how it ended, how long, how many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.timing import Spread, duration
from hedgerow.display.table import Table


@dataclass(frozen=True)
class ContenderRow:
    """One contender in one world; times are in seconds, None if it could not run."""

    world: str
    triples: int
    contender: str
    status: str
    time: Spread | None = None
    factor: float | None = None
    """How many times as long as ours"""


R = TypeVar("R", bound=ContenderRow)


def tables_by_world(
    rows: Sequence[R], factor: str, residuals: Sequence[str], cells: Callable[[R], Sequence[float | None]]
) -> Iterator[Table]:
    """A table per world; `factor` heads the column of factors, `residuals` those of what `cells` finds in a row."""
    columns = ["contender", "status", "median", "p10 - p90", "n", factor, *residuals]
    for label in dict.fromkeys(row.world for row in rows):
        own = [row for row in rows if row.world == label]
        table = Table(f"{label}: {own[0].triples} triples", columns, num_text=2)
        for row in own:
            shown = ["-" if value is None else f"{value:.0e}" for value in cells(row)]
            table.add_row(row.contender, row.status, *_times(row), *shown)
        yield table


def _times(row: ContenderRow) -> list[str]:
    """Median, spread, number and factor."""
    if row.time is None:
        return ["-"] * 4
    spread = f"{duration(row.time.p10)} - {duration(row.time.p90)}"
    factor = "-" if row.factor is None else (f"{row.factor:.0f}" if row.factor >= 10 else f"{row.factor:.2f}")
    return [duration(row.time.median), spread, str(row.time.count), factor]
