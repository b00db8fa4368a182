"""Whether two views speak of the same world, and how to read what was written in the terms of another one.

The *identity* of a view is its layout, the labels of states and actions, and the names of its constraints. Thresholds
and knowledge are no part of it. Two identities are

    equal           rows, triples and costs mean the same in both
    reordered       the same names in another order: states within their layers, actions, constraints. What was written
                    in the terms of one is translated by name into those of the other
    different       anything else: refused

An axis without labels is known by positions alone, so it agrees only with another one without labels.

    >>> ours = Layout((1, 1), 2).labelled(None, ["wait", "go"])
    >>> theirs = Layout((1, 1), 2).labelled(None, ["go", "wait"])
    >>> between(theirs, ("delay",), ours, ("delay",)).rows.tolist()
    [1, 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout

MISSING = -1
"""In the place of a triple: it is not known what a step led to."""
MOST_NAMED = 3
"""Names that a message shows of each side."""
Names = tuple[str, ...]
Number = TypeVar("Number", IntArray, FloatArray)


@dataclass(frozen=True, eq=False)
class Translation:
    """How to read another view's rows, triples and costs."""

    rows: IntArray
    """(num_rows,): our row of each of theirs."""
    triples: IntArray
    """(num_triples,): our triple of each of theirs."""
    constraints: IntArray
    """(m,): the place among theirs of each of our constraints."""

    def of_triples(self, triples: IntArray) -> IntArray:
        """Our triples of theirs (n,), MISSING where they are."""
        return np.where(triples == MISSING, MISSING, self.triples[triples])

    def over_rows(self, values: FloatArray) -> FloatArray:
        """Our array (num_rows, ...) of theirs."""
        ours = np.empty_like(values)
        ours[self.rows] = values
        return ours


def same_layout(one: Layout, other: Layout) -> bool:
    """Whether two layouts are equal, labels included."""
    return one is other or (
        one.action_labels == other.action_labels and one.state_labels == other.state_labels and one == other
    )


def between(theirs: Layout, their_names: Names, ours: Layout, our_names: Names) -> Translation | None:
    """How to read what was written for one identity in the terms of another; None if they are equal.

    Raises:
        InvalidInput: If they are of different worlds; the message says in what they differ.
    """
    if same_layout(theirs, ours) and their_names == our_names:
        return None
    constraints = _order("constraints", our_names, their_names, theirs_last=True)
    rows, triples = _rows_and_triples(theirs, ours)
    return Translation(rows, triples, constraints)


def rows_between(theirs: Layout, ours: Layout) -> IntArray | None:
    """(num_rows,): our row of each of theirs, by name; None if the layouts are equal.

    Raises:
        InvalidInput: If the layouts are of different worlds.
    """
    return None if same_layout(theirs, ours) else _rows_and_triples(theirs, ours)[0]


def policy_between(theirs: Layout, ours: Layout, probabilities: FloatArray) -> FloatArray:
    """The action probabilities (num_rows,) of a policy on another layout, by name.

    Raises:
        InvalidInput: If the layouts are of different worlds.
    """
    rows = rows_between(theirs, ours)
    if rows is None:
        return probabilities
    result = np.empty_like(probabilities)
    result[rows] = probabilities
    return result


def _rows_and_triples(theirs: Layout, ours: Layout) -> tuple[IntArray, IntArray]:
    if theirs.layer_sizes != ours.layer_sizes or theirs.num_actions != ours.num_actions:
        raise InvalidInput(f"its layout is {theirs!r}, not {ours!r}")
    states = _order("states", theirs.state_labels, ours.state_labels, count=ours.num_states)
    actions = _order("actions", theirs.action_labels, ours.action_labels, count=ours.num_actions)
    astray = np.flatnonzero(ours.layer_of_state[states] != theirs.layer_of_state)
    if astray.size:
        x = int(astray[0])
        raise InvalidInput(f"{theirs.describe_state(x)} is {ours.describe_state(int(states[x]))} here")
    A = ours.num_actions
    rows: IntArray = (states[:-1, None] * A + actions).ravel()
    triples = find_triples(ours, rows[theirs.row_of_triple], states[theirs.successor])
    if theirs.num_triples != ours.num_triples or (triples == MISSING).any():
        raise InvalidInput(f"its layout allows other transitions: {theirs!r}, not {ours!r}")
    return rows, triples


def _order(
    what: str, theirs: Names | None, ours: Names | None, *, count: int = 0, theirs_last: bool = False
) -> IntArray:
    """The place among the second names of each of the first; in a message, the first are theirs unless it is said."""
    if theirs is None and ours is None:
        return np.arange(count, dtype=np.int64)
    place = {name: i for i, name in enumerate(ours or ())}
    if theirs is None or ours is None or place.keys() != set(theirs):
        pair = (ours, theirs) if theirs_last else (theirs, ours)
        raise InvalidInput(f"its {what} are {_listed(*pair)}, not {_listed(*pair[::-1])}")
    return np.array([place[name] for name in theirs], dtype=np.int64)


def _listed(names: Names | None, others: Names | None) -> str:
    """Names in a message, those first that the other side does not have."""
    if names is None:
        return "without labels"
    strange = set(names) - set(others or names)
    shown = sorted(names, key=lambda name: name not in strange)  # stable
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(map(repr, shown[:MOST_NAMED])) + more if names else "none"


def find_triples(layout: Layout, rows: IntArray, states: IntArray) -> IntArray:
    """The triples that lead from `rows` (n,) to `states` (n,), MISSING where there is none."""
    keys = layout.row_of_triple * layout.num_states + layout.successor  # ascending
    wanted = rows * layout.num_states + states
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    triples: IntArray = np.where((keys[place] == wanted) & (states != MISSING), place, MISSING).astype(np.int64)
    return triples
