"""Colours, and what every plot is made of: axes, ticks, curves with bands, lines. Plain data that plotly draws.

Each learner has one colour, everywhere, told apart by colour-blind readers too, on light and on dark: the palette of
Okabe and Ito, without its yellow, which fades on white. Figures are made in the light colours; `DARK` says what becomes
of each of them on a dark page. The figures of a setting (`figures`), of the benchmarks and of a verification are made
of these parts; `export` writes them.

>>> log_ticks(3.0, 40.0)[1]
['1', '2', '5', '10', '20', '50', '100', '200', '500']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10, nan
from typing import Any, NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.display.text import visible, with_indices
from hedgerow.errors import InvalidInput
from hedgerow.results.metrics import seed_interval

INK, SOFT, GRID, PAPER, LIMIT, FORBIDDEN = "#1b1b1a", "#5d5d5a", "#e4e4e1", "#ffffff", "#a3262c", "#f6e3e1"
GOOD = "#00734f"
"""Words of praise: the green of the palette, dark enough to be read as text"""

BLUE, GREEN, PURPLE, VERMILION = "#0072b2", "#009e73", "#b85c93", "#d55e00"
ORANGE, SKY, GREY = "#c98500", "#3a97c9", "#6e6e6e"

OF_KIND = {"sv-ops": BLUE, "s-ops": GREEN, "cv-ops": PURPLE, "uob-reps": VERMILION, "b-ops": ORANGE, "c-ops": SKY}
"""The first learner of a kind has this colour in every report."""
FURTHER = (ORANGE, SKY, GREY, VERMILION, PURPLE, BLUE, GREEN)
DASHES = ("solid", "dash", "dashdot", "longdash", "dot")

DARK = {
    INK: "#e8e8e4",
    SOFT: "#a9a9a3",
    GRID: "#383836",
    PAPER: "#191918",
    LIMIT: "#ff8f88",
    FORBIDDEN: "#3b2322",
    GOOD: "#2cc79b",
    BLUE: "#4aa8e0",
    GREEN: "#2cc79b",
    PURPLE: "#dc8fbd",
    VERMILION: "#f5873d",
    ORANGE: "#e8b13c",
    SKY: "#8fd0f5",
    GREY: "#a6a6a6",
}


class LineStyle(NamedTuple):
    """How a learner is drawn."""

    colour: str
    dash: str


def pens(learners: Iterable[tuple[str, str]]) -> dict[str, LineStyle]:
    """A pen for each learner, from (name, kind) pairs in the order of the report; no two are the same."""
    given: dict[str, LineStyle] = {}
    for name, kind in learners:
        if name in given:
            continue
        wanted = [LineStyle(OF_KIND[kind], DASHES[0])] if kind in OF_KIND else []
        spare = [LineStyle(colour, dash) for dash in DASHES for colour in FURTHER]
        free = [pen for pen in (*wanted, *spare) if pen not in given.values()]
        # The colours of kinds that are still to come stay free as long as there are others.
        reserved = {OF_KIND[other] for _, other in learners if other in OF_KIND}
        best = [pen for pen in free if pen in wanted or pen.colour not in reserved] or free
        given[name] = best[0] if best else LineStyle(GREY, DASHES[-1])
    return given


# What every plot is made of -------------------------------------------------------------------------------------------

Trace = dict[str, Any]
Plot = dict[str, Any]
"""What plotly takes: a list of traces under `data`, everything else under `layout`."""

MOST_POINTS = 120
"""Of a curve: so many checkpoints are drawn, the first and the last among them."""
DIGITS = 6
"""Significant digits of the numbers in a plot."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE = 13
LINE_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
FEW_POINTS = 20
"""Up to so many points of a line have a mark."""


@dataclass(frozen=True)
class Line:
    """Points (x, y) under one name. A point that is not positive has no place on logarithmic axes and is left out."""

    name: str
    points: Sequence[tuple[float, float]]
    dash: str = "solid"
    """As plotly calls it: solid, dash, dashdot, ..."""
    colour: int | None = None
    """Which of the colours; by default every line has its own"""
    reference: bool = False
    """Something to compare with: in the colour of the axes, without marks, dotted unless `dash` says otherwise"""
    intervals: Sequence[tuple[float, float]] = ()
    """(low, high) around every point, drawn as bars; an end that is not finite, or not positive, is not drawn"""


