"""What a learner may know of a world: its layout, the thresholds, names, and what else is known beforehand.

A view is all that a learner is built on; the transitions and the costs of the world are not in it, unless somebody
knows them and says so (`knowing`, `knowledge.py`). It has a file of its own, for those who have no simulator.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, distinct_names, float_array, numeric_array, type_name, within
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.model.knowledge import ARRAYS, NOTHING, Knowledge, checked_knowledge, rows_by_name
from hedgerow.model.layout import MAX_TRIPLES, Layout
from hedgerow.storage import datafile

Pair = tuple[int | str, int | str]
FILE_KIND = "view"
FILE_VERSION = 1
UNFIT = (InvalidInput, TypeError, ValueError, AttributeError, ArithmeticError, LookupError, MemoryError)
"""What is raised where well-formed arrays and metadata do not describe what they should."""
META = ("num_actions", "constraint_names", "state_labels", "action_labels")
KNOWN = "known."
"""Before the names of arrays of knowledge."""
TYPES = {
    "layer_sizes": "int64", "thresholds": "float64", "row_start": "int64", "successor": "int32",
    **{f"{KNOWN}{name}": dtype for name, dtype in ARRAYS.items()},
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What a learner may know of a world: the layout, the thresholds, the names, and declared knowledge.

    Every learner is built on a view. `world.view()` makes one from a world; `View.of` makes one from names if there is
    no simulator. Transitions and costs are not in it, unless somebody knows them and declares them with `knowing`.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View(hr.Layout((1, 2, 1), num_actions=2), thresholds=[0.5], constraint_names=["delay"])
        >>> view.num_constraints, view.thresholds.tolist()
        (1, [0.5])
    """

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
        known = self.knowledge.most_costs
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
        most_costs: ArrayLike | Mapping[str, float] | None = None,
    ) -> View:
        """Declare knowledge: return the same view with more of it.

        What is given replaces what was known so far, piece by piece; None keeps it. Learners believe all of it and test
        what they can: where it is false, their promises are void. Rows *share a law* if they have the same
        transition probabilities, or the same distribution of costs.

        Args:
            same_transitions: (num_rows,) whole numbers, equal for rows that share a transition law, -1 for a row that
                shares with none.
            same_costs: (num_rows,) whole numbers, equal for rows that share the law of their costs, -1 as above.
            independent_costs: Whether costs of one episode are independent of each other.
            costs_drawn: "apart" if the costs of an episode are drawn without regard to its moves; "step" if cost and
                next state of a step are one fresh draw given its state and action, as when a cost is computed from the
                next state (this implies `independent_costs`); "unknown" if neither is known.
            transitions: (num_triples,) probabilities of next states, with NaN in all triples of a row that is not
                known.
            costs: (m, num_rows) mean costs, or (num_rows,) for one constraint; NaN where not known. Or by name:
                {constraint: {(state, action): mean}}.
            zero_costs: (num_rows,) or (m, num_rows) booleans: True where the costs are surely 0. Or by name: a list of
                pairs (state, action) in which no constraint costs anything, or {constraint: such a list}. A number in
                a pair is a label where any label of that axis looks like a number, else a position.
            most_costs: (m,) numbers, or a mapping {constraint name: number}: the most that an episode can cost.

        Returns:
            A new view.

        Raises:
            InvalidInput: If a shape is wrong, or if two pieces contradict each other.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> known = view.knowing(zero_costs=[True, False, True, True, True, True])
            >>> known.knowledge.described(view.layout, view.constraint_names)
            ["'delay': the mean costs of 5 rows are known, 5 of them as 0"]
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
            "most_costs": most_costs,
        }
        parts |= {name: value for name, value in given.items() if value is not None}
        if zero_costs is not None:
            parts["costs"] = self._with_zero_costs(parts["costs"], zero_costs)
        known = checked_knowledge(self.layout, self.constraint_names, parts)
        return View(self.layout, self.thresholds, self.constraint_names, knowledge=known)

    def _with_zero_costs(self, costs: Any, zero: Any) -> FloatArray:
        shape = (self.num_constraints, self.layout.num_rows)
        if isinstance(zero, Mapping) or (isinstance(zero, Sequence) and any(isinstance(pair, tuple) for pair in zero)):
            zero = rows_by_name(self.layout, self.constraint_names, zero)
        mask = np.asarray(zero)
        if mask.dtype != bool or mask.shape not in (shape, shape[1:]):
            raise InvalidInput(
                f"zero_costs are True or False for each of the {shape[1]} rows, or of shape {shape}; these have shape "
                f"{mask.shape} and type {mask.dtype}"
            )
        given = checked_knowledge(self.layout, self.constraint_names, {"costs": costs}).costs
        known = np.full(shape, np.nan) if given is None else given.copy()
        known[np.broadcast_to(mask, shape)] = 0.0
        return known

    @property
    def content_hash(self) -> str:
        """SHA-256 of everything in it: equal exactly for equal views, on every machine."""
        return datafile.content_hash(FILE_KIND, FILE_VERSION, view_meta(self), view_arrays(self))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the view to one data file, atomically; `hedgerow check` reads it and needs no simulator.

        Args:
            path: The file; `.npz` is the usual ending.
            overwrite: Whether an existing file may be replaced.
        """
        blob = datafile.pack(FILE_KIND, FILE_VERSION, view_meta(self), view_arrays(self))
        datafile.save(path, blob, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> View:
        """Read the view that `save` wrote to `path`.

        Raises:
            FileFormatError: If the file is damaged or is not a view.
        """
        return cls.from_file(datafile.load(path, FILE_KIND), str(path))

    @classmethod
    def from_file(cls, file: datafile.DataFile, source: str = "data") -> View:
        """Read a view from an unpacked data file `file`; `source` names the data in error messages."""
        if file.version != FILE_VERSION:
            raise FileFormatError(
                f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}"
            )
        unexpected = sorted(set(file.meta) - set(META))
        try:
            if unexpected:
                raise InvalidInput(f"unexpected metadata {unexpected}")
            return view_from(file.meta, file.arrays)
        except KeyError as error:
            raise FileFormatError(f"{source} lacks the entry {error}") from error
        except UNFIT as error:
            raise FileFormatError(f"{source} does not describe a view: {error or 'no memory for it'}") from error

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


def view_meta(view: View) -> dict[str, Any]:
    """The entries of `META`."""
    return {
        "num_actions": view.layout.num_actions,
        "constraint_names": view.constraint_names,
        "state_labels": view.state_labels,
        "action_labels": view.action_labels,
    }


def view_arrays(view: View, *, support: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of `TYPES`; a full support is left out unless it is asked for, and what is not known as well."""
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
