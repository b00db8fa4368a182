"""The model of a forecast: transitions, mean costs, how the episodes so far explored, and which policy is bounded.

A view knows only part of this. The rest is assumed, in the plainest way that is neither optimistic nor pessimistic:

    transitions   uniform over the successors of each row, where P is not known
    costs         where they are not known, rising evenly from 0 to twice their mean over the states of a layer (were
                  they all alike, it would not matter where one goes), and so large that the learner's policy costs
                  exactly its threshold: a learner goes as far as it may
    exploration   actions drawn uniformly in every episode
    policy        the uniform one

For a world, transitions and costs are the true ones, and the learner's policy is its optimum; without a loss, the
uniform policy, or as much of it as the thresholds allow.

The expected counts after t episodes of uniform actions, rounded, are kept as a learner keeps them: rows that share a
law are counted at the first row of their class. All visits count for the transitions; for the costs only the first
one of an episode does, unless costs are independent. Each count is within 1 of its expectation, moves of a row add up
to its visits, and sums of costs are visits times means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.confidence.balls import BallRule, Balls, follow_counts, joint_cost_with_balls, make_balls
from hedgerow.confidence.bounds import joint_cost_of_columns, load_columns, make_columns
from hedgerow.confidence.boxes import Boxes, make_box_rule, make_boxes, refresh_all
from hedgerow.confidence.counts import Counts, Laws, Unknowns
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.confidence.sets import failure_budget
from hedgerow.importers.logs import Log
from hedgerow.learners.kernels import BaselineArrays, safe_weight
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.settings import Preset, Settings, make_settings
from hedgerow.model.cmdp import CMDP
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import induced_policy, occupancy, row_occupancy, uniform_policy
from hedgerow.model.view import View
from hedgerow.planning import offline


class Exploration:
    """Counts after any number of episodes, for a model and what there is to estimate."""

    def __init__(self, model: Model, unknowns: Unknowns, start: Counts | None = None) -> None:
        """`start` are the counts of a log, if there is one."""
        self.model, self.start, laws = model, start, unknowns.laws
        visits, num_rows = model.explored, model.layout.num_rows
        self.visits = np.bincount(laws.moves_at, visits, minlength=num_rows)
        """(num_rows,): per episode, where they are counted"""
        shared = laws.costs_at if not laws.every_visit and np.any(laws.costs_at != np.arange(num_rows)) else None
        self.cost_visits = (
            np.bincount(laws.costs_at, visits, minlength=num_rows)
            if shared is None
            else first_visits_of_classes(model.layout, model.transitions, shared)
        )

    def after(self, episodes: int) -> Counts:
        """The counts after so many episodes."""
        layout, means = self.model.layout, self.model.costs
        num_visits = np.rint(episodes * self.visits).astype(np.int64)
        num_costs = np.rint(episodes * self.cost_visits).astype(np.int64)
        counts = Counts(
            num_visits=num_visits,
            num_moves=_apportioned(layout, num_visits, self.model.transitions),
            num_costs=num_costs,
            cost_sums=np.ascontiguousarray((num_costs * means).T),
            unknown_moves=np.zeros(layout.num_rows, dtype=np.int64),
            unknown_costs=np.zeros(means.T.shape, dtype=np.int64),
        )
        if self.start is None:
            return counts
        logged = self.start.as_dict()
        return Counts(**{name: logged[name] + value for name, value in counts.as_dict().items()})


def _apportioned(layout: Layout, num_visits: IntArray, transitions: FloatArray) -> IntArray:
    """Whole numbers (num_triples,) that add up to the visits of each row, in proportion to P."""
    row, first = layout.row_of_triple, layout.row_start[:-1]
    upto = np.cumsum(transitions)
    upto -= (upto[first] - transitions[first])[row]  # within each row
    upto[layout.row_start[1:] - 1] = 1.0
    rounded = np.rint(num_visits[row] * np.minimum(upto, 1.0)).astype(np.int64)
    moves = np.diff(rounded, prepend=0)
    moves[first] = rounded[first]
    return moves


def first_visits_of_classes(layout: Layout, transitions: FloatArray, classes: IntArray) -> FloatArray:
    """(num_rows,): how likely an episode of uniform actions is to visit each class at all, at its first row.

    `classes` (num_rows,) are the first rows. One forward pass serves all classes: it carries the mass that has not met
    its class yet.
    """
    places = np.unique(classes)
    number = np.searchsorted(places, classes)
    policy, size = uniform_policy(layout), len(places)
    alive = np.ones((1, size))  # of the states of layer k, by class
    met = np.zeros(size)
    for k in range(layout.steps):
        rows, triples = layout.rows(k), layout.triples(k)
        w = np.repeat(alive, layout.num_actions, axis=0) * policy[rows, np.newaxis]
        own = np.arange(w.shape[0]), number[rows]
        np.add.at(met, number[rows], w[own])
        w[own] = 0.0
        place = layout.successor[triples] - int(layout.state_start[k + 1]), layout.row_of_triple[triples] - rows.start
        alive = csr_matrix((transitions[triples], place), shape=(layout.layer_sizes[k + 1], w.shape[0])) @ w
    found = np.zeros(layout.num_rows)
    found[places] = met
    return found


HALVINGS = 60
CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Model:
    """See the module's text."""

    layout: Layout
    transitions: FloatArray
    """(num_triples,)"""
    costs: FloatArray
    """(m, num_rows)"""
    policy: FloatArray
    """(num_rows,): the learner's policy"""
    assumptions: dict[str, str]
    """The assumptions in words, by topic"""

    @property
    def explored(self) -> FloatArray:
        """(num_rows,): how often an episode of uniform actions visits each row."""
        return masses(self.layout, self.transitions, uniform_policy(self.layout))

    @property
    def played(self) -> FloatArray:
        """(num_rows,): how often an episode of the learner's policy visits each row."""
        return masses(self.layout, self.transitions, self.policy)

    @property
    def true_costs(self) -> FloatArray:
        """(m,): the true costs of the learner's policy."""
        return self.costs @ self.played


