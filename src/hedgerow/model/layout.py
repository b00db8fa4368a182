"""The one index order: layers, rows (x, a) and triples (x, a, x').

States are numbered layer after layer, X_0 = {0} first and the terminal state x_L last. A *row* is a pair (x, a) of a
decision state and an action, ordered by layer, state, action, so that row r belongs to state r // |A| and action
r % |A|. A *triple* is (x, a, x'); triples are stored row after row (row r owns `row_start[r] : row_start[r + 1]`) with
ascending successors. In the paper's setting every state of the next layer is a possible successor; a known sparse
support is the same structure with fewer triples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import (
    FloatArray,
    IntArray,
    did_you_mean,
    distinct_names,
    frozen,
    numeric_array,
    short_repr,
    unmasked,
    whole_number,
)
from hedgerow.errors import InvalidInput

WHOLE = re.compile("0|[1-9][0-9]*")
"""A position as a file without types writes it."""


def value_of(label: str) -> float | None:
    """The number that Python, or a reader of tables, could take a label for: "7", "0456", "-1.5", "1e3", "0x10"."""
    for base in (None, 0):
        try:
            return float(label) if base is None else float(int(label, base))  # 0x10, 0b10, 0o10
        except (ValueError, OverflowError):
            continue
    return None


class Axis:
    """The states of a layout, or its actions, and what stands for each of them: its label or its position.

    A text is always a label. What a number means is decided for the whole axis, never value by value: where any label
    looks like a number, every number is a label, and matches the label that is written like it; else every number is a
    position. So a plant whose actions are called "1" and "0" has no action at position 1 that could be taken for the
    one called "1". Labels are compared as they are written: 1 is "1", and neither "01" nor "1.0".

    >>> Axis("action", ("1", "0")).position(1), Axis("action", ("stop", "go")).position(1)
    (0, 1)

    Args:
        what: What an entry is called in messages: "state" or "action".
        labels: The labels, all different; or how many entries there are, if they have none.
    """

    def __init__(self, what: str, labels: Sequence[str] | int) -> None:
        self.what = what
        self.labels: tuple[str, ...] | None = None if isinstance(labels, int) else tuple(labels)
        self.count = labels if isinstance(labels, int) else len(labels)

    @cached_property
    def numbers_are_labels(self) -> bool:
        """Whether a number means a label here, because some label looks like a number."""
        return self.labels is not None and any(value_of(label) is not None for label in self.labels)

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each label."""
        return {label: place for place, label in enumerate(self.labels or ())}

    def position(self, given: object) -> int:
        """The position of an entry that is given by label, or by a number that means what the axis says.

        Raises:
            InvalidInput: If there is no such entry; the message says what numbers mean here.
        """
        if isinstance(given, str):
            place = self.places.get(given)
            return self._unknown(given, given) if place is None else place
        number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not self.numbers_are_labels or not number:
            return whole_number(f"the {self.what}", given, 0, self.count - 1)
        written = str(given.item() if isinstance(given, np.generic) else given)
        place = self.places.get(written)
        return self._unknown(given, written) if place is None else place

    def read(self, text: str) -> int:
        """The position of an entry in a file without types, where a position is written as digits too."""
        if text not in self.places and not self.numbers_are_labels and WHOLE.fullmatch(text):
            return self.position(int(text))
        return self.position(text)

    def entry(self, position: int) -> int | str:
        """What stands for the entry at a position so that `position` finds it again: a label where numbers are labels.

        Elsewhere it is the position itself.
        """
        return self.labels[position] if self.labels is not None and self.numbers_are_labels else position

    def _unknown(self, given: object, written: str) -> int:
        what, labels = self.what, self.labels
        if labels is None:
            raise InvalidInput(
                f"{what}s have no labels here; give a number in 0..{self.count - 1}, not {short_repr(given)}"
            )
        value = value_of(written)
        twins = [label for label in labels if value is not None and value_of(label) == value][:2]
        rule = ""
        if not isinstance(given, str):
            rule = f": labels of {what}s look like numbers here, so every number is a label and not a position"
        if twins:
            hint = f"; {' and '.join(map(repr, twins))} is written otherwise, and labels count as they are written"
        else:
            hint = did_you_mean(written, labels)
        raise InvalidInput(f"there is no {what} {short_repr(given)}{rule}{hint}")


