"""Read an experiment file strictly: an unknown, missing or wrong entry is an error with line and field.

    title = "Two learners, one world"       # text, optional; so is description
    seed = 0                                # the one number that all chance comes from (default 0)
    seeds = 4                               # repetitions 0..3; or a list of them
    episodes = [10_000, 100_000]            # lengths of runs; or one number
    delta = 0.01                            # failure probability (default 0.01)
    trace = false                           # also keep every single episode
    declined = "skip"                       # leave out worlds that a learner or adversary declines; else an error
    limit = 600                             # seconds that an episode of a learner of others may take (default 60)

    [[world]]                               # one or more: a catalogue entry with its parameters, or file = "world.npz"
    name = "random-layered"
    layers = [1, 3, 3, 1]
    label = "small"                         # how tables and file names call it; made of the parameters if missing

    [[adversary]]                           # one or more: losses with their parameters, "own", or file = "losses.npz"
    name = "switching"
    period = 1000

    [[learner]]                             # one or more: preset, switches, baseline
    name = "s-ops"
    preset = "sharp"

    [[learner]]                             # worlds, adversaries and learners of others: file.py:Name beside this file,
    name = "greedy.py:Greedy"               # package.module:Name, or a name that is registered or installed
    rate = 0.5                              # what its constructor takes

Every world meets every adversary, learner, number of episodes and seed: each combination is a cell, a `CellSpec`. It is
the same whether it comes from a file, from the command line or from Python, and says all that a run depends on.

All chance of a sweep comes from one SeedSequence. A cell takes the child that belongs to its own seed s (`spawn_key`
(s,)). It does not depend on the order of the cells, on their number, or on where they run. Cells that differ in the
learner only meet the same world, the same losses and the same streams: learners are compared on equal terms. Without a
root (`root_seed` None) the cell's seed is itself the seed of world, learner and adversary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from numpy.random import SeedSequence

from hedgerow.checks import did_you_mean, num_episodes, positive_share, seed_number, short_repr, whole_number
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import FILE, PLUG_IN, BuiltWorld, ComponentSpec, SpecError, without_path
from hedgerow.experiments.isolation import Beat
from hedgerow.experiments.options import LIMIT, checked_limit
from hedgerow.experiments.plugins import is_foreign, is_ours
from hedgerow.experiments.source import Source, Where, find
from hedgerow.learners.api import DELTA
from hedgerow.learners.ops.settings import DEFAULT_PRESET
from hedgerow.registry import learners
from hedgerow.results.manifest import PARTS, canonical, cell_hash, cell_id, fingerprint

MOST_CELLS = 1_000_000
LONGEST_LABEL = 60
REFUSE, SKIP = "refuse", "skip"
"""What becomes of an experiment in which a learner or an adversary declines a world."""
_QUIET = {"world": (), "adversary": ("period", "step", "rate", "noise"), "learner": ("preset",)}
"""Keys whose values stand in a label without their name."""


class CellSeeds(NamedTuple):
    """The seeds of a cell."""

    simulation: int
    learner: int
    adversary: int


@dataclass(frozen=True)
class CellSpec:
    """A cell: all that its run depends on, and what people call it."""

    world: ComponentSpec
    adversary: ComponentSpec
    learner: ComponentSpec
    episodes: int
    delta: float
    seed: int
    root_seed: int | None
    """The seed of the experiment; None if the cell's own seed is used as it is"""
    label: Mapping[str, str] = field(default_factory=dict)
    """What tables and file names call world, adversary and learner; no part of the hash"""
    marks: int | None = None
    """About so many checkpoints; None takes the usual number"""
    watch: Mapping[str, Any] | None = None
    """Options of the learner's own watcher, such as {"audit": True, "notes": True, "estimator": True}"""

    @cached_property
    def data(self) -> dict[str, Any]:
        """The cell as plain data, as files hold it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"world": without_path(self.world), "adversary": without_path(self.adversary)}
        return {name: value for name, value in values.items() if value is not None or name == "root_seed"}

    @cached_property
    def id(self) -> str:
        """The name of the cell, for people and file names."""
        return cell_id(self.data)

    @cached_property
    def hash(self) -> str:
        """The fingerprint of everything but the labels: equal hashes mean equal runs."""
        return cell_hash(self.data)

    @cached_property
    def seeds(self) -> CellSeeds:
        """The seeds of the cell, independent of all other cells but those with the same seed."""
        if self.root_seed is None:
            return CellSeeds(self.seed, self.seed, self.seed)
        child = SeedSequence(self.root_seed, spawn_key=(self.seed,))
        return CellSeeds(*(int(word) for word in child.generate_state(3, "uint64")))

    @property
    def parts(self) -> tuple[ComponentSpec, ComponentSpec, ComponentSpec]:
        """World, adversary and learner."""
        return self.world, self.adversary, self.learner

    @property
    def is_foreign(self) -> bool:
        """Whether the cell runs code that is not ours."""
        return any(PLUG_IN in part and not is_ours(part["name"]) for part in self.parts)


@dataclass(frozen=True)
class SpecEntry:
    """A world, adversary or learner as the file gives it."""

    given: ComponentSpec
    label: str
    where: Where

    @property
    def kind(self) -> str:
        """ "world", "adversary" or "learner"."""
        return str(self.where[0])

    @property
    def is_foreign(self) -> bool:
        """Whether it is code of others."""
        return is_foreign(self.kind, self.given["name"])


@dataclass(frozen=True)
class SkippedCell:
    """A world that a learner or an adversary declines for a number of episodes, and why."""

    world: str
    """The label of the world."""
    kind: str
    """"learner" or "adversary": who declines."""
    label: str
    """Its label."""
    episodes: int
    why: str
    adversary: str = ""
    """The label of the only adversary that a learner declines there; empty if it declines the world"""


@dataclass(frozen=True)
class Experiment:
    """What a file says, checked."""

    source: Source
    title: str
    description: str
    seed: int
    seeds: tuple[int, ...]
    episodes: tuple[int, ...]
    delta: float
    trace: bool
    worlds: tuple[SpecEntry, ...]
    adversaries: tuple[SpecEntry, ...]
    learners: tuple[SpecEntry, ...]
    skips: bool = False
    """Whether cells that are declined are left out"""
    limit: float = LIMIT
    """Seconds that an episode of a cell with plug-in code may take; what comes out does not depend on it"""
    declined: tuple[SkippedCell, ...] = ()
    resolved: Mapping[tuple[str, str, int], ComponentSpec] = field(default_factory=dict)
    """Complete descriptions by kind, label and number of episodes: what a file gives is completed once"""

    @property
    def name(self) -> str:
        """A short name that is safe for a directory."""
        return Path(self.source.name).stem

    @property
    def folder(self) -> Path:
        return self.source.folder

    def as_data(self) -> dict[str, Any]:
        """The experiment without its titles, as plain data."""
        entries = {"world": self.worlds, "adversary": self.adversaries, "learner": self.learners}
        return {
            "seed": self.seed,
            "seeds": list(self.seeds),
            "episodes": list(self.episodes),
            "delta": self.delta,
            "trace": self.trace,
            **({"declined": SKIP} if self.skips else {}),
            **{
                kind: [{**without_path(item.given), "label": item.label} for item in items]
                for kind, items in entries.items()
            },
        }


def load(name_or_path: str) -> Experiment:
    """The experiment of a name that ships with the package, or in a TOML file."""
    return parse(find(name_or_path))


def parse(source: Source, beat: Beat | None = None) -> Experiment:
    """The experiment in a text; the first mistake is raised with its line and field.

    Plug-ins are loaded and built in this process: `reading.read` does so in another one. `beat` is called with what
    comes next.
    """
    data = source.data()
    for key in data:
        if key not in TOP:
            near = "; write [[world]]" if key == "instance" else did_you_mean(key, TOP)
            raise source.mistake((key,), f"unknown entry{near.replace('known:', 'an experiment has:')}")
    reader = _Reader(source, data)
    numbers = {key: reader.number(key, check, default) for key, (check, default) in NUMBERS.items()}
    skips = numbers.pop("declined") == SKIP
    worlds, adversaries, learners = (reader.entries(kind) for kind in PARTS)
    title, description = reader.text("title"), reader.text("description")
    experiment = Experiment(
        source, title, description, worlds=worlds, adversaries=adversaries, learners=learners, skips=skips, **numbers
    )
    _check_size(experiment)
    trial = _Trial(experiment, beat)
    trial.run()
    return replace(experiment, declined=tuple(trial.declined), resolved=trial.resolved)


class _Reader:
    """Reads entries of the data and turns mistakes into errors with a line."""

    def __init__(self, source: Source, data: Mapping[str, Any]) -> None:
        self.source, self.data = source, data

    def text(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str):
            raise self.source.mistake((key,), f"must be a text in quotation marks, not {short_repr(value)}")
        return value

    def number(self, key: str, check: Callable[[Any], Any], default: Any = None) -> Any:
        if key not in self.data:
            if default is None:
                raise self.source.mistake((), f"the entry {key!r} is missing")
            return default
        try:
            return check(self.data[key])
        except InvalidInput as error:
            raise self.source.mistake((key,), str(error)) from error

    def entries(self, key: str) -> tuple[SpecEntry, ...]:
        tables = self.data.get(key)
        if tables is None:
            raise self.source.mistake((), f"there is no {key}; add a table [[{key}]] with its name")
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise self.source.mistake((key,), f"write one or more tables [[{key}]], with double brackets")
        found = tuple(self._entry(key, number, table) for number, table in enumerate(tables))
        labels: dict[str, int] = {}
        for number, item in enumerate(found):
            if item.label in labels:
                raise self.source.mistake(
                    item.where,
                    f"is called {item.label!r} like {key} {labels[item.label] + 1}; give one of them a label",
                )
            labels[item.label] = number
        return found

    def _entry(self, key: str, number: int, table: Mapping[str, Any]) -> SpecEntry:
        where = (key, number)
        given = {name: value for name, value in table.items() if name != "label"}
        if key != "learner" and "name" not in given and FILE in given:
            given = {"name": FILE, **given}
        if not isinstance(given.get("name"), str):
            raise self.source.mistake(
                (*where, "name"), "must be a text in quotation marks" if "name" in given else "the name is missing"
            )
        given = {"name": given.pop("name"), **given}
        label = table.get("label", default_label(key, given))
        if not isinstance(label, str) or not 0 < len(label) <= LONGEST_LABEL:
            raise self.source.mistake((*where, "label"), f"must be a text of 1 to {LONGEST_LABEL} characters")
        return SpecEntry(given, label, where)


def default_label(key: str, given: ComponentSpec) -> str:
    """How a part of an experiment is called that has no label; `key` is world, adversary or learner."""
    named = {"preset": DEFAULT_PRESET, **given} if key == "learner" and _has_presets(given["name"]) else given
    return label_of(named, _QUIET[key])[:LONGEST_LABEL]


def label_of(given: ComponentSpec, quiet: tuple[str, ...] = ()) -> str:
    """The name of a part and what was given; the keys in `quiet` are understood without their name."""
    words = [str(given["name"]).rpartition(":")[2]]
    for key, value in given.items():
        if key != "name":
            words.append(_in_label(value) if key in quiet else f"{key}={_in_label(value)}")
    return "-".join(words)


def _in_label(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, int) for item in value) and len(value) <= 12:
        return "x".join(map(str, value))
    if isinstance(value, list):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:6]
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "+")


def _has_presets(name: str) -> bool:
    return name in learners.builtin and components.has_presets(learners.find(name))


def _lengths(value: Any) -> tuple[int, ...]:
    return _distinct(num_episodes, value if isinstance(value, list) else [value])


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        return _distinct(lambda seed: whole_number("a seed", seed, 0), value)
    return tuple(range(min(whole_number("the number of seeds", value, 1), MOST_CELLS + 1)))


def _distinct(check: Callable[[Any], int], values: list[Any]) -> tuple[int, ...]:
    numbers = tuple(map(check, values))
    if not numbers:
        raise InvalidInput("the list is empty")
    if len(set(numbers)) != len(numbers):
        raise InvalidInput("the list names a number twice")
    return numbers


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {short_repr(value)}")
    return value


def _choice(value: Any) -> str:
    if value not in (REFUSE, SKIP):
        raise InvalidInput(f"must be {REFUSE!r} or {SKIP!r}, not {short_repr(value)}")
    return str(value)


NUMBERS: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "seed": (seed_number, 0),
    "episodes": (_lengths, None),
    "seeds": (_seeds, None),
    "delta": (lambda value: positive_share("delta", value, below_one=True), DELTA),
    "trace": (_flag, False),
    "declined": (_choice, REFUSE),
    "limit": (checked_limit, LIMIT),
}
"""Entries of the document itself: how each is checked, and what it is if it is missing; None for an error."""
TOP = ("title", "description", *NUMBERS, *PARTS)


def _check_size(experiment: Experiment) -> None:
    count = len(experiment.seeds) * len(experiment.episodes)
    for items in (experiment.worlds, experiment.adversaries, experiment.learners):
        count *= len(items)
    if count > MOST_CELLS:
        raise experiment.source.mistake(("seeds",), f"this makes more than {MOST_CELLS:,} cells; split it")


def trial_of(source: Source, where: Where, name: str) -> str:
    """The beginning of a sentence about what code of others does when it is tried."""
    return str(source.mistake(where, f"in a trial of {name}"))


class _Trial:
    """Completes and builds what can be built before anything runs: worlds, adversaries on their layouts, baselines of
    learners. Notes what is declined, in an experiment that skips it; otherwise it is a mistake like any other.
    """

    def __init__(self, experiment: Experiment, beat: Beat | None) -> None:
        self.experiment, self.beat, self.folder = experiment, beat, experiment.folder
        self.resolved: dict[tuple[str, str, int], ComponentSpec] = {}
        self.declined: list[SkippedCell] = []
        self._worlds: dict[str, BuiltWorld] = {}  # by their description: most do not depend on the number of episodes
        entries = (*experiment.worlds, *experiment.adversaries, *experiment.learners)
        self._build_world = (
            components.build_world if any(item.is_foreign for item in entries) else components.shared_world
        )

    def run(self) -> None:
        for item in self.experiment.learners:
            complete = self._placed(item, components.complete_learner, item.given, self.folder)
            for episodes in self.experiment.episodes:
                self.resolved["learner", item.label, episodes] = complete
        for episodes in self.experiment.episodes:
            present = [(item, self._world(item, episodes)) for item in self.experiment.worlds]
            for item in self.experiment.adversaries:
                part = self._complete(item, components.complete_adversary, episodes)
                for world, built in present:
                    given = part, built, episodes, self.folder
                    if self._check(world, episodes, item, components.check_adversary, *given):
                        self._try_those_who_know(world, built, item, part, episodes)

    def _world(self, item: SpecEntry, episodes: int) -> BuiltWorld:
        """The world of a number of episodes, after learners were tried in it."""
        part = self._complete(item, components.complete_world, episodes)
        key = canonical(part)
        known = key in self._worlds
        if not known:
            self._worlds[key] = self._placed(item, self._build_world, part, self.folder)
        if not known or self.experiment.skips:  # what is declined may depend on the number of episodes
            for learner in self.experiment.learners:
                self._check(item, episodes, learner, self._try_learner, learner, item, self._worlds[key], episodes)
        return self._worlds[key]

    def _complete(self, item: SpecEntry, complete: Callable[..., ComponentSpec], episodes: int) -> ComponentSpec:
        found: ComponentSpec = self._placed(item, complete, item.given, episodes, self.folder)
        self.resolved[item.kind, item.label, episodes] = found
        return found

    def _try_learner(self, item: SpecEntry, world: SpecEntry, built: BuiltWorld, episodes: int) -> None:
        part = self.resolved["learner", item.label, episodes]
        try:
            components.check_learner(part, built, episodes, self.experiment.delta, self.folder)
        except SpecError as error:
            if self.experiment.skips:
                raise
            raise SpecError(error.key, f"in the world {world.label!r}: {error}") from error

    def _try_those_who_know(
        self, world: SpecEntry, built: BuiltWorld, adversary: SpecEntry, part: ComponentSpec, episodes: int
    ) -> None:
        """Try the learners that are given the losses themselves, which may not be known before the run."""
        for item in self.experiment.learners:
            learner = self.resolved["learner", item.label, episodes]
            given = learner, part, built, episodes, self.experiment.delta, self.folder
            self._check(world, episodes, item, components.check_pair, *given, adversary=adversary.label)

    def _check(
        self,
        world: SpecEntry,
        episodes: int,
        item: SpecEntry,
        action: Callable[..., Any],
        *given: Any,
        adversary: str = "",
    ) -> bool:
        """Whether it fits; what does not is noted."""
        try:
            self._placed(item, action, *given, world=world)
        except InvalidInput as error:
            if not self.experiment.skips:
                raise
            why = str(error.__cause__ or error)
            self.declined.append(SkippedCell(world.label, item.kind, item.label, episodes, why, adversary))
            return False
        return True

    def _placed(self, item: SpecEntry, action: Callable[..., Any], *given: Any, world: SpecEntry | None = None) -> Any:
        """The result of `action`; its mistakes get a line."""
        source = self.experiment.source
        if self.beat is not None:  # a baseline may be the world's, so a learner of ours may run code of others
            others = [part for part in (item, world) if part is not None and part.is_foreign]
            self.beat(trial_of(source, others[0].where, others[0].given["name"]) if others else "")
        try:
            return action(*given)
        except SpecError as error:
            where = item.where if error.key is None else (*item.where, error.key)
            raise source.mistake(where, str(error)) from error
        except HedgerowError as error:
            raise source.mistake(item.where, str(error)) from error
        except (MemoryError, OverflowError, ValueError) as error:  # sizes that no array can have
            raise source.mistake(item.where, f"cannot be built: {short_repr(str(error))}") from error


def cells_of(experiment: Experiment) -> tuple[CellSpec, ...]:
    """All cells; learners vary fastest, and a sweep shows results of each of them early."""
    left_out = {(item.kind, item.world, item.label, item.episodes, item.adversary) for item in experiment.declined}
    cells = []
    for episodes, seed, *chosen in product(
        experiment.episodes, experiment.seeds, experiment.worlds, experiment.adversaries, experiment.learners
    ):
        label = {item.kind: item.label for item in chosen}
        world, against = label["world"], label["adversary"]
        declines = [
            ("adversary", against, ""),
            ("learner", label["learner"], ""),
            ("learner", label["learner"], against),
        ]
        if any((kind, world, name, episodes, only) in left_out for kind, name, only in declines):
            continue
        parts: dict[str, Any] = {kind: experiment.resolved[kind, name, episodes] for kind, name in label.items()}
        root = experiment.seed
        cells.append(
            CellSpec(**parts, episodes=episodes, delta=experiment.delta, seed=seed, root_seed=root, label=label)
        )
    if not cells:
        reasons = "; ".join(dict.fromkeys(item.why for item in experiment.declined))
        raise InvalidInput(f"{experiment.source.name}: every cell is declined, so there is nothing to run: {reasons}")
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            raise InvalidInput(f"{experiment.source.name}: two cells would be called {cell.id}; change a label")
        seen.add(cell.id)
    return tuple(cells)


def experiment_data(experiment: Experiment, cells: tuple[CellSpec, ...]) -> dict[str, Any]:
    """The experiment as data, tied to the exact content of its cells."""
    return {**experiment.as_data(), "cells": fingerprint({cell.id: cell.hash for cell in cells})}
