"""What `make test` leaves to `make nightly`: tests marked `nightly`, and most parameter sets of those marked `sampled`.

    @pytest.mark.sampled(12)
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", range(40))
    def test_a_property(seed, kind): ...      # `make test` tries 12 of these, `make nightly` and plain pytest all

    @pytest.mark.parametrize("runs", daily(20, nightly=1_000))
    def test_a_frequency(runs): ...           # likewise with 20, and with 1,000

Each next set of a sample has the most values, and pairs of values, that no set before it had. With enough sets a
fault that shows at one value of one parameter, or at two values together, is found as if all were tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby
from typing import Any
from zlib import crc32

import pytest

Feature = tuple[tuple[str, str], ...]


def daily(value: Any, *, nightly: Any) -> list[Any]:
    """Values of a parameter: one that `make test` can afford, and one that is left to `make nightly`."""
    return [value, pytest.param(nightly, marks=pytest.mark.nightly)]


def mark_nightly(items: Sequence[pytest.Item]) -> None:
    """Mark as `nightly` what no sample holds, and as `slow` all that is `nightly`."""
    sampled = [item for item in items if isinstance(item, pytest.Function) and item.get_closest_marker("sampled")]
    for _, group in groupby(sorted(sampled, key=_test), key=_test):
        of_test = sorted(group, key=lambda item: crc32(item.name.encode()))  # the same in any order of collection
        (count,) = of_test[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        chosen = set(covering([item.callspec.params for item in of_test], count))  # type: ignore[attr-defined]
        for place, item in enumerate(of_test):
            if place not in chosen:
                item.add_marker("nightly")
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")


def covering(sets: Sequence[dict[str, Any]], count: int) -> list[int]:
    """Places of at most `count` of the parameter sets, greedily those that add most values and pairs of values."""
    left = {place: _features(given) for place, given in enumerate(sets)}
    chosen: list[int] = []
    seen: set[Feature] = set()
    while left and len(chosen) < count:
        best = max(left, key=lambda place: (len(left[place] - seen), -place))
        seen |= left.pop(best)
        chosen.append(best)
    return chosen


def _features(given: dict[str, Any]) -> set[Feature]:
    values = sorted((name, repr(value)) for name, value in given.items())
    return {(value,) for value in values} | set(combinations(values, 2))


def _test(item: pytest.Function) -> str:
    return item.nodeid.partition("[")[0]
