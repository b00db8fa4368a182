"""T5 and T6: the violation and the regret of SV-OPS grow like sqrt(T)."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.paper import cite
from hedgerow.promises.growth import growth, soft_prefix
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Promise, Verdict, any_of, never, together

TOL_SUM = 1e-6
"""Rounding of a sum over a run."""


def violation_bound(one: Observation) -> float:
    """sum |q_t - q_hat_t|_1 + 2 sum xi^T q_hat_t + residuals + L (episode 1 is unconstrained): at least V_T, surely."""
    return one["width"] + one["radii"] + one["residuals"] + one["steps"] + TOL_SUM


def judge_violation(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    offences = [one for one in clean if one["violation"] > violation_bound(one)]
    tightest = max((one["violation"] / violation_bound(one) for one in clean), default=0.0)
    sure = never("V_T above the proof's bound", len(offences), len(clean), f"largest share of the bound {tightest:.2f}")
    curves = [
        growth(f"V_T ({label})", some, lambda one: one["violation"], soft_prefix) for label, some in split(observations)
    ]
    return together([sure, any_of(curves)])


def judge_regret(observations: Sequence[Observation]) -> Verdict:
    return any_of(growth(f"R_T ({label})", some, lambda one: one["regret"]) for label, some in split(observations))


def split(observations: Sequence[Observation]) -> list[tuple[str, list[Observation]]]:
    """Runs that only differ in horizon and seed, each set under a name."""
    sets: dict[str, list[Observation]] = {}
    for one in observations:
        sets.setdefault(f"{one.world}, {one.adversary}, {one.preset}", []).append(one)
    return sorted(sets.items())


PROMISES = (
    Promise(
        "T5",
        "SV-OPS: V_T = O(L |X| sqrt(|A| T ln(T|X||A|m/delta)))",
        cite("violationsoft"),
        "1 - 8 delta; the bound by widths surely on the clean event",
        ("soft-violation",),
        "a run above sum |q - q_hat| + 2 sum xi^T q_hat + L; exponent above 1/2 and its logarithm, not falling",
        judge_violation,
    ),
    Promise(
        "T6",
        "SV-OPS: R_T = O(L |X| sqrt(|A| T ln(T|X||A|/delta))) against any losses",
        cite("regret_soft_unknown"),
        "1 - 10 delta",
        ("soft-regret",),
        "exponent above 1/2 and its logarithm, not falling, for some adversary",
        judge_regret,
    ),
)
