"""Always the baseline: the policy that is known to be safe, in every episode; a control that learns nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.ledger import Ledger, Promise
from hedgerow.learners.protocol import SafePolicy
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.told import Told
from hedgerow.model.episode import Episode
from hedgerow.model.view import View


class AlwaysBaseline(FieldLearner):
    """Always the baseline: the policy that is known to be safe, in every episode; a control.

    It learns nothing. A safe learner is worth its effort where it loses less than this one.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        baseline: A policy that is safe, as a `Policy`, an array (num_rows,) or a table (states, actions); or an object
            that has `.policy` and `.costs`, such as `SafePolicy`, `world.baseline` or `hr.offline.slater(world)`.
        baseline_costs: (m,) upper bounds of the expected costs of the baseline, or a mapping {constraint name: bound};
            None takes `baseline.costs`.
        on_refuted: What to do when its own observations refute what it was told: "stay" warns and leaves every further
            episode to the baseline, "warn" warns and goes on, "raise" raises a `PremiseError` and then stays.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
        >>> learner = hr.field.AlwaysBaseline(world.view(), episodes=10, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"]
        1.0
    """

    kind: ClassVar[str] = "always-baseline"
    title: ClassVar[str] = "always the baseline"
    source: ClassVar[str] = "a control"
    told: ClassVar[Told] = Told(episodes=False, delta=False, baseline=True)

    def __init__(
        self,
        view: View,
        episodes: int,
        *,
        baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        on_refuted: str = "stay",
    ) -> None:
        super().__init__(view, episodes, baseline=baseline, baseline_costs=baseline_costs, on_refuted=on_refuted)
        self.reals.mixing = 1.0

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return

    def guarantees(self) -> Ledger:
        """Return what is promised: safety, as surely as the baseline is safe."""
        safe = Promise("safety", "in every episode the expected costs are those of the baseline", 1.0, "its costs")
        return self.as_seen(Ledger(self.title, (safe,)))
