r"""Names as LaTeX prints them, whatever they consist of and wherever they stand, with any engine.

A row of a table that begins with [ or * would be read as an option of the `\\` before it, so both stand in braces.
Signs that fonts join (--, ``, ?`) are kept apart. Latin letters have their accents, Greek ones are mathematics. Any
other sign is left to a macro of the table, which prints it where the engine reads Unicode, and its code where not.

>>> escaped("100 % of a_b"), escaped("[sharp] *x*")
('100 \\% of a\\_b', '{[}sharp{]} {*}x{*}')
>>> escaped("Erdős"), escaped("a--b"), escaped("λ"), escaped("木")
('Erd\\H{o}s', 'a-\\kern0pt-b', '$\\lambda$', '\\hedgerowsign{6728}{木}')
"""

from __future__ import annotations

import re
from unicodedata import normalize

from hedgerow.output import visible

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


def escaped(label: object) -> str:
    """A name as LaTeX prints it, whatever it consists of."""
    words, written, before = normalize("NFC", visible(label)), [], ""
    for cluster in _CLUSTER.findall(words):
        if _JOINED.fullmatch(before + cluster):
            written.append("\\" if cluster == " " else r"\kern0pt")
        written.append(_cluster(cluster))
        before = cluster
    return "".join(written)


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
