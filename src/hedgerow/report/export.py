"""What SVG, PDF and PNG files of a browser lack: an exact size in mm, and bytes that only depend on the plot."""

from __future__ import annotations

import asyncio
import base64
import copy
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from math import ceil, isfinite
from pathlib import Path
from threading import Thread
from typing import Any

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report.colours import pens
from hedgerow.report.figures import Figure, figures
from hedgerow.report.page import by_setting
from hedgerow.report.plots import Plot, titled
from hedgerow.results.groups import Results, Setting
from hedgerow.results.manifest import slug
from hedgerow.results.store import open as open_results
from hedgerow.storage import atomic

POINTS_PER_MM = 72.0 / 25.4


def finished_svg(blob: bytes, width_mm: float, height_mm: float, title: str) -> bytes:
    """The SVG with its size in mm, a title for those who cannot see it, and ids that are the same every time.

    plotly marks the ids of a drawing with six random digits. They are replaced where they are part of an id, or of a
    reference to one, and nowhere else: the same digits may be part of a coordinate.
    """
    text = blob.decode()
    root = re.match(r"<svg\b[^>]*>", text)
    marks = set(re.findall(r'\bid="(?:top)?defs-([0-9a-f]{6})"', text))
    if root is None or len(marks) != 1:
        raise HedgerowError("the browser's SVG is not as plotly writes it: is this a version of plotly that we know?")
    opening = re.sub(r'\b(width|height)="[^"]*"', "", root[0], count=2)
    opening = opening.replace("<svg ", f'<svg role="img" width="{width_mm:.10g}mm" height="{height_mm:.10g}mm" ')
    opening = re.sub(r"\s+", " ", opening.replace(' style=""', ""))
    text = opening + (f"<title>{escape(title)}</title>" if title else "") + text[root.end() :]
    mark = marks.pop()
    named = re.compile(rf"""(\bid="|url\((?:&quot;|['"])?\#|href="\#)([^"')&]*?){mark}""")
    return (named.sub(r"\1\2plot-", text) + "\n").encode()


