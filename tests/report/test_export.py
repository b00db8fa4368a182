"""Figures for a paper: names and legends, the exact size in every format, and what is said without a browser."""

from __future__ import annotations

import asyncio
import copy
import re
import struct
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from run_cases import made_directory
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli, results
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report import export
from hedgerow.report import export as drawing
from hedgerow.report.export import Drawing, Paper, draw, paper_plots, save_figures, write_figures
from hedgerow.report.plots import Line, log_plot

SVG = "{http://www.w3.org/2000/svg}"
PLOT = log_plot(
    "Growth of R & V", "episodes t", "regret", [Line("one", [(1.0, 1.0), (9.0, 3.0)]), Line("two", [(1.0, 2.0)])]
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_directory(tmp_path_factory.mktemp("export") / "out", seeds=2)


def test_every_figure_has_a_name_and_a_legend(directory: Path) -> None:
    plots = paper_plots(results.open(directory))
    kinds = ["regret", "regret-growth", "violation", "margin-0", "margin-1", "mixing"]
    assert list(plots) == [f"toy__switching-100__T1000__{kind}" for kind in kinds]
    for plot in plots.values():
        named = [trace["name"] for trace in plot["data"] if trace.get("showlegend", True)]
        assert named == ["s-ops sharp", "sv-ops"]
        assert plot["layout"]["showlegend"] is True


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Drawing]:
    """What a browser would have been asked to draw."""
    asked: list[Drawing] = []

    def fake(drawings: list[Drawing]) -> list[bytes]:
        asked.extend(drawings)
        return [b"file" for _ in drawings]

    monkeypatch.setattr(export, "draw", fake)
    return asked


def test_ordinary_text_is_printed_in_its_size(tmp_path: Path, drawn: list[Drawing]) -> None:
    before = copy.deepcopy(PLOT)
    path = hr.save_figure(PLOT, tmp_path / "new" / "a.pdf", width_mm=84, height_mm=50, font="Times", font_size=8)
    (asked,) = drawn
    assert path.read_bytes() == b"file"
    assert (asked.kind, asked.width_mm, asked.height_mm) == ("pdf", 84, 50)
    layout = asked.plot["layout"]
    points = layout["font"]["size"] / asked.units_per_mm * 72.0 / 25.4
    assert points == pytest.approx(8.0)
    assert layout["font"]["family"] == "Times"
    assert "title" not in layout
    assert layout["legend"]["orientation"] == "h"
    assert layout["legend"]["y"] > 1.0  # above the plot: it covers no curve
    assert before == PLOT


def test_a_title_goes_with_the_legend_and_a_legend_that_was_placed_stays(tmp_path: Path, drawn: list[Drawing]) -> None:
    hr.save_figure(PLOT, tmp_path / "a.svg", title=True)
    placed = {**PLOT, "layout": {**PLOT["layout"], "legend": {"x": 0.1, "y": 0.9}}}
    hr.save_figure(placed, tmp_path / "b.svg")
    alone = {**PLOT, "layout": {**PLOT["layout"], "showlegend": False}}
    hr.save_figure(alone, tmp_path / "c.svg", title=True)
    layouts = [asked.plot["layout"] for asked in drawn]
    assert layouts[0]["legend"]["title"]["text"] == "Growth of R &amp; V"
    assert layouts[1]["legend"] == {"x": 0.1, "y": 0.9}
    assert layouts[2]["title"]["text"] == "Growth of R &amp; V"


def test_long_names_make_the_figure_higher_instead_of_the_plot_lower(tmp_path: Path, drawn: list[Drawing]) -> None:
    for names in (["a", "b"], [f"{'long' * 10} {i}" for i in range(5)]):
        lines = [Line(name, [(1.0, 1.0), (2.0, 2.0)]) for name in names]
        hr.save_figure(log_plot("t", "x", "y", lines), tmp_path / "a.svg")
    short, long = (asked.height_mm for asked in drawn)
    assert short == pytest.approx(0.6 * 84 + 1.5 * 0.92 * 8 * 25.4 / 72)
    assert long == pytest.approx(0.6 * 84 + 5 * 1.5 * 0.92 * 8 * 25.4 / 72)


def test_figures_of_plotly_are_taken(tmp_path: Path, drawn: list[Drawing]) -> None:
    from plotly import graph_objects

    made = graph_objects.Figure(graph_objects.Scatter(x=[1, 2], y=[3, 4]), {"title": "<b>bold</b> &amp; plain"})
    hr.save_figure(made, tmp_path / "a.PDF")
    assert drawn[0].kind == "pdf"
    assert drawn[0].plot["layout"]["font"]["family"].startswith("Helvetica")
    assert drawn[0].units_per_mm * 25.4 / 72.0 * 8.0 == pytest.approx(12.0)  # the size of plotly's own template


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"width_mm": 0}, "width_mm must be a number of millimetres from 20 to 2000, not 0"),
        ({"width_mm": float("nan")}, "width_mm must be"),
        ({"width_mm": "84"}, "width_mm must be"),
        ({"height_mm": 1e9}, "height_mm must be"),
        ({"font_size": True}, "font_size must be a number of points from 3 to 72"),
        ({"font": ""}, "name of a font"),
        ({"font": "x;} </style>"}, "name of a font"),
    ],
)
def test_papers_that_cannot_be(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        Paper(**changes)


def test_figures_and_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"a\.bmp must end with \.pdf, \.svg, \.png"):
        hr.save_figure(PLOT, tmp_path / "a.bmp")
    for wrong in (None, {}, {"data": 3}, [1]):
        with pytest.raises(InvalidInput, match="must be a plotly figure"):
            hr.save_figure(wrong, tmp_path / "a.pdf")


