"""The three ingredients of a cell, as data: a world, an adversary, a learner.

Each is checked when a file is read, key by key, so that a mistake is known by its key; and each is built from the same
data when a cell runs. A description is complete: it names every parameter, so that its hash says what was run even if a
default changes later. "T" in the place of a whole number stands for the number of episodes of the cell.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import catalogue
from hedgerow.adversaries import losses
from hedgerow.catalogue import registry
from hedgerow.checks import FloatArray, real_number, shown
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.mirror import settings as switches
from hedgerow.learners.mirror.base import MirrorLearner as Learner
from hedgerow.learners.mirror.cvops import CVOPS, MEMORY_BUDGET, checked_arguments
from hedgerow.learners.mirror.files import LEARNERS
from hedgerow.learners.mirror.sops import checked_costs
from hedgerow.model.cmdp import CMDP
from hedgerow.planning import offline

Part = dict[str, Any]
"""{"name": ..., parameters}: plain data"""

FILE, OWN = "file", "own"
"""The world that is a file, and the adversary that repeats the world's own loss."""
LENGTH = "T"
BASELINES = ("slater", "margin")
_BASELINE_KEYS = ("baseline", "margin", "allow_no_margin")


class Misfit(HedgerowError):  # noqa: N818 - never leaves this folder
    """A mistake in one key of a part; the reader of the file adds the line."""

    def __init__(self, key: str | None, message: str) -> None:
        super().__init__(message)
        self.key = key


# Worlds --------------------------------------------------------------------------------------------------------


def complete_world(given: Mapping[str, Any], episodes: int, folder: Path) -> Part:
    """`given` with the defaults of its catalogue entry; a file is known by the hash of its content."""
    name, params = given["name"], _at_length(given, episodes)
    if name == FILE:
        unknown = sorted(set(params) - {"file"})
        if unknown or not isinstance(params.get("file"), str):
            raise Misfit(unknown[0] if unknown else "file", "a world from a file has the one parameter file = PATH")
        return {"name": FILE, "file": params["file"], "content": _load(folder, params["file"]).content_hash}
    if name not in registry.names():
        raise Misfit("name", f"unknown world {shown(name)}; known: {', '.join([*registry.names(), FILE])}")
    entry = registry.find(name)
    for key, value in params.items():
        try:
            registry.complete_params(entry, {key: value})
        except InvalidInput as error:
            raise Misfit(key, str(error)) from error
    return {"name": name, **_plain(registry.complete_params(entry, params))}


def build_world(part: Part, folder: Path) -> tuple[CMDP, FloatArray | None]:
    """The world, and its own loss if it has one."""
    params = {key: value for key, value in part.items() if key != "name"}
    if part["name"] == FILE:
        cmdp = _load(folder, part["file"])
        if cmdp.content_hash != part["content"]:
            raise InvalidInput(f"{part['file']} has changed since this experiment was begun; take another directory")
        return cmdp, None
    world = catalogue.make(part["name"], **params)
    return world.cmdp, world.loss


def _load(folder: Path, file: str) -> CMDP:
    return CMDP.load(folder / file)


# Adversaries ------------------------------------------------------------------------------------------------------


def complete_adversary(given: Mapping[str, Any], episodes: int) -> Part:
    """`given` with its defaults; without a seed of its own it takes one from every cell."""
    name, params = given["name"], _at_length(given, episodes)
    if name == OWN:
        if params:
            raise Misfit(next(iter(params)), "the world's own loss has no parameters")
        return {"name": OWN}
    if name not in losses._KINDS:
        raise Misfit("name", f"unknown adversary {shown(name)}; known: {', '.join([*losses._KINDS, OWN])}")
    known = _parameters(losses._KINDS[name])
    for key in params:
        if key not in known:
            raise Misfit(key, f"{name} losses have no parameter {key!r}; they have: {', '.join(known)}")
    missing = [key for key, needed in known.items() if needed and key not in params]
    if missing:
        raise Misfit(None, f"{name} losses need the parameter {missing[0]!r}")
    try:
        complete = losses.from_params(name, params).params()
    except InvalidInput as error:
        raise Misfit(_named_in(str(error), params), str(error)) from error
    if "seed" not in params:
        complete.pop("seed", None)
    return {"name": name, **_plain({key: value for key, value in complete.items() if value is not None})}


def build_adversary(part: Part, seed: int, own_loss: FloatArray | None) -> Any:
    """The losses; `seed` is used where the description has none."""
    params = {key: value for key, value in part.items() if key != "name"}
    if part["name"] == OWN:
        if own_loss is None:
            raise InvalidInput("this world has no loss of its own: choose an adversary")
        return losses.Fixed(own_loss)
    if "seed" in _parameters(losses._KINDS[part["name"]]):
        params.setdefault("seed", seed)
    return losses.from_params(part["name"], params)


def _parameters(cls: type) -> dict[str, bool]:
    """The constructor's arguments by name, and whether they must be given."""
    arguments = inspect.signature(cls).parameters.values()
    return {argument.name: argument.default is argument.empty for argument in arguments}


# Learners ---------------------------------------------------------------------------------------------------------


