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
from hedgerow.report.export import (
    Drawing,
    Paper,
    draw,
    finished_pdf,
    finished_png,
    finished_svg,
    paper_plots,
    save_figures,
    write_figures,
)
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
    assert (asked.kind, asked.width_mm, asked.height_mm, asked.title) == ("pdf", 84, 50, "Growth of R & V")
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
    assert (drawn[0].kind, drawn[0].title) == ("pdf", "bold & plain".replace("bold ", "bold  "))
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


# Files ----------------------------------------------------------------------------------------------------------------


def test_only_ids_and_references_lose_their_random_digits() -> None:
    written = (
        '<svg class="main-svg" width="10" height="5" style="" viewBox="0 0 10 5"><defs id="defs-123456">'
        '<clipPath id="clip123456xy"/></defs><g clip-path="url(#clip123456xy)"><path d="M0.123456,1"/></g>'
        '<g style="clip-path: url(\'#clip123456xy\')"/><g id="topdefs-123456"/></svg>'
    )
    text = finished_svg(written.encode(), 84, 50.5, "a < b").decode()
    root = ElementTree.fromstring(text.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))
    assert (root.get("width"), root.get("height"), root.get("viewBox"), root.get("role")) == (
        "84mm",
        "50.5mm",
        "0 0 10 5",
        "img",
    )
    assert root.findtext(f"{SVG}title") == "a < b"
    assert text.count("clipplot-xy") == 3
    assert text.count("123456") == 1  # the coordinate
    assert (
        text
        == finished_svg(
            written.replace("123456", "abcdef").replace("abcdef,1", "123456,1").encode(), 84, 50.5, "a < b"
        ).decode()
    )
    with pytest.raises(HedgerowError, match="not as plotly writes it"):
        finished_svg(b"<html>", 84, 50, "")


def made_pdf() -> bytes:
    """The smallest file with the parts that a browser writes."""
    date = b"(D:20261117143653+00'00')"
    about = b"<</Title (page \\(1\\))\n/Creator (Some Browser)\n/CreationDate %b\n/ModDate %b>>" % (date, date)
    parts = [
        b"1 0 obj\n%b\nendobj\n" % about,
        b"2 0 obj\n<</Type /Page\n/MediaBox [0 0 239.03999 155.04]>>\nendobj\n",
        b"3 0 obj\n<</Type /Catalog>>\nendobj\n",
    ]
    blob, places = b"%PDF-1.4\n", []
    for part in parts:
        places.append(len(blob))
        blob += part
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 4\n0000000000 65535 f \n" + table + b"trailer\n<</Size 4\n/Root 3 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return blob + end % len(blob)


def test_pdf_pages_have_their_size_and_the_table_of_objects_stays_right() -> None:
    blob = finished_pdf(made_pdf(), 84.0, 54.6, "Länge (λ)")
    box = [float(number) for number in re.search(rb"/MediaBox \[(.*)\]", blob)[1].split()]  # type: ignore[index]
    assert box[2] - box[0] == pytest.approx(84.0 * 72 / 25.4, abs=1e-4)
    assert box[3] - box[1] == pytest.approx(54.6 * 72 / 25.4, abs=1e-4)
    assert box[3] == 155.04  # the picture hangs from the top
    for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n", blob), start=1):
        assert blob[int(place) :].startswith(b"%d 0 obj" % number)
    start = int(re.search(rb"startxref\n(\d+)", blob)[1])  # type: ignore[index]
    assert blob[start:].startswith(b"xref")
    title = re.search(rb"/Title <([0-9a-f]+)>", blob)[1]  # type: ignore[index]
    assert bytes.fromhex(title.decode()).decode("utf-16") == "Länge (λ)"
    assert b"2026" not in blob
    with pytest.raises(HedgerowError, match="0 pages"):
        finished_pdf(b"%PDF", 84, 50, "")


def test_png_files_say_their_resolution() -> None:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s13sI", 13, b"IHDR", b"\0" * 13, 0)
    blob = finished_png(header + b"rest", 300.0)
    assert blob.startswith(header)
    assert blob.endswith(b"rest")
    length, name, x, y, unit = struct.unpack(">I4sIIB", blob[len(header) : len(header) + 17])
    assert (length, name, x, y, unit) == (9, b"pHYs", 11811, 11811, 1)


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
def test_files_have_exactly_their_size_and_equal_bytes(tmp_path: Path) -> None:
    jobs = [(PLOT, tmp_path / f"{name}.{kind}") for name in "ab" for kind in ("svg", "pdf", "png")]
    paper = Paper(84, 52.3, "Liberation Serif, Times, serif", 8)
    save_figures(jobs, paper)
    first, second = (
        {kind: (tmp_path / f"{name}.{kind}").read_bytes() for kind in ("svg", "pdf", "png")} for name in "ab"
    )
    assert first["svg"] == second["svg"]
    assert first["pdf"] == second["pdf"]
    root = ElementTree.fromstring(first["svg"])
    assert (root.get("width"), root.get("height")) == ("84mm", "52.3mm")
    width, height = (float(number) for number in (root.get("viewBox") or "").split()[2:])
    assert width / height == pytest.approx(84 / 52.3)
    ticks = [text for text in root.iter(f"{SVG}text") if text.text == "episodes t"]
    size = float(re.search(r"font-size: ([0-9.]+)px", ticks[0].get("style") or "")[1])  # type: ignore[index]
    assert size * 84 / width * 72 / 25.4 == pytest.approx(8.0)
    box = [float(number) for number in re.search(rb"/MediaBox \[(.*)\]", first["pdf"])[1].split()]  # type: ignore[index]
    assert [box[2] - box[0], box[3] - box[1]] == pytest.approx([84 * 72 / 25.4, 52.3 * 72 / 25.4], abs=1e-3)
    fonts = re.findall(rb"/FontFile[23]? ", first["pdf"])
    assert len(fonts) == len(set(re.findall(rb"/FontName /(\S+)", first["pdf"]))) >= 1  # all are embedded
    assert struct.unpack(">II", first["png"][16:24]) == pytest.approx((84 / 25.4 * 300, 52.3 / 25.4 * 300), abs=1)


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
