"""Count a whole log at once, by the rules of `counts.py` for shared laws and for costs.

In some episodes that were cut short the last transition is unknown. It is left out, and N does not count that visit;
its cost may count all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.counts import Counts, record, record_costs
from hedgerow.estimates.unknowns import Laws
from hedgerow.model.index import Index


class LogArrays(Bundle):
    """Episodes one after the other."""

    starts: IntArray
    """(episodes + 1,): episode e has the steps starts[e] : starts[e + 1]"""
    rows: IntArray
    """(steps,)"""
    triples: IntArray
    """(steps,): -1 where it is not known what the last step of an episode led to"""
    costs: FloatArray
    """(steps, m)"""
    counted: NDArray[np.int8]
    """(episodes,): whether the costs count"""
    whole: NDArray[np.int8]
    """(episodes,): whether they do and the episode is complete"""


@kernel
def record_log(index: Index, laws: Laws, counts: Counts, log: LogArrays) -> None:
    """Add all episodes of `log` to `counts`."""
    for e in range(len(log.counted)):
        first, last = log.starts[e], log.starts[e + 1]
        moved = last - 1 if log.triples[last - 1] < 0 else last
        record(index, laws, counts, log.rows[first:moved], log.triples[first:moved])
        if log.counted[e]:
            record_costs(laws, counts, log.rows[first:last], log.costs[first:last])
