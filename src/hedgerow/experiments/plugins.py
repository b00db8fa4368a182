"""Send plug-in code to workers, and record it in the manifest.

A file is sent as its text: a worker needs no copy of it. A class that a script has registered is sent as an object,
which joblib pickles by value. Modules are not sent: a worker imports its own, and refuses its cells if their source or
version differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow import registry
from hedgerow.errors import InvalidInput
from hedgerow.experiments.components import FILE, PLUG_IN, ComponentSpec, as_described
from hedgerow.losses.naming import OWN
from hedgerow.registry import Found, Registry, plugins
from hedgerow.registry.registry import REGISTERED, home_of, is_importable
from hedgerow.results.manifest import canonical

TABLES: Mapping[str, Registry] = {
    "world": registry.worlds,
    "adversary": registry.adversaries,
    "learner": registry.learners,
}
NOT_CODE = (FILE, OWN)
"""Names that stand for data."""


@dataclass(frozen=True)
class PluginBundle:
    """The plug-in code that a worker needs besides the description of a cell."""

    files: tuple[tuple[str, str], ...] = ()
    """(path, text)"""
    registered: tuple[tuple[str, str, Any, dict[str, str] | None], ...] = ()
    """(world, adversary or learner; name; class or function of a script, or `module:Name`; origin, where known)"""


def is_foreign(kind: str, name: str) -> bool:
    """Whether a name of an experiment stands for code of others; a name that stands for nothing does not."""
    if name in TABLES[kind].builtin or name in NOT_CODE:
        return False
    return not is_ours(name) if ":" in name else name in TABLES[kind].names()


def is_ours(name: str) -> bool:
    """Whether it is `module:Name` with a module of this package."""
    where, colon, _ = name.rpartition(":")
    return bool(colon) and where.startswith("hedgerow.") and not where.endswith(".py")


def registered(names: Iterable[tuple[str, str]]) -> PluginBundle:
    """Those of the names, each with its kind, that only this process knows; others can be looked up anywhere."""
    known = [(kind, found) for kind, name in names if (found := TABLES[kind].registered(name)) is not None]
    return _luggage((kind, found, _origin(found)) for kind, found in known)


def _origin(found: Found) -> dict[str, str] | None:
    try:
        return found.origin
    except InvalidInput:  # the same is found, and said, where the experiment is read
        return None


class PluginCollector:
    """Packs the plug-in code of many cells, whose parts repeat."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packed: dict[str, PluginBundle] = {}

    def pack(self, *parts: ComponentSpec) -> PluginBundle:
        """The code of world, adversary and learner of a cell."""
        foreign = {kind: part for kind, part in zip(TABLES, parts, strict=True) if PLUG_IN in part}
        if not foreign:
            return PluginBundle()
        key = canonical({kind: (part["name"], part[PLUG_IN]) for kind, part in foreign.items()})
        if key not in self._packed:
            self._packed[key] = _luggage(
                (kind, as_described(TABLES[kind], part, self.folder), part[PLUG_IN]) for kind, part in foreign.items()
            )
        return self._packed[key]


def _luggage(foreign: Iterable[tuple[str, Found, dict[str, str] | None]]) -> PluginBundle:
    """The luggage for code of these kinds, each with its origin."""
    files, entered = {}, []
    for kind, found, origin in foreign:
        file = plugins.file_of_module(found.target.__module__)
        if file is not None:
            files[file.path] = file.text
        if found.way == REGISTERED and file is None:
            target = home_of(found.target) if is_importable(found.target) else found.target
            entered.append((kind, found.name, target, origin))
    return PluginBundle(tuple(files.items()), tuple(entered))


def unpack(luggage: PluginBundle) -> None:
    """Load the plug-in code of a cell, unless it is loaded already."""
    for path, text in luggage.files:
        plugins.load_text(text, path)
    for kind, name, target, origin in luggage.registered:
        if isinstance(target, str):
            module, _, attribute = target.partition(":")
            TABLES[kind].receive(name, plugins.member(plugins.load_module(module), attribute, module))
        else:
            TABLES[kind].receive(name, target, origin)


def record(cells: Iterable[Sequence[ComponentSpec]], folder: Path) -> dict[str, Any]:
    """What to store about plug-ins beside the results: the origin of each and, for files, its text.

    Each cell is given by world, adversary and learner.
    """
    found: dict[str, Any] = {}
    for parts in cells:
        for kind, part in zip(TABLES, parts, strict=True):
            if PLUG_IN in part and part["name"] not in found:
                code = plugins.file_of_module(as_described(TABLES[kind], part, folder).target.__module__)
                found[part["name"]] = {**part[PLUG_IN], **({} if code is None else {"text": code.text})}
    return found
