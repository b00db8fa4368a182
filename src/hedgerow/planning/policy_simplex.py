"""The least losses under constraints for many losses at once: the simplex method over policies, in lock-step.

Every occupancy is a mixture of occupancies of deterministic policies. Over mixtures y of policies with losses l_j and
costs c_j the program has m + 1 rows,

    min  sum_j y_j l_j    with  sum_j y_j = 1,   sum_j y_j c_j + s = alpha,   y, s >= 0,

so that a basis is m + 1 policies or slacks. It stays feasible when only the loss changes: all losses begin with the
basis of the last one that was solved, and between the checkpoints of a run few policies of it change. Multipliers theta
come from the basis; backward induction on loss + theta^T G finds the policy that would help most, and with it a bound:
when the two meet, nothing is left to gain.

This is for small worlds, in plain numpy: all optima of a curve take less time than to load compiled code, which large
worlds use (`KnownPlanner`).

    >>> from hedgerow.model.costs import BernoulliCosts
    >>> from hedgerow.model.layout import Layout
    >>> cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    >>> simplex = PolicySimplex(cmdp, np.array([0.0, 1.0]))  # a feasible policy: the action that costs little
    >>> simplex.least_losses(np.array([[0.0, 1.0], [1.0, 0.0]])).values.tolist()
    [0.5, 0.0]
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP

TOL_BOUND = 1e-13
"""Stop when the bound is this close, times (1 + L)(1 + sum of theta)."""
TOL_PIVOT = 1e-11
"""Smaller entries of a direction are rounding and no reason to leave the basis."""
MAX_STEPS = 100


class Suggestions(NamedTuple):
    """The best mixtures of n losses; what is said of those that were not solved means nothing."""

    masses: FloatArray
    """(n, rows)"""
    theta: FloatArray
    """(n, m)"""
    values: FloatArray
    """(n,)"""
    solved: NDArray[np.bool_]
    """(n,): whether the bounds met"""


class DenseLayers:
    """Passes through the layers for many losses or policies at once: a product of matrices for each layer."""

    def __init__(self, cmdp: CMDP) -> None:
        layout = self.layout = cmdp.layout
        self._matrices = []
        for k in range(layout.steps):
            rows, triples = layout.rows(k), layout.triples(k)
            matrix = np.zeros((rows.stop - rows.start, layout.layer_sizes[k + 1]))
            into = layout.successor[triples] - layout.state_start[k + 1]
            matrix[layout.row_of_triple[triples] - rows.start, into] = cmdp.transitions[triples]
            self._matrices.append(matrix)

    def best_responses(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least values (n,) of losses (n, rows) without constraints, and policies (n, rows) that have them."""
        count, actions = len(losses), self.layout.num_actions
        ahead, choices = np.zeros((count, self.layout.layer_sizes[-1])), []
        for k in reversed(range(self.layout.steps)):
            Q = (losses[:, self.layout.rows(k)] + ahead @ self._matrices[k].T).reshape(count, -1, actions)
            choices.append(Q.argmin(axis=2))
            ahead = Q.min(axis=2)
        policies = np.concatenate(choices[::-1], axis=1)[:, :, None] == np.arange(actions)
        return ahead[:, 0], policies.reshape(count, -1).astype(np.float64)

    def masses(self, policies: FloatArray) -> FloatArray:
        """How often policies (n, rows) visit each row."""
        reach, found = np.ones((len(policies), 1)), np.empty_like(policies)
        for k in range(self.layout.steps):
            rows = self.layout.rows(k)
            found[:, rows] = np.repeat(reach, self.layout.num_actions, axis=1) * policies[:, rows]
            reach = found[:, rows] @ self._matrices[k]
        return found


class PolicySimplex:
    """The basis after the last loss; `least_losses` changes it."""

    def __init__(self, cmdp: CMDP, feasible: FloatArray) -> None:
        """`feasible` (rows,) is the occupancy of a policy that keeps all thresholds."""
        self.cmdp, self.layers = cmdp, DenseLayers(cmdp)
        self._right = np.concatenate([[1.0], cmdp.thresholds])[:, None]
        self._matrix = np.eye(cmdp.num_constraints + 1)
        self._w = np.zeros((cmdp.num_constraints + 1, len(feasible)))  # the occupancies of the basis; of a slack: 0
        self._w[0], self._matrix[:, 0] = feasible, self._columns(feasible[None])[0]

    def least_losses(self, losses: FloatArray) -> Suggestions:
        """The best mixtures for losses (n, rows)."""
        n, m = len(losses), self.cmdp.num_constraints
        found = Suggestions(np.zeros_like(losses), np.zeros((n, m)), np.zeros(n), np.zeros(n, dtype=bool))
        matrix, w = np.repeat(self._matrix[None], n, axis=0), np.repeat(self._w[None], n, axis=0)
        left = np.arange(n)
        with suppress(np.linalg.LinAlgError):  # a singular basis is no answer
            for _ in range(MAX_STEPS):
                left = self._step(left, losses, matrix, w, found)
                if not len(left):
                    break
        if found.solved[-1]:
            self._matrix, self._w = matrix[-1], w[-1]
        return found

    def _step(
        self, left: NDArray[np.int64], losses: FloatArray, matrix: FloatArray, w: FloatArray, found: Suggestions
    ) -> NDArray[np.int64]:
        """Change one policy or slack in the basis of each loss that is `left`; those that need another step."""
        basis, masses, loss, costs = matrix[left], w[left], losses[left], self.cmdp.mean_costs
        y = np.maximum(np.linalg.solve(basis, np.repeat(self._right[None], len(left), axis=0))[..., 0], 0.0)
        each = (masses @ loss[:, :, None])[..., 0]
        theta = -np.linalg.solve(basis.transpose(0, 2, 1), each[..., None])[:, 1:, 0]
        tol = TOL_BOUND * (1 + self.cmdp.layout.steps) * (1 + np.abs(theta).sum(axis=1))
        to_slack = np.min(theta, axis=1, initial=0.0) < -tol  # a constraint that need not bind
        theta_plus = np.maximum(theta, 0.0)
        least, policies = self.layers.best_responses(loss + theta_plus @ costs)
        values = (each * y).sum(axis=1)
        done = ~to_slack & (values - (least - theta_plus @ self.cmdp.thresholds) <= tol)
        ended = left[done]
        found.masses[ended] = (y[done][:, None, :] @ masses[done])[:, 0]
        found.theta[ended], found.values[ended], found.solved[ended] = theta_plus[done], values[done], True
        on = ~done
        left, basis, y, to_slack = left[on], basis[on], y[on], to_slack[on]
        entering = np.where(to_slack[:, None], 0.0, self.layers.masses(policies[on]))
        columns = self._columns(entering)
        if to_slack.any():
            columns[to_slack] = np.eye(len(self._right))[theta[on][to_slack].argmin(axis=1) + 1]
        direction = np.linalg.solve(basis, columns[..., None])[..., 0]
        ratios = np.where(direction > TOL_PIVOT, y / np.maximum(direction, TOL_PIVOT), np.inf)
        leaving = ratios.argmin(axis=1)
        bounded = np.isfinite(ratios[np.arange(len(left)), leaving])
        left, leaving = left[bounded], leaving[bounded]
        w[left, leaving], matrix[left, :, leaving] = entering[bounded], columns[bounded]
        return left

    def _columns(self, masses: FloatArray) -> FloatArray:
        return np.concatenate([np.ones((len(masses), 1)), masses @ self.cmdp.mean_costs.T], axis=1)
