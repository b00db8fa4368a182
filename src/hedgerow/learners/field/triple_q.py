"""Triple-Q: two tables of Q values and a queue, no model of the world (Wei, Liu and Ying 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, shown
from hedgerow.errors import InvalidInput
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.field.q_tables import Rule, Tables, end_frame, learn_path, set_policy
from hedgerow.learners.ledger import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.told import Told
from hedgerow.model.counting import decide
from hedgerow.model.episode import Episode
from hedgerow.model.index import index_of
from hedgerow.model.view import View

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
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        constants: "source" or "experiment".

    Raises:
        InvalidInput: If an argument is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
        >>> learner = hr.field.TripleQ(world.view(), episodes=100)
        >>> float(hr.simulate(world, None, learner, progress=False)["queue"][0])
        0.0
    """

    kind: ClassVar[str] = "triple-q"
    title: ClassVar[str] = "Triple-Q"
    source: ClassVar[str] = "Wei, Liu and Ying 2022"
    recalled: ClassVar[str] = "all constants of constants='source', and the rates"
    told: ClassVar[Told] = Told(delta=False)
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "q", "c", "visits", "queues", "c_sums")

    def __init__(self, view: View, episodes: int, *, constants: str = "source") -> None:
        if constants not in CONSTANTS:
            raise InvalidInput(f"the constants are {shown(constants)}; choose 'source' or 'experiment'")
        super().__init__(view, episodes, constants=constants)
        self.constants, self.frame = constants, max(1, int(self.episodes**0.6))
        self._rule, layout, m = self._make_rule(), self.layout, self.view.num_constraints
        self.q: FloatArray = np.full(layout.num_rows, self._rule.reward_scale * layout.steps)
        self.c: FloatArray = np.full((layout.num_rows, m), float(layout.steps))
        self.visits: FloatArray = np.zeros(layout.num_rows)
        self.queues: FloatArray = np.zeros(m)
        self.c_sums: FloatArray = np.zeros(m)
        wanted = layout.steps - self.view.thresholds
        self._tables = Tables(self.q, self.c, self.visits, self.queues, self.c_sums, wanted, self.own_policy)
        self._index, self._all = index_of(layout), np.arange(0, layout.num_rows, layout.num_actions, dtype=np.int64)
        self._set_all()

    def _statistics(self) -> Statistics | None:
        return None

    def _make_rule(self) -> Rule:
        T, L = float(self.episodes), float(self.layout.steps)
        pairs, chi = max(self.layout.layer_sizes) * self.layout.num_actions, float(self.episodes) ** 0.2
        if self.constants == "source":
            iota = 128.0 * log(sqrt(2.0 * pairs * L) * T)
            return Rule(
                chi=chi, eta=chi, epsilon=8.0 * sqrt(pairs * L**6 * iota**3) / chi, steps=L,
                bonus=0.25 * L * sqrt(iota), published=True, c_share=1.0,
                raised=2.0 * L**3 * sqrt(iota) / chi, top=L, reward_scale=1.0,
            )  # fmt: skip
        return Rule(
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

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if min(self.visits.min(), self.queues.min(initial=0.0)) < 0.0:
            raise InvalidInput(f"this is no state of {self.title}: visits and queues cannot be negative")
        if np.any(self.visits != np.floor(self.visits)) or self.visits.max() > min(self.episode, self.frame):
            raise InvalidInput(f"this is no state of {self.title}: visits are no counts of the episodes of a frame")
        largest = max(float(np.max(np.abs(array), initial=0.0)) for array in (self.q, self.c, self.queues, self.c_sums))
        if largest > LARGEST_COUNT:
            raise InvalidInput(f"this is no state of {self.title}: {largest!r} is more than it can learn")

    def guarantees(self) -> Ledger:
        """Return what is promised: slow growth of the regret, and no violation in the sum over all episodes."""
        void = first_reason(
            "nothing is proved for the constants of the published experiment" * (self.constants != "source"),
            "it is proved for one constraint" * (self.view.num_constraints != 1),
        )
        sure, theorem = 0.0 if void else 1.0, "Wei, Liu and Ying 2022, as recalled"
        regret = "the expected regret grows as T^(4/5), up to logarithms, for T large enough"
        violation = "the sum of all excess costs is 0 or less for large T; cheap episodes make up for unsafe ones"
        return Ledger(
            self.title,
            (
                Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
                Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
            ),
            ("some policy has a margin for its constraint",),
        )
