"""A plot for print: sizes in millimetres and points, the legend above, small margins."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from math import ceil, isfinite
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.pages.drawing import Drawing
from hedgerow.pages.plots import Plot

COLUMN_MM = 84.0
"""The width of one column in many journals."""
FONT = "Helvetica, Arial, sans-serif"
FONT_SIZE = 8.0
HEIGHT_PER_WIDTH = 0.6
MM_PER_POINT = 25.4 / 72.0
PLOTLY_FONT_SIZE = 12.0
"""Of a plot that says nothing else."""
LEGEND_SHARE = 0.92
"""The size of the words of a legend, as a share of ordinary text."""
LETTER, LEGEND_LINE, LEGEND_MARK, AXIS = 0.52, 1.5, 50.0, 60.0
"""About: the width of a letter and the height of a row, as shares of the font size; the width of the line before a
name, and of what stands beside an axis.
"""


SCREEN_MM, SCREEN_FONT_SIZE = 190.0, 10.0
"""The figures of the documentation: about 720 pixels wide."""


def _check_size(name: str, value: Any, least: float, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or not least <= value <= most:
        unit = "points" if name == "font_size" else "millimetres"
        raise InvalidInput(f"{name} must be a number of {unit} from {least:g} to {most:g}, not {value!r}")


@dataclass(frozen=True)
class Paper:
    """How a figure is printed: its size in mm, its font, the size of the font in pt, and whether it has its title."""

    width_mm: float = COLUMN_MM
    height_mm: float | None = None
    font: str = FONT
    font_size: float = FONT_SIZE
    title: bool = False

    def __post_init__(self) -> None:
        _check_size("width_mm", self.width_mm, 20.0, 2000.0)
        if self.height_mm is not None:
            _check_size("height_mm", self.height_mm, 15.0, 2000.0)
        _check_size("font_size", self.font_size, 3.0, 72.0)
        if not isinstance(self.font, str) or not self.font.strip() or re.search(r"[<>&\"\\;{}\x00-\x1f]", self.font):
            raise InvalidInput(f"font must be the name of a font, or several with commas, not {self.font!r}")


FOR_DOCS = Paper(SCREEN_MM, font_size=SCREEN_FONT_SIZE, title=True)
"""How benchmarks and verifications write their figures."""


def drawing_of(plot: Plot, kind: str, paper: Paper) -> Drawing:
    """The drawing in units in which the ordinary text of the plot has the size that it has on screens."""
    units_per_mm = _font_size(plot) / (MM_PER_POINT * paper.font_size)
    height = paper.height_mm or _height(plot, paper.width_mm * units_per_mm) / units_per_mm
    return Drawing(_for_print(plot, paper), kind, paper.width_mm, height, units_per_mm, _title(plot))


def _height(plot: Plot, width: float) -> float:
    """The height, in the units of the width: a part of it, and room for the rows of a legend."""
    layout = plot.get("layout", {})
    names = [len(str(trace.get("name") or "")) for trace in plot["data"] if trace.get("showlegend") is not False]
    if layout.get("showlegend") is False or not names or _is_placed(layout.get("legend") or {}):
        return HEIGHT_PER_WIDTH * width
    size = LEGEND_SHARE * _font_size(plot)
    columns = max(1, int((width - AXIS) / (LEGEND_MARK + LETTER * size * max(names))))
    return HEIGHT_PER_WIDTH * width + ceil(len(names) / columns) * LEGEND_LINE * size


def _for_print(plot: Plot, paper: Paper) -> Plot:
    """The plot with the font, with its legend above, without its title, with small margins."""
    printed = copy.deepcopy(plot)
    for part in _dictionaries(printed):
        if isinstance(part.get("family"), str):
            part["family"] = paper.font
    layout: dict[str, Any] = printed.setdefault("layout", {})
    layout.setdefault("font", {})["family"] = paper.font
    words = _as_title(layout.pop("title", None))
    if layout.get("showlegend") is not False:
        layout["legend"] = _legend_above(layout.get("legend") or {}, words if paper.title else {}, _font_size(plot))
    elif paper.title and words.get("text"):
        layout["title"] = {**words, "automargin": True, "yref": "container"}
    layout["margin"] = {"l": 6, "r": 16, "t": 8, "b": 6, "pad": 0}
    for name in {"xaxis", "yaxis", *(key for key in layout if re.fullmatch(r"[xy]axis\d*", key))}:
        layout.setdefault(name, {})["automargin"] = True
    return printed


def _is_placed(legend: dict[str, Any]) -> bool:
    return bool(legend.keys() & {"x", "y", "orientation", "xref", "yref"})


def _legend_above(legend: dict[str, Any], words: dict[str, Any], size: float) -> dict[str, Any]:
    """The legend, above the plot if nobody has placed it. A title goes with it: then neither can cover the other."""
    if not _is_placed(legend):
        place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
        legend = {"font": {"size": LEGEND_SHARE * size}, **legend, **place}
    if words.get("text"):
        legend = {**legend, "title": {"text": words["text"], "side": "top", "font": words.get("font", {})}}
    return legend


def _as_title(title: Any) -> dict[str, Any]:
    return dict(title) if isinstance(title, dict) else {"text": title} if isinstance(title, str) else {}


def _title(plot: Plot) -> str:
    """The words of its title, without tags."""
    text = str(_as_title(plot.get("layout", {}).get("title")).get("text") or "")
    return unescape(re.sub(r"<[^>]*>", " ", text)).strip()


def _font_size(plot: Plot) -> float:
    """Of ordinary text: the plot's own, or its template's, or plotly's."""
    layout = plot.get("layout", {})
    template = layout.get("template")
    themes = [layout, template.get("layout", {}) if isinstance(template, dict) else {}]
    sizes = [theme.get("font", {}).get("size") for theme in themes]
    return float(next((size for size in sizes if size), PLOTLY_FONT_SIZE))


def _dictionaries(part: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries inside."""
    if isinstance(part, dict):
        yield part
        for value in part.values():
            yield from _dictionaries(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _dictionaries(value)
