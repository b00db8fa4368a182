"""The cells of what ships keep their hashes: results that were computed before still count."""

from __future__ import annotations

import pytest

from hedgerow.experiments.source import shipped
from hedgerow.experiments.spec import cells_of, load
from hedgerow.results.manifest import fingerprint

FROZEN = {
    "adversaries": (24, "539697ff12a1323ccfa7e1fc29df9b35a210e4e0ee63ef02b0704ba1cb1ccdfc"),
    "compare-day": (31968, "a769e9dc4fbd20ddb8e6dfc0f3931d20411889d7ba899032cce4592985f676d1"),
    "compare-hour": (4760, "6271d2080a561d8603f79d2423fe6b0d4a5343997e5fb6361b058cbf018fd1a2"),
    "compare-minute": (204, "683560d0ff6da3cab330683d333987b8457ef789b0ed114ed23be6561a6a2be5"),
    "demo": (16, "534cd70a445ac921022d1f8f32132f9c09f9234b10ba702f0739f453b7399f3b"),
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
