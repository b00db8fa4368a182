"""The table of builders, and `make`: from a name and parameters to a verified world.

To add an entry, write a function with keyword defaults that returns `Ingredients`, decorate it, and list its name in
`MODULES` below:

    @entry("my-world", "one line that says what it is", frozen=({}, {"size": 20}))
    def my_world(*, size: int = 10, slip: float = 0.125) -> Ingredients: ...

then run `python -m hedgerow.catalogue.freeze my-world`, which computes hash and golden values of the frozen parameter
choices (`{}` means the defaults) and stores them in `frozen.json`. A default fixes the type of its parameter. Numbers
of a frozen entry should come from exact IEEE arithmetic (+ - * / sqrt, integers over powers of two): exp, log and
numpy's random distributions may differ in the last bit between machines and releases, which changes the hash.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

from hedgerow.catalogue.world import Golden, Ingredients, World, content_hash
from hedgerow.checks import LARGEST_SEED, real_number, shown, whole_number
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.occupancy import checked_loss

Builder = Callable[..., Ingredients]
_B = TypeVar("_B", bound=Builder)

MODULES: dict[str, str] = {
    "random-layered": "random_layered",
    "lower-bound-1": "lower_bound",
    "lower-bound-2": "lower_bound",
    "dope-factored": "dope",
    "dope-media": "dope",
    "dope-inventory": "dope",
}
"""Entry -> the module of this folder that builds it, imported when the entry is first asked for."""

FROZEN_FILE = "frozen.json"


@dataclass(frozen=True, eq=False)
class Entry:
    """A registered builder."""

    name: str
    description: str
    build: Builder
    defaults: Mapping[str, Any]
    frozen: tuple[Mapping[str, Any], ...]
    """The parameter choices (differences from the defaults) that have golden values."""
    published: Mapping[str, float] | None
    """Numbers from the source for the default parameters, on the source's scale."""


class Description(NamedTuple):
    """What an entry is: one line, its parameters with their defaults, and which choices have golden values."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    frozen: tuple[Mapping[str, Any], ...]


class FrozenRecord(NamedTuple):
    """What `frozen.json` holds about one parameter choice."""

    hash: str
    golden: Golden


_entries: dict[str, Entry] = {}


def entry(
    name: str,
    description: str,
    *,
    frozen: Sequence[Mapping[str, Any]] = ({},),
    published: Mapping[str, float] | None = None,
) -> Callable[[_B], _B]:
    """Register the decorated builder under `name`; see the module's docstring."""

    def register(build: _B) -> _B:
        defaults = {key: parameter.default for key, parameter in inspect.signature(build).parameters.items()}
        _entries[name] = Entry(name, description, build, defaults, tuple(frozen), published)
        return build

    return register


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(MODULES)


def find(name: str) -> Entry:
    """The entry of that name; its module is imported if need be."""
    if name not in MODULES:
        raise InvalidInput(f"the catalogue has no entry {name!r}; it has: {', '.join(names())}")
    if name not in _entries:
        importlib.import_module(f"hedgerow.catalogue.{MODULES[name]}")
    return _entries[name]


def describe(name: str) -> Description:
    """One line about an entry, and its parameters with their defaults."""
    found = find(name)
    return Description(found.name, found.description, dict(found.defaults), found.frozen)


def make(name: str, **params: Any) -> World:
    """The world `name` with the given parameters (the others at their defaults).

    For a frozen choice the content must still have the hash for which the golden values were computed.
    """
    world = build(name, params)
    record = frozen_records().get(key(name, world.params))
    if record is None:
        return world
    if world.hash != record.hash:
        raise CertificateError(
            f"{name} with {dict(world.params)} has the content hash {world.hash[:12]}, but its golden values "
            f"belong to {record.hash[:12]}: the builder or a library under it has changed. If that is intended, "
            f"run `python -m hedgerow.catalogue.freeze {name}`"
        )
    return with_golden(world, record.golden)


def build(name: str, params: Mapping[str, Any]) -> World:
    """The world without golden values and without the check of its hash."""
    found = find(name)
    complete = complete_params(found, params)
    made = found.build(**complete)
    loss = checked_loss(made.cmdp.layout, made.loss)
    digest = content_hash(made.cmdp, loss)
    return World(name, found.description, complete, made.cmdp, loss, made.scale, None, digest, made.baseline_thresholds)


def with_golden(world: World, golden: Golden) -> World:
    return World(**{**world.__dict__, "golden": golden})


def complete_params(found: Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of an entry, each of the type of its default, in the order of the builder's signature."""
    unknown = sorted(set(params) - set(found.defaults))
    if unknown:
        known = ", ".join(f"{name}={default!r}" for name, default in found.defaults.items()) or "none"
        raise InvalidInput(f"{found.name} has no parameter {unknown[0]!r}; its parameters are: {known}")
    return {
        name: _like(f"{found.name}: {name}", params.get(name, value), value) for name, value in found.defaults.items()
    }


def key(name: str, params: Mapping[str, Any]) -> str:
    """The canonical text of a parameter choice."""
    return f"{name} {json.dumps(dict(params), sort_keys=True, allow_nan=False)}"


@cache
def frozen_records() -> dict[str, FrozenRecord]:
    """What `frozen.json` holds, by canonical key."""
    text = resources.files("hedgerow.catalogue").joinpath(FROZEN_FILE).read_text(encoding="utf-8")
    return {
        key(item["name"], item["params"]): FrozenRecord(item["hash"], Golden(**item["golden"]))
        for item in json.loads(text)["entries"]
    }


def _like(what: str, value: Any, default: Any) -> Any:
    """`value` as the type of `default`."""
    if isinstance(default, float):
        return real_number(what, value, -sys.float_info.max, sys.float_info.max)
    if isinstance(default, int) and not isinstance(default, bool):
        return whole_number(what, value, 0, LARGEST_SEED)  # sizes are checked where they are used
    if isinstance(default, tuple):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise InvalidInput(f"{what} must be a sequence like {default!r}, not {shown(value)}")
        return tuple(_like(f"{what}[{i}]", item, default[0]) for i, item in enumerate(value))
    if not isinstance(value, type(default)):
        raise InvalidInput(f"{what} must be a {type(default).__name__} like {default!r}, not {shown(value)}")
    return value
