"""The large dual of the projection, with a multiplier for every bound: |X| + 2n + m variables, smooth, box-constrained.

    E = v(x) - v(x') - theta^T c(x,a) - a+(x') + a-(x') + sum_y [ hi(y) a+(y) - lo(y) a-(y) ]
    max  - sum_k ln Z_k - theta^T alpha,    Z_k = sum over layer k of base e^E,    q = base e^E / Z_k,
    v(x_0) = v(x_L) = 0,  theta, a+, a- >= 0

The gradient in a variable is the residual of its constraint. The literature solves this form with L-BFGS-B; maximising
over a+ and a- row by row leads to the small dual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.projection.problem import ProjectionProblem


@dataclass(frozen=True, eq=False)
class LargeDual:
    """Value, gradient and primal point at y = (v, theta, a+, a-)."""

    problem: ProjectionProblem

    @property
    def num_variables(self) -> int:
        layout = self.problem.layout
        return layout.num_decision_states + self.problem.num_constraints + 2 * layout.num_triples

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """v(x_0) = 0, the other v free, everything else >= 0."""
        free = self.problem.layout.num_decision_states - 1
        return [(0.0, 0.0)] + [(None, None)] * free + [(0.0, None)] * (self.num_variables - free - 1)

    def occupancy(self, y: FloatArray) -> FloatArray:
        """(num_triples,): q at y."""
        return self._point(y)[0]

    def negative(self, y: FloatArray) -> tuple[float, FloatArray]:
        """Minus the value, up to a constant, and minus the gradient."""
        problem, layout = self.problem, self.problem.layout
        q, log_mass, theta = self._point(y)
        w = np.add.reduceat(q, layout.row_start[:-1])
        own = w[layout.row_of_triple]
        arriving = np.bincount(layout.successor, weights=q, minlength=layout.num_states)[:-1]
        arriving[0] = 1.0
        gradient = np.concatenate(
            [
                arriving - w.reshape(-1, layout.num_actions).sum(axis=1),
                problem.costs @ w - problem.thresholds,
                q - problem.upper * own,
                problem.lower * own - q,
            ]
        )
        return float(log_mass + theta @ problem.thresholds), -gradient

    def _point(self, y: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """(q, sum_k ln Z_k, theta)."""
        problem, layout = self.problem, self.problem.layout
        states, m, n = layout.num_decision_states, problem.num_constraints, layout.num_triples
        v = np.append(y[:states], 0.0)
        theta, a_plus, a_minus = y[states : states + m], y[states + m : states + m + n], y[states + m + n :]
        row = layout.row_of_triple
        lift = np.add.reduceat(problem.upper * a_plus - problem.lower * a_minus, layout.row_start[:-1])
        per_row = v[np.arange(layout.num_rows) // layout.num_actions] - theta @ problem.costs + lift
        log_q = problem.log_base + per_row[row] - v[layout.successor] - a_plus + a_minus
        layer_start = layout.row_start[layout.state_start[:-2] * layout.num_actions]
        sizes = np.diff(np.append(layer_start, n))
        largest = np.maximum.reduceat(log_q, layer_start)
        q = np.exp(log_q - np.repeat(largest, sizes))
        mass = np.add.reduceat(q, layer_start)
        return q / np.repeat(mass, sizes), float(np.sum(largest + np.log(mass))), theta
