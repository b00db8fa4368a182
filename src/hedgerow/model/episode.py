"""What happened in one episode: the visited pairs, the losses and costs on the way.

An episode is given by its rows, one per layer, or by pairs (state, action), each by label or by a number. A number is a
label where any label of that axis looks like a number, else a position (`layout.py`). Rows are always positions.
Costs are (L, m), or (L,) for a single constraint; without constraints they may be left out. An episode that was aborted
has fewer steps and names the state that it ended in; one in which another person or program chose an action says from
which step on; unknown costs are marked. What of it is counted is decided below (`Counting`). With full feedback it also
holds the loss l_t (num_rows,) and the costs G_t (num_rows, m) of all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    float_array,
    frozen,
    numeric_array,
    short_repr,
    type_name,
    unmasked,
    whole_number,
    within,
)
from hedgerow.errors import InvalidInput
from hedgerow.model.knowledge import TOL_TRUE
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Actions
from hedgerow.model.view import MISSING, View, between


class Irregular(NamedTuple):
    """How an episode differs from one that was played to its end as planned, with all costs known."""

    overridden_from: int | None = None
    """The first step whose action was not the learner's choice; None if there is none"""
    unknown: BoolArray | None = None
    """(n, m): which costs of the steps are unknown; None if all are known"""
    independent: str | None = None
    """Why values are left out, if that is declared to have nothing to do with them; else None"""
    missing: bool = False
    """Whether nothing at all is known of what happened"""
    actions: Actions | None = None
    """The actions, drawn beforehand, that were followed; None if they were drawn on the way"""


