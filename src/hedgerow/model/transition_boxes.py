"""Boxes of transition probabilities: a lower and an upper bound for each triple."""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout

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
