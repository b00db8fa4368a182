"""World, adversary and learner of a cell: from what a file gives to a complete description, and from that to objects.

`complete_*` turn a table of a file into a `ComponentSpec`, plain data that name code and all parameters; `build_*` make
the object. A description is made once, when the file is read, and travels unchanged to the process that builds from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from hedgerow import worlds as catalogue
from hedgerow.checks import FloatArray, did_you_mean, real_number, short_repr, type_name
from hedgerow.display.terms import USUAL, Terms
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import DELTA, Learner, checked_baseline_costs, describe_inputs
from hedgerow.learners.ops import settings as switches
from hedgerow.learners.ops.cv_ops import CVOPS, MEMORY_BUDGET, checked_memory
from hedgerow.losses import naming, oblivious
from hedgerow.losses.adaptive import AdaptiveLosses
from hedgerow.losses.blocks import ObliviousLosses, is_stochastic
from hedgerow.losses.naming import OWN
from hedgerow.losses.oblivious import Fixed
from hedgerow.model.cmdp import CMDP
from hedgerow.model.view import View
from hedgerow.planning import baselines, offline
from hedgerow.registry import Found, Registry, adversaries, learners, plugins, worlds
from hedgerow.registry.signatures import WrongParameter, checked_arguments
from hedgerow.results.manifest import canonical, plain
from hedgerow.storage import datafile
from hedgerow.worlds import entries
from hedgerow.worlds.world import WorldDefinition

ComponentSpec = dict[str, Any]
"""{"name": ..., parameters}: plain data"""
PLUG_IN = "plug-in"
"""The key of a description that names the plug-in code; no parameter can have this name."""
LENGTH = "T"


class SpecError(HedgerowError):
    """A mistake in one key of a part; the reader of the file adds the line."""

    def __init__(self, key: str | None, message: str) -> None:
        super().__init__(message)
        self.key = key


def named(registry: Registry, given: Mapping[str, Any], folder: Path) -> Found:
    """What the name of a part stands for."""
    try:
        return registry.look_up(given["name"], folder)
    except InvalidInput as error:
        raise SpecError("name", str(error)) from error


def as_described(registry: Registry, part: ComponentSpec, folder: Path) -> Found:
    """What a complete description stands for: exactly the code that it names."""
    return registry.look_up(part["name"], folder, part.get(PLUG_IN))


def described(found: Found, params: Mapping[str, Any]) -> ComponentSpec:
    """The description of a part, with its origin if it is a plug-in."""
    try:
        origin = found.origin
    except InvalidInput as error:
        raise SpecError("name", str(error)) from error
    return {"name": found.name, **({} if origin is None else {PLUG_IN: origin}), **plain(params)}


def checked_params(found: Found, params: Mapping[str, Any], supplied: Collection[str] = ()) -> dict[str, Any]:
    """Parameters from a file as plain data, checked against the signature of a plug-in's constructor."""
    for key, value in params.items():
        if not _is_plain(value):
            raise SpecError(
                key, f"{key} must be a number, a text, true or false, or a list of these, not {short_repr(value)}"
            )
    try:
        return checked_arguments(found.name, found.signature, params, supplied)
    except WrongParameter as error:
        raise SpecError(error.key, str(error)) from error
    except InvalidInput as error:
        raise SpecError("name", str(error)) from error


def own_params(part: ComponentSpec) -> dict[str, Any]:
    """The parameters in a description."""
    return {key: value for key, value in part.items() if key not in ("name", PLUG_IN)}


def at_length(given: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """The parameters that a file gives, for a run of so many episodes."""
    return {key: episodes if value == LENGTH else value for key, value in given.items() if key != "name"}


def named_in(message: str, params: Mapping[str, Any]) -> str | None:
    """The key that a message mentions."""
    return next((key for key in params if key in message), None)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, bool | int | str) or (isinstance(value, float) and bool(np.isfinite(value)))


# --------------------------------------------------------------------------------------------------------------------
# The safe policy that a learner is given, by name (`planning/baselines.py`), or by `margin = 0.1`: the cheapest policy
# that stays so far below every threshold.


BASELINES = (*baselines.NAMES, "margin")


