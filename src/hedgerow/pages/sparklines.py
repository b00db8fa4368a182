"""Two curves in one picture as small as a word: regret on the left, margin on the right (decision 27).

A comparison has hundreds of them. Each is a few hundred bytes of SVG with whole coordinates, without a script. Its
sentence stands for it where nobody sees it.

    >>> picture([1, 2, 3], [0.0, 1.0, 2.0], [], Scales((0.0, 2.0), None), "regret 2")[:53]
    '<svg class="spark" viewBox="0 0 200 60" role="img" ar'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from hedgerow.html_parts import text

WIDTH, HEIGHT = 200, 60
"""Of the coordinates; the style sheet says how large that is."""
GAP = 16
"""Between the two panels."""
EDGE = 3
"""Above and below, so that no line is cut."""

Range = tuple[float, float]


class Scales(NamedTuple):
    """What the panels of all pictures of a table share: the same height means the same number."""

    regret: Range
    margin: Range | None
    """None in a world without constraints"""


def scales(regrets: Iterable[Sequence[float]], margins: Iterable[Sequence[float]]) -> Scales:
    """Ranges that hold all these curves, and 0."""
    margin = [value for curve in margins for value in curve]
    return Scales(_range(value for curve in regrets for value in curve), _range(margin) if margin else None)


def picture(
    episodes: Sequence[int], regret: Sequence[float], margin: Sequence[float], common: Scales, words: str
) -> str:
    """The SVG of a learner in a setting; `words` say what it shows. A margin below the line is a violation."""
    half = (WIDTH - GAP) // 2
    left = _zero(0, half, common.regret, "axis") + _line(episodes, regret, common.regret, 0, half, "regret")
    right = ""
    if common.margin is not None and margin:
        start = half + GAP
        right = _forbidden(start, half, common.margin) + _zero(start, half, common.margin, "limit")
        right += _line(episodes, margin, common.margin, start, half, "margin")
    return (
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(words)}">{left}{right}</svg>'
    )


def _line(episodes: Sequence[int], values: Sequence[float], limits: Range, start: int, width: int, kind: str) -> str:
    """A path in steps from point to point, which are shorter to write than places."""
    last = max(1, max(episodes))
    points = [
        (start + round(width * t / last), _height(value, limits))
        for t, value in zip(episodes, values, strict=True)
        if isfinite(value)
    ]
    if not points:
        return ""
    if len(points) == 1:
        points.append((points[0][0] + 1, points[0][1]))
    steps = "".join(f"l{x - u} {y - v}" for (u, v), (x, y) in pairwise(points))
    return f'<path class="{kind}" d="M{points[0][0]} {points[0][1]}{steps}"/>'


def _zero(start: int, width: int, limits: Range, kind: str) -> str:
    return f'<path class="{kind}" d="M{start} {_height(0.0, limits)}h{width}"/>'


def _forbidden(start: int, width: int, limits: Range) -> str:
    """The region below a margin of 0."""
    top = _height(0.0, limits)
    return f'<path class="forbidden" d="M{start} {top}h{width}V{HEIGHT}h-{width}z"/>' if top < HEIGHT - EDGE else ""


def _height(value: float, limits: Range) -> int:
    low, high = limits
    share = (min(max(value, low), high) - low) / (high - low)
    return round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share)


def _range(values: Iterable[float]) -> Range:
    known = [0.0, *(value for value in values if isfinite(value))]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low, low + 1.0)