SuccessorArray = NDArray[np.int32]
MAX_TRIPLES = 2**31 - 1
"""A layout with more triples could not be stored anyway, and 32 bits number every state of a smaller one."""
MOST_SHOWN = 12
"""Layers that a layout prints one by one."""


class Layout:
    """The layers, the actions, and which states can follow each pair of state and action.

    It fixes the order of all arrays. States are numbered layer after layer, from the start state 0 to the terminal
    state. A *row* is a pair (state, action); rows are ordered by state, then by action, so row r belongs to state r //
    num_actions and action r % num_actions. A *triple* is (state, action, next state); triples are ordered by row, then
    by next state. Terminal states have no rows. Layouts never change.

    Args:
        layer_sizes: The number of states in each layer, at least two layers. The first and the last layer have one
            state.
        num_actions: The number of actions, at least 1, the same in every state.
        row_start: (num_rows + 1,) whole numbers: row r owns the triples row_start[r] to row_start[r + 1] - 1. Give it
            with `successor` where it is known that some transitions are impossible. None allows every state of the next
            layer after every row.
        successor: (num_triples,) whole numbers: the next state of each triple, ascending within a row. None as above.
        max_triples: Refuse a full layout with more triples than this.

    Raises:
        InvalidInput: If a size is wrong, if a row has no successor, or if a state cannot be reached.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=2)
        >>> layout.steps, layout.num_states, layout.num_rows, layout.num_triples
        (2, 4, 6, 8)
        >>> layout.describe_row(3)
        'layer 1, state 0, action 1'
    """

    layer_sizes: tuple[int, ...]
    """(L + 1,): the number of states in each layer; the first and the last are 1."""
    num_actions: int
    """The number of actions, the same in every state."""
    row_start: IntArray
    """(num_rows + 1,): row r owns the triples row_start[r] to row_start[r + 1] - 1."""
    successor: SuccessorArray
    """(num_triples,): the next state of each triple, numbered over all layers."""
    state_labels: tuple[str, ...] | None = None
    """(num_states,): the names of the states, all different, or None. Labels do not count when layouts are compared."""
    action_labels: tuple[str, ...] | None = None
    """(num_actions,): the names of the actions, all different, or None."""

    def __init__(
        self,
        layer_sizes: Sequence[int],
        num_actions: int,
        *,
        row_start: ArrayLike | None = None,
        successor: ArrayLike | None = None,
        max_triples: int = MAX_TRIPLES,
    ) -> None:
        self.layer_sizes = _checked_sizes(layer_sizes)
        self.num_actions = whole_number("the number of actions", num_actions, 1)
        if (row_start is None) != (successor is None):
            raise InvalidInput("a sparse support needs both row_start and successor; leave out both for full support")
        if row_start is None or successor is None:
            _check_size(self.num_dense_triples, max_triples)
            self.row_start, self.successor = _full_support(self)
        else:
            self.row_start, self.successor = _checked_support(self, row_start, successor)

    @classmethod
    def from_support(cls, support: Sequence[ArrayLike]) -> Layout:
        """Make a layout from tables that say which transitions are possible.

        Args:
            support: For each layer k but the last a boolean array (states of layer k, actions, states of layer k + 1);
                True where the transition is possible.

        Returns:
            The layout whose triples are the True entries.

        Examples:
            >>> import hedgerow as hr
            >>> hr.Layout.from_support([[[[True, True], [False, True]]], [[[True], [True]], [[True], [True]]]])
            Layout(layers=(1, 2, 1), actions=2, 7 of 8 triples)
        """
        blocks = [_truth_values(k, block) for k, block in enumerate(support)]
        if not blocks:
            raise InvalidInput("the support needs one array per layer; none given")
        for k, block in enumerate(blocks):
            if block.ndim != 3:
                raise InvalidInput(
                    f"the support of layer {k} has {block.ndim} axes; it needs (states, actions, successors)"
                )
            if k and block.shape[:2] != (blocks[k - 1].shape[2], blocks[0].shape[1]):
                raise InvalidInput(
                    f"the support of layer {k} has {block.shape[0]} states and {block.shape[1]} actions; layer {k - 1} "
                    f"leads to {blocks[k - 1].shape[2]} states and there are {blocks[0].shape[1]} actions"
                )
        sizes = [block.shape[0] for block in blocks] + [blocks[-1].shape[2]]
        first_state = np.concatenate(([0], np.cumsum(sizes)))
        row_counts = np.concatenate([block.sum(axis=2).ravel() for block in blocks])
        successor = np.concatenate([np.nonzero(block)[2] + first_state[k + 1] for k, block in enumerate(blocks)])
        row_start = np.concatenate(([0], np.cumsum(row_counts)))
        return cls(sizes, blocks[0].shape[1], row_start=row_start, successor=successor)

    def labelled(self, states: Sequence[str] | None, actions: Sequence[str] | None) -> Layout:
        """Return the same layout with names.

        Args:
            states: (num_states,) different names, the terminal state included; None for no names.
            actions: (num_actions,) different names; None for no names.
        """
        state_labels = None if states is None else distinct_names("state labels", states, self.num_states)
        action_labels = None if actions is None else distinct_names("action labels", actions, self.num_actions)
        if (state_labels, action_labels) == (self.state_labels, self.action_labels):
            return self
        result = copy(self)
        result.state_labels, result.action_labels = state_labels, action_labels
        for axis in ("state_axis", "action_axis"):
            result.__dict__.pop(axis, None)  # those of the old labels
        return result

    # Sizes -----------------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The number L of steps of an episode: one less than there are layers."""
        return len(self.layer_sizes) - 1

    @cached_property
    def num_states(self) -> int:
        """The number of states, the start state and the terminal state included."""
        return sum(self.layer_sizes)

    @property
    def num_decision_states(self) -> int:
        """The number of states in which an action is taken: all but the terminal state."""
        return self.num_states - 1

    @property
    def num_rows(self) -> int:
        """The number of rows, which are pairs (decision state, action)."""
        return self.num_decision_states * self.num_actions

    @property
    def num_triples(self) -> int:
        """The number of triples (state, action, next state) that are possible."""
        return len(self.successor)

    @cached_property
    def num_dense_triples(self) -> int:
        """The number of triples if every state of the next layer could follow every row."""
        sizes = self.layer_sizes
        return self.num_actions * sum(here * there for here, there in pairwise(sizes))

    @property
    def is_full(self) -> bool:
        """Whether every state of the next layer can follow every row."""
        return self.num_triples == self.num_dense_triples

    # Where things are ------------------------------------------------------------------------------------------------

    @cached_property
    def state_start(self) -> IntArray:
        """(L + 2,): layer k owns the states state_start[k] to state_start[k + 1] - 1."""
        return frozen(np.concatenate(([0], np.cumsum(self.layer_sizes))).astype(np.int64))

    @cached_property
    def layer_of_state(self) -> IntArray:
        """(num_states,): the layer of each state."""
        return frozen(np.repeat(np.arange(self.steps + 1), self.layer_sizes).astype(np.int64))

    @cached_property
    def row_of_triple(self) -> IntArray:
        """(num_triples,): the row of each triple."""
        return frozen(np.repeat(np.arange(self.num_rows), np.diff(self.row_start)).astype(np.int64))

    def states(self, k: int) -> slice:
        """Return the slice of the states of layer `k`."""
        return slice(int(self.state_start[k]), int(self.state_start[k + 1]))

    def rows(self, k: int) -> slice:
        """Return the slice of the rows of layer `k`, which is not the last."""
        states = self.states(k)
        return slice(states.start * self.num_actions, states.stop * self.num_actions)

    def triples(self, k: int) -> slice:
        """Return the slice of the triples of layer `k`, which is not the last."""
        rows = self.rows(k)
        return slice(int(self.row_start[rows.start]), int(self.row_start[rows.stop]))

    @cached_property
    def state_axis(self) -> Axis:
        """What stands for each state: its label or its position."""
        return Axis("state", self.num_states if self.state_labels is None else self.state_labels)

    @cached_property
    def action_axis(self) -> Axis:
        """What stands for each action: its label or its position."""
        return Axis("action", self.num_actions if self.action_labels is None else self.action_labels)

    def state(self, state: int | str) -> int:
        """Return the position of a `state`, given by its label or by a number.

        A number is a label where any label of a state looks like a number, else a position.
        """
        return self.state_axis.position(state)

    def action(self, action: int | str) -> int:
        """Return the position of an `action`, given by its label or by a number.

        A number is a label where any label of an action looks like a number, else a position.
        """
        return self.action_axis.position(action)

    def decision_state(self, state: int | str) -> int:
        """Return the position of a `state`, given as in `state`, in which an action is taken."""
        x = self.state(state)
        if x >= self.num_decision_states:
            raise InvalidInput(f"{self.describe_state(x)} is the terminal state; no action is taken there")
        return x

    def row(self, state: int | str, action: int | str) -> int:
        """Return the row of a decision `state` and an `action`, each given by label or by a number, as above."""
        return self.decision_state(state) * self.num_actions + self.action(action)

    def state_name(self, state: int) -> str:
        """Return the label of the state number `state` in quotation marks, or its number within its layer."""
        if self.state_labels is not None:
            return repr(self.state_labels[state])
        return str(state - int(self.state_start[self.layer_of_state[state]]))

    def action_name(self, action: int) -> str:
        """Return the label of the action number `action` in quotation marks, or its number."""
        return str(action) if self.action_labels is None else repr(self.action_labels[action])

    def describe_state(self, state: int) -> str:
        """Describe the state number `state` in words, for messages."""
        return f"layer {int(self.layer_of_state[state])}, state {self.state_name(state)}"

    def describe_row(self, row: int) -> str:
        """Describe the row number `row` in words, for messages."""
        state, action = divmod(row, self.num_actions)
        return f"{self.describe_state(state)}, action {self.action_name(action)}"

    def describe_triple(self, triple: int) -> str:
        """Describe the triple number `triple` in words, for messages."""
        successor = self.state_name(int(self.successor[triple]))
        return f"{self.describe_row(int(self.row_of_triple[triple]))}, successor {successor}"

    # Flat arrays <-> one array per layer -----------------------------------------------------------------------------

    def split_rows(self, flat: ArrayLike) -> list[FloatArray]:
        """Turn the array `flat` (num_rows,) into a list of L tables (states of the layer, num_actions)."""
        array = _of_length("rows", flat, self.num_rows)
        return [array[self.rows(k)].reshape(-1, self.num_actions) for k in range(self.steps)]

    def join_rows(self, layers: Sequence[ArrayLike]) -> FloatArray:
        """Turn the L tables `layers`, each (states of the layer, num_actions), into one array (num_rows,)."""
        shapes = [(size, self.num_actions) for size in self.layer_sizes[:-1]]
        return np.concatenate([block.ravel() for block in _blocks("rows", layers, shapes)])

    def split_triples(self, flat: ArrayLike, outside: float = 0.0) -> list[FloatArray]:
        """Turn an array over triples into one table per layer.

        Args:
            flat: (num_triples,) array.
            outside: The number to write where a transition is impossible.

        Returns:
            A list of L arrays (states of layer k, num_actions, states of layer k + 1).
        """
        array = _of_length("triples", flat, self.num_triples)
        layers = []
        for k, shape in enumerate(self._triple_shapes()):
            block = np.full(shape, outside)
            block.ravel()[self._dense_positions(k)] = array[self.triples(k)]
            layers.append(block)
        return layers

    def join_triples(self, layers: Sequence[ArrayLike]) -> FloatArray:
        """Turn one table per layer into one array over triples.

        Args:
            layers: L arrays (states of layer k, num_actions, states of layer k + 1). Entries of impossible transitions
                must be 0.

        Returns:
            (num_triples,) array.

        Raises:
            InvalidInput: If an entry of an impossible transition is not 0.
        """
        blocks = _blocks("triples", layers, self._triple_shapes())
        parts = []
        for k, block in enumerate(blocks):
            positions = self._dense_positions(k)
            parts.append(block.ravel()[positions])
            outside = np.ones(block.size, dtype=bool)
            outside[positions] = False
            if np.any(block.ravel()[outside] != 0):
                x, a, y = np.unravel_index(np.flatnonzero(outside & (block.ravel() != 0))[0], block.shape)
                raise InvalidInput(
                    f"layer {k}, state {x}, action {a} has the entry {float(block[x, a, y])!r} at successor {y}, "
                    "which is not in the support; use a layout that contains it or set it to 0"
                )
        return np.concatenate(parts)

    def _triple_shapes(self) -> list[tuple[int, int, int]]:
        return [(here, self.num_actions, there) for here, there in pairwise(self.layer_sizes)]

    def _dense_positions(self, k: int) -> IntArray:
        """Where the triples of layer k stand in the flattened dense array of that layer."""
        triples = self.triples(k)
        row = self.row_of_triple[triples] - self.rows(k).start
        local = self.successor[triples] - self.state_start[k + 1]
        positions: IntArray = row * self.layer_sizes[k + 1] + local
        return positions

    # Identity --------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self is other or (
            self.layer_sizes == other.layer_sizes
            and self.num_actions == other.num_actions
            and np.array_equal(self.row_start, other.row_start)
            and np.array_equal(self.successor, other.successor)
        )

    def __hash__(self) -> int:
        return hash((self.layer_sizes, self.num_actions, self.num_triples))

    def __repr__(self) -> str:
        from hedgerow.display import text

        sizes = self.layer_sizes
        layers = (
            f"layers={sizes}" if len(sizes) <= MOST_SHOWN else f"{len(sizes):,} layers of 1 to {max(sizes):,} states"
        )
        support = "full support" if self.is_full else f"{self.num_triples} of {self.num_dense_triples} triples"
        return text.line("Layout", layers, f"actions={self.num_actions}", support)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import layout_html

        return layout_html(self)