def complete_baseline(params: dict[str, Any]) -> ComponentSpec:
    """The description of the baseline; removes its keys from `params`."""
    kind = params.pop("baseline", "margin" if "margin" in params else "slater")
    if kind not in BASELINES:
        raise SpecError("baseline", f"the baseline is {short_repr(kind)}; choose one of {', '.join(BASELINES)}")
    if kind != "margin":
        if "margin" in params:
            raise SpecError("margin", f"a margin belongs to baseline = 'margin', not to {kind!r}, which has its own")
        return {"baseline": kind}
    if "margin" not in params:
        raise SpecError("baseline", "the baseline 'margin' needs a number: margin = 0.1")
    try:
        return {"baseline": kind, "margin": real_number("the margin", params.pop("margin"), 0.0, 1e9)}
    except InvalidInput as error:
        raise SpecError("margin", str(error)) from error


def safe_policy(part: ComponentSpec, world: BuiltWorld) -> Any:
    """A strictly feasible policy of the true world with its costs, as `.policy` and `.costs`; None for a learner
    without a baseline.
    """
    kind = baseline_taken(part, world)
    if not kind:
        return None
    if kind == "margin":
        return offline.strictly_feasible(world.cmdp, part["margin"])
    return baselines.find(kind, world.cmdp, world.loss, world.offered)


def baseline_taken(part: ComponentSpec, world: BuiltWorld) -> str:
    """Which baseline a learner gets in a world, in words; the empty text for a learner without one."""
    kind = str(part.get("baseline", ""))
    return baselines.choice(kind, world.offered) if kind == "offered" else kind


def reference_name(world: BuiltWorld) -> str:
    """Which baseline all learners are compared with in a world; the empty text for none."""
    return "" if world.reference is None else baseline_taken({"baseline": "offered"}, world)


# --------------------------------------------------------------------------------------------------------------------
# The mirror-descent family in an experiment: presets, switches, and the few numbers that one of them alone knows.


ALLOW = "allow_no_margin"
_COMMON = ("transitions", "baseline", "baseline_costs", ALLOW)


def _complete_mirror(found: Found, params: dict[str, Any], told: ComponentSpec) -> ComponentSpec:
    """The parameters of a description; `told` are those that stand between the baseline and the switches."""
    cls, preset = found.target, params.pop("preset", switches.DEFAULT_PRESET)
    if not isinstance(preset, str) or preset not in switches.PRESETS:
        raise SpecError("preset", switches.no_preset(preset))
    extra: ComponentSpec = {}
    if "baseline" in inspect.signature(cls).parameters:
        allowed = {ALLOW: params.pop(ALLOW)} if ALLOW in params else {}
        extra = complete_baseline(params) | allowed
        if not isinstance(allowed.get(ALLOW, False), bool):
            raise SpecError(ALLOW, f"{ALLOW} must be true or false")
    extra |= _complete_numbers(cls, params)
    chosen: dict[str, Any] = {}
    for key, value in params.items():
        chosen[key] = value
        try:
            switches.make_settings(preset, chosen, cls.switches, found.name)
        except (InvalidInput, TypeError) as error:
            raise SpecError(key, str(error)) from error
    return {"preset": preset, **extra, **told, **chosen}


def _check_mirror(cls: Any, part: ComponentSpec, view: View, safe: Any) -> None:
    """Refuse what its constructor would refuse in a world of this view; `safe` is its baseline or None."""
    if safe is not None:
        try:
            checked_baseline_costs(view, safe.costs, part.get(ALLOW, False))
        except HedgerowError as error:
            raise SpecError("margin" if "margin" in part else "baseline", str(error)) from error
    elif issubclass(cls, CVOPS):
        own = {key: part[key] for key in own_numbers(cls) if key in part}
        try:
            checked_memory(view, own.get("memory_budget", MEMORY_BUDGET))
        except InvalidInput as error:
            raise SpecError(named_in(str(error), own), str(error)) from error


def own_numbers(cls: Any) -> tuple[str, ...]:
    """What a learner's constructor takes beyond switches, baseline and transitions."""
    arguments = inspect.signature(cls).parameters.values()
    return tuple(a.name for a in arguments if a.kind is a.KEYWORD_ONLY and a.name not in _COMMON)


def _complete_numbers(cls: Any, params: dict[str, Any]) -> ComponentSpec:
    """The numbers that only the constructor of this learner takes; removes them from `params`."""
    result: ComponentSpec = {}
    for key in own_numbers(cls):
        if key in params:
            result[key] = params.pop(key)
            if isinstance(result[key], bool) or not isinstance(result[key], int | float):
                raise SpecError(key, f"{key} must be a number, not {short_repr(result[key])}")
    return result


