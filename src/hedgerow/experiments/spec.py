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

    [[adversary]]                           # one or more: a kind of losses with its parameters, or "own"
    name = "switching"
    period = 1000

    [[learner]]                             # one or more: preset, switches, baseline
    name = "s-ops"
    preset = "sharp"

    [[learner]]                             # worlds, adversaries and learners of others: file.py:Name beside this file,
    name = "greedy.py:Greedy"               # package.module:Name, or a name that is registered or installed
    rate = 0.5                              # what its constructor takes

Every world meets every adversary, learner, number of episodes and seed: each combination is a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.checks import positive_share, real_number, seed_number, short_repr, whole_number
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import FILE, ComponentSpec, SpecError
from hedgerow.experiments.isolation import Beat
from hedgerow.experiments.plugins import is_foreign
from hedgerow.experiments.source import Source, Where, find
from hedgerow.registry import learners
from hedgerow.results.manifest import canonical

TOP = (
    "title",
    "description",
    "seed",
    "seeds",
    "episodes",
    "delta",
    "trace",
    "declined",
    "limit",
    "world",
    "adversary",
    "learner",
)
MOST_CELLS = 1_000_000
LIMIT, LONGEST = 60.0, 1e9
"""Seconds that an episode of a learner of others may take: unless a file says otherwise, and at most."""
LONGEST_LABEL = 60
REFUSE, SKIP = "refuse", "skip"
"""What becomes of an experiment in which a learner or an adversary declines a world."""
_QUIET = {"world": (), "adversary": ("period", "step", "rate", "noise"), "learner": ("preset",)}
"""Keys whose values stand in a label without their name."""


@dataclass(frozen=True)
class SpecEntry:
    """A world, adversary or learner as the file gives it."""

    given: ComponentSpec
    label: str
    where: Where

    @property
    def is_foreign(self) -> bool:
        """Whether it is code of others."""
        return is_foreign(str(self.where[0]), self.given["name"])


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
    declined: tuple[SkippedCell, ...] = ()
    limit: float = LIMIT
    """Seconds that an episode of a cell with plug-in code may take; what comes out does not depend on it"""

    @property
    def name(self) -> str:
        """A short name that is safe for a directory."""
        return Path(self.source.name).stem

    @property
    def folder(self) -> Path:
        return self.source.folder

    def as_data(self) -> dict[str, Any]:
        """The experiment without its titles, as plain data."""
        ingredients = {"world": self.worlds, "adversary": self.adversaries, "learner": self.learners}
        return {
            "seed": self.seed,
            "seeds": list(self.seeds),
            "episodes": list(self.episodes),
            "delta": self.delta,
            "trace": self.trace,
            **({"declined": SKIP} if self.skips else {}),
            **{kind: [{**item.given, "label": item.label} for item in items] for kind, items in ingredients.items()},
        }


def load(name_or_path: str) -> Experiment:
    """The experiment of a name that ships with the package, or in a TOML file."""
    return parse(find(name_or_path))


def parse(source: Source, beat: Beat | None = None) -> Experiment:
    """The experiment in a text; the first mistake is raised with its line and field.

    Plug-ins are loaded and built in this process: `trial.read` does so in another one. `beat` is told what comes next.
    """
    data = source.data()
    for key in data:
        if key not in TOP:
            advice = "; write [[world]]" if key == "instance" else ""
            raise source.mistake((key,), f"unknown entry{advice}; an experiment has: {', '.join(TOP)}")
    reader = _Reader(source, data)
    lengths = reader.numbers("episodes", _lengths)
    experiment = Experiment(
        source=source,
        title=reader.text("title"),
        description=reader.text("description"),
        seed=reader.numbers("seed", seed_number, 0),
        seeds=reader.numbers("seeds", _seeds),
        episodes=lengths,
        delta=reader.numbers("delta", lambda value: positive_share("delta", value, below_one=True), 0.01),
        trace=reader.numbers("trace", _flag, False),
        worlds=reader.ingredients("world"),
        adversaries=reader.ingredients("adversary"),
        learners=reader.ingredients("learner"),
        skips=reader.numbers("declined", _choice, REFUSE) == SKIP,
        limit=reader.numbers("limit", checked_limit, LIMIT),
    )
    _check_size(experiment)
    return replace(experiment, declined=_check_parts(experiment, beat))


class _Reader:
    """Reads entries of the data and turns mistakes into errors with a line."""

    def __init__(self, source: Source, data: Mapping[str, Any]) -> None:
        self.source, self.data = source, data

    def text(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str):
            raise self.source.mistake((key,), f"must be a text in quotation marks, not {short_repr(value)}")
        return value

    def numbers(self, key: str, check: Callable[[Any], Any], default: Any = None) -> Any:
        if key not in self.data:
            if default is None:
                raise self.source.mistake((), f"the entry {key!r} is missing")
            return default
        try:
            return check(self.data[key])
        except InvalidInput as error:
            raise self.source.mistake((key,), str(error)) from error

    def ingredients(self, key: str) -> tuple[SpecEntry, ...]:
        tables = self.data.get(key)
        if tables is None:
            raise self.source.mistake((), f"there is no {key}; add a table [[{key}]] with its name")
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise self.source.mistake((key,), f"write one or more tables [[{key}]], with double brackets")
        found = tuple(self._ingredient(key, number, table) for number, table in enumerate(tables))
        labels: dict[str, int] = {}
        for number, item in enumerate(found):
            if item.label in labels:
                raise self.source.mistake(
                    item.where,
                    f"is called {item.label!r} like {key} {labels[item.label] + 1}; give one of them a label",
                )
            labels[item.label] = number
        return found

    def _ingredient(self, key: str, number: int, table: Mapping[str, Any]) -> SpecEntry:
        where = (key, number)
        given = {name: value for name, value in table.items() if name != "label"}
        if key == "world" and "name" not in given and FILE in given:
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
    named = {"preset": "paper", **given} if key == "learner" and _has_presets(given["name"]) else given
    return components.default_label(named, _QUIET[key])[:LONGEST_LABEL]


