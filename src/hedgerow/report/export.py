"""Figures as files for a paper: PDF, SVG and PNG of a width in millimetres, with fonts in points as printed.

    save_figure(run.plot("regret"), "regret.pdf")            # 84 mm wide, 8 pt, no title: one column of a paper
    write_figures("out/quickstart", "figures", ["pdf"])      # all: <world>__<adversary>__T<episodes>__<figure>

They are the figures of the page, in its light colours, with a legend of their own. kaleido writes them: it drives a
Chrome or Chromium that is installed.
"""

from __future__ import annotations

import copy
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report.figures import Figure, figures
from hedgerow.report.plots import Plot, pens, titled
from hedgerow.results.groups import Results, Setting, by_setting
from hedgerow.results.manifest import slug
from hedgerow.results.store import open as open_results
from hedgerow.storage import atomic

FORMATS = ("pdf", "svg", "png")
PNG_DOTS_PER_INCH, SCREEN_DOTS_PER_INCH = 300.0, 96.0
"""Of a PNG; and the pixels in which browsers measure a page and an SVG."""
HOW_TO_GET_A_BROWSER = (
    "figures as files need kaleido and a Chrome or Chromium: install hedgerow[figures] and, if there is no browser, "
    "run plotly_get_chrome; in the page of the report every figure has a button that saves it as SVG"
)


# A plot for print: sizes in millimetres and points, the legend above, small margins ----------------------------------

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
    return Drawing(_for_print(plot, paper), kind, paper.width_mm, height, units_per_mm)


def _height(plot: Plot, width: float) -> float:
    """The height, in the units of the width: a part of it, and room for the rows of a legend."""
    layout = plot.get("layout", {})
    own = (layout.get("meta") or {}).get("height") or HEIGHT_PER_WIDTH * width  # a plot of several parts says it itself
    names = [len(str(trace.get("name") or "")) for trace in plot["data"] if trace.get("showlegend") is not False]
    if layout.get("showlegend") is False or not names or _is_placed(layout.get("legend") or {}):
        return float(own)
    size = LEGEND_SHARE * _font_size(plot)
    columns = max(1, int((width - AXIS) / (LEGEND_MARK + LETTER * size * max(names))))
    return float(own) + ceil(len(names) / columns) * LEGEND_LINE * size


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
    """The legend, above the plot unless it has been placed. A title goes with it: then neither can cover the other."""
    if not _is_placed(legend):
        place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
        legend = {"font": {"size": LEGEND_SHARE * size}, **legend, **place}
    if words.get("text"):
        legend = {**legend, "title": {"text": words["text"], "side": "top", "font": words.get("font", {})}}
    return legend


def _as_title(title: Any) -> dict[str, Any]:
    return dict(title) if isinstance(title, dict) else {"text": title} if isinstance(title, str) else {}


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


# Drawing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """One picture to be drawn."""

    plot: Plot
    kind: str
    """`svg`, `pdf` or `png`"""
    width_mm: float
    height_mm: float
    units_per_mm: float
    """In the units of the plot its fonts and lines have their sizes"""

    def job(self, path: Path) -> dict[str, Any]:
        """What kaleido takes."""
        dots = PNG_DOTS_PER_INCH if self.kind == "png" else SCREEN_DOTS_PER_INCH
        size = {"width": self.width_mm * self.units_per_mm, "height": self.height_mm * self.units_per_mm}
        options = {"format": self.kind, **size, "scale": dots / 25.4 / self.units_per_mm}
        return {"fig": self.plot, "path": str(path), "opts": options}


def check_browser() -> None:
    """Start the browser and end it, to hear before long runs that there is none."""
    draw([])


