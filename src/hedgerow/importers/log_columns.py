"""The columns of a log as arrays of numbers, line by line: labels become numbers, and nothing is guessed.

A missing value (null or NaN) is -1 among whole numbers and NaN among costs; the caller decides whether it may be
missing. Anything else that is wrong is refused with its place: episode, step and line, lines counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray, IntArray, Locator, did_you_mean, short_repr
from hedgerow.errors import InvalidInput
from hedgerow.importers.columnar import ColumnarSource
from hedgerow.model.episode import COUNTED, INDEPENDENT, UNKNOWN, Counting, Episode, Irregular, decide
from hedgerow.model.layout import Axis, Layout
from hedgerow.model.view import MISSING, View, find_triples

if TYPE_CHECKING:
    from hedgerow.importers.logs import Log
    from hedgerow.model.view import View


class LogColumns:
    """The columns of a log, under the names of the format."""

    def __init__(self, source: ColumnarSource, known: Sequence[str], renamed: Mapping[str, str] | None) -> None:
        """`known` are the names of the format, `renamed` says how some of them are called in the source."""
        self._own = dict(renamed or {})
        for name, own in self._own.items():
            if name not in known:
                raise InvalidInput(f"columns renames {name!r}, which no log has{did_you_mean(str(name), known)}")
            if own not in source.names:
                raise InvalidInput(
                    f"columns says that {name!r} is called {own!r}, which the log does not have"
                    f"{_nearest(str(own), source.names)}"
                )
        self._names, self._typed = source.names, source.typed
        self._table = source.read([own for own in dict.fromkeys(map(self.own, known)) if own in source.names])
        self.num_lines: int = self._table.num_rows

    def own(self, name: str) -> str:
        """The name of a column in the log."""
        return self._own.get(name, name)

    def __contains__(self, name: object) -> bool:
        return self._own.get(str(name), name) in self._names

    def need(self, name: str, why: str) -> None:
        """Refuse a log without this column."""
        if name not in self:
            raise InvalidInput(
                f"the log has no column {name!r} ({why}){_nearest(name, self._names)}; if yours is called otherwise, "
                f"say so: columns={{{name!r}: ...}}"
            )

    def raw(self, name: str) -> Any:
        """The `pyarrow.Array` of a column, plain."""
        import pyarrow as pa

        column = self._table.column(self.own(name)).combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column

    def codes(self, name: str) -> tuple[IntArray, Any]:
        """Numbers 0, 1, ... for the values of a column, in the order in which they first occur, and these values."""
        column = self.raw(name)
        if column.null_count:
            line = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise InvalidInput(f"line {line} of the log has no {name!r}; every line needs one")
        encoded = column.dictionary_encode()
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary

    def whole(self, name: str, count: int, where: Locator) -> IntArray:
        """Whole numbers in 0..count - 1, or MISSING."""
        import pyarrow as pa

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind):
            return np.full(self.num_lines, MISSING, dtype=np.int64)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InvalidInput(f"{self._called(name)} must hold whole numbers; its type is {kind}")
        missing = _nulls(column)
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # exact up to 2^53
        missing = missing | np.isnan(values)
        with np.errstate(invalid="ignore"):
            outside = ~missing & ~((values >= 0) & (values < count) & (values == np.floor(values)))
        self._refuse(name, outside, column, where, f"it must be a whole number in 0..{count - 1}")
        return np.where(missing, MISSING, np.where(missing, 0.0, values)).astype(np.int64)

    def placed(self, name: str, axis: Axis, where: Locator) -> IntArray:
        """The positions of states or actions that are given by label or number, as the axis says; or MISSING."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind) or not (_is_text(kind) or axis.numbers_are_labels):
            return self.whole(name, axis.count, where)
        if _is_text(kind) and axis.labels is None and self._typed:
            raise InvalidInput(
                f"{self._called(name)} holds labels, but the {axis.what}s of this view have none; give numbers in "
                f"0..{axis.count - 1}, or a view with labels"
            )
        if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InvalidInput(f"{self._called(name)} must hold labels or whole numbers; its type is {kind}")
        if pa.types.is_floating(kind):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        read = axis.position if self._typed else axis.read
        places: IntArray = np.full(len(encoded.dictionary) + 1, MISSING, dtype=np.int64)  # the last for MISSING
        for code, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                places[code] = read(value)
            except InvalidInput as error:
                line = int(np.flatnonzero(codes == code)[0])
                raise InvalidInput(f"{self._called(name)} is {short_repr(value)} at {where(line)}; {error}") from error
        found: IntArray = places[codes]
        return found

    def costs(self, name: str, where: Locator) -> FloatArray:
        """Numbers in [0, 1], or NaN where there is none."""
        import pyarrow as pa

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind):
            return np.full(self.num_lines, np.nan)
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        if not any(test(kind) for test in numeric):
            raise InvalidInput(f"{self._called(name)} must hold numbers; its type is {kind}")
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        values: FloatArray = np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        values[_nulls(column)] = np.nan
        with np.errstate(invalid="ignore"):
            outside = (values < 0.0) | (values > 1.0)
        self._refuse(
            name, outside, column, where, "losses and costs lie in [0, 1]: divide by the largest one that is possible"
        )
        return values

    def flags(self, name: str) -> NDArray[np.int8]:
        """1 for True, 0 for False, MISSING for neither."""
        import pyarrow as pa

        column = self.raw(name)
        if pa.types.is_null(column.type):
            return np.full(self.num_lines, MISSING, dtype=np.int8)
        if not pa.types.is_boolean(column.type):
            raise InvalidInput(f"{self._called(name)} must be True or False; its type is {column.type}")
        return np.asarray(column.cast(pa.int8()).fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int8)

    def texts(self, name: str) -> tuple[IntArray, tuple[str, ...]]:
        """Numbers 0, 1, ... for the texts of a column, MISSING where there is none, and these texts."""
        import pyarrow as pa

        column = self.raw(name)
        if pa.types.is_null(column.type):
            return np.full(self.num_lines, MISSING, dtype=np.int64), ()
        if not _is_text(column.type):
            raise InvalidInput(f"{self._called(name)} must hold texts; its type is {column.type}")
        encoded = column.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int64)
        return codes, tuple(encoded.dictionary.to_pylist())

    def _called(self, name: str) -> str:
        own = self.own(name)
        return f"the column {name!r}" if own == name else f"the column {own!r} ({name})"

    def _refuse(self, name: str, wrong: BoolArray, column: Any, where: Locator, rule: str) -> None:
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0])
            raise InvalidInput(f"{self._called(name)} is {short_repr(column[line].as_py())} at {where(line)}; {rule}")