# --------------------------------------------------------------------------------------------------------------------
# Worlds of an experiment: entries of the catalogue, saved CMDPs, and plug-ins.


FILE = "file"
"""The name of what is in a data file: a world (a CMDP or a `WorldDefinition`), or losses"""


def saved_world(path: Path) -> CMDP | WorldDefinition:
    """The world in a data file."""
    file = datafile.load(path)
    for kind in (CMDP, WorldDefinition):
        if file.kind == kind.file_kind:
            return kind.from_file(file, str(path))
    raise FileFormatError(f"{path} holds a {file.kind!r}, not a world: save a CMDP, or a hr.worlds.WorldDefinition")


def _complete_file(params: Mapping[str, Any], load: Callable[[Path], Any], folder: Path) -> ComponentSpec:
    """The description of what a data file holds, known by the hash of its content."""
    unknown = sorted(set(params) - {FILE})
    if unknown or not isinstance(params.get(FILE), str):
        raise SpecError(unknown[0] if unknown else FILE, "what comes from a file has the one parameter file = PATH")
    return {"name": FILE, FILE: params[FILE], "content": load(folder / params[FILE]).content_hash}


def _from_file(part: ComponentSpec, load: Callable[[Path], Any], folder: Path) -> Any:
    """What the data file of a description holds, if it is still the same."""
    saved = load(folder / part[FILE])
    if saved.content_hash != part["content"]:
        raise InvalidInput(f"{part[FILE]} has changed since this experiment was begun; take another directory")
    return saved


def without_path(part: ComponentSpec) -> ComponentSpec:
    """A description that says what a file holds and not where it is: a run does not depend on that."""
    return {key: value for key, value in part.items() if key != FILE} if part.get("name") == FILE else part


def complete_world(given: Mapping[str, Any], episodes: int, folder: Path) -> ComponentSpec:
    """`given` with the defaults of its catalogue entry; a file is known by the hash of its content."""
    params = at_length(given, episodes)
    if given["name"] == FILE:
        return _complete_file(params, saved_world, folder)
    found = named(worlds, given, folder)
    if not found.is_built_in:
        return described(found, checked_params(found, params))
    entry = entries.find_entry(found.name)
    for key, value in params.items():
        try:
            entries.complete_params(entry, {key: value})
        except InvalidInput as error:
            raise SpecError(key, str(error)) from error
    return {"name": found.name, **plain(entries.complete_params(entry, params))}


@dataclass(frozen=True, eq=False)
class BuiltWorld:
    """A world that is ready to play in."""

    cmdp: CMDP
    loss: FloatArray | None = None
    """The world's own loss, if it has one"""
    source: Any = None
    """What its function returned, or its file held"""

    @cached_property
    def offered(self) -> dict[str, Any]:
        """The safe policies that it offers, by name, each with `.policy` and `.costs`."""
        return baselines.offered_by(self.source) if hasattr(self.source, "cmdp") else {}

    @cached_property
    def reference(self) -> Any:
        """The policy that all learners are compared with, whatever each was given: what `offered` stands for.

        None where no policy is safe with a margin, and without constraints: then every policy is.
        """
        try:
            return safe_policy({"baseline": "offered"}, self).policy if self.cmdp.num_constraints else None
        except HedgerowError:
            return None

    @property
    def terms(self) -> Terms:
        """What its episodes, its loss and its baseline are called."""
        terms = getattr(self.source, "terms", USUAL)
        if not isinstance(terms, Terms):
            raise InvalidInput(f"the terms of a world are hr.worlds.Terms(...), not {type_name(terms)}")
        return terms


def build_world(part: ComponentSpec, folder: Path) -> BuiltWorld:
    """A new world."""
    if part["name"] == FILE:
        saved = _from_file(part, saved_world, folder)
        return BuiltWorld(*entries.parts_of(saved, part[FILE]), saved)
    found = as_described(worlds, part, folder)
    if found.is_built_in:
        world = catalogue.make(found.name, **own_params(part))
        return BuiltWorld(world.cmdp, world.loss, world)
    made = found.build(**own_params(part))
    return BuiltWorld(*entries.parts_of(made, found.name), made)


