"""SV-OPS (paper, section 4): sublinear regret and sublinear positive violation, from nothing but the thresholds.

Mirror descent on occupancies, projected in every episode onto those that some transitions in the boxes allow and whose
*optimistic* costs respect the thresholds. While the confidence sets hold the truth, every feasible occupancy stays in
that set, so the projection has a solution and the learner never gives up a good policy; in return an episode may
violate a constraint by as much as the radii still allow.
"""

from __future__ import annotations

from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.guarantees import (
    assumptions,
    limits,
    rates_note,
    regret_reasons,
    regret_statement,
    shared_promises,
    tracking,
)
from hedgerow.paper import cite


class SVOPS(MirrorLearner):
    """SV-OPS, Sublinear Violation Optimistic Policy Search: few violations, from thresholds alone.

    Regret and the summed violation of each constraint grow like the square root of the number of episodes (paper,
    section 4). Single episodes may violate a constraint, by less and less. In each episode the learner takes a
    mirror-descent step on occupancies and projects it onto those that the confidence sets allow, with costs taken
    optimistically. It needs no safe policy. Choose it if early violations are acceptable.

    Args:

    Raises:
        InvalidInput: If an argument is wrong, or if the learner has no such switch.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> learner = hr.SVOPS(view, episodes=1000, delta=0.01)
        >>> learner.plan().policy["home"].tolist()
        [0.5, 0.5]
        >>> learner.observe([("home", "wait")], losses=[1.0], costs=[0.0])
        >>> learner.plan().policy["home", "wait"] < 0.5
        True
    """

    kind = "sv-ops"
    title = "SV-OPS"

    @exclusive
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches: the growth of violation and regret."""
        void = first_reason(*regret_reasons(self))
        rate = regret_statement(self, "L |X| sqrt(|A| T ln(T|X||A|m/delta))")
        summed = f"the summed positive violation of each constraint is O({rate}) if some policy is feasible"
        regret = f"the regret against the best feasible policy is O({rate}), whatever the losses{rates_note(self)}"
        promised = Promise("regret", regret, self._budget.sure(10), cite("regret_soft_unknown"), void)
        return self._ledger(
            *shared_promises(self),
            Promise("violation", f"{summed}: {limits(self)}", self._budget.sure(8), cite("violationsoft"), void),
            promised,
            *tracking(self, promised),
            assumptions=assumptions(self),
        )
