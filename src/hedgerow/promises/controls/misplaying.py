"""Controls that play or project something other than they planned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.plans import MirrorPlan
from hedgerow.learners.mirror.rescue import rescue
from hedgerow.learners.mirror.safe_search import Search
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.learners.mirror.watcher import MirrorWatcher
from hedgerow.learners.watching import Stage
from hedgerow.model.layout import Layout
from hedgerow.model.pcg64 import lent
from hedgerow.model.policy import Policy


class PerStep(SOPS):
    """Plays lambda pi_diamond(a|x) + (1 - lambda) pi_hat(a|x): not the mixture, and it is scored for what it plays."""

    def plan(self) -> MirrorPlan:
        plan, state = super().plan(), self.core.state
        lam = state.reals.mixing
        mixed = Policy.trusted(self.layout, lam * self.core.baseline.policies[0] + (1.0 - lam) * state.policy)
        state.numbers.branch = 0  # the observed path must be possible under the learner's own policy
        return replace(plan, mixture=mixed, policy=mixed)


class IndexOnce(CVOPS):
    """Draws one policy of the mixture when the search ends, plays no other, and still believes the mixture's costs."""

    def _second_core(self, search: Search) -> Core:
        with lent(self.coin) as rng:
            kept = int(rng.integers(len(search.policies)))
        alone = search.policies[kept : kept + 1].copy()
        return self._make_core(self._make_baseline(alone, self._found_costs(search)), search=search)

    def watch(self, stage: Stage, **options: bool) -> MirrorWatcher:
        """Watch it by its own claim: the costs are those of the mixture, so the baseline counts as honest."""
        return Believing(self, stage, **options)


class Believing(MirrorWatcher):
    """Takes the learner's word for the costs of its baseline."""

    def _follow(self, core: Core) -> None:
        super()._follow(core)
        self.watch.tallies.false_baseline = 0


WRONG = 0.9
"""The least probability of the last successor in the wrong boxes."""


def wrong_boxes(layout: Layout) -> tuple[FloatArray, FloatArray]:
    """Boxes (num_triples,) that ask for the last successor of every row; right where there is only one."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    several = np.diff(layout.row_start) > 1
    last = layout.row_start[1:][several] - 1
    upper[np.repeat(several, np.diff(layout.row_start))] = 1.0 - WRONG
    upper[last], lower[last] = 1.0, WRONG
    lower[layout.row_start[:-1][~several]] = 1.0
    return lower, upper


class WrongBox(SVOPS):
    """Estimates rightly and projects wrongly."""

    def _first_core(self) -> Core:
        core = super()._first_core()
        self.wrong = wrong_boxes(self.layout)
        problem = core.buffers.problem.replace(lower=self.wrong[0], upper=self.wrong[1])
        return core.replace(buffers=core.buffers.replace(problem=problem))

    def _complete(self) -> None:
        state = self.core.state
        if state.numbers.open:
            boxes = state.boxes.replace(lower=self.wrong[0], upper=self.wrong[1])
            rescue(self.layout, self.core.replace(state=state.replace(boxes=boxes)))
        super()._complete()
