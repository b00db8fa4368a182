"""S-OPS beside `Statistics` that see its episodes: do the bounds of policies cover their true costs?

At a sample of episodes a pool of policies is bounded, once with and once without the baseline of S-OPS: some that were
drawn before the first episode, the present policy, which follows what was seen, and the same in the last step only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.api import NumberedPlan
from hedgerow.learners.ops.loop import MirrorWatcher
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.watch import RunContext
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.verify.judging import Observation, Verdict, holds, rates, together
from hedgerow.verify.twin_watcher import EARLY, EVEN

DRAWN = 12
STREAM = 3601
"""Separates the random stream of the drawn policies from that of the run"""
TOL = 1e-9


class BoundedSOPS(SOPS):
    """S-OPS that shows its episodes to `Statistics` as well, with the policy that was played."""

    scale = 1.0
    """Factor on the radii of these"""
    _seen: Statistics | None = None

    @property
    def seen(self) -> Statistics:
        if self._seen is None:
            self._seen = Statistics(self.view, self.episodes, self.delta, "sharpest", confidence_scale=self.scale)
        return self._seen

    def plan(self, **how: Any) -> NumberedPlan:
        """Plan as usual, and note what plays."""
        plan = super().plan(**how)
        self._played, self._own = plan.policy, plan.branch != "baseline"
        return plan

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        """Learn as usual."""
        super().observe(episode, *more, **named)
        self.seen.add(episode, self._played, own=self._own)

    def watch(self, stage: RunContext, **options: bool) -> MirrorWatcher:
        """Watch as usual, and compare bounds with costs."""
        return BoundWatcher(self, stage, **options)


class NarrowBounds(BoundedSOPS):
    """Broken on purpose: bounds policies by sets that are far too small."""

    scale = 0.1


class BoundWatcher(MirrorWatcher):
    """Watches like any other, and bounds policies whose costs it knows."""

    learner: BoundedSOPS

    def __init__(self, learner: BoundedSOPS, stage: RunContext, **options: bool) -> None:
        super().__init__(learner, stage, **options)
        self.breaches = self.compared = self.anchored = 0
        last, layout = int(learner.episodes or 0), learner.layout
        self._samples = {round(t) - 1 for t in (*np.geomspace(1.0, last, EARLY), *np.linspace(1.0, last, EVEN))}
        rng, A = np.random.default_rng([STREAM, learner.seed]), layout.num_actions
        self._drawn = rng.dirichlet(np.full(A, 0.3), (DRAWN, layout.num_rows // A)).reshape(DRAWN, -1)
        self._last = layout.layer_of_state[np.arange(layout.num_rows) // A] == layout.steps - 1

    def planned(self) -> None:
        super().planned()
        if self.learner.core.state.numbers.episode in self._samples:
            own, baseline = self.learner.core.state.policy, self.learner.baseline
            self._compare(np.array([*self._drawn, own, np.where(self._last, own, baseline)]))

    def _compare(self, pool: FloatArray) -> None:
        """Bound the policies (K, num_rows)."""
        learner, layout, world = self.learner, self.learner.layout, self.stage.cmdp
        costs = np.array([world.mean_costs @ row_occupancy(layout, occupancy(layout, world.transitions, each))
                          for each in pool])  # fmt: skip
        plain = learner.seen.bounds(pool)
        anchored = learner.seen.bounds(pool, baseline=learner.baseline, baseline_costs=learner.baseline_costs)
        self.compared += 1
        self.anchored += int(np.sum(anchored.by == "anchored"))
        self.breaches += bool(np.any(np.minimum(plain.values, anchored.values) < costs - TOL))

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """The facts of every run, and `bounded`, the episodes before which bounds were compared; `bound_breaches`, how
        often one was below the cost of its policy; `by_baseline`, how many bounds the baseline has given.
        """
        own = {"bounded": self.compared, "bound_breaches": self.breaches, "by_baseline": self.anchored}
        return {**super().facts(comparator), **own}


def judge_policy_bounds(observations: Sequence[Observation]) -> Verdict:
    """Judge how often a bound was below the cost of its policy at any time."""
    given = sum(one["by_baseline"] for one in observations)
    return together(
        *rates("a bound was below the cost", observations, lambda one: one["bound_breaches"] > 0, 5.0),
        holds(f"{given:,.0f} bounds were given by a baseline"),
    )
