"""Numbers as people read them: one set of formats, in the typography of each kind of output.

`PLAIN` is for terminals, logs and data, `PAGE` for HTML and Markdown (a true minus sign, an en dash for nothing), and
`LATEX` for papers, in mathematical mode. The functions of this module are those of `PLAIN`.

    >>> number(-1234567.0), fixed(-3.14159, 2), whole(12345), percent(0.256), interval(1.5, 2.0)
    ('-1,234,570', '-3.14', '12,345', '26 %', '[1.5, 2]')
    >>> PAGE.number(-0.00012345), PAGE.fixed(None), LATEX.number(-1234567.0), LATEX.number(0.00012)
    ('−1.23e-04', '–', '$-1{,}234{,}570$', '$1.2 \\\\cdot 10^{-4}$')
"""

# ruff: noqa: RUF001 - a true minus sign and a dash are meant

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, isfinite, log10


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written: the signs for minus and for what is no number, and the digits of very small ones."""

    minus: str
    nothing: str
    small_digits: int = 3

    def number(self, value: float | None, digits: int = 4) -> str:
        """About `digits` significant digits, grouped by thousands; very small and very large ones in powers of ten."""
        if value is None or not isfinite(value):
            return self.nothing
        size = abs(value)
        if size == 0.0:
            return self._signed(False, "0")
        if size < 1e-3:
            return self._signed(value < 0, f"{size:.{self.small_digits - 1}e}")
        if size >= 1e9:
            return self._signed(value < 0, f"{size:.3e}")
        power = floor(log10(size))
        places = max(0, digits - 1 - power)
        if places == 0:  # six significant digits at most: more than seeds can tell
            return self._signed(value < 0, f"{int(round(size, min(0, 5 - power))):,}")
        return self._signed(value < 0, _trimmed(f"{round(size, digits + 1 - power):,.{places}f}"))

    def fixed(self, value: float | None, places: int = 6) -> str:
        """So many decimals; rounding noise has no sign."""
        if value is None or not isfinite(value):
            return self.nothing
        shown = f"{abs(value):.{places}f}"
        return self._signed(value < 0 and float(shown) != 0.0, shown)

    def whole(self, value: float | None) -> str:
        """A count, grouped by thousands."""
        return self.nothing if value is None or not isfinite(value) else self._signed(value < 0, f"{abs(int(value)):,}")

    def percent(self, share: float | None, places: int = 0) -> str:
        """A share as a percentage; a positive one that rounds to 0 says that it is less than the last digit."""
        if share is None or not isfinite(share):
            return self.nothing
        shown = f"{abs(100.0 * share):,.{places}f}"
        zero = float(shown.replace(",", "")) == 0.0
        return f"< {10.0**-places:g} %" if zero and share > 0.0 else f"{self._signed(share < 0 and not zero, shown)} %"

    def interval(self, low: float, high: float, show: Callable[[float], str] | None = None) -> str:
        """[low, high], each by `show`; nothing at all where an end is unknown."""
        write = show or self.number
        return f"[{write(low)}, {write(high)}]" if isfinite(low) and isfinite(high) else ""

    def show(self, kind: str, value: float | None) -> str:
        """A value as its column declares it: a "number", "sum", "whole", "fixed" or "share"."""
        if kind == "fixed":
            return self.fixed(value, 2)
        if kind == "share" and value:
            return self.percent(value, 2)
        return self.whole(value) if kind == "whole" else self.number(value)

    def named(self, letter: str, value: float) -> str:
        """`T = 1,000`."""
        return f"{letter} = {self.whole(value)}"

    def _signed(self, negative: bool, digits: str) -> str:
        return f"{self.minus if negative else ''}{digits}"


class _LatexNumbers(NumberFormat):
    """In mathematical mode: thousands in braces, powers of ten as such."""

    def percent(self, share: float | None, places: int = 0) -> str:
        shown = super().percent(share, places)
        return shown if shown == self.nothing else f"${shown.replace('$', '').replace(' %', ' ')}\\,\\%$"

    def named(self, letter: str, value: float) -> str:
        return f"${letter} = {self.whole(value).strip('$')}$"

    def _signed(self, negative: bool, digits: str) -> str:
        factor, _, power = digits.partition("e")
        written = f"{_trimmed(factor)} \\cdot 10^{{{int(power)}}}" if power else digits
        return f"${self.minus if negative else ''}{written.replace(',', '{,}')}$"


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


MINUS, DASH = "−", "–"
PLAIN = NumberFormat("-", "-")
PAGE = NumberFormat(MINUS, DASH)
LATEX = _LatexNumbers("-", "--", small_digits=4)

number, fixed, whole, percent, interval = PLAIN.number, PLAIN.fixed, PLAIN.whole, PLAIN.percent, PLAIN.interval


def count_of(count: int, total: int) -> str:
    """`3 of 5`."""
    return f"{count} of {total}"
