"""Guides come first in the search of the site, the reference after them; decisions are found through their index only.

The sections of the navigation say which page is what. mkdocs-material weighs pages by the front matter `search: boost`.
zensical has no such weight. It ranks a page by the place of the first word that matches in its title, so titles of
pages that come later begin, in the index alone, with words that have no width and match no query.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FIRST = ("Home", "Tutorial", "Guides", "Cheat sheet", "The field", "Examples")
"""Sections of the navigation that come first."""
EXCLUDED = "decisions/0"
"""Where the names of pages begin that the search leaves out."""
BOOST = 8
EMPTY_WORDS = 30 * "\u2060\ufeff"
"""A word joiner is a word to the search, a zero width no-break space divides words; neither is seen."""
FILES = ("search.json", "search.js")
"""The index of zensical: as data, and as a script for pages that are opened from a disk."""


def first_pages(root: Path = ROOT) -> set[str]:
    """The pages of the sections that come first, and the examples, which belong to them."""
    nav = yaml.safe_load("nav:\n" + (root / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2])["nav"]
    sections = {title: content for entry in nav for title, content in entry.items()}
    missing = [name for name in FIRST if name not in sections]
    if missing:
        raise ValueError(f"mkdocs.yml: the navigation has no section {', '.join(missing)}")
    return {page for name in FIRST for page in _pages(sections[name])}


def mark(pages: Path, root: Path = ROOT) -> None:
    """Write what the search has to know into the front matter of the staged pages."""
    first = first_pages(root)
    for file in sorted(pages.rglob("*.md")):
        name = file.relative_to(pages).as_posix()
        rule = f"boost: {BOOST}" if name in first else "exclude: true" if name.startswith(EXCLUDED) else ""
        if rule:
            text = file.read_text(encoding="utf-8")
            file.write_text(f"---\nsearch:\n  {rule}\n---\n\n{text}", encoding="utf-8")


def lower(site: Path, root: Path = ROOT) -> None:
    """Lower the other pages in the index of zensical, which is left in `site`."""
    first = {Path(page).with_suffix(".html").as_posix() for page in first_pages(root)}
    index: dict[str, Any] = json.loads((site / FILES[0]).read_text(encoding="utf-8"))
    for item in index["items"]:
        if item["location"].partition("#")[0] not in first:
            item["title"] = EMPTY_WORDS + item["title"]
    index["items"].sort(key=lambda item: item["title"].startswith(EMPTY_WORDS))
    content = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    for name in FILES:
        before = (site / name).read_text(encoding="utf-8").partition("{")[0]
        (site / name).write_text(before + content, encoding="utf-8")


def _pages(content: Any) -> list[str]:
    """The pages of a part of the navigation: a page, a list of parts, or parts with titles."""
    if isinstance(content, str):
        return [content]
    parts = content.values() if isinstance(content, dict) else content
    return [page for part in parts for page in _pages(part)]
