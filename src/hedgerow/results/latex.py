"""Results as a LaTeX table, for the package booktabs: a group of rows for each setting, a row for each learner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from hedgerow.checks import FloatArray
from hedgerow.display.table import Cell, Table, latex_tables
from hedgerow.errors import InvalidInput
from hedgerow.results.groups import Group
from hedgerow.results.metrics import interquartile_interval, interquartile_mean

ABOUT = (
    r"Needs \usepackage{booktabs}.",
    "Interquartile means over seeds [95 % BCa bootstrap intervals]. Safe: seeds without an unsafe episode.",
    r"Margin: the least of all seeds and episodes. About 15 cm wide: across two columns, or in \footnotesize.",
)


def latex_table(groups: Sequence[Group], caption: str | None = None, label: str | None = None) -> str:
    """The table of all groups; `Results.to_latex` says more."""
    if not groups:
        raise InvalidInput("these results have no finished cell, so there is no table")
    for name, value in (("caption", caption), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"the {name} must be text, not {value!r}")
    if label is not None and not re.fullmatch(r"[^\s\\{}%#&$^_~,]+", label.replace("_", "-")):
        raise InvalidInput(rf"the label {label!r} must be something that \label takes, such as tab:results")
    constrained = any(group.constraints for group in groups)
    mixes = any((group.summary().mixing_total or 0.0) > 0.0 for group in groups)
    columns = ["Learner", "R_T", "V_T", "Net V_T", "Safe", *["Margin"] * constrained, *["Σ_t λ_t"] * mixes]
    tables = []
    for setting, members in groupby(groups, key=lambda group: group.setting):
        length = setting.episodes
        title = (setting.world, ", ", setting.adversary, ", ", lambda n, length=length: n.named("T", length))
        table = Table(title, columns)
        for group in members:
            table.add_row(*_cells(group, constrained, mixes))
        tables.append(table)
    return latex_tables(tables, about=ABOUT, caption=caption, label=label) + "\n"


def _cells(group: Group, constrained: bool, mixes: bool) -> list[Cell]:
    """For each column what is said, with the interval over seeds."""
    summary, worst = group.summary(), group.summary().worst_excess
    safe = f"{summary.safe}/{summary.seeds}"
    curves = (group.curve("regret"), group.violation(), group.net_violation())
    return [
        Cell(group.learner),
        *(_with_interval(curve[:, -1]) for curve in curves),
        Cell(safe if group.scored == "exact" else lambda n: n.nothing),
        *[Cell(lambda n: n.number(None if worst is None else -worst))] * constrained,
        *[_total(group)] * mixes,
    ]


def _total(group: Group) -> Cell:
    totals = group.noted("mixing_total")
    return Cell(lambda n: n.nothing) if totals is None else _with_interval(totals[:, -1])


def _with_interval(values: FloatArray) -> Cell:
    """The interquartile mean of the seeds (seeds,), and its interval where there are several that differ."""
    low, high = interquartile_interval(values)
    mean = float(interquartile_mean(values))
    return Cell(lambda n: n.number(mean), note=(lambda n: n.interval(low, high)) if low < high else "")
