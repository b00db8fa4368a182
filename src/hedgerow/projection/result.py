"""What a projection is asked for and what it answers: settings, status, residuals, result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hedgerow.checks import FloatArray, real_number, whole_number


class ProjectionStatus(Enum):
    """How a projection ended; the value is the sentence for people."""

    SOLVED = "solved: the projection satisfies its optimality conditions within the tolerance"
    INFEASIBLE = "infeasible: the certificate proves that no occupancy within the boxes satisfies the constraints"
    NUMERICAL_FAILURE = "numerical failure: neither a solution nor a certificate was reached; please report the problem"

    @property
    def message(self) -> str:
        return self.value


@dataclass(frozen=True)
class ProjectionSettings:
    """Tolerances and limits. The defaults are those of the learners."""

    tol: float = 1e-10
    """On flow, cost and complementarity residuals of the dual solution."""
    tol_infeasible: float = 4e-10
    """A least violation above this is infeasible. Up to it, and down to as much slack, there is no room to project
    into: the thresholds are raised by at most a little more than twice this, and the result says by how much. All in
    the unit of each constraint, max(1, max |c_i|)."""
    suspect_theta: float = 1e3
    """Sum of multipliers above which infeasibility is examined."""
    suspect_iterations: int = 40
    """Newton steps after which infeasibility is examined."""
    max_iterations: int = 20_000

    def __post_init__(self) -> None:
        real_number("tol", self.tol, 1e-14, 1e-3)
        real_number("tol_infeasible", self.tol_infeasible, 1e-12, 1e-3)
        real_number("suspect_theta", self.suspect_theta, 1.0, 1e12)
        whole_number("suspect_iterations", self.suspect_iterations, 1)
        whole_number("max_iterations", self.max_iterations, 1)


@dataclass(frozen=True)
class ProjectionResiduals:
    """Residuals of the dual solution as the solver sees them; `certificate` measures the answer independently.

    Costs count in the unit max(1, max |c_i|) of each constraint.
    """

    flow: float
    cost: float
    complementarity: float

    @property
    def worst(self) -> float:
        return max(self.flow, self.cost, self.complementarity)


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionResult:
    """The projection, or the proof that there is none.

    When infeasible, `theta` (in the simplex) is the certificate, `least_violation` the smallest s for which
    thresholds + s is feasible, and the occupancy fields hold the last iterate, which satisfies all but the costs.
    """

    status: ProjectionStatus
    log_occupancy: FloatArray
    """(num_triples,): ln q, -inf where the box forces 0"""
    policy: FloatArray
    """(num_rows,)"""
    v: FloatArray
    """(num_states,): flow multipliers, 0 at x_L"""
    theta: FloatArray
    """(m,): constraint multipliers"""
    objective: float
    """D(q || base)"""
    dual_value: float
    residuals: ProjectionResiduals
    iterations: int
    least_violation: float = 0.0
    relaxation: float = 0.0
    """What was added to the thresholds, in the unit max(1, max |c_i|) of each, because they are, to rounding, the least
    possible ones; mostly 0"""

    def __repr__(self) -> str:
        from hedgerow import brief

        missed = self.status is ProjectionStatus.INFEASIBLE
        found = f"least_violation={self.least_violation:.6g}" if missed else f"objective={self.objective:.6g}"
        ways = f"theta={brief.numbers(self.theta)}", f"worst residual {self.residuals.worst:.2g}"
        steps = brief.counted(self.iterations, "iteration")
        return brief.line("ProjectionResult", self.status.name, found, *ways, steps)

    @property
    def solved(self) -> bool:
        return self.status is ProjectionStatus.SOLVED
