"""The text of an experiment, and where in it something stands.

tomllib names line and column of a syntax error, but forgets the lines of what it has read. A mistake of meaning is
found later, by its path (`learner`, 1, `preset`). The text is then searched for the line of that key:

    >>> text = "seeds = 2\\n[[learner]]\\nname = 's-ops'\\n[[learner]]\\npreset = 'sharp'\\n"
    >>> line_of(text, ("learner", 1, "preset")), line_of(text, ("learner", 1, "name")), line_of(text, ("seeds",))
    (5, 4, 1)

For a missing key, the line of its table is given.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from math import log10
from pathlib import Path
from typing import Any

from hedgerow.checks import did_you_mean
from hedgerow.errors import InvalidInput
from hedgerow.storage import atomic

Where = tuple[str | int, ...]
"""A path into the data: keys, and numbers (from 0) of the entries of a list."""

LARGEST = 2**22
"""Bytes of a file, at most"""
DEEPEST = 32
"""Levels of nested tables and lists, at most"""
LARGEST_BITS = 1024
"""Bits of a whole number, at most: about as large as a float can be"""

_TABLE = re.compile(r"""^\s*(\[\[?)\s*["']?([\w-]+)["']?\s*\]""")
_KEY = re.compile(r"""^\s*["']?([\w-]+)["']?\s*(?:\.|=)""")
_TRIPLE_QUOTES = re.compile(r'"""|' + "'''")


@dataclass(frozen=True)
class Source:
    """The text of an experiment, and where it comes from."""

    name: str
    """How to call it in messages: the file, or the name of one that ships with the package"""
    text: str
    folder: Path
    """Where the files that it names are looked for"""
    has_lines: bool = True
    """Whether messages name lines: of a text that somebody wrote, not of one that was made of objects"""

    def data(self) -> dict[str, Any]:
        """The TOML as plain data."""
        for line, content in _lines_of_code(self.text):
            if any(key.count(".") > DEEPEST for key in content.split("=")[:-1]):
                raise InvalidInput(f"{self.name}, line {line}: a key has more than {DEEPEST} parts")
        try:
            data = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            last = f"at line {len(self.text.splitlines())}, the end of the file"
            message = _cut(str(error).replace("at end of document", last))
            raise InvalidInput(f"{self.name} is not valid TOML: {message}") from error
        except RecursionError as error:
            raise InvalidInput(f"{self.name}: tables and lists are nested too deeply") from error
        except ValueError as error:  # a whole number of thousands of digits
            raise InvalidInput(f"{self.name} is not valid TOML: {error}") from error
        for key, value in data.items():
            problem = _beyond_bounds(value)
            if problem:
                raise self.mistake((key,), problem)
        return data

    def mistake(self, where: Where, message: str) -> InvalidInput:
        """An error that says in which line and field."""
        line = line_of(self.text, where) if self.has_lines else None
        place = f", line {line}" if line else ""
        field = f", {_in_words(where)}" if where else ""
        return InvalidInput(f"{self.name}{place}{field}: {message}")


def shipped() -> tuple[str, ...]:
    """The names of the experiments that ship with the package."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _shelf().iterdir() if file.name.endswith(".toml")))


def find(name_or_path: str) -> Source:
    """The experiment of that name, or in that file."""
    if name_or_path in shipped():
        text = _shelf().joinpath(f"{name_or_path}.toml").read_text(encoding="utf-8")
        return Source(name_or_path, text, Path())
    path = Path(name_or_path)
    try:
        text = atomic.read(path, LARGEST).decode().replace("\r\n", "\n")
        return Source(name_or_path, text, path.parent)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        near = did_you_mean(name_or_path, shipped())
        near = near.replace("known:", "name a TOML file, or one that ships with hedgerow:")
        raise InvalidInput(f"cannot read the experiment {path}: {error.strerror}{near}") from error


def line_of(text: str, where: Where) -> int | None:
    """The line (from 1) of a key, or else of the table that should hold it; None for the document as a whole."""
    if not where:
        return None
    table, number = where[0], where[1] if len(where) > 1 and isinstance(where[1], int) else 0
    key = next((part for part in where[1:] if isinstance(part, str)), None)
    inside: tuple[str | None, int] = (None, 0)  # the table that the present line belongs to, and which of its name
    seen: dict[str, int] = {}
    fallback = None
    for line, content in _lines_of_code(text):
        if header := _TABLE.match(content):
            name = header[2]
            inside = (name, seen.get(name, 0))
            seen[name] = inside[1] + 1
            if inside == (table, number):
                fallback = line
        elif found := _KEY.match(content):
            if inside[0] is None and found[1] == table:
                fallback = line  # a key of the document itself, or an array of inline tables
            elif inside == (table, number) and found[1] == key:
                return line
    return fallback


def _beyond_bounds(value: Any) -> str:
    """What is too deep or too large in a value, in words; the empty text if nothing is."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(item, int) and item.bit_length() > LARGEST_BITS for item in level):
            return f"a whole number has more than {int(LARGEST_BITS * log10(2))} digits"
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return ""
    return f"tables and lists are nested more than {DEEPEST} deep"


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _cut(text: str) -> str:
    """`text` without its middle if it is long: the end says where."""
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"


def _lines_of_code(text: str) -> list[tuple[int, str]]:
    """(number from 1, line) without comments and without what stands inside texts of several lines."""
    lines, quoted = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if not quoted and not line.lstrip().startswith("#"):
            lines.append((number, line))
        quoted ^= len(_TRIPLE_QUOTES.findall(line)) % 2 == 1
    return lines


def _in_words(where: Where) -> str:
    """`learner 2, preset`: entries of a list are counted from 1 for people."""
    words: list[str] = []
    for part in where:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return ", ".join(words)


def _shelf() -> Any:
    return resources.files("hedgerow.experiments").joinpath("shipped")
