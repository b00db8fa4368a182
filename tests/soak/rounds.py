"""The frame of a soak: so many rounds with rate and time left on stderr, one verdict on stdout, 0 or 1 as exit code."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator

BETWEEN_LINES = 5.0
"""Seconds."""


class Broken(AssertionError):  # noqa: N818 - read as a sentence
    """A round found what must not be."""


def rounds(count: int) -> Iterator[int]:
    """0..count-1, with a line of progress now and then."""
    begun = said = time.monotonic()
    for number in range(count):
        yield number
        now = time.monotonic()
        if now - said >= BETWEEN_LINES or number == count - 1:
            said, rate = now, (number + 1) / (now - begun)
            left = (count - number - 1) / rate
            print(f"{number + 1}/{count}, {rate:.1f}/s, {left:.0f} s left", file=sys.stderr, flush=True)


def main(what: str, soak: Callable[[int, random.Random], str], default: int) -> int:
    """Read --count and --seed, run the soak and print what came of it."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--count", type=int, default=default, help="how many rounds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = time.monotonic()
    try:
        verdict, code = soak(given.count, random.Random(given.seed)), 0
    except Broken as error:
        verdict, code = f"BROKEN: {error}", 1
    print(f"{what}, seed {given.seed}: {verdict}; {time.monotonic() - begun:.0f} s")
    return code
