"""`read`: an experiment, whose plug-ins are loaded and built for the first time in a process apart.

A file is checked by building what it names. Code of others may do anything meanwhile: end its process, crash, or never
come back. So a file that names such code is read in a process apart, which is ended if loading or building one part
takes longer than the limit of an episode. The experiment that is found there is plain data. This process loads a
plug-in afterwards, for the text that workers are sent, and builds none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hedgerow.errors import InvalidInput
from hedgerow.experiments.isolation import COMPILING, Apart, Beat, Ended
from hedgerow.experiments.options import LIMIT, checked_limit
from hedgerow.experiments.plugins import TABLES, PluginBundle, is_foreign, registered, unpack
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import Experiment, parse, trial_of

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
        return parse(_selected(source, choices))
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


def _selected(source: Source, choices: dict[str, Any]) -> Source:
    if not choices:
        return source
    from hedgerow.experiments.selection import selected  # imports learners

    return selected(source, **choices)


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
    return parse(_selected(request.source, request.choices), beat)
