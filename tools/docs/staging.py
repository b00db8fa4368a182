"""Copy the pages of the repository to where the site is built, and mend their links.

docs/ keeps its shape; a README in a folder becomes its index; README, CONTRIBUTING, CHANGELOG and SECURITY become pages
of `project/`, the examples pages of `examples/`. A link to any other file of the repository is shown as plain text: the
site has no copy of it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tools.docs import fences

ROOT = Path(__file__).resolve().parents[2]
PROJECT = {
    "README.md": "project/overview.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")


def target_of(path: str) -> str | None:
    """Where a file of the repository, by its path from the root, is on the site; None if it is not there.

    >>> target_of("docs/decisions/README.md"), target_of("README.md"), target_of("examples/baselines.py")
    ('decisions/index.md', 'project/overview.md', 'examples/baselines.md')
    >>> target_of("docs/notebooks/walk.ipynb"), target_of("docs/figures/a.svg"), target_of("src/hedgerow/cli.py")
    ('notebooks/walk.md', 'figures/a.svg', None)
    """
    if path in PROJECT:
        return PROJECT[path]
    place = PurePosixPath(path)
    if place.parts[:1] == ("examples",) and place.suffix == ".py":
        return place.with_suffix(".md").as_posix()
    if place.parts[:1] != ("docs",) or len(place.parts) == 1:
        return None
    inside = PurePosixPath(*place.parts[1:])
    if inside.parts[0] == "notebooks" and inside.suffix in (".py", ".ipynb"):
        return inside.with_suffix(".md").as_posix()
    if inside.name == "README.md":
        return inside.with_name("index.md").as_posix()
    return inside.as_posix()


def stage(pages: Path, root: Path = ROOT) -> list[str]:
    """Fill the folder `pages`, which is emptied first, with the Markdown pages, figures and examples; complaints."""
    if pages.exists():
        shutil.rmtree(pages)
    pages.mkdir(parents=True)
    complaints: list[str] = []
    for source in _sources(root):
        path = source.relative_to(root).as_posix()
        staged = target_of(path)
        if staged is None:
            raise ValueError(f"{path} has no place on the site")
        target = pages / staged
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text(encoding="utf-8")
            complaints += missing_targets(text, path, root)
            shown = with_term_anchors(fences.without_marks(text))
            target.write_text(with_links(shown, path, staged, root), encoding="utf-8")
        elif source.suffix == ".py":
            target.write_text(_example_page(source), encoding="utf-8")
            shutil.copyfile(source, target.with_suffix(".py"))
        else:
            shutil.copyfile(source, target)
    return complaints


def with_links(text: str, path: str, staged: str, root: Path = ROOT) -> str:
    """The text of the page `path` with its links as they are from `staged`; blocks are left alone."""
    free = fences.without_blocks(text).splitlines()
    lines = text.splitlines()

    def mend(match: re.Match[str]) -> str:
        target, hash_sign, heading = match["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        place = os.path.normpath(PurePosixPath(path).parent / target).replace(os.sep, "/")
        if (root / place).is_dir():
            place = f"{place}/README.md"
        goal = target_of(place)
        if goal is None or not (root / place).exists():
            return match["text"]
        relative = os.path.relpath(goal, PurePosixPath(staged).parent).replace(os.sep, "/")
        return f"{match['image']}[{match['text']}]({relative}{hash_sign}{heading})"

    whole = "\n".join(line if line else lines[number] and "\0" for number, line in enumerate(free))
    mended = _LINK.sub(mend, whole).split("\n")
    return "\n".join(lines[number] if line == "\0" else line for number, line in enumerate(mended)) + "\n"


def with_term_anchors(text: str) -> str:
    """Terms of definition lists, `**box**` above `:   ...`, become anchors `#box`, unless the page has that anchor."""
    taken = set(fences.EXPLICIT.findall(text))

    def mark(match: re.Match[str]) -> str:
        anchor = fences.term_slug(match[1])
        return match[0] if anchor in taken else f"{match[0]}{{ #{anchor} }}"

    return fences.TERM.sub(mark, text)


def missing_targets(text: str, path: str, root: Path = ROOT) -> Iterator[str]:
    """Links that lead to no file, in words."""
    for match in _LINK.finditer(fences.without_blocks(text)):
        target = match["target"].partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            place = os.path.normpath(PurePosixPath(path).parent / target).replace(os.sep, "/")
            if not (root / place).exists():
                yield f"{path}: the link {target} leads nowhere"


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted((root / "docs").rglob("*")):
        if path.is_file() and path.suffix in (".md", ".svg", ".png", ".css", ".js", ".csv"):
            yield path
    for name in PROJECT:
        if (root / name).is_file():
            yield root / name
    yield from sorted((root / "examples").glob("*.py"))


def _example_page(source: Path) -> str:
    fence = "```"
    return (
        f"# {source.name}\n\n[Download {source.name}]({source.name})\n\n"
        f'{fence}python title="examples/{source.name}"\n{source.read_text(encoding="utf-8")}{fence}\n'
    )
