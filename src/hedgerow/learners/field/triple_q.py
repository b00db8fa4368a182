"""The kernels of Triple-Q: updates along a path, the end of a frame, the greedy policy.

Q(x,a) <- (1 - lr) Q(x,a) + lr (r + Q(x',a') + b),   C_i likewise with the utility 1 - cost_i and its own bonus
lr = (chi + 1) / (chi + n),   a' the action that was taken next; the greedy one where an episode was cut short
end of a frame of F episodes:  Z_i <- [Z_i + L - alpha_i + epsilon - (sum of C_i(x_0,a_0)) / F]^+,  n <- 0,  Q up
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, IntArray, short_repr
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.learners.statistics import Statistics
from hedgerow.model.episode import Episode, decide
from hedgerow.model.kernel_layout import Index, index_of
from hedgerow.model.view import View


class QRule(Bundle):
    """The constants."""

    chi: float
    eta: float
    epsilon: float
    steps: float
    """L"""
    bonus: float
    """b = bonus sqrt(lr), or bonus / sqrt(n)"""
    published: bool
    """Whether the constants are those of the paper: b is the former, and reaching a bound is passing it"""
    c_share: float
    """The share of b that utilities get"""
    raised: float
    """What Q gains at the end of a frame"""
    top: float
    """Where Q is reset"""
    reward_scale: float


class QTables(Bundle):
    """What it learns."""

    q: FloatArray
    """Q (num_rows,)"""
    c: FloatArray
    """C (num_rows, m)"""
    visits: FloatArray
    """n (num_rows,): since the frame began"""
    queues: FloatArray
    """Z (m,)"""
    c_sums: FloatArray
    """(m,): sums of C(x_0, a_0) since the frame began"""
    wanted: FloatArray
    """L - alpha (m,)"""
    policy: FloatArray
    """(num_rows,)"""


@kernel
def learn_path(
    index: Index,
    rows: IntArray,
    triples: IntArray,
    losses: FloatArray,
    costs: FloatArray,
    rule: QRule,
    tables: QTables,
) -> None:
    """Update the rows (n,) of one episode, the first one first: each looks at the next one as it was before."""
    terminal = index.state_start[len(index.state_start) - 1] - 1
    for k in range(len(rows)):
        row, state, ahead = rows[k], index.successor[triples[k]], -1
        if k + 1 < len(rows):
            ahead = rows[k + 1]
        elif state != terminal:
            ahead = best_row(index, state, rule, tables)
        tables.visits[row] += 1.0
        lr = (rule.chi + 1.0) / (rule.chi + tables.visits[row])
        b = rule.bonus * (sqrt(lr) if rule.published else 1.0 / sqrt(tables.visits[row]))
        reward = rule.reward_scale * (1.0 - losses[k])
        q_next = tables.q[ahead] if ahead >= 0 else 0.0
        tables.q[row] += lr * (reward + q_next + b - tables.q[row])
        for i in range(len(tables.queues)):
            c_next = tables.c[ahead, i] if ahead >= 0 else 0.0
            tables.c[row, i] += lr * (1.0 - costs[k, i] + c_next + rule.c_share * b - tables.c[row, i])
    for i in range(len(tables.queues) if len(rows) > 0 else 0):
        tables.c_sums[i] += tables.c[rows[0], i]


@kernel
def end_frame(frame: float, rule: QRule, tables: QTables) -> None:
    """Update the queues, count anew, and raise Q, up to where it began."""
    for i in range(len(tables.queues)):
        missing = tables.wanted[i] + rule.epsilon - tables.c_sums[i] / frame
        tables.queues[i] = max(0.0, tables.queues[i] + missing)
        tables.c_sums[i] = 0.0
    for row in range(len(tables.q)):
        tables.visits[row] = 0.0
        tables.q[row] += rule.raised
        reset = _passes(tables.q[row], rule.top, rule)
        for i in range(len(tables.queues)):
            reset |= _passes(tables.c[row, i], rule.steps, rule)
        if reset:
            tables.q[row] = rule.reward_scale * rule.steps
            for i in range(len(tables.queues) if rule.published else 0):
                tables.c[row, i] = rule.steps


@kernel
def _passes(value: float, bound: float, rule: QRule) -> bool:
    return value > bound or (rule.published and value == bound)


@kernel
def best_row(index: Index, state: int, rule: QRule, tables: QTables) -> int:
    """The row of the action with the largest Q + sum_i (Z_i / eta) C_i; of equal ones the first."""
    best, top = -1, 0.0
    for row in range(state * index.num_actions, (state + 1) * index.num_actions):
        value = tables.q[row]
        for i in range(len(tables.queues)):
            value += tables.queues[i] / rule.eta * tables.c[row, i]
        if best < 0 or value > top:
            best, top = row, value
    return best


@kernel
def set_policy(index: Index, rows: IntArray, explored: float, rule: QRule, tables: QTables) -> None:
    """The policy in the states of the given rows: greedy, with the probability `explored` of a random action."""
    for row in rows:
        state = row // index.num_actions
        for r in range(state * index.num_actions, (state + 1) * index.num_actions):
            tables.policy[r] = explored / index.num_actions
        tables.policy[best_row(index, state, rule, tables)] += 1.0 - explored


# --------------------------------------------------------------------------------------------------------------------
# Triple-Q: two tables of Q values and a queue, no model of the world (Wei, Liu and Ying 2022).


CONSTANTS = ("source", "experiment")
REWARD_SCALE = 32.0
"""Rewards per step of the published experiment: 800 in 25 steps. Its other numbers belong to rewards of this size."""
RANDOM, FADING, FADES_EVERY = 0.03, 0.95, 20
"""Of the published experiment: 3 % random actions, and more at first, which fade by 5 % every 20 episodes."""


def known_steps(episode: Episode) -> int:
    """The first so many steps of an episode have moves and costs that count."""
    counting = decide(episode)
    known = min(counting.moves, counting.costs)
    if counting.gaps is not None:
        known = min(known, int(np.argmax(np.append(counting.gaps.any(axis=1), True))))
    return known


class TripleQ(FieldLearner):
    """Triple-Q: no model, but a Q table of the reward, one of the utility, and a queue that weighs them.

    In rewards, for which the source is written: reward 1 - loss, utility 1 - cost, of which an episode needs L - alpha.
    The learner plays the action of the largest Q + (Z / eta) C, where the queue Z grows while the utility C is too
    small. After every frame of T^0.6 episodes the queue is updated, and visits are counted anew. Cheap episodes make up
    for unsafe ones. Work per episode is proportional to L. With several constraints each has its own C and Z, which is
    our extension.

    constants="source" takes the constants of the paper as we recall them: chi = eta = T^0.2,
    iota = 128 ln(sqrt(2 S A L) T), epsilon = 8 sqrt(S A L^6 iota^3) / T^0.2, bonus sqrt(L^2 iota lr) / 4 for the rate
    lr = (chi + 1) / (chi + n), and Q + 2 L^3 sqrt(iota) / eta after each frame. For any T that can be run,
    epsilon and the bonus are far larger than L: the queue outgrows all rewards, and the action that is tried first
    looks best for a whole frame. Nothing is learnt then; the promise is one for very large T.

    constants="experiment" takes those of the published notebook, for rewards of up to 32 per step as there:
    eta = 10^-4 T^0.2 sqrt(S A L^4), epsilon = 0.5, bonus 0.2 sqrt(ln T / n) and a hundredth of it for utilities, Q + 3
    after each frame, 3 % random actions, and more at first. Nothing is proved for these.

    Args:
        constants: "source" or "experiment".

    Raises:
        InvalidInput: If an argument is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.TripleQ(world.view(), episodes=100)
        >>> float(hr.simulate(world, None, learner, progress=False)["queue"][0])
        0.0
    """

    kind: ClassVar[str] = "triple-q"
    title: ClassVar[str] = "Triple-Q"
    source: ClassVar[str] = "Wei, Liu and Ying 2022"
    recalled: ClassVar[str] = "all constants of constants='source', and the rates"
    inputs: ClassVar[Inputs] = Inputs(delta=False)
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "q", "c", "visits", "queues", "c_sums")

    def __init__(self, view: View, episodes: int, *, constants: str = "source") -> None:
        if constants not in CONSTANTS:
            raise InvalidInput(f"the constants are {short_repr(constants)}; choose 'source' or 'experiment'")
        super().__init__(view, episodes)
        self.constants, self.frame = constants, max(1, int(self.episodes**0.6))
        self._rule, layout, m = self._make_rule(), self.layout, self.view.num_constraints
        self.q: FloatArray = np.full(layout.num_rows, self._rule.reward_scale * layout.steps)
        self.c: FloatArray = np.full((layout.num_rows, m), float(layout.steps))
        self.visits: FloatArray = np.zeros(layout.num_rows)
        self.queues: FloatArray = np.zeros(m)
        self.c_sums: FloatArray = np.zeros(m)
        wanted = layout.steps - self.view.thresholds
        self._tables = QTables(self.q, self.c, self.visits, self.queues, self.c_sums, wanted, self.own_policy)
        self._index, self._all = index_of(layout), np.arange(0, layout.num_rows, layout.num_actions, dtype=np.int64)
        self._set_all()

    def _statistics(self) -> Statistics | None:
        return None

    def _make_rule(self) -> QRule:
        T, L = float(self.episodes), float(self.layout.steps)
        pairs, chi = max(self.layout.layer_sizes) * self.layout.num_actions, float(self.episodes) ** 0.2
        if self.constants == "source":
            iota = 128.0 * log(sqrt(2.0 * pairs * L) * T)
            return QRule(
                chi=chi, eta=chi, epsilon=8.0 * sqrt(pairs * L**6 * iota**3) / chi, steps=L,
                bonus=0.25 * L * sqrt(iota), published=True, c_share=1.0,
                raised=2.0 * L**3 * sqrt(iota) / chi, top=L, reward_scale=1.0,
            )  # fmt: skip
        return QRule(
            chi=chi, eta=1e-4 * chi * sqrt(pairs * L**4), epsilon=0.5, steps=L,
            bonus=0.2 * sqrt(log(T)), published=False, c_share=0.01,
            raised=3.0, top=REWARD_SCALE * L * 850.0 / 800.0, reward_scale=REWARD_SCALE,
        )  # fmt: skip

    def _explored(self) -> float:
        """The probability of a random action in the next episode."""
        if self.constants == "source":
            return 0.0
        fading = FADING ** ((self.episode + FADES_EVERY - 1) // FADES_EVERY)
        return fading + (1.0 - fading) * RANDOM

    def _set_all(self) -> None:
        set_policy(self._index, self._all, self._explored(), self._rule, self._tables)

    def _learn(self, episode: Episode) -> None:
        rows, triples = episode.rows.copy(), episode.triples.copy()
        known = known_steps(episode)
        seen = episode.losses[:known].copy(), episode.costs[:known].copy()
        learn_path(self._index, rows[:known], triples[:known], *seen, self._rule, self._tables)
        frame_ends = self.episode % self.frame == 0
        if frame_ends:
            end_frame(float(self.frame), self._rule, self._tables)
        if frame_ends or self.constants == "experiment":
            self._set_all()
        else:
            set_policy(self._index, rows, 0.0, self._rule, self._tables)

    def _notes(self) -> Mapping[str, float]:
        return {"queue": float(self.queues.sum())}

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if min(self.visits.min(), self.queues.min(initial=0.0)) < 0.0:
            raise InvalidInput("visits and queues cannot be negative")
        if np.any(self.visits != np.floor(self.visits)) or self.visits.max() > min(self.episode, self.frame):
            raise InvalidInput("visits are no counts of the episodes of a frame")
        largest = max(float(np.max(np.abs(array), initial=0.0)) for array in (self.q, self.c, self.queues, self.c_sums))
        if largest > LARGEST_COUNT:
            raise InvalidInput(f"{largest!r} is more than it can learn")

    def guarantees(self) -> Ledger:
        """Return what is promised: slow growth of the regret, and no violation in the sum over all episodes."""
        void = first_reason(
            "nothing is proved for the constants of the published experiment" * (self.constants != "source"),
            "it is proved for one constraint" * (self.view.num_constraints != 1),
        )
        sure, theorem = 0.0 if void else 1.0, "Wei, Liu and Ying 2022, as recalled"
        regret = "the expected regret grows as T^(4/5), up to logarithms, for T large enough"
        violation = "the sum of all excess costs is 0 or less for large T; cheap episodes make up for unsafe ones"
        return self.as_seen(
            Ledger(
                self.title,
                (
                    Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
                    Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
                ),
                ("some policy has a margin for its constraint",),
            )
        )
