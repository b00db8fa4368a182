"""Turn the lines of a log into episodes: sort them, and check that they are paths of the log's world.

All checks work on whole arrays: a million steps take about a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray, shown
from hedgerow.errors import InvalidInput
from hedgerow.importers.log_columns import Columns
from hedgerow.importers.log_gaps import LogGaps, gaps_of_episodes, gaps_of_table
from hedgerow.model.episode import Episode
from hedgerow.model.identity import MISSING, find_triples
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

PLAIN = ("episode", "step", "row", "state", "action", "next_state", "overridden", "unknown_costs", "independent")
"""The columns of every log; those of costs are named like the constraints."""
NAMES = ("episode", "state", "action", "next_state", "independent")
"""Those that hold names or words: in a file without types they are text."""


class Steps(NamedTuple):
    """Episodes one after the other."""

    starts: IntArray
    """(episodes + 1,): those of episode e are the steps starts[e] : starts[e + 1]"""
    rows: IntArray
    """(steps,)"""
    triples: IntArray
    """(steps,): MISSING where it is not known what a last step led to"""
    costs: FloatArray
    """(steps, m): NaN where they are unknown, or if the costs of the log do not count"""
    gaps: LogGaps
    """How episodes differ from whole ones"""


def cost_columns(view: View) -> tuple[str, ...]:
    """The names of the cost columns: those of the constraints, unless another column has that name."""
    return tuple(f"cost:{name}" if name in PLAIN else name for name in view.constraint_names)


def known_columns(view: View) -> tuple[str, ...]:
    """All names that a column can have."""
    return (*PLAIN, *cost_columns(view), *(("cost",) if view.num_constraints == 1 else ()))


class Lines:
    """The lines of a log: to which episode and step each belongs."""

    def __init__(self, columns: Columns, steps: int) -> None:
        if not columns.num_lines:
            raise InvalidInput("the log is empty; it needs one line per step, and at least one")
        columns.need("episode", "which lines belong together")
        self.episode, self._ids = columns.codes("episode")
        self._step: IntArray | None = None
        if "step" in columns:
            given = columns.whole("step", steps, self.where)
            refuse_missing("step", given == MISSING, self.where)
            self._step = given
        self.order = self._in_order()
        sizes = np.bincount(self.episode)
        self.starts: IntArray = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.layer: IntArray = np.arange(columns.num_lines) - np.repeat(self.starts[:-1], sizes)
        self._check_steps(steps)

    def _in_order(self) -> IntArray:
        """The lines by episode, in the order in which these first occur, and by step."""
        keys = (self.episode,) if self._step is None else (self._step, self.episode)
        return np.lexsort(keys).astype(np.int64)  # stable: without steps, lines stay in their order

    def _check_steps(self, steps: int) -> None:
        long = np.flatnonzero(self.layer >= steps)
        if self._step is None:
            if long.size:
                name = self.name_of(int(self.episode[self.order[long[0]]]))
                raise InvalidInput(f"episode {name} has more than {steps} lines; an episode has at most {steps} steps")
            return
        given = self._step[self.order]
        wrong = np.flatnonzero(given != self.layer)
        if not wrong.size:
            return
        place = int(wrong[0])
        line, k, found = int(self.order[place]), int(self.layer[place]), int(given[place])
        name = self.name_of(int(self.episode[line]))
        if found < k:
            other = int(self.order[place - 1])
            raise InvalidInput(
                f"step {found} of episode {name} is there twice, in the lines {min(line, other)} and "
                f"{max(line, other)}; drop one, or tell episodes apart"
            )
        if k == 0:
            raise InvalidInput(
                f"episode {name} begins with step {found} (line {line}); steps are counted from 0, and an episode has "
                "to be known from its start"
            )
        raise InvalidInput(
            f"step {k} of episode {name} is missing: after step {k - 1} comes step {found} (line {line}); an episode "
            "may end early, but has no gaps"
        )

    def name_of(self, code: int) -> str:
        """The name of an episode in the log."""
        return shown(self._ids[code].as_py())

    def where(self, line: int) -> str:
        """A line in words."""
        name = self.name_of(int(self.episode[line]))
        if hasattr(self, "layer"):
            place = int(np.flatnonzero(self.order == line)[0])
            return f"episode {name}, step {int(self.layer[place])} (line {line})"
        return f"episode {name} (line {line})"


def refuse_missing(name: str, missing: BoolArray, where: Any) -> None:
    """Refuse a line that has no value in this column."""
    if missing.any():
        raise InvalidInput(f"there is no {name} at {where(int(np.flatnonzero(missing)[0]))}; every line needs one")


def steps_of_table(
    view: View, columns: Columns, costs: bool, open_ends: bool, unknown_costs: bool, independent: str | None
) -> Steps:
    """The episodes in a table, checked against the view; see `Log.read`."""
    layout = view.layout
    lines = Lines(columns, layout.steps)
    rows = _rows(view, columns, lines)[lines.order]
    _check_layers(layout, rows, lines)
    next_state = np.full(columns.num_lines, MISSING, dtype=np.int64)
    if "next_state" in columns:
        next_state = columns.placed("next_state", layout.state_axis, lines.where)[lines.order]
    triples = _triples(layout, rows, next_state, lines)
    ends = np.flatnonzero(triples == MISSING)
    if ends.size and not open_ends:
        raise InvalidInput(
            f"{lines.where(int(lines.order[ends[0]]))} is the last of an episode that was cut short, and nobody knows "
            "what it led to: give its next_state; or pass open_ends=True, and such transitions are unknown"
        )
    gaps = gaps_of_table(columns, lines, view.num_constraints, costs, independent)
    found = _costs(view, columns, lines, gaps, unknown_costs)
    return Steps(lines.starts, rows, triples, found, gaps._replace(unknown=np.isnan(found) & costs))


def _rows(view: View, columns: Columns, lines: Lines) -> IntArray:
    """The rows (state and action), in the order of the lines."""
    layout, pairs = view.layout, "state" in columns or "action" in columns
    if "row" in columns:
        rows = columns.whole("row", layout.num_rows, lines.where)
        refuse_missing("row", rows == MISSING, lines.where)
        if "state" not in columns or "action" not in columns:
            return rows
    if not pairs and "row" not in columns:
        columns.need("state", "which pair of state and action was visited: 'state' and 'action', or 'row'")
    columns.need("state", "it belongs to 'action'")
    columns.need("action", "it belongs to 'state'")
    state = columns.placed("state", layout.state_axis, lines.where)
    action = columns.placed("action", layout.action_axis, lines.where)
    refuse_missing("state", state == MISSING, lines.where)
    ended = state == layout.num_states - 1
    if ended.any():
        line = int(np.flatnonzero(ended)[0])
        raise InvalidInput(
            f"{lines.where(line)} is in the terminal state, where no action is taken; leave that line out"
        )
    refuse_missing("action", action == MISSING, lines.where)
    pair: IntArray = state * layout.num_actions + action
    if "row" in columns and np.any(rows != pair):
        line = int(np.flatnonzero(rows != pair)[0])
        raise InvalidInput(
            f"the column 'row' is {rows[line]} at {lines.where(line)}, but its state and action are row {pair[line]}; "
            "drop 'row', or 'state' and 'action'"
        )
    return pair


def _check_layers(layout: Layout, rows: IntArray, lines: Lines) -> None:
    layer = layout.layer_of_state[rows // layout.num_actions]
    wrong = np.flatnonzero(layer != lines.layer)
    if wrong.size:
        place = int(wrong[0])
        k, what = int(lines.layer[place]), layout.describe_row(int(rows[place]))
        rule = "an episode starts in layer 0" if k == 0 else f"step {k} is in layer {k}"
        raise InvalidInput(f"{lines.where(int(lines.order[place]))} is {what}; {rule}")


def _triples(layout: Layout, rows: IntArray, next_state: IntArray, lines: Lines) -> IntArray:
    """The transition of each step: to the state of the following step, or to `next_state` at the end of an episode."""
    targets = np.full(len(rows), MISSING, dtype=np.int64)
    targets[:-1] = rows[1:] // layout.num_actions
    last = lines.starts[1:] - 1
    targets[last] = np.where(lines.layer[last] == layout.steps - 1, layout.num_states - 1, next_state[last])
    known = next_state != MISSING
    wrong = np.flatnonzero(known & (next_state != targets))
    if wrong.size:
        place = int(wrong[0])
        raise InvalidInput(
            f"{lines.where(int(lines.order[place]))} has the next_state "
            f"{layout.describe_state(int(next_state[place]))}, but the episode goes on in "
            f"{layout.describe_state(int(targets[place]))}"
        )
    triples = find_triples(layout, rows, targets)
    wrong = np.flatnonzero((triples == MISSING) & (targets != MISSING))
    if wrong.size:
        place = int(wrong[0])
        raise InvalidInput(
            f"{lines.where(int(lines.order[place]))} is impossible: {layout.describe_row(int(rows[place]))} cannot "
            f"lead to {layout.describe_state(int(targets[place]))}; the layout does not allow it"
        )
    return triples


def _costs(view: View, columns: Columns, lines: Lines, gaps: LogGaps, unknown_costs: bool) -> FloatArray:
    """(steps, m): the costs, NaN where they are said to be unknown; not read if those of the log do not count."""
    names = cost_columns(view)
    costs = np.full((len(lines.order), len(names)), np.nan)
    if not gaps.with_costs:
        return costs
    for i, name in enumerate(names):
        if len(names) == 1 and name not in columns and "cost" in columns:
            name = "cost"
        columns.need(name, "the costs of a constraint; without them pass costs=False")
        costs[:, i] = columns.costs(name, lines.where)[lines.order]
        missing = np.flatnonzero(np.isnan(costs[:, i]) & ~gaps.unknown[:, i] & (not unknown_costs))
        if missing.size:
            where = lines.where(int(lines.order[missing[0]]))
            raise InvalidInput(
                f"the cost {name!r} at {where} is missing (null or NaN): fill it in; or, if nobody knows it, pass "
                "unknown_costs=True, or say so in a column unknown_costs"
            )
    return costs


def steps_of_episodes(view: View, episodes: Sequence[Any], costs: bool, independent: str | None) -> Steps:
    """The same from `Episode`s, which have been checked; those of a reordered view are translated by name."""
    if not episodes:
        raise InvalidInput("the log is empty; it needs at least one episode")
    episodes = [_in_terms_of(view, i, episode) for i, episode in enumerate(episodes)]
    gaps = gaps_of_episodes(episodes, view.num_constraints, costs, independent)
    found = np.concatenate([episode.costs for episode in episodes])
    return Steps(
        starts=np.concatenate(([0], np.cumsum([len(episode.rows) for episode in episodes]))).astype(np.int64),
        rows=np.concatenate([episode.rows for episode in episodes]),
        triples=np.concatenate([episode.triples for episode in episodes]),
        costs=np.where(gaps.unknown | (not costs), np.nan, found),
        gaps=gaps,
    )


def _in_terms_of(view: View, i: int, episode: Any) -> Episode:
    if not isinstance(episode, Episode):
        raise InvalidInput(f"entry {i} of the log is {shown(episode)}, not a hedgerow Episode")
    try:
        return episode.in_terms_of(view)
    except InvalidInput as error:
        raise InvalidInput(f"entry {i} of the log is an episode of another world than the view: {error}") from error
