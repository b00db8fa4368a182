"""Controls that count wrongly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.estimates.boxes import make_boxes, refresh_all, refresh_row
from hedgerow.estimates.columns import load_columns
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.learner import Plan
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.promises.controls.clumsy import arguments
from hedgerow.promises.specs import RunSpec
from hedgerow.promises.witness import Witness


class SkipsFirstLayer(CVOPS):
    """Its search never hears of the costs of layer 0; its confidence sets do."""

    def observe(self, trajectory: ArrayLike, losses: ArrayLike, costs: ArrayLike | None = None) -> None:
        seen = np.array(costs, dtype=np.float64)
        if self.phase == 2:
            super().observe(trajectory, losses, seen)
            return
        first, row = seen[0].copy(), int(np.asarray(trajectory)[0])
        seen[0] = 0.0
        super().observe(trajectory, losses, seen)
        core = self.core
        core.state.counts.cost_sums[row] += first
        refresh_row(core.index, core.state.counts, core.rule.box, row, core.state.boxes)


def skips_first_layer(spec: RunSpec) -> Witness:
    positional, named = arguments(spec, SkipsFirstLayer)
    return Witness(*positional, **named)


class WrongCounts(SVOPS):
    """Bounds occupancies with boxes made of t visits for every pair, whatever was seen of it."""

    def plan(self) -> Plan:
        plan = super().plan()
        core, counts = self.core, self.core.state.counts
        visits = np.full_like(counts.num_visits, self.episode)
        wrong = make_boxes(self.layout, self.view.num_constraints)
        refresh_all(core.index, counts._replace(num_visits=visits), core.rule.box, wrong)
        load_columns(core.index, wrong.lower, wrong.upper, core.state.policy, core.buffers.columns)
        return plan


def wrong_counts(spec: RunSpec) -> Witness:
    positional, named = arguments(spec, WrongCounts)
    return Witness(*positional, **named)