def test_unknown_formats_are_refused(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pdf, svg, png, not as bmp"):
        write_figures(directory, tmp_path, ["bmp"])
    with pytest.raises(InvalidInput, match="not as nothing"):
        write_figures(directory, tmp_path, [])
    with pytest.raises(InvalidInput, match="not as 'svg'"):
        write_figures(directory, tmp_path, "svg")


def test_without_kaleido_the_error_says_what_to_do(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(HedgerowError, match=r"hedgerow\[figures\]"):
        write_figures(directory, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def test_a_browser_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_DRAWER", "import time; time.sleep(600)")
    monkeypatch.setattr(export, "SECONDS_TO_START", 0.5)
    with pytest.raises(HedgerowError, match=r"gave no answer within 0\.5 s"):
        draw([])


def test_a_browser_that_answers_at_the_second_try_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, ""])
    monkeypatch.setattr(export, "_answer", lambda *_: next(answers))
    assert draw([]) == []


def test_what_the_browser_says_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_DRAWER", "import sys; sys.exit('warned first\\nKaleidoError: too wide')")
    with pytest.raises(HedgerowError, match="could not be drawn: KaleidoError: too wide"):
        draw([])


# With a browser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> None:
    pytest.importorskip("kaleido")
    try:
        drawing.check_browser()
    except HedgerowError as error:
        pytest.skip(f"no browser starts here: {error}")


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_files_have_their_size(tmp_path: Path) -> None:
    """An SVG exactly (96 pixels per inch), a PNG to a pixel; browsers round the page of a PDF, to 0.2 mm at most."""
    paths = {kind: tmp_path / f"a.{kind}" for kind in ("svg", "pdf", "png")}
    save_figures([(PLOT, path) for path in paths.values()], Paper(84, 52.3, "Liberation Serif, Times, serif", 8))
    written = {kind: path.read_bytes() for kind, path in paths.items()}
    root = ElementTree.fromstring(written["svg"])
    shown = [float(root.get(name) or 0.0) * 25.4 / 96 for name in ("width", "height")]
    assert shown == pytest.approx([84, 52.3])
    width, height = (float(number) for number in (root.get("viewBox") or "").split()[2:])
    assert width / height == pytest.approx(84 / 52.3)
    ticks = [text for text in root.iter(f"{SVG}text") if text.text == "episodes t"]
    size = float(re.search(r"font-size: ([0-9.]+)px", ticks[0].get("style") or "")[1])  # type: ignore[index]
    assert size * 84 / width * 72 / 25.4 == pytest.approx(8.0)
    boxes = re.findall(rb"/MediaBox \[0 0 (\S+) ([0-9.]+)\]", written["pdf"])
    assert len(boxes) == 1
    assert [float(side) * 25.4 / 72 for side in boxes[0]] == pytest.approx([84, 52.3], abs=0.2)
    fonts = re.findall(rb"/FontFile[23]? ", written["pdf"])
    assert len(fonts) == len(set(re.findall(rb"/FontName /(\S+)", written["pdf"]))) >= 1  # all are embedded
    assert struct.unpack(">II", written["png"][16:24]) == pytest.approx((84 / 25.4 * 300, 52.3 / 25.4 * 300), abs=1)


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_figures_are_drawn_while_an_event_loop_runs() -> None:
    async def in_a_notebook() -> list[bytes]:
        return draw([Drawing(PLOT, "svg", 84, 50, 4.0)])

    assert asyncio.run(in_a_notebook())[0].startswith(b"<svg ")


def test_the_command_writes_figures_as_asked(directory: Path, tmp_path: Path, drawn: list[Drawing]) -> None:
    wanted = ["--format", "pdf", "--format", "svg", "--width", "84", "--font", "Times", "--font-size", "9", "--title"]
    page = ["--out", str(tmp_path / "page.html")]
    done = CliRunner().invoke(
        cli.app, ["report", str(directory), *page, "--figures", str(tmp_path / "figures"), *wanted]
    )
    assert done.exit_code == 0, done.output
    assert sorted({asked.kind for asked in drawn}) == ["pdf", "svg"]
    assert len(drawn) == len(list((tmp_path / "figures").iterdir())) == 12
    assert {asked.width_mm for asked in drawn} == {84.0}
    assert {asked.plot["layout"]["font"]["family"] for asked in drawn} == {"Times"}
    assert drawn[0].plot["layout"]["legend"]["title"]["text"] == "Regret"
    assert str(tmp_path / "figures" / "toy__switching-100__T1000__regret.pdf") in done.output.replace("\n", "")
    refused = CliRunner().invoke(cli.app, ["report", str(directory), *page, "--width", "84"])
    assert refused.exit_code == 2
    assert "name a folder by --figures" in " ".join(refused.output.split())
