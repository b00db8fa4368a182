"""Plots become files: kaleido has a browser draw them, without the network; equal plots give equal bytes of SVG."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

from hedgerow.errors import HedgerowError
from hedgerow.pages.file_formats import finished_pdf, finished_png, finished_svg

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