def shared_world(part: ComponentSpec, folder: Path) -> BuiltWorld:
    """The world of a cell without code of others: cells of one process share it, with its optima and Slater point.

    Only ours are shared, whose arrays nothing writes to, and saved ones of equal content. The worlds used last are
    kept, of `MOST_TRIPLES` triples together at most.
    """
    key = canonical(without_path(part))
    fresh = build_world(part, folder) if part["name"] == FILE else None  # its file may have changed
    with _sharing:
        found = _shared.pop(key, None) or fresh or build_world(part, folder)
        _shared[key] = found  # the last one used is the last in order
        while sum(world.cmdp.layout.num_triples for world in _shared.values()) > MOST_TRIPLES:
            del _shared[next(iter(_shared))]
    return found


MOST_TRIPLES = 1_000_000
"""Of shared worlds; each takes some hundred bytes with what is kept about it."""
_shared: dict[str, BuiltWorld] = {}
"""By description: name, all parameters and, for code that is not in the catalogue, the hash of its source."""
_sharing = RLock()


# --------------------------------------------------------------------------------------------------------------------
# Adversaries of an experiment: losses that ship with hedgerow, saved ones, the world's own loss, and plug-ins.
#
# A plug-in is a class, or a function that returns an object, with a method `block(layout, first, count)` or with
# `start`, `loss` and `observe`; or it is itself a function (layout, first, count) that returns losses.
#
# A constructor is given what the cell has (`losses/naming.py`); the description of a cell does not repeat it.


def complete_adversary(given: Mapping[str, Any], episodes: int, folder: Path | None = None) -> ComponentSpec:
    """`given` with its defaults; without a seed of its own it takes one from every cell."""
    params = at_length(given, episodes)
    if given["name"] == OWN:
        if params:
            raise SpecError(next(iter(params)), "the world's own loss has no parameters")
        return {"name": OWN}
    if given["name"] == FILE:
        return _complete_file(params, ObliviousLosses.load, folder or Path())
    found = named(adversaries, given, folder or Path())
    if not found.is_built_in:
        filled = naming.BLOCK if naming.is_block(found) else naming.filled_in(found, params)
        return described(found, checked_params(found, params, filled))
    return _complete_built_in(found, params)


def _complete_built_in(found: Found, params: dict[str, Any]) -> ComponentSpec:
    name, known = found.name, found.signature.parameters
    for key in params:
        if key not in known:
            near = did_you_mean(key, known)
            told = near if near.startswith("; did") else f"; they have: {', '.join(known) or 'none'}"
            raise SpecError(key, f"{name} losses have no parameter {key!r}{told}")
    filled = naming.filled_in(found, params)
    missing = [key for key, parameter in known.items() if parameter.required and key not in (*params, *filled)]
    if missing:
        raise SpecError(None, f"{name} losses need the parameter {missing[0]!r}")
    if filled:  # nothing can be built yet: `check_adversary` does, in every world
        defaults = {key: parameter.default for key, parameter in known.items() if not parameter.required}
        return described(found, {**defaults, **checked_params(found, params, filled)})
    try:
        complete = oblivious.from_params(name, params).params()
    except InvalidInput as error:
        raise SpecError(named_in(str(error), params), str(error)) from error
    if "seed" not in params:
        complete.pop("seed", None)
    return {"name": name, **plain({key: value for key, value in complete.items() if value is not None})}


def build_adversary(
    part: ComponentSpec,
    seed: int,
    world: BuiltWorld | None = None,
    folder: Path | None = None,
    episodes: int | None = None,
) -> Any:
    """The losses of a run of `episodes` in a world; `seed` is used where the description has none."""
    cmdp, own_loss = (None, None) if world is None else (world.cmdp, world.loss)
    if part["name"] == OWN:
        return naming.own_losses(own_loss)
    if part["name"] == FILE:
        return _from_file(part, ObliviousLosses.load, folder or Path())
    found = as_described(adversaries, part, folder or Path())
    return naming.build(found, own_params(part), seed=seed, world=cmdp, own_loss=own_loss, episodes=episodes)


def check_adversary(part: ComponentSpec, world: BuiltWorld, episodes: int, folder: Path) -> None:
    """Refuse an adversary that has no losses for this world, by asking for the first."""
    try:
        adversary = build_adversary(part, 0, world, folder, episodes)
    except InvalidInput as error:
        raise SpecError(named_in(str(error), own_params(part)), str(error)) from error
    found = None if part["name"] in (OWN, FILE) else as_described(adversaries, part, folder)
    if found and not found.is_built_in:
        with plugins.in_one_line(f"{found.name} fails", plugins.source_file(found.target)):
            _ask(adversary, world.cmdp, 0)
    else:
        _ask(adversary, world.cmdp, 0)
    if getattr(adversary, "cycle", None) is False:  # recorded losses come to an end
        _ask(adversary, world.cmdp, episodes - 1)


