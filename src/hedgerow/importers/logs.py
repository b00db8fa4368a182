"""Logs: episodes that were played before, by whatever policy, as a learner can take them in (`learner.absorb`).

`Log.read` says which columns the table of a log has. What may be counted of it is decided as for other episodes
(`model/episode.py`): all moves that are recorded, each being a fresh draw, and all costs, unless a person stopped
an episode, or chose an action, because of the costs that it had so far. That would be a selection: counting only the
episodes that went on to their end would count the cheap ones. So what is missing is unknown, unless the reason is
declared to be independent of it:

- If an episode was cut short or overridden, every pair that it could have visited from there on, under any policy, has
  an unknown visit, for which confidence sets make room. That is much. Other honest ways are `independent=`, if it is
  true, and `costs=False`: the log counts for transitions only.
- The last step of an episode that was cut short needs its `next_state`. With `open_ends=True` it may be missing, and
  that one move is unknown.

The content hash is equal for the same episodes in whatever order, file or object they come: a log is the multiset of
its episodes, each a sequence of steps (row, triple, costs). They are first put into an order that depends on nothing
but their content: by a 64-bit fingerprint, a sum over the steps that is computed for all of them at once. Two different
episodes with one fingerprint (probability 2^-64 per pair) could stand in either order, and then the same log, read in
another order, would have another hash; different logs never share one, as far as SHA-256 goes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._late import late
from hedgerow.checks import FloatArray, IntArray, frozen, num_episodes, type_name
from hedgerow.errors import InvalidInput
from hedgerow.importers.columnar import open_table
from hedgerow.importers.log_columns import (
    NAMES,
    LogColumns,
    LogGaps,
    PathSteps,
    columns_of,
    cost_columns,
    decisions,
    known_columns,
    no_gaps,
    steps_of_episodes,
    steps_of_table,
    summary,
)
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode, checked_reason, refuse_impossible
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import MISSING, View, between
from hedgerow.storage import atomic, datafile

Words = NDArray[np.uint64]
# The constants of splitmix64 (Steele, Lea and Flood 2014): a bijection of 64 bits that looks random.
STRIDE = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def content_hash(starts: IntArray, rows: IntArray, triples: IntArray, costs: FloatArray) -> str:
    """SHA-256 of the multiset of episodes: those of episode e are the steps starts[e] : starts[e + 1].

    `triples` (steps,) may be -1 and `costs` (steps, m) NaN where nothing is known.
    """
    sizes = np.diff(starts)
    numbers = _plain(costs)
    words = np.column_stack((rows, triples, numbers.view(np.int64))).astype("<i8")
    order = np.argsort(_fingerprints(words, starts, sizes), kind="stable")
    lines = np.repeat(starts[order] - _starts(sizes[order]), sizes[order]) + np.arange(len(rows))
    digest = hashlib.sha256(f"{len(sizes)} {words.shape[1]}\n".encode())
    digest.update(sizes[order].astype("<i8").tobytes())
    digest.update(words[lines].tobytes())
    return digest.hexdigest()


def _plain(costs: FloatArray) -> FloatArray:
    """One pattern of bits for each number: 0.0 for -0.0, and one NaN."""
    return np.ascontiguousarray(np.where(np.isnan(costs), np.nan, costs + 0.0))


def _fingerprints(words: NDArray[np.int64], starts: IntArray, sizes: IntArray) -> Words:
    """(episodes,): the sum, modulo 2^64, of what each step and its place in the episode are mixed to."""
    step = (np.arange(len(words)) - np.repeat(starts[:-1], sizes)).astype(np.uint64)
    mixed = _mixed(step)
    for column in words.T:
        mixed = _mixed(mixed ^ column.astype(np.int64).view(np.uint64))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    return sums[starts[1:]] - sums[starts[:-1]]


def _mixed(words: Words) -> Words:
    words = words + STRIDE
    words = (words ^ (words >> SHIFTS[0])) * FACTORS[0]
    words = (words ^ (words >> SHIFTS[1])) * FACTORS[1]
    return words ^ (words >> SHIFTS[2])


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes)[:-1]))


class Log:
    """Episodes that were played before, by any policy, for `learner.absorb`. Frozen.

    Make one with `Log.read`. A log counts all transitions and costs that are recorded, unless a person who may have
    seen costs chose the actions; what is missing of an episode is unknown, or left out for a declared reason.

    Args:
        view: What is known of the world.
        steps: The steps, known to be sound; `Log.read` checks and makes them.
        sealed: Whether they come from a file whose checksum was verified.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> table = {"episode": [7, 7], "state": ["home", "full"], "action": ["go", "wait"], "delay": [0.0, 1.0]}
        >>> hr.Log.read(view, table)
        Log(1 episode, 2 steps)
    """

    __slots__ = ("costs", "gaps", "rows", "sealed", "starts", "triples", "view")
    view: View
    """What is known of the world."""
    starts: IntArray
    """(episodes + 1,): episode e has the steps starts[e] to starts[e + 1] - 1."""
    rows: IntArray
    """(steps,): the visited rows, which are pairs (state, action)."""
    triples: IntArray
    """(steps,): the visited triples; -1 where it is not known what the last step of an episode led to."""
    costs: FloatArray
    """(steps, m): the costs; NaN where they are unknown, or if the costs of the log do not count."""
    gaps: LogGaps
    """How episodes differ from whole ones."""
    sealed: bool
    """Whether it was read from a file whose checksum was verified as a whole; `write` makes such files."""

    def __init__(self, view: View, steps: PathSteps, *, sealed: bool = False) -> None:
        self.view, self.sealed = view, sealed
        self.starts, self.rows, self.triples, self.costs = map(frozen, steps[:-1])
        self.gaps = LogGaps._make(frozen(part) if isinstance(part, np.ndarray) else part for part in steps.gaps)

    @property
    def steps(self) -> PathSteps:
        """All of it, as arrays."""
        return PathSteps(self.starts, self.rows, self.triples, self.costs, self.gaps)

    @classmethod
    def read(
        cls,
        view: View,
        source: Any,
        *,
        costs: bool = True,
        unknown_costs: bool = False,
        independent: str | None = None,
        open_ends: bool = False,
        columns: Mapping[str, str] | None = None,
    ) -> Log:
        """Read a log and check it against a view.

        A log is a table with one line per step: `episode` (equal values belong together), optionally `step` (0, 1, ...,
        L - 1), `state` and `action` by label or number (or both in one as `row`), optionally `next_state`, and the cost
        in [0, 1] in a column per constraint, named like it (`cost` for a single one). Optional columns say what is not
        known: `overridden` is True from the step on in which a person who may have seen costs chose the action,
        `unknown_costs` in lines with unknown costs, and `independent` has the reason why an episode is not
        whole, if that had nothing to do with its costs or moves.

        A number is a label where any label of that axis looks like a number, else a position; in a CSV file names are
        text as they are written. Page checksums of a Parquet file are verified where it has them, and the seal of one
        that `write` made.

        Args:
            view: What is known of the world.
            source: The path of a CSV, Parquet or Arrow file; a table of pyarrow, pandas, polars or anything else that
                speaks Arrow; a mapping {column: values}; or a sequence of `Episode`s.
            costs: False if no costs of the log count, not even those of complete episodes; then it needs no columns for
                them. That is always right.
            unknown_costs: True if missing costs (null) are unknown; else a missing one is refused.
            independent: Why episodes were cut short, overridden or not measured, in words, if that had nothing to do
                with their costs or moves; the ledger of a learner that absorbs the log names it. None if it may have
                had to do with them: then what is missing of them is unknown.
            open_ends: True lets episodes that were cut short lack their last `next_state`; that move is unknown.
            columns: How columns are called in the source, such as {"state": "soc"}.

        Returns:
            The log.

        Raises:
            InvalidInput: If a column is missing, if a step is impossible, or if a cost is missing and not declared
                to be unknown; the message names the line.
            FileFormatError: If a file is damaged.
        """
        if not isinstance(view, View):
            raise InvalidInput(f"a log is read for a view, such as cmdp.view(), not for {type_name(view)}")
        for name, value in (("costs", costs), ("unknown_costs", unknown_costs), ("open_ends", open_ends)):
            if not isinstance(value, bool | np.bool_):
                raise InvalidInput(f"{name} is True or False, not {value!r}")
        reason = checked_reason(independent)
        if isinstance(source, Log):
            raise InvalidInput("this is a Log already; Log.read takes what a log is made of")
        episodes = _episodes_in(source)
        if episodes is not None:
            if columns:
                raise InvalidInput("columns are those of a table; episodes have none")
            return cls._possible(view, steps_of_episodes(view, episodes, bool(costs), reason))
        if columns is not None and not isinstance(columns, Mapping):
            raise InvalidInput(f"columns is a mapping such as {{'state': 'soc'}}, not {type_name(columns)}")
        opened = open_table(source, "log", [str((columns or {}).get(name, name)) for name in NAMES])
        table = LogColumns(opened, known_columns(view), columns)
        steps = steps_of_table(view, table, bool(costs), bool(open_ends), bool(unknown_costs), reason)
        return cls._possible(view, steps, sealed=opened.sealed)

    @classmethod
    def _possible(cls, view: View, steps: PathSteps, *, sealed: bool = False) -> Log:
        """The log, unless what the view knows rules out a step of it."""
        known = np.where(steps.gaps.unknown, np.nan, steps.costs)
        refuse_impossible(view, steps.rows, steps.triples, known, steps.starts)
        return cls(view, steps, sealed=sealed)

    @classmethod
    def played(cls, cmdp: CMDP, policy: Policy | Mixture | ArrayLike, episodes: int, seed: int = 0) -> Log:
        """Play episodes in a world and return them as a log.

        Args:
            cmdp: The world.
            policy: A policy, or a mixture that is drawn from anew in each episode.
            episodes: How many.
            seed: Seed of everything random.
        """
        if not isinstance(cmdp, CMDP):
            raise InvalidInput(f"episodes are played in a CMDP, not in {type_name(cmdp)}")
        count = num_episodes(episodes)
        rows, triples, costs = late("environments.play:play_many")(cmdp, policy, count, seed)
        starts = np.arange(count + 1, dtype=np.int64) * cmdp.layout.steps
        return cls(
            cmdp.view(), PathSteps(starts, rows, triples, costs, no_gaps(count, len(rows), cmdp.num_constraints))
        )

    # What is in it ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.starts) - 1

    @property
    def num_steps(self) -> int:
        """The number of steps of all episodes."""
        return len(self.rows)

    @property
    def num_prefixes(self) -> int:
        """The number of episodes that were cut short."""
        return int(np.sum(np.diff(self.starts) < self.view.layout.steps))

    @property
    def num_open(self) -> int:
        """The number of episodes that do not say what their last step led to."""
        return int(np.sum(self.triples == MISSING))

    @property
    def num_unknown(self) -> int:
        """The number of episodes with unknown values."""
        return summary(decisions(self, self.view.knowledge.independent_costs))[0]

    @property
    def num_independent(self) -> int:
        """The number of episodes of which something is left out for a declared reason."""
        return summary(decisions(self, self.view.knowledge.independent_costs))[1]

    def in_terms_of(self, view: View) -> Log:
        """Return the log as the world of `view` has it.

        Args:
            view: A view of the same world; states, actions and constraints may stand in another order.

        Returns:
            The log itself if nothing differs; else a log in which rows, triples and costs stand where `view` has their
            names.

        Raises:
            InvalidInput: If layouts, labels or names of constraints differ in more than their order.
        """
        own = self.view
        how = between(own.layout, own.constraint_names, view.layout, view.constraint_names)
        if how is None:
            return self
        steps = self.steps._replace(
            rows=how.rows[self.rows],
            triples=how.of_triples(self.triples),
            costs=self.costs[:, how.constraints],
            gaps=self.gaps._replace(unknown=self.gaps.unknown[:, how.constraints]),
        )
        return Log(view, steps, sealed=self.sealed)

    @property
    def content_hash(self) -> str:
        """SHA-256 of its episodes, as far as they were read: paths and costs, in whatever order they stand.

        Neither the names nor the order of episodes count, nor which costs count, nor where they came from.
        """
        return content_hash(self.starts, self.rows, self.triples, self.costs)

    def table(self) -> Any:
        """Return the log as a `pyarrow.Table`, with labels where the view has them.

        Raises:
            InvalidInput: If the log holds episodes without steps, which have no line.
        """
        import pyarrow as pa

        if np.any(np.diff(self.starts) == 0):
            e = int(np.flatnonzero(np.diff(self.starts) == 0)[0])
            raise InvalidInput(f"episode {e} of the log has no steps: a table, with one line per step, cannot hold it")

        view, layout = self.view, self.view.layout
        sizes = np.diff(self.starts)
        state, action = np.divmod(self.rows, layout.num_actions)
        following = np.where(self.triples == MISSING, MISSING, layout.successor[self.triples])
        arrays: dict[str, Any] = {
            "episode": np.repeat(np.arange(len(self)), sizes),
            "step": np.arange(self.num_steps) - np.repeat(self.starts[:-1], sizes),
            "state": _named(state, view.state_labels),
            "action": _named(action, view.action_labels),
            "next_state": _named(following, view.state_labels),
            **columns_of(self.gaps, self.starts),
        }
        if not self.gaps.with_costs:
            return pa.table(arrays)
        for name, column in zip(cost_columns(view), self.costs.T, strict=True):
            arrays[name] = pa.array(column, from_pandas=True)  # NaN becomes null
        return pa.table(arrays)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a Parquet file that `read` takes, atomically.

        The file is sealed: it holds a checksum of all of its bytes, which `read` verifies.

        Args:
            path: The file.
            overwrite: Whether an existing file may be replaced.
        """
        import pyarrow as pa
        from pyarrow import parquet

        sink = pa.BufferOutputStream()
        table = self.table()
        with parquet.ParquetWriter(sink, table.schema, compression="zstd", write_page_checksum=True) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({datafile.SEAL_KEY: datafile.BLANK_SEAL})
        atomic.save(path, datafile.seal(sink.getvalue().to_pybytes()), overwrite=overwrite)

    def __repr__(self) -> str:
        count = len(self)
        parts = [f"{count:,} episode{'s' * (count != 1)}", f"{self.num_steps:,} step{'s' * (self.num_steps != 1)}"]
        notes = (
            (self.num_prefixes, "cut short"),
            (self.num_open, "without their last transition"),
            (self.num_unknown, "with unknown values"),
            (len(self) if not self.gaps.with_costs else 0, "whose costs do not count"),
        )
        return f"Log({', '.join(parts + [f'{number:,} {what}' for number, what in notes if number])})"


def _episodes_in(source: Any) -> list[Any] | None:
    """The episodes, if that is what a source consists of; None for a table."""
    if isinstance(source, Episode):
        return [source]
    if isinstance(source, str | bytes | Mapping | np.ndarray | os.PathLike) or hasattr(source, "__arrow_c_stream__"):
        return None
    if isinstance(source, list | tuple):
        return list(source)
    if isinstance(source, Iterable) and not hasattr(source, "columns") and not hasattr(source, "to_arrow"):
        return list(source)
    return None


def _named(numbers: IntArray, labels: tuple[str, ...] | None) -> Any:
    """A column of numbers or of labels, null where there is none."""
    import pyarrow as pa

    if labels is None:
        return pa.array(numbers.astype(np.int64), mask=numbers == MISSING)
    codes = pa.array(numbers.astype(np.int32), mask=numbers == MISSING)
    return pa.DictionaryArray.from_arrays(codes, pa.array(labels)).dictionary_decode()
