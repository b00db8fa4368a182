"""Check what the documentation says: links lead somewhere, names exist, examples run.

Three checks, each a function that returns its complaints:
- every relative link in a Markdown file leads to a file (and to a heading, if it names one);
- every `file.py` and `file.py::name` in the pages NAMED_SOURCES exists under src/hedgerow;
- every Python block of the pages WITH_EXAMPLES and every example in a module docstring does what it shows.

    python tools/check_docs.py
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "hedgerow"
NAMED_SOURCES = ("docs/paper-map.md", "docs/notation.md", "docs/learners.md")
WITH_EXAMPLES = (
    "README.md",
    "docs/learners.md",
    "docs/knowledge.md",
    "docs/own-learner.md",
    "docs/gymnasium.md",
    "docs/projection.md",
    "docs/ev-workday.md",
)

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_SOURCE_NAME = re.compile(r"`([a-z_/]+\.py)(?:::([A-Za-z_][\w.]*))?`")
_PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def markdown_files(root: Path = ROOT) -> list[Path]:
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def broken_links(file: Path) -> Iterator[str]:
    """Relative links of one Markdown file that lead nowhere."""
    for target in _LINK.findall(_FENCED.sub("", file.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, heading = target.partition("#")
        linked = (file.parent / path).resolve() if path else file
        if not linked.exists():
            yield f"{_short(file)}: the link {target} leads nowhere"
        elif heading and linked.suffix == ".md" and heading not in _headings(linked):
            yield f"{_short(file)}: {_short(linked)} has no heading #{heading}"


def unknown_names(file: Path, sources: Path = SOURCES) -> Iterator[str]:
    """Mentions of source files, or of names in them, that do not exist."""
    for path, name in _SOURCE_NAME.findall(file.read_text()):
        source = sources / path
        if not source.is_file():
            yield f"{_short(file)}: there is no source file {path}"
        elif name and name not in _defined(source):
            yield f"{_short(file)}: {path} defines no {name}"


def failing_blocks(file: Path) -> Iterator[str]:
    """Python blocks of a Markdown file that do not run; a line `expression  # value` must have that value."""
    names: dict[str, object] = {}
    for number, block in enumerate(_PYTHON_BLOCK.findall(file.read_text()), start=1):
        try:
            _run_block(block, names)
        except Exception as error:  # any exception of an example is a complaint about it
            yield f"{_short(file)}, Python block {number}: {type(error).__name__}: {error}"


def failing_doctests() -> Iterator[str]:
    """Modules whose docstring examples fail."""
    for module in module_names():
        loaded = importlib.import_module(module)
        failed = doctest.testmod(loaded, report=False).failed
        if failed:
            yield f"{module}: {failed} failing example(s) in its docstrings"


def module_names() -> list[str]:
    """All modules of the package and of the benchmarks, without the command lines."""
    folders = (SOURCES, ROOT / "bench")
    parts = [file.relative_to(each.parent).with_suffix("").parts for each in folders for file in each.rglob("*.py")]
    names = [".".join(p[:-1] if p[-1] == "__init__" else p) for p in sorted(parts) if p[-1] != "__main__"]
    return [name for name in names if name != "hedgerow.cli"]


def complaints() -> Iterator[str]:
    for file in markdown_files():
        yield from broken_links(file)
    for name in NAMED_SOURCES:
        yield from unknown_names(ROOT / name)
    for name in WITH_EXAMPLES:
        yield from failing_blocks(ROOT / name)
    yield from failing_doctests()


def _run_block(block: str, names: dict[str, object]) -> None:
    """Execute a block; compare `expression  # value` lines with what the comment shows."""
    for statement in ast.parse(block).body:
        source = ast.get_source_segment(block, statement) or ""
        if not isinstance(statement, ast.Expr):
            exec(source, names)
            continue
        value = eval(source, names)
        shown = block.splitlines()[(statement.end_lineno or 1) - 1].partition("  # ")[2]
        if shown and repr(value) != shown:
            raise AssertionError(f"{source} is {value!r}, the text says {shown}")


def _headings(file: Path) -> set[str]:
    """The anchors that a Markdown viewer makes of the headings."""
    titles = re.findall(r"^#+ +(.+)$", _FENCED.sub("", file.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def _defined(source: Path) -> set[str]:
    """Names that a module defines at its top, and `Class.member`."""
    names: set[str] = set()
    for node in ast.parse(source.read_text()).body:
        for name in _targets(node):
            names.add(name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{name}.{member}" for inner in node.body for member in _targets(inner)}
                names |= {f"{name}.{member}" for member in _set_in_init(node)}
    return names


def _targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _set_in_init(node: ast.ClassDef) -> Iterator[str]:
    """Attributes that `__init__` assigns: self.name = ..."""
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def _short(file: Path) -> str:
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name


def main() -> int:
    sys.path.insert(0, str(ROOT))  # for the benchmarks, which are not installed
    found = list(complaints())
    for complaint in found:
        print(complaint, file=sys.stderr)
    count = len(markdown_files())
    print(f"{count} Markdown files and {len(module_names())} modules checked: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
