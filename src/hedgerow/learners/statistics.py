"""Statistics of a learner written in Python: counts, radii, boxes, and plans made of them.

    seen = Statistics(view, episodes, delta, radii="tight")
    seen.add(episode)                  # complete, aborted or overridden: each step that was taken is counted
    if seen.doubled():                 # the visits of some pair have doubled since the last plan
        policy = seen.optimistic_plan()

The radii are those of `hedgerow.estimates.radii`. The loss is estimated like one more cost, so delta is spent so:

    delta     on the means of the m costs and of the loss, for all rows and visits: m + 1 in the place of m in xi
    4 delta   on the transitions, for all triples and visits

Hence, with probability 1 - 5 delta (the *clean event*), the transitions lie in their boxes and the mean costs between
their bounds in every episode, whatever the losses are; and the mean loss lies between its bounds too if the losses
are independent draws around a mean. Against an adversary the loss bounds promise nothing.

An aborted episode counts with the steps that it has, the last one included. The bounds still hold, unless a step was
left out because of what it showed. Overridden episodes count as well: who chose an action does not change what it does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import brief
from hedgerow.checks import FloatArray, frozen
from hedgerow.errors import InfeasibleError, InvalidInput
from hedgerow.estimates.columns import Columns, load_columns, make_columns
from hedgerow.estimates.joint_cost import joint_costs_of_columns
from hedgerow.learners.observed import Observed
from hedgerow.model.occupancy import policy_of_masses
from hedgerow.model.policy import Mixture, Policy
from hedgerow.planning.box_programs import (
    BoxSolution,
    box_program,
    least_loss_in_boxes,
    least_violation_in_boxes,
)
from hedgerow.planning.linear_programs import NoSolution

ROOM = 2e-9
"""Added to thresholds that are raised: at the least violation itself, rounding may leave no solution."""
TOL_MULTIPLIER = 1e-7
"""A multiplier below this is rounding: its constraint is not named as a cause of infeasibility."""


class Planned(NamedTuple):
    """What a plan was computed to do, under the transitions that it chose from the boxes."""

    policy: Policy
    value: float
    """Its loss by the lower bounds of the loss: at most the optimum, on the clean event, for an optimistic plan"""
    costs: FloatArray
    """(m,): its costs by the bounds that the plan used"""
    raised: float
    """By how much all thresholds were raised, because no policy could meet them; else 0"""

    def __repr__(self) -> str:
        parts = f"value={self.value:.6g}", f"costs={brief.numbers(self.costs)}", f"raised={self.raised:.4g}"
        return brief.line("Planned", *parts, repr(self.policy))


class Statistics(Observed):
    """What a learner has seen of a world, and what follows from it; see the module's text.

    `episodes` is the number of episodes that the radii are made for; `anytime` radii also take None. A
    `confidence_scale` below 1 makes all radii smaller and voids every promise. `transitions` (num_triples,) are
    given if they are known.
    """

    planned: Planned | None = None
    """The last plan that was computed."""
    _columns: Columns | None = None

    def optimistic_plan(self) -> Policy:
        """The policy of min LCB loss with LCB costs <= thresholds over all occupancies in the boxes (OptCMDP).

        On the clean event there is one, and its value `planned.value` is at most the optimum of the world. Where
        there is none, all thresholds are raised by the least number that lets one in: `planned.raised`.
        """
        program, costs = box_program(self.layout, self._boxes.lower, self._boxes.upper), self.cost_lower
        alpha, raised = self.view.thresholds, 0.0
        answer = least_loss_in_boxes(program, self.loss_lower, costs, alpha)
        if isinstance(answer, NoSolution):
            nearest = least_violation_in_boxes(program, costs, alpha)
            raised = nearest.value + ROOM
            answer = least_loss_in_boxes(program, self.loss_lower, costs, alpha + raised)
            if isinstance(answer, NoSolution):  # by rounding: the least violating occupancy meets them
                answer = nearest
        return self._plan(answer, costs, raised)

    def pessimistic_plan(self) -> Policy:
        """A policy that keeps the thresholds for all transitions in the boxes and all costs within their bounds.

        It minimises the LCB loss with costs UCB + (L - k - 1) min(1, sum (hi - lo) / 2) in layer k, over all
        occupancies in the boxes: what the transitions may add to the costs that follow is paid for in advance
        (DOPE, Bura et al. 2022). On the clean event it is safe, whatever the losses. Before much is known no policy
        is: then `InfeasibleError` says by how much the thresholds are missed.
        """
        program, costs = box_program(self.layout, self._boxes.lower, self._boxes.upper), self._pessimistic_costs()
        answer = least_loss_in_boxes(program, self.loss_lower, costs, self.view.thresholds)
        if isinstance(answer, NoSolution):
            raise self._infeasible(least_violation_in_boxes(program, costs, self.view.thresholds))
        return self._plan(answer, costs, 0.0)

    def robust_cost(self, policy: Policy | ArrayLike) -> FloatArray:
        """(m,): the largest expected costs of a policy over all transitions in the boxes, with the UCB costs.

        One backward pass per constraint, which is exact for a Markov policy. A mixture has no such recursion: the
        weighted average of its policies' costs is an upper bound.
        """
        if isinstance(policy, Mixture):
            raise InvalidInput(
                "robust_cost takes a policy; for a mixture, add up weight * robust_cost(policy) over mixture.policies()"
            )
        played = policy if isinstance(policy, Policy) else Policy(self.layout, policy)
        if played.layout != self.layout:
            raise InvalidInput("the policy belongs to another layout")
        if self._columns is None:
            self._columns = make_columns(self.layout)
        bounds = np.zeros(self.view.num_constraints)
        load_columns(self._index, self._boxes.lower, self._boxes.upper, played.probabilities.copy(), self._columns)
        joint_costs_of_columns(self._index, self._columns, self.cost_upper.copy(), bounds)
        return frozen(bounds)

    def _pessimistic_costs(self) -> FloatArray:
        """(num_rows, m): UCB, and what the worst transitions could add to the costs of the layers that follow."""
        layout = self.layout
        width = 0.5 * np.add.reduceat(self._boxes.upper - self._boxes.lower, layout.row_start[:-1])
        layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
        extra = (layout.steps - layer - 1) * np.minimum(1.0, width)
        costs: FloatArray = self._boxes.cost_upper[:, :-1] + extra[:, None]
        return costs

    def _plan(self, answer: BoxSolution, costs: FloatArray, raised: float) -> Policy:
        policy = Policy.trusted(self.layout, policy_of_masses(self.layout, answer.w))
        self.planned = Planned(policy, float(self.loss_lower @ answer.w), frozen(answer.w @ costs), raised)
        return policy

    def _infeasible(self, nearest: BoxSolution) -> InfeasibleError:
        names = [self.view.constraint_names[i] for i in np.flatnonzero(nearest.multipliers > TOL_MULTIPLIER)]
        return InfeasibleError(
            f"no policy is known to be safe after {self._added} episodes: the bounds miss the thresholds by "
            f"{nearest.value:.6g} ({', '.join(map(repr, names))}); play a policy that is known to be safe and try "
            "again when more has been seen",
            least_violation=nearest.value,
            constraints=names,
            multipliers=nearest.multipliers.tolist(),
        )
