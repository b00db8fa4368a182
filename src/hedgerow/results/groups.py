"""What comes back from a directory of results: cells, and tables over all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow._late import late
from hedgerow.checks import FloatArray, IntArray, did_you_mean
from hedgerow.display import text
from hedgerow.display.table import Piece, Table, TableCell, latex_tables
from hedgerow.display.terms import Terms
from hedgerow.environments.columns import Column
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.registry import learners
from hedgerow.results.manifest import PARTS, label
from hedgerow.results.metrics import (
    INTERVALS,
    REGRET,
    TIMINGS,
    Estimate,
    Growth,
    growth_exponent,
    net_violation_curve,
    number_cell,
    numbers_in,
    over_seeds,
    run_columns,
    run_numbers,
    violation_curve,
)
from hedgerow.results.table import arrow
from hedgerow.simulation.result import COMMON

if TYPE_CHECKING:
    from hedgerow.results.leaderboard import Leaderboard

NAME_TYPES = {
    "cell": "string",
    "world": "string",
    "adversary": "string",
    "learner": "string",
    "episodes": "int64",
    "seed": "int64",
}
"""The columns that stand in front of every table, with their Arrow types."""


LONGEST_PATH = 60
"""Characters of a directory in the line that results print."""


def heading(title: str, description: str = "") -> dict[str, str]:
    """What a sweep is called, as entries of its manifest: `Results.title` and `Results.description` read them."""
    return {"title": title, "description": description}


@dataclass(frozen=True, repr=False)
class Cell:
    """One run of a sweep.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.report.figures import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> cell = run_results(run, world="tiny").cells[0]
        >>> cell.status, cell.episodes, cell.label("world")
        ('done', 20, 'tiny')
    """

    id: str
    """A readable name, which is also the name of its file."""
    hash: str
    """The fingerprint of its description: equal hashes mean equal runs."""
    spec: Mapping[str, Any]
    """Its description as plain data: world, adversary, learner, episodes, delta, seed, labels."""
    status: str
    """One of "done", "failed", and "missing" if it was begun and left no file."""
    error: str
    """Why it failed, or the empty string."""
    seconds: Mapping[str, float]
    """Wall time by what it was spent on, from the manifest: `total` is the sum, `loop` the episodes alone."""
    facts: Mapping[str, Any]
    """What is one number or one list for the whole run, by name: optimum, t_bar, rho_hat, thresholds, ledger, ..."""
    columns: tuple[Column, ...] = ()
    """How the columns and facts of its learner are declared."""

    @classmethod
    def of(cls, header: Mapping[str, Any], entry: Mapping[str, Any], status: str) -> Cell:
        """Make a cell from the files of a sweep.

        Args:
            header: The header of its table.
            entry: Its entry in the manifest.
            status: "done", "failed" or "missing".
        """
        seconds = entry.get("seconds") or {}
        return cls(
            header["id"],
            str(header.get("hash", "")),
            header.get("spec", {}),
            status,
            "" if status == "done" else str(entry.get("error") or ""),
            {str(name): float(value) for name, value in seconds.items()},
            header.get("facts", {}),
            tuple(header.get("columns", ())),
        )

    def __repr__(self) -> str:
        return text.line("Cell", text.quoted(self.id, 120), self.status)

    def label(self, part: str) -> str:
        """Return the readable name of its `part`: "world", "adversary" or "learner"."""
        return label(self.spec, part)

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(self.spec["episodes"])

    @property
    def setting(self) -> Setting:
        """What it shares with the cells that it is compared with."""
        return Setting(self.label("world"), self.label("adversary"), self.episodes)

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.spec["seed"])

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of the constraints."""
        return tuple(self.facts["constraints"])

    @property
    def episodes_per_second(self) -> float | None:
        """The speed of the episodes if their time is known, else of the whole cell; None if no time is known."""
        time = self.seconds.get("loop", self.seconds.get("total", 0.0))
        return self.episodes / time if time > 0.0 else None


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """A sweep that was read from its directory: its cells, and tables over all of them.

    `hr.results.open` makes one. Tables are Arrow tables; `to_pandas` turns them into data frames if pandas is
    installed. `results[id]` is the cell with that id.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.report.figures import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> results = run_results(run)
        >>> regret = results.summary().column("regret").to_pylist()
        >>> len(results.cells), len(regret)
        (1, 1)
    """

    directory: Path | None
    """The directory; None for a run that was never written."""
    manifest: Mapping[str, Any]
    """The content of the manifest: the experiment, and everything that differs from run to run, such as times and
    versions."""
    cells: tuple[Cell, ...]
    """All cells, those that failed or are missing included."""
    load: Callable[[str], Any]
    """A function from the id of a finished cell to its table."""
    load_trace: Callable[[str], Any] = field(default_factory=lambda: _no_trace)
    """A function from the id of a finished cell to its table of every episode; to None if that was not kept."""

    def __repr__(self) -> str:
        told = [cell for cell in self.cells if cell.spec]  # of a cell that left nothing, only its name may be known
        settings = {cell.setting for cell in told}
        learners = {cell.label("learner") for cell in told}
        return text.line(
            "Results",
            text.quoted(self.title, 60),
            f"{len(self.done):,} of {text.counted(len(self.cells), 'cell')} done",
            text.counted(len(learners), "learner"),
            text.counted(len(settings), "setting"),
            _end_of_path(self.directory),
        )

    def _repr_html_(self) -> str:
        from hedgerow.display.views import results_html

        members = self.groups if self.done else []
        shown = heads(members, "short")
        return results_html(self, shown, (table_row(group, "short", shown) for group in members), INTERVALS)

    @property
    def title(self) -> str:
        """The title of the sweep; the name of its directory if it has none."""
        return str(self.manifest.get("title") or "") or (self.directory.name if self.directory else "hedgerow")

    @property
    def description(self) -> str:
        """What the sweep is about; the empty string if it was not said."""
        return str(self.manifest.get("description") or "")

    @cached_property
    def groups(self) -> list[Group]:
        """The finished cells, grouped: cells of a group differ in their seed alone. Computed once."""
        return groups(self)

    @property
    def done(self) -> tuple[Cell, ...]:
        """The finished cells."""
        return tuple(cell for cell in self.cells if cell.status == "done")

    def __getitem__(self, name: str) -> Cell:
        for cell in self.cells:
            if cell.id == name:
                return cell
        raise InvalidInput(f"there is no cell {name!r}; there are {len(self.cells)}, see `.cells`")

    def table(self, name: str) -> Any:
        """Return the curves of the finished cell with the id `name`, as an Arrow table."""
        if self[name].status != "done":
            raise InvalidInput(f"the cell {name} is {self[name].status}: it has no table")
        return self.load(name)

    def curves(self) -> Any:
        """Return all checkpoints of all finished cells as one Arrow table.

        The columns cell, world, adversary, learner, episodes and seed come first. Worlds with fewer constraints have
        nulls in the columns of the others.
        """
        pa = arrow()
        tables = [_named(pa, cell, self.load(cell.id)) for cell in self.done]
        if not tables:
            raise InvalidInput(f"{self.directory} has no finished cell")
        return pa.concat_tables(tables, promote_options="default").combine_chunks()

    def summary(self) -> Any:
        """Return one row per finished cell with its numbers after the last episode, as an Arrow table.

        The columns are those that some learner of the sweep declares. Equal sweeps give equal tables; times are in
        `timings`.
        """
        rows = [{**_names(cell), "hash": cell.hash, **run_numbers(cell, self.load(cell.id))} for cell in self.done]
        types = {column.name: column.type for cell in self.done for column in run_columns(cell)}
        return _typed(rows, {**NAME_TYPES, "hash": "string", **types})

    def timings(self) -> Any:
        """Return one row per finished cell with its times and episodes per second, as an Arrow table."""
        kinds = sorted({kind for cell in self.done for kind in cell.seconds})
        rows = [
            {
                **_names(cell),
                **{f"seconds_{kind}": cell.seconds.get(kind) for kind in kinds},
                "episodes_per_second": cell.episodes_per_second,
            }
            for cell in self.done
        ]
        numbers = {f"seconds_{kind}": "float64" for kind in kinds}
        return _typed(rows, {**NAME_TYPES, **numbers, "episodes_per_second": "float64"})

    def leaderboard(self) -> Leaderboard:
        """Rank the learners, in every setting and over all: the safe ones by regret, with the noise."""
        board: Leaderboard = late("results.leaderboard:leaderboard")(self)
        return board

    def to_pandas(self, what: str = "summary") -> Any:
        """Return the table `what` ("summary", "curves" or "timings") as a data frame.

        Raises:
            HedgerowError: If pandas is not installed.
        """
        if what not in ("summary", "curves", "timings"):
            raise InvalidInput(f"there is no table {what!r}; choose summary, curves or timings")
        try:
            import pandas  # noqa: F401 - only to say clearly that it is missing
        except ImportError as error:
            raise HedgerowError("data frames need pandas: install it, or use the Arrow tables") from error
        return getattr(self, what)().to_pandas()

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        r"""Write the table of a paper: a group of rows for each setting, a row for each learner.

        Columns are those that are declared for "latex": the regret R_T, the violation V_T, the net violation, how many
        seeds were safe, the worst margin of all seeds and episodes, and the sum of the mixing weights where a learner
        mixes. Sums are means over seeds, with their 95 % intervals in brackets where there are several seeds that
        differ. A dash stands for what is not known.

        Args:
            caption: LaTeX text; with it, or with a label, the table stands in a `table` environment.
            label: What `\ref` calls the table, such as `tab:results`.

        Returns:
            LaTeX text that needs the package booktabs and no other. Names are escaped. Of scripts other than Latin
            and Greek, LuaLaTeX and XeLaTeX print the signs, as far as the font has them, and pdfLaTeX their codes.

        Raises:
            InvalidInput: If no cell is finished, or the caption or the label is not one.

        Examples:
            With a directory of results:

                results = hr.results.open("out/quickstart")
                pathlib.Path("table.tex").write_text(results.to_latex(caption="Regret and violation"))
        """
        return latex_table(self.groups, caption, label)

    def plot(
        self,
        what: str | None = None,
        *,
        world: str | None = None,
        adversary: str | None = None,
        episodes: int | None = None,
    ) -> Any:
        """Draw one figure of the page, or an overview, of all learners in one setting.

        Lines are means over seeds, bands their 95 % intervals; the bands of margins are the range of all seeds.
        `Run.plot` says how notebooks display the figure.

        Args:
            what: `"regret"`, `"regret-growth"`, `"violation"`, `"margin"` or `"margin-0"` (the first constraint),
                `"margin-1"` or the name of a constraint, `"mixing"`, or the name of a note. By default an overview:
                regret, violation, first margin and mixing weight in small panels.
            world: Name of the world; needed where the sweep has several.
            adversary: Name of the adversary; needed where the sweep has several.
            episodes: Number of episodes T; needed where the sweep has several.

        Returns:
            A `plotly.graph_objects.Figure` with title and legend, which you may change. Where there is nothing to
            draw, such as the violation of a safe learner, the figure says so.

        Raises:
            InvalidInput: If there is no figure or setting of this name, or several settings fit.

        Examples:
            With a directory of results:

                results = hr.results.open("out/quickstart")
                results.plot("regret", world="random-small", episodes=1000)
        """
        draw = late("report.figures:results_plot")
        return draw(self, what, world=world, adversary=adversary, episodes=episodes)


