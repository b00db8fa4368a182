"""T5 and T6: the violation and the regret of SV-OPS grow like sqrt(T)."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.promises.growth import growth, soft_prefix, split
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, any_of, never, together

TOL_SUM = 1e-6
"""Rounding of a sum over a run."""


def violation_bound(one: Observation) -> float:
    """sum |q_t - q_hat_t|_1 + 2 sum xi^T q_hat_t + residuals + L (episode 1 is unconstrained): at least V_T, surely."""
    return one["width"] + one["radii"] + one["residuals"] + one["steps"] + TOL_SUM


def judge_violation(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    above = [one["violation"] > violation_bound(one) for one in clean]
    tightest = max((one["violation"] / violation_bound(one) for one in clean), default=0.0)
    return together(
        never("V_T above the proof's bound", above, f"largest share of the bound {tightest:.2f}"),
        any_of(growth(f"V_T ({label})", some, "violation", soft_prefix) for label, some in split(observations)),
    )


def judge_regret(observations: Sequence[Observation]) -> Verdict:
    return any_of(growth(f"R_T ({label})", some, "regret") for label, some in split(observations))
