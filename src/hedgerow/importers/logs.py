"""Logs: episodes that were played before, by whatever policy, as a learner can take them in (`learner.absorb`).

A log is a table with one line per step:

    episode        any values; equal ones belong together
    step           optional: 0, 1, ..., L - 1; without it the lines of an episode stand in their order
    state, action  by label or number; or both in one: `row`
    next_state     optional: by label or number; only needed at the end of an episode that was cut short
    <constraint>   the cost in [0, 1], a column per constraint; with a single one, `cost` will do
    costs_count    optional: True or False for a whole episode

A number in the columns of states or actions is a label where any label of that axis looks like a number, else a
position (`model/axis.py`). In a CSV file names are text, as they are written: `0456` is not `456`.

What may be counted. All transitions that are recorded, each being a fresh draw, and all costs, as long as nobody
stopped an episode, or chose an action, because of the costs that it had so far. Who does that makes a selection:
counting only the episodes that went on to their end would count the cheap ones. So nothing is left out without a word:

- If episodes were cut short, `costs_count` has to say whether that had to do with their costs. True: it had not, and
  all costs count. False: it may have had, and no costs count, not even those of complete episodes. Where costs are
  known to be independent, every one counts that is recorded. The column says it of single episodes, and which of them
  count must have nothing to do with their costs.
- The last step of an episode that was cut short needs its `next_state`. With `open_ends=True` it may be missing, and
  that one transition is left out: only right if nobody decided to stop because of where it led to.

    >>> view = View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
    >>> Log.read(view, {"episode": [7, 7], "state": ["home", "full"], "action": ["go", "wait"], "delay": [0.0, 1.0]})
    Log(1 episode, 2 steps)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import disk, seal
from hedgerow.checks import BoolArray, FloatArray, IntArray, frozen, kind_of, num_episodes
from hedgerow.errors import InvalidInput
from hedgerow.importers.columnar import open_table
from hedgerow.importers.log_columns import Columns
from hedgerow.importers.log_content import content_hash
from hedgerow.importers.log_paths import (
    NAMES,
    Steps,
    cost_columns,
    known_columns,
    steps_of_episodes,
    steps_of_table,
)
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.identity import MISSING, between
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import View


class Log:
    """Episodes that were played before, by any policy, for `learner.absorb`. Frozen.

    Make one with `Log.read`. A log counts all transitions, and all costs as long as nobody stopped an episode, or chose
    an action, because of the costs that it had so far; `Log.read` asks about that where it matters.

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

    __slots__ = ("costs", "counted", "rows", "sealed", "starts", "triples", "view")
    view: View
    """What is known of the world."""
    starts: IntArray
    """(episodes + 1,): episode e has the steps starts[e] to starts[e + 1] - 1."""
    rows: IntArray
    """(steps,): the visited rows, which are pairs (state, action)."""
    triples: IntArray
    """(steps,): the visited triples; -1 where it is not known what the last step of an episode led to."""
    costs: FloatArray
    """(steps, m): the costs; NaN where there are none, in episodes whose costs do not count."""
    counted: BoolArray
    """(episodes,): whether the costs of each episode count."""

    sealed: bool
    """Whether it was read from a file whose checksum was verified as a whole; `write` makes such files."""

    def __init__(self, view: View, steps: Steps, *, sealed: bool = False) -> None:
        self.view, self.sealed = view, sealed
        self.starts, self.rows, self.triples = frozen(steps.starts), frozen(steps.rows), frozen(steps.triples)
        self.costs, self.counted = frozen(steps.costs), frozen(steps.counted)

    @classmethod
    def read(
        cls,
        view: View,
        source: Any,
        *,
        costs_count: bool | None = None,
        open_ends: bool = False,
        columns: Mapping[str, str] | None = None,
    ) -> Log:
        """Read a log and check it against a view.

        A log is a table with one line per step: `episode` (equal values belong together), optionally `step` (0, 1, ...,
        L - 1), `state` and `action` by label or number (or both in one as `row`), optionally `next_state`, and the cost
        in [0, 1] in a column per constraint, named like it (`cost` for a single one). An optional column `costs_count`
        says for a whole episode whether its costs count. A number is a label where any label of that axis looks like a
        number, else a position; in a CSV file names are text as they are written.

        Page checksums of a Parquet file are verified where it has them, and the seal of one that `write` made.

        Args:
            view: What is known of the world.
            source: The path of a CSV, Parquet or Arrow file; a table of pyarrow, pandas, polars or anything else that
                speaks Arrow; a mapping {column: values}; or a sequence of `Episode`s.
            costs_count: True if no cut, and no action that a person chose, had to do with the costs of the same
                episode: then all costs count. False if it may have: then none do, not even those of complete episodes.
                None if there is nothing to say, because all episodes are complete, because costs are known to be
                independent, or because the column `costs_count` says it.
            open_ends: True lets episodes that were cut short lack their last `next_state`; it claims that nobody
                stopped them because of where that step led to.
            columns: How columns are called in the source, such as {"state": "soc"}.

        Returns:
            The log.

        Raises:
            InvalidInput: If a column is missing, if a step is impossible, or if episodes were cut short and nobody says
                whether their costs count; the message names the line.
            FileFormatError: If a file is damaged.
        """
        if not isinstance(view, View):
            raise InvalidInput(f"a log is read for a view, such as cmdp.view(), not for {kind_of(view)}")
        if costs_count is not None and not isinstance(costs_count, bool | np.bool_):
            raise InvalidInput(f"costs_count is True, False or None, not {costs_count!r}")
        count = None if costs_count is None else bool(costs_count)
        if isinstance(source, Log):
            raise InvalidInput("this is a Log already; Log.read takes what a log is made of")
        episodes = _episodes_in(source)
        if episodes is not None:
            if columns:
                raise InvalidInput("columns are those of a table; episodes have none")
            return cls(view, steps_of_episodes(view, episodes, count))
        if columns is not None and not isinstance(columns, Mapping):
            raise InvalidInput(f"columns is a mapping such as {{'state': 'soc'}}, not {kind_of(columns)}")
        if not isinstance(open_ends, bool | np.bool_):
            raise InvalidInput(f"open_ends is True or False, not {open_ends!r}")
        opened = open_table(source, "log", [str((columns or {}).get(name, name)) for name in NAMES])
        table = Columns(opened, known_columns(view), columns)
        return cls(view, steps_of_table(view, table, count, bool(open_ends)), sealed=opened.sealed)

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
            raise InvalidInput(f"episodes are played in a CMDP, not in {kind_of(cmdp)}")
        count = num_episodes(episodes)
        # By name: who plays is further along the way of the data, and nothing here may depend on it.
        rows, triples, costs = import_module("hedgerow.environments.many").play_many(cmdp, policy, count, seed)
        starts = np.arange(count + 1, dtype=np.int64) * cmdp.layout.steps
        return cls(cmdp.view(), Steps(starts, rows, triples, costs, np.ones(count, dtype=bool)))

    # What is in it ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.counted)

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
    def num_uncounted(self) -> int:
        """The number of episodes whose costs do not count."""
        return int(np.sum(~self.counted))

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
        other = copy(self)
        other.view, other.rows = view, frozen(how.rows[self.rows])
        other.triples, other.costs = frozen(how.of_triples(self.triples)), frozen(self.costs[:, how.constraints])
        return other

    @property
    def content_hash(self) -> str:
        """SHA-256 of its episodes, as far as they were read: paths and costs, in whatever order they stand.

        Neither the names nor the order of episodes count, nor which costs count, nor where they came from.
        """
        return content_hash(self.starts, self.rows, self.triples, self.costs)

    def table(self) -> Any:
        """Return the log as a `pyarrow.Table`, with labels where the view has them."""
        import pyarrow as pa

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
            "costs_count": np.repeat(self.counted, sizes),
        }
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
            writer.add_key_value_metadata({seal.KEY: seal.BLANK})
        disk.save(path, seal.seal(sink.getvalue().to_pybytes()), overwrite=overwrite)

    def __repr__(self) -> str:
        count = len(self)
        parts = [f"{count:,} episode{'s' * (count != 1)}", f"{self.num_steps:,} step{'s' * (self.num_steps != 1)}"]
        notes = (
            (self.num_prefixes, "cut short"),
            (self.num_open, "without their last transition"),
            (self.num_uncounted, "whose costs do not count"),
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