def _end_of_path(directory: Path | None) -> str:
    """The directory, or the end of it where it is long; nothing for a run that was never written."""
    if directory is None:
        return ""
    words = str(directory)
    return words if len(words) <= LONGEST_PATH else f"...{words[3 - LONGEST_PATH :]}"


def _names(cell: Cell) -> dict[str, Any]:
    parts = {part: cell.label(part) for part in PARTS}
    return {"cell": cell.id, **parts, "episodes": cell.episodes, "seed": cell.seed}


def _named(pa: Any, cell: Cell, table: Any) -> Any:
    """`table` with the names of its cell in front, without its metadata."""
    table = table.replace_schema_metadata(None)
    for place, (name, value) in enumerate(_names(cell).items()):
        kind = pa.type_for_alias(NAME_TYPES[name])
        table = table.add_column(place, name, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table


def _typed(rows: list[dict[str, Any]], types: Mapping[str, str]) -> Any:
    """A table whose types do not depend on what happens to be missing in it."""
    pa = arrow()
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    return pa.Table.from_pylist([{name: _or_null(row.get(name)) for name in types} for row in rows], schema=schema)


def _or_null(value: Any) -> Any:
    """NaN is no number: a null in tables, so that equal tables compare as equal."""
    return None if isinstance(value, float) and isnan(value) else value


# --------------------------------------------------------------------------------------------------------------------
# Seeds together: the runs of one learner on one world against one adversary for one number of episodes.
#
# for group in results.groups:
#     group.learner, group["regret"].value, group.curve("regret").shape     # (seeds, C)


@dataclass(frozen=True)
class Setting:
    """What the learners of a comparison share.

    Examples:
        >>> from hedgerow.results.groups import Setting
        >>> Setting("dope-media", "switching", 10_000).episodes
        10000
    """

    world: str
    """The name of the world."""
    adversary: str
    """The name of the adversary."""
    episodes: int
    """The number of episodes."""


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """Runs that differ in their seed alone: one learner on one world against one adversary.

    `results.groups` lists them. `group["regret"]` is a number over seeds, with its interval. Curves have the shape
    (seeds, C), where C is the number of checkpoints.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.report.figures import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> group = run_results(run).groups[0]
        >>> group.learner, group["safe"].value, group.curve("regret").shape == (1, len(group.episodes))
        ('uob-reps (sharpest)', 1.0, True)
    """

    setting: Setting
    """The world, the adversary and the number of episodes."""
    learner: str
    """The readable name of the learner."""
    cells: tuple[Cell, ...]
    """The cells, one per seed."""
    tables: tuple[Any, ...]
    """The tables of the cells, in the same order."""
    load_trace: Callable[[str], Any] = field(default_factory=lambda: _no_trace)
    """A function from the id of a cell to its table of every episode, or None."""

    def __repr__(self) -> str:
        setting, seeds = self.setting, text.counted(len(self.cells), "seed")
        where = f"{text.quoted(setting.world, 50)} against {text.quoted(setting.adversary, 40)}"
        return text.line("Group", text.quoted(self.learner, 40), where, f"episodes={setting.episodes}", seeds)

    @property
    def kind(self) -> str:
        """The kind of the learner, such as "s-ops", whatever its switches are called."""
        return str(self.cells[0].facts.get("kind", ""))

    @cached_property
    def terms(self) -> Terms:
        """What episodes, loss and baseline are called in this world."""
        return Terms.of(self.cells[0].facts)

    @cached_property
    def finest(self) -> Any:
        """The table of the first seed with a row for every episode if that was kept, else at its checkpoints."""
        trace = self.load_trace(self.cells[0].id)
        return self.tables[0] if trace is None else trace

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of the constraints."""
        return self.cells[0].constraints

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of the constraints."""
        return tuple(self.cells[0].facts["thresholds"])

    @cached_property
    def episodes(self) -> IntArray:
        """(C,): the checkpoints that all seeds have."""
        common = set.intersection(*(set(table.column("episode").to_pylist()) for table in self.tables))
        if not common:
            raise InvalidInput(f"the seeds of {self.learner} on {self.setting.world} have no checkpoint in common")
        return np.array(sorted(common), dtype=np.int64)

    def curve(self, name: str) -> FloatArray:
        """Return the column `name` of all seeds (seeds, C).

        Every run has its scores; columns that only some learners have are found by `noted`.

        Raises:
            InvalidInput: If a seed does not have the column.
        """
        found = self.noted(name)
        if found is None:
            known = self.tables[0].column_names
            raise InvalidInput(f"the runs of {self.learner} have no column {name!r}{did_you_mean(name, known)}")
        return found

    def noted(self, name: str) -> FloatArray | None:
        """Return the column `name` of all seeds (seeds, C), or None if not all of them have it.

        Learners note what they like, and their watchers see what there is to see.
        """
        if not self.has(name):
            return None
        return np.stack([self._at_common(table, numbers_in(table, name)) for table in self.tables])

    def has(self, name: str) -> bool:
        """Whether all seeds have the column `name`."""
        return all(name in table.column_names for table in self.tables)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """What is one number of a run and is declared by all seeds, by name; times come last."""
        declared = [{column.name: column for column in run_columns(cell)} for cell in self.cells]
        common = {name: column for name, column in declared[0].items() if all(name in other for other in declared)}
        return common | {metric.column.name: metric.column for metric in TIMINGS}

    @cached_property
    def _numbers(self) -> list[dict[str, Any]]:
        """Of each seed, by the names of `columns`."""
        pairs = list(zip(self.cells, self.tables, strict=True))
        times = [{metric.column.name: metric.of(*pair) for metric in TIMINGS} for pair in pairs]
        return [run_numbers(*pair) | time for pair, time in zip(pairs, times, strict=True)]

    @cached_property
    def growth(self) -> Growth:
        """The fitted exponent of the mean regret."""
        return growth_exponent(self.episodes, self.curve(REGRET))

    def number(self, name: str) -> Estimate | None:
        """Return the number `name` over seeds, as its column declares it; None if these runs do not have it."""
        if name == "regret_exponent":  # of the mean of the seeds: the mean of their exponents is another number
            growth = self.growth
            return Estimate(growth.exponent, growth.low, growth.high, len(self.cells))
        column = self.columns.get(name)
        values = [numbers[name] for numbers in self._numbers] if column else []
        return over_seeds(column, values, self.setting.episodes) if column else None

    def __getitem__(self, name: str) -> Estimate:
        """The number `name` over seeds.

        Raises:
            InvalidInput: If these runs do not have it.
        """
        found = self.number(name)
        if found is None:
            raise InvalidInput(f"the runs of {self.learner} have no number {name!r}{did_you_mean(name, self.columns)}")
        return found

    def shown(self, table: str) -> dict[str, tuple[Column, Estimate]]:
        """Return what is declared for `table` ("answer", "checks", "short", "latex" or "board"), by its head.

        Numbers that share a head are added up.
        """
        found: dict[str, tuple[Column, Estimate]] = {}
        for name, column in self.columns.items():
            number = self.number(name) if table in column.tables else None
            if number is not None and column.head in found:
                first, other = found[column.head]
                found[column.head] = first, replace(other, value=other.value + number.value)
            elif number is not None:
                found[column.head] = column, number
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """The columns that are declared for figures: what the learner's plans note, unless it says otherwise."""
        return tuple(
            column.name
            for column in self.cells[0].columns
            if not column.fact and "figures" in column.tables and self.has(column.name)
        )

    def net_violation(self) -> FloatArray:
        """Return the violation with cancellation of all seeds (seeds, C).

        Cheap episodes make up for unsafe ones.
        """
        curves = [net_violation_curve(table, self.thresholds) for table in self.tables]
        return np.stack([self._at_common(table, curve) for table, curve in zip(self.tables, curves, strict=True)])

    @property
    def scored(self) -> str:
        """How the runs were scored: "exact", or "sampled" where the truth is not known."""
        return str(self.cells[0].facts.get("scored", "exact"))

    @property
    def ways(self) -> tuple[str, ...]:
        """How the runs were played: "compiled", "step-wise", or both."""
        return tuple(sorted({str(cell.facts.get("way") or "unknown") for cell in self.cells}))

    def violation(self) -> FloatArray:
        """Return the summed violation of all seeds (seeds, C), of the constraint where it is largest."""
        return np.stack([self._at_common(table, violation_curve(table)) for table in self.tables])

    def margin(self, i: int) -> FloatArray:
        """Return threshold minus cost of constraint `i` for all seeds (seeds, C); negative if violated."""
        return -self.curve(f"excess_{i}")

    def _at_common(self, table: Any, values: FloatArray) -> FloatArray:
        return values[np.isin(numbers_in(table, "episode"), self.episodes)]


def table_columns(groups: Sequence[Group], table: str) -> dict[str, Column]:
    """What some of the groups declare for a table, by name, in the order of declarations; times come last."""
    declared = {name: each for group in groups for name, each in group.columns.items() if table in each.tables}
    times = {metric.column.name: declared.pop(metric.column.name, None) for metric in TIMINGS}
    return declared | {name: each for name, each in times.items() if each}


def heads(groups: Sequence[Group], table: str) -> dict[str, str]:
    """The heads of a table with what they mean: scores, and whatever else some of the groups have a number for."""
    shown = {head for group in groups for head in group.shown(table)}
    found: dict[str, list[str]] = {}
    for name in table_columns(groups, table):
        for each in filter(None, (group.columns.get(name) for group in groups)):
            if table in each.tables and (each in COMMON or each.head in shown):
                found.setdefault(each.head, []).append(each.words)
    return {head: "; ".join(dict.fromkeys(filter(None, words))) for head, words in found.items()}


def table_row(row: Any, table: str, names: Iterable[str]) -> list[TableCell]:
    """The cells of a group, or of a reference row, under these heads; a dash where it has no number."""
    shown = row.shown(table)
    return [number_cell(*shown.get(name, (None, None))) for name in names]


def groups(results: Results) -> list[Group]:
    """The finished cells of a sweep, seeds together, ordered by setting, then learner; `Results.groups` keeps them."""
    found: dict[tuple[Setting, str], list[Cell]] = {}
    for cell in results.done:
        found.setdefault((cell.setting, cell.label("learner")), []).append(cell)
    made = []
    for (setting, learner), cells in found.items():
        cells.sort(key=lambda cell: cell.seed)
        tables = tuple(results.table(cell.id) for cell in cells)
        made.append(Group(setting, learner, tuple(cells), tables, results.load_trace))
    return sorted(made, key=_place)


def _no_trace(name: str) -> None:
    return None


def by_setting(groups: Sequence[Group]) -> list[tuple[Setting, list[Group]]]:
    """Groups under their setting, in their order."""
    found: dict[Setting, list[Group]] = {}
    for group in groups:
        found.setdefault(group.setting, []).append(group)
    return list(found.items())


def _place(group: Group) -> tuple[str, str, int, int, str]:
    setting = group.setting
    order = list(learners.builtin)  # others follow
    kind = order.index(group.kind) if group.kind in order else len(order)
    return setting.world, setting.adversary, setting.episodes, kind, group.learner


LATEX_ABOUT = (
    r"Needs \usepackage{booktabs}.",
    "Means over seeds [95 % intervals, Student's; none for one seed, or for seeds that agree].",
    "Safe: seeds without an unsafe episode. Worst margin: the least of all seeds and episodes.",
    r"At most 15 cm wide, in \footnotesize of a document in 10 pt; columns beyond that follow in a second tabular.",
)


def latex_table(groups: Sequence[Group], caption: str | None = None, label: str | None = None) -> str:
    """The table of all groups; `Results.to_latex` says more."""
    if not groups:
        raise InvalidInput("these results have no finished cell, so there is no table")
    for name, value in (("caption", caption), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"the {name} must be text, not {value!r}")
    if label is not None and not re.fullmatch(r"[^\s\\{}%#&$^_~,]+", label.replace("_", "-")):
        raise InvalidInput(rf"the label {label!r} must be something that \label takes, such as tab:results")
    shown = list(heads(groups, "latex"))
    columns = ["Learner", *(name[:1].upper() + name[1:] for name in shown)]
    tables = []
    for setting, members in groupby(groups, key=lambda group: group.setting):
        table = Table((setting.world, ", ", setting.adversary, ", ", _length(setting)), columns)
        for group in members:
            table.add_row(group.learner, *table_row(group, "latex", shown))
        tables.append(table)
    return latex_tables(tables, about=LATEX_ABOUT, caption=caption, label=label) + "\n"


def _length(setting: Setting) -> Piece:
    return lambda numbers: numbers.named("T", setting.episodes)
