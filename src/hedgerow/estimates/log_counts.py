"""Count a whole log at once, by the rules of `counts.py` for shared laws and for costs, and of `gaps.py` for gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.counts import Counts, record, record_costs
from hedgerow.estimates.gaps import Gaps, record_gaps
from hedgerow.estimates.unknowns import Laws
from hedgerow.model.index import Index

ANY_SUCCESSOR = -1
"""In the place of a state: any to which the last row can lead"""


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
    with_costs: bool
    """Whether the costs count"""
    broken: IntArray
    """The episodes that are not whole, ascending"""
    extents: IntArray
    """(broken episodes, fields of Extent)"""
    places: IntArray
    """(broken episodes,): the state in which the branch was last seen, or ANY_SUCCESSOR"""
    unknown: NDArray[np.int8]
    """(steps, m): 1 for unknown costs"""


@kernel
def record_log(index: Index, laws: Laws, counts: Counts, log: LogArrays, gaps: Gaps) -> None:
    """Add all episodes of `log` to `counts`; `gaps` is a buffer."""
    place = 0
    for e in range(len(log.starts) - 1):
        first, last = log.starts[e], log.starts[e + 1]
        if place < len(log.broken) and log.broken[place] == e:
            _set_gaps(index, log, place, first, last, gaps)
            rows, triples, costs = log.rows[first:last], log.triples[first:last], log.costs[first:last]
            record_gaps(index, laws, counts, rows, triples, costs, gaps)
            place += 1
        else:
            record(index, laws, counts, log.rows[first:last], log.triples[first:last])
            if log.with_costs:
                record_costs(laws, counts, log.rows[first:last], log.costs[first:last])


@kernel
def _set_gaps(index: Index, log: LogArrays, place: int, first: int, last: int, gaps: Gaps) -> None:
    """Write the gaps of one episode, whose policy may have done anything."""
    extent, values = gaps.extent, log.extents[place]
    extent.moves, extent.costs, extent.layer = values[0], values[1], values[2]
    extent.moves_lost, extent.last_lost, extent.declared = values[3], values[4], values[5]
    gaps.policy[:] = 1.0
    for k in range(last - first):
        for i in range(gaps.costs.shape[1]):
            gaps.costs[k, i] = log.unknown[first + k, i]
    if extent.layer < 0:
        return
    if log.places[place] != ANY_SUCCESSOR:
        gaps.reached[log.places[place]] = 1
        return
    row = log.rows[last - 1]
    for j in range(index.row_start[row], index.row_start[row + 1]):
        gaps.reached[index.successor[j]] = 1
