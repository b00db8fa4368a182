"""The fenced blocks of a Markdown page, and the comments that carry hidden code.

```python title="my_learner.py"        language, then words, then key="value"
<!-- run                               Python that runs in its place and is not shown
results = prepare()
-->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_OPENING = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")
_SETTING = re.compile(r'([\w-]+)="([^"]*)"')
_HIDDEN = "<!-- run"
TERM = re.compile(r"^\*\*([^*\n]+)\*\*(?=\n:   )", re.MULTILINE)
"""A term of a definition list."""
EXPLICIT = re.compile(r'<a id="([^"]+)">')
HIDDEN = "hidden"
"""The language of a comment `<!-- run ... -->`, which is Python."""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: Path
    line: int
    """Of the first line inside, from 1"""
    language: str
    words: tuple[str, ...] = ()
    """What follows the language: `run`, `output`"""
    settings: dict[str, str] = field(default_factory=dict)
    text: str = ""
    unclosed: bool = False

    @property
    def place(self) -> str:
        return f"line {self.line - 1}"


def blocks(page: Path) -> list[Block]:
    """Every block of a page, in order; hidden ones have the language `hidden`."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def without_blocks(text: str) -> str:
    """The text with every fenced block and hidden comment emptied; the other lines keep their numbers."""
    lines = text.splitlines()
    for start, end in _spans(lines):
        for number in range(start, end + 1):
            lines[number] = ""
    return "\n".join(lines) + "\n"


def without_marks(text: str) -> str:
    """The text as the site shows it: hidden comments are gone, and so are words after a language (`console run`)."""
    lines = text.splitlines()
    kept = list(lines)
    for start, end in _spans(lines):
        opening = _OPENING.match(lines[start])
        if opening is None:
            kept[start : end + 1] = [None] * (end + 1 - start)  # type: ignore[list-item]
            continue
        language, _, settings = _info(opening["info"])
        if language == "console" and not any(line.lstrip().startswith("$ ") for line in lines[start + 1 : end]):
            language = "sh"  # without prompts, every line would be coloured as output
        shown = "".join(f' {key}="{value}"' for key, value in settings.items())
        kept[start] = f"{opening['indent']}{opening['fence']}{language}{shown}"
    return "\n".join(line for line in kept if line is not None) + "\n"


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    for start, end in _spans(lines):
        opening = _OPENING.match(lines[start])
        unclosed = end == len(lines)
        if opening is None:
            yield Block(page, start + 2, HIDDEN, text="\n".join(lines[start + 1 : end]) + "\n", unclosed=unclosed)
            continue
        language, words, settings = _info(opening["info"])
        indent = len(opening["indent"])
        inside = [line[indent:] if line[:indent].isspace() else line for line in lines[start + 1 : end]]
        yield Block(page, start + 2, language, words, settings, "\n".join(inside) + "\n", unclosed)


def _spans(lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last line of every block, from 0; the last is len(lines) if nothing closes it."""
    number = 0
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        closing = ""
        if opening is not None:
            closing = opening["fence"]
        elif lines[number].strip() == _HIDDEN:
            closing = "-->"
        if closing:
            start = number
            number += 1
            while number < len(lines) and lines[number].strip() != closing:
                number += 1
            yield start, number
        number += 1


def _info(info: str) -> tuple[str, tuple[str, ...], dict[str, str]]:
    settings = dict(_SETTING.findall(info))
    words = _SETTING.sub("", info).split()
    return (words[0] if words else ""), tuple(words[1:]), settings


def slug(title: str) -> str:
    """The anchor of a heading, as the site and common viewers make it.

    >>> slug("What is `lambda_t` & why?")
    'what-is-lambda_t--why'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def term_slug(term: str) -> str:
    """The anchor of a term: without the symbol in brackets behind it, or what follows a comma.

    >>> term_slug("lambda (λ), mixing weight")
    'lambda'
    """
    return slug(re.sub(r" \([^)]*\)|,.*", "", term))


def anchors(text: str) -> set[str]:
    """The anchors of a page: its headings, the terms of its definition lists, and `<a id="name">`."""
    free = without_blocks(text)
    headings = re.findall(r"^#+ +(.+)$", free, re.MULTILINE)
    return {*map(slug, headings), *map(term_slug, TERM.findall(free)), *EXPLICIT.findall(free)}
