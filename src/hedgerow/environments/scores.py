"""Exact scores (paper, section 2): with q_t the occupancy of the *mixture* of episode t under the true transitions,

    loss += l_t^T q_t   cost_i += g_i^T q_t   violation_i += [g_i^T q_t - alpha_i]^+   worst_i = max g_i^T q_t - alpha_i

never from sampled costs nor from the policy that a coin chose. A learner only has to report its mixture. Learners that
report it episode by episode and compiled loops use the same kernels, so both give the same bits.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.environments.play import WorldArrays
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture, Policy, UniformMixture


class Tallies(Record):
    """Counters of a run."""

    played: int
    """Episodes of this run"""
    next_mark: int
    """Which checkpoint comes next"""
    unsafe: int
    """Episodes whose mixture violated a constraint"""


class Scores(Bundle):
    """Running sums of a run; kernels modify them."""

    tallies: Tallies
    loss: FloatArray
    """(1,): sum_t l_t^T q_t"""
    costs: FloatArray
    """(m,): sum_t g_i^T q_t"""
    violation: FloatArray
    """(m,): sum_t [g_i^T q_t - alpha_i]^+"""
    worst: FloatArray
    """(m,): max_t g_i^T q_t - alpha_i"""
    excess: FloatArray
    """(m,): g_i^T q_t - alpha_i of the present episode"""
    losses: FloatArray
    """(num_rows,): sum_t l_t"""
    occupancy: FloatArray
    """(num_rows,): q_t of the present episode"""
    reach: FloatArray
    """(num_states,)"""


class Curves(Bundle):
    """The sums at the checkpoints, C of them."""

    marks: IntArray
    """(C,): the numbers of episodes after which curves are kept, ascending"""
    loss: FloatArray
    """(C,)"""
    unsafe: IntArray
    """(C,)"""
    costs: FloatArray
    """(C, m)"""
    violation: FloatArray
    """(C, m)"""
    worst: FloatArray
    """(C, m)"""
    excess: FloatArray
    """(C, m)"""
    losses: FloatArray
    """(C, num_rows)"""


def make_scores(layout: Layout, num_constraints: int) -> Scores:
    """Nothing played yet."""
    m, rows = num_constraints, layout.num_rows
    return Scores(
        tallies=Tallies(),
        loss=np.zeros(1),
        costs=np.zeros(m),
        violation=np.zeros(m),
        worst=np.full(m, -np.inf),
        excess=np.zeros(m),
        losses=np.zeros(rows),
        occupancy=np.zeros(rows),
        reach=np.zeros(layout.num_states),
    )


def make_curves(layout: Layout, num_constraints: int, marks: IntArray) -> Curves:
    count, m = len(marks), num_constraints
    return Curves(
        marks=marks.astype(np.int64),
        loss=np.zeros(count),
        unsafe=np.zeros(count, dtype=np.int64),
        costs=np.zeros((count, m)),
        violation=np.zeros((count, m)),
        worst=np.zeros((count, m)),
        excess=np.zeros((count, m)),
        losses=np.zeros((count, layout.num_rows)),
    )


class Occupancies:
    """q^{P,pi} (num_rows,) of policies and mixtures in one world.

    Policies are frozen and equal to themselves only, so the occupancy of each is kept for as long as it lives: a
    baseline of thousands of policies costs one pass, once. That is right for policies that nobody can change: those of
    our own learners, and the copies that a simulation makes of the others.
    """

    def __init__(self, layout: Layout, transitions: FloatArray, index: LayoutArrays | None = None) -> None:
        self._index, self._transitions = index_of(layout) if index is None else index, transitions
        self._reach = np.zeros(layout.num_states)
        self._known: WeakKeyDictionary[Policy | Mixture, FloatArray] = WeakKeyDictionary()

    def of(self, plan: Policy | Mixture) -> FloatArray:
        """The occupancy of a policy, or the mixture of those of the parts."""
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = frozen(self._computed(plan))
        return known

    def _computed(self, plan: Policy | Mixture) -> FloatArray:
        if isinstance(plan, Policy):
            return self._forward(plan.probabilities)
        result = np.zeros(plan.layout.num_rows)
        if isinstance(plan, UniformMixture):
            for policy in plan.table:
                result += self._forward(policy) / len(plan.table)
            return result
        for weight, part in plan.parts:
            result += weight * self.of(part)
        return result

    def _forward(self, policy: FloatArray) -> FloatArray:
        occupancy = np.zeros(len(policy))
        # Copied, because kernels are compiled once, for writable arrays.
        forward(self._index, self._transitions, policy.copy(), self._reach, occupancy)
        return occupancy


@kernel
def forward(
    index: LayoutArrays, transitions: FloatArray, policy: FloatArray, reach: FloatArray, occupancy: FloatArray
) -> None:
    """q^{P,pi}(x,a) (num_rows,) for the transitions (num_triples,), into `occupancy`; `reach` is overwritten."""
    num_actions, row_start, successor = index.num_actions, index.row_start, index.successor
    reach[:] = 0.0
    reach[0] = 1.0
    for x in range(len(reach) - 1):
        for r in range(x * num_actions, (x + 1) * num_actions):
            mass = reach[x] * policy[r]
            occupancy[r] = mass
            if mass > 0.0:
                for j in range(row_start[r], row_start[r + 1]):
                    reach[successor[j]] += mass * transitions[j]


@kernel
def add_scores(world: WorldArrays, loss: FloatArray, scores: Scores) -> bool:
    """Add the episode whose q_t is in `occupancy`, with the loss (num_rows,); returns whether it is unsafe."""
    q, losses = scores.occupancy, scores.losses
    expected = 0.0
    for r in range(len(q)):
        expected += loss[r] * q[r]
        losses[r] += loss[r]
    scores.loss[0] += expected
    # By the true means and the announced mixture: regret and violation are expectations, no coin and no draw in them.
    unsafe = False
    for i in range(len(scores.costs)):
        cost = 0.0
        for r in range(len(q)):
            cost += world.mean_costs[r, i] * q[r]
        excess = cost - world.thresholds[i]
        scores.excess[i] = excess
        scores.costs[i] += cost
        # The positive part, episode by episode: a cheap one does not make up for a dear one.
        scores.violation[i] += max(excess, 0.0)
        scores.worst[i] = max(scores.worst[i], excess)
        unsafe |= excess > 0.0
    scores.tallies.played += 1
    if unsafe:
        scores.tallies.unsafe += 1
    return unsafe


@kernel
def keep_mark(scores: Scores, curves: Curves) -> int:
    """Copy the sums after an episode that is a checkpoint; returns which one, -1 if none."""
    tallies = scores.tallies
    mark = tallies.next_mark
    if mark >= len(curves.marks) or tallies.played != curves.marks[mark]:
        return -1
    curves.loss[mark] = scores.loss[0]
    curves.unsafe[mark] = tallies.unsafe
    copy_into(scores.costs, curves.costs[mark])
    copy_into(scores.violation, curves.violation[mark])
    copy_into(scores.worst, curves.worst[mark])
    copy_into(scores.excess, curves.excess[mark])
    copy_into(scores.losses, curves.losses[mark])
    tallies.next_mark += 1
    return mark
