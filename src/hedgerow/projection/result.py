"""What a projection is asked for and what it answers: settings, status, residuals, result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from hedgerow.checks import FloatArray, real_number, whole_number


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
        >>> from hedgerow.projection.result import ProjectionResiduals
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
