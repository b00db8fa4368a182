"""Triple-Q: two tables of Q values and a queue, no model of the world (Wei, Liu and Ying 2022).

Q(x,a) <- (1 - lr) Q(x,a) + lr (r + Q(x',a') + b),   C_i likewise with the utility 1 - cost_i and its own bonus
lr = (chi + 1) / (chi + n),   a' the action that was taken next; the greedy one where an episode was cut short
end of a frame of F episodes:  Z_i <- [Z_i + L - alpha_i + epsilon - (sum of C_i(x_0,a_0)) / F]^+,  n <- 0,  Q up
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.learners.field.base import FieldLearner, chosen
from hedgerow.learners.field.loop import FieldCore, FieldRun, close_episode, end_episode, play_episode
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.learners.kernels import Losses
from hedgerow.learners.statistics import Statistics
from hedgerow.model.episode import Episode, decide
from hedgerow.model.random_streams import Stream
from hedgerow.model.view import View

RANDOM, FADING, FADES_EVERY = 0.03, 0.95, 20
"""Of the published experiment: 3 % random actions, and more at first, which fade by 5 % every 20 episodes."""


class QRule(Bundle):
    """The constants."""

    frame: int
    """F"""
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

    field: FieldCore
    rule: QRule
    all_rows: IntArray
    """One row of each state"""
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
def run_block(tables: QTables, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """The loop of `loop.py`: how many of the block are done, and that the last of them is closed."""
    core, path = tables.field, run.path
    for i in range(first, len(given.pattern)):
        if not play_episode(core, run, given, i, coin):
            return i, True
        end_episode(core, run)
        learn_path(tables, path.rows, path.triples, path.losses, path.costs)
        plan_next(tables, path.rows)
        if close_episode(core, run):
            return i + 1, True
    return len(given.pattern), True


@kernel
def learn_path(tables: QTables, rows: IntArray, triples: IntArray, losses: FloatArray, costs: FloatArray) -> None:
    """Update the rows (n,) of one episode, the first one first: each looks at the next one as it was before."""
    index, rule = tables.field.index, tables.rule
    terminal = index.state_start[len(index.state_start) - 1] - 1
    for k in range(len(rows)):
        row, state, ahead = rows[k], index.successor[triples[k]], -1
        if k + 1 < len(rows):
            ahead = rows[k + 1]
        elif state != terminal:
            ahead = best_row(tables, state)
        tables.visits[row] += 1.0
        lr = (rule.chi + 1.0) / (rule.chi + tables.visits[row])
        b = rule.bonus * (sqrt(lr) if rule.published else 1.0 / sqrt(tables.visits[row]))
        reward = rule.reward_scale * (1.0 - losses[k])
        # The path is walked forwards, so the next row still has the value that it had before this episode.
        q_next = tables.q[ahead] if ahead >= 0 else 0.0
        tables.q[row] += lr * (reward + q_next + b - tables.q[row])
        for i in range(len(tables.queues)):
            c_next = tables.c[ahead, i] if ahead >= 0 else 0.0
            tables.c[row, i] += lr * (1.0 - costs[k, i] + c_next + rule.c_share * b - tables.c[row, i])
    for i in range(len(tables.queues) if len(rows) > 0 else 0):
        tables.c_sums[i] += tables.c[rows[0], i]


@kernel
def plan_next(tables: QTables, rows: IntArray) -> None:
    """The policy of the next episode, after one that visited `rows`; a frame that is over ends first."""
    frame_ends = tables.field.progress.episode % tables.rule.frame == 0
    if frame_ends:
        end_frame(tables)
    set_policy(tables, tables.all_rows if frame_ends or not tables.rule.published else rows)
    total = 0.0
    for i in range(len(tables.queues)):
        total += tables.queues[i]
    tables.field.notes[0] = total


@kernel
def end_frame(tables: QTables) -> None:
    """Update the queues, count anew, and raise Q, up to where it began."""
    rule = tables.rule
    for i in range(len(tables.queues)):
        missing = tables.wanted[i] + rule.epsilon - tables.c_sums[i] / float(rule.frame)
        tables.queues[i] = max(0.0, tables.queues[i] + missing)
        tables.c_sums[i] = 0.0
    for row in range(len(tables.q)):
        # New queues weigh C otherwise: what was learnt for the old ones is raised, so that it stays optimistic.
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
def best_row(tables: QTables, state: int) -> int:
    """The row of the action with the largest Q + sum_i (Z_i / eta) C_i; of equal ones the first."""
    num_actions, best, top = tables.field.index.num_actions, -1, 0.0
    for row in range(state * num_actions, (state + 1) * num_actions):
        value = tables.q[row]
        for i in range(len(tables.queues)):
            value += tables.queues[i] / tables.rule.eta * tables.c[row, i]
        if best < 0 or value > top:
            best, top = row, value
    return best


@kernel
def set_policy(tables: QTables, rows: IntArray) -> None:
    """The policy in the states of the given rows: greedy, but for a probability of a random action."""
    num_actions, explored = tables.field.index.num_actions, 0.0
    if not tables.rule.published:
        fades = (tables.field.progress.episode + FADES_EVERY - 1) // FADES_EVERY
        fading = FADING ** float(fades)
        explored = fading + (1.0 - fading) * RANDOM
    for row in rows:
        state = row // num_actions
        for r in range(state * num_actions, (state + 1) * num_actions):
            tables.policy[r] = explored / num_actions
        tables.policy[best_row(tables, state)] += 1.0 - explored


CONSTANTS = ("source", "experiment")
REWARD_SCALE = 32.0
"""Rewards per step of the published experiment: 800 in 25 steps. Its other numbers belong to rewards of this size."""


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

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.TripleQ(world.view(), episodes=100)
        >>> float(hr.simulate(world, learner, progress=False)["queue"][0])
        0.0
    """

    _loop = staticmethod(run_block)
    kind = "triple-q"
    title = "Triple-Q"
    source = "Wei, Liu and Ying 2022"
    recalled = "all constants of constants='source', and the rates"
    inputs = Inputs(delta=False)
    changing = ("own_policy", "q", "c", "visits", "queues", "c_sums")
    note_names = ("queue",)

    def __init__(self, view: View | Any, episodes: int, *, constants: str = "source") -> None:
        self.constants: str = chosen("the constants are", constants, CONSTANTS)
        super().__init__(view, episodes)
        self.frame = max(1, int(self.episodes**0.6))
        rule, layout, m = self._make_rule(), self.layout, self.view.num_constraints
        self.q: FloatArray = np.full(layout.num_rows, rule.reward_scale * layout.steps)
        self.c: FloatArray = np.full((layout.num_rows, m), float(layout.steps))
        self.visits: FloatArray = np.zeros(layout.num_rows)
        self.queues: FloatArray = np.zeros(m)
        self.c_sums: FloatArray = np.zeros(m)
        self.core = QTables(
            field=self.field, rule=rule, all_rows=np.arange(0, layout.num_rows, layout.num_actions, dtype=np.int64),
            q=self.q, c=self.c, visits=self.visits, queues=self.queues, c_sums=self.c_sums,
            wanted=layout.steps - self.view.thresholds, policy=self.own_policy,
        )  # fmt: skip
        set_policy(self.core, self.core.all_rows)

    def _statistics(self) -> Statistics | None:
        return None

    def _make_rule(self) -> QRule:
        T, L = float(self.episodes), float(self.layout.steps)
        pairs, chi = max(self.layout.layer_sizes) * self.layout.num_actions, float(self.episodes) ** 0.2
        if self.constants == "source":
            iota = 128.0 * log(sqrt(2.0 * pairs * L) * T)
            return QRule(
                frame=self.frame, chi=chi, eta=chi, epsilon=8.0 * sqrt(pairs * L**6 * iota**3) / chi, steps=L,
                bonus=0.25 * L * sqrt(iota), published=True, c_share=1.0,
                raised=2.0 * L**3 * sqrt(iota) / chi, top=L, reward_scale=1.0,
            )  # fmt: skip
        return QRule(
            frame=self.frame, chi=chi, eta=1e-4 * chi * sqrt(pairs * L**4), epsilon=0.5, steps=L,
            bonus=0.2 * sqrt(log(T)), published=False, c_share=0.01,
            raised=3.0, top=REWARD_SCALE * L * 850.0 / 800.0, reward_scale=REWARD_SCALE,
        )  # fmt: skip

    def _learn(self, episode: Episode) -> None:
        rows, triples = episode.rows.copy(), episode.triples.copy()
        known = known_steps(episode)
        learn_path(
            self.core, rows[:known], triples[:known], episode.losses[:known].copy(), episode.costs[:known].copy()
        )
        plan_next(self.core, rows)

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if min(self.visits.min(), self.queues.min(initial=0.0)) < 0.0:
            raise InvalidInput("visits and queues cannot be negative")
        if np.any(self.visits != np.floor(self.visits)) or self.visits.max() > min(self.episode, self.frame):
            raise InvalidInput("visits are no counts of the episodes of a frame")
        largest = max(float(np.max(np.abs(array), initial=0.0)) for array in (self.q, self.c, self.queues, self.c_sums))
        if largest > LARGEST_COUNT:
            raise InvalidInput(f"{largest!r} is more than it can learn")
        self.field.notes[0] = self.queues.sum()

    def guarantees(self) -> Ledger:
        """Return what is promised: slow growth of the regret, and no violation in the sum over all episodes."""
        void = first_reason(
            "nothing is proved for the constants of the published experiment" * (self.constants != "source"),
            "it is proved for one constraint" * (self.view.num_constraints != 1),
        )
        sure, theorem = 0.0 if void else 1.0, "Wei, Liu and Ying 2022, as recalled"
        regret = "the expected regret grows as T^(4/5), up to logarithms, for T large enough"
        violation = "the sum of all excess costs is 0 or less for large T; cheap episodes make up for unsafe ones"
        return self._ledger(
            Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
            Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
            assumptions=("some policy has a margin for its constraint",),
        )