def _ask(adversary: Any, cmdp: CMDP, episode: int) -> None:
    if hasattr(adversary, "block"):
        adversary.block(cmdp.layout, episode, 1)
    else:
        adversary.start(cmdp.layout)
        adversary.loss(episode)


# --------------------------------------------------------------------------------------------------------------------
# Learners of an experiment: the mirror-descent family by presets and switches (`mirror`), others by their signature.
#
# The constructor of a learner is given what its signature asks for: `view`, `episodes`, `delta`, `seed`;
# `transitions` with `known_transitions = true`; a view that knows mean costs with `known_costs = "zero"` (where they
# are 0) or `"all"`; `baseline` and `baseline_costs` (without the latter, `baseline` has `.policy` and `.costs`);
# `slater`, the largest margin of the world, unless the file gives another number; `world` and `losses`, the CMDP and
# the adversary themselves, for learners that are meant to cheat; and its own parameters as the file has them.


KNOWN = "known_transitions"
KNOWN_COSTS = "known_costs"
COSTS_TOLD = ("zero", "all")
LEARNER_SUPPLIED = ("view", "episodes", "delta", "seed", "transitions", "baseline", "baseline_costs", "world", "losses")
"""Parameters of a constructor that the experiment fills in."""


def complete_learner(given: Mapping[str, Any], folder: Path | None = None) -> ComponentSpec:
    """`given` with its preset and, if it needs one, its baseline; parameters and switches are checked one by one."""
    found = named(learners, given, folder or Path())
    params = {key: value for key, value in given.items() if key != "name"}
    known = params.pop(KNOWN, False)
    if not isinstance(known, bool):
        raise SpecError(KNOWN, f"{KNOWN} must be true or false, not {short_repr(known)}")
    told: ComponentSpec = {KNOWN: True} if known else {}
    if KNOWN_COSTS in params:
        told[KNOWN_COSTS] = params.pop(KNOWN_COSTS)
        if told[KNOWN_COSTS] not in COSTS_TOLD:
            choice = " or ".join(map(repr, COSTS_TOLD))
            raise SpecError(KNOWN_COSTS, f"{KNOWN_COSTS} must be {choice}, not {short_repr(told[KNOWN_COSTS])}")
    if has_presets(found.target):
        return described(found, _complete_mirror(found, params, told))
    return described(found, _complete_plain(found, params, told))


def build_learner(
    part: ComponentSpec,
    world: BuiltWorld,
    episodes: int,
    delta: float,
    seed: int,
    folder: Path | None = None,
    losses: Any = None,
) -> Learner:
    """The learner on a view of a world; `losses` are the adversary, for a learner that asks for it."""
    found = as_described(learners, part, folder or Path())
    common = {"episodes": episodes, "delta": delta, "seed": seed, "world": world.cmdp, "losses": losses}
    arguments = _arguments(found, part, world.cmdp, common, safe_policy(part, world))
    made = found.build(**arguments) if PLUG_IN in part else found.target(**arguments)
    return _checked(found, made)


def check_learner(
    part: ComponentSpec, world: BuiltWorld, episodes: int = 1, delta: float = DELTA, folder: Path | None = None
) -> None:
    """Refuse a learner that cannot be built in this world.

    The mirror-descent family is not built for this, since that takes compiled code; others are plain Python.
    """
    found = as_described(learners, part, folder or Path())
    try:
        safe = safe_policy(part, world)
    except HedgerowError as error:
        raise SpecError("margin" if "margin" in part else "baseline", str(error)) from error
    if has_presets(found.target):
        _check_mirror(found.target, part, _view(part, world.cmdp), safe)
        return
    nothing = Fixed(np.zeros(world.cmdp.layout.num_rows))
    try:
        build_learner(part, world, episodes, delta, 0, folder, nothing)
    except InvalidInput as error:
        raise SpecError("name", str(error)) from error


