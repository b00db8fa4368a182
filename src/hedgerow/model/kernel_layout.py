"""What kernels need to know of a layout: a bundle of arrays and scalars that compiled code can take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, frozen
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout


class LayoutArrays(Bundle):
    """The arrays of a `Layout`, under the same names. The number of steps L is len(state_start) - 2."""

    row_start: NDArray[np.int64]
    """(num_rows + 1,)"""
    successor: NDArray[np.int32]
    """(num_triples,)"""
    state_start: NDArray[np.int64]
    """(L + 2,)"""
    num_actions: int
    is_full: bool


def private_index(layout: Layout) -> LayoutArrays:
    """A bundle with copies of the arrays of `layout`."""
    # Read-only, since kernels are compiled once, for the arrays of a layout.
    rows, successor, states = (
        frozen(array.copy()) for array in (layout.row_start, layout.successor, layout.state_start)
    )
    return LayoutArrays(rows, successor, states, layout.num_actions, layout.is_full)


def index_of(layout: Layout) -> LayoutArrays:
    """The bundle for `layout`, made once; its arrays are the layout's own."""
    found = layout.__dict__.get("_index")
    if found is None:
        found = LayoutArrays(layout.row_start, layout.successor, layout.state_start, layout.num_actions, layout.is_full)
        layout.__dict__["_index"] = found
    return found


# Unsigned positions: compiled code need not test whether an index is negative, and loops become vector code.


Positions = NDArray[np.uint64]
ONE = np.uint64(1)


@kernel
def states_of(index: LayoutArrays, k: int) -> tuple[np.uint64, np.uint64]:
    """(first, last): layer k has the states first..last-1."""
    return np.uint64(index.state_start[k]), np.uint64(index.state_start[k + 1])


@kernel
def triples_of(index: LayoutArrays, row: int) -> tuple[np.uint64, np.uint64]:
    """(start, stop): a row has the triples start..stop-1."""
    return np.uint64(index.row_start[row]), np.uint64(index.row_start[row + 1])


# Sort without allocation: a shell sort with the gaps 1, 4, 13, 40, ..., from a large one down to 1.
#
# Started at gap 1 it is an insertion sort, in which equal keys keep their order.


@kernel
def first_gap(least: int) -> int:
    """The smallest gap that is at least `least`."""
    gap = 1
    while gap < least:
        gap = 3 * gap + 1
    return gap


@kernel
def sort_by_key(order: Positions, key: FloatArray, count: int, gap: int) -> None:
    """Sort order[:count] and key[:count] together, the largest key first, by the gaps from `gap` down."""
    end = np.uint64(count)
    while gap >= 1:
        step = np.uint64(gap)
        for i in range(step, end):
            entry, value, j = order[i], key[i], np.uint64(i)
            while j >= step and key[j - step] < value:
                order[j], key[j] = order[j - step], key[j - step]
                j -= step
            order[j], key[j] = entry, value
        gap //= 3


# Boxes of transition probabilities: a lower and an upper bound for each triple.


TOL_BOX = 1e-12
"""Bounds of a row may miss a sum of 1 by this much, which is rounding."""


def check_boxes(layout: Layout, lower: FloatArray, upper: FloatArray) -> None:
    """Refuse bounds (triples,) that cross, or between which a row has no distribution."""
    crossed = lower > upper
    if crossed.any():
        j = int(np.flatnonzero(crossed)[0])
        raise InvalidInput(
            f"the lower bound {float(lower[j])!r} exceeds the upper bound {float(upper[j])!r} "
            f"at {layout.describe_triple(j)}"
        )
    starts = layout.row_start[:-1]
    least, most = np.add.reduceat(lower, starts), np.add.reduceat(upper, starts)
    empty = (least > 1.0 + TOL_BOX) | (most < 1.0 - TOL_BOX)
    if empty.any():
        r = int(np.flatnonzero(empty)[0])
        raise InvalidInput(
            f"the box of {layout.describe_row(r)} holds no distribution: "
            f"its lower bounds sum to {float(least[r]):.12g}, its upper bounds to {float(most[r]):.12g}"
        )
