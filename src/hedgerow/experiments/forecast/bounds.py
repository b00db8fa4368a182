"""Compute U and lambda from counts as S-OPS with a preset would, with the package's own intervals and kernels.

The rule is the one that the learner makes for itself, shares of delta included; a test compares the two. The aggregate
certificate is missing, because it has no counts to work on.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.estimates.balls import BallRule, Balls, follow_counts, joint_cost_with_balls, make_balls, wide_rows
from hedgerow.estimates.boxes import Boxes, make_box_rule, make_boxes, refresh_all
from hedgerow.estimates.columns import load_columns, make_columns
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.joint_cost import joint_cost_of_columns
from hedgerow.estimates.shares import make_shares
from hedgerow.estimates.unknowns import make_unknowns
from hedgerow.experiments.forecast.exploring import Exploration
from hedgerow.experiments.forecast.model import Model
from hedgerow.learners.mirror.core import Baseline
from hedgerow.learners.mirror.mixing import safe_weight
from hedgerow.learners.mirror.settings import Preset, make_settings
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.spending import certifies
from hedgerow.model.index import index_of
from hedgerow.model.view import View


class Bounds(NamedTuple):
    """What the intervals say of the own policy."""

    boxes: Boxes
    balls: Balls
    upper: FloatArray
    """U (m,)"""
    lower: FloatArray
    """(m,): the least that it can cost"""

    def daring(self, thresholds: FloatArray) -> FloatArray:
        """U (m,) of a policy of the same widths whose lower bounds reach the thresholds (m,)."""
        return self.upper + np.maximum(0.0, thresholds - self.lower)


class Mixing(NamedTuple):
    """lambda, if the own policy is that of the model, and if it is as optimistic as the bounds let it be.

    The projection of S-OPS takes the lower bounds for the costs: its policy may cost more than the thresholds, by the
    error of these bounds.
    """

    least: float
    most: float


class Worst(NamedTuple):
    """The largest cost of a policy, and the values that it has under the worst transitions."""

    cost: float
    values: FloatArray
    """V (num_states,)"""
    with_balls: bool


class Forecaster:
    """U and lambda after any number of episodes, for a view, a model and a preset.

    `episodes` is the horizon that the radii are made for, if they need one.
    """

    def __init__(
        self, view: View, model: Model, beta: FloatArray, episodes: int, delta: float, preset: Preset = "sharpest"
    ) -> None:
        self.view, self.model, self.beta, layout, m = view, model, beta, view.layout, view.num_constraints
        settings = make_settings(preset, {}, SOPS.switches, SOPS.__name__)
        self.clip_costs = settings.clip_costs
        self.unknowns = make_unknowns(layout, m, view.knowledge, ties=settings.ties)
        self.wide = wide_rows(self.unknowns, settings.ball_from)
        num_balls = int(self.wide[self.unknowns.counted_rows].sum())
        shares = make_shares(self.unknowns, aggregate=certifies(view, settings), num_balls=num_balls)
        self.radii = settings.confidence.rule(layout, m, delta, episodes, self.unknowns, shares)
        self.box_rule = make_box_rule(self.radii, self.unknowns, settings.clip_costs)
        log_balls = log(max(1, num_balls)) - log(max(shares.balls, 1.0) * delta)
        self.ball_rule = BallRule(self.wide.astype(np.int8), log_balls)
        self.exploration = Exploration(model, self.unknowns)
        self.index, self.columns = index_of(layout), make_columns(layout)

    def after(self, episodes: int) -> Bounds:
        """The bounds after so many episodes of exploration."""
        return self.from_counts(self.exploration.after(episodes))

    def from_counts(self, counts: Counts) -> Bounds:
        layout, model = self.view.layout, self.model
        boxes = make_boxes(self.unknowns, clip_costs=self.clip_costs)
        balls = make_balls(self.wide, layout.num_triples)
        refresh_all(self.index, counts, self.box_rule, boxes)
        if self.wide.any():
            rows = np.arange(layout.num_rows, dtype=np.int64)
            follow_counts(self.index, self.unknowns.laws, counts, self.ball_rule, rows, balls)
        load_columns(self.index, boxes.lower, boxes.upper, model.policy, self.columns)
        constraints = range(self.view.num_constraints)
        upper = [self.worst(boxes, balls, boxes.cost_upper, i).cost for i in constraints]
        lower = [-joint_cost_of_columns(self.index, self.columns, boxes.cost_lower, i, -1.0) for i in constraints]
        return Bounds(boxes, balls, np.array(upper), np.array(lower))

    def worst(self, boxes: Boxes, balls: Balls, costs: FloatArray, i: int) -> Worst:
        """The largest that constraint i can cost the own policy, for costs (num_rows, m); its columns are loaded."""
        cost = joint_cost_of_columns(self.index, self.columns, costs, i, 1.0)
        found = Worst(cost, self._values(), False)
        if self.wide.any():
            near = joint_cost_with_balls(self.index, self.columns, self.ball_rule, balls, costs, i)
            if near < cost:
                return Worst(near, self._values(), True)
        return found

    def _values(self) -> FloatArray:
        values = self.columns.values.copy()
        values[-1] = 0.0
        return values

    def weight(self, upper: FloatArray) -> float:
        """lambda for the upper bounds U (m,)."""
        return self._weight(upper, self.view.binding)

    def weights(self, upper: FloatArray) -> FloatArray:
        """(m,): lambda as each constraint alone would ask for it; 0 where it cannot be violated."""
        alone = np.zeros(self.view.num_constraints)
        for i in self.view.binding:
            alone[i] = self._weight(upper, np.array([i], dtype=np.int64))
        return alone

    def _weight(self, upper: FloatArray, binding: IntArray) -> float:
        view = self.view
        none = np.zeros((0, view.layout.num_rows))
        return safe_weight(
            Baseline(none, self.beta.copy(), view.thresholds.copy(), view.ceilings.copy(), binding), upper
        )

    def mixing(self, explored: int) -> Mixing:
        """lambda after so many episodes of exploration."""
        bounds = self.after(explored)
        return Mixing(self.weight(bounds.upper), self.weight(bounds.daring(self.view.thresholds)))
