"""Columns: what a run leaves behind, declared once, beside the code that computes it.

A table, a summary, a page, the terminal and LaTeX read the declaration: they name no column of a learner themselves, so
that a learner may have columns that no other has. Declarations are plain data. They travel in the header of the table
of a run, where a reader finds them without the code of the learner.

    Column("infeasible", "int64", "infeasible", "projections without a solution", "sum", "whole", ("checks",))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

Type = Literal["bool", "int32", "int64", "float64"]
Reduce = Literal["mean", "sum", "rate", "largest", "least", "median", "seeds", ""]
Show = Literal["number", "sum", "whole", "fixed", "share"]
Shown = Literal["answer", "checks", "short", "latex", "board", "figures"]


class Column(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One quantity of a run: its name, what it means, how seeds are put together, where it is shown.

    A name alone declares a note: a number that is drawn over the episodes, and whose last values are averaged over
    seeds.

    Examples:
        >>> from hedgerow.results import Column
        >>> Column("temperature").head, Column("temperature", label="τ", tables=("answer", "figures")).head
        ('temperature', 'τ')
    """

    name: str
    """What it is called in tables and data; with `each`, followed by _0, _1, ... for the constraints."""
    type: Type = "float64"
    """The type in an Arrow table."""
    label: str = ""
    """The head of its column for people, such as "regret R_T", where _T stands for an index. By default its name.
    Columns of one label share a head; a learner that has several of them shows their sum."""
    words: str = ""
    """What it means, in a phrase; it stands below the tables that show it."""
    reduce: Reduce = "mean"
    """How the checkpoints of a run and then its seeds become one number. The number of a run is its last value, for
    "largest" and "least" that of all checkpoints. Over seeds: the "mean" with its interval, the "sum", the sum per
    episode played ("rate"), the "largest", the "least", the "median" of those that have one, or in how many "seeds" it
    is true, or 0. Empty: it has no such number, and is a curve only."""
    show: Show = "number"
    """How the number is written: a "number", a "sum" over episodes (where rounding counts as 0), a "whole" number, one
    of "fixed" decimals, or a "share" in percent."""
    tables: tuple[Shown, ...] = ("figures",)
    """Where it is shown: the "answer" and the "checks" of a page, the "short" table of terminals and notebooks,
    "latex", the "board" of a comparison, and as a curve in "figures"."""
    each: bool = False
    """Whether there is one for every constraint."""
    fact: bool = False
    """Whether it is one number for the whole run, not one per checkpoint."""
    least: float | None = None
    """The least value that it can have: an interval ends there."""

    @property
    def head(self) -> str:
        """Its label, or its name in words."""
        return self.label or self.name.replace("_", " ")


def spread(columns: Iterable[Column], num_constraints: int) -> Iterator[Column]:
    """Columns as they stand in a table: those of `each` constraint once for every one of them."""
    for column in columns:
        for i in range(num_constraints) if column.each else ():
            label = column.label and f"{column.label} {i}"
            yield msgspec.structs.replace(column, name=f"{column.name}_{i}", label=label, each=False)
        if not column.each:
            yield column
