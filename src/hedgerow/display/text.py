"""Short texts for people: how an object prints itself in one line that fits a screen.

Labels, paths and messages come from files and command lines and may be anything: they are shown, never obeyed. What is
no printable character (escape codes, line ends, marks that turn the direction of writing) is shown as its code. Names
are in quotation marks, and cut where they are long. Arrays are counted, never printed.

    >>> visible("sv [/x]"), visible("red: \\x1b[31m"), visible("gnp.\\u202etxt")
    ('sv [/x]', 'red: \\\\x1b[31m', 'gnp.\\\\u202etxt')
    >>> quoted("home"), quoted("x" * 60)
    ("'home'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b, ... 2 more'
    >>> numbers([0.25, 1 / 3])
    '[0.25, 0.3333]'
    >>> counted(1, "layer"), counted(1200, "layer")
    ('1 layer', '1,200 layers')

Nearly every module is a source of compiled code, and a change of a source compiles it anew (`compiling/kernels.py`).
So `__repr__` and `_repr_html_` import this module, and those that make HTML, inside the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category

LONGEST = 200
"""Characters of a line"""
LONGEST_NAME = 32
"""Characters of a name in it, quotation marks included"""
MOST_ITEMS = 4
"""Of a list in it"""


def visible(value: object) -> str:
    """`value` as one line of printable characters and spaces; anything else is shown as its code."""
    words = str(value)
    if words.isprintable():
        return words
    return "".join(char if char.isprintable() or category(char) == "Zs" else _code(char) for char in words)


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def line(kind: str, *parts: str) -> str:
    """`kind(part, part)`, cut to `LONGEST` characters; parts that are empty are left out.

    Args:
        kind: The name of the class.
        *parts: What is worth saying, the most important first.

    Returns:
        One line of printable characters.

    Examples:
        >>> line("Run", "S-OPS", "", "safe")
        'Run(S-OPS, safe)'
    """
    text = visible(f"{kind}({', '.join(part for part in parts if part)})")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]}...)"


def quoted(name: object, most: int = LONGEST_NAME) -> str:
    """A name in quotation marks, printable and at most `most` characters long."""
    words = str(name)
    text = repr(words)
    return text if len(text) <= most else f"{repr(words[:most])[: most - 4]}...{text[0]}"


def listed(items: Iterable[str], most: int = MOST_ITEMS, count: int | None = None) -> str:
    """The first `most` items, and how many of all `count` follow."""
    shown: list[str] = []
    rest = 0
    for item in items:
        if len(shown) < most:
            shown.append(item)
        elif count is not None:
            break
        else:
            rest += 1
    rest = rest if count is None else count - len(shown)
    return ", ".join([*shown, *([f"... {rest:,} more"] if rest else [])])


def numbers(values: Any, most: int = MOST_ITEMS) -> str:
    """The first numbers of a flat array in four digits, in brackets."""
    flat: Sequence[float] = list(values)
    return f"[{listed((f'{value:.4g}' for value in flat), most, len(flat))}]"


def counted(number: int, what: str) -> str:
    """`1 layer`, `12 layers`."""
    return f"{number:,} {what}{'s' * (number != 1)}"
