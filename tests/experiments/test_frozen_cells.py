"""The cells of what ships keep their hashes: results that were computed before still count."""

from __future__ import annotations

import pytest

from hedgerow.experiments.source import shipped
from hedgerow.experiments.spec import cells_of, load
from hedgerow.results.manifest import fingerprint

FROZEN = {
    "adversaries": (24, "539697ff12a1323ccfa7e1fc29df9b35a210e4e0ee63ef02b0704ba1cb1ccdfc"),
    "compare-day": (31830, "0f2f82246c1d8db68696fd0a6c4041e5f0dfc5f102b2fe567c8e0cc4db83543f"),
    "compare-hour": (20250, "9e38eb0244085f13b5679017351366c776767cbdfc34a28b5afd4b8d25f04da8"),
    "compare-long": (2960, "64dedca348f3ea124a7a06b22ca048614c6f0b886e989a244b38b0928ac176c5"),
    "compare-minute": (228, "593827ef639317b7dd0507e65ea7d5979c54c19bcd3b4f1dae241028b6941814"),
    "demo": (5, "b2f7c4f90b6fc2122b199c8e266b9bc8b14f7a344590925d261f40fcde13d787"),
    "lower-bound": (128, "ca6889d09734fc15e4fb1f4b71df07977824c568fe03b90c579f65824e80720f"),
    "quickstart": (8, "e2d5242e04690cd54da9ea45a40c2cb32eb88da5fc9ef13154363a138586823e"),
}
"""The number of cells, and the fingerprint of {id: hash}."""


def test_all_that_ships_is_frozen() -> None:
    assert set(FROZEN) == set(shipped())


@pytest.mark.parametrize("name", FROZEN)
def test_ids_and_hashes_of_cells_do_not_move(name: str) -> None:
    cells = cells_of(load(name))
    assert (len(cells), fingerprint({cell.id: cell.hash for cell in cells})) == FROZEN[name]
