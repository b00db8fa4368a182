"""Which code something is: plain data that changes when the source does, for the description of a run.

    {"sha256": ...}                                                  a file that was named by its path
    {"module": ..., "sha256": ...}                                   a module
    {"module": ..., "sha256": ..., "distribution": ..., "version"}   a module of an installed distribution

The hash is that of the source text of the module that defines the object. A compiled module has none; then its
distribution and version have to do.
"""

from __future__ import annotations

import inspect
import re
import sys
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hedgerow.checks import did_you_mean, short_repr, type_name
from hedgerow.errors import InvalidInput
from hedgerow.registry import plugins
from hedgerow.registry.signatures import Parameter, Signature, signature_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


Origin = dict[str, str]


def origin_of(target: Any, name: str) -> Origin:
    """The origin of a class or function; `name` is what messages call it."""
    module: str = getattr(target, "__module__", None) or ""
    file = plugins.file_of_module(module)
    if file is not None:
        return {"sha256": file.digest}
    found: Origin = {"module": module}
    text = _source(target, module)
    if text is not None:
        found["sha256"] = plugins.text_digest(text)
    found |= _distribution(module)
    if "sha256" not in found and "version" not in found:
        raise InvalidInput(
            f"the source of {name} cannot be found, so its results could not say what was run; "
            "write it into a file and name it file.py:Name"
        )
    return found


def _source(target: Any, module: str) -> str | None:
    """The text of the module that defines `target`; of `target` alone in an interactive session."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and file.endswith(".py"):
        return plugins.read_text(Path(file))
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return None


@cache
def _distribution(module: str) -> Origin:
    """Name and version of the installed distribution that a module belongs to; {} if there is none."""
    from importlib.metadata import distributions

    owners: dict[str, str] = {}
    for each in distributions():
        if _has_module(each, module.partition(".")[0]):
            owners.setdefault(each.name, each.version)  # the first that is found is the one that is imported
    if len(owners) != 1:  # a namespace that several share says nothing
        return {}
    ((name, version),) = owners.items()
    return {"distribution": name, "version": version}


def _has_module(distribution: Distribution, top: str) -> bool:
    """Whether a distribution brings the module or package `top`.

    `importlib.metadata.packages_distributions` would say the same, but looks whether every file of every distribution
    is there: a third of a second, in each process that runs code of others.
    """
    declared = (distribution.read_text("top_level.txt") or "").split()
    if declared:
        return top in declared
    paths = (line.partition(",")[0] for line in (distribution.read_text("RECORD") or "").splitlines())
    return any(path.startswith(f"{top}/") or ("/" not in path and inspect.getmodulename(path) == top) for path in paths)


# --------------------------------------------------------------------------------------------------------------------
# `Registry`: the names of one kind of thing, where each comes from, and how to add one.


T = TypeVar("T", bound=Callable[..., Any])

BUILT_IN, REGISTERED, MODULE, FILE, INSTALLED = "built-in", "registered", "module", "file", "installed"
"""The ways to a thing."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


@dataclass(frozen=True, eq=False)
class Found:
    """What a name stands for.

    Examples:
        >>> from hedgerow import registry
        >>> found = registry.worlds.look_up("dope-media")
        >>> found.way, found.is_built_in, found.description
        ('built-in', True, 'a media buffer: an empty one is a loss, fast delivery is the cost')
    """

    name: str
    """The name."""
    way: str
    """Where it was found: "built-in", "registered", "module", "file" or "installed"."""
    target: Any
    """The class or function."""
    known_origin: Origin | None = None
    """Which code it is, where another process has found that out already (`Registry.receive`); else None."""

    @property
    def is_built_in(self) -> bool:
        """Whether it ships with hedgerow."""
        return self.way == BUILT_IN

    @cached_property
    def origin(self) -> Origin | None:
        """Which code it is, as plain data with a hash; None for what ships with hedgerow."""
        if self.is_built_in:
            return None
        return dict(self.known_origin) if self.known_origin is not None else origin_of(self.target, self.name)

    @cached_property
    def signature(self) -> Signature:
        """Its parameters, by name."""
        return signature_of(self.target, self.name)

    @property
    def description(self) -> str:
        """The first line of its docstring."""
        return ((self.target.__doc__ or "").strip().splitlines() or [""])[0].strip()

    def build(self, **arguments: Any) -> Any:
        """Call it with `**arguments`; an error in it becomes one line with the file and line of the plug-in."""
        return plugins.call(self.target, arguments, self.name)


