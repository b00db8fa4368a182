"""Logs as learners and `Statistics` absorb them (`importers/logs.py`): which were absorbed before, and their arrays.

Of every log two digests are kept: one of its paths, and one of its paths and costs, both in the terms of the learner's
view. A log is known if a log with the same paths and the same costs was absorbed; or one with the same paths, where
either of them came without costs. Whole logs are compared, never single episodes: equal short episodes are common, and
every one of them is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.confidence.counts import ANY_SUCCESSOR, Extent, LogArrays
from hedgerow.confidence.premises import LEFT_OUT, PARTLY_UNKNOWN, WHOLE
from hedgerow.errors import InvalidInput
from hedgerow.importers.logs import Log, content_hash
from hedgerow.model.episode import Counting, refuse_impossible
from hedgerow.model.view import View

Digests = NDArray[np.uint8]
"""(logs, 2, 32): the digests of paths, and of paths and costs; the latter is all 0 for a log without costs."""


def no_logs() -> Digests:
    """Nothing was absorbed."""
    return np.zeros((0, 2, 32), dtype=np.uint8)


def digests_of(log: Log) -> Digests:
    """(1, 2, 32): those of one log."""
    found = np.zeros((1, 2, 32), dtype=np.uint8)
    paths = content_hash(log.starts, log.rows, log.triples, log.costs[:, :0])
    found[0, 0] = list(bytes.fromhex(paths))
    if not np.isnan(log.costs).all():
        found[0, 1] = list(bytes.fromhex(log.content_hash))
    return found


def new_digests(absorbed: Digests, log: Log) -> Digests:
    """(1, 2, 32): those of a log; one that was absorbed before is refused."""
    one = digests_of(log)
    paths = (absorbed[:, 0] == one[:, 0]).all(axis=1)
    costs = (absorbed[:, 1] == one[:, 1]).all(axis=1)
    silent = ~absorbed[:, 1].any(axis=1) | (not one[:, 1].any())
    if np.any(paths & (costs | silent)):
        raise InvalidInput(
            "this log was absorbed before, with the same episodes: to count them twice would make the bounds too "
            "narrow. If these are other episodes that went the same way, read both together as one log, and absorb that"
        )
    return one


def checked_digests(given: NDArray[np.generic], episodes: int) -> Digests:
    """Digests in a file, if they can be those of logs with so many episodes in all."""
    array = np.asarray(given)
    if array.dtype != np.uint8 or array.shape[1:] != (2, 32) or len(array) > episodes:
        raise InvalidInput(f"absorbed must be uint8 of shape (logs, 2, 32), of at most {episodes} logs")
    return array.astype(np.uint8)


def read_log(view: View, given: Any, how: Mapping[str, Any]) -> Log:
    """`given` as a log in the terms of `view`; anything else is refused, and what the view rules out."""
    if not isinstance(given, Log):
        return Log.read(view, given, **how)
    if how:
        raise InvalidInput(f"this Log has been read already; pass {', '.join(sorted(how))} to Log.read")
    found = _in_terms_of(view, given)
    known = np.where(found.gaps.unknown, np.nan, found.costs)
    refuse_impossible(view, found.rows, found.triples, known, found.starts)
    return found


def _in_terms_of(own: View, log: Log) -> Log:
    try:
        found = log.in_terms_of(own)
    except InvalidInput as error:
        raise InvalidInput(f"the log is of another world than the learner: {error}") from error
    if log.view.knowledge.independent_costs and not own.knowledge.independent_costs:
        raise InvalidInput(
            "the log was read with a view that knows costs to be independent, which this learner does not; read it "
            "with learner.view"
        )
    return found


def arrays_of(log: Log, decided: Mapping[int, Counting]) -> LogArrays:
    """The log as kernels take it: they are compiled once, for writable arrays."""
    with_costs = log.gaps.with_costs
    extents = [
        (one.moves, one.costs if with_costs else 0, one.layer, one.moves_lost, one.last_lost, one.skipped)
        for one in decided.values()
    ]
    states = [one.states for one in decided.values()]
    return LogArrays(
        starts=log.starts.copy(),
        rows=log.rows.copy(),
        triples=log.triples.copy(),
        costs=log.costs.copy(),
        with_costs=with_costs,
        broken=np.array(list(decided), dtype=np.int64),
        extents=np.array(extents, dtype=np.int64).reshape(-1, len(Extent.fields)),
        places=np.array([ANY_SUCCESSOR if x is None or len(x) > 1 else x[0] for x in states], dtype=np.int64),
        unknown=log.gaps.unknown.astype(np.int8),
        whole=_whole(log, decided),
    )


def _whole(log: Log, decided: Mapping[int, Counting]) -> NDArray[np.int8]:
    """(episodes,): what of each may be compared with own ones; nothing of a log whose costs are left out."""
    found = np.full(len(log), WHOLE if log.gaps.with_costs else LEFT_OUT, dtype=np.int8)
    for e, counting in decided.items():
        found[e] = LEFT_OUT if counting.skipped or not log.gaps.with_costs else PARTLY_UNKNOWN
    return found
