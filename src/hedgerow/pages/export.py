"""Figures as files for a paper: PDF, SVG and PNG of a width in millimetres, with fonts in points as printed.

    save_figure(run.plot("regret"), "regret.pdf")            # 84 mm wide, 8 pt, no title: one column of a paper
    write_figures("out/quickstart", "figures", ["pdf"])      # all of them, <world>__<adversary>__T<episodes>__<figure>

They are the figures of the page, in its light colours, with a legend of their own. Drawing them takes a browser:
kaleido drives a Chrome or Chromium that is installed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow import disk
from hedgerow.errors import InvalidInput
from hedgerow.pages.colours import pens
from hedgerow.pages.drawing import draw
from hedgerow.pages.figures import Figure, figures
from hedgerow.pages.paper import COLUMN_MM, FONT, FONT_SIZE, Paper, drawing_of
from hedgerow.pages.plots import Plot, titled
from hedgerow.pages.sections import by_setting
from hedgerow.results.groups import Setting
from hedgerow.results.naming import slug
from hedgerow.results.record import Results
from hedgerow.results.store import open as open_results

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
        >>> world = hr.catalogue.make("lower-bound-2")
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
        disk.save(target, blob, overwrite=True)
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
