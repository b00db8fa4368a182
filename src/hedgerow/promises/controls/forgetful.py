"""Controls that count wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.estimates.boxes import make_boxes, refresh_all, refresh_row
from hedgerow.estimates.columns import load_columns
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.plans import MirrorPlan
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.model.episode import Episode
from hedgerow.registry import learners


@learners.register("layer-0-skipped")
class SkipsFirstLayer(CVOPS):
    """Its search never hears of the costs of layer 0; its confidence sets do."""

    def observe(self, episode: Any, losses: ArrayLike | None = None, costs: ArrayLike | None = None) -> None:
        if self.phase == 2:
            super().observe(episode)
            return
        seen, row = episode.costs.copy(), int(episode.rows[0])
        seen[0] = 0.0
        super().observe(Episode.trusted(episode.layout, episode.rows, episode.triples, episode.losses, seen))
        core = self.core
        core.state.counts.cost_sums[row] += episode.costs[0]
        refresh_row(core.index, core.state.counts, core.rule.box, row, core.state.boxes)


@learners.register("wrong-counts")
class WrongCounts(SVOPS):
    """Bounds occupancies with boxes made of t visits for every pair, whatever was seen of it."""

    def plan(self) -> MirrorPlan:
        plan = super().plan()
        core, counts = self.core, self.core.state.counts
        visits = np.full_like(counts.num_visits, self.episode)
        wrong = make_boxes(self.layout, self.view.num_constraints)
        refresh_all(core.index, counts._replace(num_visits=visits), core.rule.box, wrong)
        load_columns(core.index, wrong.lower, wrong.upper, core.state.policy, core.buffers.columns)
        return plan