def log_plot(title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> Plot:
    """Lines on two logarithmic axes, with a title and a legend, for `hr.save_figure`; refused without any point."""
    drawn = [
        _line(line, i if line.colour is None else line.colour, kept)
        for i, line in enumerate(lines)
        if (kept := [place for place, point in enumerate(line.points) if _is_positive(point)])
    ]
    if not drawn:
        raise InvalidInput(f"the plot {title!r} has no point with two positive coordinates: there is nothing to draw")
    return titled(plot(drawn, x_label, y_label, log_x=True, log_y=True), title)


def titled(made: Plot, title: str, subtitle: str = "") -> Plot:
    """The plot with a title and a legend, for places that have no words of their own around it."""
    words: dict[str, Any] = {"text": plot_text(title), "x": 0.02, "xanchor": "left", "font": {"size": FONT_SIZE + 2}}
    if subtitle:
        words["subtitle"] = {"text": plot_text(subtitle), "font": {"size": FONT_SIZE - 1, "color": SOFT}}
    margin = {**made["layout"]["margin"], "t": 70 if subtitle else 54}
    return {**made, "layout": {**made["layout"], "title": words, "showlegend": True, "margin": margin}}


def words_only(words: str) -> Plot:
    """A plot that says why it is empty, such as that no learner violated anything."""
    made = plot([], "", "")
    for axis in ("xaxis", "yaxis"):
        made["layout"][axis] = {"visible": False}
    middle = {"xref": "paper", "x": 0.5, "yref": "paper", "y": 0.5}
    made["layout"]["annotations"] = [{"text": plot_text(words), "showarrow": False, **middle}]
    return made


def _is_positive(point: tuple[float, float]) -> bool:
    return all(value > 0.0 and isfinite(value) for value in point)


def _line(line: Line, place: int, kept: Sequence[int]) -> Trace:
    """The points of a line at these places."""
    points = [line.points[i] for i in kept]
    colour = INK if line.reference else LINE_COLOURS[place % len(LINE_COLOURS)]
    again = place // len(LINE_COLOURS)  # colours begin anew: other marks, so that no two lines look the same
    usual = "dot" if line.reference else "dash" if again % 2 else "solid"
    dash = usual if line.dash == "solid" else line.dash
    marked = len(points) <= FEW_POINTS and not line.reference
    return {
        "type": "scatter",
        "mode": "lines+markers" if marked else "lines",
        "name": plot_text(line.name),
        "x": _list(np.array([x for x, _ in points])),
        "y": _list(np.array([y for _, y in points])),
        "line": {"width": 1.5 if line.reference else 2, "color": colour, "dash": dash},
        **({"marker": {"size": 6, "color": colour, "symbol": SYMBOLS[again % len(SYMBOLS)]}} if marked else {}),
        **({"error_y": error_bars([y for _, y in points], [_positive_ends(line.intervals[i]) for i in kept], colour)}
           if line.intervals else {}),
    }  # fmt: skip


def _positive_ends(interval: tuple[float, float]) -> tuple[float, float]:
    """The interval without a lower end that has no place on a logarithmic axis."""
    low, high = interval
    return (low if low > 0.0 else nan), high


def error_bars(values: Sequence[float], intervals: Sequence[tuple[float, float]], colour: str) -> dict[str, Any]:
    """Bars from `low` to `high` around every value."""
    ends = [(value - low, high - value) for value, (low, high) in zip(values, intervals, strict=True)]
    below, above = (_list(np.array(side)) for side in zip(*ends, strict=True))
    bars = {"array": above, "arrayminus": below, "symmetric": False}
    return {"type": "data", **bars, "thickness": 1, "width": 3, "color": colour}


def plot_text(value: object) -> str:
    """Anything as text in a plot: plotly reads tags, but knows of no quotation marks that are written as `&quot;`."""
    return escape(visible(value), quote=False)


def _label(words: str) -> str:
    """The words of an axis, with the indices of R_t, λ_t, ... lowered."""
    return with_indices(plot_text(words))


# Parts of a plot ------------------------------------------------------------------------------------------------------


def curve(
    name: str,
    pen: LineStyle,
    t: IntArray,
    values: FloatArray,
    *,
    ends: tuple[FloatArray, FloatArray] | None = None,
    floor: float | None = None,
    least: float | None = None,
) -> list[dict[str, Any]]:
    """The mean of `values` (seeds, C) over seeds, and a band: its interval, not below `least`, or what `ends` says.

    Below `floor` nothing is drawn: logarithms have no zero.
    """
    line, low, high = seed_interval(values, least)
    low, high = ends or (low, high)
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


def fit_line(name: str, t: FloatArray, values: FloatArray) -> dict[str, Any]:
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


def plot(
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
            "font": {"family": FONT, "size": FONT_SIZE, "color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "margin": {"l": 60, "r": 24, "t": 24, "b": 46},
            "hovermode": "x unified",
            "hoverlabel": {"bgcolor": PAPER, "bordercolor": GRID, "font": {"color": INK}, "namelength": -1},
            "showlegend": False,
            "xaxis": {**_axis(x_label, numbers(traces, "x"), log_x), "tickformat": "" if log_x else "~s"},
            "yaxis": _axis(y_label, numbers(traces, "y"), log_y),
        },
    }


def _axis(label: str, values: list[float], logarithmic: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": {"text": _label(label), "standoff": 8, "font": {"size": 13, "color": SOFT}},
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
        places, labels = log_ticks(min(values, default=1.0), max(values, default=10.0))
        return {**axis, "type": "log", "tickmode": "array", "tickvals": places, "ticktext": labels}
    return {**axis, "type": "linear", "nticks": 6, "tickformat": ",.6~f"}


def log_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
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


def numbers(traces: list[dict[str, Any]], name: str) -> list[float]:
    return [value for trace in traces for value in trace[name] if value is not None]


def corner_label(words: str) -> dict[str, Any]:
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


def forbidden(lowest: float) -> dict[str, Any]:
    """The region in which a constraint is violated."""
    return {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": short(lowest),
        "y1": 0,
        "fillcolor": FORBIDDEN,
        "line": {"width": 0},
        "layer": "below",
    }


def level(value: float) -> dict[str, Any]:
    """A line across a plot: a threshold."""
    ends = {"x0": 0, "x1": 1, "y0": short(value), "y1": short(value)}
    return {"type": "line", "xref": "paper", "yref": "y", **ends, "line": {"color": LIMIT, "width": 2}}


def thin(t: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """At most MOST_POINTS of the checkpoints, evenly chosen."""
    chosen = np.unique(np.round(np.linspace(0, len(t) - 1, min(MOST_POINTS, len(t)))).astype(np.int64))
    return t[chosen], values[:, chosen]


def _list(values: FloatArray | IntArray) -> list[float | None]:
    """Numbers of a few digits; None where there is none."""
    return [short(value) if np.isfinite(value) else None for value in values.tolist()]


def short(value: float) -> float:
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 2**53 else short
