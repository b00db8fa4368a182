"""The compiled part of mirror descent with fixed share: the point that is projected next."""

from __future__ import annotations

from math import log

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index


@kernel
def fill_base(
    index: Index, flow: FloatArray, uniform: FloatArray, share: float, tilt: FloatArray, log_base: FloatArray
) -> None:
    """ln of ((1 - share) flow + share uniform) e^{-tilt}; all are arrays of triples but `tilt`, one of rows."""
    for r in range(len(tilt)):
        for j in range(index.row_start[r], index.row_start[r + 1]):
            log_base[j] = log((1.0 - share) * flow[j] + share * uniform[j]) - tilt[r]
