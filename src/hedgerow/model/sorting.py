"""Sort without allocation: a shell sort with the gaps 1, 4, 13, 40, ..., from a large one down to 1.

Started at gap 1 it is an insertion sort, in which equal keys keep their order.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.positions import Positions


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
