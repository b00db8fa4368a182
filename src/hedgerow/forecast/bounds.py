"""lambda in the course of a run, between two models of the run.

least    every episode so far explored, whatever the coin said, and the learner's policy is that of the model
most     only the episodes of the learner's policy explored, 1 - lambda of them, while the baseline showed nothing new;
         and that policy is as optimistic as its bounds let it be

With w(e) the lambda that e explored episodes lead to, `most` follows from e' = 1 - w(e): e episodes have explored after
the time t(e), the integral of 1 / (1 - w), and the baseline plays T - e(T) of T episodes. This matters wherever w is
near 1: a learner that hardly explores hardly learns.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.confidence.balls import BallRule, Balls, follow_counts, joint_cost_with_balls, make_balls, wide_rows
from hedgerow.confidence.bounds import joint_cost_of_columns, load_columns, make_columns
from hedgerow.confidence.boxes import Boxes, make_box_rule, make_boxes, refresh_all
from hedgerow.confidence.budget import make_shares, make_unknowns
from hedgerow.confidence.counts import Counts
from hedgerow.forecast.model import Exploration, Model
from hedgerow.learners.kernels import BaselineArrays, safe_weight
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.settings import Preset, make_settings
from hedgerow.learners.ops.spending import certifies
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.view import View

POINTS = 36
"""Numbers of explored episodes at which bounds are computed; between them lambda is a line in ln e"""
FINE = 4_000
"""Points of the integral"""
STUCK = 1.0 - 1e-9
"""With this lambda nothing is ever explored."""


class LambdaForecast:
    """The course of a run of at most `episodes`, after a log of `logged` episodes of uniform actions."""

    def __init__(self, caster: Forecaster, episodes: int, logged: int = 0) -> None:
        self.caster, self.logged = caster, logged
        explored = np.unique(np.concatenate(([0], np.rint(np.geomspace(1, max(1, episodes), POINTS))))).astype(np.int64)
        weights = np.array([caster.mixing(int(e) + logged) for e in explored])
        self._explored = np.unique(np.concatenate(([0.0], np.geomspace(0.1, max(1, episodes), FINE))))
        self._least, self._most = (np.interp(np.log1p(self._explored), np.log1p(explored), w) for w in weights.T)
        self._time = _integral(self._explored, 1.0 / (1.0 - np.minimum(self._most, STUCK)))

    def at(self, t: int) -> LambdaRange:
        """lambda after t episodes."""
        least = self.caster.mixing(t + self.logged).least
        most = float(np.interp(self.explored(t), self._explored, self._most))
        return LambdaRange(least, max(least, most))

    def explored(self, t: float) -> float:
        """How many of t episodes the learner's policy has explored at least."""
        return float(np.interp(t, self._time, self._explored))

    def mean(self, episodes: int) -> LambdaRange:
        """The share of the episodes that is left to the baseline."""
        inside = np.minimum(self._explored, episodes)
        least = float(_integral(inside, self._least)[-1]) / episodes
        return LambdaRange(least, max(least, 1.0 - self.explored(episodes) / episodes))


def _integral(x: FloatArray, y: FloatArray) -> FloatArray:
    """The integral of y from x[0] to each of x, by trapezoids."""
    areas = 0.5 * (y[1:] + y[:-1]) * np.diff(x)
    return np.concatenate(([0.0], np.cumsum(areas)))


# U and lambda from counts, as S-OPS with a preset would compute them --------------------------------------------------
#
# The rule is the one that the learner makes for itself, shares of delta included; a test compares the two. The
# aggregate certificate is missing, because it has no counts to work on.


class Bounds(NamedTuple):
    """What the intervals say of the learner's policy."""

    boxes: Boxes
    balls: Balls
    upper: FloatArray
    """U (m,)"""
    lower: FloatArray
    """(m,): the least that it can cost"""

    def daring(self, thresholds: FloatArray) -> FloatArray:
        """U (m,) of a policy of the same widths whose lower bounds reach the thresholds (m,)."""
        return self.upper + np.maximum(0.0, thresholds - self.lower)


class LambdaRange(NamedTuple):
    """lambda, if the learner's policy is that of the model, and if it is as optimistic as the bounds let it be.

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
        """The largest that constraint i can cost the policy, for costs (num_rows, m); its columns are loaded."""
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
            BaselineArrays(none, self.beta.copy(), view.thresholds.copy(), view.ceilings.copy(), binding), upper
        )

    def mixing(self, explored: int) -> LambdaRange:
        """lambda after so many episodes of exploration."""
        bounds = self.after(explored)
        return LambdaRange(self.weight(bounds.upper), self.weight(bounds.daring(self.view.thresholds)))
