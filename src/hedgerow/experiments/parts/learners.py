"""Learners of an experiment: the mirror-descent family by presets and switches (`mirror`), others by their signature.

The constructor of a learner is given what its signature asks for: `view`, `episodes`, `delta`, `seed`; `transitions`
with `known_transitions = true`; a view that knows mean costs with `known_costs = "zero"` (where they are 0) or `"all"`;
`baseline` and `baseline_costs` (without the latter, `baseline` has `.policy` and
`.costs`); `slater`, the largest margin of the world, unless the file gives another number; `world` and `losses`, the
CMDP and the adversary themselves, for learners that are meant to cheat; and its own parameters as the file has them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.adversaries.losses import Fixed
from hedgerow.checks import kind_of, shown
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.parts import mirror
from hedgerow.experiments.parts.baseline import complete_baseline, safe_policy
from hedgerow.experiments.parts.common import (
    PLUG_IN,
    Misfit,
    Part,
    as_described,
    checked_params,
    described,
    named,
    own_params,
)
from hedgerow.learners.protocol import Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.view import View
from hedgerow.planning import offline
from hedgerow.registry import Found, learners

KNOWN = "known_transitions"
KNOWN_COSTS = "known_costs"
COSTS_TOLD = ("zero", "all")
SUPPLIED = ("view", "episodes", "delta", "seed", "transitions", "baseline", "baseline_costs", "world", "losses")
"""Parameters of a constructor that the experiment fills in."""


def complete_learner(given: Mapping[str, Any], folder: Path | None = None) -> Part:
    """`given` with its preset and, if it needs one, its baseline; parameters and switches are checked one by one."""
    found = named(learners, given, folder or Path())
    params = {key: value for key, value in given.items() if key != "name"}
    known = params.pop(KNOWN, False)
    if not isinstance(known, bool):
        raise Misfit(KNOWN, f"{KNOWN} must be true or false, not {shown(known)}")
    told: Part = {KNOWN: True} if known else {}
    if KNOWN_COSTS in params:
        told[KNOWN_COSTS] = params.pop(KNOWN_COSTS)
        if told[KNOWN_COSTS] not in COSTS_TOLD:
            choice = " or ".join(map(repr, COSTS_TOLD))
            raise Misfit(KNOWN_COSTS, f"{KNOWN_COSTS} must be {choice}, not {shown(told[KNOWN_COSTS])}")
    if has_presets(found.target):
        return described(found, mirror.complete(found, params, told))
    return described(found, _complete_plain(found, params, told))


def build_learner(
    part: Part,
    cmdp: CMDP,
    episodes: int,
    delta: float,
    seed: int,
    folder: Path | None = None,
    world: Part | None = None,
    losses: Any = None,
) -> Learner:
    """The learner on a view of `cmdp`; `world` is its description, for baselines that the world offers; `losses` are
    the adversary, for a learner that is told it.
    """
    found = as_described(learners, part, folder or Path())
    safe = safe_policy(part, cmdp, world, folder)
    common = {"episodes": episodes, "delta": delta, "seed": seed, "world": cmdp, "losses": losses}
    arguments = _arguments(found, part, cmdp, common, safe)
    made = found.build(**arguments) if PLUG_IN in part else found.target(**arguments)
    return _checked(found, made)


def check_learner(
    part: Part,
    cmdp: CMDP,
    episodes: int = 1,
    delta: float = 0.01,
    folder: Path | None = None,
    world: Part | None = None,
) -> None:
    """Refuse a learner that cannot be built in this world.

    The mirror-descent family is not built for this, since that takes compiled code; others are plain Python.
    """
    found = as_described(learners, part, folder or Path())
    try:
        safe = safe_policy(part, cmdp, world, folder)
    except HedgerowError as error:
        raise Misfit("margin" if "margin" in part else "baseline", str(error)) from error
    if has_presets(found.target):
        mirror.check(found.target, part, _view(part, cmdp), safe)
        return
    nothing = Fixed(np.zeros(cmdp.layout.num_rows))
    try:
        build_learner(part, cmdp, episodes, delta, 0, folder, world, nothing)
    except InvalidInput as error:
        raise Misfit("name", str(error)) from error


def has_presets(target: Any) -> bool:
    """Whether a learner is configured by presets and switches, as the mirror-descent family is."""
    return isinstance(getattr(target, "switches", None), frozenset)


def needs_baseline(target: Any) -> bool:
    """Whether a learner cannot do without a safe policy."""
    parameter = inspect.signature(target).parameters.get("baseline")
    return parameter is not None and (parameter.default is parameter.empty or has_presets(target))


def _complete_plain(found: Found, params: dict[str, Any], told: Part) -> Part:
    """The description of a learner of which only the signature is known."""
    known = found.signature.parameters
    if "view" not in known:
        raise Misfit("name", f"{found.name} is no learner: its constructor has no parameter 'view'")
    if KNOWN in told and "transitions" not in known:
        raise Misfit(KNOWN, f"{found.name} cannot be told the transitions: its constructor has no such parameter")
    if KNOWN not in told and "transitions" in known and known["transitions"].required:
        raise Misfit(None, f"{found.name} has to know the transitions: write {KNOWN} = true")
    wanted = "baseline" in known and (known["baseline"].required or "baseline" in params or "margin" in params)
    safe = complete_baseline(params) if wanted else {}
    given = (*SUPPLIED, *({"slater"} - set(params)))
    return {**safe, **told, **checked_params(found, params, given)}


def _arguments(found: Found, part: Part, cmdp: CMDP, common: dict[str, Any], safe: Any) -> dict[str, Any]:
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


def _view(part: Part, cmdp: CMDP) -> View:
    """What the learner is told of the world."""
    told = part.get(KNOWN_COSTS)
    if told is None:
        return cmdp.view()
    means = cmdp.mean_costs
    return cmdp.view().knowing(costs=means) if told == "all" else cmdp.view().knowing(zero_costs=means == 0.0)


def _checked(found: Found, made: Any) -> Learner:
    missing = [name for name in ("view", "plan", "observe") if not hasattr(made, name)]
    if missing:
        raise InvalidInput(f"{found.name} makes {kind_of(made)}, which is no learner: it has no {missing[0]!r}")
    learner: Learner = made
    return learner
