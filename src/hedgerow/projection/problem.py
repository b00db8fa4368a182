"""Problem (PROJ), validated: project exp(log_base) in relative entropy onto the occupancies that are allowed.

    min  sum q ln(q/qt) - q + qt     over q >= 0 with
         mass 1 in x_0, inflow = outflow in every inner state                    (a flow through the layers)
         lower w(x,a) <= q(x,a,x') <= upper w(x,a),   w(x,a) = sum_x' q(x,a,x')   (transitions within their boxes)
         sum_{x,a} costs_i(x,a) w(x,a) <= thresholds_i                           (constraints)

Kernels take the base as wt(x,a) pt(x'|x,a), with row weights and conditionals apart (`KernelProblem`), and work in
buffers that are allocated once per layout and number of constraints (`Workspace`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, float_array, real_number, whole_number, within
from hedgerow.compiling.bundles import Bundle
from hedgerow.errors import InvalidInput
from hedgerow.model.kernel_layout import LayoutArrays, check_boxes, index_of
from hedgerow.model.layout import Layout


class KernelProblem(Bundle):
    """Arrays over rows are (num_rows, m) here: kernels go from row to row."""

    log_weight: FloatArray
    """(num_rows,): ln wt"""
    conditional: FloatArray
    """(num_triples,): pt, each row sums to 1"""
    log_conditional: FloatArray
    """(num_triples,): ln pt, for rows that span more than floating point; or empty if all pt are normal numbers"""
    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,)"""
    costs: FloatArray
    """(num_rows, m)"""
    thresholds: FloatArray
    """(m,)"""
    absorbed: FloatArray
    """(m,): multipliers that the base contains already; theta counts from there, so theta >= -absorbed"""


# --------------------------------------------------------------------------------------------------------------------
# The buffers of the projection kernels: allocated once per layout and number of constraints, then reused.


FAINT = 1e-250
"""Smaller shares of a state, and smaller states, are known by their logarithms only."""
NO_SYSTEM = -1
"""Stands for the number of candidates when there is no system."""


class Workspace(Bundle):
    """Kernel state. n_k = |X_k|; `diagonal` and `coupling` hold one matrix per layer, flat, one after the other."""

    # The point at which the dual was evaluated last
    scaled: FloatArray
    """(num_states,): exp(min v of the layer - v(x))"""
    p: FloatArray
    """(num_triples,): optimal conditionals"""
    bound: NDArray[np.int8]
    """(num_triples,): 0 free, +1 at the upper, -1 at the lower bound; the first guess of the next evaluation"""
    num_bound: IntArray
    """(num_rows,): how many triples of the row are at a bound"""
    log_ratio: FloatArray
    """(num_triples,): ln(p/pt) of triples that are or were at the bound `noted`"""
    noted: NDArray[np.int8]
    """(num_triples,): the bound that `log_ratio` was computed for, 0 if none"""
    least_base: FloatArray
    """(1,): the smallest conditional of the base, at most 1"""
    log_w: FloatArray
    """(num_rows,): ln w of rows whose share of their state, or whose state, is FAINT; undefined for others"""
    factor: FloatArray
    """(num_rows,): what log_w lacks while a layer is evaluated"""
    w: FloatArray
    """(num_rows,): optimal row weights, layers normalised to mass 1"""
    masses: FloatArray
    """(num_states,): sum_a w"""
    log_mass: FloatArray
    """(L,): log of the layer masses before normalisation"""
    outflow: FloatArray
    """(num_states,)"""
    inflow: FloatArray
    """(num_states,)"""
    gradient_v: FloatArray
    """(num_states,): the last entry, x_L, stays 0"""
    gradient_theta: FloatArray
    """(m,)"""
    # The Newton system
    diagonal: FloatArray
    """(sum n_k^2,): D_k, then its factor"""
    diagonal_start: IntArray
    """(L + 1,)"""
    flow: FloatArray
    """(sum n_k n_{k+1},): sum_a w p of each pair of states (the negative of the block O); only of full layers"""
    coupling: FloatArray
    """(sum n_k n_{k+1},): the solved block U^{-T} flow"""
    coupling_start: IntArray
    """(L + 1,): where the blocks of a layer begin in `flow` and in `coupling`"""
    border: FloatArray
    """(m, num_states): columns of the candidates, then U^{-T} of them"""
    solved: FloatArray
    """(m, num_states): H^{-1} B_i, only when the curvature is computed without cancellation"""
    held: FloatArray
    """(num_states,): the part of the inflow that arrives through successors at a bound"""
    row_scratch: FloatArray
    """Twice as long as the widest row"""
    schur: FloatArray
    """(m, m): S of the candidates"""
    small: FloatArray
    """(m + 4, m + 1): the small quadratic program, see `direction`"""
    candidate: IntArray
    """(m,): the constraints that take part in a Newton step"""
    num_candidates: IntArray
    """(1,): how many these are; NO_SYSTEM if no system was built"""
    patience: IntArray
    """(1,): how many steps a new system is worth"""
    # Steps
    log_m: FloatArray
    """(num_states,): ln of the state masses"""
    log_m_trial: FloatArray
    theta_trial: FloatArray
    step_m: FloatArray
    step_v: FloatArray
    step_theta: FloatArray