def complete_learner(given: Mapping[str, Any]) -> Part:
    """`given` with its preset and, if it needs one, its baseline; switches are checked one by one."""
    name, params = given["name"], {key: value for key, value in given.items() if key != "name"}
    if name not in LEARNERS:
        raise Misfit("name", f"unknown learner {shown(name)}; known: {', '.join(LEARNERS)}")
    cls, preset = LEARNERS[name], params.pop("preset", "paper")
    if not isinstance(preset, str) or preset not in switches.PRESETS:
        raise Misfit("preset", f"the preset is {shown(preset)}; choose one of {', '.join(switches.PRESETS)}")
    extra = _complete_baseline(cls, params) if needs_baseline(cls) else {}
    extra |= _complete_arguments(cls, params)
    known = params.pop("known_transitions", False)
    if not isinstance(known, bool):
        raise Misfit("known_transitions", f"known_transitions must be true or false, not {shown(known)}")
    chosen: dict[str, Any] = {}
    for key, value in params.items():
        chosen[key] = value
        try:
            switches.make_settings(preset, chosen, cls.switches, name)
        except (InvalidInput, TypeError) as error:
            raise Misfit(key, str(error)) from error
    return {"name": name, "preset": preset, **extra, **({"known_transitions": True} if known else {}), **chosen}


def build_learner(part: Part, cmdp: CMDP, episodes: int, delta: float, seed: int) -> Learner:
    """The learner on a view of `cmdp`."""
    params = {key: value for key, value in part.items() if key not in ("name", *_BASELINE_KEYS)}
    if params.pop("known_transitions", False):
        params["transitions"] = cmdp.transitions
    cls: Any = LEARNERS[part["name"]]
    if needs_baseline(cls):
        params |= _baseline(part, cmdp)
    learner: Learner = cls(cmdp.view(), episodes, delta, seed=seed, **params)
    return learner


def check_learner(part: Part, cmdp: CMDP) -> None:
    """Refuse a learner that cannot be built in this world; without building it, which takes compiled code."""
    cls, view = LEARNERS[part["name"]], cmdp.view()
    if needs_baseline(cls):
        try:
            given = _baseline(part, cmdp)
            checked_costs(view, given["baseline_costs"], given.get("allow_no_margin", False))
        except HedgerowError as error:
            raise Misfit("margin" if "margin" in part else "baseline", str(error)) from error
    elif cls is CVOPS:
        own = {key: part[key] for key in own_arguments(cls) if key in part}
        try:
            checked_arguments(view, own.get("memory_budget", MEMORY_BUDGET), own.get("primal_constant"))
        except InvalidInput as error:
            raise Misfit(_named_in(str(error), own), str(error)) from error


def _complete_arguments(cls: type[Learner], params: dict[str, Any]) -> Part:
    """Takes the numbers out of `params` that the constructor of this learner alone knows."""
    result: Part = {}
    for key in own_arguments(cls):
        if key in params:
            result[key] = params.pop(key)
            if isinstance(result[key], bool) or not isinstance(result[key], int | float):
                raise Misfit(key, f"{key} must be a number, not {shown(result[key])}")
    return result


def own_arguments(cls: type[Learner]) -> tuple[str, ...]:
    """What a learner's constructor takes beyond switches, baseline and transitions."""
    arguments = inspect.signature(cls.__init__).parameters.values()
    common = ("baseline_costs", "transitions", *_BASELINE_KEYS)
    return tuple(a.name for a in arguments if a.kind is a.KEYWORD_ONLY and a.name not in common)


def needs_baseline(cls: type[Learner]) -> bool:
    return "baseline" in inspect.signature(cls.__init__).parameters


def _complete_baseline(cls: type[Learner], params: dict[str, Any]) -> Part:
    """Takes the keys of the baseline out of `params`."""
    kind = params.pop("baseline", "margin" if "margin" in params else "slater")
    if kind not in BASELINES:
        raise Misfit("baseline", f"the baseline is {shown(kind)}; choose one of {', '.join(BASELINES)}")
    result: Part = {"baseline": kind}
    if kind == "margin":
        if "margin" not in params:
            raise Misfit("baseline", "the baseline 'margin' needs a number: margin = 0.1")
        try:
            result["margin"] = real_number("the margin", params.pop("margin"), 0.0, 1e9)
        except InvalidInput as error:
            raise Misfit("margin", str(error)) from error
    elif "margin" in params:
        raise Misfit("margin", "a margin belongs to baseline = 'margin'; the Slater policy has the largest one")
    if "allow_no_margin" in params:
        result["allow_no_margin"] = params.pop("allow_no_margin")
        if not isinstance(result["allow_no_margin"], bool):
            raise Misfit("allow_no_margin", "allow_no_margin must be true or false")
    return result


def _baseline(part: Part, cmdp: CMDP) -> dict[str, Any]:
    """The constructor's arguments: a strictly feasible policy of the true world, and its exact costs."""
    safe: offline.SlaterPoint | offline.OfflineSolution
    safe = offline.slater(cmdp) if part["baseline"] == "slater" else offline.strictly_feasible(cmdp, part["margin"])
    allowed = {"allow_no_margin": part["allow_no_margin"]} if "allow_no_margin" in part else {}
    return {"baseline": safe.policy, "baseline_costs": safe.costs, **allowed}


# Common -----------------------------------------------------------------------------------------------------------


def default_label(given: Mapping[str, Any], quiet: tuple[str, ...] = ()) -> str:
    """A readable name: the part's name and what was given; the keys in `quiet` are understood without their name."""
    words = [str(given["name"])]
    for key, value in given.items():
        if key != "name":
            words.append(_short(value) if key in quiet else f"{key}={_short(value)}")
    return "-".join(words)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, int) for item in value) and len(value) <= 12:
        return "x".join(map(str, value))
    if isinstance(value, list):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:6]
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "+")


def _at_length(given: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    return {key: episodes if value == LENGTH else value for key, value in given.items() if key != "name"}


def _named_in(message: str, params: Mapping[str, Any]) -> str | None:
    """The key that a message speaks of."""
    return next((key for key in params if key in message), None)


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