def _nearest(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names).replace("known:", "its columns are")


def _nulls(column: Any) -> BoolArray:
    """Where there is no value."""
    if not column.null_count:
        return np.zeros(len(column), dtype=bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


# --------------------------------------------------------------------------------------------------------------------
# What is not known of the episodes of a log: who chose actions, which costs are unknown, what is declared of them.
#
# Which of it is counted is decided episode by episode, as for own ones (`model/episode.py`). What the policy of
# a log could have done is not known, so an unknown visit is one of every pair that the layout can reach.


class LogGaps(NamedTuple):
    """How the episodes of a log differ from whole ones."""

    with_costs: bool
    """Whether the costs of the log are counted at all"""
    unknown: BoolArray
    """(steps, m): which costs are unknown"""
    overridden: IntArray
    """(episodes,): the first step whose action was chosen by a person who may have seen costs; -1 for none"""
    reason: IntArray
    """(episodes,): the place of the declared reason in `reasons`; -1 for none"""
    reasons: tuple[str, ...]
    """The declared reasons"""
    missing: BoolArray
    """(episodes,): whether nothing at all is known of it"""


def no_gaps(episodes: int, steps: int, constraints: int) -> LogGaps:
    """All episodes are whole, as far as their lines go."""
    none = np.full(episodes, MISSING, dtype=np.int64)
    return LogGaps(True, np.zeros((steps, constraints), dtype=bool), none, none, (), np.zeros(episodes, dtype=bool))


def irregular_episodes(view: View, steps: PathSteps) -> Iterator[tuple[int, Episode]]:
    """The episodes that are not whole, by number."""
    gaps, sizes = steps.gaps, np.diff(steps.starts)
    some = (sizes < view.layout.steps) | (gaps.overridden != MISSING) | gaps.missing
    if gaps.unknown.any():
        some |= np.add.reduceat(np.append(gaps.unknown.any(axis=1), False), steps.starts[:-1]) * (sizes > 0) > 0
    for e in np.flatnonzero(some).tolist():
        own = slice(steps.starts[e], steps.starts[e + 1])
        count = int(sizes[e])
        episode = Episode.trusted(
            view, steps.rows[own], steps.triples[own], np.zeros(count), np.zeros((count, gaps.unknown.shape[1]))
        )
        first, code = int(gaps.overridden[e]), int(gaps.reason[e])
        unknown = gaps.unknown[own]
        episode.irregular = Irregular(
            overridden_from=None if first == MISSING else first,
            unknown=unknown if unknown.any() else None,
            independent=None if code == MISSING else gaps.reasons[code],
            missing=bool(gaps.missing[e]),
        )
        yield e, episode


def decisions(log: Log, independent_costs: bool) -> dict[int, Counting]:
    """What is counted of the episodes of a log that are not whole, by number."""
    decided = {}
    for e, episode in irregular_episodes(log.view, log.steps):
        counting = decide(episode, independent_costs=independent_costs)
        if not log.gaps.with_costs and counting.word == UNKNOWN:  # then no cost is, but perhaps a move
            counting = counting._replace(gaps=None, layer=counting.layer if counting.moves_lost else -1)
            if not counting.last_lost and not counting.moves_lost:
                counting = counting._replace(word=COUNTED)
        decided[e] = counting
    return decided


def summary(decided: Mapping[int, Counting]) -> tuple[int, int]:
    """How many episodes have unknown values, and from how many something is left out for a declared reason."""
    words = [counting.word for counting in decided.values()]
    return words.count(UNKNOWN), words.count(INDEPENDENT)


def gaps_of_table(
    columns: LogColumns, lines: PathLines, constraints: int, costs: bool, independent: str | None
) -> LogGaps:
    """What the columns `overridden`, `unknown_costs` and `independent` say; unknown costs are those without a value."""
    episodes, steps = len(lines.starts) - 1, len(lines.order)
    gaps = no_gaps(episodes, steps, constraints)._replace(with_costs=costs)
    overridden = gaps.overridden.copy()
    if "overridden" in columns:
        chosen = np.flatnonzero(columns.flags("overridden")[lines.order] == 1)
        of, first = np.unique(np.searchsorted(lines.starts, chosen, side="right") - 1, return_index=True)
        overridden[of] = lines.layer[chosen[first]]
    unknown = gaps.unknown.copy()
    if "unknown_costs" in columns:
        unknown[columns.flags("unknown_costs")[lines.order] == 1] = True
    reason, reasons = gaps.reason, gaps.reasons
    if independent is not None:
        reason, reasons = np.zeros(episodes, dtype=np.int64), (independent,)
    elif "independent" in columns:
        reason, reasons = _reasons(columns, lines)
    return gaps._replace(overridden=overridden, unknown=unknown, reason=reason, reasons=reasons)


def _reasons(columns: LogColumns, lines: PathLines) -> tuple[IntArray, tuple[str, ...]]:
    """The declared reason of each episode, which all its lines have."""
    codes, reasons = columns.texts("independent")
    codes = codes[lines.order]
    said: IntArray = codes[lines.starts[:-1]]
    differ = np.flatnonzero(codes != np.repeat(said, np.diff(lines.starts)))
    if differ.size:
        where = lines.where(int(lines.order[differ[0]]))
        raise InvalidInput(
            f"independent at {where} differs from that of step 0; all steps of an episode need the same reason"
        )
    return said, reasons


def gaps_of_episodes(episodes: Sequence[Episode], constraints: int, costs: bool, independent: str | None) -> LogGaps:
    """The same from `Episode`s."""
    steps = sum(len(episode.rows) for episode in episodes)
    gaps, reasons = no_gaps(len(episodes), steps, constraints), [] if independent is None else [independent]
    unknown, missing = gaps.unknown.copy(), gaps.missing.copy()
    overridden, reason = gaps.overridden.copy(), gaps.reason.copy()
    if independent is not None:
        reason[:] = 0
    first = 0
    for e, episode in enumerate(episodes):
        what, last = episode.irregular, first + len(episode.rows)
        if what is not None:
            overridden[e] = MISSING if what.overridden_from is None else what.overridden_from
            missing[e] = what.missing
            if what.unknown is not None:
                unknown[first:last] = what.unknown
            if what.independent is not None:
                if what.independent not in reasons:
                    reasons.append(what.independent)
                reason[e] = reasons.index(what.independent)
        first = last
    return LogGaps(costs, unknown, overridden, reason, tuple(reasons), missing)


def columns_of(gaps: LogGaps, starts: IntArray) -> dict[str, Any]:
    """The columns that `gaps_of_table` reads, those that say something."""
    import pyarrow as pa

    sizes = np.diff(starts)
    layer = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    columns: dict[str, Any] = {}
    if np.any(gaps.overridden != MISSING):
        first = np.repeat(gaps.overridden, sizes)
        columns["overridden"] = (first != MISSING) & (layer >= first)
    if gaps.unknown.any():
        columns["unknown_costs"] = gaps.unknown.any(axis=1)
    if np.any(gaps.reason != MISSING):
        codes = np.repeat(gaps.reason, sizes).astype(np.int32)
        texts = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == MISSING), pa.array(gaps.reasons))
        columns["independent"] = texts.dictionary_decode()
    return columns