def masses(layout: Layout, transitions: FloatArray, policy: FloatArray) -> FloatArray:
    """q(x, a) (num_rows,)."""
    return row_occupancy(layout, occupancy(layout, transitions, policy))


def assumed_model(view: View) -> Model:
    """The model for a view, without a simulator."""
    layout, known = view.layout, view.knowledge
    sizes = np.diff(layout.row_start)
    P = np.repeat(1.0 / sizes, sizes)
    if known.transitions is not None:
        P = np.where(np.isnan(known.transitions), P, known.transitions)
    policy = uniform_policy(layout)
    q = masses(layout, P, policy)
    costs, words = np.zeros((view.num_constraints, layout.num_rows)), []
    for i, name in enumerate(view.constraint_names):
        given = np.full(layout.num_rows, np.nan) if known.costs is None else known.costs[i]
        costs[i] = raised(q, rising(view), given, float(view.thresholds[i]))
        words.append(_of_level(name, q, costs[i], np.isnan(given), float(view.thresholds[i])))
    assumptions = {
        "transitions": "as known, else uniform over the successors of each pair",
        "costs": f"as known, else rising evenly over the states of a layer; {'; '.join(words)}",
        "exploration": "actions drawn uniformly in every episode so far",
        "policy": "the uniform one",
    }
    return Model(layout, P, costs, policy, assumptions)


def rising(view: View) -> FloatArray:
    """(num_rows,): from 0 to 2 over the states of each layer; rows that share the law of their costs have its mean."""
    layout = view.layout
    by_state = [2.0 * (np.arange(size) + 0.5) / size for size in layout.layer_sizes[:-1]]
    shape = np.repeat(np.concatenate(by_state), layout.num_actions)
    same = view.knowledge.same_costs
    if same is None:
        return shape
    mean: FloatArray = np.bincount(same, shape, len(shape))[same] / np.bincount(same, minlength=len(shape))[same]
    return mean


