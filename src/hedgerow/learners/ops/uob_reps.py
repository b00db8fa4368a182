"""UOB-REPS (Jin, Jin, Luo, Sra, Yu 2020): adversarial losses and unknown transitions, no constraints.

The same mirror descent as SV-OPS without the cost constraints. Confidence sets are rebuilt by epochs, whenever the
visits of some pair have doubled, as in its paper. Costs are counted as well. With horizon="doubling" it restarts after
1, 2, 4, ... episodes and needs no horizon.
"""

from __future__ import annotations

from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.guarantees import (
    assumptions,
    clean_event,
    rates_note,
    regret_reasons,
    regret_statement,
    tracking,
)


class UOBREPS(MirrorLearner):
    """UOB-REPS, Upper Occupancy Bound Relative Entropy Policy Search: least loss, constraints ignored.

    The learner of Jin, Jin, Luo, Sra and Yu (2020) for adversarial losses and unknown transitions. It shows what is
    lost by respecting constraints, and CV-OPS runs it in its first phase. Confidence sets are rebuilt whenever the
    visits of some pair have doubled, as in its paper. Costs are counted, but never respected.

    Args:

    Raises:
        InvalidInput: If an argument is wrong, or if the learner has no such switch.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={})
        >>> learner = hr.UOBREPS(view, episodes=1000, delta=0.01)
        >>> learner.plan().policy["home"].tolist()
        [0.5, 0.5]
        >>> learner.observe([("home", "wait")], losses=[1.0])
        >>> learner.episode
        1
    """

    kind = "uob-reps"
    title = "UOB-REPS"
    source = "Jin, Jin, Luo, Sra and Yu 2020"
    constrained = False
    epochs = True

    @exclusive
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches: the growth of the regret."""
        rate = regret_statement(self, "L |X| sqrt(|A| T ln(T|X||A|/delta))")
        against = "the regret against the best policy, constraints ignored,"
        regret = Promise(
            "regret",
            f"{against} is O({rate}), whatever the losses{rates_note(self)}",
            self._budget.sure(9),
            "Jin et al. 2020, Theorem 3",
            first_reason(*regret_reasons(self)),
        )
        return self._ledger(clean_event(self), regret, *tracking(self, regret), assumptions=assumptions(self))