def check_pair(
    part: ComponentSpec, adversary: ComponentSpec, world: BuiltWorld, episodes: int, delta: float, folder: Path
) -> None:
    """Refuse a learner that has to know the losses, where they answer to what is played."""
    if "losses" not in as_described(learners, part, folder).signature.parameters:
        return
    losses = build_adversary(adversary, 0, world, folder, episodes)
    if not isinstance(losses, AdaptiveLosses):
        return
    try:
        build_learner(part, world, episodes, delta, 0, folder, losses)
    except InvalidInput as error:
        raise SpecError("name", str(error)) from error


def has_presets(target: Any) -> bool:
    """Whether a learner is configured by presets and switches, as the mirror-descent family is."""
    return isinstance(getattr(target, "switches", None), frozenset)


def needs_baseline(target: Any) -> bool:
    """Whether a learner cannot do without a safe policy."""
    parameter = inspect.signature(target).parameters.get("baseline")
    return parameter is not None and (parameter.default is parameter.empty or has_presets(target))


def _complete_plain(found: Found, params: dict[str, Any], told: ComponentSpec) -> ComponentSpec:
    """The description of a learner of which only the signature is known."""
    known = found.signature.parameters
    if "view" not in known:
        raise SpecError("name", f"{found.name} is no learner: its constructor has no parameter 'view'")
    if KNOWN in told and "transitions" not in known:
        raise SpecError(KNOWN, f"{found.name} cannot know the transitions: its constructor has no parameter for them")
    if KNOWN not in told and "transitions" in known and known["transitions"].required:
        raise SpecError(None, f"{found.name} has to know the transitions: write {KNOWN} = true")
    wanted = "baseline" in known and (known["baseline"].required or "baseline" in params or "margin" in params)
    safe = complete_baseline(params) if wanted else {}
    return {**safe, **told, **checked_params(found, params, (*LEARNER_SUPPLIED, *({"slater"} - set(params))))}


def _arguments(found: Found, part: ComponentSpec, cmdp: CMDP, common: dict[str, Any], safe: Any) -> dict[str, Any]:
    """What to call the constructor with."""
    known = found.signature.parameters
    others = (KNOWN, KNOWN_COSTS, "baseline", "margin")
    arguments = {key: value for key, value in own_params(part).items() if key not in others}
    arguments |= {key: value for key, value in {"view": _view(part, cmdp), **common}.items() if key in known}
    if KNOWN in part:
        arguments["transitions"] = cmdp.transitions
    if "slater" in known and "slater" not in arguments:
        arguments["slater"] = offline.slater(cmdp).margin
    if safe is not None:
        both = "baseline_costs" in known
        arguments |= {"baseline": safe.policy, "baseline_costs": safe.costs} if both else {"baseline": safe}
    return arguments


def _view(part: ComponentSpec, cmdp: CMDP) -> View:
    """What the learner knows of the world."""
    told = part.get(KNOWN_COSTS)
    if told is None:
        return cmdp.view()
    means = cmdp.mean_costs
    return cmdp.view().knowing(costs=means) if told == "all" else cmdp.view().knowing(zero_costs=means == 0.0)


def _checked(found: Found, made: Any) -> Learner:
    for name in ("view", "plan", "observe"):
        if not hasattr(made, name):
            raise InvalidInput(f"{found.name} makes {type_name(made)}, which is no learner: it has no {name!r}")
    learner: Learner = made
    return learner


# --------------------------------------------------------------------------------------------------------------------
# What lists say about a learner or an adversary besides its parameters: of ours it is in the index of the registry.


def learner_facts(found: Found) -> dict[str, Any]:
    """What lists say about a learner."""
    cls = found.target
    return {
        "title": getattr(cls, "title", found.name.upper()),
        "inputs": describe_inputs(cls),
        "source": getattr(cls, "source", ""),
        "recalled": getattr(cls, "recalled", ""),
        "needs_baseline": needs_baseline(cls),
        "presets": list(switches.PRESETS) if has_presets(cls) else [],
        "switches": sorted(cls.switches) if has_presets(cls) else [],
        "filled_in": [name for name in LEARNER_SUPPLIED if name in found.signature.parameters],
    }


def adversary_facts(found: Found) -> dict[str, Any]:
    """What lists say about an adversary."""
    return {"filled_in": list(naming.filled_in(found)), "stochastic": is_stochastic(found.target)}


FACTS: Mapping[str, Callable[[Found], dict[str, Any]]] = {
    "learner": learner_facts,
    "adversary": adversary_facts,
    "cost distribution": lambda _: {},
}
"""By the kind of a registry."""
