"""The entries of the catalogue, and `make`: from a name and parameters to a verified world.

To add an entry, write a function with keyword defaults that returns `WorldDefinition`, and decorate it:

    @entry("my-world", "a few words: what else there is to say", source="who defined it", frozen=({}, {"size": 20}))
    def my_world(*, size: int = 10, slip: float = 0.125) -> WorldDefinition: ...

then run `python tools/write_index.py`, which enters its name, and `python tools/freeze_worlds.py my-world`, which
computes hash, sizes and golden values of the frozen parameter choices (`{}` means the defaults) and stores them in
`frozen.json`: lists of worlds need not build any of them. `python tools/write_worlds.py` then renews docs/worlds.md.
Annotations fix the types of parameters. Numbers of a frozen entry should come from exact IEEE arithmetic (+ - * / sqrt,
integers over powers of two): exp, log and numpy's random distributions may differ in the last bit between machines and
releases, which changes the hash.

Worlds of others (`hr.worlds.register`, `package.module:Name`, `file.py:Name`) are functions or classes that return a
CMDP, a pair (CMDP, loss) or `WorldDefinition`; they have no golden values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

from hedgerow.checks import FloatArray, did_you_mean, short_repr, type_name
from hedgerow.display.terms import USUAL
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import checked_loss
from hedgerow.registry import Found, worlds
from hedgerow.registry.signatures import Parameter, check_known, checked, checked_arguments, signature_of
from hedgerow.worlds.world import Golden, Scale, World, WorldDefinition, content_hash

Builder = Callable[..., WorldDefinition]
_B = TypeVar("_B", bound=Builder)

FROZEN_FILE = "frozen.json"
ADVERSARIES = ("own", "switching", "cycle", "betrayal", "tempting")
"""Make sense in most worlds; "own" repeats the world's own loss."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A registered builder."""

    name: str
    description: str
    build: Builder
    parameters: Mapping[str, Parameter]
    frozen: tuple[Mapping[str, Any], ...]
    """The parameter choices (differences from the defaults) that have golden values."""
    published: Mapping[str, float] | None
    """Numbers that others give for the default parameters, on the source's scale."""
    source: str
    """Who defined the world."""
    adversaries: tuple[str, ...]
    """The adversaries that make sense in it, by name."""


class WorldDescription(NamedTuple):
    """What an entry of the catalogue is: one line, its parameters, and which of them have golden values.

    Examples:
        >>> import hedgerow as hr
        >>> dict(hr.worlds.describe("lower-bound-2").parameters)
        {'episodes': 16000, 'rho': 0.25}
    """

    name: str
    """The name in the catalogue."""
    description: str
    """What it is, in one line."""
    parameters: Mapping[str, Any]
    """The parameters by name, with their defaults."""
    frozen: tuple[Mapping[str, Any], ...]
    """The choices of parameters that have golden values, as differences from the defaults."""
    source: str
    """Who defined it."""
    adversaries: tuple[str, ...]
    """The adversaries that make sense in it, by name; "own" repeats the world's own loss."""


class WorldFacts(NamedTuple):
    """What lists say about a world, so that they need not build it."""

    steps: int
    states: int
    actions: int
    rows: int
    triples: int
    constraints: int
    baseline: str | None
    """How the baseline is given: "policy", "budget" (the least loss at lower thresholds), or not at all."""
    unit: str
    offset: float
    factor: float

    @property
    def scale(self) -> Scale:
        return Scale(self.unit, self.offset, self.factor)


class FrozenRecord(NamedTuple):
    """What `frozen.json` holds about one parameter choice."""

    params: Mapping[str, Any]
    hash: str
    facts: WorldFacts
    golden: Golden


_entries: dict[str, Entry] = {}


