"""The safe policy that a learner is given: `baseline = "slater"`, or `margin = 0.1`."""

from __future__ import annotations

from typing import Any

from hedgerow.checks import real_number, shown
from hedgerow.errors import InvalidInput
from hedgerow.experiments.parts.common import Misfit, Part
from hedgerow.model.cmdp import CMDP
from hedgerow.planning import offline

BASELINES = ("slater", "margin")


def complete_baseline(params: dict[str, Any]) -> Part:
    """Takes the keys of the baseline out of `params`."""
    kind = params.pop("baseline", "margin" if "margin" in params else "slater")
    if kind not in BASELINES:
        raise Misfit("baseline", f"the baseline is {shown(kind)}; choose one of {', '.join(BASELINES)}")
    if kind == "slater":
        if "margin" in params:
            raise Misfit("margin", "a margin belongs to baseline = 'margin'; the Slater policy has the largest one")
        return {"baseline": kind}
    if "margin" not in params:
        raise Misfit("baseline", "the baseline 'margin' needs a number: margin = 0.1")
    try:
        return {"baseline": kind, "margin": real_number("the margin", params.pop("margin"), 0.0, 1e9)}
    except InvalidInput as error:
        raise Misfit("margin", str(error)) from error


def safe_policy(part: Part, cmdp: CMDP) -> offline.SlaterPoint | offline.OfflineSolution | None:
    """A strictly feasible policy of the true world with its exact costs; None for a learner without a baseline."""
    if "baseline" not in part:
        return None
    return offline.slater(cmdp) if part["baseline"] == "slater" else offline.strictly_feasible(cmdp, part["margin"])
