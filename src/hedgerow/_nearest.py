"""Names that are nearly right. This module is light: `import hedgerow` asks it, without numpy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(given: str, known: Iterable[str]) -> list[str]:
    """The known names that `given` may stand for, at most two; without case and signs, an equal one alone.

    >>> nearest("sharpp", ["paper", "sharp"]), nearest("SOPS", ["sv-ops", "s-ops"]), nearest("x", ["paper"])
    (['sharp'], ['s-ops'], [])
    """
    names = list(known)
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_bare(name), []).append(name)
    wanted = _bare(given)
    close = [wanted] if wanted in alike else get_close_matches(wanted, alike, n=2)
    found = [name for bare in close for name in alike[bare]]
    return found[:2] or get_close_matches(given, names, n=2)  # signs that both have count as well


def _bare(name: str) -> str:
    """A name without case and signs; one of signs alone as it is."""
    return "".join(filter(str.isalnum, name)).casefold() or name
