"""Losses by name, as experiments write them: "switching", {"name": "switching", "period": 500}, "own".

A constructor is given what the run has: `seed`, unless one is given; and where its signature asks for them without a
default and they are not given, `episodes`, `world` (the CMDP) and `own_loss`, the world's own loss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hedgerow.checks import FloatArray, short_repr
from hedgerow.errors import InvalidInput
from hedgerow.losses import oblivious
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.model.cmdp import CMDP
from hedgerow.registry import Found, adversaries
from hedgerow.registry.signatures import checked_arguments

OWN = "own"
"""The adversary that repeats the world's own loss."""
SUPPLIED = ("episodes", "world", "own_loss")
"""Parameters that a run fills in where they have no default."""
BLOCK = ("layout", "first", "count")
"""The arguments of a function that is itself an adversary."""


def named(given: str | Mapping[str, Any], *, seed: int, world: CMDP, own_loss: FloatArray | None, episodes: int) -> Any:
    """The adversary of a name, or of a name and parameters, in a run."""
    params = {"name": given} if isinstance(given, str) else dict(given)
    name = params.pop("name", None)
    if not isinstance(name, str):
        raise InvalidInput(
            f"losses by name are a text or {{'name': 'switching', 'period': 500}}, not {short_repr(given)}"
        )
    if name == OWN:
        if params:
            raise InvalidInput("the world's own loss has no parameters")
        return own_losses(own_loss)
    found = adversaries.look_up(name, Path())
    filled = BLOCK if is_block(found) else filled_in(found, params)
    params = checked_arguments(f"{name} losses", found.signature, params, filled)
    return build(found, params, seed=seed, world=world, own_loss=own_loss, episodes=episodes)


def own_losses(own_loss: FloatArray | None) -> oblivious.Fixed:
    """The world's own loss in every episode."""
    if own_loss is None:
        raise InvalidInput("this world has no loss of its own: choose an adversary")
    return oblivious.Fixed(own_loss)


def build(
    found: Found,
    params: Mapping[str, Any],
    *,
    seed: int,
    world: CMDP | None,
    own_loss: FloatArray | None,
    episodes: int | None,
) -> Any:
    """The adversary that was found, with these parameters and what the run fills in."""
    if is_block(found):
        return oblivious.checked(found.target)
    arguments = dict(params)
    if "seed" in found.signature.parameters:
        arguments.setdefault("seed", seed)
    run = {"episodes": episodes, "world": world, "own_loss": own_loss}
    for name in filled_in(found, arguments):
        if run[name] is None:
            what = "this world has no loss of its own" if name == "own_loss" else f"nothing to fill in for {name!r}"
            raise InvalidInput(f"{what}: {found.name} needs one; choose another adversary")
        arguments[name] = run[name]
    if found.is_built_in:
        return oblivious.from_params(found.name, arguments)
    made = found.build(**arguments)
    return made if isinstance(made, ObliviousLosses) else oblivious.checked(made)


def filled_in(found: Found, params: Collection[str] = ()) -> tuple[str, ...]:
    """The parameters that a run fills in if `params` are given."""
    known = found.signature.parameters
    return tuple(name for name in SUPPLIED if name in known and known[name].required and name not in params)


def is_block(found: Found) -> bool:
    """Whether it is a function that returns losses itself."""
    return not isinstance(found.target, type) and tuple(found.signature.parameters)[:3] == BLOCK
