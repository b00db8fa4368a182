"""Unsigned positions: compiled code need not test whether an index is negative, and loops become vector code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index

Positions = NDArray[np.uint64]
ONE = np.uint64(1)


@kernel
def states_of(index: Index, k: int) -> tuple[np.uint64, np.uint64]:
    """(first, last): layer k has the states first..last-1."""
    return np.uint64(index.state_start[k]), np.uint64(index.state_start[k + 1])


@kernel
def triples_of(index: Index, row: int) -> tuple[np.uint64, np.uint64]:
    """(start, stop): a row has the triples start..stop-1."""
    return np.uint64(index.row_start[row]), np.uint64(index.row_start[row + 1])
