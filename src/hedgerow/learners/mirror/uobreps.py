"""UOB-REPS (Jin, Jin, Luo, Sra, Yu 2020): adversarial losses and unknown transitions, no constraints.

The same mirror descent as SV-OPS without the cost constraints. Confidence sets are rebuilt by epochs, whenever the
visits of some pair have doubled, as in its paper (boxes="epoch", the default), or in every episode (boxes="episode"),
which is tighter. Costs are counted as well: CV-OPS, which runs it first, goes on with the same data. With
horizon="doubling" it restarts after 1, 2, 4, ... episodes and needs no horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hedgerow.learners.ledger import Ledger, Promise, first_reason
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.promised import clean_event, regret_reasons, regret_statement, rests_on
from hedgerow.learners.ownership import exclusive


class UOBREPS(MirrorLearner):
    """Upper Occupancy Bound Relative Entropy Policy Search: minimises losses, ignores constraints."""

    kind: ClassVar[str] = "uob-reps"
    constrained: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {"boxes": "epoch"}

    @exclusive
    def guarantees(self) -> Ledger:
        rate = regret_statement(self, "L |X| sqrt(|A| T ln(T|X||A|/delta))")
        regret = Promise(
            "regret",
            f"the regret against the best policy, constraints ignored, is O({rate}), whatever the losses",
            self._budget.sure(9),
            "Jin et al. 2020, Theorem 3",
            first_reason(*regret_reasons(self)),
        )
        return Ledger("UOB-REPS", (clean_event(self), regret), rests_on(self))
