"""The cells of what ships keep their hashes: results that were computed before still count."""

from __future__ import annotations

import pytest

from hedgerow.experiments.source import shipped
from hedgerow.experiments.spec import cells_of, load
from hedgerow.results.manifest import fingerprint

FROZEN = {
    "adversaries": (24, "539697ff12a1323ccfa7e1fc29df9b35a210e4e0ee63ef02b0704ba1cb1ccdfc"),
    "compare-day": (31968, "452531571d276f594427afbddee11db36dfd8bfd804f35e0f83432bf63770960"),
    "compare-hour": (20350, "82331668661c4d8af6257a9be75dfc9717cd8c84b0856b49b6d560f1f78e5528"),
    "compare-long": (2980, "bcea1694999852f8b09c8b8d298a602aec631cbf5cc2068f5c476e4041e357e7"),
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
