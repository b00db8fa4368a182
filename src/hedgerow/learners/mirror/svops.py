"""SV-OPS (paper, section 4): sublinear regret and sublinear positive violation, from nothing but the thresholds.

Mirror descent on occupancies, projected in every episode onto those that some transitions in the boxes allow and whose
*optimistic* costs respect the thresholds. While the confidence sets hold the truth, every feasible occupancy stays in
that set, so the projection has a solution and the learner never gives up a good policy; in return an episode may
violate a constraint by as much as the radii still allow.

    >>> from hedgerow.model.view import View
    >>> view = View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
    >>> learner = SVOPS(view, episodes=1000, delta=0.01)
    >>> learner.plan().policy["home"].tolist()
    [0.5, 0.5]
    >>> learner.observe([("home", "wait")], losses=[1.0], costs=[0.0])
    >>> learner.plan().policy["home", "wait"] < 0.5
    True
"""

from __future__ import annotations

from typing import ClassVar

from hedgerow.learners.ledger import Ledger, Promise, first_reason
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.promised import (
    clean_event,
    feasible_projection,
    limits,
    regret_reasons,
    regret_statement,
    rests_on,
)
from hedgerow.learners.ownership import exclusive
from hedgerow.paper import cite


class SVOPS(MirrorLearner):
    """Sublinear Violation Optimistic Policy Search."""

    kind: ClassVar[str] = "sv-ops"

    @exclusive
    def guarantees(self) -> Ledger:
        confidence, accuracy = regret_reasons(self)
        rate = regret_statement(self, "L |X| sqrt(|A| T ln(T|X||A|m/delta))")
        violation = Promise(
            "violation",
            f"the summed positive violation of each constraint is O({rate}) if some policy is feasible: {limits(self)}",
            self._budget.sure(8),
            cite("violationsoft"),
            first_reason(confidence, accuracy),
        )
        regret = Promise(
            "regret",
            f"the regret against the best feasible policy is O({rate}), whatever the losses",
            self._budget.sure(10),
            cite("regret_soft_unknown"),
            first_reason(confidence, accuracy),
        )
        return Ledger("SV-OPS", (clean_event(self), feasible_projection(self), violation, regret), rests_on(self))
