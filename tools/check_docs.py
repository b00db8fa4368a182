"""Check what the documentation says: links lead somewhere, names exist, every block is right and runs.

Five checks, each a function that returns its complaints:
- every relative link in a Markdown file leads to a file (and to a heading, if it names one);
- every `file.py` and `file.py::name` in the pages NAMED_SOURCES exists under src/hedgerow;
- every `hedgerow ...` in the text is a command that exists, with options that exist;
- every fenced block is of a known kind, and does what it shows (`tools/docs/blocks.py` lists the kinds);
- every example in a module docstring does what it shows.

    python tools/check_docs.py                    all pages, two at a time, and the docstrings
    python tools/check_docs.py docs/learners.md   these pages
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # the package, the benchmarks and these tools, installed or not

from tools.docs import commands, fences, pages_run  # noqa: E402

SOURCES = ROOT / "src" / "hedgerow"
NAMED_SOURCES = ("docs/paper-map.md", "docs/notation.md", "docs/learners.md")
HISTORY = ("CHANGELOG.md",)
"""Speaks of commands that are no more."""
BUILT = (("out",), ("dist",), ("build",), (".venv",))
"""Folders that a clone does not have; pages that only the site has (docs/api, docs/gallery.md) lead nowhere anyway."""
SLOWEST = 5
"""Pages whose seconds are printed."""

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_SOURCE_NAME = re.compile(r"`([a-z_/]+\.py)(?:::([A-Za-z_][\w.]*))?`")
_COMMAND = re.compile(r"`((?:\.venv/bin/)?hedgerow [a-z][^`]*|make [a-z][^`]*)`")


def markdown_files(root: Path = ROOT) -> list[Path]:
    """Every page: those at the root of the repository, and docs."""
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def broken_links(file: Path) -> Iterator[str]:
    """Relative links of one Markdown file that lead nowhere."""
    for target in _LINK.findall(fences.without_blocks(file.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, heading = target.partition("#")
        linked = (file.parent / path).resolve() if path else file
        if not linked.exists():
            yield f"{_short(file)}: the link {target} leads nowhere"
        elif linked.is_relative_to(ROOT) and linked.relative_to(ROOT).parts[:1] in BUILT:
            yield f"{_short(file)}: the link {target} leads to what a command makes, not to a file of the repository"
        elif heading and linked.suffix == ".md" and heading not in fences.anchors(linked.read_text(encoding="utf-8")):
            yield f"{_short(file)}: {_short(linked)} has no heading #{heading}"


def unknown_names(file: Path, sources: Path = SOURCES) -> Iterator[str]:
    """Mentions of source files, or of names in them, that do not exist."""
    for path, name in _SOURCE_NAME.findall(file.read_text(encoding="utf-8")):
        source = sources / path
        if not source.is_file():
            yield f"{_short(file)}: there is no source file {path}"
        elif name and name not in _defined(source):
            yield f"{_short(file)}: {path} defines no {name}"


def unknown_commands(file: Path) -> Iterator[str]:
    """Commands in the text, `hedgerow check NAME` or `make docs`, that do not exist in this form."""
    text = fences.without_blocks(file.read_text(encoding="utf-8"))
    for command in _COMMAND.findall(text):
        for problem in commands.problems(command.replace("...", "").replace("\n", " "), complete=False):
            yield f"{_short(file)}: {problem}"


def failing_blocks(file: Path) -> list[str]:
    """Blocks of one page that are of no known kind, cannot be right, or do not do what they show."""
    return list(pages_run.check_page(file).complaints)


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


def complaints_by_reading(files: Sequence[Path]) -> Iterator[str]:
    """What is found without running anything."""
    for file in files:
        yield from broken_links(file)
        if file.name not in HISTORY:
            yield from unknown_commands(file)
        if _short(file) in NAMED_SOURCES:
            yield from unknown_names(file)


def _defined(source: Path) -> set[str]:
    """Names that a module defines at its top, and `Class.member`."""
    names: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
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


def main(arguments: Sequence[str]) -> int:
    files = [Path(name).resolve() for name in arguments] or markdown_files()
    found = list(complaints_by_reading(files))
    outcomes = pages_run.check_pages(files)
    found += [complaint for outcome in outcomes for complaint in outcome.complaints]
    if not arguments:
        found += failing_doctests()
    for complaint in found:
        print(complaint, file=sys.stderr)
    slowest = sorted(outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]
    print("slowest pages: " + ", ".join(f"{each.name} {each.seconds:.1f} s" for each in slowest if each.seconds))
    modules = "" if arguments else f" and {len(module_names())} modules"
    print(f"{len(files)} Markdown files{modules} checked: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
