"""Foreign text in HTML, Markdown and LaTeX: whatever is in it is shown, never obeyed.

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
"""

from __future__ import annotations

import re
from typing import Any
from unicodedata import normalize

from markupsafe import Markup

from hedgerow.display.text import visible

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
