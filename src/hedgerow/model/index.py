"""What kernels need to know of a layout: a bundle of arrays and scalars that compiled code can take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import frozen
from hedgerow.compiling.bundles import Bundle
from hedgerow.model.layout import Layout


class Index(Bundle):
    """The arrays of a `Layout`, under the same names. The number of steps L is len(state_start) - 2."""

    row_start: NDArray[np.int64]
    """(num_rows + 1,)"""
    successor: NDArray[np.int32]
    """(num_triples,)"""
    state_start: NDArray[np.int64]
    """(L + 2,)"""
    num_actions: int
    is_full: bool


def private_index(layout: Layout) -> Index:
    """A bundle whose arrays nobody else has."""
    # Read-only, since kernels are compiled once, for the arrays of a layout.
    rows, successor, states = (
        frozen(array.copy()) for array in (layout.row_start, layout.successor, layout.state_start)
    )
    return Index(rows, successor, states, layout.num_actions, layout.is_full)


def index_of(layout: Layout) -> Index:
    """The bundle for `layout`, made once; its arrays are the layout's own."""
    found = layout.__dict__.get("_index")
    if found is None:
        found = Index(layout.row_start, layout.successor, layout.state_start, layout.num_actions, layout.is_full)
        layout.__dict__["_index"] = found
    return found
