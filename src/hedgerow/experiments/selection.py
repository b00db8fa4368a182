"""A part of an experiment, or the same experiment with other numbers, as an experiment file of its own.

`hedgerow compare minute --learners s-ops,dope --seeds 3` runs a file that nobody wrote. Its text is made here, so that
the directory of results holds the experiment that was run, and `hedgerow resume` goes on with it like with any other.

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
from typing import Any

import tomli_w

from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import OWN
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import default_label
from hedgerow.learners.field.base import RADII, FieldLearner
from hedgerow.registry import adversaries as all_adversaries
from hedgerow.registry import learners as all_learners
from hedgerow.registry import worlds as all_worlds
from hedgerow.results.manifest import PARTS

_TABLES = {"world": all_worlds, "adversary": all_adversaries, "learner": all_learners}


def selected(
    source: Source,
    *,
    learners: Sequence[str] = (),
    worlds: Sequence[str] = (),
    adversaries: Sequence[str] = (),
    seeds: int | None = None,
    episodes: int | None = None,
    radii: str | None = None,
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
        radii: "source" or "hedgerow", for all learners of the field that take it.

    Raises:
        InvalidInput: If something is not there, or the file cannot be read.
    """
    numbers = {key: value for key, value in (("seeds", seeds), ("episodes", episodes)) if value is not None}
    wanted = {"world": worlds, "adversary": adversaries, "learner": learners}
    if radii is not None and radii not in RADII:
        raise InvalidInput(f"the radii are {radii!r}; choose 'source' or 'hedgerow'")
    if not numbers and not any(wanted.values()) and radii is None:
        return source
    data = source.data()
    tables = {kind: _tables(source, data, kind) for kind in PARTS if kind in data}
    for kind, names in wanted.items():
        if names:
            tables[kind] = [table for name in names for table in _named(source, kind, name, tables.get(kind, []))]
            tables[kind] = list({table["label"]: table for table in tables[kind]}.values())
    if radii is not None:
        tables["learner"] = [_with_radii(source, table, radii) for table in tables.get("learner", [])]
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
    table: dict[str, Any] = {"name": name}
    if kind == "learner" and components.needs_baseline(all_learners.look_up(name, source.folder).target):
        table["baseline"] = "offered"
    return [{**table, "label": name.rpartition(":")[2]}]


def _find(source: Source, kind: str, name: str, tables: Sequence[Mapping[str, Any]]) -> None:
    try:
        _TABLES[kind].look_up(name, source.folder)
    except InvalidInput as error:
        has = ", ".join(str(table["label"]) for table in tables)
        raise InvalidInput(f"{source.name} has no {kind} {name!r}, and {error}; the file has: {has}") from error


def _with_radii(source: Source, table: dict[str, Any], radii: str) -> dict[str, Any]:
    found = all_learners.look_up(table["name"], source.folder)
    of_field = isinstance(found.target, type) and issubclass(found.target, FieldLearner)
    return {**table, "radii": radii} if of_field and "radii" in found.signature.parameters else table
