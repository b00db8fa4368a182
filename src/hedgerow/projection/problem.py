"""Problem (PROJ), validated: project exp(log_base) in relative entropy onto the occupancies that are allowed.

min  sum q ln(q/qt) - q + qt     over q >= 0 with
     mass 1 in x_0, inflow = outflow in every inner state                    (a flow through the layers)
     lower w(x,a) <= q(x,a,x') <= upper w(x,a),   w(x,a) = sum_x' q(x,a,x')   (transitions within their boxes)
     sum_{x,a} costs_i(x,a) w(x,a) <= thresholds_i                           (constraints)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, within
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