def make_workspace(layout: Layout, num_constraints: int) -> Workspace:
    """Fresh buffers for problems of this shape."""
    sizes = np.array(layout.layer_sizes[:-1], dtype=np.int64)
    diagonal_start = np.concatenate(([0], np.cumsum(sizes**2))).astype(np.int64)
    coupled = sizes[:-1] * sizes[1:]
    coupling_start = np.concatenate(([0], np.cumsum(coupled), [coupled.sum()])).astype(np.int64)
    states, rows, triples, m = layout.num_states, layout.num_rows, layout.num_triples, num_constraints
    return Workspace(
        scaled=np.ones(states),
        p=np.ones(triples),
        bound=np.zeros(triples, dtype=np.int8),
        num_bound=np.zeros(rows, dtype=np.int64),
        log_ratio=np.zeros(triples),
        noted=np.zeros(triples, dtype=np.int8),
        least_base=np.ones(1),
        log_w=np.zeros(rows),
        factor=np.ones(rows),
        w=np.zeros(rows),
        masses=np.zeros(states),
        log_mass=np.zeros(layout.steps),
        outflow=np.zeros(states),
        inflow=np.zeros(states),
        gradient_v=np.zeros(states),
        gradient_theta=np.zeros(m),
        diagonal=np.zeros(int(diagonal_start[-1])),
        diagonal_start=diagonal_start,
        flow=np.zeros(int(coupling_start[-1])),
        coupling=np.zeros(int(coupling_start[-1])),
        coupling_start=coupling_start,
        border=np.zeros((m, states)),
        solved=np.zeros((m, states)),
        held=np.zeros(states),
        row_scratch=np.zeros(2 * int(np.diff(layout.row_start).max())),
        schur=np.zeros((m, m)),
        small=np.zeros((m + 4, m + 1)),
        candidate=np.zeros(m, dtype=np.int64),
        num_candidates=np.full(1, NO_SYSTEM, dtype=np.int64),
        patience=np.array([_patience(layout.layer_sizes, layout.num_triples, layout.num_rows)], dtype=np.int64),
        log_m=np.zeros(states),
        log_m_trial=np.zeros(states),
        theta_trial=np.zeros(m),
        step_m=np.zeros(states),
        step_v=np.zeros(states),
        step_theta=np.zeros(m),
    )


@lru_cache(maxsize=64)
def _patience(layer_sizes: tuple[int, ...], num_triples: int, num_rows: int) -> int:
    """How many steps with an old system take as long as a new system: some in wide layers with few transitions.

    In nanoseconds, roughly: 20 per triple, 40 per row and 1 per entry of a block, against 1/4 per multiplication.
    """
    sizes = np.array(layer_sizes[:-1], dtype=np.float64)
    ahead = np.append(sizes[1:], 0.0)
    step = 20.0 * num_triples + 40.0 * num_rows + np.sum(sizes**2 + sizes * ahead)
    return int(0.25 * np.sum(sizes**3 / 3.0 + sizes**2 * ahead + sizes * ahead**2 / 2.0) / step)


# The problem as people state it ---------------------------------------------------------------------------------------


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

    def kernel_arguments(self) -> tuple[LayoutArrays, KernelProblem]:
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
