r"""Results as a LaTeX table, for the package booktabs: a group of rows for each setting, a row for each learner.

Intervals have a smaller line of their own below the means: side by side, seven columns are wider than a page.

>>> number(-1234567.0), number(0.00012), number(float("nan"))
('$-1{,}234{,}570$', '$1.2 \\cdot 10^{-4}$', '--')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from math import floor, isfinite, log10

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.results.groups import Group, Setting
from hedgerow.results.latex_text import SIGN, SIGN_MACRO, escaped
from hedgerow.results.metrics import interquartile_interval, interquartile_mean

NOTHING = "--"
DIGITS = 4
"""Significant digits of a number; those before the point are shown up to the sixth."""


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
    columns = ["Learner", "$R_T$", "$V_T$", "Net $V_T$", "Safe"]
    columns += ["Margin"] * constrained + [r"$\sum_t \lambda_t$"] * mixes
    lines = [r"\begin{tabular}{l" + "r" * (len(columns) - 1) + "}", r"\toprule", _row(columns)]
    for setting, members in groupby(groups, key=lambda group: group.setting):
        lines += [r"\midrule", rf"\multicolumn{{{len(columns)}}}{{l}}{{{_heading(setting)}}} \\"]
        lines += [line for group in members for line in _rows(_cells(group, constrained, mixes))]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption is not None or label is not None:
        told = [rf"\caption{{{caption}}}"] * (caption is not None) + [rf"\label{{{label}}}"] * (label is not None)
        lines = [r"\begin{table}", r"\centering", *told, *lines, r"\end{table}"]
    needed = [SIGN_MACRO] if any(SIGN in line for line in lines) else []
    return "\n".join([_ABOUT, *needed, *lines]) + "\n"


_ABOUT = r"""% Needs \usepackage{booktabs}.
% Interquartile means over seeds [95 % BCa bootstrap intervals]. Safe: seeds without an unsafe episode.
% Margin: the least of all seeds and episodes. About 15 cm wide: across two columns, or in \footnotesize."""


def _heading(setting: Setting) -> str:
    return rf"\emph{{{escaped(setting.world)}, {escaped(setting.adversary)}, $T = {_grouped(setting.episodes)}$}}"


def _cells(group: Group, constrained: bool, mixes: bool) -> list[tuple[str, str]]:
    """For each column what is said, and the interval below it."""
    summary, known = group.summary(), group.scored == "exact"
    cells = [
        (escaped(group.learner), ""),
        _with_interval(group.curve("regret")[:, -1]),
        _with_interval(group.violation()[:, -1]),
        _with_interval(group.net_violation()[:, -1]),
        (f"{summary.safe}/{summary.seeds}" if known else NOTHING, ""),
    ]
    if constrained:
        cells.append((NOTHING if summary.worst_excess is None else number(-summary.worst_excess), ""))
    if mixes:
        totals = group.noted("mixing_total")
        cells.append((NOTHING, "") if totals is None else _with_interval(totals[:, -1]))
    return cells


def _rows(cells: Sequence[tuple[str, str]]) -> list[str]:
    values, intervals = zip(*cells, strict=True)
    small = [rf"{{\scriptsize {interval}}}" if interval else "" for interval in intervals]
    return [_row(values), *([_row(small)] if any(intervals) else [])]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _with_interval(values: FloatArray) -> tuple[str, str]:
    """The interquartile mean of the seeds (seeds,), and its interval where there are several that differ."""
    low, high = interquartile_interval(values)
    mean = number(float(interquartile_mean(values)))
    return mean, f"[{number(low)}, {number(high)}]" if low < high else ""


def number(value: float, digits: int = DIGITS) -> str:
    """About `digits` significant digits in mathematical mode, thousands apart; very small ones in powers of ten."""
    if not isfinite(value):
        return NOTHING
    if value == 0.0:
        return "$0$"
    power = floor(log10(abs(value)))
    sign = "-" if value < 0.0 else ""
    if power < -3 or power >= 9:
        factor, _, exponent = f"{abs(value):.{digits - 1}e}".partition("e")
        factor = factor.rstrip("0").rstrip(".")
        return rf"${sign}{factor} \cdot 10^{{{int(exponent)}}}$"
    places = max(0, digits - 1 - power)
    if places == 0:
        return f"${sign}{_grouped(round(abs(value), min(0, 5 - power)))}$"
    shown = f"{abs(value):,.{places}f}".replace(",", "{,}")
    return f"${sign}{shown.rstrip('0').rstrip('.')}$"


def _grouped(value: float) -> str:
    return f"{int(value):,}".replace(",", "{,}")
