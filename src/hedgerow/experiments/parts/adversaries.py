"""Adversaries of an experiment: losses that ship with hedgerow, the world's own loss, and plug-ins.

A plug-in is a class, or a function that returns an object, with a method `block(layout, first, count)` or with `start`,
`loss` and `observe`; or it is itself a function (layout, first, count) that returns losses.

A constructor is given what the cell has: `seed`, unless the file gives one; and where the signature asks for them
without a default and the file does not give them, `episodes`, `world` (the CMDP) and `own_loss`, the world's own loss.
The description of a cell does not repeat these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hedgerow.adversaries import losses
from hedgerow.checks import FloatArray, did_you_mean
from hedgerow.errors import InvalidInput
from hedgerow.experiments.parts.common import (
    Misfit,
    Part,
    as_described,
    at_length,
    checked_params,
    described,
    named,
    named_in,
    own_params,
    plain,
)
from hedgerow.model.cmdp import CMDP
from hedgerow.registry import Found, adversaries, loading

OWN = "own"
"""The adversary that repeats the world's own loss."""
SUPPLIED = ("episodes", "world", "own_loss")
"""Parameters that a cell fills in where they have no default."""
_BLOCK = ("layout", "first", "count")


def complete_adversary(given: Mapping[str, Any], episodes: int, folder: Path | None = None) -> Part:
    """`given` with its defaults; without a seed of its own it takes one from every cell."""
    params = at_length(given, episodes)
    if given["name"] == OWN:
        if params:
            raise Misfit(next(iter(params)), "the world's own loss has no parameters")
        return {"name": OWN}
    found = named(adversaries, given, folder or Path())
    if not found.is_built_in:
        filled = _BLOCK if _is_block(found) else filled_in(found, params)
        return described(found, checked_params(found, params, filled))
    return _complete_built_in(found, params)


def filled_in(found: Found, params: Collection[str] = ()) -> tuple[str, ...]:
    """The parameters that a cell fills in if the file gives `params`."""
    known = found.signature.parameters
    return tuple(name for name in SUPPLIED if name in known and known[name].required and name not in params)


def _complete_built_in(found: Found, params: dict[str, Any]) -> Part:
    name, known = found.name, found.signature.parameters
    for key in params:
        if key not in known:
            near = did_you_mean(key, known)
            told = near if near.startswith("; did") else f"; they have: {', '.join(known) or 'none'}"
            raise Misfit(key, f"{name} losses have no parameter {key!r}{told}")
    filled = filled_in(found, params)
    missing = [key for key, parameter in known.items() if parameter.required and key not in (*params, *filled)]
    if missing:
        raise Misfit(None, f"{name} losses need the parameter {missing[0]!r}")
    if filled:  # nothing can be built yet: `check_adversary` does, in every world
        defaults = {key: parameter.default for key, parameter in known.items() if not parameter.required}
        return described(found, {**defaults, **checked_params(found, params, filled)})
    try:
        complete = losses.from_params(name, params).params()
    except InvalidInput as error:
        raise Misfit(named_in(str(error), params), str(error)) from error
    if "seed" not in params:
        complete.pop("seed", None)
    return {"name": name, **plain({key: value for key, value in complete.items() if value is not None})}


def build_adversary(
    part: Part,
    seed: int,
    own_loss: FloatArray | None,
    folder: Path | None = None,
    *,
    cmdp: CMDP | None = None,
    episodes: int | None = None,
) -> Any:
    """The losses of a run of `episodes` in the world `cmdp`; `seed` is used where the description has none."""
    if part["name"] == OWN:
        if own_loss is None:
            raise InvalidInput("this world has no loss of its own: choose an adversary")
        return losses.Fixed(own_loss)
    found, params = as_described(adversaries, part, folder or Path()), own_params(part)
    if _is_block(found):
        return losses.checked(found.target)
    if "seed" in found.signature.parameters:
        params.setdefault("seed", seed)
    cell = {"episodes": episodes, "world": cmdp, "own_loss": own_loss}
    for name in filled_in(found, params):
        if cell[name] is None:
            what = "this world has no loss of its own" if name == "own_loss" else f"nothing to fill in for {name!r}"
            raise InvalidInput(f"{what}: {found.name} needs one; choose another adversary")
        params[name] = cell[name]
    if found.is_built_in:
        return losses.from_params(found.name, params)
    made = found.build(**params)
    return made if isinstance(made, losses.ObliviousLosses) else losses.checked(made)


def check_adversary(part: Part, cmdp: CMDP, own_loss: FloatArray | None, episodes: int, folder: Path) -> None:
    """Refuse an adversary that has no losses for this world, by asking for the first."""
    try:
        adversary = build_adversary(part, 0, own_loss, folder, cmdp=cmdp, episodes=episodes)
    except InvalidInput as error:
        raise Misfit(named_in(str(error), own_params(part)), str(error)) from error
    found = None if part["name"] == OWN else as_described(adversaries, part, folder)
    if found is not None and not found.is_built_in:
        with loading.in_one_line(f"{found.name} fails", loading.source_file(found.target)):
            _ask(adversary, cmdp, 0)
    else:
        _ask(adversary, cmdp, 0)
    if getattr(adversary, "cycle", None) is False:  # recorded losses come to an end
        _ask(adversary, cmdp, episodes - 1)


def _ask(adversary: Any, cmdp: CMDP, episode: int) -> None:
    if hasattr(adversary, "block"):
        adversary.block(cmdp.layout, episode, 1)
    else:
        adversary.start(cmdp.layout)
        adversary.loss(episode)


def _is_block(found: Found) -> bool:
    """Whether it is a function that returns losses itself."""
    return not isinstance(found.target, type) and tuple(found.signature.parameters)[:3] == _BLOCK
