"""An independent check of a projection: optimality conditions, a rigorous duality gap, or the proof of infeasibility.

Nothing here is shared with the solver. The gap uses the *large* dual, with multipliers a+, a- >= 0 per triple,

    q'(x,a,x') = qt exp{ v(x) - v(x') - theta^T c(x,a) - a+(x') + a-(x') + sum_y [ hi(y) a+(y) - lo(y) a-(y) ] }
    D(q || qt)  >=  v(x_0) - theta^T alpha - sum q' + sum qt       for every v, theta >= 0, a+ >= 0, a- >= 0,

so whatever a+ and a- are recovered, a small gap proves that q is the projection: D(q || q*) <= gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray
from hedgerow.display import text
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.result import ProjectionResult

SMALLEST_LOG = 800.0
"""exp(-800) is 0 in floating point."""
NOTHING = 1e-200
"""A share of a row below this tells nothing about multipliers: it may have been cut to stay a number."""
EPSILON = float(np.finfo(np.float64).eps)
AT_BOUND = 1e-9
"""Relative distance to a bound below which a multiplier of that bound may be positive."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """An independent check of a projection: how far it is from satisfying each condition.

    Every number is 0 for the exact solution. A small gap proves that the answer is the projection.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> problem = hr.projection.ProjectionProblem(
        ...     hr.Layout((1, 1), 2), np.log([0.5, 0.5]), [1.0, 1.0], [1.0, 1.0], [[1.0, 0.0]], [0.25]
        ... )
        >>> hr.projection.certify(problem, hr.projection.project(problem)).worst < 1e-9
        True
    """

    mass: float
    """The largest |mass of a layer - 1|."""
    flow: float
    """The largest |inflow - outflow| of any inner state."""
    boxes: float
    """The largest excess of any triple over the bounds of its transition probability."""
    costs: float
    """The largest excess of any cost over its threshold, in the unit max(1, largest |cost|) of the constraint."""
    complementarity: float
    """The largest multiplier times |cost - threshold|, divided by 1 + |v(x_0) - theta^T alpha - L| + theta^T |alpha|:
    what it adds to the gap, in the size of the terms of the dual value. The thresholds are those that the result says
    it used."""
    stationarity: float
    """The largest difference between the answer and the exponential form of its own multipliers, divided by 1 + max
    |v|."""
    gap: float
    """absolute_gap, divided by the largest terms of which it is a difference."""
    absolute_gap: float
    """The objective of the answer minus a lower bound on it; the relative entropy to the exact projection is at most
    this."""

    @property
    def worst(self) -> float:
        """The largest of all residuals; of the two gaps, the relative one counts."""
        names = (field.name for field in fields(self) if field.name != "absolute_gap")
        return max(abs(float(getattr(self, name))) for name in names)

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name):.2g}" for name in ("worst", "gap", "absolute_gap", "flow", "costs"))
        return text.line("Certificate", *parts)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import certificate_html

        return certificate_html(self)


def certify(problem: ProjectionProblem, result: ProjectionResult) -> Certificate:
    """Check an answer of `project` independently of the solver.

    It uses the occupancy and the multipliers of the answer alone, and shares no code with the solver.

    Args:
        problem: The problem that was solved.
        result: The answer.

    Returns:
        How far the answer is from satisfying each condition.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> problem = hr.projection.ProjectionProblem(
        ...     hr.Layout((1, 1), 2), np.log([0.5, 0.5]), [1.0, 1.0], [1.0, 1.0], [[1.0, 0.0]], [0.25]
        ... )
        >>> abs(hr.projection.certify(problem, hr.projection.project(problem)).gap) < 1e-9
        True
    """
    layout = problem.layout
    row, starts = layout.row_of_triple, layout.row_start[:-1]
    q = np.exp(result.log_occupancy)
    w = np.add.reduceat(q, starts)
    layer_mass = np.add.reduceat(w, layout.state_start[:-2] * layout.num_actions)
    outflow = np.add.reduceat(w, np.arange(0, layout.num_rows, layout.num_actions))
    inflow = np.zeros(layout.num_states)
    np.add.at(inflow, layout.successor, q)
    raised = result.relaxation * problem.cost_scales
    thresholds = problem.thresholds + raised
    slack = problem.costs @ w - thresholds
    theta = np.asarray(result.theta)
    dual_q = np.exp(_large_dual_point(problem, result))
    positive = q > 0.0
    safe_log_q = np.where(positive, result.log_occupancy, 0.0)
    base_mass = float(np.sum(np.exp(problem.log_base)))
    divergence = float(np.sum(q * np.where(positive, safe_log_q - problem.log_base, 0.0)) - q.sum() + base_mass)
    terms = 1.0 + abs(result.v[0] - theta @ thresholds - layout.steps) + theta @ np.abs(thresholds)
    dual_value = float(result.v[0] - theta @ thresholds - np.sum(dual_q) + base_mass)
    return Certificate(
        mass=float(np.max(np.abs(layer_mass - 1.0))),
        flow=float(np.max(np.abs(inflow[1:-1] - outflow[1:]), initial=0.0)),
        boxes=float(max(0.0, np.max(problem.lower * w[row] - q), np.max(q - problem.upper * w[row]))),
        costs=float(np.max((slack + raised) / problem.cost_scales, initial=0.0)),
        complementarity=float(np.max(theta * np.abs(slack), initial=0.0) / terms),
        stationarity=float(np.max(np.abs(q - dual_q)) / (1.0 + np.max(np.abs(result.v)))),
        gap=(divergence - dual_value) / (1.0 + abs(divergence) + float(theta @ np.abs(thresholds))),
        absolute_gap=divergence - dual_value,
    )


def _large_dual_point(problem: ProjectionProblem, result: ProjectionResult) -> FloatArray:
    """ln q' for multipliers a+, a- recovered from how far each triple is from the plain exponential form."""
    layout = problem.layout
    row, starts = layout.row_of_triple, layout.row_start[:-1]
    state = row // layout.num_actions
    price = np.asarray(result.theta) @ problem.costs
    plain = problem.log_base + result.v[state] - result.v[layout.successor] - price[row]
    largest = np.maximum.reduceat(result.log_occupancy, starts)[row]
    share = np.exp(result.log_occupancy - largest)  # within the row, whatever the mass of the row
    total = np.add.reduceat(share, starts)[row]
    share /= total
    log_share = result.log_occupancy - largest - np.log(total)
    impossible = problem.upper == 0.0  # a+ = infinity costs nothing there: q' = 0
    # By logarithms, because bounds and shares may be far smaller than the distance that counts as none. A logarithm of
    # -10^8 has no digit left below 10^-8.
    near = AT_BOUND + 4.0 * EPSILON * np.abs(largest)
    at_upper = impossible | (log_share >= _log(problem.upper) - near)
    at_lower = log_share <= _log(problem.lower) + near
    known = ((share > NOTHING) | at_upper | (at_lower & (problem.lower > 0.0))) & ~impossible
    excess = np.where(known, np.where(known, result.log_occupancy, 0.0) - plain, 0.0)  # = s - a+ + a-, s per row
    free = known & ~at_upper & ~at_lower
    weight = np.where(free, share, 0.0)
    total = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight * excess, starts) / np.where(total > 0.0, total, 1.0)
    # Without a free triple, s lies anywhere between the largest excess at `hi` and the smallest at `lo`.
    highest = np.maximum.reduceat(np.where(known & at_upper & ~at_lower, excess, -np.inf), starts)
    lowest = np.minimum.reduceat(np.where(known & at_lower & ~at_upper, excess, np.inf), starts)
    inner = np.where(np.isfinite(highest), highest, np.where(np.isfinite(lowest), lowest, 0.0))
    s = np.where(total > 0.0, mean, inner)
    # A successor can be forced to 0 by the lower bounds of the others: the limit of s to minus infinity describes it.
    forced = np.where(~np.isfinite(result.log_occupancy) & ~impossible, plain, -np.inf)
    s = np.where(total > 0.0, s, np.minimum(s, -SMALLEST_LOG - np.maximum.reduceat(forced, starts)))[row]
    a_plus = np.where(known & at_upper, np.maximum(s - excess, 0.0), 0.0)
    a_minus = np.where(known & at_lower, np.maximum(excess - s, 0.0), 0.0)
    lift = np.add.reduceat(problem.upper * a_plus - problem.lower * a_minus, starts)[row]
    return np.where(impossible, -np.inf, plain - a_plus + a_minus + lift)


def _log(bound: FloatArray) -> FloatArray:
    """ln, minus infinity for 0."""
    return np.log(bound, where=bound > 0.0, out=np.full(bound.shape, -np.inf))


def proves_infeasible(problem: ProjectionProblem, theta: ArrayLike) -> float:
    """min { theta^T (C q - alpha) : q within the boxes } for theta >= 0: positive means infeasible.

    Plain backward induction, row by row; slow and obvious.
    """
    layout = problem.layout
    weights = np.asarray(theta, dtype=np.float64)
    if np.any(weights < 0.0):
        return -np.inf
    cost = weights @ problem.costs
    values = np.zeros(layout.num_states)
    for x in range(layout.num_decision_states - 1, -1, -1):
        options = []
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            triples = slice(layout.row_start[r], layout.row_start[r + 1])
            there = values[layout.successor[triples]]
            options.append(cost[r] + _cheapest(there, problem.lower[triples], problem.upper[triples]))
        values[x] = min(options)
    return float(values[0] - weights @ problem.thresholds)


def _cheapest(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    order = np.argsort(values)
    room = (upper - lower)[order]
    before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
    extra = np.clip(1.0 - lower.sum() - before, 0.0, room)
    return float(lower @ values + extra @ values[order])