def _checked_sizes(layer_sizes: Sequence[int]) -> tuple[int, ...]:
    if isinstance(layer_sizes, str) or not hasattr(layer_sizes, "__iter__"):
        raise InvalidInput(f"layer sizes must be a sequence of whole numbers, not {layer_sizes!r}")
    sizes = tuple(whole_number(f"the size of layer {k}", size, 1) for k, size in enumerate(layer_sizes))
    if len(sizes) < 2:
        raise InvalidInput(f"{len(sizes)} layer(s) given; an episode needs at least X_0 and X_1")
    for k in (0, len(sizes) - 1):
        if sizes[k] != 1:
            raise InvalidInput(
                f"layer {k} has {sizes[k]} states; the first and the last layer must have exactly one "
                "(put a single start or end state around yours)"
            )
    return sizes


def _check_size(num_triples: int, max_triples: int) -> None:
    if num_triples > max_triples:
        raise InvalidInput(
            f"full support needs {num_triples} triples, at most {max_triples} are possible here; "
            "give the sparse support (row_start and successor) or fewer states"
        )


def _truth_values(k: int, block: ArrayLike) -> NDArray[np.bool_]:
    given = unmasked(f"the support of layer {k}", block)
    try:
        return np.asarray(given, dtype=bool)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the support of layer {k} must be an array of truth values: {error}") from error


