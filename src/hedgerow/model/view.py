"""What a learner may know of a world: its layout, the thresholds, names, and what else is known beforehand.

A view is all that a learner is built on; the transitions and the costs of the world are not in it, unless they are
known and declared (`knowing`, `knowledge.py`). It has a file of its own, for those who have no simulator.

The *identity* of a view is its layout, the labels of states and actions, and the names of its constraints. Thresholds
and knowledge are no part of it. Two identities are

    equal           rows, triples and costs mean the same in both
    reordered       the same names in another order: states within their layers, actions, constraints. What was written
                    in the terms of one is translated by name into those of the other
    different       anything else: refused

An axis without labels is known by positions alone, so it agrees only with another one without labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, distinct_names, float_array, numeric_array, type_name, within
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.model.knowledge import ARRAYS, NOTHING, Knowledge, checked_knowledge, rows_by_name
from hedgerow.model.layout import MAX_TRIPLES, Layout
from hedgerow.storage import datafile

MISSING = -1
"""In the place of a triple: it is not known what a step led to."""
MOST_NAMED = 3
"""Names that a message shows of each side."""
Names = tuple[str, ...]
Pair = tuple[int | str, int | str]
UNFIT = (InvalidInput, TypeError, ValueError, AttributeError, ArithmeticError, LookupError, MemoryError)
"""What is raised where well-formed arrays and metadata do not describe what they should."""
META = ("num_actions", "constraint_names", "state_labels", "action_labels")
KNOWN = "known."
"""Before the names of arrays of knowledge."""
TYPES = {
    "layer_sizes": "int64", "thresholds": "float64", "row_start": "int64", "successor": "int32",
    **{f"{KNOWN}{name}": dtype for name, dtype in ARRAYS.items()},
}  # fmt: skip


class Stored:
    """What has a data file of its own, `view.npz` or `cmdp.npz`: the content is metadata and arrays."""

    file_kind: ClassVar[str]
    """What its files hold, in a word."""
    file_version: ClassVar[int] = 1
    """The schema of its files."""
    called: ClassVar[str]
    """What messages call it."""

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Metadata and arrays: all that it is."""
        raise NotImplementedError

    @classmethod
    def _from_content(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        raise NotImplementedError

    @property
    def content_hash(self) -> str:
        """SHA-256 of the content, not of its file: equal exactly for equal content, on every machine."""
        return datafile.content_hash(self.file_kind, self.file_version, *self._content())

    def to_bytes(self) -> bytes:
        """Return the content of the file that `save` writes."""
        return datafile.pack(self.file_kind, self.file_version, *self._content())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one data file, atomically.

        Args:
            path: The file; `.npz` is the usual ending.
            overwrite: Whether an existing file may be replaced.

        Raises:
            InvalidInput: If the file exists and `overwrite` is False, or if its folder does not exist.
        """
        datafile.save(path, self.to_bytes(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote to `path`; `hr.load` does the same for every kind of file.

        Raises:
            FileFormatError: If the file is damaged or holds something else.
        """
        return cls.from_file(datafile.load(path, cls.file_kind), str(path))

    @classmethod
    def from_bytes(cls, blob: bytes, source: str = "data") -> Self:
        """Read the bytes `blob` of a file; `source` names the data in error messages."""
        return cls.from_file(datafile.unpack(blob, cls.file_kind, source), source)

    @classmethod
    def from_file(cls, file: datafile.DataFile, source: str = "data") -> Self:
        """Read an unpacked data file `file`; `source` names the data in error messages."""
        if file.version != cls.file_version:
            raise FileFormatError(
                f"{source} has schema version {file.version}; this release reads version {cls.file_version}"
            )
        try:
            return cls._from_content(file.meta, dict(file.arrays))
        except KeyError as error:
            raise FileFormatError(f"{source} lacks the entry {error}") from error
        except UNFIT as error:
            what = f"{source} does not describe a {cls.called}"
            raise FileFormatError(f"{what}: {error or 'no memory for it'}") from error


@dataclass(frozen=True, eq=False, repr=False)
class View(Stored):
    """What a learner may know of a world: the layout, the thresholds, the names, and declared knowledge.

    Every learner is built on a view. `world.view()` makes one from a world; `View.of` makes one from names if there is
    no simulator. Transitions and costs are not in it, unless they are known and declared with `knowing`.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View(hr.Layout((1, 2, 1), num_actions=2), thresholds=[0.5], constraint_names=["delay"])
        >>> view.num_constraints, view.thresholds.tolist()
        (1, [0.5])
    """

    file_kind = called = "view"
    layout: Layout
    """The layers, the actions, and which states can follow which."""
    thresholds: FloatArray
    """(m,): the most that an episode may cost in expectation, each in [0, L]. The paper calls them alpha."""
    constraint_names: tuple[str, ...]
    """(m,): what the constraints are called."""
    state_labels: tuple[str, ...] | None = None
    """(num_states,): the names of the states; None takes those of the layout, if it has any."""
    action_labels: tuple[str, ...] | None = None
    """(num_actions,): the names of the actions; None takes those of the layout, if it has any."""
    knowledge: Knowledge = NOTHING
    """What else is known beforehand; nothing unless it was declared."""

    def __post_init__(self) -> None:
        layout = self.layout
        if not isinstance(layout, Layout):
            raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
        m = np.size(self.thresholds)
        states = layout.state_labels if self.state_labels is None else self.state_labels
        actions = layout.action_labels if self.action_labels is None else self.action_labels
        layout = layout.labelled(states, actions)
        names = distinct_names("constraint names", self.constraint_names, m)
        checked: dict[str, Any] = {
            "layout": layout,
            "thresholds": checked_thresholds(layout, self.thresholds, m),
            "constraint_names": names,
            "state_labels": layout.state_labels,
            "action_labels": layout.action_labels,
            "knowledge": checked_knowledge(layout, names, self.knowledge),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        from hedgerow.display import text

        pairs = zip(self.constraint_names, self.thresholds, strict=True)
        limits = text.listed((f"{text.quoted(name)}: {value:g}" for name, value in pairs), 3, self.num_constraints)
        known = repr(self.knowledge) if self.knowledge else ""
        return text.line("View", repr(self.layout), f"thresholds={{{limits}}}", known)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import view_html

        return view_html(self)

    @property
    def num_constraints(self) -> int:
        """The number m of constraints."""
        return len(self.thresholds)

    @property
    def ceilings(self) -> FloatArray:
        """(m,): the most that an episode can cost: the number of steps L, or less where that is known."""
        known = self.knowledge.max_episode_cost
        return np.full(self.num_constraints, float(self.layout.steps)) if known is None else known

    @property
    def binding(self) -> IntArray:
        """The constraints that can be violated: an episode can cost more than their thresholds.

        The array holds their numbers, counted from 0.
        """
        return np.flatnonzero(self.thresholds < self.ceilings).astype(np.int64)

    def knowing(
        self,
        *,
        same_transitions: ArrayLike | None = None,
        same_costs: ArrayLike | None = None,
        independent_costs: bool | None = None,
        costs_drawn: str | None = None,
        transitions: ArrayLike | None = None,
        costs: ArrayLike | Mapping[str, Mapping[Pair, float]] | None = None,
        zero_costs: ArrayLike | Sequence[Pair] | Mapping[str, Sequence[Pair]] | None = None,
        max_episode_cost: ArrayLike | Mapping[str, float] | None = None,
    ) -> View:
        """Declare knowledge: return the same view with more of it.

        What is given replaces what was known so far, piece by piece; None keeps it. Learners believe all of it and test
        what they can: where it is false, their promises are void. Pairs (state, action) are *tied* if they have the
        same transition probabilities, or the same distribution of costs.

        Args:
            same_transitions: (num_rows,) whole numbers, equal for pairs with the same transition probabilities, -1 for
                a pair that is not tied.
            same_costs: (num_rows,) whole numbers, equal for pairs with the same distribution of costs, -1 as above.
            independent_costs: Whether costs of one episode are independent of each other.
            costs_drawn: "apart" if the costs of an episode are drawn without regard to its moves; "step" if cost and
                next state of a step are one fresh draw given its state and action, as when a cost is computed from the
                next state (this implies `independent_costs`); "unknown" if neither is known.
            transitions: (num_triples,) probabilities of next states, with NaN in all triples of a pair that is
                not known.
            costs: (m, num_rows) mean costs, or (num_rows,) for one constraint; NaN where not known. Or by name:
                {constraint: {(state, action): mean}}.
            zero_costs: (num_rows,) or (m, num_rows) booleans: True where the costs are surely 0. Or by name: a list of
                pairs (state, action) in which no constraint costs anything, or {constraint: such a list}. A number in
                a pair is a label where any label of that axis looks like a number, else a position.
            max_episode_cost: (m,) numbers, or a mapping {constraint name: number}: the most that an episode can cost.

        Returns:
            A new view.

        Raises:
            InvalidInput: If a shape is wrong, or if two pieces contradict each other.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> known = view.knowing(zero_costs=[True, False, True, True, True, True])
            >>> known.knowledge.described(view.layout, view.constraint_names)
            ["'delay': the mean costs of 5 pairs are known, 5 of them as 0"]
            >>> named = view.knowing(costs={"delay": {("full", "go"): 0.25}}, zero_costs=[("home", "wait")])
            >>> named.knowledge.costs.tolist()
            [[0.0, nan, nan, nan, nan, 0.25]]
        """
        parts = {name: getattr(self.knowledge, name) for name in ARRAYS}
        given = {
            "same_transitions": same_transitions,
            "same_costs": same_costs,
            "independent_costs": independent_costs,
            "costs_drawn": costs_drawn,
            "transitions": transitions,
            "costs": costs,
            "max_episode_cost": max_episode_cost,
        }
        parts |= {name: value for name, value in given.items() if value is not None}
        if zero_costs is not None:
            parts["costs"] = self._with_zero_costs(parts["costs"], zero_costs)
        known = checked_knowledge(self.layout, self.constraint_names, parts)
        return View(self.layout, self.thresholds, self.constraint_names, knowledge=known)

    def _with_zero_costs(self, costs: Any, zero: Any) -> FloatArray:
        shape = (self.num_constraints, self.layout.num_rows)
        pairs = isinstance(zero, list | tuple) and (not zero or any(isinstance(pair, tuple) for pair in zero))
        if isinstance(zero, Mapping) or pairs:
            zero = rows_by_name(self.layout, self.constraint_names, zero)
        mask = np.asarray(zero)
        if mask.dtype != bool or mask.shape not in (shape, shape[1:]):
            raise InvalidInput(
                f"zero_costs are True or False for each of the {shape[1]} pairs, or of shape {shape}; these have shape "
                f"{mask.shape} and type {mask.dtype}"
            )
        given = checked_knowledge(self.layout, self.constraint_names, {"costs": costs}).costs
        known = np.full(shape, np.nan) if given is None else given.copy()
        known[np.broadcast_to(mask, shape)] = 0.0
        return known

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return view_meta(self), view_arrays(self)

    @classmethod
    def _from_content(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> View:
        refuse_unexpected("metadata", meta, META)
        return view_from(meta, arrays)

    @classmethod
    def of(
        cls,
        states: Sequence[Sequence[str]],
        actions: Sequence[str],
        thresholds: Mapping[str, float],
        *,
        successors: Mapping[tuple[str, str] | str, Sequence[str]] | None = None,
        end: str = "end",
    ) -> View:
        """Make a view from names, for a world without a simulator.

        Args:
            states: The names of the states of each layer. The first layer has one state; the terminal state is added.
            actions: The names of the actions.
            thresholds: A mapping {constraint name: the most that an episode may cost in expectation}.
            successors: A mapping from a state, or from a pair (state, action), to the names of the states that can
                follow. Pairs that it does not name can lead to every state of the next layer. None names none. A number
                in it is a label where any label of that axis looks like a number, else a position.
            end: The name of the terminal state.

        Returns:
            The view.

        Raises:
            InvalidInput: If a name is unknown or used twice, or if a successor is not in the next layer.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> view.layout.describe_row(3), view.constraint_names
            ("layer 1, state 'empty', action 'go'", ('delay',))
        """
        if not isinstance(thresholds, Mapping):
            raise InvalidInput(f"thresholds are a mapping {{name: value}}, not {type_name(thresholds)}")
        if isinstance(states, str) or any(isinstance(layer, str) for layer in states):
            raise InvalidInput("states are one list of names per layer: [['start'], ['left', 'right']]")
        layers = [tuple(layer) for layer in states]
        names = [name for layer in layers for name in layer]
        sizes, labels = [*(len(layer) for layer in layers), 1], (*names, end)
        layout = Layout(sizes, len(actions)).labelled(labels, actions)
        if successors:
            layout = _with_successors(layout, successors).labelled(labels, actions)
        return cls(layout, np.array(list(thresholds.values()), dtype=np.float64), tuple(thresholds))


def _with_successors(layout: Layout, successors: Mapping[tuple[str, str] | str, Sequence[str]]) -> Layout:
    """The layout in which the named states and pairs lead to the named successors only."""
    support = [block != 0.0 for block in layout.split_triples(np.ones(layout.num_triples))]
    for key, targets in successors.items():
        state = layout.state(key[0] if isinstance(key, tuple) else key)
        k = int(layout.layer_of_state[state])
        if k == layout.steps or isinstance(targets, str):
            raise InvalidInput(f"the successors of {key!r} must be a list of names; the terminal state has none")
        local, first = state - int(layout.state_start[k]), int(layout.state_start[k + 1])
        chosen = layout.action(key[1]) if isinstance(key, tuple) else slice(None)
        allowed = np.zeros(layout.layer_sizes[k + 1], dtype=bool)
        for name in targets:
            target = layout.state(name)
            if layout.layer_of_state[target] != k + 1:
                raise InvalidInput(f"{key!r} cannot lead to {name!r}: it is not in layer {k + 1}")
            allowed[target - first] = True
        support[k][local, chosen] = allowed
    return Layout.from_support(support)


# Files ----------------------------------------------------------------------------------------------------------------


def refuse_unexpected(what: str, entries: Iterable[str], known: Iterable[str] = ()) -> None:
    """Refuse a file with entries that it should not have."""
    unexpected = sorted(set(entries) - set(known))
    if unexpected:
        raise InvalidInput(f"unexpected {what} {unexpected}")


def view_meta(view: View | Any) -> dict[str, Any]:
    """The entries of `META`, of a view or a world."""
    return {"num_actions": view.layout.num_actions} | {name: getattr(view, name) for name in META[1:]}


def view_arrays(view: View | Any, *, support: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of `TYPES`, of a view or a world; a full support is left out unless it is asked for."""
    layout = view.layout
    arrays: dict[str, NDArray[Any]] = {
        "layer_sizes": np.array(layout.layer_sizes, dtype=np.int64),
        "thresholds": view.thresholds,
    }
    if support or not layout.is_full:
        arrays |= {"row_start": layout.row_start, "successor": layout.successor}
    return arrays | {f"{KNOWN}{name}": array for name, array in view.knowledge.arrays().items()}


def view_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], max_triples: int = MAX_TRIPLES) -> View:
    """What `view_meta` and `view_arrays` described; a few bytes must not ask for more than `max_triples`."""
    for name, array in arrays.items():
        flat = array.ndim == 1 or name == f"{KNOWN}costs"
        if name not in TYPES or array.dtype != TYPES[name] or not flat:
            raise InvalidInput(f"view.{name} is unexpected, or not a list of {TYPES.get(name, 'anything')}")
    layout = Layout(
        arrays["layer_sizes"].tolist(),
        meta["num_actions"],
        row_start=arrays.get("row_start"),
        successor=arrays.get("successor"),
        max_triples=max_triples,
    )
    layout = layout.labelled(meta["state_labels"], meta["action_labels"])
    names = distinct_names("constraint names", meta["constraint_names"], arrays["thresholds"].size)
    parts = {name.removeprefix(KNOWN): array for name, array in arrays.items() if name.startswith(KNOWN)}
    return View(layout, arrays["thresholds"], names, knowledge=checked_knowledge(layout, names, parts))


def checked_thresholds(layout: Layout, thresholds: ArrayLike, m: int) -> FloatArray:
    numbers = numeric_array("the thresholds", thresholds)
    if numbers.ndim == 0:
        raise InvalidInput(f"thresholds must be a sequence with one number per constraint ({m}), not {thresholds!r}")
    array = float_array("the threshold", numbers, (m,))
    # alpha in [0, L]^m (paper, section 2): a cost of an episode lies in [0, L], so a larger one could not bind.
    return within("the threshold", array, 0.0, float(layout.steps))


# The same world in other terms ----------------------------------------------------------------------------------------


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

    >>> ours = Layout((1, 1), 2).labelled(None, ["wait", "go"])
    >>> theirs = Layout((1, 1), 2).labelled(None, ["go", "wait"])
    >>> between(theirs, ("delay",), ours, ("delay",)).rows.tolist()
    [1, 0]
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
    """The action probabilities (num_rows,) of a policy on another layout, by name; that of another world is refused."""
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