class Description(NamedTuple):
    """What a name stands for, as a line of a list.

    Examples:
        >>> import hedgerow as hr
        >>> told = hr.losses.describe("switching")
        >>> told.home, [parameter.name for parameter in told.parameters]
        ('hedgerow.losses.oblivious:Switching', ['period', 'patterns', 'seed'])
    """

    name: str
    """The name."""
    way: str
    """Where it was found: "built-in", "registered", "installed", "module" or "file"."""
    home: str
    """Where it is defined: `package.module:Name`."""
    description: str
    """The first line of its docstring."""
    parameters: tuple[Parameter, ...]
    """Its parameters, in their order."""


class Registry:
    """A table of names, such as `hr.worlds` and `hr.costs`, and those behind `hr.learners`, `hr.losses`.

    A name is looked for among what ships with hedgerow, then among what was registered, then as `package.module:Name`
    or `file.py:Name`, then among the entry points of installed distributions. Experiments and the command line use the
    same names.

    Args:
        kind: What one of its things is called in messages, such as "learner".
        group: The group of entry points of installed distributions.
        shipped: The records of `index.json` about what ships with hedgerow, in the order of lists.
        base: The class that all others must derive from, as `package.module:Name`; the empty string for none.
        reserved: Names that mean something else and cannot be registered.

    Examples:
        >>> from hedgerow.registry import Registry
        >>> dishes = Registry("dish", "kitchen.dishes")
        >>> @dishes.register("soup")
        ... def soup(*, spoons: int = 2):
        ...     'Hot soup.'
        >>> dishes.names(), dishes.describe("soup").description, dishes.find("soup") is soup
        (('soup',), 'Hot soup.', True)
    """

    def __init__(
        self,
        kind: str,
        group: str,
        shipped: Sequence[Mapping[str, Any]] = (),
        *,
        base: str = "",
        reserved: Sequence[str] = (),
    ) -> None:
        self.kind, self.group = kind, group
        self.shipped = {record["name"]: record for record in shipped}
        self.builtin: dict[str, str] = {name: record["home"] for name, record in self.shipped.items()}
        self._base, self._reserved = base, tuple(reserved)
        self._registered: dict[str, Found] = {}
        self._found: dict[str, Found] = {}

    # Adding -----------------------------------------------------------------------------------------------------------

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a class or function: from now on `name` stands for it, in this process.

        Args:
            name: A word of at most 60 letters, digits and . _ + -

        Returns:
            The decorator.

        Raises:
            InvalidInput: If the name is taken by something else. A newer version of the same thing replaces the older
                one.
        """
        self._check_free(name)

        def enter(target: T) -> T:
            self._check_target(name, target)
            old = self._registered.get(name)
            if old is not None and _identity(old.target) != _identity(target):
                raise InvalidInput(
                    f"the {self.kind} {name!r} is taken by {home_of(old.target)}; choose another name for "
                    f"{home_of(target)}"
                )
            self._registered[name] = Found(name, REGISTERED, target)
            return target

        return enter

    def receive(self, name: str, target: Any, origin: Origin | None = None) -> None:
        """Register what another process has registered; a newer one replaces an older one.

        Args:
            name: The name.
            target: The class or function.
            origin: Which code it is, where this process cannot find out.
        """
        self._registered[name] = Found(name, REGISTERED, target, origin)

    def _check_free(self, name: object) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"the name of a {self.kind} is a word of at most 60 letters, digits and . _ + -, "
                f'not {short_repr(name)}; write @register("name")'
            )
        if name in self.builtin or name in self._reserved:
            raise InvalidInput(f"the {self.kind} {name!r} ships with hedgerow; choose another name")

    def _check_target(self, name: str, target: object) -> None:
        if not callable(target) or not hasattr(target, "__qualname__"):
            raise InvalidInput(f"{name!r} must be a class or a function, not {type_name(target)}")
        if self._base:
            base = resolved(self._base)
            if not isinstance(target, type) or not issubclass(target, base):
                raise InvalidInput(f"{home_of(target)} is no {self.kind}: derive it from {base.__name__}")

    # Looking up -------------------------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """List the built-in names in their order, then registered ones, then those of installed distributions."""
        return tuple(dict.fromkeys([*self.builtin, *self._registered, *(point.name for point in self._entry_points())]))

    def find(self, name: str, folder: str | Path = ".") -> Any:
        """Return the class or function that `name` stands for; files are looked for in `folder`.

        Raises:
            InvalidInput: If the name is unknown; the message names the nearest one.
        """
        return self.look_up(name, folder).target

    def look_up(self, name: str, folder: str | Path = ".", expected: Origin | None = None) -> Found:
        """Find what a name stands for, and where it was found.

        Args:
            name: The name.
            folder: Where files are looked for.
            expected: Which code it must be; code that has changed since is refused. None does not ask.
        """
        found = self._look_up(name, Path(folder), expected)
        self._check_target(found.name, found.target)
        if expected is not None and found.origin != expected:
            raise InvalidInput(_changed(found, expected))
        return found

    def known(self, name: object) -> Found | None:
        """Return what a data file calls `name`, or None if that is not known here.

        A file must not decide which code is imported. So this only knows what ships with hedgerow, what is registered
        or installed, and `module:Name` of modules that were imported already.
        """
        if not isinstance(name, str):
            return None
        if name in self.builtin or name in self._registered:  # without a look at all that is installed
            return self._look_up(name, Path(), None)
        if ":" not in name:
            return self._look_up(name, Path(), None) if name in self.names() else None
        module, _, attribute = name.rpartition(":")
        target: Any = sys.modules.get(module)
        for part in attribute.split("."):
            target = getattr(target, part, None)
        try:
            self._check_target(name, target)
        except InvalidInput:
            return None
        return Found(name, MODULE, target)

    def registered(self, name: str) -> Found | None:
        """Return what was registered as `name` in this process; None if nothing was."""
        return self._registered.get(name)

    def name_of(self, target: Any) -> str:
        """Return what files call the class or function `target`: its name here, or else `module:Name`."""
        home = home_of(target)
        for name, place in self.builtin.items():
            if place == home:
                return name
        for name, found in self._registered.items():
            if found.target is target:
                return name
        return home

    def describe(self, name: str, folder: str | Path = ".") -> Description:
        """Describe what `name` stands for, with its parameters; files are looked for in `folder`.

        What ships with hedgerow is described by the index: nothing is imported for it.
        """
        if isinstance(name, str) and name in self.shipped:
            return self._described_by_index(self.shipped[name])
        found = self.look_up(name, folder)
        parameters = tuple(found.signature.parameters.values())
        return Description(found.name, found.way, home_of(found.target), found.description, parameters)

    @staticmethod
    def _described_by_index(record: Mapping[str, Any]) -> Description:
        parameters = [
            Parameter(name, default is None, None if default is None else literal_eval(default), written)
            for name, written, default in record["parameters"]
        ]
        return Description(record["name"], BUILT_IN, record["home"], record["description"], tuple(parameters))

    def facts(self, name: str) -> Mapping[str, Any]:
        """Return what else the index says about `name`, something that ships with hedgerow, by key."""
        facts: Mapping[str, Any] = self.shipped[name]["facts"]
        return facts

    def _look_up(self, name: str, folder: Path, expected: Origin | None) -> Found:
        if not isinstance(name, str):
            raise InvalidInput(f"the name of a {self.kind} is a text, not {short_repr(name)}")
        if name in self.builtin:
            return self._shipped_as(name, resolved(self.builtin[name]))
        if name in self._registered:
            return self._registered[name]
        where, colon, attribute = name.rpartition(":")
        if colon and where.endswith(".py"):
            return Found(name, FILE, _from_file(folder / where, attribute, expected))
        if colon:
            return self._from_module(name, where, attribute)
        points = [point for point in self._entry_points() if point.name == name]
        if points:
            return self._from_entry_point(name, points)
        raise InvalidInput(
            f"unknown {self.kind} {short_repr(name)}{did_you_mean(name, [*self.names(), *self._reserved])}"
        )

    def _shipped_as(self, name: str, target: Any) -> Found:
        """The same object at every look-up, so that its signature is read once."""
        if name not in self._found or self._found[name].target is not target:
            self._found[name] = Found(name, BUILT_IN, target)
        return self._found[name]

    def _from_module(self, name: str, module: str, attribute: str) -> Found:
        """A built-in thing keeps its short name, so that it is one thing however it was called."""
        target = plugins.member(plugins.load_module(module), attribute, module)
        short = self.name_of(target)
        return self._shipped_as(short, target) if short in self.builtin else Found(name, MODULE, target)

    def _from_entry_point(self, name: str, points: Sequence[EntryPoint]) -> Found:
        if len({point.value for point in points}) > 1:
            owners = ", ".join(sorted(point.dist.name if point.dist else point.value for point in points))
            raise InvalidInput(
                f"the {self.kind} {name!r} is offered by several distributions ({owners}); name it package.module:Name"
            )
        module, _, rest = points[0].value.partition(":")
        attribute = rest.partition("[")[0].strip()  # what follows are extras
        return Found(name, INSTALLED, plugins.member(plugins.load_module(module.strip()), attribute, module))

    def _entry_points(self) -> Sequence[EntryPoint]:
        from importlib.metadata import entry_points

        return sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))


def resolved(place: str) -> Any:
    """The object at `package.module:Name` of hedgerow itself."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def home_of(target: Any) -> str:
    """`package.module:Name`"""
    return f"{getattr(target, '__module__', '?')}:{getattr(target, '__qualname__', type(target).__name__)}"


