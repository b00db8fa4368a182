"""Line plots on two logarithmic axes as SVG text: no browser, no plotting package, equal bytes for equal data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 64, 56
KEY_WIDTH, KEY_HEIGHT = 160, 17
INK, FAINT = "#222222", "#d9d9d9"
COLOURS = (
    *("#1b6ca8", "#c4572e", "#3a7d44", "#7a4fa3", "#a8871b"),
    *("#2e9c9c", "#b03a6e", "#6b6b6b", "#8c5a2b", "#141a4d"),
)
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="13"'
KEY_STROKE, KEY_LETTER = 30, 7.8
"""Pixels that the piece of line before a name takes, and a letter of it."""
FEW_POINTS = 20
"""Up to so many points of a line are marked."""
MARGIN = 0.12
"""Room around the data, in powers of ten."""


@dataclass(frozen=True)
class Line:
    """Points (x, y) under one name; those that are not positive have no place on a plot and are left out."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    colour: int | None = None
    """Which of the colours; by default every line has its own"""
    reference: bool = False
    """Something to compare with: dashed, in the colour of the axes, without marks"""


@dataclass(frozen=True)
class LogAxis:
    """Maps values to pixels logarithmically."""

    low: float
    high: float
    start: float
    stop: float

    @classmethod
    def around(cls, values: Iterable[float], start: float, stop: float) -> LogAxis:
        logs = [math.log10(value) for value in values]
        return cls(min(logs) - MARGIN, max(logs) + MARGIN, start, stop)

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten; with 2 and 5 times them where these are few."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        factors = (1,) if self.high - self.low > 2.5 else (1, 2, 5)
        values = [(factor * 10.0**power, factor, power) for power in powers for factor in factors]
        return [
            (value, _tick_label(value, power))
            for value, _, power in values
            if self.low <= math.log10(value) <= self.high
        ]


def log_plot(title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> str:
    """The plot as one SVG document; the names stand in rows above it, each after a piece of its line."""
    lines = [replace(line, points=[p for p in line.points if p[0] > 0.0 and p[1] > 0.0]) for line in lines]
    lines = [line for line in lines if line.points]
    names = _places(lines)
    top = TOP + names[-1][1]
    height = HEIGHT + names[-1][1]
    x = LogAxis.around([p[0] for line in lines for p in line.points], LEFT, WIDTH - RIGHT)
    y = LogAxis.around([p[1] for line in lines for p in line.points], height - BOTTOM, top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 26, title, anchor="start", size=15),
    ]
    for value, label in x.ticks():
        parts.append(_segment(x.place(value), top, x.place(value), height - BOTTOM))
        parts.append(_text(x.place(value), height - BOTTOM + 20, label))
    for value, label in y.ticks():
        parts.append(_segment(LEFT, y.place(value), WIDTH - RIGHT, y.place(value)))
        parts.append(_text(LEFT - 8, y.place(value) + 4, label, anchor="end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, height - 14, x_label))
    middle = (top + height - BOTTOM) / 2
    parts.append(f'<g transform="rotate(-90 20 {middle:g})">{_text(20, middle, y_label)}</g>')
    for number, line in enumerate(lines):
        chosen = number if line.colour is None else line.colour
        colour = INK if line.reference else COLOURS[chosen % len(COLOURS)]
        parts += _drawn(line, colour, names[number], x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Where each name stands, in columns of KEY_WIDTH: (pixels from the left, pixels below the first row)."""
    places, left, row = [], LEFT, 0
    for line in lines:
        width = KEY_WIDTH * math.ceil((KEY_STROKE + KEY_LETTER * len(line.name)) / KEY_WIDTH)
        if left + width > WIDTH and left > LEFT:
            left, row = LEFT, row + 1
        places.append((left, KEY_HEIGHT * row))
        left += width
    return places or [(LEFT, 0)]


def _drawn(line: Line, colour: str, name: tuple[int, int], x: LogAxis, y: LogAxis) -> list[str]:
    places = [(x.place(a), y.place(b)) for a, b in line.points]
    path = " ".join(f"{a:g},{b:g}" for a, b in places)
    dashes = ' stroke-dasharray="7 5"' if line.dashed or line.reference else ""
    radius = 3.5 if len(places) <= FEW_POINTS and not line.reference else 0.0
    left, base = name[0], TOP - 12 + name[1]
    stroke = f'stroke="{colour}" stroke-width="2"{dashes}'
    return [
        f'<polyline points="{path}" fill="none" {stroke}/>',
        f'<line x1="{left}" y1="{base - 4}" x2="{left + KEY_STROKE - 6}" y2="{base - 4}" {stroke}/>',
        *[f'<circle cx="{a:g}" cy="{b:g}" r="{radius}" fill="{colour}"/>' for a, b in places if radius],
        _text(left + KEY_STROKE, base, line.name, anchor="start", colour=colour),
    ]


def _tick_label(value: float, power: int) -> str:
    if -3 <= power <= 3:
        return f"{value:g}"
    superscript = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = round(value / 10.0**power)
    return f"10{superscript}" if factor == 1 else f"{factor}·10{superscript}"


def _segment(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{FAINT}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 13, colour: str = INK) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
