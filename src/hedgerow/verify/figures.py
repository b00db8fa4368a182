"""The figures of a verification, drawn from its tables (`tables.py`); every mean and every share has its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import Any

from hedgerow.report.plots import (
    GRID,
    INK,
    LINE_COLOURS,
    SYMBOLS,
    Line,
    Plot,
    error_bars,
    log_plot,
    log_ticks,
    plot,
    titled,
)
from hedgerow.verify.tables import SETS, CalibrationRow, CurvePoint, Rows, by_curve

Lines = list[Line]


def plots(tables: Rows) -> dict[str, Plot]:
    """What plotly takes, by name; figures without runs are left out."""
    found = {name: (lines_of(tables["curves"]), title, x, y) for name, (lines_of, title, x, y) in CURVES.items()}
    drawn = {name: log_plot(title, x, y, lines) for name, (lines, title, x, y) in found.items() if lines}
    if tables["coverage"]:
        drawn["coverage"] = coverage_plot(tables)
    if tables["calibration"]:
        drawn["calibration"] = calibration_plot(tables["calibration"])
    return drawn


# Growth, the lower bound, the margin ----------------------------------------------------------------------------------


def _line(name: str, curve: Sequence[CurvePoint]) -> Line:
    """Means with their intervals, under a name that says how many seeds each of them has."""
    return _line_over(name, curve, [float(point.episodes) for point in curve])


def _line_over(name: str, curve: Sequence[CurvePoint], places: Sequence[float]) -> Line:
    points = [(place, point.mean) for place, point in zip(places, curve, strict=True)]
    return Line(f"{name} ({seeds_of(curve)})", points, intervals=[(point.low, point.high) for point in curve])


def seeds_of(curve: Sequence[CurvePoint]) -> str:
    """How many seeds its points have, in words."""
    return f"{_span([point.seeds for point in curve])} seeds"


def _span(counts: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(f"{count:,}" for count in (min(counts), max(counts))))


def _root(line: Line) -> Line:
    """sqrt(T) through the last point of a line."""
    (first, _), (last, value) = line.points[0], line.points[-1]
    return Line("slope 1/2", [(first, value * sqrt(first / last)), (last, value)], reference=True)


def _linear(line: Line) -> Line:
    """T through the first point of a line."""
    (first, value), (last, _) = line.points[0], line.points[-1]
    return Line("slope 1", [(first, value), (last, value * last / first)], dash="dash", reference=True)


def _soft(points: Sequence[CurvePoint]) -> Lines:
    violations = by_curve(points, "soft-violation", "violation")
    lines = [_line(f"V, {curve[0].world}, {curve[0].preset}", curve) for curve in violations]
    regrets = by_curve(points, "soft-regret", "regret")
    lines += [_line(f"R, {curve[0].world}", curve) for curve in regrets if curve[0].adversary == "noisy"]
    return [*lines, _linear(lines[0]), _root(lines[0])] if lines else []


def _safe(points: Sequence[CurvePoint]) -> Lines:
    lines = [
        _line(f"{word}, {curve[0].preset}", curve)
        for word, name in (("sum of weights", "mixing_total"), ("regret", "regret"))
        for curve in by_curve(points, "safe-growth", name)
    ]
    return [*lines, _linear(lines[0]), _root(lines[0])] if lines else []


def _constant(points: Sequence[CurvePoint]) -> Lines:
    names = {"violation V": "violation", "end of the search": "t_bar", "regret after it": "regret_after"}
    lines = [_line(word, curve) for word, name in names.items() for curve in by_curve(points, "constant", name)]
    return [*lines, _root(lines[-1])] if lines else []


def _lower(points: Sequence[CurvePoint]) -> Lines:
    curves = sorted(by_curve(points, "lower-bound", "regret"), key=lambda curve: curve[0].margin)
    if not curves or len(curves[0]) < 2:
        return []
    tightest = curves[0]
    least = [(float(point.episodes), point.least) for point in tightest]
    bound = Line(f"bound, rho = {tightest[0].margin:g}", least, reference=True)
    return [*(_line(f"rho = {curve[0].margin:g}", curve) for curve in curves), bound]


def _margin(points: Sequence[CurvePoint]) -> Lines:
    pair = [point for point in points if point.group == "lower-bound"]
    lines = []
    for T in sorted({point.episodes for point in pair}):
        curve = sorted((point for point in pair if point.episodes == T), key=lambda point: -point.margin)
        lines.append(_line_over(f"T = {T:,}", curve, [1.0 / point.margin for point in curve]))
    return [*lines, _linear(lines[-1])] if lines and len(lines[-1].points) > 1 else []


def _adversaries(points: Sequence[CurvePoint]) -> Lines:
    lines = []
    for curve in by_curve(points, "soft-regret", "regret"):
        opponent, world = curve[0].adversary, curve[0].world
        lines.append(_line(opponent if world == "lower-bound-2" else f"{opponent}, {world}", curve))
    return lines + [_root(line) for line in lines if line.points[-1][1] > 0.0][:1]


HORIZON, MEAN = "horizon T (every point has runs of its own)", "mean over seeds, 95 % interval"
CURVES: dict[str, tuple[Callable[[Sequence[CurvePoint]], Lines], str, str, str]] = {
    "soft-growth": (_soft, "SV-OPS: violation and regret", HORIZON, MEAN),
    "safe-growth": (_safe, "S-OPS: regret and mixing weights", HORIZON, MEAN),
    "constant-violation": (_constant, "CV-OPS: constant violation", HORIZON, MEAN),
    "lower-bound": (_lower, "S-OPS on the lower-bound pair: regret on instance 2", HORIZON, f"regret, {MEAN}"),
    "margin-law": (_margin, "The price of a small margin", "1 / rho", f"regret, {MEAN}"),
    "adversaries": (_adversaries, "SV-OPS against five adversaries", HORIZON, f"regret, {MEAN}"),
}


# Coverage and calibration ---------------------------------------------------------------------------------------------


def coverage_plot(tables: Rows) -> Plot:
    """The measured probability that a set ever loses the truth over the allowed one, by kind of set."""
    rows = [row for row in tables["coverage"] if row.kind in SETS]
    traces: list[dict[str, Any]] = []
    for place, kind in enumerate(SETS):
        some = [row for row in rows if row.kind == kind]
        if some:
            shares, colour = [row.failed / row.runs for row in some], LINE_COLOURS[place]
            traces.append({
                "type": "scatter", "mode": "markers", "name": kind, "x": [row.allowed for row in some], "y": shares,
                "marker": {"size": 7, "color": colour, "symbol": SYMBOLS[place % len(SYMBOLS)]},
                "error_y": error_bars(shares, [(row.low, row.high) for row in some], colour),
            })  # fmt: skip
    most = max(row.allowed for row in rows)
    traces.append({
        "type": "scatter", "mode": "lines", "name": "all that is allowed", "x": [0.0, most], "y": [0.0, most],
        "line": {"width": 1.5, "color": INK, "dash": "dot"},
    })  # fmt: skip
    made = plot(traces, "allowed probability of a failure", "share of runs with a failure, 98 % interval")
    made["layout"]["xaxis"]["tickformat"] = made["layout"]["yaxis"]["tickformat"]
    return titled(made, f"Failures of confidence sets ({_span([row.runs for row in rows])} runs each)")


def calibration_plot(rows: Sequence[CalibrationRow]) -> Plot:
    """Median and band of the calibration over time: one panel for every preset, one line for every world."""
    presets, worlds = (sorted({getattr(row, name) for row in rows}) for name in ("preset", "world"))
    width, gap = 1.0 / len(presets), 0.06
    traces: list[dict[str, Any]] = []
    made = plot([], "episode t", "(U - C) / (U - estimate), median and 90 % of seeds", log_x=True)
    axis = {**made["layout"]["xaxis"]}
    axis["tickvals"], axis["ticktext"] = log_ticks(*_ends([float(row.episode) for row in rows]))
    for panel, preset in enumerate(presets):
        suffix = str(panel + 1) if panel else ""
        for place, world in enumerate(worlds):
            some = [row for row in rows if (row.preset, row.world) == (preset, world) and isfinite(row.median)]
            medians, colour = [row.median for row in some], LINE_COLOURS[place]
            traces.append({
                "type": "scatter", "mode": "lines+markers", "name": world, "showlegend": panel == 0,
                "x": [float(row.episode) * 1.12 ** (place - 1) for row in some], "y": medians,
                "line": {"width": 2, "color": colour}, "marker": {"size": 6, "color": colour},
                "xaxis": f"x{suffix}", "yaxis": "y",
                "error_y": error_bars(medians, [(row.low, row.high) for row in some], colour),
            })  # fmt: skip
        ends = [panel * width + (gap / 2 if panel else 0.0), (panel + 1) * width - gap / 2]
        title = {**axis["title"], "text": f"episode t ({preset})"}
        made["layout"][f"xaxis{suffix}"] = {**axis, "domain": ends, "title": title}
    made["layout"]["yaxis"] |= {"rangemode": "tozero", "gridcolor": GRID}
    made["layout"]["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at,
         "line": {"width": 1.5, "color": INK, "dash": "dot"}}
        for at in (0.0, 1.0)
    ]  # fmt: skip
    return titled({**made, "data": traces}, f"Calibration of U ({_span([row.seeds for row in rows])} seeds)")


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
