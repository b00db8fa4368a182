"""Results as a LaTeX table, for the package booktabs: a group of rows for each setting, a row for each learner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from hedgerow.display.table import Piece, Table, latex_tables
from hedgerow.errors import InvalidInput
from hedgerow.results.groups import Group, Setting, heads, table_row

ABOUT = (
    r"Needs \usepackage{booktabs}.",
    "Means over seeds [95 % intervals, Student's; none for one seed, or for seeds that agree].",
    "Safe: seeds without an unsafe episode. Worst margin: the least of all seeds and episodes.",
    r"About 15 cm wide: across two columns, or in \footnotesize.",
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
    shown = list(heads(groups, "latex"))
    columns = ["Learner", *(name[:1].upper() + name[1:] for name in shown)]
    tables = []
    for setting, members in groupby(groups, key=lambda group: group.setting):
        table = Table((setting.world, ", ", setting.adversary, ", ", _length(setting)), columns)
        for group in members:
            table.add_row(group.learner, *table_row(group, "latex", shown))
        tables.append(table)
    return latex_tables(tables, about=ABOUT, caption=caption, label=label) + "\n"


def _length(setting: Setting) -> Piece:
    return lambda numbers: numbers.named("T", setting.episodes)
