"""What a learner has seen of a world: counts, radii, and the bounds that follow from them.

The kernels are those of `hedgerow.estimates`. The loss is one more column beside the m costs; the same code computes
its means and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import brief
from hedgerow.checks import FloatArray, IntArray, frozen, kind_of, num_episodes, positive_share
from hedgerow.errors import InvalidInput
from hedgerow.estimates.boxes import BoxRule, make_box_rule, make_boxes, refresh_all, refresh_rows
from hedgerow.estimates.counts import Counts, make_counts, record, record_costs
from hedgerow.estimates.frames import Estimates
from hedgerow.estimates.gaps import make_gaps, record_gaps, set_gaps
from hedgerow.estimates.radii import WITHOUT_HORIZON, Radii, transition_radius
from hedgerow.estimates.shares import refuse_empty_promise
from hedgerow.estimates.unknowns import make_unknowns
from hedgerow.learners.ledger import CLEAN_EVENT, Budget
from hedgerow.learners.observed_state import checked_state
from hedgerow.learners.protocol import in_own_terms
from hedgerow.model.cmdp import checked_transitions
from hedgerow.model.counting import UNKNOWN, decide
from hedgerow.model.episode import Episode
from hedgerow.model.impossible import known_costs, refuse_impossible
from hedgerow.model.index import index_of
from hedgerow.model.policy import Policy
from hedgerow.model.view import View


class Observed:
    """Counts and bounds of all rows and triples: the base of `Statistics`, which documents its arguments.

    Args:
        view: What is known of the world.
        episodes: The number of episodes that the bounds must hold for, or None.
        delta: How unsure the bounds may be, in (0, 1).
        radii: "tight", "paper", "efroni", "anytime" or "kt".
        confidence_scale: Factor on all radii, in (0, 1].
        transitions: (num_triples,) probabilities of next states, if they are known.

    Examples:
        >>> import hedgerow as hr
        >>> hr.Statistics(hr.catalogue.make("lower-bound-2").view(), episodes=100, delta=0.05)
        Statistics(Layout(layers=(1, 1), actions=2, full support), 0 of 100 episodes, radii='tight')
    """

    def __init__(
        self,
        view: View,
        episodes: int | None,
        delta: float,
        radii: str = "tight",
        *,
        confidence_scale: float = 1.0,
        transitions: ArrayLike | None = None,
    ) -> None:
        if not isinstance(view, View):
            raise InvalidInput(f"Statistics are built on a view, such as world.view(), not on {kind_of(view)}")
        self.view, self.layout = view, view.layout
        self.episodes = None if episodes is None else num_episodes(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        self.radii = Radii(radii, confidence_scale)
        if transitions is not None:
            self.view = view.knowing(transitions=checked_transitions(self.layout, transitions))
        if self.radii.kind != "efroni":  # which have another budget (`field/lp_promises.py`)
            known = self.view.knowledge.transitions
            certain = known is not None and not np.isnan(known).any() and self.radii.kind != "kt"
            refuse_empty_promise(self.delta, Budget(self.delta, certain).spent(CLEAN_EVENT))
        columns = view.num_constraints + 1  # the last one is the loss
        unknowns = make_unknowns(self.layout, view.num_constraints, self.view.knowledge, extra=1)
        rule = self.radii.rule(self.layout, columns, self.delta, self.episodes, unknowns)
        self._rule = make_box_rule(rule, unknowns, clip_costs=True)
        self._counts = make_counts(self.layout, columns)
        self.boxes = make_boxes(unknowns, clip_costs=True)
        """The bounds as kernels take them, kept up to date by `add`; the last column of costs is the loss."""
        self._index = index_of(self.layout)
        self._added = self._unknown = 0
        self._visits_then: IntArray | None = None

    # What was seen ---------------------------------------------------------------------------------------------------

    def add(self, episode: Episode, policy: Policy | None = None) -> None:
        """Count what is known of `episode`, and what is unknown of it.

        Args:
            episode: What happened.
            policy: The policy that was played, which says which pairs an episode that is not whole could have visited;
                None if nobody knows it: then it could have visited every pair that the layout can reach.

        Raises:
            InvalidInput: If the episode belongs to another world, if what the view knows rules it out, or if all
                `episodes` have been added.
        """
        if not isinstance(episode, Episode):
            raise InvalidInput(
                f"add takes an Episode, such as hr.Episode(view, rows, losses, costs), not {kind_of(episode)}"
            )
        episode = in_own_terms(self.view, episode)
        refuse_impossible(self.view, episode.rows, episode.triples, known_costs(episode))
        if self.episodes is not None and self._added >= self.episodes:
            raise InvalidInput(
                f"the radii were made for {self.episodes} episodes, and all of them were added; make Statistics "
                f"for more, or use radii={WITHOUT_HORIZON[0]!r} with episodes=None"
            )
        seen = np.column_stack((episode.costs, episode.losses))
        rows, triples = episode.rows.copy(), episode.triples.copy()  # kernels are compiled for writable arrays
        laws, counts = self._rule.laws, self._counts
        if episode.irregular is None:
            record(self._index, laws, counts, rows, triples)
            record_costs(laws, counts, rows, seen)
            refresh_rows(self._index, counts, self._rule, rows, self.boxes)
        else:
            self._add_broken(episode, policy, rows, triples, seen)
        self._added += 1

    def _add_broken(
        self, episode: Episode, policy: Policy | None, rows: IntArray, triples: IntArray, seen: FloatArray
    ) -> None:
        counting = decide(episode, independent_costs=self.view.knowledge.independent_costs)
        gaps = make_gaps(self.layout, self._counts.cost_sums.shape[1])
        set_gaps(gaps, episode, counting, None if policy is None else policy.probabilities)
        record_gaps(self._index, self._rule.laws, self._counts, rows, triples, seen, gaps)
        refresh_all(self._index, self._counts, self._rule, self.boxes)
        self._unknown += counting.word == UNKNOWN

    def doubled(self) -> bool:
        """Whether the visits of some pair have doubled since the last True, or gone from 0 to 1.

        The first answer is True. A run of T episodes has at most num_rows * (log2(T) + 1) + 1 answers True, so it is a
        good moment to plan anew.
        """
        visits, then = self._counts.num_visits, self._visits_then
        if then is not None and not np.any(visits >= np.maximum(2 * then, 1)):
            return False
        self._visits_then = visits.copy()
        return True

    @property
    def counts(self) -> Counts:
        """The counts as kernels take them; the last column of sums is the loss."""
        return self._counts

    @property
    def box_rule(self) -> BoxRule:
        """How bounds follow from counts, as kernels take it."""
        return self._rule

    def counted(self, episodes: int) -> None:
        """Note that compiled code has brought counts and bounds up to date.

        Args:
            episodes: The number of episodes that they hold now.
        """
        self._added = episodes

    @property
    def num_episodes(self) -> int:
        """The number of episodes added so far."""
        return self._added

    @property
    def num_unknown(self) -> int:
        """The number of episodes with unknown values, for which the bounds have room."""
        return self._unknown

    @property
    def visits(self) -> IntArray:
        """(num_rows,): how many episodes visited each row; N in the paper."""
        return frozen(self._counts.num_visits)

    @property
    def moves(self) -> IntArray:
        """(num_triples,): how many episodes went on to each successor; M in the paper."""
        return frozen(self._counts.num_moves)

    @property
    def cost_sums(self) -> FloatArray:
        """(num_rows, m): the sums of observed costs."""
        return frozen(self._counts.cost_sums[:, :-1])

    @property
    def loss_sums(self) -> FloatArray:
        """(num_rows,): the sums of observed losses."""
        return frozen(self._counts.cost_sums[:, -1])

    @property
    def mean_costs(self) -> FloatArray:
        """(num_rows, m): the mean observed costs, 0 in rows without visits."""
        return frozen(self._means()[:, :-1])

    @property
    def mean_loss(self) -> FloatArray:
        """(num_rows,): the mean observed losses, 0 in rows without visits."""
        return frozen(self._means()[:, -1])

    def _means(self) -> FloatArray:
        counts = self._counts
        means: FloatArray = counts.cost_sums / np.maximum(1, counts.num_costs[:, None] - counts.unknown_costs)
        return means

    @property
    def mean_transitions(self) -> FloatArray:
        """(num_triples,): the observed frequencies of next states, 0 in rows without visits."""
        return frozen(self._counts.num_moves / np.maximum(1, self._counts.num_visits)[self.layout.row_of_triple])

    # Radii and boxes -------------------------------------------------------------------------------------------------

    @property
    def cost_radius(self) -> FloatArray:
        """(num_rows,): how far each mean cost and the mean loss may be off; xi in the paper."""
        return frozen(self.boxes.xi)

    @property
    def transition_radius(self) -> FloatArray:
        """(num_triples,): how far each frequency may be off, at most 1; epsilon in the paper.

        It is 0 where the transitions are known or a row has one successor.
        """
        layout, visits = self.layout, self._counts.num_visits[self.layout.row_of_triple]
        radii = [
            min(1.0, transition_radius(self._rule.radii, float(p), int(n)))
            for p, n in zip(self.mean_transitions, visits, strict=True)
        ]
        known = self._rule.uncertain[layout.row_of_triple] == 0
        return frozen(np.where(known, 0.0, radii))

    @property
    def lower(self) -> FloatArray:
        """(num_triples,): lower bounds of the transition probabilities."""
        return frozen(self.boxes.lower)

    @property
    def upper(self) -> FloatArray:
        """(num_triples,): upper bounds of the transition probabilities."""
        return frozen(self.boxes.upper)

    @property
    def cost_lower(self) -> FloatArray:
        """(num_rows, m): lower bounds of the mean costs, in [0, 1]."""
        return frozen(self.boxes.cost_lower[:, :-1])

    @property
    def cost_upper(self) -> FloatArray:
        """(num_rows, m): upper bounds of the mean costs, in [0, 1]."""
        return frozen(self.boxes.cost_upper[:, :-1])

    @property
    def loss_lower(self) -> FloatArray:
        """(num_rows,): lower bounds of the mean loss, in [0, 1]."""
        return frozen(self.boxes.cost_lower[:, -1])

    @property
    def loss_upper(self) -> FloatArray:
        """(num_rows,): upper bounds of the mean loss, in [0, 1]."""
        return frozen(self.boxes.cost_upper[:, -1])

    @property
    def estimates(self) -> Estimates:
        """All of the above as labelled tables, the loss like one more cost: a snapshot.

        Returns:
            `Estimates` whose `rows` and `moves` are Arrow tables; what is added later does not change them.
        """
        return Estimates.of(self.view, self._added, self._counts, self.boxes, self._rule)

    # Files -----------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name: all that is needed to continue; `restored` takes them back."""
        counts = self._counts
        arrays: dict[str, NDArray[Any]] = {
            "radii": np.array(self.radii.kind),
            "settings": np.array([self.delta, self.radii.confidence_scale]),
            "episodes": np.array([self._added, -1 if self.episodes is None else self.episodes]),
            "unknown_episodes": np.array(self._unknown),
            "num_visits": counts.num_visits.copy(),
            "num_moves": counts.num_moves.copy(),
            "num_costs": counts.num_costs.copy(),
            "sums": counts.cost_sums.copy(),
            "unknown_moves": counts.unknown_moves.copy(),
            "unknown_costs": counts.unknown_costs.copy(),
            "visits_then": np.zeros(0, dtype=np.int64) if self._visits_then is None else self._visits_then.copy(),
        }
        if self.view.knowledge.transitions is not None:
            arrays["transitions"] = self.view.knowledge.transitions.copy()
        return arrays

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> Self:
        """Return the statistics on `view` whose `state()` was `state`.

        Raises:
            InvalidInput: If the arrays cannot be such a state.
        """
        if not isinstance(view, View):
            raise InvalidInput(f"Statistics are built on a view, such as world.view(), not on {kind_of(view)}")
        found = checked_state(view.layout, view.num_constraints + 1, state)
        if found.transitions is not None:
            view = view.knowing(transitions=found.transitions)
        seen = cls(view, found.episodes, found.delta, found.radii, confidence_scale=found.confidence_scale)
        seen._added, seen._unknown = found.added, found.unknown
        seen._counts.take(found.counts)
        seen._visits_then = found.visits_then
        refresh_all(seen._index, seen._counts, seen._rule, seen.boxes)
        return seen

    def __repr__(self) -> str:
        limit = "" if self.episodes is None else f" of {self.episodes}"
        parts = f"{self._added}{limit} episodes", f"radii={self.radii.kind!r}"
        return brief.line(type(self).__name__, repr(self.layout), *parts)
