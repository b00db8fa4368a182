"""Problem (PROJ), validated: project exp(log_base) in relative entropy onto the occupancies that are allowed.

min  sum q ln(q/qt) - q + qt     over q >= 0 with
     mass 1 in x_0, inflow = outflow in every inner state                    (a flow through the layers)
     lower w(x,a) <= q(x,a,x') <= upper w(x,a),   w(x,a) = sum_x' q(x,a,x')   (transitions within their boxes)
     sum_{x,a} costs_i(x,a) w(x,a) <= thresholds_i                           (constraints)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, real_number, whole_number, within
from hedgerow.errors import InvalidInput
from hedgerow.model.kernel_layout import Index, check_boxes, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.workspace import KernelProblem

LARGEST_COST = 1e6


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionProblem:
    """A projection to solve: the allowed occupancy that is nearest to a given point in relative entropy.

    An occupancy q gives each triple (state, action, next state) its probability. It is allowed if it flows through the
    layers with mass 1, if the transition probabilities it implies lie in their boxes, and if its costs keep the
    thresholds. Among these, the projection minimises sum q ln(q / base) - q + base. Arrays are checked, and read-only
    afterwards.

    Args:
        layout: The layers, the actions, and which states can follow which.
        log_base: (num_triples,) finite numbers: the logarithm of the point to project.
        lower: (num_triples,) lower bounds of the transition probabilities, in [0, 1].
        upper: (num_triples,) upper bounds of the transition probabilities, in [0, 1].
        costs: (m, num_rows) costs, each of absolute value up to 1e6; None without constraints.
        thresholds: (m,) the largest allowed costs.

    Raises:
        InvalidInput: If a shape or a number is wrong, or if the box of some row holds no distribution.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> problem = hr.projection.ProjectionProblem(
        ...     hr.Layout((1, 1), 2), np.log([0.5, 0.5]), lower=[1.0, 1.0], upper=[1.0, 1.0],
        ...     costs=[[1.0, 0.0]], thresholds=[0.25],
        ... )
        >>> problem.num_constraints, hr.projection.project(problem).policy.round(9).tolist()
        (1, [0.25, 0.75])
    """

    layout: Layout
    """The layers, the actions, and which states can follow which."""
    log_base: FloatArray
    """(num_triples,): the logarithm of the point to project."""
    lower: FloatArray
    """(num_triples,): lower bounds of the transition probabilities."""
    upper: FloatArray
    """(num_triples,): upper bounds of the transition probabilities."""
    costs: FloatArray
    """(m, num_rows): the costs of the pairs of state and action."""
    thresholds: FloatArray
    """(m,): the largest allowed costs."""

    def __init__(
        self,
        layout: Layout,
        log_base: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        costs: ArrayLike | None = None,
        thresholds: ArrayLike = (),
    ) -> None:
        if not isinstance(layout, Layout):
            raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
        triples, where = (layout.num_triples,), layout.describe_triple
        m = np.size(thresholds)
        costs = np.zeros((0, layout.num_rows)) if costs is None else costs
        values = {
            "layout": layout,
            "log_base": float_array("the log of the base", log_base, triples, where),
            "lower": within("the lower bound", float_array("the lower bound", lower, triples, where), 0.0, 1.0, where),
            "upper": within("the upper bound", float_array("the upper bound", upper, triples, where), 0.0, 1.0, where),
            "costs": float_array("the cost", costs, (m, layout.num_rows), layout.describe_row),
            "thresholds": float_array("the threshold", thresholds, (m,)),
        }
        within("the cost", values["costs"], -LARGEST_COST, LARGEST_COST, layout.describe_row)  # type: ignore[arg-type]
        check_boxes(layout, values["lower"], values["upper"])  # type: ignore[arg-type]
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("ProjectionProblem", repr(self.layout), f"thresholds={text.numbers(self.thresholds)}")

    @property
    def num_constraints(self) -> int:
        """The number m of constraints."""
        return len(self.thresholds)

    @property
    def cost_scales(self) -> FloatArray:
        """(m,): max(1, largest |cost|), the unit in which residuals of each constraint are measured."""
        largest: FloatArray = np.max(np.abs(self.costs), axis=1, initial=1.0)
        return largest

    def relaxed(self, amount: float) -> ProjectionProblem:
        """Return the same problem with all thresholds raised by `amount`."""
        if amount == 0.0:
            return self
        thresholds = self.thresholds + amount
        return ProjectionProblem(self.layout, self.log_base, self.lower, self.upper, self.costs, thresholds)

    def kernel_arguments(self) -> tuple[Index, KernelProblem]:
        """Return the problem in the form that the compiled solver takes."""
        log_weight, log_conditional = _split(self.layout, self.log_base)
        return index_of(self.layout), KernelProblem(
            log_weight=log_weight,
            conditional=np.exp(log_conditional),
            log_conditional=log_conditional,
            # Copies: to kernels all arrays of a bundle are writable, and these are frozen.
            lower=self.lower.copy(),
            upper=self.upper.copy(),
            costs=self.costs.T.copy(),
            thresholds=self.thresholds.copy(),
            absorbed=np.zeros(self.num_constraints),
        )


def recentred(layout: Layout, problem: KernelProblem, v: FloatArray, theta: FloatArray) -> KernelProblem:
    """`problem` as seen from the dual point (v, theta): the dual variables of the result count from there.

    With pt' ~ pt e^{-v} and wt' = wt e^{v(x) - theta^T c} sum(pt e^{-v}) this is the same problem exactly, but
    multipliers of 10^6, reached in many such moves, no longer drown increments of 10^-10.
    """
    log_total, log_conditional = _split(layout, problem.log_conditional - v[layout.successor])
    state = np.arange(layout.num_rows) // layout.num_actions
    return problem.replace(
        log_weight=problem.log_weight + v[state] + log_total - problem.costs @ theta,
        conditional=np.exp(log_conditional),
        log_conditional=log_conditional,
        absorbed=problem.absorbed + theta,
    )


def _split(layout: Layout, exponent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """exp(exponent) as ln of the row totals and ln of the conditionals."""
    starts, row = layout.row_start[:-1], layout.row_of_triple
    largest = np.maximum.reduceat(exponent, starts)
    log_total = largest + np.log(np.add.reduceat(np.exp(exponent - largest[row]), starts))
    return log_total, exponent - log_total[row]


# --------------------------------------------------------------------------------------------------------------------
# What a projection is asked for and what it answers: settings, status, residuals, result.


class ProjectionStatus(Enum):
    """How a projection ended; the value of each member is a sentence for people.

    Examples:
        >>> import hedgerow as hr
        >>> hr.projection.ProjectionStatus.SOLVED.message
        'solved: the projection satisfies its optimality conditions within the tolerance'
    """

    SOLVED = "solved: the projection satisfies its optimality conditions within the tolerance"
    INFEASIBLE = "infeasible: the certificate proves that no occupancy within the boxes satisfies the constraints"
    NUMERICAL_FAILURE = "numerical failure: neither a solution nor a certificate was reached; please report the problem"

    @property
    def message(self) -> str:
        """The sentence for people."""
        return self.value


@dataclass(frozen=True)
class ProjectionSettings:
    """Tolerances and limits of a projection. The defaults are those of the learners.

    Examples:
        >>> import hedgerow as hr
        >>> hr.projection.ProjectionSettings(tol=1e-8).tol
        1e-08
    """

    tol: float = 1e-10
    """The largest residual at which a problem counts as solved; 1e-14 to 1e-3. It is the largest |inflow - outflow| of
    a state, the largest excess of a cost over its threshold, and complementarity, in the units of `ProjectionResiduals`
    and of `hr.projection.certify`. Where rounding leaves no better point, the slow solver accepts 8 times as much."""
    tol_infeasible: float = 4e-10
    """A problem whose thresholds are missed by more than this is infeasible. If they are missed by less, or kept with
    less room than this, the thresholds are raised by at most a little more than twice this number, and the result
    says by how much. Measured in the unit max(1, largest |cost|) of each constraint."""
    suspect_theta: float = 1e3
    """Sum of constraint multipliers above which infeasibility is examined."""
    suspect_iterations: int = 40
    """Number of Newton steps after which infeasibility is examined."""
    max_iterations: int = 20_000
    """Number of steps after which the slow solver, for problems that the fast one leaves open, gives up."""

    def __post_init__(self) -> None:
        real_number("tol", self.tol, 1e-14, 1e-3)
        real_number("tol_infeasible", self.tol_infeasible, 1e-12, 1e-3)
        real_number("suspect_theta", self.suspect_theta, 1.0, 1e12)
        whole_number("suspect_iterations", self.suspect_iterations, 1)
        whole_number("max_iterations", self.max_iterations, 1)


@dataclass(frozen=True)
class ProjectionResiduals:
    """How well the solver's dual solution satisfies the conditions, as the solver itself sees it.

    `hr.projection.certify` measures the answer independently, in the same units: masses for flows;
    max(1, largest |cost|) for the cost of a constraint; the size of the terms of the dual value for complementarity.

    Examples:
        >>> from hedgerow.projection.problem import ProjectionResiduals
        >>> ProjectionResiduals(flow=1e-12, cost=0.0, complementarity=1e-11).worst
        1e-11
    """

    flow: float
    """The largest |inflow - outflow| of any state."""
    cost: float
    """The largest excess of any cost over its threshold as it was given, at least 0. Where the result says that
    thresholds were raised (`relaxation`), it may be as much."""
    complementarity: float
    """The largest product of a multiplier and the slack of its constraint, divided by 1 + |v(x_0) - theta^T alpha - L|
    + theta^T |alpha|. The thresholds alpha are those that were used."""

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.flow, self.cost, self.complementarity)


def make_residuals(
    flow: float, cost: float, product: float, value: float, theta: FloatArray, thresholds: FloatArray
) -> ProjectionResiduals:
    """Residuals in the units of the certificate, from max theta_i |slack_i| and v(x_0) - theta^T alpha - L."""
    return ProjectionResiduals(flow, cost, product / (1.0 + abs(value) + float(theta @ np.abs(thresholds))))


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionResult:
    """The projection, or the proof that there is none.

    If the problem is infeasible, `theta` holds weights of the constraints (at least 0, with sum 1) that prove it, and
    the occupancy fields hold the last iterate, which satisfies everything but the costs.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> problem = hr.projection.ProjectionProblem(
        ...     hr.Layout((1, 1), 2), np.log([0.5, 0.5]), [1.0, 1.0], [1.0, 1.0], [[1.0, 0.0]], [0.25]
        ... )
        >>> result = hr.projection.project(problem)
        >>> result.solved, result.policy.round(9).tolist()
        (True, [0.25, 0.75])
    """

    status: ProjectionStatus
    """How the projection ended."""
    log_occupancy: FloatArray
    """(num_triples,): the logarithm of the occupancy; -inf where the boxes force 0."""
    policy: FloatArray
    """(num_rows,): the action probabilities that the occupancy implies."""
    v: FloatArray
    """(num_states,): multipliers of the flow equalities, 0 in the terminal state."""
    theta: FloatArray
    """(m,): multipliers of the constraints, at least 0."""
    objective: float
    """The relative entropy between the projection and the base."""
    dual_value: float
    """The value of the dual problem, a lower bound on the objective."""
    residuals: ProjectionResiduals
    """How well the conditions are satisfied, as the solver sees it."""
    iterations: int
    """The number of Newton steps."""
    least_violation: float = 0.0
    """If infeasible: the smallest number that, added to all thresholds, makes the problem feasible; else 0."""
    relaxation: float = 0.0
    """What was added to the thresholds because they are, up to rounding, the least possible ones; mostly 0. In the unit
    max(1, largest |cost|) of each constraint."""

    def __repr__(self) -> str:
        from hedgerow.display import text

        missed = self.status is ProjectionStatus.INFEASIBLE
        found = f"least_violation={self.least_violation:.6g}" if missed else f"objective={self.objective:.6g}"
        ways = f"theta={text.numbers(self.theta)}", f"worst residual {self.residuals.worst:.2g}"
        steps = text.counted(self.iterations, "iteration")
        return text.line("ProjectionResult", self.status.name, found, *ways, steps)

    @property
    def solved(self) -> bool:
        """Whether `status` is SOLVED."""
        return self.status is ProjectionStatus.SOLVED
