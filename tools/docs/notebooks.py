"""Notebooks: `docs/notebooks/*.py` in the py:percent format, executed and written as a page and as an .ipynb file.

    # %% [markdown]
    # # A title
    # Text in Markdown, each line behind a hash.
    # %%
    x = 2
    x + 1                     the last expression of a cell is shown: repr, `_repr_html_`, or a plotly figure as SVG

`display(value)` shows a value in the middle of a cell. A notebook is executed in a process of its own, from top to
bottom, and what came out is kept under the hash of the notebook, of the package and of this module.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import hashlib
import io
import json
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError
from tools.docs.staging import missing_targets, with_links

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
_CELL = re.compile(r"^# %%(?P<title>.*)$")
_BLANK_LINES = re.compile(r"\n\s*\n")


class NotebookError(HedgerowError):
    """A cell failed; the message names file, cell and line."""


@dataclass
class Cell:
    """A cell, and what it left once it has run."""

    kind: str
    """`markdown` or `code`"""
    source: str
    line: int
    """Of its first line in the file, from 1"""
    outputs: list[dict[str, str]] = field(default_factory=list)
    """Each has a `kind`: stream (text), text, html or figure (its file), and `data`"""


def cells(text: str) -> list[Cell]:
    """The cells of a file; what stands before the first mark is a code cell, unless it is only comments."""
    found: list[tuple[str, int, list[str]]] = [("head", 1, [])]
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _CELL.match(line)
        if mark:
            kind = "markdown" if "[markdown]" in mark["title"] else "code"
            found.append((kind, number + 1, []))
        else:
            found[-1][2].append(line)
    return list(_cleaned(found))


def _cleaned(found: list[tuple[str, int, list[str]]]) -> Iterator[Cell]:
    for kind, line, lines in found:
        if kind == "head" and all(not each.strip() or each.startswith("#") for each in lines):
            continue
        first = next((number for number, each in enumerate(lines) if each.strip()), None)
        if first is None:
            continue
        kept = lines[first:]
        if kind == "markdown":
            wrong = next((n for n, each in enumerate(kept) if each.strip() and not each.startswith("#")), None)
            if wrong is not None:
                raise NotebookError(f"line {line + first + wrong}: a line of a Markdown cell starts with `#`")
            kept = [each[2:] if each.startswith("# ") else each[1:] for each in kept]
        yield Cell("markdown" if kind == "markdown" else "code", "\n".join(kept).rstrip(), line + first)


def execute(file: Path, folder: Path) -> list[Cell]:
    """Run the cells of a notebook in this process, in order; figures are drawn into `folder`.

    Raises:
        NotebookError: If a cell raises, with file, cell, line and reason.
    """
    name = file.name
    try:
        found = cells(file.read_text(encoding="utf-8"))
    except NotebookError as error:
        raise NotebookError(f"{name}, {error}") from None
    names: dict[str, Any] = {"__name__": "__main__"}
    figures = _Figures(folder, file.stem)
    for number, cell in enumerate(found, start=1):
        if cell.kind != "code":
            continue
        try:
            _run_cell(cell, names, figures, f"<{name}, cell {number}>")
        except Exception as error:  # any mistake of the notebook
            raise NotebookError(_failure(name, number, cell, error)) from error
    draw_figures(figures.jobs)
    return found


def _run_cell(cell: Cell, names: dict[str, Any], figures: _Figures, code_name: str) -> None:
    linecache.cache[code_name] = (len(cell.source), None, cell.source.splitlines(keepends=True), code_name)
    body = ast.parse(cell.source, code_name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()

    def flush() -> None:
        if printed.getvalue():
            cell.outputs.append({"kind": "stream", "data": printed.getvalue()})
        printed.seek(0)
        printed.truncate()

    def show(value: Any) -> None:
        flush()
        cell.outputs.append(_shown(value, figures))

    names["display"] = show
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), code_name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), code_name, "eval"), names)
            if value is not None and not cell.source.rstrip().endswith(";"):
                show(value)
    flush()


class _Figures:
    """The figures of a notebook, named one after the other, drawn all at once: starting a browser takes seconds."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder, self.stem = folder, stem
        self.jobs: list[tuple[Any, Path]] = []

    def add(self, figure: Any) -> str:
        name = f"{self.stem}-{len(self.jobs) + 1}.svg"
        self.jobs.append((copy.deepcopy(figure), self.folder / name))  # later cells may change it
        return name


def draw_figures(jobs: list[tuple[Any, Path]]) -> None:
    """Write plotly figures as SVG, on a light ground. The only place that knows how figures of notebooks are drawn."""
    from hedgerow.report.export import FOR_DOCS, save_figures

    if jobs:
        save_figures(jobs, FOR_DOCS)


def _shown(value: Any, figures: _Figures) -> dict[str, str]:
    if type(value).__module__.partition(".")[0] == "plotly" and hasattr(value, "to_plotly_json"):
        return {"kind": "figure", "data": figures.add(value), "text": _figure_title(value)}
    page = value._repr_html_() if hasattr(value, "_repr_html_") and not isinstance(value, type) else None
    if page is not None:
        return {"kind": "html", "data": page, "text": repr(value)}
    return {"kind": "text", "data": repr(value)}


def _figure_title(figure: Any) -> str:
    text = getattr(getattr(figure.layout, "title", None), "text", None)
    return re.sub(r"<[^>]*>", "", text) if text else "Figure"


