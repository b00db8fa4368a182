"""`read`: an experiment, whose plug-ins are loaded and built for the first time in a process apart.

A file is checked by building what it names. Code of others may do anything meanwhile: end its process, crash, or never
come back. So a file that names such code is read in a process apart, which is ended if loading or building one part
takes longer than the limit of an episode. The experiment that is found there is plain data. This process loads a
plug-in afterwards, for the text that workers are sent, and builds none.

`selected` makes a part of an experiment, or the same experiment with other numbers, an experiment file of its own. What
`hedgerow compare minute --learners s-ops,dope --seeds 3` runs has such a text, so that the directory of results holds
the experiment that was run, and `hedgerow resume` goes on with it like with any other.

    >>> from pathlib import Path
    >>> text = "seeds = 8\\n[[world]]\\nname = 'dope-media'\\n[[world]]\\nname = 'lower-bound-1'\\n"
    >>> print(selected(Source("x.toml", text, Path()), worlds=["lower-bound-1"], seeds=2).text)
    seeds = 2
    world = [
        { name = "lower-bound-1", label = "lower-bound-1" },
    ]
    <BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import tomli_w

from hedgerow.confidence.sets import checked_word
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.isolation import COMPILING, Apart, Beat, Ended
from hedgerow.experiments.options import LIMIT, checked_limit
from hedgerow.experiments.plugins import TABLES, PluginBundle, is_foreign, registered, unpack
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import Experiment, default_label, parse, trial_of
from hedgerow.learners.field.base import ALL_SETS, FieldLearner
from hedgerow.losses.naming import OWN
from hedgerow.results.manifest import PARTS

CHOSEN = {"worlds": "world", "adversaries": "adversary", "learners": "learner"}
"""Arguments of `selected` that are names."""


class _Request(NamedTuple):
    """What to read, over there."""

    source: Source
    choices: dict[str, Any]
    names: tuple[str, ...]
    luggage: PluginBundle


def read(source: Source, limit: float | None = None, **choices: Any) -> Experiment:
    """The experiment in a text, or the part of it that `choices` select (see `selected`).

    Args:
        source: The text.
        limit: Seconds that the loading or the construction of a plug-in may take; None takes what the text says.
        **choices: What to select; nothing keeps all.

    Raises:
        InvalidInput: If there is a mistake; the message has its line.
        Ended: If code of others ended its process or took too long; the message has the line that names the code.
    """
    if limit is not None:
        checked_limit(limit)
    data = source.data()
    foreign = _foreign(data, choices)
    if not foreign:
        return parse(selected(source, **choices))
    names = tuple(dict.fromkeys(name for _, name in foreign))
    request = _Request(source, choices, names, registered(foreign))
    return _read_apart(request, _limit(data) if limit is None else limit)


def _foreign(data: dict[str, Any], choices: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, name) of all code of others; a table that is malformed is left to `parse`."""
    named = [(kind, name) for chosen, kind in CHOSEN.items() for name in choices.get(chosen) or ()]
    for kind in TABLES:
        tables = data.get(kind)
        for table in tables if isinstance(tables, list) else ():
            if isinstance(table, dict) and isinstance(table.get("name"), str):
                named.append((kind, table["name"]))
    return [(kind, name) for kind, name in named if is_foreign(kind, name)]


def _limit(data: dict[str, Any]) -> float:
    try:
        return checked_limit(data.get("limit", LIMIT))
    except InvalidInput:  # `parse` says so, with the line
        return LIMIT


def _read_apart(request: _Request, limit: float) -> Experiment:
    place, told = Apart(), [request.source.name]

    def heard(during: str) -> None:
        if during not in ("", COMPILING):
            told.append(during)

    try:
        found: Experiment = place.call(_read_request, request, limit=limit, heard=heard)
    except Ended as error:
        raise Ended(f"{told[-1]}, {error.how.rstrip(',')}", "", killed=error.killed) from error
    finally:
        place.close()
    return found


def _read_request(request: _Request, beat: Beat) -> Experiment:
    beat(trial_of(request.source, (), ", ".join(request.names)))
    unpack(request.luggage)
    return parse(selected(request.source, **request.choices), beat)


# A part of an experiment ----------------------------------------------------------------------------------------------


