"""Baselines to choose from: the loss of each safe policy, and the margin that it leaves.

The Slater policy has the largest margin, and often the largest loss. A learner plays its baseline most of the time at
first. Measured with losses that stay the same: for 10^5 episodes or less a policy of small loss is the better choice,
even with a tenth of the margin. If the losses have nothing to do with the one for which the policy was chosen, the
margin matters more (`examples/baselines.py`). All choices here are computed from the true world: a user would *have* a
policy, and know its costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.experiments.forecast.summary import Baseline
from hedgerow.experiments.parts.worlds import own_baselines
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import evaluate
from hedgerow.model.view import View
from hedgerow.planning import offline

SHARES = {"half of that margin, least loss": 0.5, "a tenth of it, least loss": 0.1}
NAMES = {"budget": "the world's baseline budget, least loss", "own": "the world's own baseline"}


def baseline_choices(world: Any) -> list[dict[str, Any]]:
    """The choices in a world with a loss: name, loss, costs, smallest margin."""
    cmdp, loss = world.cmdp, world.loss
    safest = offline.slater(cmdp)
    if not cmdp.num_constraints or safest.margin <= offline.TOL_FEASIBLE:
        return []
    found = [_choice("Slater: the largest margin", cmdp, loss, safest.policy)]
    for name, share in SHARES.items():
        found.append(_choice(name, cmdp, loss, offline.strictly_feasible(cmdp, share * safest.margin, loss).policy))
    for kind, safe in own_baselines(world).items():
        found.append(_choice(NAMES[kind], cmdp, loss, safe.policy))
    return found


def _choice(name: str, cmdp: CMDP, loss: FloatArray, policy: FloatArray) -> dict[str, Any]:
    values = evaluate(cmdp, policy, loss)
    costs = dict(zip(cmdp.constraint_names, values.costs.tolist(), strict=True))
    margin = float(np.min(cmdp.thresholds - values.costs))
    return {"policy": name, "loss": values.loss, "costs": costs, "margin": margin}


def world_baseline(world: Any, cmdp: CMDP) -> Baseline:
    """The baseline of a forecast for a known world: the world's own, by its budget, or the Slater policy."""
    for kind, safe in own_baselines(world).items():
        return Baseline(np.array(safe.costs), NAMES[kind])
    return Baseline(np.array(offline.slater(cmdp).costs), "the Slater policy: the largest margin")


def assumed_baseline(view: View) -> Baseline:
    """The baseline to assume when the costs of the safe policy are not given."""
    words = "an assumption: it costs half of each threshold (--baseline-costs says what it does cost)"
    return Baseline(0.5 * view.thresholds, words)
