"""Curves on two logarithmic axes as SVG text, with dashed reference lines: no plotting package, equal bytes for equal
data. (`bench/figure.py` draws without references, and lies further down the flow of imports.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 210, 52, 56
INK, FAINT = "#222222", "#dddddd"
COLOURS = ("#1b6ca8", "#c4572e", "#3a7d44", "#7a4fa3", "#9a7d0a", "#555555")
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="13"'
MARGIN = 0.1
"""Room around the data, in powers of ten."""


@dataclass(frozen=True)
class Curve:
    """Positive points (x, y) under a name; `dashed` ones are references and take the colour of ink."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    stop: float

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        factors = (1,) if self.high - self.low > 2.5 else (1, 2, 5)
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [value for value in values if self.low <= math.log10(value) <= self.high]


def _axis(values: Sequence[float], start: float, stop: float) -> _Axis:
    logs = [math.log10(value) for value in values]
    return _Axis(min(logs) - MARGIN, max(logs) + MARGIN, start, stop)


def log_plot(title: str, x_label: str, y_label: str, curves: Sequence[Curve]) -> str:
    """One SVG document; points that are not positive have no place on it and are left out."""
    shown = [Curve(c.name, [p for p in c.points if p[0] > 0.0 and p[1] > 0.0], c.dashed) for c in curves]
    shown = [curve for curve in shown if curve.points]
    x = _axis([p[0] for curve in shown for p in curve.points], LEFT, WIDTH - RIGHT)
    y = _axis([p[1] for curve in shown for p in curve.points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 28, title, "start", size=15),
    ]
    for value in x.ticks():
        parts.append(_segment(x.place(value), TOP, x.place(value), HEIGHT - BOTTOM))
        parts.append(_text(x.place(value), HEIGHT - BOTTOM + 20, _label(value)))
    for value in y.ticks():
        parts.append(_segment(LEFT, y.place(value), WIDTH - RIGHT, y.place(value)))
        parts.append(_text(LEFT - 8, y.place(value) + 4, _label(value), "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<g transform="rotate(-90 20 {middle:g})">{_text(20, middle, y_label)}</g>')
    for number, curve in enumerate(shown):
        parts += _drawn(curve, number, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(curve: Curve, number: int, x: _Axis, y: _Axis) -> list[str]:
    colour = INK if curve.dashed else COLOURS[number % len(COLOURS)]
    places = [(x.place(a), y.place(b)) for a, b in curve.points]
    path = " ".join(f"{a:g},{b:g}" for a, b in places)
    dashes = ' stroke-dasharray="6 5"' if curve.dashed else ""
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>']
    if not curve.dashed:
        parts += [f'<circle cx="{a:g}" cy="{b:g}" r="3" fill="{colour}"/>' for a, b in places]
    key = TOP + 16 + 20 * number
    parts.append(
        f'<line x1="{WIDTH - RIGHT + 12}" y1="{key - 4}" x2="{WIDTH - RIGHT + 34}" y2="{key - 4}" '
        f'stroke="{colour}" stroke-width="2"{dashes}/>'
    )
    return [*parts, _text(WIDTH - RIGHT + 40, key, curve.name, "start")]


def _label(value: float) -> str:
    power = math.floor(math.log10(value) + 1e-9)
    if -3 <= power <= 3:
        return f"{value:g}"
    superscript = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = round(value / 10.0**power)
    return f"10{superscript}" if factor == 1 else f"{factor}·10{superscript}"


def _segment(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{FAINT}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 13) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{escape(text)}</text>'
