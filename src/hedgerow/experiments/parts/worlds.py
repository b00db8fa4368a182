"""Worlds of an experiment: entries of the catalogue, saved CMDPs, and plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow import catalogue
from hedgerow.catalogue import entries
from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.experiments.parts.common import (
    Misfit,
    Part,
    as_described,
    at_length,
    checked_params,
    described,
    named,
    own_params,
    plain,
)
from hedgerow.model.cmdp import CMDP
from hedgerow.planning import offline
from hedgerow.registry import worlds

FILE = "file"
"""The name of a world that is a saved CMDP"""


def complete_world(given: Mapping[str, Any], episodes: int, folder: Path) -> Part:
    """`given` with the defaults of its catalogue entry; a file is known by the hash of its content."""
    params = at_length(given, episodes)
    if given["name"] == FILE:
        unknown = sorted(set(params) - {"file"})
        if unknown or not isinstance(params.get("file"), str):
            raise Misfit(unknown[0] if unknown else "file", "a world from a file has the one parameter file = PATH")
        return {"name": FILE, "file": params["file"], "content": _load(folder, params["file"]).content_hash}
    found = named(worlds, given, folder)
    if not found.is_built_in:
        return described(found, checked_params(found, params))
    entry = entries.find(found.name)
    for key, value in params.items():
        try:
            entries.complete_params(entry, {key: value})
        except InvalidInput as error:
            raise Misfit(key, str(error)) from error
    return {"name": found.name, **plain(entries.complete_params(entry, params))}


def build_world(part: Part, folder: Path) -> tuple[CMDP, FloatArray | None]:
    """The world, and its own loss if it has one."""
    if part["name"] == FILE:
        cmdp = _load(folder, part["file"])
        if cmdp.content_hash != part["content"]:
            raise InvalidInput(f"{part['file']} has changed since this experiment was begun; take another directory")
        return cmdp, None
    found = as_described(worlds, part, folder)
    if not found.is_built_in:
        return entries.parts_of(found.build(**own_params(part)), found.name)
    world = catalogue.make(found.name, **own_params(part))
    return world.cmdp, world.loss


def offered_baselines(part: Part, folder: Path) -> dict[str, Any]:
    """The safe policies that a world offers, by name, each with `.policy` and `.costs`; a file has none."""
    if part["name"] == FILE:
        return {}
    found = as_described(worlds, part, folder)
    if found.is_built_in:
        return own_baselines(catalogue.make(found.name, **own_params(part)))
    made = found.build(**own_params(part))
    return own_baselines(made) if hasattr(made, "cmdp") else {}


def own_baselines(world: Any) -> dict[str, Any]:
    """`budget` and `own` of a catalogue entry or of a world built like one, if it has them."""
    budget, own = getattr(world, "baseline_thresholds", None), getattr(world, "baseline", None)
    offered = {} if own is None else {"own": own}
    if budget is not None:
        offered["budget"] = offline.optimum(world.cmdp.with_thresholds(budget), world.loss)
    return offered


def _load(folder: Path, file: str) -> CMDP:
    return CMDP.load(folder / file)
