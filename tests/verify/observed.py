"""Synthetic observations: a run that never happened, in which every promise holds unless a number is changed."""

from __future__ import annotations

import math
from typing import Any

from hedgerow.learners.ops.notes import ODDS
from hedgerow.verify.judging import Observation
from hedgerow.verify.twin_watcher import GAPS

KEPT: dict[str, float] = {
    "steps": 1.0,
    "log_argument": math.log(100.0),
    "rho": 0.4,
    "clean": 1.0,
    "cost_breaches": 0.0,
    "transition_breaches": 0.0,
    "ball_breaches": 0.0,
    "aggregate_breaches": 0.0,
    "cost_share": 1.0,
    "transition_share": 4.0,
    "ball_share": 0.0,
    "aggregate_share": 0.0,
    "unclean": 0.0,
    "infeasible": 0.0,
    "refuted_feasibility": 0.0,
    "refuted_safety": 0.0,
    "least_excess": 0.0,
    "honest_baseline": 1.0,
    "first_mixing": 0.8,
    "mixing_over": -0.1,
    "refuted_premises": 0.0,
    "overdrawn": 0.0,
    "reserve": 0.1,
    "account_breaches": 0.0,
    "bound_breaches": 0.0,
    "by_baseline": 3.0,
    "low_bounds": 0.0,
    "calibration_10": 0.9,
    "own_excess_10": 0.2,
    "refuted_budget": 0.0,
    "budget_share": 6.0,
    "mixing_slack": 0.5,
    "mixing_total": 10.0,
    "mirror_left": 1.0,
    "mirror_right": 2.0,
    "mirror_least": 1.5,
    "regret": 50.0,
    "violation": 1.0,
    "unsafe": 0.0,
    "worst": -0.1,
    "width": 10.0,
    "weighted_width": 5.0,
    "weighted_upper": 6.0,
    "radii": 10.0,
    "residuals": 0.0,
    "optimism": 1.0,
    "optimism_bound": 2.0,
    "weighted_optimism_all": -5.0,
    "weighted_optimism_iterate": -1.0,
    "weighted_optimism_chosen": 1.0,
    "weighted_optimism_bound": 3.0,
    "upper_bound": 1e6,
    "bias": 5.0,
    "bias_bound": 10.0,
    "bias_seen": 6.0,
    "bias_seen_bound": 12.0,
    "baseline_played": 11.0,
    "recomputed": 12.0,
    "certified": 0.0,
    **{f"{name}_gap": 1e-13 for name in GAPS},
    **{f"{name}_{j}": -0.1 for name in ("coin", "actions") for j in range(len(ODDS))},
    "searched": 0.0,
    "t_bar": math.nan,
    "rho_hat": math.nan,
    "margin": math.nan,
    "unsafe_after": math.nan,
    "violation_after": math.nan,
    "regret_after": math.nan,
    "primal_ratio": math.nan,
    "dual_ratio": math.nan,
    "primal_bound": math.nan,
    "dual_bound": math.nan,
}
FOUND: dict[str, float] = {
    "searched": 1.0,
    "t_bar": 300.0,
    "rho_hat": 0.25,
    "margin": 0.3,
    "unsafe_after": 0.0,
    "violation_after": 0.0,
    "regret_after": 40.0,
    "primal_ratio": 1.0,
    "dual_ratio": 1.0,
    "primal_bound": 20.0,
    "dual_bound": 2.0,
}


def seen(spec: dict[str, Any] | None = None, **changes: float) -> Observation:
    """A run in which everything is as promised, but for the changes."""
    given: dict[str, Any] = {"group": "any", "world": "two-actions", "learner": "s-ops", "episodes": 1000, "seed": 0}
    given |= spec or {}
    cell = {
        "world": {"name": given["world"]},
        "adversary": {"name": "own"},
        "learner": {"name": given["learner"], "preset": "sharp", **given.get("switches", {})},
        "episodes": given["episodes"],
        "delta": given.get("delta", 0.05),
        "seed": given["seed"],
        "label": {"adversary": "fixed"},
    }
    return Observation(given["group"], cell, {**KEPT, **changes})


def found(spec: dict[str, Any] | None = None, **changes: float) -> Observation:
    """The same of a search that ended."""
    return seen({"learner": "cv-ops", **(spec or {})}, **{**FOUND, **changes})
