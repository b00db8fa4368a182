"""Numbers and names as a page shows them.

>>> number(1234567.0), number(0.00012345), number(-3.14159)
('1,234,570', '1.23e-04', '−3.142')
>>> plot_text("<b> & co")
'&lt;b&gt; &amp; co'
"""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

import re
from html import escape
from math import floor, isfinite, log10

from hedgerow.display.text import visible

DASH = "–"
MINUS = "−"


def plot_text(value: object) -> str:
    """Anything as text in a plot: plotly reads tags, but knows of no quotation marks that are written as `&quot;`."""
    return escape(visible(value), quote=False)


def subscripts(words: str) -> str:
    """R_T, g_i, t^b, ... with their indices lowered and raised; of text that is safe already."""
    return re.sub(r"\bt\^b\b", "t<sup>b</sup>", re.sub(r"\b([^\W\d_]|max)_([^\W_])\b", r"\1<sub>\2</sub>", words))


def number(value: float | None, digits: int = 4) -> str:
    """About `digits` significant digits, grouped by thousands; very small ones in powers of ten; a dash for nothing."""
    if value is None or not isfinite(value):
        return DASH
    if value == 0.0:
        return "0"
    size = abs(value)
    if size < 1e-3:
        shown = f"{size:.2e}"
    elif size >= 1e9:
        shown = f"{size:.3e}"
    else:
        places = max(0, digits - 1 - floor(log10(size)))
        shown = f"{round(size, digits + 1 - floor(log10(size))):,.{places}f}" if places else f"{_rounded(size):,}"
        shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return (MINUS if value < 0 else "") + shown


def _rounded(size: float) -> int:
    """To six significant digits at most: more than the seeds can tell."""
    return int(round(size, min(0, 5 - floor(log10(size)))))


def whole(value: float | int | None) -> str:
    """A count."""
    return DASH if value is None else f"{int(value):,}"


def interval(low: float, high: float) -> str:
    """[low, high] of an exponent, or nothing where there is none."""
    return f"[{fixed(low)}, {fixed(high)}]" if isfinite(low) and isfinite(high) else ""


def fixed(value: float, places: int = 2) -> str:
    """A fixed number of decimals, as exponents have them."""
    if not isfinite(value):
        return DASH
    shown = f"{abs(value):.{places}f}"
    return (MINUS if value < 0 and float(shown) != 0.0 else "") + shown


def count_of(count: int, total: int) -> str:
    return f"{count} of {total}"


def percent(share: float | None, digits: int = 0) -> str:
    if share is None:
        return DASH
    shown = f"{100.0 * share:,.{digits}f}"
    small = share > 0.0 and float(shown.replace(",", "")) == 0.0
    return f"< {10.0**-digits:g} %" if small else f"{shown.replace('-', MINUS)} %"
