"""The same optima for large worlds: mixtures of few deterministic policies instead of one program over all rows.

Every occupancy is a mixture of occupancies w_1, w_2, ... of deterministic policies. A small program (m + 1 rows) finds
the best mixture of those collected so far and its multipliers theta; backward induction on loss + theta^T G finds the
policy that would help most, and at the same time a bound on what is left to gain. The two meet after a few dozen rounds
when m is small, each of the cost of one pass through the triples: at 10^5 rows this takes a second where the program
over all rows takes minutes. (Dantzig and Wolfe's decomposition.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.planning.induction import backward_induction
from hedgerow.planning.linear_programs import TOL_SOLVER, NoSolution, Suggestion, largest_margin, least_loss

TOL_BOUND = 1e-11
"""Stop when the bound is this close, times 1 + L, but for what the solver's own tolerance may hide."""
TOL_SAME = 1e-12
"""A policy whose loss and costs are this close to those of another adds nothing to the mixture."""
MAX_ROUNDS = 500


class _Priced(NamedTuple):
    """The value of the best policy for some weights, and whether the mixture did not have it yet."""

    value: float
    new: bool


class _Mixture:
    """The policies collected so far: occupancies over rows, losses and costs, one column each. Grows in `price`."""

    def __init__(self, cmdp: CMDP, loss: FloatArray) -> None:
        self.cmdp, self.loss = cmdp, loss
        self.w: list[FloatArray] = []
        self.losses: list[float] = []
        self.costs: list[FloatArray] = []

    def price(self, weighted: FloatArray) -> _Priced:
        """Find the best policy for the loss `weighted` (rows,) and add it if it is new."""
        layout, P = self.cmdp.layout, self.cmdp.transitions
        best = backward_induction(layout, P, weighted)
        w = row_occupancy(layout, occupancy(layout, P, best.policy))
        loss, costs = float(self.loss @ w), self.cmdp.mean_costs @ w
        new = not any(
            abs(loss - other) <= TOL_SAME and np.all(np.abs(costs - others) <= TOL_SAME)
            for other, others in zip(self.losses, self.costs, strict=True)
        )
        if new:
            self.w.append(w)
            self.losses.append(loss)
            self.costs.append(costs)
        return _Priced(best.value, new)

    def least_loss(self, alpha: FloatArray) -> Suggestion | NoSolution:
        """The best mixture of the policies; y are their weights."""
        return least_loss(np.ones((1, len(self.w))), np.array(self.losses), np.column_stack(self.costs), alpha)

    def largest_margin(self, alpha: FloatArray) -> Suggestion:
        return largest_margin(np.ones((1, len(self.w))), np.column_stack(self.costs), alpha)

    def over_rows(self, answer: Suggestion) -> Suggestion:
        """The answer with the mixture's occupancy (rows,) in place of its weights."""
        mixed = np.zeros(self.cmdp.layout.num_rows)
        for j, weight in enumerate(answer.y):  # the newest policy may have come after the answer, without a weight
            mixed += weight * self.w[j]
        return answer._replace(y=mixed)


def largest_margin_by_columns(cmdp: CMDP) -> Suggestion:
    """As `largest_margin` over rows; needs m >= 1."""
    mixture = _Mixture(cmdp, np.zeros(cmdp.layout.num_rows))
    return mixture.over_rows(_collect_margin(mixture, cmdp.thresholds, enough=np.inf))


def least_loss_by_columns(cmdp: CMDP, loss: FloatArray, alpha: FloatArray) -> Suggestion | NoSolution:
    """As `least_loss` over rows."""
    mixture = _Mixture(cmdp, loss)
    mixture.price(loss)
    if cmdp.num_constraints:
        _collect_margin(mixture, alpha, enough=0.0)  # afterwards some mixture is feasible, if any is
    for _ in range(MAX_ROUNDS):
        answer = mixture.least_loss(alpha)
        if isinstance(answer, NoSolution):
            return answer
        best = mixture.price(loss + answer.theta @ cmdp.mean_costs)
        bound = best.value - float(answer.theta @ alpha)
        if not best.new or answer.value - bound <= _tolerance(cmdp, answer):
            return mixture.over_rows(answer)
    return NoSolution(f"the bounds did not meet in {MAX_ROUNDS} rounds")


def _collect_margin(mixture: _Mixture, alpha: FloatArray, enough: float) -> Suggestion:
    """Collect policies until their best mixture has the largest margin, or one of at least `enough`."""
    G = mixture.cmdp.mean_costs
    mixture.price(G.mean(axis=0))
    for _ in range(MAX_ROUNDS):
        answer = mixture.largest_margin(alpha)
        if answer.value >= enough:
            break
        theta = answer.theta / answer.theta.sum()
        best = mixture.price(theta @ G)
        bound = float(theta @ alpha) - best.value
        if not best.new or bound - answer.value <= _tolerance(mixture.cmdp, answer):
            break
    return answer


def _tolerance(cmdp: CMDP, answer: Suggestion) -> float:
    """Costs are only right to TOL_SOLVER, which theta multiplies: it is large where hardly any policy is feasible."""
    return TOL_BOUND * (1 + cmdp.layout.steps) + TOL_SOLVER * float(answer.theta.sum())
