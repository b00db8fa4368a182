"""Text for people: how an object prints itself in one line, and foreign text in HTML, Markdown and LaTeX.

Labels, paths and messages come from files and command lines and may be anything: they are shown, never obeyed. What is
no printable character (escape codes, line ends, marks that turn the direction of writing) is shown as its code. Names
are in quotation marks, and cut where they are long. Arrays are counted, never printed.

    >>> visible("sv [/x]"), visible("red: \\x1b[31m"), visible("gnp.\\u202etxt")
    ('sv [/x]', 'red: \\\\x1b[31m', 'gnp.\\\\u202etxt')
    >>> quoted("home"), quoted("x" * 60)
    ("'home'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    >>> listed(["a", "b", "c", "d"], most=2), numbers([0.25, 1 / 3])
    ('a, b, ... 2 more', '[0.25, 0.3333]')
    >>> counted(1, "layer"), counted(1200, "layer")
    ('1 layer', '1,200 layers')
    >>> line("Run", "S-OPS", "", "safe")
    'Run(S-OPS, safe)'

`Html` is markup that takes text only escaped, so that no page can forget it:

    >>> Html("<b>{}</b>").format("<script>\\x1b[1m")
    Html('<b>&lt;script&gt;\\\\x1b[1m</b>')
    >>> markdown("a|b *c*"), latex("100 % of a_b"), latex("[sharp] *x*")
    ('a\\\\|b \\\\*c\\\\*', '100 \\\\% of a\\\\_b', '{[}sharp{]} {*}x{*}')
    >>> latex("Erdős"), latex("a--b"), latex("λ"), latex("木")
    ('Erd\\\\H{o}s', 'a-\\\\kern0pt-b', '$\\\\lambda$', '\\\\hedgerowsign{6728}{木}')

A row of a LaTeX table that begins with [ or * would be read as an option of the line end before it, so both stand in
braces. Signs that fonts join (two hyphens, quotation marks) are kept apart. Latin letters have their accents, Greek
ones are mathematics. Any other sign is left to a macro, which prints it where the engine reads Unicode, and its code
where not.

Nearly every module is a source of compiled code, and a change of a source compiles it anew (`compiling/kernels.py`).
So `__repr__` and `_repr_html_` import this module, and those that make HTML, inside the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, normalize

from markupsafe import Markup

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
    """`kind(part, part)`, the most important first, cut to `LONGEST` characters; empty parts are left out."""
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


# In markup ------------------------------------------------------------------------------------------------------------


_FORMULA = re.compile(r"\b([^\W\d_]|max)_([^\W_])\b|\bt\^b\b")
"""A letter with an index or an exponent: R_T, g_i, t^b."""


class Html(Markup):
    """HTML. What is put into it by `format`, `%`, `+` and `join` is shown as text unless it is HTML itself."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Html:
        return cls(s.__html__()) if hasattr(s, "__html__") else cls(Markup.escape(visible(s)))


def formulas(words: object) -> Html:
    """Words with the indices of R_T, g_i, ... lowered and the exponent of t^b raised."""
    return Html(with_indices(str(Html.escape(words))))


def with_indices(escaped: str) -> str:
    """The same of text that is escaped already: the words of a plot are escaped otherwise than those of a page."""
    return _FORMULA.sub(lambda found: f"{found[1]}<sub>{found[2]}</sub>" if found[1] else "t<sup>b</sup>", escaped)


def markdown(words: object) -> str:
    """Text in a cell or a sentence of Markdown."""
    return "".join(_MARKDOWN.get(sign, sign) for sign in visible(words))


_MARKDOWN = {"<": "&lt;", ">": "&gt;", "&": "&amp;", **{sign: f"\\{sign}" for sign in "\\`*_[]|"}}


# LaTeX ----------------------------------------------------------------------------------------------------------------

SIGN = r"\hedgerowsign"
SIGN_MACRO = rf"\providecommand{{{SIGN}}}[2]{{\ifdefined\Umathcode#2\else U+#1\fi}}"
r"""A sign by its code and as itself: LuaTeX and XeTeX, which know \Umathcode, read Unicode; pdfTeX does not."""

_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c", "\u0331": "b",
}  # fmt: skip
_BELOW = ("\u0323", "\u0327", "\u0331")
_CLUSTER = re.compile(f".[{''.join(_ACCENTS)}]?", re.DOTALL)
_JOINED = re.compile(r"--|``|''|,,|\?`|!`|  ")
_GREEK_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho varsigma sigma tau upsilon "
    "varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_GREEK = zip("αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", _GREEK_NAMES.split(), strict=True)
_WRITTEN = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\ttfamily\char34}",  # the usual fonts have it in no other shape, and no \textquotedbl
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    "\N{NO-BREAK SPACE}": "~",
    "\N{EN DASH}": r"\textendash{}",
    "\N{EM DASH}": r"\textemdash{}",
    "\N{LEFT SINGLE QUOTATION MARK}": r"\textquoteleft{}",
    "\N{RIGHT SINGLE QUOTATION MARK}": r"\textquoteright{}",
    "\N{LEFT DOUBLE QUOTATION MARK}": r"\textquotedblleft{}",
    "\N{RIGHT DOUBLE QUOTATION MARK}": r"\textquotedblright{}",
    "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "°": r"$^\circ$",
    "¹": "$^1$",
    "²": "$^2$",
    "³": "$^3$",
    "µ": r"$\mu$",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "§": r"\S{}",
    **{sign: f"$\\{name}$" for sign, name in _GREEK},
}


def latex(words: object) -> str:
    """Text as LaTeX prints it, whatever it consists of, with any engine."""
    written, before = [], ""
    for cluster in _CLUSTER.findall(normalize("NFC", visible(words))):
        if _JOINED.fullmatch(before + cluster):
            written.append("\\" if cluster == " " else r"\kern0pt")
        written.append(_cluster(cluster))
        before = cluster
    return "".join(written)


def latex_formulas(words: str) -> str:
    """The words of a heading, with R_T, λ_t, ... as mathematics."""
    written, place = "", 0
    for found in _FORMULA.finditer(words):
        letters = latex(found[1] or "t").strip("$").replace(r"\Sigma", r"\sum").replace("max", r"\max")
        written += f"{latex(words[place : found.start()])}${letters}{f'_{found[2]}' if found[1] else '^b'}$"
        place = found.end()
    return written + latex(words[place:])


def _cluster(cluster: str) -> str:
    """A sign, perhaps with an accent."""
    letter, *marks = list(normalize("NFD", cluster))
    if len(marks) == 1 and marks[0] in _ACCENTS and letter.isascii() and letter.isalpha():
        dotless = f"\\{letter}" if letter in "ij" and marks[0] not in _BELOW else letter
        return f"\\{_ACCENTS[marks[0]]}{{{dotless}}}"
    return "".join(_sign(sign) for sign in cluster)


def _sign(sign: str) -> str:
    if sign in _WRITTEN:
        return _WRITTEN[sign]
    return sign if sign.isascii() else f"{SIGN}{{{ord(sign):04X}}}{{{sign}}}"
