"""A docstring as Markdown: prose with examples, and the sections of Google's style (Args, Returns, Raises, Examples).

>>> doc = parse("Add two numbers.\\n\\nArgs:\\n    a: The first.\\n    b (int): The second,\\n        not 0.\\n")
>>> doc.text, [(item.name, item.type, item.text) for item in doc.items("Args")]
('Add two numbers.', [('a', '', 'The first.'), ('b', 'int', 'The second, not 0.')])
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

LISTS = ("Args", "Attributes", "Raises", "Warns", "Keyword Args")
"""Sections of `name: text` entries."""
TEXTS = ("Returns", "Yields", "Example", "Examples", "Note", "Notes", "Warning", "References", "See Also")
_SECTION = re.compile(rf"^({'|'.join((*LISTS, *TEXTS))}):\s*$")
_ITEM = re.compile(r"^(?P<name>\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*)(?: \((?P<type>[^)]*)\))?: ?(?P<text>.*)$")
_CODE = re.compile(r"(``.+?``|`[^`\n]+`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


@dataclass(frozen=True)
class Item:
    """An entry of a list: a parameter, an attribute, an error."""

    name: str
    type: str
    text: str


@dataclass
class Doc:
    """The parts of a docstring."""

    text: str = ""
    """Everything outside of sections"""
    sections: dict[str, str] = field(default_factory=dict)
    """By title, dedented, in their order"""

    def items(self, title: str) -> list[Item]:
        return list(_items(self.sections.get(title, "")))

    @property
    def summary(self) -> str:
        """The first sentence or paragraph."""
        return " ".join(self.text.split("\n\n")[0].split())


def parse(docstring: str | None) -> Doc:
    """Split a docstring; one without sections is all text."""
    doc = Doc()
    prose: list[str] = []
    lines = inspect.cleandoc(docstring or "").splitlines()
    number = 0
    while number < len(lines):
        heading = _SECTION.match(lines[number])
        if heading is None or (number and lines[number - 1].strip()):
            prose.append(lines[number])
            number += 1
            continue
        end = number + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
            end += 1
        doc.sections[heading[1]] = inspect.cleandoc("\n" + "\n".join(lines[number + 1 : end]))
        number = end
    doc.text = "\n".join(prose).strip()
    return doc


def _items(section: str) -> Iterator[Item]:
    entry: list[str] = []
    for line in [*section.splitlines(), "end:"]:
        if line.strip() and not line.startswith(" "):
            if entry:
                found = _ITEM.match(entry[0])
                first = found["text"] if found else entry[0]
                text = " ".join(part.strip() for part in [first, *entry[1:]] if part.strip())
                yield Item(found["name"] if found else "", (found["type"] or "") if found else "", text)
            entry = [line]
        else:
            entry.append(line)


def markdown(text: str, link: Callable[[str], str]) -> str:
    """Prose with its examples fenced; `link` turns the inside of `code` into what stands for it."""
    parts: list[str] = []
    for is_code, lines in _runs(text.splitlines()):
        if is_code:
            code = inspect.cleandoc("\n" + "\n".join(lines)).strip("\n")
            parts.append(f"```{_language(code)}\n{code}\n```")
        else:
            parts.append(prose("\n".join(lines).strip("\n"), link))
    return "\n\n".join(part for part in parts if part.strip())


def prose(text: str, link: Callable[[str], str]) -> str:
    """Text without blocks: tags are escaped, `names` become links."""
    parts = _CODE.split(text)
    return "".join(
        link(part.strip("`").strip()) if number % 2 else _TAG.sub("&lt;", part) for number, part in enumerate(parts)
    )


def cell(text: str, link: Callable[[str], str]) -> str:
    """Text for a cell of a table."""
    return prose(" ".join(text.split()), link).replace("|", "&#124;")


def code(text: str) -> str:
    """Code that may stand anywhere, also in a table."""
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


def _runs(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Paragraphs of prose and of code: code is indented by four after an empty line, or starts with >>>."""
    block: list[str] = []
    is_code = fenced = False
    for number, line in enumerate(lines):
        after_blank = number == 0 or not lines[number - 1].strip()
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or not line.strip():
            block.append(line)
            continue
        starts = after_blank and line.startswith(("    ", ">>> "))
        goes_on = is_code and (line.startswith("    ") or (not after_blank and bool(block)))
        if (starts or goes_on) != is_code and block:
            yield is_code, block
            block = []
        is_code = starts or goes_on
        block.append(line)
    if block:
        yield is_code, block


def _language(code: str) -> str:
    if code.startswith(">>>"):
        return "pycon"
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    return "python"