def selected(
    source: Source,
    *,
    learners: Sequence[str] = (),
    worlds: Sequence[str] = (),
    adversaries: Sequence[str] = (),
    seeds: int | None = None,
    episodes: int | None = None,
    sets: str | None = None,
    offered: Sequence[str] = (),
) -> Source:
    """The experiment with fewer parts or other numbers; itself if nothing is asked for.

    Args:
        source: The experiment.
        learners: Labels or names of the file, in any order; a name that it does not have is looked up, with its
            defaults and the baseline that the world offers. Nothing keeps all of them.
        worlds: The same for worlds.
        adversaries: The same for adversaries.
        seeds: The number of seeds.
        episodes: The number of episodes.
        sets: Confidence sets, such as "source" or "sharpest", for all learners of the field that take these.
        offered: Labels of learners that take the baseline that the world offers, if they need one.

    Raises:
        InvalidInput: If something is not there, or the file cannot be read.
    """
    numbers = {key: value for key, value in (("seeds", seeds), ("episodes", episodes)) if value is not None}
    wanted = {"world": worlds, "adversary": adversaries, "learner": learners}
    if sets is not None:
        checked_word(sets, ALL_SETS)
    if not numbers and not any(wanted.values()) and sets is None and not offered:
        return source
    data = source.data()
    tables = {kind: _tables(source, data, kind) for kind in PARTS if kind in data}
    for kind, names in wanted.items():
        if names:
            tables[kind] = [table for name in names for table in _named(source, kind, name, tables.get(kind, []))]
            tables[kind] = list({table["label"]: table for table in tables[kind]}.values())
    if sets is not None:
        tables["learner"] = [_with_sets(source, table, sets) for table in tables.get("learner", [])]
    if offered:
        tables["learner"] = [
            _with_baseline(source, table) if table["label"] in offered else table for table in tables["learner"]
        ]
    return replace(source, text=tomli_w.dumps({**data, **numbers, **tables}))


def _tables(source: Source, data: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """The tables of a kind, each with its label: what is changed in them is not to change how they are called."""
    given = data[kind]
    if not isinstance(given, list) or not all(isinstance(table, dict) and _is_named(table) for table in given):
        raise source.mistake((kind,), f"write one or more tables [[{kind}]], each with a name")
    return [{**table, "label": table.get("label") or _label(kind, table)} for table in given]


def _is_named(table: Mapping[str, Any]) -> bool:
    return isinstance(table.get("name", table.get(components.FILE)), str)


def _label(kind: str, table: Mapping[str, Any]) -> str:
    given = {key: value for key, value in table.items() if key != "label"}
    return default_label(kind, given if "name" in given else {"name": components.FILE, **given})


def _named(source: Source, kind: str, name: str, tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a name stands for: the tables of this label or else of this name, or something the file does not have."""
    for key in ("label", "name"):
        found = [table for table in tables if table.get(key) == name]
        if found:
            return found
    if not (kind == "adversary" and name == OWN):
        _find(source, kind, name, tables)
    table: dict[str, Any] = {"name": name, "label": short_name(name)}
    return [_with_baseline(source, table) if kind == "learner" else table]


def short_name(name: str) -> str:
    """What people call a name: `Greedy` for greedy.py:Greedy."""
    return name.rpartition(":")[2]


def _with_baseline(source: Source, table: dict[str, Any]) -> dict[str, Any]:
    """The table of a learner of which only the name was given: if it needs a baseline, it takes what a world offers."""
    try:
        found = TABLES["learner"].look_up(table["name"], source.folder)
        needed = "baseline" in found.signature.parameters and components.needs_baseline(found.target)
    except InvalidInput:  # `parse` says so, with its place
        return table
    return {**table, "baseline": "offered"} if needed else table


def _find(source: Source, kind: str, name: str, tables: Sequence[Mapping[str, Any]]) -> None:
    try:
        TABLES[kind].look_up(name, source.folder)
    except InvalidInput as error:
        has, words = ", ".join(str(table["label"]) for table in tables), str(error)
        raise InvalidInput(f"{words}{'' if words.endswith('?') else ';'} {source.name} has: {has}") from error


def _with_sets(source: Source, table: dict[str, Any], sets: str) -> dict[str, Any]:
    found = TABLES["learner"].look_up(table["name"], source.folder)
    of_field = isinstance(found.target, type) and issubclass(found.target, FieldLearner) and sets in found.target.words
    return {**table, "sets": sets} if of_field and "sets" in found.signature.parameters else table
