"""The least loss under constraints for one loss after another: the simplex method over policies, from where it stood.

Every occupancy is a mixture of occupancies of deterministic policies. Over mixtures y of policies with losses l_j and
costs c_j the program has m + 1 rows,

    min  sum_j y_j l_j    with  sum_j y_j = 1,   sum_j y_j c_j + s = alpha,   y, s >= 0,

so that a basis is m + 1 policies or slacks. It stays feasible when only the loss changes, and between two checkpoints
of a run few policies of it change. Multipliers theta come from the basis; backward induction on loss + theta^T G finds
the policy that would help most, and with it a bound: when the two meet, nothing is left to gain.

This is for small worlds, in plain numpy: all optima of a curve take less time than to load compiled code, which large
worlds use (`known_plans`).

    >>> from hedgerow.model.costs import BernoulliCosts
    >>> from hedgerow.model.layout import Layout
    >>> cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    >>> simplex = PolicySimplex(cmdp, np.array([0.0, 1.0]))  # a feasible policy: the action that costs little
    >>> [simplex.least_loss(np.array(loss)).value for loss in ([0.0, 1.0], [1.0, 0.0])]
    [0.5, 0.0]
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.planning.induction import backward_induction
from hedgerow.planning.lp import Suggestion

TOL_BOUND = 1e-13
"""Stop when the bound is this close, times (1 + L)(1 + sum of theta)."""
TOL_PIVOT = 1e-11
"""Smaller entries of a direction are rounding and no reason to leave the basis."""
MAX_STEPS = 100


class PolicySimplex:
    """The basis after the last loss; `least_loss` changes it."""

    def __init__(self, cmdp: CMDP, feasible: FloatArray) -> None:
        """`feasible` (rows,) is the occupancy of a policy that keeps all thresholds."""
        m = cmdp.num_constraints
        self._cmdp = cmdp
        self._right = np.concatenate([[1.0], cmdp.thresholds])
        self._matrix = np.eye(m + 1)
        self._w = np.zeros((m + 1, len(feasible)))  # the occupancies of the basis; that of a slack is 0
        self._put(0, feasible, self._column(feasible))

    def least_loss(self, loss: FloatArray) -> Suggestion | None:
        """The best mixture for a loss (rows,); None if the bounds do not meet."""
        cmdp, alpha = self._cmdp, self._cmdp.thresholds
        try:
            for _ in range(MAX_STEPS):
                y = np.maximum(np.linalg.solve(self._matrix, self._right), 0.0)
                losses = self._w @ loss
                theta = -np.linalg.solve(self._matrix.T, losses)[1:]
                slack = int(np.argmin(theta)) if len(theta) else 0
                tol = TOL_BOUND * (1 + cmdp.layout.steps) * (1 + float(np.abs(theta).sum()))
                if len(theta) and theta[slack] < -tol:
                    w, column = np.zeros(len(loss)), np.eye(len(y))[slack + 1]
                else:
                    theta = np.maximum(theta, 0.0)
                    best = backward_induction(cmdp.layout, cmdp.transitions, loss + theta @ cmdp.mean_costs)
                    value = float(losses @ y)
                    if value - (best.value - float(theta @ alpha)) <= tol:
                        return Suggestion(y @ self._w, theta, value)
                    w = row_occupancy(cmdp.layout, occupancy(cmdp.layout, cmdp.transitions, best.policy))
                    column = self._column(w)
                direction = np.linalg.solve(self._matrix, column)
                ratios = np.where(direction > TOL_PIVOT, y / np.maximum(direction, TOL_PIVOT), np.inf)
                leaving = int(np.argmin(ratios))
                if not np.isfinite(ratios[leaving]):
                    return None
                self._put(leaving, w, column)
        except np.linalg.LinAlgError:
            pass
        return None

    def _column(self, w: FloatArray) -> FloatArray:
        return np.concatenate([[1.0], self._cmdp.mean_costs @ w])

    def _put(self, place: int, w: FloatArray, column: FloatArray) -> None:
        self._w[place], self._matrix[:, place] = w, column
