"""Controls that learn wrongly: they ignore their losses, or miscount."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.estimates.boxes import make_boxes, refresh_all, refresh_costs
from hedgerow.estimates.columns import load_columns
from hedgerow.estimates.unknowns import make_unknowns
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.plans import MirrorPlan
from hedgerow.learners.mirror.rescue import project_now
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.learners.mirror.uobreps import UOBREPS
from hedgerow.model.episode import Episode
from hedgerow.planning.induction import backward_induction

EXPLORES = 8
"""One episode in so many is exploration."""


class Commits(UOBREPS):
    """Plays uniformly for T/8 episodes and then, for ever, the policy that looked best."""

    def _sums(self) -> FloatArray:
        if not hasattr(self, "_loss_sums"):
            self._loss_sums: FloatArray = np.zeros(self.layout.num_rows)
            self._chosen: FloatArray = np.full(self.layout.num_rows, 1.0 / self.layout.num_actions)
        return self._loss_sums

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        sums, rows = self._sums(), episode.rows
        explore = (self.episodes or 0) // EXPLORES
        super().observe(episode, *outcome, **named)
        if self.episode <= explore:
            sums[rows] += episode.losses
        if self.episode == explore:
            counts, layout = self.core.state.counts, self.layout
            visits = np.maximum(1, counts.num_visits)
            guess = (counts.num_moves + 1e-9) / np.add.reduceat(counts.num_moves + 1e-9, layout.row_start[:-1])[
                layout.row_of_triple
            ]
            self._chosen = backward_induction(layout, guess, sums / visits).policy
        state = self.core.state
        state.policy[:] = self._chosen
        load_columns(self.core.index, state.boxes.lower, state.boxes.upper, state.policy, self.core.buffers.columns)


class MovesWrongly(SVOPS):
    """Undoes every mirror step twice: weights grow where losses were."""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        super().observe(episode, *outcome, **named)
        state, trace = self.core.state, self.core.buffers.trace
        state.log_weight[episode.rows] += 2.0 * self.eta * trace.estimate
        project_now(self.layout, self.core)


class TimidEstimator(SVOPS):
    """Reports l / (u / 10 + gamma) as its estimate: up to ten times too large. (It still learns from the right one.)"""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        super().observe(episode, *outcome, **named)
        trace, gamma = self.core.buffers.trace, self.core.state.reals.gamma
        trace.estimate[:] = episode.losses / (0.1 * trace.u + gamma)


class SkipsFirstLayer(CVOPS):
    """Hides the costs of layer 0 from its search, not from its confidence sets."""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        if self.phase == 2:
            super().observe(episode, *outcome, **named)
            return
        seen, row = episode.costs.copy(), int(episode.rows[0])
        seen[0] = 0.0
        super().observe(Episode.trusted(self.view, episode.rows, episode.triples, episode.losses, seen), **named)
        core = self.core
        core.state.counts.cost_sums[row] += episode.costs[0]
        refresh_costs(core.state.counts, core.rule.box, row, core.state.boxes)


class WrongCounts(SVOPS):
    """Bounds occupancies with boxes that assume t visits of every pair, whatever was seen."""

    def plan(self) -> MirrorPlan:
        plan = super().plan()
        core, counts = self.core, self.core.state.counts
        visits = np.full_like(counts.num_visits, self.episode)
        wrong = make_boxes(make_unknowns(self.layout, self.view.num_constraints))
        refresh_all(core.index, counts.replace(num_visits=visits), core.rule.box, wrong)
        load_columns(core.index, wrong.lower, wrong.upper, core.state.policy, core.buffers.columns)
        return plan
