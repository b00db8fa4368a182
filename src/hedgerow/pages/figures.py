"""The figures of a setting, as plain data that plotly draws: in the page and, by `export`, in files.

Lines are interquartile means over seeds, bands the middle half of the seeds; only margins, which are about safety, show
the median and the whole range. Curves are thinned to `MOST_POINTS` checkpoints, first and last included.
"""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.pages.colours import FORBIDDEN, GRID, INK, LIMIT, PAPER, SOFT, Pen
from hedgerow.pages.words import fixed, interval, number, plot_text, subscripts
from hedgerow.results.groups import Group
from hedgerow.results.metrics import REGRET, interquartile_mean

MOST_POINTS = 120
MOST_NOTES = 6
"""Figures of what learners note of their own, in one setting."""
DIGITS = 6
"""Significant digits of the numbers in a page."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
Pens = dict[str, Pen]


@dataclass(frozen=True)
class Figure:
    """A figure with its words: `plot` is what plotly takes, None where there is nothing to draw."""

    name: str
    """Part of file names"""
    title: str
    note: str
    """What is drawn, below the title; plain text, in which R_t has a lowered t"""
    plot: dict[str, Any] | None
    empty: str = ""
    """What to say instead of an empty plot"""
    found: str = ""
    """What follows the note: numbers beside names of learners, which are left as they are"""


def figures(groups: Sequence[Group], pens: Pens) -> list[Figure]:
    """All figures of one setting."""
    return [
        regret_figure(groups, pens),
        growth_figure(groups, pens),
        violation_figure(groups, pens),
        *[margin_figure(groups, pens, i) for i in range(len(groups[0].constraints))],
        mixing_figure(groups, pens),
        *[note_figure(groups, pens, name) for name in noted_by(groups)],
    ]


def regret_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        t, values = _thin(group.episodes, group.curve(REGRET))
        traces += _curve(group.learner, pens[group.learner], t, values)
    return Figure(
        "regret",
        "Regret",
        "R_t after t episodes, against the best policy for the losses of these t episodes. "
        "Line: interquartile mean over seeds; band: their middle half.",
        _plot(traces, "episodes t", "regret R_t") if _numbers(traces, "y") else None,
        "No policy respects the constraints of this world, so that there is no optimum to compare with.",
    )


def growth_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces, fits, found = [], [], []
    for group in groups:
        t, values = _thin(group.episodes, group.curve(REGRET))
        mean = interquartile_mean(values)
        if not np.any(mean > 0.0):
            continue
        pen, growth = pens[group.learner], group.summary().regret_growth
        traces += _curve(group.learner, pen, t, values, floor=0.3 * float(np.min(mean[mean > 0.0])))
        if np.isfinite(growth.exponent):
            late = t[t >= growth.first].astype(np.float64)
            fits.append(_fit_line(group.learner, late, growth.factor * late**growth.exponent))
            ends = interval(growth.low, growth.high)
            found.append(f"{group.learner}: {fixed(growth.exponent)}{' ' + ends if ends else ''}")
    exponents = "; ".join(found) or "none, the regret is not positive over the last decade"
    return Figure(
        "regret-growth",
        "Regret, both axes logarithmic",
        "Dotted: fitted c·t^b over the last decade of episodes. Exponents b with 95 % intervals: ",
        _plot([*traces, *fits], "episodes t", "regret R_t", log_x=True, log_y=True) if traces else None,
        "No learner has a positive regret.",
        f"{exponents}.",
    )


def violation_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        t, values = _thin(group.episodes, group.violation())
        traces += _curve(group.learner, pens[group.learner], t, values)
    violated = any(np.any(group.violation() > 0.0) for group in groups)
    return Figure(
        "violation",
        "Violation",
        "V_t = max_i Σ [g_i·q − α_i]⁺: what the episodes so far exceed the threshold of the worst one by, summed.",
        _plot(traces, "episodes t", "violation V_t") if violated else None,
        "No learner exceeded a threshold in any episode." if groups[0].constraints else "There are no constraints.",
    )


def margin_figure(groups: Sequence[Group], pens: Pens, i: int) -> Figure:
    traces, least, most = [], 0.0, 0.0
    for group in groups:
        t, values = _thin(group.episodes, group.margin(i))
        least, most = min(least, float(np.min(values))), max(most, float(np.max(values)))
        ends = np.min(values, axis=0), np.max(values, axis=0)
        traces += _curve(group.learner, pens[group.learner], t, values, centre=np.median(values, axis=0), ends=ends)
    room = 0.14 * max(most - least, 1e-9)  # below all curves: where the label of the shaded region stands
    name, threshold = groups[0].constraints[i], groups[0].thresholds[i]
    plot = _plot(traces, "episode t", "margin", log_x=True)
    layout = plot["layout"]
    layout["yaxis"]["range"] = [_short(least - room), _short(most + 0.5 * room)]
    layout["yaxis"] |= {"zeroline": True, "zerolinecolor": LIMIT, "zerolinewidth": 2}
    layout["shapes"] = [_forbidden(least - room)]
    layout["annotations"] = [_corner_label(f"below the line: over the threshold of {number(threshold)}")]
    return Figure(
        f"margin-{i}",
        f"Margin: {name}",
        f"Threshold {number(threshold)} minus the expected cost of episode t; below 0 (shaded) the episode is unsafe. "
        "Line: median over seeds; band: all seeds.",
        plot,
    )


def mixing_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        if not group.has("mixing_weight"):
            continue
        t, values = _thin(group.episodes, group.curve("mixing_weight"))
        if np.any(values > 0.0):
            traces += _curve(group.learner, pens[group.learner], t, values)
    plot = _plot(traces, "episode t", "mixing weight λ_t", log_x=True)
    plot["layout"]["yaxis"]["range"] = [-0.03, 1.03]
    return Figure(
        "mixing",
        "Mixing weight",
        "λ_t: the probability with which episode t is left to the safe baseline. Learners without one are not shown.",
        plot if traces else None,
        "No learner here mixes with a safe baseline.",
    )


def noted_by(groups: Sequence[Group]) -> list[str]:
    """What the learners of a setting noted of their own, at most MOST_NOTES names."""
    return list(dict.fromkeys(name for group in groups for name in group.notes))[:MOST_NOTES]


def note_figure(groups: Sequence[Group], pens: Pens, name: str) -> Figure:
    traces = []
    for group in groups:
        if name in group.notes:
            t, values = _thin(group.episodes, group.curve(name))
            known = np.all(np.isfinite(values), axis=0)
            traces += _curve(group.learner, pens[group.learner], t[known], values[:, known]) if np.any(known) else []
    words = (
        "What the learners note under this name in episode t. Line: interquartile mean over seeds; band: middle half."
    )
    plot = _plot(traces, "episode t", name, log_x=True) if traces else None
    return Figure(f"note-{name}", f"Note: {name}", words, plot, "Nothing was noted at these checkpoints.")


# Parts of a plot ------------------------------------------------------------------------------------------------------


def _curve(
    name: str,
    pen: Pen,
    t: IntArray,
    values: FloatArray,
    *,
    centre: FloatArray | None = None,
    ends: tuple[FloatArray, FloatArray] | None = None,
    floor: float | None = None,
) -> list[dict[str, Any]]:
    """A band and a line; `values` (seeds, C). Below `floor` nothing is drawn: logarithms have no zero."""
    line = interquartile_mean(values) if centre is None else centre
    low, high = ends if ends is not None else tuple(np.quantile(values, [0.25, 0.75], axis=0))
    if floor is not None:
        kept = (line > 0.0) & (high > 0.0)
        t, line, low, high = t[kept], line[kept], np.maximum(low[kept], floor), np.maximum(high[kept], floor)
    traces = []
    if len(values) > 1:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": _list(np.concatenate([t, t[::-1]])),
                "y": _list(np.concatenate([high, low[::-1]])),
                "fill": "toself",
                "fillcolor": pen.colour,
                "opacity": 0.16 if ends is None else 0.1,
                "line": {"width": 0, "color": pen.colour},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": plot_text(name),
            "x": _list(t),
            "y": _list(line),
            "line": {"width": 2, "color": pen.colour, "dash": pen.dash},
            "hovertemplate": "%{y:.4~g}",
        }
    )
    return traces


def _fit_line(name: str, t: FloatArray, values: FloatArray) -> dict[str, Any]:
    ends = [0, -1]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot_text(f"{name}, fit"),
        "x": _list(t[ends]),
        "y": _list(values[ends]),
        "line": {"width": 1.5, "color": INK, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _plot(
    traces: list[dict[str, Any]],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> dict[str, Any]:
    """The whole of what plotly takes."""
    return {
        "data": traces,
        "layout": {
            "font": {"family": FONT, "size": 13, "color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "margin": {"l": 60, "r": 24, "t": 24, "b": 46},
            "hovermode": "x unified",
            "hoverlabel": {"bgcolor": PAPER, "bordercolor": GRID, "font": {"color": INK}, "namelength": -1},
            "showlegend": False,
            "xaxis": {**_axis(x_label, _numbers(traces, "x"), log_x), "tickformat": "" if log_x else "~s"},
            "yaxis": _axis(y_label, _numbers(traces, "y"), log_y),
        },
    }


def _axis(label: str, values: list[float], logarithmic: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": {"text": subscripts(label), "standoff": 8, "font": {"size": 13, "color": SOFT}},
        "gridcolor": GRID,
        "linecolor": SOFT,
        "tickcolor": SOFT,
        "ticks": "outside",
        "ticklen": 4,
        "zeroline": not logarithmic,
        "zerolinecolor": SOFT,
        "zerolinewidth": 1,
        "automargin": True,
    }
    if logarithmic:
        places, labels = _log_ticks(min(values, default=1.0), max(values, default=10.0))
        return {**axis, "type": "log", "tickmode": "array", "tickvals": places, "ticktext": labels}
    return {**axis, "type": "linear", "nticks": 6, "tickformat": ",.6~f"}


def _log_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Powers of ten from below `low` to above `high`; with 2 and 5 times them where these are few."""
    first, last = floor(log10(low)), ceil(log10(high))
    factors = (1, 2, 5) if log10(high) - log10(low) < 2.0 else (1,)
    every = max(1, ceil((last - first) / 8))
    ticks = [(power, factor) for power in range(first, last + 1, every) for factor in factors]
    return [factor * 10.0**power for power, factor in ticks], [_power(power, factor) for power, factor in ticks]


