"""The safe policy that a learner is given, by name: `baseline = "slater"`, `"budget"`, `"own"`, `"offered"`, or
`margin = 0.1`.

    slater    the policy of the largest margin, with its exact costs: the theory's choice, which no user has
    budget    the policy of least loss under the smaller budget at which the world takes its baseline: what a cautious
              user has (`World.baseline_thresholds`)
    own       the policy that the world itself names, with the costs that learners are told (`World.baseline`)
    margin    the cheapest policy that stays so far below every threshold
    offered   for many worlds at once: `budget` where the world has one, else `own`, else the policy of least loss of
              its own (or, without one, least mean cost) that stays below every threshold by half of the largest margin

For a run of 10^5 episodes or less a known policy of small loss is the better baseline (docs/choose-a-learner.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.checks import real_number, shown
from hedgerow.errors import InvalidInput
from hedgerow.experiments.parts.common import Misfit, Part
from hedgerow.experiments.parts.worlds import build_world, offered_baselines
from hedgerow.model.cmdp import CMDP
from hedgerow.planning import offline

BASELINES = ("slater", "margin", "budget", "own", "offered")
HALF = "half of the margin"
"""What `offered` takes in a world that offers nothing."""


def complete_baseline(params: dict[str, Any]) -> Part:
    """The description of the baseline; removes its keys from `params`."""
    kind = params.pop("baseline", "margin" if "margin" in params else "slater")
    if kind not in BASELINES:
        raise Misfit("baseline", f"the baseline is {shown(kind)}; choose one of {', '.join(BASELINES)}")
    if kind != "margin":
        if "margin" in params:
            raise Misfit("margin", f"a margin belongs to baseline = 'margin', not to {kind!r}, which has its own")
        return {"baseline": kind}
    if "margin" not in params:
        raise Misfit("baseline", "the baseline 'margin' needs a number: margin = 0.1")
    try:
        return {"baseline": kind, "margin": real_number("the margin", params.pop("margin"), 0.0, 1e9)}
    except InvalidInput as error:
        raise Misfit("margin", str(error)) from error


def safe_policy(part: Part, cmdp: CMDP, world: Part | None = None, folder: Path | None = None) -> Any:
    """A strictly feasible policy of the true world with its costs, as `.policy` and `.costs`; None for a learner
    without a baseline. `world` is the description of `cmdp`, for what that world itself offers.
    """
    if "baseline" not in part:
        return None
    kind = part["baseline"]
    if kind == "slater":
        return offline.slater(cmdp)
    if kind == "margin":
        return offline.strictly_feasible(cmdp, part["margin"])
    offered = {} if world is None else offered_baselines(world, folder or Path())
    if kind == "offered":
        best = best_offered(offered)
        return _half_margin(cmdp, world, folder or Path()) if best == HALF else offered[best]
    if kind not in offered:
        other = f"it offers {', '.join(map(repr, offered))}" if offered else "it offers none"
        raise InvalidInput(
            f"this world offers no baseline {kind!r} ({other}); take baseline = 'slater', or a margin = 0.1"
        )
    return offered[kind]


def best_offered(offered: Mapping[str, Any]) -> str:
    """Which baseline `offered` stands for, in a world that offers these."""
    return next((kind for kind in ("budget", "own") if kind in offered), HALF)


def baseline_taken(part: Part, world: Part, folder: Path) -> str:
    """Which baseline a learner gets in a world, in words; the empty text for a learner without one."""
    kind = str(part.get("baseline", ""))
    return best_offered(offered_baselines(world, folder)) if kind == "offered" else kind


def _half_margin(cmdp: CMDP, world: Part | None, folder: Path) -> offline.OfflineSolution:
    """The policy of least loss that keeps half of the largest margin; with no constraint, the best policy."""
    loss = None if world is None else build_world(world, folder)[1]
    rho = offline.slater(cmdp).margin if cmdp.num_constraints else 0.0
    if cmdp.num_constraints and rho <= offline.TOL_FEASIBLE:
        raise InvalidInput(
            f"this world has no baseline to offer: no policy is safe with a margin (the best is {rho:.4g})"
        )
    return offline.strictly_feasible(cmdp, 0.5 * rho, loss)
