"""The safe policies that a world with a model offers to learners, by name: `baseline="slater"`.

    slater    the policy of the largest margin, with its exact costs: the theory's choice, which no user has
    budget    the policy of least loss under the smaller budget at which the world takes its baseline: what a cautious
              user has (`World.baseline_thresholds`)
    own       the policy that the world itself names, with the bounds of its costs that learners get (`World.baseline`)
    offered   for many worlds at once: `budget` where the world has one, else `own`, else the policy of least loss of
              its own (or, without one, least mean cost) that stays below every threshold by half of the largest slack

For a run of 10^5 episodes or less a known policy of small loss is the better baseline (docs/choose-a-learner.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hedgerow.checks import FloatArray, did_you_mean, type_name
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.planning import offline

NAMES = ("slater", "budget", "own", "offered")
HALF = "half of the margin"
"""What `offered` takes in a world that offers nothing."""


def named(name: str, world: Any) -> Any:
    """The baseline of this name in a world, with `.policy` and `.costs`; refused for what has no model."""
    if name not in NAMES:
        raise InvalidInput(f"there is no baseline {name!r}{did_you_mean(name, NAMES)}")
    try:
        cmdp = cmdp_of(world)
    except InvalidInput as error:
        raise InvalidInput(
            f"baseline={name!r} is computed from the model of a world, and {type_name(world)} has none: build the "
            "learner on the world itself, or pass a policy and the bounds of its costs, hr.SafePolicy(policy, costs)"
        ) from error
    offered = offered_by(world)
    return find(choice(name, offered), cmdp, getattr(world, "loss", None), offered)


def offered_by(world: Any) -> dict[str, Any]:
    """`budget` and `own` of a catalogue entry or of a world built like one, if it has them."""
    budget, own = getattr(world, "baseline_thresholds", None), getattr(world, "baseline", None)
    offered = {} if own is None else {"own": own}
    if budget is not None:
        offered["budget"] = offline.optimum(world.cmdp.with_thresholds(budget), world.loss)
    return offered


def choice(name: str, offered: Collection[str]) -> str:
    """What a name stands for in a world that offers these baselines: itself, unless it is "offered"."""
    return name if name != "offered" else next((best for best in ("budget", "own") if best in offered), HALF)


def find(kind: str, cmdp: CMDP, loss: FloatArray | None, offered: Mapping[str, Any]) -> Any:
    """The baseline of a kind that `choice` returned, with `.policy` and `.costs`."""
    if kind == "slater":
        return offline.slater(cmdp)
    if kind == HALF:
        return _half_margin(cmdp, loss)
    if kind not in offered:
        other = f"it offers {', '.join(map(repr, offered))}" if offered else "it offers none"
        raise InvalidInput(
            f"this world offers no baseline {kind!r} ({other}); take baseline = 'slater', or a margin = 0.1"
        )
    return offered[kind]


def _half_margin(cmdp: CMDP, loss: FloatArray | None) -> offline.OfflineSolution:
    """The policy of least loss that keeps half of the largest margin; with no constraint, the best policy."""
    rho = offline.slater(cmdp).margin if cmdp.num_constraints else 0.0
    if cmdp.num_constraints and rho <= offline.TOL_FEASIBLE:
        raise InvalidInput(
            f"this world has no baseline to offer: no policy is safe with a margin (the best is {rho:.4g})"
        )
    return offline.strictly_feasible(cmdp, 0.5 * rho, loss)