def _power(power: int, factor: int) -> str:
    """`0.01`, `200`, `10⁴`, `5·10⁴`."""
    if -3 <= power <= 2:
        return f"{factor * 10.0**power:g}"
    raised = "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if factor == 1 else f"{factor}·{raised}"


def _numbers(traces: list[dict[str, Any]], name: str) -> list[float]:
    return [value for trace in traces for value in trace[name] if value is not None]


def _corner_label(words: str) -> dict[str, Any]:
    """Words in the lower left corner of a plot."""
    return {
        "text": words,
        "showarrow": False,
        "xref": "paper",
        "x": 0.01,
        "xanchor": "left",
        "yref": "paper",
        "y": 0,
        "yanchor": "bottom",
        "font": {"color": LIMIT, "size": 12},
    }


def _forbidden(lowest: float) -> dict[str, Any]:
    """The region in which a constraint is violated."""
    return {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": _short(lowest),
        "y1": 0,
        "fillcolor": FORBIDDEN,
        "line": {"width": 0},
        "layer": "below",
    }


def _thin(t: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """At most MOST_POINTS of the checkpoints, evenly chosen."""
    chosen = np.unique(np.round(np.linspace(0, len(t) - 1, min(MOST_POINTS, len(t)))).astype(np.int64))
    return t[chosen], values[:, chosen]


def _list(values: FloatArray | IntArray) -> list[float | None]:
    """Numbers of a few digits; None where there is none."""
    return [_short(value) if np.isfinite(value) else None for value in values.tolist()]


def _short(value: float) -> float:
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 2**53 else short
