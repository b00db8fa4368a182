"""The figures of a report as SVG and PNG files, for a paper.

    write_figures("out/quickstart", "figures")          # <world>__<adversary>__T<episodes>__<figure>.svg, .png

They are the figures of the page, in its light colours, with a legend of their own. Drawing them takes a browser:
kaleido drives a Chrome or Chromium that is installed.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.pages.colours import pens
from hedgerow.pages.figures import Figure, figures
from hedgerow.pages.sections import by_setting
from hedgerow.pages.words import plot_text
from hedgerow.results.groups import Setting
from hedgerow.results.naming import slug
from hedgerow.results.record import Results
from hedgerow.results.store import open as open_results

FORMATS = ("svg", "png")
WIDTH, HEIGHT = 640, 420
PNG_SCALE = 3
"""Pixels of a PNG file per unit of length."""


def write_figures(
    source: Results | str | os.PathLike[str], folder: str | os.PathLike[str], formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Draw all figures of a directory of results into `folder`; older files of the same name are replaced.

    `source` is the directory, or what `hedgerow.results.open` made of it.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown or not formats:
        raise InvalidInput(f"figures are written as {' and '.join(FORMATS)}, not as {', '.join(unknown) or 'nothing'}")
    draw = _drawing()
    plots = paper_plots(source if isinstance(source, Results) else open_results(source))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    jobs = [(plot, target / f"{name}.{kind}", kind) for name, plot in plots.items() for kind in formats]
    draw(jobs)
    return [path for _, path, _ in jobs]


def paper_plots(results: Results) -> dict[str, dict[str, Any]]:
    """What plotly takes, by the name of the file; figures without content are left out."""
    found = results.groups
    drawn = pens([(group.learner, group.kind) for group in found])
    return {
        _name(setting, figure): _for_paper(figure)
        for setting, members in by_setting(found)
        for figure in figures(members, drawn)
        if figure.plot is not None
    }


def _name(setting: Setting, figure: Figure) -> str:
    return "__".join([slug(setting.world), slug(setting.adversary), f"T{setting.episodes}", figure.name])


def _for_paper(figure: Figure) -> dict[str, Any]:
    """The plot with title and legend."""
    plot = copy.deepcopy(figure.plot) or {}
    plot["layout"] |= {
        "title": {"text": plot_text(figure.title), "x": 0.02, "xanchor": "left", "y": 0.97, "font": {"size": 15}},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.01, "yanchor": "bottom", "font": {"size": 12}},
        "margin": {"l": 64, "r": 24, "t": 78, "b": 50},
    }
    return plot


def _drawing() -> Any:
    """A function that draws plots into files; refuses early if nothing can draw."""
    try:
        import kaleido  # noqa: F401 - only to say clearly that it is missing
        import plotly.io
    except ImportError as error:
        raise HedgerowError(
            "figures as files need kaleido and a Chrome or Chromium: install hedgerow[figures]; "
            "in the page of the report every figure has a button that saves it as SVG"
        ) from error

    def draw(jobs: Sequence[tuple[dict[str, Any], Path, str]]) -> None:
        drawn, paths, kinds = (list(part) for part in zip(*jobs, strict=True))
        scales = [PNG_SCALE if kind == "png" else 1 for kind in kinds]
        try:
            plotly.io.write_images(drawn, paths, format=kinds, scale=scales, width=WIDTH, height=HEIGHT)
        except Exception as error:  # kaleido and the browser have many ways to fail
            raise HedgerowError(f"the figures could not be drawn: {type(error).__name__}: {error}") from error

    return draw