# --------------------------------------------------------------------------------------------------------------------
# Turn the lines of a log into episodes: sort them, and check that they are paths of the log's world.
#
# All checks work on whole arrays: a million steps take about a second.


PLAIN = ("episode", "step", "row", "state", "action", "next_state", "overridden", "unknown_costs", "independent")
"""The columns of every log; those of costs are named like the constraints."""
NAMES = ("episode", "state", "action", "next_state", "independent")
"""Those that hold names or words: in a file without types they are text."""


class PathSteps(NamedTuple):
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


class PathLines:
    """The lines of a log: to which episode and step each belongs."""

    def __init__(self, columns: LogColumns, steps: int) -> None:
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
        return short_repr(self._ids[code].as_py())

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
    view: View, columns: LogColumns, costs: bool, open_ends: bool, unknown_costs: bool, independent: str | None
) -> PathSteps:
    """The episodes in a table, checked against the view; see `Log.read`."""
    layout = view.layout
    lines = PathLines(columns, layout.steps)
    rows = _rows(view, columns, lines)[lines.order]
    _check_layers(layout, rows, lines)
    next_state = np.full(columns.num_lines, MISSING, dtype=np.int64)
    if "next_state" in columns:
        next_state = columns.placed("next_state", layout.state_axis, lines.where)[lines.order]
    triples = _triples(layout, rows, next_state, lines)
    ends = np.flatnonzero(triples == MISSING)
    if ends.size and not open_ends:
        raise InvalidInput(
            f"{lines.where(int(lines.order[ends[0]]))} is the last of an episode that was cut short, and it is not "
            "known what it led to: give its next_state; or pass open_ends=True, and such transitions are unknown"
        )
    gaps = gaps_of_table(columns, lines, view.num_constraints, costs, independent)
    found = _costs(view, columns, lines, gaps, unknown_costs)
    return PathSteps(lines.starts, rows, triples, found, gaps._replace(unknown=np.isnan(found) & costs))