def entry(
    name: str,
    description: str,
    *,
    frozen: Sequence[Mapping[str, Any]] = ({},),
    published: Mapping[str, float] | None = None,
    source: str = "",
    adversaries: Sequence[str] = ADVERSARIES,
) -> Callable[[_B], _B]:
    """Describe a builder of a world that ships with hedgerow; yours use `hr.worlds.register`.

    Args:
        name: The name in the catalogue.
        description: What it is, in one line.
        frozen: Choices of parameters, as differences from the defaults, whose golden values are stored.
        published: Numbers of the source, or of other authors, for the default parameters, by name, on its own scale.
        source: Who defined the world, such as "Altman 1999"; "ours" if we did.
        adversaries: The adversaries that make sense in it, by name.

    Returns:
        A decorator for a function with keyword arguments that returns `WorldDefinition`.

    Raises:
        InvalidInput: If the function does not belong to hedgerow.

    Examples:
        >>> import hedgerow as hr
        >>> try:
        ...     hr.worlds.entry("my-world", "a world of mine")(dict)
        ... except hr.errors.InvalidInput as error:
        ...     print(error)
        'my-world' does not ship with hedgerow: write @hr.worlds.register
    """

    def keep(build: _B) -> _B:
        if not build.__module__.startswith("hedgerow."):
            raise InvalidInput(f"{name!r} does not ship with hedgerow: write @hr.worlds.register")
        build.__doc__ = build.__doc__ or description
        parameters = signature_of(build, name).parameters
        _entries[name] = Entry(
            name, description, build, parameters, tuple(frozen), published, source, tuple(adversaries)
        )  # fmt: skip
        return build

    return keep


register, names, find = worlds.register, worlds.names, worlds.find


def find_entry(name: str) -> Entry:
    """The entry of that name; its module is imported if need be."""
    _check_shipped(name)
    worlds.find(name)
    return _entries[name]


def _check_shipped(name: object) -> None:
    if not isinstance(name, str) or name not in worlds.builtin:
        raise InvalidInput(f"the catalogue has no entry {short_repr(name)}{did_you_mean(str(name), worlds.builtin)}")


def describe(name: str) -> WorldDescription:
    """Describe a world of the catalogue.

    Args:
        name: Its name.

    Returns:
        One line about it, its parameters with their defaults, who defined it, and adversaries that make sense in it.

    Raises:
        InvalidInput: If there is no such world; the message names the nearest one.

    Examples:
        >>> import hedgerow as hr
        >>> hr.worlds.describe("dope-media").description
        'a media buffer: an empty one is a loss, fast delivery is the cost'
    """
    _check_shipped(name)
    facts, parameters = worlds.facts(name), worlds.describe(name).parameters
    defaults = {parameter.name: parameter.default for parameter in parameters}
    choices, adversaries = tuple(facts["frozen"]), tuple(facts["adversaries"])
    return WorldDescription(name, facts["description"], defaults, choices, facts["source"], adversaries)


def make(name: str, **params: Any) -> World:
    """Make a world of the catalogue.

    For parameters with golden values the content is checked against their hash. Worlds of others are made in the same
    way, if they return a loss together with their CMDP.

    Args:
        name: Its name, such as "dope-media"; or a registered name, `package.module:Name`, or `file.py:Name`.
        **params: Parameters of the world; those that are left out have their defaults (`hr.worlds.describe`).

    Returns:
        The world: `.cmdp`, `.loss`, `.view()`, `.golden`, ...

    Raises:
        InvalidInput: If there is no such world or parameter, or if a world of your own has no loss.
        CertificateError: If the content is not that of the golden values.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=2, seed=7)
        >>> world.cmdp.layout
        Layout(layers=(1, 3, 3, 1), actions=2, full support)
    """
    outside = worlds.look_up(name)
    if not outside.is_built_in:
        return _foreign(outside, params)
    name = outside.name
    world = build(name, params)
    record = frozen_records().get(key(name, world.params))
    if record is None:
        return world
    if world.hash != record.hash:
        raise CertificateError(
            f"{name} with {dict(world.params)} has the content hash {world.hash[:12]}, but its golden values "
            f"belong to {record.hash[:12]}: the builder or a library under it has changed. If that is intended, "
            f"run `python tools/freeze_worlds.py {name}`"
        )
    return with_golden(world, record.golden)