def _has_presets(name: str) -> bool:
    return name in learners.builtin and components.has_presets(learners.find(name))


def _lengths(value: Any) -> tuple[int, ...]:
    return _distinct("the number of episodes", value if isinstance(value, list) else [value], 1)


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        return _distinct("a seed", value, 0)
    return tuple(range(min(whole_number("the number of seeds", value, 1), MOST_CELLS + 1)))


def _distinct(what: str, values: list[Any], least: int) -> tuple[int, ...]:
    numbers = tuple(whole_number(what, value, least) for value in values)
    if not numbers:
        raise InvalidInput("the list is empty")
    if len(set(numbers)) != len(numbers):
        raise InvalidInput("the list names a number twice")
    return numbers


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {short_repr(value)}")
    return value


def checked_limit(value: Any) -> float:
    """A time limit in seconds: a positive number, infinite for none."""
    limit = np.inf if value == np.inf else real_number("the time limit", value, 0.0, LONGEST)
    if limit <= 0.0:
        raise InvalidInput(f"the time limit is {value!r} s; it must be positive, or inf for none")
    return limit


def _choice(value: Any) -> str:
    if value not in (REFUSE, SKIP):
        raise InvalidInput(f"must be {REFUSE!r} or {SKIP!r}, not {short_repr(value)}")
    return str(value)


def _check_size(experiment: Experiment) -> None:
    count = len(experiment.seeds) * len(experiment.episodes)
    for items in (experiment.worlds, experiment.adversaries, experiment.learners):
        count *= len(items)
    if count > MOST_CELLS:
        raise experiment.source.mistake(("seeds",), f"this makes more than {MOST_CELLS:,} cells; split it")


def trial_of(source: Source, where: Where, name: str) -> str:
    """The beginning of a sentence about what code of others does when it is tried."""
    return str(source.mistake(where, f"in a trial of {name}"))


def _check_parts(experiment: Experiment, beat: Beat | None) -> tuple[SkippedCell, ...]:
    """Build what can be built before anything runs: worlds, adversaries on their layouts, baselines of learners.

    Returns what is declined, in an experiment that skips it; otherwise it is a mistake like any other.
    """
    folder = experiment.folder

    def placed(item: SpecEntry, action: Callable[..., Any], *given: Any, world: SpecEntry | None = None) -> Any:
        if beat is not None:  # a baseline may be the world's, so a learner of ours may build a world of others
            others = [part for part in (item, world) if part is not None and part.is_foreign]
            beat(trial_of(experiment.source, others[0].where, others[0].given["name"]) if others else "")
        return _placed(experiment, item, action, *given)

    learners = [(item, placed(item, components.complete_learner, item.given, folder)) for item in experiment.learners]
    worlds: dict[str, Any] = {}  # by their description: most do not depend on the number of episodes
    declined: list[SkippedCell] = []

    def check(world: SpecEntry, episodes: int, item: SpecEntry, action: Callable[..., Any], *given: Any) -> None:
        try:
            placed(item, action, *given, world=world)
        except InvalidInput as error:
            if not experiment.skips:
                raise
            kind, why = str(item.where[0]), str(error.__cause__ or error)
            declined.append(SkippedCell(world.label, kind, item.label, episodes, why))

    for episodes in experiment.episodes:
        present = []
        for world in experiment.worlds:
            part = placed(world, components.complete_world, world.given, episodes, folder)
            key = canonical(part)
            known = key in worlds
            if not known:
                worlds[key] = placed(world, components.build_world, part, folder)
            present.append((world, *worlds[key]))
            if not known or experiment.skips:  # what is declined may depend on the number of episodes
                for item, description in learners:
                    where = worlds[key][0], part, world.label, experiment, episodes
                    check(world, episodes, item, _try_learner, description, *where)
        for item in experiment.adversaries:
            part = placed(item, components.complete_adversary, item.given, episodes, folder)
            for world, cmdp, loss in present:
                given = part, cmdp, loss, episodes, folder
                check(world, episodes, item, components.check_adversary, *given)
    return tuple(declined)


def _try_learner(
    part: ComponentSpec, cmdp: Any, world: ComponentSpec, label: str, experiment: Experiment, episodes: int
) -> None:
    try:
        components.check_learner(part, cmdp, episodes, experiment.delta, experiment.folder, world)
    except SpecError as error:
        if experiment.skips:
            raise
        raise SpecError(error.key, f"in the world {label!r}: {error}") from error


def _placed(experiment: Experiment, item: SpecEntry, action: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `action`; its mistakes get a line."""
    try:
        return action(*arguments)
    except SpecError as error:
        where = item.where if error.key is None else (*item.where, error.key)
        raise experiment.source.mistake(where, str(error)) from error
    except HedgerowError as error:
        raise experiment.source.mistake(item.where, str(error)) from error
    except (MemoryError, OverflowError, ValueError) as error:  # sizes that no array can have
        raise experiment.source.mistake(item.where, f"cannot be built: {short_repr(str(error))}") from error
