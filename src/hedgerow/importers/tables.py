"""A world from a table with one line per (state, action, next state): a CSV file, a data frame, plain columns.

    state    action  next_state  probability  loss  energy
    morning  slow    late        0.9          0.1   0.2
    morning  slow    early       0.1          0.1   0.2
    ...

Layers are found by following the lines: the first state is the one that no line leads to, a state belongs to the layer
of its distance from there, and the state without lines of its own ends the episode. With `steps` states may be visited
again and again: the table is one process, which is unrolled over that many steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from hedgerow.checks import FloatArray, did_you_mean, frozen, short_repr, type_name, whole_number
from hedgerow.errors import InvalidInput
from hedgerow.importers.columnar import open_table
from hedgerow.importers.unroll import COST_KINDS, Unrolled, unroll
from hedgerow.model.cmdp import CMDP
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

TABLE = "table of transitions"
PLACES = ("state", "action", "next_state")
KEPT = (*PLACES, "probability", "loss")
"""Columns with a meaning of their own"""
REWARDS = ("reward", "rewards")
"""Columns of people who maximise"""
TOL_SUM = 1e-9
"""Probabilities of a pair may miss 1 by this, and are then divided by their sum."""

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class TableWorld:
    """A world that was read from a table: `hr.simulate` takes it like a world of the catalogue.

    `hr.from_table` makes one.

    Examples:
        >>> import hedgerow as hr
        >>> lines = {
        ...     "state": ["home", "home"],
        ...     "action": ["walk", "drive"],
        ...     "next_state": ["done", "done"],
        ...     "loss": [0.75, 0.25],
        ...     "fuel": [0.0, 0.5],
        ... }
        >>> hr.from_table(lines, thresholds={"fuel": 0.25}).loss.tolist()
        [0.75, 0.25]
    """

    cmdp: CMDP
    """The world itself."""
    loss: FloatArray | None
    """(rows,): the loss of the column `loss`, None without one."""
    unrolled: Unrolled | None = None
    """With `steps`: where its states come from, and how a path of the original process becomes an episode."""

    def view(self) -> View:
        """What a learner may know of this world."""
        return self.cmdp.view()

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("TableWorld", repr(self.cmdp))

    def _repr_html_(self) -> str:
        from hedgerow.display.views import cmdp_html

        return cmdp_html(self.cmdp)


class _Lines(NamedTuple):
    """The table as Python values, a list per column."""

    places: list[tuple[str, str, str]]
    probability: list[float]
    loss: list[float] | None
    costs: dict[str, list[float]]


def from_table(
    table: Any,
    thresholds: Mapping[str, float],
    *,
    steps: int | None = None,
    start: str | int | None = None,
    cost_kind: Literal["bernoulli", "deterministic"] = "bernoulli",
    columns: Mapping[str, str] | None = None,
) -> TableWorld:
    """Read a world from a table with one line per (state, action, next state).

    Args:
        table: The path of a CSV, Parquet or Arrow file, a table of pandas, polars or pyarrow, or a mapping
            {column: values}. Columns: `state`, `action`, `next_state` (names, or whole numbers, which become the names
            "0", "1", ...; in a CSV file, names as they are written); `probability` (1 if the
            column is missing); `loss`, if the world has one; and a column of mean costs for each constraint. Losses
            and costs lie in [0, 1], belong to the pair (state, action) and are repeated in all of its lines. Other
            columns are not read. Every state that has lines has all actions.
        thresholds: The most that an episode may cost in expectation, by the name of the constraint, which is the name
            of its column.
        steps: The number of steps of an episode, if states may be visited again; without it every state has its
            place in the order of an episode.
        start: The first state, by its name in the table. Needed with `steps`; without it, the state that no line leads
            to.
        cost_kind: Whether costs are drawn as 0 or 1 with these means, or always equal to them.
        columns: How your table calls a column, such as `{"next_state": "to"}`.

    Returns:
        The world: its CMDP, its loss (rows,) and its view.

    Raises:
        InvalidInput: If the table does not describe a world. The message names the line, state or action.

    Examples:
        >>> import hedgerow as hr
        >>> lines = {
        ...     "state": ["home", "home", "shop", "shop"],
        ...     "action": ["walk", "drive", "walk", "drive"],
        ...     "next_state": ["shop", "shop", "done", "done"],
        ...     "loss": [0.8, 0.1, 0.8, 0.1],
        ...     "fuel": [0.0, 0.5, 0.0, 0.5],
        ... }
        >>> world = hr.from_table(lines, thresholds={"fuel": 0.6})
        >>> world.view().layout
        Layout(layers=(1, 1, 1), actions=2, full support)
        >>> round(hr.offline.optimum(world.cmdp, world.loss).value, 3)
        0.76
    """
    if not isinstance(thresholds, Mapping):
        raise InvalidInput(f"thresholds are a mapping {{constraint: value}}, not {type_name(thresholds)}")
    for name in thresholds:
        if not isinstance(name, str) or name in KEPT:
            raise InvalidInput(
                f"a constraint is called {short_repr(name)}; it needs a name, and none of {', '.join(KEPT)}"
            )
    if not isinstance(cost_kind, str) or cost_kind not in COST_KINDS:
        raise InvalidInput(f"cost_kind is {short_repr(cost_kind)}; choose one of {', '.join(COST_KINDS)}")
    if columns is not None and not isinstance(columns, Mapping):
        raise InvalidInput(f"columns are a mapping {{name: your name}}, not {type_name(columns)}")
    process, first = _Process(_read(table, tuple(thresholds), columns)), None if start is None else str(start)
    if steps is not None:
        return process.unrolled(whole_number("steps", steps, 1), first, thresholds, cost_kind)
    return process.layered(first, thresholds, cost_kind)


def _read(table: Any, constraints: Sequence[str], columns: Mapping[str, str] | None) -> _Lines:
    known = (*KEPT, *constraints)
    own = dict(columns or {})
    source = open_table(table, TABLE, [str(own.get(name, name)) for name in PLACES])
    for name in own:
        if name not in known:
            raise InvalidInput(
                f"columns renames {short_repr(name)}, which is no column of a world{did_you_mean(str(name), known)}"
            )
    wanted = {name: str(own.get(name, name)) for name in known}
    for name, called in wanted.items():
        if called not in source.names and (name not in ("probability", "loss") or name in own):
            free = [each for each in source.names if each not in wanted.values()]
            raise InvalidInput(f"the {TABLE} has no column {called!r}{_otherwise(name, called, free, source.names)}")
    rewards = [each for each in source.names if each.lower() in REWARDS and each not in constraints]
    if rewards and wanted["loss"] not in source.names:
        raise InvalidInput(
            f"the {TABLE} has a column {rewards[0]!r} and no 'loss': losses in [0, 1] are minimised. Add a column loss "
            "= (best - reward) / (best - worst) with the largest and the smallest reward that is possible, or leave "
            f"{rewards[0]!r} out if the world is to have no loss of its own"
        )
    there = {name: called for name, called in wanted.items() if called in source.names}
    read = source.read(list(dict.fromkeys(there.values())))
    values = {name: read.column(called).to_pylist() for name, called in there.items()}
    if not values["state"]:
        raise InvalidInput(f"the {TABLE} is empty; it needs one line per (state, action, next state)")
    texts = [_names(name, values[name]) for name in PLACES]
    probability = _numbers("probability", values.get("probability") or [1.0] * len(texts[0]))
    loss = _numbers("loss", values["loss"]) if "loss" in values else None
    costs = {name: _numbers(name, values[name]) for name in constraints}
    return _Lines(list(zip(*texts, strict=True)), probability, loss, costs)


def _otherwise(name: str, called: str, free: Sequence[str], columns: Sequence[str]) -> str:
    """The end of a message about a missing column: which of those that are still free it may be, and how to say so."""
    part = [each for each in free if min(len(each), len(called)) > 2 and (each in called or called in each)]
    own = part[0] if len(part) == 1 else None
    near = f"; is it {own!r}?" if own else did_you_mean(called, columns).replace("known:", "its columns are")
    return f"{near} If yours is called otherwise, say so: columns={{{name!r}: {repr(own) if own else '...'}}}"


def _names(column: str, values: list[Any]) -> list[str]:
    for line, value in enumerate(values):
        if value is None or value == "":
            raise InvalidInput(f"line {line} of the {TABLE} does not say its {column!r}")
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise InvalidInput(f"the {column!r} of line {line} is {short_repr(value)}; give names or whole numbers")
    return [str(value) for value in values]


def _numbers(column: str, values: list[Any]) -> list[float]:
    for line, value in enumerate(values):
        if not isinstance(value, int | float | Decimal) or not 0.0 <= float(value) <= 1.0:
            advice = "" if column == "probability" else ": divide losses and costs by the largest that is possible"
            raise InvalidInput(
                f"the {column!r} of line {line} is {short_repr(value)}; it must be a number in [0, 1]{advice}"
            )
    return [float(value) for value in values]


class _Process:
    """States, actions and what follows: the table without its lines."""

    def __init__(self, lines: _Lines) -> None:
        self.actions = list(dict.fromkeys(action for _, action, _ in lines.places))
        self.states = list(dict.fromkeys(state for state, _, _ in lines.places))
        self.moves: dict[Pair, dict[str, float]] = {}
        for (state, action, target), probability in zip(lines.places, lines.probability, strict=True):
            row = self.moves.setdefault((state, action), {})
            if target in row:
                raise InvalidInput(f"{state!r}, {action!r}, {target!r} stands in two lines of the {TABLE}")
            row[target] = probability
        self._check_pairs()
        self.loss = None if lines.loss is None else self._of_pairs("loss", lines, lines.loss)
        self.costs = {name: self._of_pairs(name, lines, values) for name, values in lines.costs.items()}

    def _check_pairs(self) -> None:
        for state in self.states:
            missing = [action for action in self.actions if (state, action) not in self.moves]
            if missing:
                raise InvalidInput(
                    f"the {TABLE} has no line for {missing[0]!r} in {state!r}; every state needs every action: repeat "
                    "the lines of the action that it stands for"
                )
        for (state, action), row in self.moves.items():
            total = sum(row.values())
            if abs(total - 1.0) > TOL_SUM:
                raise InvalidInput(f"the probabilities of {action!r} in {state!r} sum to {total:.9g}, not 1")
            self.moves[state, action] = {target: value / total for target, value in row.items() if value > 0.0}

    def _of_pairs(self, column: str, lines: _Lines, values: list[float]) -> dict[Pair, float]:
        found: dict[Pair, float] = {}
        for (state, action, _), value in zip(lines.places, values, strict=True):
            if found.setdefault((state, action), value) != value:
                raise InvalidInput(
                    f"the lines of {action!r} in {state!r} give {column!r} as {found[state, action]!r} and as "
                    f"{value!r}; it belongs to the pair: take the mean over its next states"
                )
        return found

    @property
    def ends(self) -> list[str]:
        """States that lines lead to, and that have none of their own."""
        targets, own = dict.fromkeys(target for row in self.moves.values() for target in row), set(self.states)
        return [target for target in targets if target not in own]

    # With a place for every state ------------------------------------------------------------------------------------

    def layered(self, start: str | None, thresholds: Mapping[str, float], cost_kind: str) -> TableWorld:
        ends = self.ends
        if len(ends) != 1:
            problem = f"ends in {' and '.join(map(repr, ends[:3]))}" if ends else "never ends"
            raise InvalidInput(
                f"an episode {problem}; exactly one state without lines of its own must end it. If episodes end after "
                "a number of steps instead, wherever they are, pass steps=..."
            )
        layers = self._layers(self._first(start), ends[0])
        pairs = [(state, action) for layer in layers[:-1] for state in layer for action in self.actions]
        layout, transitions = self._support(layers, pairs)
        means = np.array([[self.costs[name][pair] for pair in pairs] for name in thresholds]).reshape(-1, len(pairs))
        cmdp = CMDP(
            layout,
            transitions,
            COST_KINDS[cost_kind](means),
            list(thresholds.values()),
            constraint_names=list(thresholds),
            state_labels=[state for layer in layers for state in layer],
            action_labels=self.actions,
        )
        loss = self.loss
        return TableWorld(cmdp, None if loss is None else frozen(np.array([loss[pair] for pair in pairs])))

    def _support(self, layers: Sequence[Sequence[str]], pairs: Sequence[Pair]) -> tuple[Layout, FloatArray]:
        """The layout with the triples of the table, and their probabilities."""
        number = {state: i for i, state in enumerate(state for layer in layers for state in layer)}
        row_start, successor, transitions = [0], [], []
        for pair in pairs:
            for target, value in sorted((number[target], value) for target, value in self.moves[pair].items()):
                successor.append(target)
                transitions.append(value)
            row_start.append(len(successor))
        sizes = [len(layer) for layer in layers]
        layout = Layout(sizes, len(self.actions), row_start=row_start, successor=successor)
        return layout, np.array(transitions)

    def _first(self, start: str | None) -> str:
        if start is not None:
            if start not in self.states:
                raise InvalidInput(f"no line begins in {start!r}{did_you_mean(str(start), self.states)}")
            return start
        reached = {target for row in self.moves.values() for target in row}
        first = [state for state in self.states if state not in reached]
        if len(first) != 1:
            problem = f"could begin in {', '.join(map(repr, first[:3]))}" if first else "could begin anywhere"
            raise InvalidInput(
                f"an episode {problem}: name the first state, start=...; states that nothing leads to must go, and if "
                "states are visited again, pass steps=... as well"
            )
        return first[0]

    def _layers(self, start: str, end: str) -> list[list[str]]:
        layers, placed = [[start]], {start: 0}
        while layers[-1] != [end]:
            following = list(dict.fromkeys(self._targets(layers[-1])))
            for target in following:
                if target in placed:
                    raise InvalidInput(
                        f"{target!r} can be reached after {placed[target]} and after {len(layers)} steps; every state "
                        "needs its place in an episode. Give the second visit a name of its own, or pass steps=... "
                        "and let the table be unrolled"
                    )
            if end in following and len(following) > 1:
                other = next(target for target in following if target != end)
                raise InvalidInput(
                    f"after {len(layers)} steps an episode may have ended or go on in {other!r}; all episodes have "
                    "equally many steps: add states in which the rest is waited for"
                )
            placed |= dict.fromkeys(following, len(layers))
            layers.append(following)
        lost = [state for state in self.states if state not in placed]
        if lost:
            raise InvalidInput(f"nothing leads to {lost[0]!r} from {start!r}; leave its lines out")
        return layers

    def _targets(self, layer: Sequence[str]) -> Iterator[str]:
        return (target for state in layer for action in self.actions for target in self.moves[state, action])

    # Unrolled --------------------------------------------------------------------------------------------------------

    def unrolled(self, steps: int, start: str | None, thresholds: Mapping[str, float], cost_kind: str) -> TableWorld:
        if start is None:
            raise InvalidInput(f"with steps, name the first state: start={self.states[0]!r}")
        if self.ends:
            raise InvalidInput(
                f"{self.ends[0]!r} has no lines; with steps an episode goes on until the last one. Add a line for each "
                f"action that leads from {self.ends[0]!r} to itself"
            )
        number = {state: s for s, state in enumerate(self.states)}
        choice = {action: a for a, action in enumerate(self.actions)}
        entries = [
            (number[state] * len(choice) + choice[action], number[target], value)
            for (state, action), row in self.moves.items()
            for target, value in row.items()
        ]
        rows, columns, values = zip(*entries, strict=True)
        moves = sparse.csr_array((values, (rows, columns)), shape=(len(number) * len(choice), len(number)))

        def table(values: dict[Pair, float]) -> list[list[float]]:
            return [[values[state, action] for action in self.actions] for state in self.states]

        made = unroll(
            moves,
            steps,
            number[self._first(start)],
            loss=None if self.loss is None else table(self.loss),
            costs=[table(self.costs[name]) for name in thresholds] or None,
            cost_kind=cost_kind,  # type: ignore[arg-type]
            thresholds=list(thresholds.values()),
            constraint_names=list(thresholds),
            state_names=self.states,
            action_names=self.actions,
        )
        return TableWorld(made.cmdp, made.loss, made)
