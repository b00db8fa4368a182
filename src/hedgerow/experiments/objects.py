"""An experiment that is given in Python: objects, classes and arrays become the tables that a TOML file could hold.

    world       a name, a table, a class or function that makes one, or an object with a CMDP, or with one in `.model`
    adversary   a name, a table, a class or function, losses of `hr.losses`, an array; None for the world's own loss
    learner     a name, a table, or a class

Each is one of these, a list of them, or a mapping {label: one of them}. A table is a mapping with a `name` or a `file`,
as in TOML; its name may be a class.

What comes out is a text, which the one reader checks, the manifest keeps and `hedgerow resume` goes on with. So a cell
is the same, and has the same hash, whether it comes from a file or from here. A world of the catalogue is its name and
its parameters. Any other is a data file in the directory of results, called by the hash of its content. Losses are
their name and their parameters; if these are many numbers, a data file as well. A class is `module:Name`, or is
registered under its own name if no other process could import it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import tomli_w

from hedgerow.checks import short_repr, type_name, unmasked
from hedgerow.errors import InvalidInput
from hedgerow.experiments.components import FILE
from hedgerow.experiments.plugins import TABLES
from hedgerow.experiments.reading import short_name
from hedgerow.experiments.source import Source, Where
from hedgerow.experiments.spec import default_label
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.losses.naming import OWN
from hedgerow.losses.oblivious import Fixed
from hedgerow.model.cmdp import CMDP
from hedgerow.model.view import Stored
from hedgerow.registry import plugins
from hedgerow.registry.registry import is_importable
from hedgerow.results.manifest import MANIFEST, PARTS, plain
from hedgerow.results.store import LOSSES, WORLDS
from hedgerow.storage import atomic
from hedgerow.worlds import entries
from hedgerow.worlds.world import World, definition_of

Table = dict[str, Any]
MOST_NUMBERS = 20_000
"""In the description of losses, which every cell repeats; more are written into a data file."""


@dataclass(frozen=True)
class WrittenExperiment:
    """An experiment that was given in Python, as a text and data files."""

    source: Source
    files: Mapping[Path, bytes]
    """The data files of worlds and losses, by their path."""
    offered: tuple[str, ...]
    """Labels of learners of which only the name was given: they take the baseline that a world offers."""

    @contextmanager
    def kept(self, directory: Path) -> Iterator[None]:
        """Write the data files; they and their folders are removed again if the sweep does not begin."""
        begun = (directory / MANIFEST).exists()
        folders = [folder for path in self.files for folder in path.parents if not folder.exists()]
        new = [path for path in self.files if not path.exists()]
        try:
            for path in new:
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic.save(path, self.files[path])
            yield
        except BaseException as error:
            if begun or not (directory / MANIFEST).exists():
                with suppress(OSError):  # a folder may hold something else by now
                    for path in new:
                        path.unlink(missing_ok=True)
                    for folder in folders:
                        folder.rmdir()
            if isinstance(error, NotADirectoryError | FileExistsError):
                raise InvalidInput(f"{directory} cannot be a directory: {error.filename} is in the way") from error
            raise


def written(name: str, given: Mapping[str, Any], directory: Path) -> WrittenExperiment:
    """The experiment with the entries of a TOML file, whose parts may be objects.

    Args:
        name: What messages call it.
        given: The entries by name.
        directory: The directory of results.

    Raises:
        InvalidInput: If something cannot be written down; the message says where.
    """
    writer = _Writer(Source(name, "", Path(), has_lines=False), directory)
    data = {}
    for key, value in given.items():
        data[str(key)] = writer.tables(key, value) if key in PARTS else writer.plain((key,), value)
    text = tomli_w.dumps(data)
    return WrittenExperiment(Source(name, text, Path(), has_lines=False), writer.files, tuple(writer.offered))


@dataclass
class _Writer:
    source: Source
    directory: Path
    files: dict[Path, bytes] = field(default_factory=dict)
    offered: list[str] = field(default_factory=list)

    def tables(self, kind: str, given: Any) -> list[Table]:
        """The tables [[world]], [[adversary]] or [[learner]]."""
        if isinstance(given, Mapping) and not _is_table(given):
            labelled = list(given.items())
        elif isinstance(given, list | tuple) and not (kind == "adversary" and _is_numbers(given)):
            labelled = [(None, one) for one in given]
        else:
            labelled = [(None, given)]
        if not labelled:
            raise self.source.mistake((kind,), "there is none; give at least one")
        return [self._table(kind, (kind, number), *item) for number, item in enumerate(labelled)]

    def _table(self, kind: str, where: Where, label: Any, given: Any) -> Table:
        bare = isinstance(given, str) or _is_code(given)
        try:
            if isinstance(given, Mapping):
                table = dict(given)
                if _is_code(table.get("name")):
                    table["name"] = _name_of(kind, table["name"])
            elif bare:
                name = given if isinstance(given, str) else _name_of(kind, given)
                table = {"name": name, "label": short_name(name)}
            else:
                table = OBJECTS[kind](self, given)
        except InvalidInput as error:
            raise self.source.mistake(where, str(error)) from error
        table |= {} if label is None else {"label": label}
        if bare and kind == "learner":
            self.offered.append(table["label"])
        return {str(key): self.plain((*where, str(key)), value) for key, value in table.items()}

    def plain(self, where: Where, value: Any) -> Any:
        """`value` as TOML can hold it."""
        if isinstance(value, np.ndarray | np.generic):
            value = unmasked("the array", value).tolist()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, Mapping):
            return {str(key): self.plain((*where, str(key)), item) for key, item in value.items()}
        if isinstance(value, list | tuple | range):
            return [self.plain(where, item) for item in value]
        if isinstance(value, bool | int | float | str):
            return value
        raise self.source.mistake(
            where, f"must be a number, a text, true or false, or a list or table of these, not {type_name(value)}"
        )

    def world(self, world: Any) -> Table:
        """The table of a world that is there already."""
        if not any(isinstance(getattr(each, "cmdp", each), CMDP) for each in (world, getattr(world, "model", None))):
            if hasattr(world, "play") and hasattr(world, "view"):
                raise InvalidInput(
                    f"{type_name(world)} has no model, so that no run in it can be compared with the best policy. If "
                    "its table env.unwrapped.P is the truth, build it with GymWorld(..., scored='exact'); otherwise "
                    "play with one learner at a time, hr.simulate(world, learner)"
                )
            raise InvalidInput(
                f"a world is a name, a table with a name, a CMDP or an object with one, not {short_repr(world)}"
            )
        stored = definition_of(world)
        if isinstance(world, World) and (table := _of_catalogue(world, stored.content_hash)) is not None:
            return table
        return self._file(WORLDS, stored, type(world).__name__.lower())

    def adversary(self, losses: Any) -> Table:
        """The table of losses that are there already."""
        if losses is None:
            return {"name": OWN, "label": OWN}
        if isinstance(losses, np.ndarray | list | tuple):
            losses = Fixed(losses)  # type: ignore[arg-type]
        if not isinstance(losses, ObliviousLosses | Pursuit):
            raise InvalidInput(
                "losses are a name, a table with a name, a class, an array, or losses of hr.losses with `params()`, "
                f"not {short_repr(losses)}; give the class, or a table {{'name': the class, parameters}}"
            )
        name = _name_of("adversary", type(losses))
        size = sum(map(np.size, losses.params().values()))
        if size > MOST_NUMBERS and isinstance(losses, ObliviousLosses) and name in TABLES["adversary"].builtin:
            return self._file(LOSSES, losses, name)
        if size > MOST_NUMBERS:
            raise InvalidInput(
                f"these losses hold {size:,} numbers, which every cell would repeat; losses of your own may have "
                f"{MOST_NUMBERS:,}: let {name} read them from a file, or give them as hr.losses.Replay(table)"
            )
        params = {key: plain(value) for key, value in losses.params().items() if value is not None}
        known = TABLES["adversary"].look_up(name).signature.parameters
        shown = {key: value for key, value in params.items() if known[key].required or value != known[key].default}
        return {"name": name, **params, "label": default_label("adversary", {"name": name, **shown})}

    def _file(self, folder: str, content: Stored, name: str) -> Table:
        """The table of something that is written into a data file of the directory."""
        content_hash = content.content_hash
        path = self.directory / folder / f"{content_hash}.npz"
        self.files[path] = content.to_bytes()
        return {"name": FILE, FILE: os.path.relpath(path), "label": f"{name}-{content_hash[:6]}"}

    def learner(self, learner: Any) -> Table:
        """No object: a learner belongs to the world that it was built for."""
        hint = f"give its class, hr.{type(learner).__name__}" if hasattr(learner, "plan") else "give one of these"
        raise InvalidInput(
            f"a learner is a name, a table with a name, or a class, which every cell builds anew, not "
            f"{short_repr(learner)}; {hint}"
        )


OBJECTS: Mapping[str, Callable[[_Writer, Any], Table]] = {
    "world": _Writer.world,
    "adversary": _Writer.adversary,
    "learner": _Writer.learner,
}


def _is_table(given: Mapping[Any, Any]) -> bool:
    return "name" in given or FILE in given


def _is_code(given: Any) -> bool:
    return isinstance(given, type | FunctionType | BuiltinFunctionType)


def _is_numbers(given: Any) -> bool:
    """Whether lists hold one array of numbers, and not several things."""
    return bool(given) and all(
        _is_numbers(item) if isinstance(item, list | tuple) else isinstance(item, int | float | np.number)
        for item in given
    )


def _name_of(kind: str, target: Any) -> str:
    """What an experiment calls a class or function; one that cannot be imported is registered."""
    registry = TABLES[kind]
    name = registry.name_of(target)
    if name in registry.builtin or registry.registered(name) is not None:
        return name
    file = plugins.file_of_module(target.__module__)
    if file is not None:
        return f"{os.path.relpath(file.path)}:{target.__qualname__}"
    if not is_importable(target):
        name = target.__name__
        registry.register(name)(target)
    return name


def _of_catalogue(world: World, content: str) -> Table | None:
    """Name and parameters of a world of the catalogue; None if it has been changed, or is not one."""
    if world.name not in TABLES["world"].builtin:
        return None
    if definition_of(entries.build(world.name, world.params)).content_hash != content:
        return None
    defaults = entries.describe(world.name).parameters
    chosen = {key: value for key, value in world.params.items() if plain(value) != plain(defaults[key])}
    return {"name": world.name, **plain(chosen)}