def _full_support(layout: Layout) -> tuple[IntArray, SuccessorArray]:
    first = np.concatenate(([0], np.cumsum(layout.layer_sizes)))
    counts, successors = [], []
    for k, there in enumerate(layout.layer_sizes[1:]):
        num_rows = layout.layer_sizes[k] * layout.num_actions
        counts.append(np.full(num_rows, there))
        successors.append(np.tile(np.arange(first[k + 1], first[k + 2], dtype=np.int32), num_rows))
    row_start = np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int64)
    return frozen(row_start), frozen(np.concatenate(successors))


def _checked_support(layout: Layout, row_start: ArrayLike, successor: ArrayLike) -> tuple[IntArray, SuccessorArray]:
    starts, targets = _whole_numbers("row_start", row_start), _whole_numbers("successor", successor)
    if len(starts) != layout.num_rows + 1 or starts[0] != 0 or starts[-1] != len(targets):
        raise InvalidInput(
            f"row_start must have {layout.num_rows + 1} entries that begin with 0 and end with the number of triples, "
            f"{len(targets)}"
        )
    # Out of range first: differences of huge entries would overflow and look harmless.
    beyond = np.flatnonzero((starts < 0) | (starts > len(targets)))
    if len(beyond):
        raise InvalidInput(f"row_start is {starts[beyond[0]]} at index {beyond[0]}; there are {len(targets)} triples")
    starts = starts.astype(np.int64)
    empty = np.flatnonzero(np.diff(starts) <= 0)
    if len(empty):
        raise InvalidInput(f"{layout.describe_row(int(empty[0]))} has no successor; every row needs at least one")
    row = np.repeat(np.arange(layout.num_rows), np.diff(starts))
    layer = layout.layer_of_state[row // layout.num_actions]
    outside = (targets < layout.state_start[layer + 1]) | (targets >= layout.state_start[layer + 2])
    if outside.any():
        j = int(np.flatnonzero(outside)[0])
        raise InvalidInput(
            f"{layout.describe_row(int(row[j]))} leads to state {targets[j]}, which is not in layer {layer[j] + 1}"
        )
    unordered = (np.diff(targets.astype(np.int64)) <= 0) & (np.diff(row) == 0)
    if unordered.any():
        j = int(np.flatnonzero(unordered)[0])
        raise InvalidInput(f"the successors of {layout.describe_row(int(row[j]))} are not strictly ascending")
    reached = np.zeros(layout.num_states, dtype=bool)
    reached[0] = True
    reached[targets] = True
    if not reached.all():
        lost = int(np.flatnonzero(~reached)[0])
        raise InvalidInput(f"{layout.describe_state(lost)} is the successor of no row: it is unreachable; remove it")
    return frozen(starts), frozen(targets.astype(np.int32))


def _whole_numbers(what: str, value: ArrayLike) -> NDArray[np.integer[Any]]:
    given = unmasked(what, value)
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidInput(f"{what} must be a one-dimensional array of whole numbers: {error}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{what} must be a one-dimensional array of whole numbers")
    return array


def _of_length(what: str, flat: ArrayLike, length: int) -> FloatArray:
    array = numeric_array(f"the array over {what}", flat)
    if array.shape != (length,):
        raise InvalidInput(f"an array over {what} of this layout has shape ({length},), not {array.shape}")
    return array


def _blocks(what: str, layers: Sequence[ArrayLike], shapes: Sequence[tuple[int, ...]]) -> list[FloatArray]:
    if not isinstance(layers, Sequence | np.ndarray):
        raise InvalidInput(f"{what} must be given as a list with one array per layer, not {layers!r}")
    if len(layers) != len(shapes):
        raise InvalidInput(f"{len(layers)} arrays of {what} given; this layout has {len(shapes)} layers of {what}")
    blocks = [numeric_array(f"layer {k} of the {what}", block) for k, block in enumerate(layers)]
    for k, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
        if block.shape != tuple(shape):
            raise InvalidInput(f"layer {k} of the {what} has shape {block.shape}, expected {tuple(shape)}")
    return blocks
