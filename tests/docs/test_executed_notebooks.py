"""Notebooks: cells, execution, the page, the .ipynb file, the cache, and what is said about a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.docs import notebooks

SAMPLE = Path(__file__).parent / "sample_notebook.py"
SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.py"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Figures are not drawn by a browser, which takes seconds; the paths they would have."""
    paths: list[Path] = []

    def draw(jobs: list[tuple[Any, Path]]) -> None:
        for _, path in jobs:
            paths.append(path)
            path.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    monkeypatch.setattr(notebooks, "draw_figures", draw)
    return paths


def test_cells() -> None:
    found = notebooks.cells(SAMPLE.read_text())
    assert [(cell.kind, cell.line) for cell in found] == [("markdown", 4), ("code", 9), ("code", 26), ("code", 31)]
    assert found[0].source == "# A sample\n\nText with `code` and a [link](https://example.org)."


def test_outputs_are_kept_in_order(tmp_path: Path, drawn: list[Path]) -> None:
    found = notebooks.execute(SAMPLE, tmp_path)
    assert found[1].outputs == [{"kind": "stream", "data": "printed 20\n"}, {"kind": "text", "data": "21"}]
    assert [output["kind"] for output in found[2].outputs] == ["html", "stream", "figure"]
    assert found[2].outputs[2] == {"kind": "figure", "data": "sample_notebook-1.svg", "text": "A line"}
    assert found[3].outputs == []
    assert drawn == [tmp_path / "sample_notebook-1.svg"]


def test_page_and_notebook_file(tmp_path: Path, drawn: list[Path]) -> None:
    notebooks.render(SAMPLE, tmp_path)
    page = (tmp_path / "sample_notebook.md").read_text()
    assert page.startswith("# A sample\n\n[As a notebook](sample_notebook.ipynb) · [as a script](sample_notebook.py)\n")
    assert "![A line](sample_notebook-1.svg)" in page
    assert '<div class="cell-output"><table><tr><td>a</td></tr>\n<tr><td>b</td></tr></table></div>' in page
    assert "```text\n21\n```" in page
    book = nbformat.read(tmp_path / "sample_notebook.ipynb", as_version=4)
    nbformat.validate(book)
    kinds = [output["output_type"] for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert kinds == ["stream", "execute_result", "execute_result", "stream", "display_data"]
    assert "image/svg+xml" in book.cells[2].outputs[2]["data"]
    assert (tmp_path / "sample_notebook.py").read_text() == SAMPLE.read_text()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("# %%\nx = 1\n\n# %%\n\nx = 2\nx / 0\n", "bad.py, cell 2, line 7: ZeroDivisionError: division by zero"),
        ("# %%\nx = 1\nx = = 2\n", "bad.py, cell 1, line 3: SyntaxError: "),
        ("# %% [markdown]\n# text\nno hash\n", "bad.py, line 3: a line of a Markdown cell starts with `#`"),
        ("# %%\ndef f():\n    raise KeyError(1)\n\nf()\n", "bad.py, cell 1, line 3: KeyError: 1"),
    ],
)
def test_a_mistake_names_file_cell_and_line(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(notebooks.NotebookError) as caught:
        notebooks.execute(tmp_path / "bad.py", tmp_path)
    assert str(caught.value).startswith(message)


def test_executed_once_per_state(tmp_path: Path) -> None:
    file = tmp_path / "count.py"
    file.write_text("# %%\nimport os\n\nos.getpid()\n")
    first = notebooks.rendered(file, tmp_path / "cache")
    page = (first / "count.md").read_text()
    assert notebooks.rendered(file, tmp_path / "cache") == first
    assert (first / "count.md").read_text() == page
    file.write_text(file.read_text() + "\n")
    assert notebooks.rendered(file, tmp_path / "cache") != first
    assert json.loads((first / "count.ipynb").read_text())["nbformat"] == 4


def test_a_failing_notebook_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("# %%\n1 / 0\n")
    with pytest.raises(notebooks.NotebookError, match=r"bad\.py, cell 1, line 2: ZeroDivisionError"):
        notebooks.rendered(file, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_repository_keeps_every_notebook_executed(script: Path) -> None:
    """Its cells are those of the script, and every code cell has run, in order and without an error."""
    book = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(book)
    shown = [(cell.cell_type, cell.source) for cell in book.cells]
    written = [(cell.kind, cell.source) for cell in notebooks.cells(script.read_text(encoding="utf-8"))]
    assert shown == written, "run: python tools/write_notebooks.py"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert {output.output_type for cell in code for output in cell.outputs} == {
        "stream", "execute_result", "display_data",
    }  # fmt: skip
