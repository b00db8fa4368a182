"""Which logs a learner has absorbed: a log counts once, whatever file or object it comes from.

Of every log two digests are kept: one of its paths, and one of its paths and costs (`importers/log_content.py`), both
in the terms of the learner's view. A log is known if a log with the same paths and the same costs was absorbed; or one
with the same paths, where either of them came without costs. Whole logs are compared, never single episodes: equal
short episodes are common, and every one of them is evidence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.importers.log_content import content_hash
from hedgerow.importers.logs import Log

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


def refuse_known(absorbed: Digests, one: Digests) -> None:
    """Refuse a log that was absorbed before."""
    paths = (absorbed[:, 0] == one[:, 0]).all(axis=1)
    costs = (absorbed[:, 1] == one[:, 1]).all(axis=1)
    silent = ~absorbed[:, 1].any(axis=1) | (not one[:, 1].any())
    if np.any(paths & (costs | silent)):
        raise InvalidInput(
            "this log was absorbed before, with the same episodes: to count them twice would make the bounds too "
            "narrow. If these are other episodes that went the same way, read both together as one log, and absorb that"
        )


def checked_digests(given: NDArray[np.generic], episodes: int) -> Digests:
    """Digests in a file, if they can be those of logs with so many episodes in all."""
    array = np.asarray(given)
    if array.dtype != np.uint8 or array.shape[1:] != (2, 32) or len(array) > episodes:
        raise InvalidInput(f"logs.absorbed must be uint8 of shape (logs, 2, 32), of at most {episodes} logs")
    return array.astype(np.uint8)