def is_importable(target: Any) -> bool:
    """Whether another process finds a class or function by its home; not those of a script, a notebook, a function."""
    module, _, attribute = home_of(target).partition(":")
    found: Any = None if module == "__main__" else sys.modules.get(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found is target


def _from_file(path: Path, attribute: str, expected: Origin | None) -> Any:
    file = plugins.loaded_file(expected.get("sha256", "")) if expected is not None else None
    if file is None:
        file = plugins.load_text(plugins.read_text(path), str(path.absolute()))
    return plugins.member(file.module, attribute, file.path)


def _identity(target: Any) -> tuple[str, str]:
    """What two versions of the same thing share: a reloaded module, a cell of a notebook that was run again."""
    return plugins.source_file(target) or target.__module__, target.__qualname__


def _changed(found: Found, expected: Origin) -> str:
    ours, theirs = found.origin or {}, expected
    if ours.get("version") != theirs.get("version"):
        return (
            f"{found.name} is {_version(ours)} here, while the experiment was begun with {_version(theirs)}: install "
            "the same version, or begin again in another directory"
        )
    return (
        f"the source of {found.name} has changed since this experiment was begun; restore it, or begin again in "
        "another directory"
    )


def _version(origin: Mapping[str, str]) -> str:
    return f"{origin['distribution']} {origin['version']}" if "version" in origin else "a module without a version"
