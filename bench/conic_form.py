"""The projection as a conic program, for solvers that are called directly: one sparsity pattern, data that changes.

With variables z = (q, w, u), (num_triples, num_rows, num_triples),

    min  -sum u - sum q        subject to  b - A z in {0} x R+ x exponential cones
         equations      sum_a w(x,a) - inflow(x) = [x = x_0],   w(x,a) - sum_x' q(x,a,x') = 0
         inequalities   q - hi w <= 0,   lo w - q <= 0,   C w <= alpha
         cones          u <= -q ln(q/base),  that is  q exp(u/q) <= base

w is a variable of its own although q determines it: a box constraint then has two entries instead of one per successor.
Rows with one successor need no box. With the base in the cones rather than in the objective (as -q ln base) an
interior-point method needs a third fewer steps. The objective differs from D(q || base) by the constant sum of base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem


@dataclass(frozen=True, eq=False)
class ConicForm:
    """The pattern of A in compressed columns, and where the data of a problem stands in it."""

    layout: Layout
    num_constraints: int
    num_equations: int
    num_inequalities: int
    boxed: IntArray
    """Triples of rows with more than one successor"""
    matrix: Any
    """A as scipy csc_array, with the data of no problem in particular"""
    order: IntArray
    """The position, in the list of entries, of each stored entry"""
    constants: FloatArray
    """The leading entries, the same for all problems; hi, lo and C follow"""
    base_place: int
    """Which of the three rows of a cone is the base weight"""

    @property
    def num_variables(self) -> int:
        return 2 * self.layout.num_triples + self.layout.num_rows

    def values(self, problem: ProjectionProblem) -> FloatArray:
        """The stored entries of A for this problem."""
        entries = [self.constants, -problem.upper[self.boxed], problem.lower[self.boxed], problem.costs.ravel()]
        return np.concatenate(entries)[self.order]

    def objective(self) -> FloatArray:
        """(num_variables,)"""
        n = self.layout.num_triples
        return np.concatenate([-np.ones(n), np.zeros(self.layout.num_rows), -np.ones(n)])

    def right_side(self, problem: ProjectionProblem) -> FloatArray:
        """b: 1 where mass enters, the thresholds, and the base weight of each cone."""
        b = np.zeros(self.matrix.shape[0])
        b[0] = 1.0
        cones = self.num_equations + self.num_inequalities
        b[cones - self.num_constraints : cones] = problem.thresholds
        b[cones + self.base_place :: 3] = np.exp(problem.log_base)
        return b


def conic_form(layout: Layout, num_constraints: int, cone_order: str = "uqb") -> ConicForm:
    """The form of all problems of this shape; `cone_order` is how the solver orders (u, q, base)."""
    from scipy import sparse

    n, rows, states, m = layout.num_triples, layout.num_rows, layout.num_decision_states, num_constraints
    triple, row = np.arange(n), layout.row_of_triple
    q, w, u = triple, n + np.arange(rows), n + rows + triple
    boxed = np.flatnonzero((np.diff(layout.row_start) > 1)[row])
    equations, boxes = states + rows, 2 * len(boxed)
    inner = np.flatnonzero(layout.successor < states)
    upper_rows = equations + np.arange(len(boxed))
    lower_rows = upper_rows + len(boxed)
    cones = equations + boxes + m + 3 * triple
    entries: list[tuple[IntArray, IntArray, float]] = [  # (row, column, constant)
        (np.arange(rows) // layout.num_actions, w, 1.0),
        (layout.successor[inner].astype(np.int64), q[inner], -1.0),
        (states + np.arange(rows), w, 1.0),
        (states + row, q, -1.0),
        (upper_rows, q[boxed], 1.0),
        (lower_rows, q[boxed], -1.0),
        (cones + cone_order.index("u"), u, -1.0),
        (cones + cone_order.index("q"), q, -1.0),
    ]
    data = [  # (row, column) of hi, lo and C
        (upper_rows, w[row[boxed]]),
        (lower_rows, w[row[boxed]]),
        (equations + boxes + np.repeat(np.arange(m), rows), np.tile(w, m)),
    ]
    places = [(i, j) for i, j, _ in entries] + data
    i, j = (np.concatenate([place[axis] for place in places]) for axis in (0, 1))
    numbers = sparse.coo_array((np.arange(len(i)), (i, j)), shape=(equations + boxes + m + 3 * n, 2 * n + rows)).tocsc()
    numbers.sort_indices()
    order = numbers.data.astype(np.int64)
    numbers.data = np.ones(len(order))
    constants = np.concatenate([np.full(len(columns), constant) for _, columns, constant in entries])
    return ConicForm(layout, m, equations, boxes + m, boxed, numbers, order, constants, cone_order.index("b"))