def _failure(name: str, number: int, cell: Cell, error: Exception) -> str:
    line = cell.line
    if isinstance(error, SyntaxError) and error.lineno:
        line += error.lineno - 1
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == f"<{name}, cell {number}>" and frame.lineno:
            line = cell.line + frame.lineno - 1
    return f"{name}, cell {number}, line {line}: {type(error).__name__}: {error}"


def as_page(stem: str, found: list[Cell], mend: Callable[[str], str] = str) -> str:
    """The executed notebook as Markdown, with links to its two other forms below the title; `mend` mends its text."""
    links = f"[As a notebook]({stem}.ipynb) · [as a script]({stem}.py)\n"
    parts: list[str] = []
    for cell in found:
        if cell.kind == "markdown":
            parts.append(mend(cell.source).rstrip() + "\n")
        else:
            parts.append(f"```python\n{cell.source}\n```\n")
            parts += [_output_on_page(output) for output in cell.outputs]
    text = "\n".join(parts)
    title, newline, rest = text.partition("\n")
    return f"{title}\n\n{links}{newline}{rest}" if title.startswith("# ") else f"{links}\n{text}"


def _output_on_page(output: dict[str, str]) -> str:
    if output["kind"] == "figure":
        return f"![{output['text'].replace('[', '(').replace(']', ')')}]({output['data']})\n"
    if output["kind"] == "html":
        return f'<div class="cell-output">{_BLANK_LINES.sub(chr(10), output["data"].strip())}</div>\n'
    return f'<div class="cell-output" markdown="1">\n\n```text\n{output["data"].rstrip()}\n```\n\n</div>\n'


def as_ipynb(found: list[Cell], folder: Path) -> dict[str, Any]:
    """The executed notebook as nbformat 4, valid by nbformat's own check."""
    import nbformat

    count = 0
    made: list[Any] = []
    for number, cell in enumerate(found, start=1):
        if cell.kind == "markdown":
            node = nbformat.v4.new_markdown_cell(cell.source)
        else:
            count += 1
            outputs = [_output_of_ipynb(output, count, folder) for output in cell.outputs]
            node = nbformat.v4.new_code_cell(cell.source, execution_count=count, outputs=outputs)
        node["id"] = f"cell-{number}"  # as good as a random one, and equal builds are equal
        made.append(node)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = nbformat.v4.new_notebook(cells=made, metadata=kernel)
    nbformat.validate(book)
    return dict(book)


def _output_of_ipynb(output: dict[str, str], count: int, folder: Path) -> Any:
    import nbformat

    if output["kind"] == "stream":
        return nbformat.v4.new_output("stream", name="stdout", text=output["data"])
    if output["kind"] == "figure":
        image = (folder / output["data"]).read_text(encoding="utf-8")
        return nbformat.v4.new_output("display_data", {"image/svg+xml": image, "text/plain": output["text"]})
    data = {"text/plain": output.get("text", output["data"])}
    if output["kind"] == "html":
        data["text/html"] = output["data"]
    return nbformat.v4.new_output("execute_result", data, execution_count=count)


def render(file: Path, folder: Path) -> None:
    """Execute a notebook and write the page, the .ipynb file, the script and the figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = execute(file, folder)
    page = as_page(file.stem, found, lambda text: _with_links(text, file))
    (folder / f"{file.stem}.md").write_text(page, encoding="utf-8")
    book = json.dumps(as_ipynb(found, folder), indent=1, ensure_ascii=False)
    (folder / f"{file.stem}.ipynb").write_text(book + "\n", encoding="utf-8")
    shutil.copyfile(file, folder / file.name)


def _with_links(text: str, file: Path) -> str:
    """Links of a text cell, written as seen from the file, as seen from the page."""
    if not file.is_relative_to(ROOT / "docs"):
        return text
    path = file.relative_to(ROOT).as_posix()
    for complaint in missing_targets(text, path):
        raise NotebookError(complaint)
    return with_links(text, path, f"notebooks/{file.stem}.md")


def rendered(file: Path, cache: Path, root: Path = ROOT) -> Path:
    """The folder in which the rendered notebook is; it is executed unless this very state of it has been before."""
    kept = cache / f"{file.stem}-{_state(file, root)}"
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with tempfile.TemporaryDirectory(prefix=".rendering-", dir=cache) as scratch:
        folder = Path(scratch) / "pages"
        done = subprocess.run(
            [sys.executable, "-m", "tools.docs.notebooks", str(file.resolve()), str(folder.resolve())],
            cwd=scratch,
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"},
        )
        if done.returncode:
            raise NotebookError(done.stderr.strip() or f"{file.name}: the process ended with {done.returncode}")
        if not kept.is_dir():  # another process may have been as fast
            folder.rename(kept)
    return kept


def _state(file: Path, root: Path) -> str:
    sources = [*sorted((root / "src" / "hedgerow").rglob("*.py")), Path(__file__), file]
    state = hashlib.sha256()
    for source in sources:
        state.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return state.hexdigest()[:16]


def stage(pages: Path, cache: Path, root: Path = ROOT) -> list[str]:
    """Copy every rendered notebook of docs/notebooks to the site; complaints."""
    complaints: list[str] = []
    for file in sorted((root / "docs" / "notebooks").glob("*.py")):
        try:
            shutil.copytree(rendered(file, cache, root), pages / "notebooks", dirs_exist_ok=True)
        except NotebookError as error:
            complaints.append(str(error))
    return complaints


def main(file: str, folder: str) -> int:
    try:
        render(Path(file), Path(folder))
    except NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
