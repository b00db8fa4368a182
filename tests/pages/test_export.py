"""Figures for a paper: their names, their legends, and what is said when nothing can draw them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from run_cases import made_directory

from hedgerow import results
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.pages.export import paper_plots, write_figures


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


def test_unknown_formats_are_refused(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="svg and png, not as bmp"):
        write_figures(directory, tmp_path, ["bmp"])
    with pytest.raises(InvalidInput, match="not as nothing"):
        write_figures(directory, tmp_path, [])


def test_without_kaleido_the_error_says_what_to_do(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(HedgerowError, match=r"hedgerow\[figures\]"):
        write_figures(directory, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