def build(name: str, params: Mapping[str, Any]) -> World:
    """The world without golden values and without the check of its hash."""
    found = find_entry(name)
    complete = complete_params(found, params)
    made = found.build(**complete)
    loss = checked_loss(made.cmdp.layout, made.loss)
    digest = content_hash(made.cmdp, loss)
    more = made.baseline_thresholds, made.baseline, made.terms
    return World(name, found.description, complete, made.cmdp, loss, made.scale, None, digest, *more)


def with_golden(world: World, golden: Golden) -> World:
    return World(**{**world.__dict__, "golden": golden})


def complete_params(found: Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of an entry, each of the type of its default, in the order of the builder's signature."""
    for name in sorted(params):
        check_known(found.name, name, found.parameters)
    return {
        name: checked(f"{found.name}: {name}", parameter, params.get(name, parameter.default), least=0)
        for name, parameter in found.parameters.items()
    }


# Worlds of others -----------------------------------------------------------------------------------------------------


def parts_of(made: Any, name: str) -> tuple[CMDP, FloatArray | None]:
    """The CMDP and, if there is one, the loss (rows,) in what a world of others returned."""
    cmdp, loss = made if isinstance(made, tuple) and len(made) == 2 else (made, getattr(made, "loss", None))
    cmdp = getattr(cmdp, "cmdp", cmdp)
    if not isinstance(cmdp, CMDP):
        raise InvalidInput(f"{name} must return a CMDP, a pair (CMDP, loss) or WorldDefinition, not {type_name(made)}")
    return cmdp, None if loss is None else checked_loss(cmdp.layout, loss)


def build_foreign(found: Found, params: Mapping[str, Any]) -> Any:
    """What a world of others returns; `parts_of` takes it apart."""
    return found.build(**checked_arguments(found.name, found.signature, params))


def _foreign(found: Found, params: Mapping[str, Any]) -> World:
    made = build_foreign(found, params)
    cmdp, loss = parts_of(made, found.name)
    if loss is None:
        raise InvalidInput(f"{found.name} has no loss of its own; return a pair (CMDP, loss), or use the CMDP itself")
    scale, digest = getattr(made, "scale", Scale()), content_hash(cmdp, loss)
    more = getattr(made, "baseline_thresholds", None), getattr(made, "baseline", None), getattr(made, "terms", USUAL)
    return World(found.name, found.description, dict(params), cmdp, loss, scale, None, digest, *more)


def key(name: str, params: Mapping[str, Any]) -> str:
    """The canonical text of a parameter choice."""
    return f"{name} {json.dumps(dict(params), sort_keys=True, allow_nan=False)}"


@cache
def frozen_records() -> dict[str, FrozenRecord]:
    """What `frozen.json` holds, by canonical key."""
    text = resources.files("hedgerow.worlds").joinpath(FROZEN_FILE).read_text(encoding="utf-8")
    return {
        key(item["name"], item["params"]): FrozenRecord(
            item["params"], item["hash"], WorldFacts(**item["facts"]), Golden(**item["golden"])
        )
        for item in json.loads(text)["entries"]
    }


def facts_of(world: World) -> WorldFacts:
    """What lists say about a world that has been built."""
    layout, scale = world.cmdp.layout, world.scale
    baseline = "policy" if world.baseline is not None else None if world.baseline_thresholds is None else "budget"
    return WorldFacts(
        layout.steps,
        layout.num_states,
        layout.num_actions,
        layout.num_rows,
        layout.num_triples,
        world.cmdp.num_constraints,
        baseline,
        scale.unit,
        scale.offset,
        scale.factor,
    )


def frozen_record(name: str, params: Mapping[str, Any] | None = None) -> FrozenRecord:
    """What is stored about a frozen choice of parameters; nothing is built."""
    complete = complete_params(find_entry(name), params) if params else describe(name).parameters
    return frozen_records()[key(name, complete)]
