"""Names as LaTeX prints them, whatever they consist of and wherever they stand, with any engine.

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
from collections.abc import Sequence
from itertools import groupby
from math import floor, isfinite, log10
from unicodedata import normalize

from hedgerow.display.output import visible
from hedgerow.errors import InvalidInput
from hedgerow.results.groups import Group, Setting, heads
from hedgerow.results.metrics import in_words

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


# --------------------------------------------------------------------------------------------------------------------
# Results as a LaTeX table, for the package booktabs: a group of rows for each setting, a row for each learner.
#
# Intervals have a smaller line of their own below the means: side by side, seven columns are wider than a page.
#
# >>> number(-1234567.0), number(0.00012), number(float("nan"))
# ('$-1{,}234{,}570$', '$1.2 \\cdot 10^{-4}$', '--')


NOTHING = "--"
DIGITS = 4
"""Significant digits of a number; those before the point are shown up to the sixth."""


def latex_table(groups: Sequence[Group], caption: str | None = None, label: str | None = None) -> str:
    """The table of all groups; `Results.to_latex` says more."""
    if not groups:
        raise InvalidInput("these results have no finished cell, so there is no table")
    for name, value in (("caption", caption), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"the {name} must be text, not {value!r}")
    if label is not None and not re.fullmatch(r"[^\s\\{}%#&$^_~,]+", label.replace("_", "-")):
        raise InvalidInput(rf"the label {label!r} must be something that \label takes, such as tab:results")
    shown = list(heads(groups, "latex"))
    columns = ["Learner", *(_head(name) for name in shown)]
    lines = [r"\begin{tabular}{l" + "r" * (len(columns) - 1) + "}", r"\toprule", _row(columns)]
    for setting, members in groupby(groups, key=lambda group: group.setting):
        lines += [r"\midrule", rf"\multicolumn{{{len(columns)}}}{{l}}{{{_heading(setting)}}} \\"]
        lines += [line for group in members for line in _rows(_cells(group, shown))]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption is not None or label is not None:
        told = [rf"\caption{{{caption}}}"] * (caption is not None) + [rf"\label{{{label}}}"] * (label is not None)
        lines = [r"\begin{table}", r"\centering", *told, *lines, r"\end{table}"]
    needed = [SIGN_MACRO] if any(SIGN in line for line in lines) else []
    return "\n".join([_ABOUT, *needed, *lines]) + "\n"


_ABOUT = r"""% Needs \usepackage{booktabs}.
% Means over seeds [95 % intervals, Student's; none for one seed, or for seeds that agree].
% Safe: seeds without an unsafe episode. Worst margin: the least of all seeds and episodes.
% About 15 cm wide: across two columns, or in \footnotesize."""


def _heading(setting: Setting) -> str:
    return rf"\emph{{{escaped(setting.world)}, {escaped(setting.adversary)}, $T = {_grouped(setting.episodes)}$}}"


def _head(name: str) -> str:
    """The head of a column, with its indices: regret R_T."""
    words = re.sub(r"\b(\w)_(\w)\b", "\0", name).split("\0")
    marks = re.findall(r"\b(\w)_(\w)\b", name)
    signs = [f"${letter if letter.isascii() else escaped(letter).strip('$')}_{index}$" for letter, index in marks]
    joined = "".join(escaped(word) + sign for word, sign in zip(words, [*signs, ""], strict=True))
    return joined[:1].upper() + joined[1:]


def _cells(group: Group, shown: Sequence[str]) -> list[tuple[str, str]]:
    """For each column what is said, and the interval below it."""
    found = group.shown("latex")
    numbers = [in_words(*found[name], FORMATS, NOTHING) if name in found else (NOTHING, "") for name in shown]
    return [(escaped(group.learner), ""), *numbers]


def _rows(cells: Sequence[tuple[str, str]]) -> list[str]:
    values, intervals = zip(*cells, strict=True)
    small = [rf"{{\scriptsize {interval}}}" if interval else "" for interval in intervals]
    return [_row(values), *([_row(small)] if any(intervals) else [])]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def number(value: float, digits: int = DIGITS) -> str:
    """About `digits` significant digits in mathematical mode, thousands apart; very small ones in powers of ten."""
    if not isfinite(value):
        return NOTHING
    if value == 0.0:
        return "$0$"
    power = floor(log10(abs(value)))
    sign = "-" if value < 0.0 else ""
    if power < -3 or power >= 9:
        factor, _, exponent = f"{abs(value):.{digits - 1}e}".partition("e")
        factor = factor.rstrip("0").rstrip(".")
        return rf"${sign}{factor} \cdot 10^{{{int(exponent)}}}$"
    places = max(0, digits - 1 - power)
    if places == 0:
        return f"${sign}{_grouped(round(abs(value), min(0, 5 - power)))}$"
    shown = f"{abs(value):,.{places}f}".replace(",", "{,}")
    return f"${sign}{shown.rstrip('0').rstrip('.')}$"


def _grouped(value: float) -> str:
    return f"{int(value):,}".replace(",", "{,}")


FORMATS = {
    "number": number,
    "sum": number,
    "whole": number,
    "fixed": lambda value: f"${value:.2f}$",
    "share": lambda value: rf"${100.0 * value:.2f}\,\%$",
}