# Run by a process of its own: neither kaleido nor the browser ends by itself when the other one does not answer.
# Without mathjax, which kaleido would fetch from the network.
_DRAWER = """
import json, pathlib, sys
try:
    import kaleido
    jobs = [{**job, "path": pathlib.Path(job["path"])} for job in json.load(sys.stdin)]
    kaleido.write_fig_from_object_sync(jobs, kopts={"mathjax": False, "n": 1})
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
SECONDS_TO_START, SECONDS_PER_DRAWING = 90.0, 10.0
"""A hundred times what is needed on an idle machine"""
TRIES = 2
"""A browser that gives no answer is started once more."""


def draw(drawings: Sequence[Drawing]) -> list[bytes]:
    """Draw all of them in one browser: the content of a file for each, or `HedgerowError` where none can be used."""
    if find_spec("kaleido") is None:
        raise HedgerowError(HOW_TO_GET_A_BROWSER)
    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.{drawing.kind}") for i, drawing in enumerate(drawings)]
        jobs = msgspec.json.encode(
            [drawing.job(path) for drawing, path in zip(drawings, paths, strict=True)],
            enc_hook=lambda array: array.tolist(),
        )
        seconds = SECONDS_TO_START + SECONDS_PER_DRAWING * len(drawings)
        for _ in range(TRIES):
            problem = _answer(jobs, seconds)
            if problem is not None:
                break
        if problem is None:
            raise HedgerowError(f"the figures could not be drawn: the browser gave no answer within {seconds:g} s")
        if problem.startswith("ChromeNotFoundError"):
            raise HedgerowError(HOW_TO_GET_A_BROWSER)
        if problem:
            raise HedgerowError(f"the figures could not be drawn: {problem}")
        return [path.read_bytes() for path in paths]


def _answer(jobs: bytes, seconds: float) -> str | None:
    """What went wrong, the empty string if nothing did, or None if there was no answer in time."""
    with subprocess.Popen(
        [sys.executable, "-c", _DRAWER], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            _, errors = process.communicate(jobs, timeout=seconds)
        except BaseException as error:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # the browser as well
            else:
                process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    return "" if process.returncode == 0 else errors.decode(errors="replace").strip().splitlines()[-1]


# Files ----------------------------------------------------------------------------------------------------------------


def save_figure(
    figure: Any,
    path: str | os.PathLike[str],
    *,
    width_mm: float = COLUMN_MM,
    height_mm: float | None = None,
    font: str = FONT,
    font_size: float = FONT_SIZE,
    title: bool = False,
) -> Path:
    """Write a figure for a paper: its page is so many millimetres wide.

    The figure is drawn in its own units and then shrunk or enlarged as a whole. So its text is printed in `font_size`,
    and lines, marks and gaps keep their proportion to it. A legend without a given place moves from the side to the
    top, and margins are as small as the labels allow. Fonts are embedded in a PDF, but only named in an SVG. The
    browser takes the nearest font where the named one is not installed.

    Args:
        figure: A `plotly.graph_objects.Figure`, such as `run.plot()` returns, or the same as a dictionary.
        path: The file; its ending says the format: `.pdf`, `.svg` or `.png` (300 dots per inch). An older file is
            replaced.
        width_mm: Width of the whole picture in millimetres, from 20 to 2000.
        height_mm: Height in millimetres; by default 0.6 of the width, and room for the legend above.
        font: Name of a font, or several separated by commas, of which the first one installed is used.
        font_size: Size of the figure's ordinary text in points, as printed. What the figure makes larger or smaller
            than its ordinary text stays so.
        title: Whether the title is printed; papers say it in the caption.

    Returns:
        The path of the file.

    Raises:
        InvalidInput: If the figure, the ending of the file, a size or the font is not one.
        HedgerowError: If kaleido or a browser is missing: install `hedgerow[figures]`.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> hr.save_figure(run.plot(), "regret.pdf", width_mm=85, font="Times")  # doctest: +SKIP
        PosixPath('regret.pdf')
    """
    return save_figures([(figure, path)], Paper(width_mm, height_mm, font, font_size, title))[0]


def save_figures(jobs: Sequence[tuple[Any, str | os.PathLike[str]]], paper: Paper) -> list[Path]:
    """Write several figures, drawn by one browser; each job is a figure and its file."""
    targets = [Path(path) for _, path in jobs]
    kinds = [_kind(path) for path in targets]
    plots = [_as_plot(figure) for figure, _ in jobs]
    blobs = draw([drawing_of(plot, kind, paper) for plot, kind in zip(plots, kinds, strict=True)])
    for blob, target in zip(blobs, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.save(target, blob, overwrite=True)
    return targets


def write_figures(
    source: Results | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("svg", "png"),
    **size: Any,
) -> list[Path]:
    """Draw all figures of results, or of their directory, into a folder; older files of the same name are replaced.

    Files are called `<world>__<adversary>__T<episodes>__<figure>.<format>`; `size` is what `Paper` takes.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if isinstance(formats, str) or unknown or not formats:
        told = repr(formats) if isinstance(formats, str) else ", ".join(unknown) or "nothing"
        raise InvalidInput(f"figures are written as a list of {', '.join(FORMATS)}, not as {told}")
    paper = Paper(**size)
    plots = paper_plots(source if isinstance(source, Results) else open_results(source))
    target = Path(folder)
    return save_figures([(plot, target / f"{name}.{kind}") for name, plot in plots.items() for kind in formats], paper)


def paper_plots(results: Results) -> dict[str, Plot]:
    """What plotly takes, by the name of the file; figures without content are left out."""
    found = results.groups
    drawn = pens([(group.learner, group.kind) for group in found])
    return {
        _name(setting, figure): titled(figure.plot, figure.title)
        for setting, members in by_setting(found)
        for figure in figures(members, drawn)
        if figure.plot is not None
    }


def _name(setting: Setting, figure: Figure) -> str:
    return "__".join([slug(setting.world), slug(setting.adversary), f"T{setting.episodes}", figure.name])


def _kind(path: Path) -> str:
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InvalidInput(f"{path.name} must end with .{', .'.join(FORMATS)}: the ending says the format")
    return kind


def _as_plot(figure: Any) -> Plot:
    plot = figure.to_dict() if hasattr(figure, "to_dict") else figure
    if not isinstance(plot, dict) or not isinstance(plot.get("data"), list | tuple):
        kind = type(figure).__name__
        raise InvalidInput(f"the figure must be a plotly figure, or one as a dict with data and layout, not a {kind}")
    return plot
