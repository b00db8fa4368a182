"""The mirror-descent family in an experiment: presets, switches, and the few numbers that one of them alone knows."""

from __future__ import annotations

import inspect
from typing import Any

from hedgerow.checks import shown
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.parts.baseline import complete_baseline
from hedgerow.experiments.parts.common import Misfit, Part, named_in
from hedgerow.learners.mirror import settings as switches
from hedgerow.learners.mirror.cvops import CVOPS, MEMORY_BUDGET, checked_arguments
from hedgerow.learners.protocol import checked_baseline_costs
from hedgerow.model.view import View
from hedgerow.registry import Found

ALLOW = "allow_no_margin"
_COMMON = ("transitions", "baseline", "baseline_costs", ALLOW)


def complete(found: Found, params: dict[str, Any], told: Part) -> Part:
    """The parameters of a description; `told` are those that stand between the baseline and the switches."""
    cls, preset = found.target, params.pop("preset", "paper")
    if not isinstance(preset, str) or preset not in switches.PRESETS:
        raise Misfit("preset", f"the preset is {shown(preset)}; choose one of {', '.join(switches.PRESETS)}")
    extra = _complete_baseline(params) if "baseline" in inspect.signature(cls).parameters else {}
    extra |= _complete_numbers(cls, params)
    chosen: dict[str, Any] = {}
    for key, value in params.items():
        chosen[key] = value
        try:
            switches.make_settings(preset, chosen, cls.switches, found.name)
        except (InvalidInput, TypeError) as error:
            raise Misfit(key, str(error)) from error
    return {"preset": preset, **extra, **told, **chosen}


def check(cls: Any, part: Part, view: View, safe: Any) -> None:
    """Refuse what its constructor would refuse in a world of this view; `safe` is its baseline or None."""
    if safe is not None:
        try:
            checked_baseline_costs(view, safe.costs, part.get(ALLOW, False))
        except HedgerowError as error:
            raise Misfit("margin" if "margin" in part else "baseline", str(error)) from error
    elif issubclass(cls, CVOPS):
        own = {key: part[key] for key in own_numbers(cls) if key in part}
        try:
            checked_arguments(view, own.get("memory_budget", MEMORY_BUDGET), own.get("primal_constant"))
        except InvalidInput as error:
            raise Misfit(named_in(str(error), own), str(error)) from error


def own_numbers(cls: Any) -> tuple[str, ...]:
    """What a learner's constructor takes beyond switches, baseline and transitions."""
    arguments = inspect.signature(cls).parameters.values()
    return tuple(a.name for a in arguments if a.kind is a.KEYWORD_ONLY and a.name not in _COMMON)


def _complete_baseline(params: dict[str, Any]) -> Part:
    allowed = {ALLOW: params.pop(ALLOW)} if ALLOW in params else {}
    result = complete_baseline(params) | allowed
    if not isinstance(allowed.get(ALLOW, False), bool):
        raise Misfit(ALLOW, f"{ALLOW} must be true or false")
    return result


def _complete_numbers(cls: Any, params: dict[str, Any]) -> Part:
    """The numbers that only the constructor of this learner takes; removes them from `params`."""
    result: Part = {}
    for key in own_numbers(cls):
        if key in params:
            result[key] = params.pop(key)
            if isinstance(result[key], bool) or not isinstance(result[key], int | float):
                raise Misfit(key, f"{key} must be a number, not {shown(result[key])}")
    return result
