"""Linear functions over a box of distributions: max or min { p . f : lo <= p <= hi, sum p = 1 }.

The optimum fills greedily (the inner step of COMP-UOB): start from p = lo and hand the remaining mass to the successors
in the order of their values. The order is found once per layer and shared by all rows that reach the whole layer.

    f = (1, .5, 0), lo = (.1, .2, .1), hi = (.5, .9, .6)   ->   max: p = (.5, .4, .1), value .7
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel


@kernel
def sort_states(values: FloatArray, first: int, last: int, ascending: bool, order: IntArray) -> None:
    """Put the states first..last-1 into order[first:last] by their values (shell sort: stable cost, no allocation)."""
    n = last - first
    sign = 1.0 if ascending else -1.0
    for i in range(n):
        order[first + i] = first + i
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, n):
            state = order[first + i]
            key = sign * values[state]
            j = i
            while j >= gap and sign * values[order[first + j - gap]] > key:
                order[first + j] = order[first + j - gap]
                j -= gap
            order[first + j] = state
        gap //= 3


@kernel
def _sort_row(
    values: FloatArray, successor: NDArray[np.int32], start: int, stop: int, sign: float, slot: IntArray
) -> None:
    """Put the triples start..stop-1 into slot[0:stop-start] by sign * value of their successors (insertion sort)."""
    for i in range(stop - start):
        triple = start + i
        key = sign * values[successor[triple]]
        j = i
        while j > 0 and sign * values[successor[slot[j - 1]]] > key:
            slot[j] = slot[j - 1]
            j -= 1
        slot[j] = triple


@kernel
def fill_row(
    values: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    successor: NDArray[np.int32],
    start: int,
    stop: int,
    ascending: bool,
    order: IntArray,
    first: int,
    last: int,
    slot: IntArray,
    p: FloatArray,
) -> float:
    """The optimal value of one row; writes its distribution into p[start:stop].

    `order[first:last]` are the states of the next layer, best first; `slot` is scratch as long as the widest row.
    """
    if stop - start == 1:
        p[start] = 1.0
        return float(values[successor[start]])
    rest = 1.0
    value = 0.0
    for j in range(start, stop):
        p[j] = lower[j]
        rest -= lower[j]
        value += lower[j] * values[successor[j]]
    whole_layer = stop - start == last - first
    if not whole_layer:
        _sort_row(values, successor, start, stop, 1.0 if ascending else -1.0, slot)
    for i in range(stop - start):
        if rest <= 0.0:
            break
        j = start + order[first + i] - first if whole_layer else slot[i]
        more = min(upper[j] - lower[j], rest)
        p[j] += more
        rest -= more
        value += more * values[successor[j]]
    return value
