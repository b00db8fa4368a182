"""What happened in one episode: the visited pairs, the losses and costs on the way.

An episode is given by its rows, one per layer, or by pairs (state, action), each by label or by a number. A number is a
label where any label of that axis looks like a number, else a position (`axis.py`). Rows are always positions.

    >>> view = View(Layout((1, 1), 2).labelled(["home", "end"], ["wait", "go"]), [0.5], ["delay"])
    >>> Episode(view, [("home", "go")], losses=[0.25], costs=[1.0])
    Episode(layer 0, state 'home', action 'go'; loss 0.25, costs [1])

Costs are (L, m), or (L,) for a single constraint; without constraints they may be left out. An episode that was aborted
has fewer steps and names the state that it ended in; one in which somebody else chose an action is `overridden`. With
full feedback it also holds the loss l_t (num_rows,) and the costs G_t (num_rows, m) of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, float_array, frozen, numeric_array, shown, unmasked, within
from hedgerow.errors import InvalidInput
from hedgerow.model.identity import between
from hedgerow.model.layout import Layout
from hedgerow.model.view import View


class Episode:
    """What happened in one episode: the visited pairs, and the losses and costs on the way.

    Learners take episodes in `observe`. An episode is checked when it is made, and never changes. All recorded costs
    count. That is right if the costs of one episode are independent of each other, or if nobody stopped an episode, or
    chose an action in it, after looking at its costs; the ledger of a learner says so. Never leave out an episode
    because its costs were high: what is left would be the cheap ones.

    Args:
        view: What the learner knows of the world; `world.view()`.
        path: The visited pairs, one per layer: whole numbers (L,) that are rows, or pairs (state, action), each by
            label or by a number, which is a label where any label of that axis looks like a number, else a position.
        losses: (L,) losses in [0, 1], one per step.
        costs: (L, m) costs in [0, 1], or (L,) for one constraint; None without constraints.
        ended_in: The state, given as in a pair, in which an aborted episode ended. It then has fewer than L steps. None
            for a complete episode.
        overridden: Whether somebody else chose one or more of the actions.
        costs_count: False for costs that are not to be trusted, for a reason other than what they were.
        all_losses: (num_rows,) losses of all pairs, for learners with full feedback.
        all_costs: (num_rows, m) costs of all pairs, for learners with full feedback.

    Raises:
        InvalidInput: If the path is not possible, or if a shape or a number is wrong; the message names the step.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> hr.Episode(view, [("home", "go")], losses=[0.25], costs=[1.0])
        Episode(layer 0, state 'home', action 'go'; loss 0.25, costs [1])
    """

    __slots__ = (
        "all_costs", "all_losses", "constraint_names", "costs", "costs_count", "layout", "losses", "overridden", "rows",
        "triples",
    )  # fmt: skip
    layout: Layout
    """The layout of the world, with the labels of the view."""
    constraint_names: tuple[str, ...]
    """(m,): what the constraints are called, in the order of the costs."""
    rows: IntArray
    """(n,): the visited rows, which are pairs (state, action); n = L unless the episode was aborted."""
    triples: IntArray
    """(n,): the visited triples: the pairs together with the states that they led to."""
    losses: FloatArray
    """(n,): the loss of each step."""
    costs: FloatArray
    """(n, m): the costs of each step."""
    overridden: bool
    """Whether somebody else chose one or more of the actions."""
    costs_count: bool
    """Whether learners count its costs."""
    all_losses: FloatArray | None
    """(num_rows,): the losses of all pairs, with full feedback; else None."""
    all_costs: FloatArray | None
    """(num_rows, m): the costs of all pairs, with full feedback; else None."""

    def __init__(
        self,
        view: View,
        path: ArrayLike | Sequence[tuple[int | str, int | str]],
        losses: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        ended_in: int | str | None = None,
        overridden: bool = False,
        costs_count: bool = True,
        all_losses: ArrayLike | None = None,
        all_costs: ArrayLike | None = None,
    ) -> None:
        layout, m = view.layout, view.num_constraints
        rows = rows_of(layout, path)
        count = len(rows)
        if count < layout.steps and ended_in is None:
            raise InvalidInput(
                f"the episode has {count} of {layout.steps} steps; if it was aborted, say where: ended_in=state"
            )
        if count == layout.steps and ended_in is not None:
            raise InvalidInput("a complete episode ends in the terminal state; leave out ended_in")
        last = layout.num_states - 1 if ended_in is None else layout.state(ended_in)
        self.layout, self.constraint_names, self.rows = layout, view.constraint_names, frozen(rows)
        self.triples = frozen(_triples(layout, rows, last))
        self.losses = _unit("the loss", losses, (count,))
        self.costs = along(view, costs, count)
        self.overridden = bool(overridden)
        self.costs_count = bool(costs_count)
        self.all_losses = None if all_losses is None else _unit("the loss of all pairs", all_losses, (layout.num_rows,))
        self.all_costs = None if all_costs is None else _unit("the costs of all pairs", all_costs, (layout.num_rows, m))

    @classmethod
    def trusted(
        cls,
        view: View,
        rows: IntArray,
        triples: IntArray,
        losses: FloatArray,
        costs: FloatArray,
        all_losses: FloatArray | None = None,
        all_costs: FloatArray | None = None,
    ) -> Episode:
        """Return a complete episode without checks, for arrays that are known to be sound.

        Arrays are copied unless they are frozen.

        Args:
            view: What the learner knows of the world.
            rows: (L,) visited rows.
            triples: (L,) visited triples.
            losses: (L,) losses.
            costs: (L, m) costs.
            all_losses: (num_rows,) losses of all pairs; None without full feedback.
            all_costs: (num_rows, m) costs of all pairs; None without full feedback.
        """
        episode = cls.__new__(cls)
        episode.layout, episode.constraint_names = view.layout, view.constraint_names
        episode.overridden, episode.costs_count = False, True
        episode.rows, episode.triples = frozen(rows), frozen(triples)
        episode.losses, episode.costs = frozen(losses), frozen(costs)
        episode.all_losses = None if all_losses is None else frozen(all_losses)
        episode.all_costs = None if all_costs is None else frozen(all_costs)
        return episode

    def in_terms_of(self, view: View) -> Episode:
        """Return the episode as the world of `view` has it.

        Args:
            view: A view of the same world; states, actions and constraints may stand in another order.

        Returns:
            The episode itself if nothing differs; else an episode in which rows, triples and costs stand where `view`
            has their names.

        Raises:
            InvalidInput: If layouts, labels or names of constraints differ in more than their order.

        Examples:
            >>> import hedgerow as hr
            >>> one = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5, "fuel": 0.5})
            >>> other = hr.View.of([["home"]], ["go", "wait"], thresholds={"fuel": 0.5, "delay": 0.5})
            >>> hr.Episode(one, [("home", "go")], [0.25], [[1.0, 0.0]]).in_terms_of(other)
            Episode(layer 0, state 'home', action 'go'; loss 0.25, costs [0, 1])
        """
        how = between(self.layout, self.constraint_names, view.layout, view.constraint_names)
        if how is None:
            return self
        other = copy(self)
        other.layout, other.constraint_names = view.layout, view.constraint_names
        other.rows, other.triples = frozen(how.rows[self.rows]), frozen(how.of_triples(self.triples))
        other.costs = frozen(self.costs[:, how.constraints])
        if self.all_losses is not None:
            other.all_losses = frozen(how.over_rows(self.all_losses))
        if self.all_costs is not None:
            other.all_costs = frozen(how.over_rows(self.all_costs[:, how.constraints]))
        return other

    @property
    def complete(self) -> bool:
        """Whether the episode has all L steps; else it was aborted."""
        return len(self.rows) == self.layout.steps

    def __repr__(self) -> str:
        from hedgerow import brief

        marks = ", aborted" * (not self.complete) + ", overridden" * self.overridden
        sums = f"; loss {self.losses.sum():g}, costs {brief.numbers(self.costs.sum(axis=0))}{marks}"
        shown, room = [self._step(0)], brief.LONGEST - len(sums) - 40
        while len(shown) < len(self.rows) and len(" -> ".join([*shown, self._step(len(shown))])) <= room:
            shown.append(self._step(len(shown)))
        more = f" -> ... ({len(self.rows)} steps)" if len(shown) < len(self.rows) else ""
        return brief.line("Episode", f"{' -> '.join(shown)}{more}{sums}")

    def _step(self, step: int) -> str:
        """A visited pair in words, with labels that fit a line."""
        from hedgerow import brief

        layout, row = self.layout, int(self.rows[step])
        state, action = divmod(row, layout.num_actions)
        at = str(state - int(layout.state_start[step]))
        x = at if layout.state_labels is None else brief.quoted(layout.state_labels[state])
        a = str(action) if layout.action_labels is None else brief.quoted(layout.action_labels[action])
        return f"layer {step}, state {x}, action {a}"


def rows_of(layout: Layout, path: Any) -> IntArray:
    """The rows (n,), n <= L, of a path: rows themselves, or pairs (state, action), see `axis.py`."""
    given = unmasked("the trajectory", path)
    rows: Any
    if not isinstance(given, np.ndarray) and isinstance(given, Sequence) and given and all(map(_is_pair, given)):
        rows = np.array([layout.row(state, action) for state, action in given], dtype=np.int64)
    else:
        rows = np.asarray(given) if not isinstance(given, str) else np.zeros(0)
        if rows.ndim == 2 and rows.shape[1] == 2 and rows.dtype.kind in "iu":
            rows = np.array([layout.row(int(state), int(action)) for state, action in rows], dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not 0 < len(rows) <= layout.steps:
        raise InvalidInput(
            f"a trajectory is {layout.steps} rows (x, a) as whole numbers, one per layer, or pairs (state, action); "
            f"this one has shape {rows.shape} and type {rows.dtype}"
        )
    first = layout.state_start[: len(rows) + 1] * layout.num_actions
    strays = np.flatnonzero((rows < first[:-1]) | (rows >= first[1:]))
    if strays.size:
        k = int(strays[0])
        raise InvalidInput(
            f"step {k} of the trajectory is {_stray(layout, int(rows[k]))}; "
            f"layer {k} has the rows {first[k]} to {first[k + 1] - 1}"
        )
    whole: IntArray = rows.astype(np.int64)
    return whole


def along(view: View, costs: ArrayLike | None, steps: int) -> FloatArray:
    """The costs (steps, m) of an episode; (steps,) is enough for one constraint, nothing for none."""
    m = view.num_constraints
    if costs is None:
        if m:
            raise InvalidInput(
                f"the costs of the {m} constraints along the trajectory are missing: shape ({steps}, {m})"
            )
        return frozen(np.zeros((steps, 0)))
    array = numeric_array("the cost", costs)
    if m == 1 and array.shape == (steps,):
        array = array.reshape(steps, 1)
    return _unit("the cost", array, (steps, m))


def _is_pair(step: Any) -> bool:
    return isinstance(step, tuple | list) and len(step) == 2


def _stray(layout: Layout, row: int) -> str:
    return f"row {row} ({layout.describe_row(row)})" if 0 <= row < layout.num_rows else f"row {shown(row)}"


def _unit(what: str, given: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    return within(what, float_array(what, given, shape), 0.0, 1.0)


def _triples(layout: Layout, rows: IntArray, last: int) -> IntArray:
    """The triples between the rows (n,) of a path that ends in the state `last`."""
    targets = np.empty(len(rows), dtype=np.int64)
    np.floor_divide(rows[1:], layout.num_actions, out=targets[:-1])
    targets[-1] = last
    if layout.is_full and layout.layer_of_state[last] == len(rows):  # every other state is in its layer already
        direct: IntArray = layout.row_start[rows] + targets - layout.state_start[1 : len(rows) + 1]
        return direct
    triples = np.empty(len(rows), dtype=np.int64)
    for k, (row, target) in enumerate(zip(rows.tolist(), targets.tolist(), strict=True)):
        first, end = int(layout.row_start[row]), int(layout.row_start[row + 1])
        place = first + int(np.searchsorted(layout.successor[first:end], target))
        if place == end or layout.successor[place] != target:
            raise InvalidInput(
                f"the trajectory is no path: {layout.describe_row(row)} cannot lead to {layout.describe_state(target)}"
            )
        triples[k] = place
    return triples
