"""One table, four outputs: a terminal, HTML (of a page, or of a notebook), Markdown and LaTeX.

    >>> table = Table("regret", ["learner", "R_T"])
    >>> table.add_row("sv_ops", TableCell(lambda n: n.number(-1234.5), note=lambda n: n.interval(-1300.0, -1200.0)))
    >>> print(table.to_markdown())
    | learner | R\\_T |
    |---|---|
    | sv\\_ops | −1,234 [−1,300, −1,200] |
    >>> print(table.to_latex())
    \\begingroup
    \\footnotesize
    \\setlength{\\tabcolsep}{3pt}
    \\begin{tabular}{lr}
    \\toprule
    learner & $R_T$ \\\\
    \\midrule
    sv\\_ops & $-1{,}234$ \\\\
     & {\\scriptsize [$-1{,}300$, $-1{,}200$]} \\\\
    \\bottomrule
    \\end{tabular}
    \\endgroup

Text is escaped by the output. A number that has to look right everywhere is a function of its format, a
`NumberFormat`. A table that is wider than its terminal has its texts wrapped; if that is not enough, its columns follow
in several tables, each with the names of the rows in front. Numbers and names are never cut.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.display import text
from hedgerow.display.numbers import LATEX, PAGE, PLAIN, NumberFormat
from hedgerow.display.text import Html, formulas, visible

NARROWEST_TEXT = 16
"""Columns that a text in a terminal may always ask for; longer words are broken if there is no room for them."""
LONGEST_TEXT = 600
"""Characters of a cell in a notebook."""
LATEX_WIDTH = 15.0 / 2.54 * 72.27
"""15 cm in points: what a table for a paper may take, across two columns."""
LATEX_EM, LATEX_NOTE_EM, LATEX_GAP = 8.5, 8.0, 3.0
"""Of footnotesize and scriptsize in a document of 10 pt, and left and right of a column, in points"""
_EMS = {
    **dict.fromkeys(string.printable, 0.53),
    **dict.fromkeys(string.digits, 0.5),
    **dict.fromkeys(string.ascii_uppercase + "%+-<=>@mw", 0.78),
    **dict.fromkeys(" !'(),./:;I[]`fijlrt|", 0.34),
}

Piece = str | Callable[[NumberFormat], str]
"""Text, or a number that is written by a `NumberFormat`; such a function writes numbers alone: it is not escaped."""
Words = Piece | tuple[Piece, ...]
TERMINAL = {"good": "green", "bad": "bold red", "open": "yellow", "strong": "bold"}
"""The styles of a terminal for a tone."""
INLINE = {
    "good": "font-weight:600",
    "bad": "font-weight:600;background:rgba(220,60,60,.28)",
    "strong": "font-weight:600",
}
"""Those of a notebook, which has no style sheet."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """What stands in one place of a table."""

    words: Words
    """Text, `Html`, or numbers"""
    note: Words = ""
    """Said smaller beside it, in LaTeX below it: an interval, a remark"""
    tone: str = ""
    """`good`, `bad`, `open` (neither), `noise` or `strong`"""
    shade: float | None = None
    """In a notebook: a background that is the stronger the nearer this is to 1"""
    hint: str = ""
    """In a notebook: what appears when the pointer rests here"""


NOTHING = TableCell(lambda numbers: numbers.nothing)


class Table:
    """A table whose first `num_text` columns are text and whose others are numbers.

    The first `num_keys` columns say what a row is about: where the others do not fit a terminal, each part begins with
    them.
    """

    def __init__(self, title: Words, columns: Sequence[str | TableCell], num_text: int = 1, num_keys: int = 1) -> None:
        self.title = title
        self.columns = [_cell(column) for column in columns]
        self.num_text, self.num_keys = num_text, num_keys
        self.rows: list[list[TableCell]] = []

    def add_row(self, *cells: Words | TableCell) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"a row of {len(cells)} cells in a table of {len(self.columns)} columns")
        self.rows.append([_cell(cell) for cell in cells])

    # A page -----------------------------------------------------------------------------------------------------------

    def to_html(self, kind: str = "", caption: object = "", marks: Mapping[int, str] | None = None) -> Html:
        """A table whose cells name their column, for narrow screens, where rows become blocks.

        `marks` are classes of rows, by their place. The first cell of a row is its head. The caption is heard, not
        seen: a heading stands above every table. Roles are written out, because some browsers forget them where a table
        is shown as blocks.
        """
        names = [formulas(_text(column, PAGE)) for column in self.columns]
        head = Html().join(Html('<th scope="col" role="columnheader">{}</th>').format(name) for name in names)
        body = Html().join(self._html_row(names, row, (marks or {}).get(i, "")) for i, row in enumerate(self.rows))
        return Html(
            '<div class="scroll"><table class="{}" role="table"><caption>{}</caption><thead role="rowgroup">'
            '<tr role="row">{}</tr></thead><tbody role="rowgroup">{}</tbody></table></div>'
        ).format(kind, caption or _text(TableCell(self.title), PAGE), head, body)

    def _html_row(self, names: Sequence[Html], row: Sequence[TableCell], mark: str) -> Html:
        cells = []
        for i, (name, cell) in enumerate(zip(names, row, strict=True)):
            words = _html(cell.words)
            kind = Html(' class="none"') if words == PAGE.nothing and not cell.note else ""
            if cell.tone:
                words = Html('<span class="{}">{}</span>').format(cell.tone, words)
            if cell.note:
                words = Html("{} <small>{}</small>").format(words, _html(cell.note))
            tag, roles = ("td", Html('role="cell"')) if i else ("th", Html('scope="row" role="rowheader"'))
            shown = Html('<{0} {1}{2}><i aria-hidden="true">{3}</i><span>{4}</span></{0}>')
            cells.append(shown.format(tag, roles, kind, name, words))
        classes = Html(' class="{}"').format(mark) if mark else ""
        return Html('<tr role="row"{}>{}</tr>').format(classes, Html().join(cells))

    # A notebook -------------------------------------------------------------------------------------------------------

    def to_notebook(self) -> Html:
        """A table that needs no style sheet: everything is inline, and what is below decides on light or dark."""
        kinds = [_INLINE_TEXT if i < self.num_text else _INLINE_NUMBER for i in range(len(self.columns))]
        heads = [_inline("th", "col", f"{_INLINE_HEAD};{kind}", c) for kind, c in zip(kinds, self.columns, strict=True)]
        lines = []
        for row in self.rows:
            first = _inline("th", "row", f"{_INLINE_BODY};{kinds[0]};font-weight:400", row[0])
            others = (
                _inline("td", "", f"{_INLINE_BODY};{kind}", c) for kind, c in zip(kinds[1:], row[1:], strict=True)
            )
            lines.append(Html("<tr>{}{}</tr>").format(first, Html().join(others)))
        whole = Html('<table style="{}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>')
        return whole.format(_INLINE_TABLE, Html().join(heads), Html().join(lines))

    # Markdown ---------------------------------------------------------------------------------------------------------

    def to_markdown(self) -> str:
        """The table without its title; what is bad, or strong, is bold."""

        def shown(cell: TableCell) -> str:
            words = " ".join(filter(None, (_markdown(cell.words), _markdown(cell.note))))
            return f"**{words}**" if cell.tone in ("bad", "strong") else words

        lines = [list(map(shown, self.columns)), *(list(map(shown, row)) for row in self.rows)]
        written = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([written[0], f"|{'---|' * len(self.columns)}", *written[1:]])

    # LaTeX ------------------------------------------------------------------------------------------------------------

    def to_latex(self) -> str:
        """For the package booktabs; `latex_tables` says more."""
        return latex_tables([self], titled=False)

    def latex_rows(self, chosen: Sequence[int]) -> Iterator[str]:
        """The rows, of these columns; notes stand below in a smaller line."""
        for row in self.rows:
            yield _latex_row(_latex(row[i].words) for i in chosen)
            notes = [_latex(row[i].note) for i in chosen]
            if any(notes):
                yield _latex_row(rf"{{\scriptsize {note}}}" if note else "" for note in notes)

    def latex_widths(self) -> list[float]:
        """About how wide the columns are in \\footnotesize, in points; rather too wide than too narrow."""
        columns = [[head, *cells] for head, *cells in zip(self.columns, *self.rows, strict=True)]
        return [
            max(
                max(LATEX_EM * _ems(_plain(cell.words, PLAIN)), LATEX_NOTE_EM * _ems(_plain(cell.note, PLAIN)))
                for cell in column
            )
            for column in columns
        ]

    # A terminal -------------------------------------------------------------------------------------------------------

    def parts(self, width: int) -> Iterator[Any]:
        """Tables for rich, none of them wider than `width` if that is possible; the first one has the title."""
        rows = [[_text(cell, PLAIN) for cell in row] for row in self.rows]
        heads = [_text(column, PLAIN) for column in self.columns]
        for number, (chosen, widths) in enumerate(_Splitter(heads, rows, self.num_text, self.num_keys, width).parts()):
            yield self._part(heads, rows, chosen, widths, number == 0)

    def _part(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        chosen: Sequence[int],
        widths: Sequence[int],
        is_first: bool,
    ) -> Any:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        title = Text(_text(TableCell(self.title), PLAIN)) if is_first else None
        made = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="italic")
        for i, given in zip(chosen, widths, strict=True):
            side: Any = "left" if i < self.num_text else "right"
            made.add_column(Text(heads[i]), justify=side, width=given, overflow="fold")
        for row, cells in zip(rows, self.rows, strict=True):
            made.add_row(*(Text(row[i], TERMINAL.get(cells[i].tone, "")) for i in chosen))
        return made


def latex_tables(
    tables: Sequence[Table],
    *,
    about: Sequence[str] = (),
    caption: str | None = None,
    label: str | None = None,
    titled: bool = True,
) -> str:
    r"""Tables of the same columns below each other in one `tabular`, in footnotesize, for the package booktabs.

    It is at most `LATEX_WIDTH` points wide, in a document of 10 pt: columns beyond that follow in another `tabular`,
    with the first column in front. A name or a number that is wider than this alone is not cut. The title of each
    table stands above its rows, comments `about` it in front; with a caption or a label, both LaTeX, the whole is a
    float.
    """
    parts = [_tabular(tables, chosen, titled) for chosen in _latex_parts(tables)]
    lines = [line for n, part in enumerate(parts) for line in ([r"\par\medskip"] * (n > 0) + part)]
    size = [r"\footnotesize", rf"\setlength{{\tabcolsep}}{{{LATEX_GAP:g}pt}}"]
    if caption is not None or label is not None:
        told = [rf"\caption{{{caption}}}"] * (caption is not None) + [rf"\label{{{label}}}"] * (label is not None)
        lines = [r"\begin{table}", r"\centering", *told, *size, *lines, r"\end{table}"]
    else:
        lines = [r"\begingroup", *size, *lines, r"\endgroup"]
    macro = [text.SIGN_MACRO] if any(text.SIGN in line for line in lines) else []
    return "\n".join([*(f"% {line}" for line in about), *macro, *lines])


def _tabular(tables: Sequence[Table], chosen: Sequence[int], titled: bool) -> list[str]:
    heads = [tables[0].columns[i] for i in chosen]
    kinds = "".join("l" if i < tables[0].num_text else "r" for i in chosen)
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule"]
    lines.append(_latex_row(text.latex_formulas(_text(head, PLAIN)) for head in heads))
    for table in tables:
        heading = rf"\multicolumn{{{len(heads)}}}{{l}}{{\emph{{{_latex(table.title)}}}}} \\"
        lines += [r"\midrule", *([heading] if titled else []), *table.latex_rows(chosen)]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _latex_parts(tables: Sequence[Table]) -> list[list[int]]:
    """The columns of each `tabular`: as many as fit beside those that say what a row is about."""
    each = zip(*(table.latex_widths() for table in tables), strict=True)
    widths = [max(found) + 2.0 * LATEX_GAP for found in each]
    keys = list(range(tables[0].num_keys))
    parts = [list(keys)]
    for i in range(len(keys), len(widths)):
        if len(parts[-1]) > len(keys) and sum(widths[j] for j in [*parts[-1], i]) > LATEX_WIDTH:
            parts.append(list(keys))
        parts[-1].append(i)
    return parts


def _ems(words: str) -> float:
    """About the width of text in Computer Modern, in its em."""
    return sum(_EMS.get(sign, 1.0) for sign in words)


# Words of a cell ------------------------------------------------------------------------------------------------------


def _cell(cell: Words | TableCell) -> TableCell:
    return cell if isinstance(cell, TableCell) else TableCell(cell)


def _pieces(words: Words) -> tuple[Piece, ...]:
    return words if isinstance(words, tuple) else (words,)


def _text(cell: TableCell, numbers: NumberFormat) -> str:
    """One line of printable characters; of HTML what its reader sees."""
    said = [_plain(cell.words, numbers), _plain(cell.note, numbers)]
    return " ".join(part for part in said if part)


def _unmarked(words: str) -> str:
    return words.striptags() if isinstance(words, Html) else words


def _plain(words: Words, numbers: NumberFormat) -> str:
    pieces = (piece(numbers) if callable(piece) else piece for piece in _pieces(words))
    return visible("".join(map(_unmarked, pieces)))


def _html(words: Words) -> Html:
    return Html().join(piece(PAGE) if callable(piece) else piece for piece in _pieces(words))


def _markdown(words: Words) -> str:
    return "".join(p(PAGE) if callable(p) else text.markdown(_unmarked(p)) for p in _pieces(words))


def _latex(words: Words) -> str:
    return "".join(p(LATEX) if callable(p) else text.latex(_unmarked(p)) for p in _pieces(words))


def _latex_row(cells: Iterator[str]) -> str:
    return " & ".join(cells) + r" \\"


_INLINE_TABLE = "border-collapse:collapse;border:none;margin:6px 0;font-size:12px;font-variant-numeric:tabular-nums"
_INLINE_CELL = "padding:2px 9px;vertical-align:top;border:none;border-bottom:1px solid #888"
_INLINE_HEAD, _INLINE_BODY = f"{_INLINE_CELL}b;font-weight:600;background:none", f"{_INLINE_CELL}4"
"""Lines of a grey that is more or less transparent"""
_INLINE_NUMBER, _INLINE_TEXT = (
    "text-align:right;white-space:nowrap",
    "text-align:left;white-space:normal;max-width:34em",
)
_SHADE = "background:rgba(38,120,210,{:.2f})"
"""Of a share, laid over whatever the page has below"""


def _inline(tag: str, scope: str, style: str, cell: TableCell) -> Html:
    words = _text(cell, PAGE)
    if len(words) > LONGEST_TEXT:
        words = f"{words[: LONGEST_TEXT - 1]}…"
    shade = "" if cell.shade is None else _SHADE.format(0.6 * min(1.0, max(0.0, cell.shade)))
    styles = ";".join(filter(None, (style, INLINE.get(cell.tone, ""), shade)))
    scoped = Html(' scope="{}"').format(scope) if scope else ""
    tip = Html(' title="{}"').format(cell.hint) if cell.hint else ""
    return Html('<{0}{1} style="{2}"{3}>{4}</{0}>').format(tag, scoped, styles, tip, words)


# Widths in a terminal -------------------------------------------------------------------------------------------------


class _Splitter:
    """Which columns of a table stand beside each other in a terminal, and how wide they are."""

    def __init__(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], num_text: int, num_keys: int, width: int
    ) -> None:
        self.heads, self.rows, self.width = heads, rows, width
        self.num_text, self.num_keys = num_text, num_keys

    def parts(self) -> Iterator[tuple[list[int], list[int]]]:
        """The columns of each part with their widths; a part has at least one column besides the keys."""
        wanted = [self._wanted(i) for i in range(len(self.heads))]
        least = [self._least(*both, i) for i, both in enumerate(wanted)]
        keys, rest = list(range(self.num_keys)), list(range(self.num_keys, len(self.heads)))
        while True:
            chosen = [*keys, *rest[:1]]
            for i in rest[1:]:
                if _around(len(chosen) + 1) + sum(least[j] for j in [*chosen, i]) > self.width:
                    break
                chosen.append(i)
            rest = rest[len(chosen) - len(keys) :]
            room = self.width - _around(len(chosen))
            yield chosen, _shared([least[i] for i in chosen], [wanted[i][1] for i in chosen], room)
            if not rest:
                return

    def _wanted(self, i: int) -> tuple[int, int]:
        """The widths of column i in which no word is broken, and in which nothing is wrapped."""
        from rich.cells import cell_len

        cells, header = [row[i] for row in self.rows], self.heads[i]
        words = [*header.split(), *(word for cell in cells for word in (cell.split() if i < self.num_text else [cell]))]
        return max(map(cell_len, words), default=0), max(map(cell_len, [header, *cells]))

    def _least(self, unbroken: int, whole: int, i: int) -> int:
        """What column i asks for: numbers all they need, names as well up to half of the width, texts some words."""
        if i >= self.num_text:
            return unbroken
        if i < self.num_keys:
            return min(whole, max(min(unbroken, self.width // 2), NARROWEST_TEXT, self.width // (2 * self.num_keys)))
        return min(unbroken, NARROWEST_TEXT)


def _around(columns: int) -> int:
    """What so many columns need besides their content: a space on either side, one between them, one at the edges."""
    return 3 * columns + 1


def _shared(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widths between `least` and `wanted` with the sum `room`, if that is possible: most to what wraps most."""
    widths = list(least)
    while sum(widths) < min(room, sum(wanted)):
        i = max(range(len(widths)), key=lambda i: wanted[i] / max(1, widths[i]))
        widths[i] += 1
    return widths