def _rows(view: View, columns: LogColumns, lines: PathLines) -> IntArray:
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


def _check_layers(layout: Layout, rows: IntArray, lines: PathLines) -> None:
    layer = layout.layer_of_state[rows // layout.num_actions]
    wrong = np.flatnonzero(layer != lines.layer)
    if wrong.size:
        place = int(wrong[0])
        k, what = int(lines.layer[place]), layout.describe_row(int(rows[place]))
        rule = "an episode starts in layer 0" if k == 0 else f"step {k} is in layer {k}"
        raise InvalidInput(f"{lines.where(int(lines.order[place]))} is {what}; {rule}")


def _triples(layout: Layout, rows: IntArray, next_state: IntArray, lines: PathLines) -> IntArray:
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


def _costs(view: View, columns: LogColumns, lines: PathLines, gaps: LogGaps, unknown_costs: bool) -> FloatArray:
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
                f"the cost {name!r} at {where} is missing (null or NaN): fill it in; or, if it is unknown, pass "
                "unknown_costs=True, or say so in a column unknown_costs"
            )
    return costs


def steps_of_episodes(view: View, episodes: Sequence[Any], costs: bool, independent: str | None) -> PathSteps:
    """The same from `Episode`s, which have been checked; those of a reordered view are translated by name."""
    if not episodes:
        raise InvalidInput("the log is empty; it needs at least one episode")
    episodes = [_in_terms_of(view, i, episode) for i, episode in enumerate(episodes)]
    gaps = gaps_of_episodes(episodes, view.num_constraints, costs, independent)
    found = np.concatenate([episode.costs for episode in episodes])
    return PathSteps(
        starts=np.concatenate(([0], np.cumsum([len(episode.rows) for episode in episodes]))).astype(np.int64),
        rows=np.concatenate([episode.rows for episode in episodes]),
        triples=np.concatenate([episode.triples for episode in episodes]),
        costs=np.where(gaps.unknown | (not costs), np.nan, found),
        gaps=gaps,
    )


def _in_terms_of(view: View, i: int, episode: Any) -> Episode:
    if not isinstance(episode, Episode):
        raise InvalidInput(f"entry {i} of the log is {short_repr(episode)}, not a hedgerow Episode")
    try:
        return episode.in_terms_of(view)
    except InvalidInput as error:
        raise InvalidInput(f"entry {i} of the log is an episode of another world than the view: {error}") from error