class Episode:
    """What happened in one episode: the visited pairs, and the losses and costs on the way.

    Learners take episodes in `observe`. An episode is checked when it is made, and never changes. Report all that
    happened: what of it may be counted is decided by the package. Each cost is *counted*, or *unknown*, or left out for
    a reason that is *declared* to be independent of it. Values that are missing because an episode was aborted or
    overridden, or because they were not measured, are unknown, and confidence sets make room for all values that they
    may have had (docs/counting.md).

    Args:
        view: What the learner knows of the world; `world.view()`.
        path: The visited pairs, one per layer: whole numbers (L,) that are rows, or pairs (state, action), each by
            label or by a number, which is a label where any label of that axis looks like a number, else a position.
        losses: (L,) losses in [0, 1], one per step.
        costs: (L, m) costs in [0, 1], or (L,) for one constraint; None without constraints, or if all are unknown.
        ended_in: The state, given as in a pair, in which an aborted episode ended. It then has fewer than L steps,
            perhaps none. None for a complete episode.
        end_unseen: True if the episode was aborted and it was not recorded where its last step led to.
        overridden_from: The first step, counted from 0, whose action was chosen by another person or program; 0 if it
            is not known which step it was. None if all actions followed the plan.
        unknown_costs: True if the costs are unknown; or (L, m) flags, (L,) for one constraint, True where the cost is
            unknown. The numbers in `costs` are ignored there.
        independent: Why the episode was cut short, overridden or not measured, in words, if that had nothing to do with
            its costs or moves, seen or foreseen. Then nothing of it is unknown, and the ledger of the learner names
            this declaration. None if it may have had to do with them, or if that is not known.
        actions: `plan.actions`, if they were followed. An action that differs counts as overridden from there on.
        all_losses: (num_rows,) losses of all pairs, for learners with full feedback.
        all_costs: (num_rows, m) costs of all pairs, for learners with full feedback.

    Raises:
        InvalidInput: If the path is not possible, or if a shape or a number is wrong; the message names the step.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"], ["road"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> hr.Episode(view, [("home", "go"), ("road", "go")], losses=[0.25, 0.5], costs=[0.0, 1.0])
        Episode(layer 0, state 'home', action 'go' -> layer 1, state 'road', action 'go'; loss 0.75, costs [1])
        >>> hr.Episode(view, [("home", "go")], losses=[0.25], costs=[0.0], ended_in="road")
        Episode(layer 0, state 'home', action 'go'; loss 0.25, costs [0], aborted)
    """

    __slots__ = (
        "all_costs", "all_losses", "constraint_names", "costs", "irregular", "layout", "losses", "rows", "triples",
    )  # fmt: skip
    layout: Layout
    """The layout of the world, with the labels of the view."""
    constraint_names: tuple[str, ...]
    """(m,): what the constraints are called, in the order of the costs."""
    rows: IntArray
    """(n,): the visited rows, which are pairs (state, action); n = L unless the episode was aborted."""
    triples: IntArray
    """(n,): the visited triples: the pairs together with the states that they led to; -1 where it was not seen."""
    losses: FloatArray
    """(n,): the loss of each step."""
    costs: FloatArray
    """(n, m): the costs of each step, 0 where they are unknown."""
    irregular: Irregular | None
    """How it differs from an episode that was played to its end as planned, with all costs known; None if it does
    not."""
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
        end_unseen: bool = False,
        overridden_from: int | None = None,
        unknown_costs: ArrayLike | bool | None = None,
        independent: str | None = None,
        actions: Actions | None = None,
        all_losses: ArrayLike | None = None,
        all_costs: ArrayLike | None = None,
    ) -> None:
        layout, m = view.layout, view.num_constraints
        rows = rows_of(layout, path)
        count = len(rows)
        last = _end_of(layout, count, ended_in, bool(end_unseen))
        unknown = flagged(unknown_costs, count, m)
        if unknown is not None and costs is None:
            costs = np.zeros((count, m))
        self.layout, self.constraint_names, self.rows = layout, view.constraint_names, frozen(rows)
        self.triples = frozen(_triples(layout, rows, last))
        self.losses = _unit("the loss", losses, (count,))
        self.costs = along(view, costs, count)
        if unknown is not None:
            self.costs = frozen(np.where(unknown, 0.0, self.costs))
        self.irregular = _irregular(layout, rows, overridden_from, unknown, independent, actions)
        self.all_losses = None if all_losses is None else _unit("the loss of all pairs", all_losses, (layout.num_rows,))
        self.all_costs = None if all_costs is None else _unit("the costs of all pairs", all_costs, (layout.num_rows, m))

    @classmethod
    def missing(cls, view: View, *, independent: str | None = None, actions: Actions | None = None) -> Episode:
        """Return an episode of which nothing is known.

        Args:
            view: What the learner knows of the world.
            independent: Why nothing is known, in words, if that had nothing to do with what happened. "It was never
                carried out" is not enough: the person who decided that may have foreseen its costs.
            actions: `plan.actions`, if they were to be followed.

        Examples:
            >>> import hedgerow as hr
            >>> hr.Episode.missing(hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5}))
            Episode(no steps; loss 0, costs [0], missing)
        """
        layout, none = view.layout, np.zeros(0, dtype=np.int64)
        episode = cls.trusted(view, none, none, np.zeros(0), np.zeros((0, view.num_constraints)))
        if actions is not None:
            actions = _own_actions(layout, actions)
        episode.irregular = Irregular(independent=checked_reason(independent), missing=True, actions=actions)
        return episode

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
        episode.layout, episode.constraint_names, episode.irregular = view.layout, view.constraint_names, None
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
        if self.irregular is not None:
            unknown, actions = self.irregular.unknown, self.irregular.actions
            other.irregular = self.irregular._replace(
                unknown=None if unknown is None else frozen(unknown[:, how.constraints]),
                actions=None if actions is None else actions.in_terms_of(view.layout),
            )
        if self.all_losses is not None:
            other.all_losses = frozen(how.over_rows(self.all_losses))
        if self.all_costs is not None:
            other.all_costs = frozen(how.over_rows(self.all_costs[:, how.constraints]))
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the episode as JSON can hold it: numbers, texts and lists; `from_dict` takes it back.

        Returns:
            The path as rows, `losses` and `costs`, and what else an `Episode` is made with, as far as it is needed.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"], ["road"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> hr.Episode(view, [("home", "go")], losses=[0.25], costs=[0.0], ended_in="road").to_dict()
            {'path': [1], 'losses': [0.25], 'costs': [[0.0]], 'ended_in': 'road'}
        """
        what, layout = self.irregular or Irregular(), self.layout
        given: dict[str, Any] = {
            "path": self.rows.tolist(), "losses": self.losses.tolist(), "costs": self.costs.tolist(),
        }  # fmt: skip
        if what.missing:
            given = {"missing": True}
        elif not self.complete:
            last = int(self.triples[-1]) if len(self.rows) else 0
            state = int(layout.successor[last]) if len(self.rows) else 0
            end = state if layout.state_labels is None else layout.state_labels[state]
            given |= {"end_unseen": True} if last == MISSING else {"ended_in": end}
        parts = (
            ("overridden_from", what.overridden_from), ("unknown_costs", what.unknown),
            ("independent", what.independent), ("actions", None if what.actions is None else what.actions.numbers),
            ("all_losses", self.all_losses), ("all_costs", self.all_costs),
        )  # fmt: skip
        plain = ((name, part.tolist() if isinstance(part, np.ndarray) else part) for name, part in parts)
        return given | {name: part for name, part in plain if part is not None}

    @classmethod
    def from_dict(cls, view: View, given: Mapping[str, Any]) -> Episode:
        """Return the episode that `to_dict` described, checked as any other.

        Args:
            view: What the learner knows of the world.
            given: The description.
        """
        try:
            how = dict(given)
            if "actions" in how:
                how["actions"] = Actions(view.layout, np.asarray(how["actions"]))
            if how.pop("missing", False):
                return cls.missing(view, **how)
            path, losses = np.array(how.pop("path"), dtype=np.int64), how.pop("losses")
            count, costs = len(path), np.reshape(how.pop("costs"), (len(path), view.num_constraints))
            if "unknown_costs" in how:
                how["unknown_costs"] = np.reshape(how["unknown_costs"], (count, view.num_constraints))
            return cls(view, path, losses, costs, **how)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"this describes no episode: {error!r}") from error

    @property
    def complete(self) -> bool:
        """Whether the episode has all L steps; else it was aborted, or is missing."""
        return len(self.rows) == self.layout.steps

    @property
    def overridden(self) -> bool:
        """Whether one or more of the actions were chosen by another person or program."""
        return self.irregular is not None and self.irregular.overridden_from is not None

    def __repr__(self) -> str:
        from hedgerow.display import text

        sums = f"; loss {self.losses.sum():g}, costs {text.numbers(self.costs.sum(axis=0))}{self._marks()}"
        if not len(self.rows):
            return text.line("Episode", f"no steps{sums}")
        shown, room = [self._step(0)], text.LONGEST - len(sums) - 40
        while len(shown) < len(self.rows) and len(" -> ".join([*shown, self._step(len(shown))])) <= room:
            shown.append(self._step(len(shown)))
        more = f" -> ... ({len(self.rows)} steps)" if len(shown) < len(self.rows) else ""
        return text.line("Episode", f"{' -> '.join(shown)}{more}{sums}")

    def _marks(self) -> str:
        """How it differs from an ordinary one, in words."""
        if self.irregular is None:
            return ""
        what = self.irregular
        marks = ["missing"] if what.missing else ["aborted"] if not self.complete else []
        if what.overridden_from is not None:
            marks.append(f"overridden from step {what.overridden_from}")
        if what.unknown is not None:
            marks.append(f"{int(what.unknown.sum())} costs unknown")
        if what.independent is not None:
            marks.append(f"independent: {short_repr(what.independent)}")
        return "".join(f", {words}" for words in marks)

    def _step(self, step: int) -> str:
        """A visited pair in words, with labels that fit a line."""
        from hedgerow.display import text

        layout, row = self.layout, int(self.rows[step])
        state, action = divmod(row, layout.num_actions)
        at = str(state - int(layout.state_start[step]))
        x = at if layout.state_labels is None else text.quoted(layout.state_labels[state])
        a = str(action) if layout.action_labels is None else text.quoted(layout.action_labels[action])
        return f"layer {step}, state {x}, action {a}"


def rows_of(layout: Layout, path: Any) -> IntArray:
    """The rows (n,), 0 <= n <= L, of a path: rows themselves, or pairs (state, action), see `layout.py`."""
    given = unmasked("the trajectory", path)
    rows: Any
    if not isinstance(given, np.ndarray) and isinstance(given, Sequence) and given and all(map(_is_pair, given)):
        rows = np.array([layout.row(state, action) for state, action in given], dtype=np.int64)
    else:
        rows = np.asarray(given) if not isinstance(given, str) else np.zeros((0, 0))
        if rows.ndim == 2 and rows.shape[1] == 2 and rows.dtype.kind in "iu":
            rows = np.array([layout.row(int(state), int(action)) for state, action in rows], dtype=np.int64)
    if rows.shape == (0,):
        rows = rows.astype(np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) <= layout.steps:
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
        if m and steps:
            raise InvalidInput(
                f"the costs of the {m} constraints along the trajectory are missing: shape ({steps}, {m})"
            )
        return frozen(np.zeros((steps, m)))
    array = numeric_array("the cost", costs)
    if m == 1 and array.shape == (steps,):
        array = array.reshape(steps, 1)
    return _unit("the cost", array, (steps, m))


def _is_pair(step: Any) -> bool:
    return isinstance(step, tuple | list) and len(step) == 2


def _stray(layout: Layout, row: int) -> str:
    return f"row {row} ({layout.describe_row(row)})" if 0 <= row < layout.num_rows else f"row {short_repr(row)}"


def _unit(what: str, given: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    return within(what, float_array(what, given, shape), 0.0, 1.0)


def _end_of(layout: Layout, count: int, ended_in: int | str | None, unseen: bool) -> int:
    """The state in which a path of so many steps ended, MISSING if that is not known."""
    if count == layout.steps:
        if ended_in is not None or unseen:
            raise InvalidInput("a complete episode ends in the terminal state; leave out ended_in and end_unseen")
        return layout.num_states - 1
    if unseen:
        if ended_in is not None or not count:
            raise InvalidInput(
                "end_unseen=True says that where the last step led to was not recorded; then there is a step, and no "
                "ended_in. If nothing at all is known, it is Episode.missing(view)"
            )
        return MISSING
    if ended_in is None:
        raise InvalidInput(
            f"the episode has {count} of {layout.steps} steps; if it was aborted, say where: ended_in=state, or "
            "end_unseen=True if that was not recorded"
        )
    last = layout.state(ended_in)
    if not count and last != 0:
        raise InvalidInput(f"an episode without steps cannot have ended in {layout.describe_state(last)}")
    return last


def flagged(given: ArrayLike | bool | None, count: int, m: int) -> BoolArray | None:
    """(n, m): which costs are unknown; None if none is."""
    if given is None:
        return None
    flags = np.asarray(given)
    if flags.dtype != np.bool_ or flags.shape not in ((), (count, m), *(((count,),) if m == 1 else ())):
        raise InvalidInput(
            f"unknown_costs is True, or flags of the shape ({count}, {m}), True where the cost is unknown; these "
            f"have shape {flags.shape} and type {flags.dtype}"
        )
    mask = np.broadcast_to(flags.reshape(-1, 1) if flags.ndim == 1 else flags, (count, m))
    return frozen(mask) if mask.any() else None


def checked_reason(independent: str | None) -> str | None:
    """A declared reason, which is a text with words in it, or None."""
    if independent is not None and (not isinstance(independent, str) or not independent.strip()):
        raise InvalidInput(
            f"independent is the reason, in words, why the episode is not whole, such as 'power cut'; not "
            f"{short_repr(independent)}"
        )
    return independent


def _own_actions(layout: Layout, actions: Actions) -> Actions:
    if not isinstance(actions, Actions):
        raise InvalidInput(f"actions are plan.actions, if they were followed, not {type_name(actions)}")
    try:
        return actions.in_terms_of(layout)
    except InvalidInput as error:
        raise InvalidInput(f"the actions belong to another layout than the episode: {error}") from error


def _irregular(
    layout: Layout,
    rows: IntArray,
    overridden_from: int | None,
    unknown: BoolArray | None,
    independent: str | None,
    actions: Actions | None,
) -> Irregular | None:
    """What the arguments of an episode say, if it is not an ordinary one."""
    first, count = None, len(rows)
    if overridden_from is not None:
        if isinstance(overridden_from, bool | np.bool_):
            raise InvalidInput(
                "overridden_from is the first step, counted from 0, whose action was chosen by another person or "
                "program; if it is not known which step it was, overridden_from=0"
            )
        first = whole_number("overridden_from", overridden_from, 0)
        if first >= count:
            raise InvalidInput(f"overridden_from is {first}, but the episode has the steps 0 to {count - 1}")
    if actions is not None:
        actions = _own_actions(layout, actions)
        differs = np.flatnonzero(actions.numbers[rows // layout.num_actions] != rows % layout.num_actions)
        if differs.size and (first is None or differs[0] < first):
            first = int(differs[0])
    whole = count == layout.steps and first is None and unknown is None
    if whole and independent is not None:
        raise InvalidInput("nothing of this episode is left out, so there is no reason to give; leave out independent")
    if whole:
        return None
    return Irregular(first, unknown, checked_reason(independent), False, actions)


def _triples(layout: Layout, rows: IntArray, last: int) -> IntArray:
    """The triples between the rows (n,) of a path that ends in the state `last`; MISSING at the end if that is."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    targets = np.empty(len(rows), dtype=np.int64)
    np.floor_divide(rows[1:], layout.num_actions, out=targets[:-1])
    if last == MISSING:
        first, end = layout.row_start[rows[-1]], layout.row_start[rows[-1] + 1]
        if end - first > 1:
            return np.append(_triples(layout, rows[:-1], int(rows[-1]) // layout.num_actions), MISSING)
        last = int(layout.successor[first])  # it can have led nowhere else
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


# --------------------------------------------------------------------------------------------------------------------
# What may be counted of an episode: one decision, which boxes, balls, certificates, searches, logs and ledgers read.
#
# The complete sequence of draws is that of the *played branch*, the policy that the coin chose, continued by
# hypothetical draws. Every cost and every move of it is one of
#
#     counted        observed, and reported independently of its value
#     independent    left out, and the reason is declared to have nothing to do with its value
#     unknown        prevented, left out or never observed, for whatever reason
#
#     episode                     moves                                        costs
#     aborted in x_k              its steps are counted; a last one of which   its steps are counted; every pair the
#                                 the end was not seen is unknown              branch could have visited from x_k on has
#                                                                              one unknown visit
#     overridden in x_k           counted: each is a fresh draw                before x_k counted; then dropped, and one
#                                                                              unknown visit of each pair as above
#     missing                     one unknown visit of every pair that the     the same
#                                 branch can reach
#     a cost that is not known    counted                                      that one is unknown
#     a reason is declared        those of its steps are counted               those of its steps are counted
#
# Where costs of one episode are known to be independent of each other, a cut or a person's choice, which can have seen
# earlier costs only, makes none of the others unknown; a missing cost or outcome stays unknown. docs/counting.md has
# the proofs.


COUNTED, INDEPENDENT, UNKNOWN = "counted", "independent", "unknown"


class Counting(NamedTuple):
    """The decision for one episode of n steps."""

    word: str = COUNTED
    """COUNTED if nothing is left out, or what is left out does no harm; else INDEPENDENT or UNKNOWN"""
    moves: int = 0
    """The first so many moves are counted"""
    costs: int = 0
    """The costs of the first so many steps are counted, but for those in `gaps`"""
    own: int = 0
    """The first so many steps are those of the played branch"""
    gaps: BoolArray | None = None
    """(n, m): costs that are unknown, or, if a reason is declared, left out; None for none"""
    layer: int = -1
    """The layer from which on the branch may have gone anywhere; -1 if all its visits are known"""
    states: IntArray | None = None
    """The states of that layer in which it may have been"""
    moves_lost: bool = False
    """Whether its moves from there on are unknown as well, and not only its costs"""
    last_lost: bool = False
    """Whether the move of the last step is unknown"""
    planned: bool = True
    """Whether the branch was played to the end, so that the losses are those of the plan"""
    skipped: bool = False
    """Whether sums over whole episodes leave it out, as if it had not been played"""

    @property
    def closes(self) -> bool:
        """Whether sums over whole episodes cannot go on: the path is not known, and no reason is declared."""
        return not self.planned and not self.skipped


def decide(episode: Episode, *, independent_costs: bool = False) -> Counting:
    """What is counted of an episode; `independent_costs` says that costs of one episode do not depend on each other."""
    count = len(episode.rows)
    irregular = episode.irregular
    if irregular is None:
        return Counting(COUNTED, count, count, count)
    if irregular.missing:
        return _missing(irregular)
    declared = irregular.independent is not None
    moves = count - 1 if count and episode.triples[-1] == MISSING else count
    own = count if irregular.overridden_from is None else irregular.overridden_from
    planned = own == episode.layout.steps
    open_ended = not (planned or declared or independent_costs)
    layer, states = _place(episode, own) if open_ended else (-1, None)
    last_lost = moves < count and not declared
    unknown = open_ended or last_lost or (irregular.unknown is not None and not declared)
    return Counting(
        word=INDEPENDENT if declared else UNKNOWN if unknown else COUNTED,
        moves=moves,
        costs=own if open_ended else count,
        own=own,
        gaps=irregular.unknown,
        layer=layer,
        states=states,
        last_lost=last_lost,
        planned=planned,
        skipped=declared,
    )


def _missing(irregular: Irregular) -> Counting:
    if irregular.independent is not None:
        return Counting(INDEPENDENT, planned=False, skipped=True)
    first = np.zeros(1, dtype=np.int64)
    return Counting(UNKNOWN, layer=0, states=first, moves_lost=True, planned=False)


def _place(episode: Episode, own: int) -> tuple[int, IntArray]:
    """The layer after `own` steps of the branch, and the states of it in which the episode may have been."""
    layout, count = episode.layout, len(episode.rows)
    if own < count:
        return own, episode.rows[own : own + 1] // layout.num_actions
    if not count:
        return 0, np.zeros(1, dtype=np.int64)
    last = int(episode.triples[-1])
    if last != MISSING:
        return count, layout.successor[last : last + 1].astype(np.int64)
    row = int(episode.rows[-1])
    return count, layout.successor[layout.row_start[row] : layout.row_start[row + 1]].astype(np.int64)


def filled_costs(episode: Episode, counting: Counting) -> tuple[FloatArray, BoolArray]:
    """(L, m): the costs of the branch, 1 in the place of each that was not observed on it; and which were observed.

    In sum, and cut at what an episode can cost, that is at least what the branch would have cost.
    """
    filled = np.ones((episode.layout.steps, episode.costs.shape[1]))
    observed, own = np.zeros(filled.shape, dtype=bool), counting.own
    observed[:own] = True if counting.gaps is None else ~counting.gaps[:own]
    filled[:own] = np.where(observed[:own], episode.costs[:own], 1.0)
    return filled, observed


# --------------------------------------------------------------------------------------------------------------------
# What cannot happen in a world of which something is known: such a record is refused before anything is learnt.
#
#     a cost other than 0 where the mean cost is known to be 0, or other than 1 where it is known to be 1
#     a move whose probability is known to be 0
#     costs of one episode that sum to more than `max_episode_cost`
#
# Costs lie in [0, 1], so a mean of 0 or 1 leaves no choice; any other mean allows every value, and only many of them
# can refute it (`confidence/premises.py`). An impossible record shows that what was declared is false, or that the
# record is wrong. Either way nothing can be learnt from it.


ADVICE = "one of the two is wrong: correct the record, or build the learner on a view that does not declare this"


def refuse_impossible(
    view: View, rows: IntArray, triples: IntArray, costs: FloatArray, starts: IntArray | None = None
) -> None:
    """Refuse steps that what `view` knows rules out.

    Args:
        view: What is known.
        rows: (n,) the visited pairs.
        triples: (n,) the moves; negative where it is not known what a step led to.
        costs: (n, m) the costs; NaN where they are not known.
        starts: (episodes + 1,) where each episode begins among the steps; None for a single one.

    Raises:
        InvalidInput: If a step is impossible; the message names episode, step and place.
    """
    if not view.knowledge:
        return
    firsts = np.array([0, len(rows)]) if starts is None else starts
    problem = _wrong_cost(view, rows, costs) or _wrong_move(view, triples) or _wrong_sum(view, costs, firsts)
    if problem is None:
        return
    step, words = problem
    episode = int(np.searchsorted(firsts, step, side="right")) - 1
    where = f"step {step - int(firsts[episode])}" + ("" if starts is None else f" of episode {episode}")
    raise InvalidInput(f"{where}: {words}; {ADVICE}")


def _wrong_cost(view: View, rows: IntArray, costs: FloatArray) -> tuple[int, str] | None:
    known = view.knowledge.costs
    if known is None:
        return None
    told = known.T[rows]
    sure = (told == 0.0) | (told == 1.0)
    wrong = np.argwhere(sure & (np.abs(costs - told) > TOL_TRUE))  # not so where either is NaN
    if not len(wrong):
        return None
    k, i = (int(place) for place in wrong[0])
    place, name = view.layout.describe_row(int(rows[k])), view.constraint_names[i]
    return k, f"{name!r} costs {float(costs[k, i]):g} in {place}, where it is known to cost {told[k, i]:g}"


def _wrong_move(view: View, triples: IntArray) -> tuple[int, str] | None:
    known = view.knowledge.transitions
    if known is None:
        return None
    wrong = np.flatnonzero((triples >= 0) & (known[triples] == 0.0))
    if not len(wrong):
        return None
    k = int(wrong[0])
    return k, f"{view.layout.describe_triple(int(triples[k]))} is known to have probability 0"


def _wrong_sum(view: View, costs: FloatArray, starts: IntArray) -> tuple[int, str] | None:
    known = view.knowledge.max_episode_cost
    if known is None or not len(costs):
        return None
    episodes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    paid = np.nan_to_num(costs)
    sums = np.column_stack([np.bincount(episodes, column, len(starts) - 1) for column in paid.T])
    wrong = np.argwhere(sums > known + TOL_TRUE * (1.0 + known))
    if not len(wrong):
        return None
    episode, i = (int(place) for place in wrong[0])
    name = view.constraint_names[i]
    last = int(starts[episode + 1]) - 1
    return last, f"the episode costs {sums[episode, i]:g} of {name!r}, and is known to cost at most {known[i]:g}"


def known_costs(episode: Episode) -> FloatArray:
    """(n, m): the costs of an episode, NaN where they are unknown."""
    unknown = None if episode.irregular is None else episode.irregular.unknown
    return episode.costs if unknown is None else np.where(unknown, np.nan, episode.costs)
