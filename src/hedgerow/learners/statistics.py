"""Statistics of a learner written in Python: counts, radii, boxes, and plans made of them.

    seen = Statistics(view, episodes, delta, radii="tight")
    seen.add(episode, plan.policy)     # complete, aborted or overridden: what is unknown of it is counted as well
    if seen.doubled():                 # the visits of some pair have doubled since the last plan
        policy = seen.optimistic_plan()

The radii are those of `hedgerow.estimates.radii`. The loss is estimated like one more cost, so delta is spent so:

    delta     on the means of the m costs and of the loss, for all rows and visits: m + 1 in the place of m in xi
    4 delta   on the transitions, for all triples and visits

Hence, with probability 1 - 5 delta (the *clean event*), the transitions lie in their boxes and the mean costs between
their bounds in every episode, whatever the losses are; and the mean loss lies between its bounds too if the losses
are independent draws around a mean. Against an adversary the loss bounds promise nothing.

Of an episode that was aborted, overridden or not measured, the bounds have room for what is unknown
(`model/counting.py`): every pair that the policy could have visited has an unknown visit.
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
from hedgerow.model.identity import same_layout
from hedgerow.model.policy import Mixture, Policy
from hedgerow.planning.box_plans import BoxPlan, BoxPlanner

ROOM = 2e-9
"""Added to thresholds that are raised: at the least violation itself, rounding may leave no solution."""
TOL_MULTIPLIER = 1e-7
"""A multiplier below this is rounding: its constraint is not named as a cause of infeasibility."""


class Planned(NamedTuple):
    """What a plan of `Statistics` was computed to do, under the transitions that it chose from the boxes.

    Examples:
        >>> import hedgerow as hr
        >>> seen = hr.Statistics(hr.catalogue.make("lower-bound-2").view(), episodes=100, delta=0.05)
        >>> policy = seen.optimistic_plan()
        >>> seen.planned.policy is policy, seen.planned.raised
        (True, 0.0)
    """

    policy: Policy
    """The policy."""
    value: float
    """Its loss by the lower bounds of the mean loss. For an optimistic plan it is at most the optimum of the world,
    while the confidence sets hold the truth."""
    costs: FloatArray
    """(m,): its costs by the bounds that the plan used."""
    raised: float
    """How far all thresholds were raised because no policy could meet them; else 0."""

    def __repr__(self) -> str:
        parts = f"value={self.value:.6g}", f"costs={brief.numbers(self.costs)}", f"raised={self.raised:.4g}"
        return brief.line("Planned", *parts, repr(self.policy))


class Statistics(Observed):
    """Counts and confidence bounds for a learner of your own, and plans made of them.

    Add each episode that was played; read the bounds, or ask for a plan. With probability 1 - 5 delta all transitions
    lie between `lower` and `upper` and all mean costs between `cost_lower` and `cost_upper`, in every episode and
    whatever the losses are. The mean loss lies between its bounds as well if losses are independent draws around a
    mean; against an adversary its bounds promise nothing. The failure probability is delta for costs and loss, 4 delta
    for transitions.

    Of an episode that was aborted, overridden or not measured, the bounds have room for what is unknown. Pass the
    policy that was played to `add`: it says which pairs could have been visited.

    Args:
        view: What is known of the world: `world.view()`.
        episodes: The number of episodes that the bounds must hold for; None only for radii="anytime" and "kt".
        delta: How unsure the bounds may be, in (0, 1).
        radii: "tight" (Hoeffding and empirical Bernstein), "paper" (as printed by Stradi et al.), "efroni" (as printed
            by Efroni et al. 2020; never narrower than "tight"), "anytime" or "kt"; the last two need no number of
            episodes, and "kt" is the narrowest where means are small.
        confidence_scale: Factor on all radii, in (0, 1]. Below 1 nothing is promised.
        transitions: (num_triples,) probabilities of next states, if they are known; None estimates them.

    Raises:
        InvalidInput: If an argument is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> seen = hr.Statistics(view, episodes=1000, delta=0.05)
        >>> seen.add(hr.Episode(view, [("home", "go")], losses=[0.25], costs=[1.0]))
        >>> seen.visits.tolist(), seen.mean_costs.ravel().tolist()
        ([0, 1], [0.0, 1.0])
    """

    planned: Planned | None = None
    """What the last plan was computed to do; None before the first one."""
    _columns: Columns | None = None
    _planner: BoxPlanner | None = None

    def optimistic_plan(self) -> Policy:
        """Compute the policy of least loss that may be feasible, with optimistic bounds (OptCMDP).

        It minimises the lower bounds of the loss, over all transitions in the boxes, with the lower bounds of the costs
        below the thresholds. While the bounds hold, there is such a policy, and `planned.value` is at most the optimum
        of the world. Where there is none, all thresholds are raised by the least number that lets one in:
        `planned.raised`.
        """
        raised = 0.0
        answer = self._least_loss(self.cost_lower, raised)
        if not answer.feasible:
            raised = answer.violation + ROOM
            again = self._least_loss(self.cost_lower, raised)
            answer = again if again.feasible else answer  # else by rounding: what misses them least meets them
        return self._plan(answer, self.cost_lower, raised)

    def pessimistic_plan(self) -> Policy:
        """Compute a policy that keeps the thresholds for all transitions and costs within their bounds.

        It minimises the lower bounds of the loss with the upper bounds of the costs, to which it adds in advance what
        uncertain transitions may add to the costs that follow (DOPE, Bura et al. 2022). While the bounds hold it is
        safe, whatever the losses.

        Raises:
            InfeasibleError: If no policy is known to be safe yet; the message says by how much the thresholds are
                missed.
        """
        costs = self._pessimistic_costs()
        answer = self._least_loss(costs, 0.0)
        if not answer.feasible:
            raise self._infeasible(answer)
        return self._plan(answer, costs, 0.0)

    def robust_cost(self, policy: Policy | ArrayLike) -> FloatArray:
        """Compute the largest expected costs that a policy can have within the bounds.

        It is one backward pass per constraint, which is exact for a policy. For a mixture, take the weighted average of
        its policies, which is an upper bound.

        Args:
            policy: A `Policy`, an array (num_rows,), or a table (states, actions).

        Returns:
            (m,) costs.

        Raises:
            InvalidInput: If `policy` is a mixture, or belongs to another layout.
        """
        if isinstance(policy, Mixture):
            raise InvalidInput(
                "robust_cost takes a policy; for a mixture, add up weight * robust_cost(policy) over mixture.policies()"
            )
        own = isinstance(policy, Policy) and same_layout(policy.layout, self.layout)
        played = policy if isinstance(policy, Policy) and own else Policy(self.layout, policy)
        if self._columns is None:
            self._columns = make_columns(self.layout)
        bounds = np.zeros(self.view.num_constraints)
        load_columns(self._index, self.boxes.lower, self.boxes.upper, played.probabilities.copy(), self._columns)
        joint_costs_of_columns(self._index, self._columns, self.cost_upper.copy(), bounds)
        return frozen(bounds)

    def _pessimistic_costs(self) -> FloatArray:
        """(num_rows, m): UCB, and what the worst transitions could add to the costs of the layers that follow."""
        layout = self.layout
        width = 0.5 * np.add.reduceat(self.boxes.upper - self.boxes.lower, layout.row_start[:-1])
        layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
        extra = (layout.steps - layer - 1) * np.minimum(1.0, width)
        costs: FloatArray = self.boxes.cost_upper[:, :-1] + extra[:, None]
        return costs

    def _least_loss(self, costs: FloatArray, raised: float) -> BoxPlan:
        """The least LCB of the loss in the boxes, with `costs` (num_rows, m) within the raised thresholds."""
        if self._planner is None:
            self._planner = BoxPlanner(self.layout, self.view.num_constraints)
        lower, upper, thresholds = self.boxes.lower, self.boxes.upper, self.view.thresholds + raised
        return self._planner.plan(lower, upper, self.loss_lower, costs, thresholds)

    def _plan(self, answer: BoxPlan, costs: FloatArray, raised: float) -> Policy:
        policy = Policy.trusted(self.layout, answer.policy)
        self.planned = Planned(policy, answer.value, frozen(answer.masses @ costs), raised)
        return policy

    def _infeasible(self, nearest: BoxPlan) -> InfeasibleError:
        names = [self.view.constraint_names[i] for i in np.flatnonzero(nearest.multipliers > TOL_MULTIPLIER)]
        return InfeasibleError(
            f"no policy is known to be safe after {self._added} episodes: the bounds miss the thresholds by "
            f"{nearest.violation:.6g} ({', '.join(map(repr, names))}); play a policy that is known to be safe and try "
            "again when more has been seen",
            least_violation=nearest.violation,
            constraints=names,
            multipliers=nearest.multipliers.tolist(),
        )
