"""Small pieces of HTML for notebooks: a card, tables that end, numbers, and cells shaded by a share.

What an object shows in a notebook has to work wherever it is opened: no script, no network, no style sheet. Everything
is inline, colours are inherited or half transparent so that light and dark pages both can be read, and whatever comes
from a name is escaped. Tables stop after `MOST_ROWS` rows and say how many follow.

    >>> text("<b>\\x1b[1m")
    '&lt;b&gt;\\\\x1b[1m'
    >>> number(1234567), number(0.123456), number(float("nan"))
    ('1,234,567', '0.1235', '-')
    >>> "and 3 more" in table(["n"], [[str(i)] for i in range(23)])
    True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from math import isnan
from typing import NamedTuple

from hedgerow.display.text import visible

MOST_ROWS = 20
"""Of a table."""
LONGEST_NAME = 48
"""Characters of a name in a cell; the whole of it appears when the pointer rests there."""
LONGEST_WORDS = 600
"""Characters of a sentence in a cell."""

_CARD = "font:13px/1.5 system-ui,sans-serif;color:inherit;margin:2px 0 8px;overflow-x:auto;max-width:100%"
_FAINT = "opacity:.75"
_TABLE = "border-collapse:collapse;border:none;margin:6px 0;font-size:12px;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 9px;vertical-align:top;border:none;border-bottom:1px solid #888"
_HEAD, _BODY = f"{_CELL}b;font-weight:600;background:none", f"{_CELL}4"
"""Lines of a grey that is more or less transparent"""
_NUMBER, _TEXT = "text-align:right;white-space:nowrap", "text-align:left;white-space:normal;max-width:34em"
_SHADE = "38,120,210"
"""Red, green and blue of a share, laid over whatever the page has below."""
GOOD, BAD = "font-weight:600", "font-weight:600;background:rgba(220,60,60,.28)"
"""How a cell looks that says that something is fine, or not."""


class HtmlCell(NamedTuple):
    """Words with a style of their own, and what appears when the pointer rests on them."""

    words: str
    style: str = ""
    hint: str = ""


def text(value: object) -> str:
    """`value` as text that a page shows and never obeys."""
    return escape(visible(value))


def name(label: object) -> HtmlCell:
    """A name, cut where it is long."""
    words = visible(label)
    return (
        HtmlCell(words) if len(words) <= LONGEST_NAME else HtmlCell(f"{words[: LONGEST_NAME - 1]}…", hint=words[:1000])
    )


def number(value: float) -> str:
    """Four digits, or a whole number with its thousands apart; `-` for what is no number."""
    if isinstance(value, int):
        return f"{value:,}"
    if isnan(value):
        return "-"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def verdict(fine: bool, yes: str = "yes", no: str = "no") -> HtmlCell:
    """Whether something is fine."""
    return HtmlCell(yes, GOOD) if fine else HtmlCell(no, BAD)


def shaded(words: str, share: float) -> HtmlCell:
    """A number with a background that is the stronger the nearer `share` is to 1."""
    return HtmlCell(words, f"background:rgba({_SHADE},{0.6 * min(1.0, max(0.0, share)):.2f})")


def table(
    head: Sequence[str | HtmlCell],
    rows: Iterable[Sequence[str | HtmlCell]],
    *,
    num_text: int = 0,
    total: int | None = None,
    what: str = "",
) -> str:
    """A table of the first `MOST_ROWS` rows.

    Args:
        head: The heading of each column.
        rows: The cells of each row; the first is the row's own heading. They are read as far as they are shown.
        num_text: How many columns, from the first, hold words; the others hold numbers.
        total: How many rows there are, if `rows` holds only the first of them.
        what: What a row is about, in the plural.

    Returns:
        HTML in which every cell is escaped.
    """
    given = iter(rows)
    shown = list(islice(given, MOST_ROWS))
    more = (len(shown) + sum(1 for _ in given) if total is None else total) - len(shown)
    kinds = [_TEXT if i < num_text else _NUMBER for i in range(len(head))]
    heads = "".join(_cell("th", "col", f"{_HEAD};{kind}", cell) for kind, cell in zip(kinds, head, strict=True))
    lines = []
    for first, *others in shown:
        named = _cell("th", "row", f"{_BODY};{kinds[0]};font-weight:400", first)
        cells = (_cell("td", "", f"{_BODY};{kind}", cell) for kind, cell in zip(kinds[1:], others, strict=True))
        lines.append(f"<tr>{named}{''.join(cells)}</tr>")
    rest = line(f"… and {more:,} more{' ' * bool(what)}{what}") if more > 0 else ""
    if not shown:
        return ""
    return f'<table style="{_TABLE}"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>{rest}'


def _cell(tag: str, scope: str, style: str, cell: str | HtmlCell) -> str:
    words, own, hint = cell if isinstance(cell, HtmlCell) else (cell, "", "")
    if len(words) > LONGEST_WORDS:
        words = f"{words[: LONGEST_WORDS - 1]}…"
    scoped = f' scope="{scope}"' if scope else ""
    tip = f' title="{text(hint)}"' if hint else ""
    return f'<{tag}{scoped} style="{style}{";" * bool(own)}{own}"{tip}>{text(words)}</{tag}>'


def line(words: object) -> str:
    """A sentence between tables."""
    return f'<div style="{_FAINT}">{text(words)}</div>' if str(words) else ""


def fold(summary: str, content: str) -> str:
    """Something that is opened by a click."""
    inside = f'<summary style="cursor:pointer">{text(summary)}</summary>{content}'
    return f'<details style="margin:4px 0">{inside}</details>' if content else ""


def card(kind: str, facts: Sequence[object], *parts: str) -> str:
    """What an object shows: its kind, a few facts in one line, then `parts`, which are HTML already."""
    told = " · ".join(text(fact) for fact in facts if str(fact))
    between = f' <span style="{_FAINT}">{told}</span>' if told else ""
    return f'<div style="{_CARD}"><div><b>{text(kind)}</b>{between}</div>{"".join(parts)}</div>'
