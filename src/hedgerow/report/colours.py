"""Colours: one for each learner, everywhere, told apart by colour-blind readers too, on light and on dark.

The palette is that of Okabe and Ito, without its yellow, which fades on white. Figures are made in the light colours;
`DARK` says what becomes of each of them on a dark page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

INK, SOFT, GRID, PAPER, LIMIT, FORBIDDEN = "#1b1b1a", "#5d5d5a", "#e4e4e1", "#ffffff", "#a3262c", "#f6e3e1"
GOOD = "#00734f"
"""Words of praise: the green of the palette, dark enough to be read as text"""

BLUE, GREEN, PURPLE, VERMILION = "#0072b2", "#009e73", "#b85c93", "#d55e00"
ORANGE, SKY, GREY = "#c98500", "#3a97c9", "#6e6e6e"

OF_KIND = {"sv-ops": BLUE, "s-ops": GREEN, "cv-ops": PURPLE, "uob-reps": VERMILION}
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