def finished_pdf(blob: bytes, width_mm: float, height_mm: float, title: str) -> bytes:
    """The PDF with a page of exactly this size, its title, and no date: browsers round the size of a page."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", blob)
    if len(boxes) != 1:
        raise HedgerowError(f"the browser's PDF has {len(boxes)} pages that we know how to read instead of one")
    top = float(boxes[0][1])  # coordinates begin below, while the picture hangs from the top of the page
    width, height = width_mm * POINTS_PER_MM, height_mm * POINTS_PER_MM
    box = f"/MediaBox [0 {_number(top - height)} {_number(width)} {_number(top)}]".encode()
    blob = _replaced(blob, rb"/MediaBox \[[^\]]*\]", box)
    blob = _replaced(
        blob, rb"/Title \((?:[^()\\]|\\.)*\)", b"/Title <feff" + title.encode("utf-16-be").hex().encode() + b">"
    )
    blob = _replaced(blob, rb"/Creator \((?:[^()\\]|\\.)*\)", b"/Creator (hedgerow)")
    for name in (b"CreationDate", b"ModDate"):
        blob = _replaced(blob, rb"/" + name + rb" \([^()]*\)", b"/" + name + b" (D:20000101000000Z)")
    return blob


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _replaced(blob: bytes, pattern: bytes, new: bytes) -> bytes:
    """The file with the one match of the pattern replaced, and with the table of its objects put right."""
    found = re.search(pattern, blob)
    start = re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", blob)
    if found is None or start is None:
        raise HedgerowError("the browser's PDF has a form that we do not know how to change")
    table, shift = int(start[1]), len(new) - (found.end() - found.start())

    def moved(offset: int) -> int:
        return offset + shift if offset > found.start() else offset

    entries = re.sub(
        rb"(\d{10})( \d{5} n)", lambda entry: b"%010d" % moved(int(entry[1])) + entry[2], blob[table : start.start()]
    )
    body = blob[: found.start()] + new + blob[found.end() : table]
    return body + entries + b"startxref\n%d\n%%%%EOF\n" % moved(table)


def finished_png(blob: bytes, dots_per_inch: float) -> bytes:
    """The PNG with its resolution, from which programs compute its size on paper."""
    per_metre = round(dots_per_inch / 0.0254)
    content = b"pHYs" + per_metre.to_bytes(4, "big") * 2 + b"\x01"
    chunk = (9).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    header = 8 + 25  # the signature, and the chunk IHDR, which comes first
    return blob[:header] + chunk + blob[header:]


# --------------------------------------------------------------------------------------------------------------------
# Plots become files: kaleido has a browser draw them, without the network; equal plots give equal bytes of SVG.


PNG_DOTS_PER_INCH = 300.0

HOW_TO_GET_A_BROWSER = (
    "figures as files need kaleido and a Chrome or Chromium: install hedgerow[figures] and, if there is no browser, "
    "run plotly_get_chrome; in the page of the report every figure has a button that saves it as SVG"
)


@dataclass(frozen=True)
class Drawing:
    """One picture to be drawn."""

    plot: dict[str, Any]
    """What plotly takes"""
    kind: str
    """`svg`, `pdf` or `png`"""
    width_mm: float
    height_mm: float
    units_per_mm: float
    """In the units of the plot its fonts and lines have their sizes"""
    title: str = ""
    """For those who cannot see the picture, and in the properties of a PDF"""


def check_browser() -> None:
    """Start the browser and end it: before long runs, whoever lacks one should hear of it.

    Raises:
        HedgerowError: If kaleido is missing, or no browser starts.
    """
    draw([])


def draw(drawings: Sequence[Drawing]) -> list[bytes]:
    """Draw all of them in one browser.

    Args:
        drawings: What to draw; plots are not changed.

    Returns:
        The content of a file for each drawing, in the same order.

    Raises:
        HedgerowError: If kaleido or a browser is missing, or fails.
    """
    try:
        import kaleido
    except ImportError as error:
        raise HedgerowError(HOW_TO_GET_A_BROWSER) from error

    async def all_of_them() -> list[bytes]:
        # Without mathjax, which kaleido would fetch from the network.
        async with kaleido.Kaleido(n=1, mathjax=False) as browser:
            return [await _drawn(browser, drawing) for drawing in drawings]

    outcome: list[list[bytes] | BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(all_of_them()))
        except BaseException as error:  # handed over to the caller's thread
            outcome.append(error)

    thread = Thread(target=run)  # a notebook has an event loop of its own running in this one
    thread.start()
    thread.join()
    found = outcome[0]
    if isinstance(found, BaseException):
        if type(found).__name__ == "ChromeNotFoundError":
            raise HedgerowError(HOW_TO_GET_A_BROWSER) from found
        raise HedgerowError(f"the figures could not be drawn: {type(found).__name__}: {found}") from found
    return found


async def _drawn(browser: Any, drawing: Drawing) -> bytes:
    """The content of one file. A PDF is the SVG, printed."""
    per_mm = drawing.units_per_mm
    size = {"width": drawing.width_mm * per_mm, "height": drawing.height_mm * per_mm}
    plot = _with_named_traces(drawing.plot)
    if drawing.kind == "png":
        scale = PNG_DOTS_PER_INCH / 25.4 / per_mm
        return finished_png(
            await browser.calc_fig(plot, opts={"format": "png", **size, "scale": scale}), PNG_DOTS_PER_INCH
        )
    plain = await browser.calc_fig(plot, opts={"format": "svg", **size})
    svg = finished_svg(plain, drawing.width_mm, drawing.height_mm, drawing.title)
    if drawing.kind == "svg":
        return svg
    printed = await _printed(browser, svg.decode(), drawing.width_mm, drawing.height_mm)
    return finished_pdf(printed, drawing.width_mm, drawing.height_mm, drawing.title)


async def _printed(browser: Any, svg: str, width_mm: float, height_mm: float) -> bytes:
    """A page of about this size, with nothing but the picture in its upper left corner."""
    tab = await browser.create_tab("about:blank")
    tree = await tab.send_command("Page.getFrameTree")
    frame = tree["result"]["frameTree"]["frame"]["id"]
    page = f"<!doctype html><style>@page{{margin:0}}body{{margin:0}}svg{{display:block}}</style>{svg}"
    await tab.send_command("Page.setDocumentContent", params={"frameId": frame, "html": page})
    sides = {f"margin{side}": 0 for side in ("Top", "Bottom", "Left", "Right")}
    paper = {"paperWidth": width_mm / 25.4, "paperHeight": height_mm / 25.4, "printBackground": True, "pageRanges": "1"}
    answer = await tab.send_command("Page.printToPDF", params={**paper, **sides})
    await browser.close_tab(tab)
    if "result" not in answer:
        raise RuntimeError(f"the browser did not print: {answer.get('error', answer)}")
    return base64.b64decode(answer["result"]["data"])


def _with_named_traces(plot: dict[str, Any]) -> dict[str, Any]:
    """The plot with names for its traces: plotly would draw lots for them."""
    return {**plot, "data": [{**trace, "uid": f"t{place}"} for place, trace in enumerate(plot["data"])]}


# --------------------------------------------------------------------------------------------------------------------
# A plot for print: sizes in millimetres and points, the legend above, small margins.


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


# --------------------------------------------------------------------------------------------------------------------
# Figures as files for a paper: PDF, SVG and PNG of a width in millimetres, with fonts in points as printed.
#
#     save_figure(run.plot("regret"), "regret.pdf")            # 84 mm wide, 8 pt, no title: one column of a paper
#     write_figures("out/quickstart", "figures", ["pdf"])      # all: <world>__<adversary>__T<episodes>__<figure>
#
# They are the figures of the page, in its light colours, with a legend of their own. Drawing them takes a browser:
# kaleido drives a Chrome or Chromium that is installed.


FORMATS = ("pdf", "svg", "png")


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
    """Write a figure for a paper: the page of a PDF, or the SVG, is exactly so many millimetres wide.

    The figure is drawn in its own units and then shrunk or enlarged as a whole. So its text is printed in `font_size`,
    and lines, marks and gaps keep their proportion to it. A legend that nobody has placed moves from the side to the
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
        >>> run = hr.simulate(world, None, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
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
    *,
    width_mm: float = COLUMN_MM,
    height_mm: float | None = None,
    font: str = FONT,
    font_size: float = FONT_SIZE,
    title: bool = False,
) -> list[Path]:
    """Draw all figures of a directory of results into a folder; older files of the same name are replaced.

    Args:
        source: The directory, or what `hr.results.open` made of it.
        folder: Where the files go: `<world>__<adversary>__T<episodes>__<figure>.<format>`.
        formats: Some of `pdf`, `svg` and `png`.
        width_mm: As for `save_figure`, and so are the others.
        height_mm: Height in millimetres; by default 0.6 of the width, and room for the legend above.
        font: Name of the font.
        font_size: Size of ordinary text in points, as printed.
        title: Whether the titles are printed.

    Returns:
        The paths of the files.

    Raises:
        InvalidInput: If a format, a size or the font is not one.
        HedgerowError: If kaleido or a browser is missing: install `hedgerow[figures]`.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if isinstance(formats, str) or unknown or not formats:
        told = repr(formats) if isinstance(formats, str) else ", ".join(unknown) or "nothing"
        raise InvalidInput(f"figures are written as a list of {', '.join(FORMATS)}, not as {told}")
    paper = Paper(width_mm, height_mm, font, font_size, title)
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