def raised(q: FloatArray, shape: FloatArray, given: FloatArray, threshold: float) -> FloatArray:
    """Mean costs (num_rows,) of one constraint: the known ones, else `shape`, scaled until q costs the threshold."""
    unknown = np.isnan(given)

    def at(scale: float) -> FloatArray:
        return np.where(unknown, np.minimum(1.0, scale * shape), given)

    low, high = 0.0, 1.0 / float(shape.min())  # all costs 0, all costs 1
    if float(q @ at(high)) <= threshold:
        return at(high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(q @ at(middle)) <= threshold else (low, middle)
    return at(low)


def _of_level(name: str, q: FloatArray, costs: FloatArray, unknown: BoolArray, threshold: float) -> str:
    cost = float(costs @ q)
    told = f"the learner's policy costs {cost:.4g}"
    if abs(cost - threshold) <= CLOSE:
        told += ", its threshold"
    if not np.any(unknown & (q > 0.0)):
        return f"{name!r}: all known, {told}"
    mean = float(q[unknown] @ costs[unknown] / q[unknown].sum())
    return f"{name!r}: {mean:.4g} on average, so that {told}"


def true_model(cmdp: CMDP, loss: ArrayLike | None = None) -> Model:
    """The model for a known world; refused if no policy satisfies the constraints."""
    if loss is not None:
        policy, words = offline.optimum(cmdp, loss).policy, "the optimum under the world's own loss"
    else:
        policy, words = _safe_part(cmdp)
    assumptions = {
        "transitions": "the true ones",
        "costs": "the true means",
        "exploration": "actions drawn uniformly in every episode so far",
        "policy": words,
    }
    return Model(cmdp.layout, cmdp.transitions, cmdp.mean_costs, np.array(policy), assumptions)


def _safe_part(cmdp: CMDP) -> tuple[FloatArray, str]:
    """The uniform policy, or the point nearest to it on the way from the Slater policy that is safe."""
    layout, safest = cmdp.layout, offline.slater(cmdp)
    free = occupancy(layout, cmdp.transitions, uniform_policy(layout))
    over = cmdp.mean_costs @ row_occupancy(layout, free) - safest.costs
    room = cmdp.thresholds - safest.costs
    share = min([1.0, *(room[i] / over[i] for i in np.flatnonzero(over > room))])
    if share == 1.0:
        return uniform_policy(layout), "the uniform one"
    policy = induced_policy(layout, share * free + (1.0 - share) * safest.occupancy)
    return policy, f"{share:.0%} uniform and the rest the safest: as far as the thresholds allow"


# lambda in the course of a run, between two models of the run ---------------------------------------------------------
#
# least    every episode so far explored, whatever the coin said, and the learner's policy is that of the model
# most     only the episodes of the learner's policy explored, 1 - lambda of them, while the baseline showed nothing
#          new; and that policy is as optimistic as its bounds let it be
#
# With w(e) the lambda that e explored episodes lead to, `most` follows from e' = 1 - w(e): e episodes have explored
# after the time t(e), the integral of 1 / (1 - w), and the baseline plays T - e(T) of T episodes. This matters wherever
# w is near 1: a learner that hardly explores hardly learns.


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
    """U and lambda after any number of episodes, for a view, a model and a preset, or the settings of a learner.

    `episodes` is the horizon that the radii are made for, if they need one; `log` are episodes that came before,
    which radii with a horizon do not take.
    """

    def __init__(
        self, view: View, model: Model, beta: FloatArray, episodes: int, delta: float,
        preset: Preset | Settings = "sharpest", log: Log | None = None,
    ) -> None:  # fmt: skip
        self.view, self.model, self.beta, layout, m = view, model, beta, view.layout, view.num_constraints
        settings = preset if isinstance(preset, Settings) else make_settings(preset, {}, SOPS.switches, SOPS.__name__)
        self.clip_costs = settings.clip_costs
        self.unknowns, self.wide, num_balls, shares = failure_budget(view, settings.choice, mixes=True)
        self.radii = settings.choice.radii.rule(layout, m, delta, episodes, self.unknowns, shares)
        self.box_rule = make_box_rule(self.radii, self.unknowns, settings.clip_costs)
        log_balls = math.log(max(1, num_balls)) - math.log(max(shares.balls, 1.0) * delta)
        self.ball_rule = BallRule(self.wide.astype(np.int8), log_balls)
        start = None if log is None or settings.radii not in WITHOUT_HORIZON else log_counts(view, log)[0]
        self.exploration = Exploration(model, self.unknowns, start)
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


def log_counts(view: View, log: Log) -> tuple[Counts, Laws]:
    """What a learner with the preset `sharpest` counts of a log, and at which rows."""
    learner = SOPS(
        view, 1, 0.1, "sharpest", baseline=uniform_policy(view.layout), baseline_costs=view.thresholds,
        allow_no_margin=True,
    )  # fmt: skip
    learner.absorb(log)
    return learner.core.state.counts, learner.core.sets.rule.box.laws


def own_episodes(view: View, beta: FloatArray, episodes: int, delta: float, settings: Settings) -> float:
    """In how many of the episodes S-OPS with these settings would play its own policy at least, as far as a view knows.

    The rule when to stay asks for it (`learners/ops/stay.py`).
    """
    caster = Forecaster(view, assumed_model(view), beta, episodes, delta, settings)
    return LambdaForecast(caster, episodes).explored(episodes)
