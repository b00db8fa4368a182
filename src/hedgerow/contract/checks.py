"""What is asked of a learner, by name: functions that raise a `Fault` or return a remark.

Every check gets a fresh trial. The first two, construction and plan, are the ground of all others: where they fail, the
others are not tried.
"""

from __future__ import annotations

from collections.abc import Callable

from hedgerow.contract import plan_checks, run_checks
from hedgerow.contract.trial import Trial

Check = Callable[[Trial], str]

FIRST: dict[str, Check] = {"construction": plan_checks.construction, "plan": plan_checks.plan}
"""What must hold for anything else to be tried"""
THEN: dict[str, Check] = {
    "double plan": plan_checks.double_plan,
    "observe first": run_checks.observe_first,
    "same seed": run_checks.same_seed,
    "alone": run_checks.alone,
    "global random": run_checks.global_random,
    "restored": run_checks.restored,
    "plans stay": plan_checks.plans_stay,
    "episodes stay": run_checks.episodes_stay,
    "exhausted": run_checks.exhausted,
}
