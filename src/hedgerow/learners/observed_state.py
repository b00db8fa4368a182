"""Check arrays that claim to be the state of `Observed`: can they be counts of real episodes?

Every episode visits one row of the first layer and goes on layer by layer unless it was aborted; every visit leads
somewhere; each cost and loss lies in [0, 1]. Arrays that contradict this are refused: a damaged or foreign file never
becomes a learner with wrong bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, float_array
from hedgerow.confidence.counts import Counts
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout

ENTRIES = {
    "radii", "settings", "episodes", "num_visits", "num_moves", "num_costs", "sums", "unknown_episodes",
    "unknown_moves", "unknown_costs", "visits_then",
}  # fmt: skip
TOL_SUM = 1e-9
"""Sums of numbers in [0, 1] may pass the number of their terms by rounding."""


class ObservedState(NamedTuple):
    """The arrays, checked and by role."""

    radii: str
    delta: float
    confidence_scale: float
    added: int
    unknown: int
    episodes: int | None
    counts: Counts
    visits_then: IntArray | None
    transitions: FloatArray | None


def checked_state(layout: Layout, num_columns: int, state: Mapping[str, NDArray[Any]]) -> ObservedState:
    """What `Observed.state()` returned, for counts with so many columns of sums (costs, and the loss)."""
    given = dict(state)
    for name, array in _of_an_earlier_release(layout, num_columns, given).items():
        given.setdefault(name, array)
    transitions = given.pop("transitions", None)
    if set(given) != ENTRIES:
        wrong = sorted(set(given) ^ ENTRIES)
        raise InvalidInput(f"this is no state of Statistics: {wrong[0]!r} is missing or unknown")
    settings = float_array("the settings of the state", given["settings"], (2,))
    added, limit = _whole("episodes", given["episodes"], (2,), least=-1).tolist()
    unknown = int(_whole("unknown_episodes", given["unknown_episodes"], ()))
    visits = _whole("num_visits", given["num_visits"], (layout.num_rows,))
    moves = _whole("num_moves", given["num_moves"], (layout.num_triples,))
    num_costs = _whole("num_costs", given["num_costs"], (layout.num_rows,))
    sums = float_array("sums of the state", given["sums"], (layout.num_rows, num_columns))
    then = np.asarray(given["visits_then"])
    visits_then = None if then.size == 0 else _whole("visits_then", then, (layout.num_rows,))
    lost = _whole("unknown_moves", given["unknown_moves"], (layout.num_rows,))
    gone = _whole("unknown_costs", given["unknown_costs"], (layout.num_rows, num_columns))
    _demand(
        0 <= unknown <= added and max(lost.max(), gone.max()) <= unknown, "more is unknown than episodes can have left"
    )
    _check_flow(layout, added, visits, moves, unknown)
    known = num_costs[:, None] - gone
    _demand(bool(np.all(known >= 0)), "more costs are unknown than there are visits")
    _demand(
        bool(np.all(num_costs - gone.min(axis=1) <= visits + lost)), "more costs were counted than there are visits"
    )
    _demand(bool(np.all((sums >= 0.0) & (sums <= known + TOL_SUM))), "sums are not those of the visits")
    _demand(visits_then is None or bool(np.all(visits_then <= visits)), "visits_then are more than the visits")
    return ObservedState(
        radii=str(np.asarray(given["radii"])),
        delta=float(settings[0]),
        confidence_scale=float(settings[1]),
        added=added,
        unknown=unknown,
        episodes=None if limit == -1 else limit,
        counts=Counts(visits, moves, num_costs, sums, lost, gone),
        visits_then=visits_then,
        transitions=transitions,
    )


def _of_an_earlier_release(layout: Layout, num_columns: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What states did not hold at first: all costs counted, and nothing was unknown."""
    return {
        "num_costs": given.get("num_visits", np.zeros(0, dtype=np.int64)),
        "unknown_episodes": np.array(0),
        "unknown_moves": np.zeros(layout.num_rows, dtype=np.int64),
        "unknown_costs": np.zeros((layout.num_rows, num_columns), dtype=np.int64),
    }


def _check_flow(layout: Layout, added: int, visits: IntArray, moves: IntArray, unknown: int) -> None:
    """Check that episodes visit the first layer, visits move on, and no state has more visits than arrivals.

    Episodes of which something is unknown may miss the first layer.
    """
    A = layout.num_actions
    of_state = visits.reshape(-1, A).sum(axis=1)
    arrivals = np.bincount(layout.successor, weights=moves, minlength=layout.num_states)[1:-1]
    first = int(of_state[0])
    _demand(added - unknown <= first <= added, "the visits of the first layer are not as many as the episodes")
    _demand(np.array_equal(np.add.reduceat(moves, layout.row_start[:-1]), visits), "num_moves do not add up to visits")
    _demand(bool(np.all(of_state[1:] <= arrivals)), "some state has more visits than arrivals")


def _whole(name: str, given: Any, shape: tuple[int, ...], least: int = 0) -> IntArray:
    array = np.asarray(given)
    if array.shape != shape or array.dtype.kind not in "iu" or (array.size and array.min() < least):
        raise InvalidInput(f"{name} of the state must be whole numbers >= {least} of shape {shape}")
    return array.astype(np.int64)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidInput(f"this is no state of Statistics: {otherwise}")
