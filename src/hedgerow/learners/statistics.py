"""What a learner has seen of a world: counts, radii, and the bounds that follow from them.

The kernels are those of `hedgerow.confidence`. The loss is one more column beside the m costs; the same code computes
its means and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, float_array, frozen, num_episodes, positive_share, type_name
from hedgerow.confidence.bounds import Columns, joint_costs_of_columns, load_columns, make_columns
from hedgerow.confidence.boxes import BoxRule, make_box_rule, make_boxes, refresh_all, refresh_rows
from hedgerow.confidence.budget import make_unknowns, refuse_empty_promise
from hedgerow.confidence.counts import Counts, make_counts, make_gaps, record, record_costs, record_gaps, set_gaps
from hedgerow.confidence.radii import WITHOUT_HORIZON, Radii, transition_radius
from hedgerow.confidence.snapshot import Estimates
from hedgerow.display import text
from hedgerow.errors import InfeasibleError, InvalidInput
from hedgerow.learners.api import in_own_terms
from hedgerow.learners.guarantees import CLEAN_EVENT, Budget
from hedgerow.learners.kernels import flat_arrays
from hedgerow.model.cmdp import checked_transitions
from hedgerow.model.episode import UNKNOWN, Episode, decide, known_costs, refuse_impossible
from hedgerow.model.identity import same_layout
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import View
from hedgerow.planning.planner import BoxPlan, BoxPlanner


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
        >>> hr.Statistics(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.05)
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
            raise InvalidInput(f"Statistics are built on a view, such as world.view(), not on {type_name(view)}")
        self.view, self.layout = view, view.layout
        self.episodes = None if episodes is None else num_episodes(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        self.radii = Radii(radii, confidence_scale)
        if transitions is not None:
            self.view = view.knowing(transitions=checked_transitions(self.layout, transitions))
        if self.radii.kind != "efroni":  # which have another budget (`learners/field/base.py`)
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
                f"add takes an Episode, such as hr.Episode(view, rows, losses, costs), not {type_name(episode)}"
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
        then = np.zeros(0, dtype=np.int64) if self._visits_then is None else self._visits_then
        arrays: dict[str, NDArray[Any]] = {
            "radii": np.array(self.radii.kind),
            "settings": np.array([self.delta, self.radii.confidence_scale]),
            "episodes": np.array([self._added, -1 if self.episodes is None else self.episodes]),
            "unknown_episodes": np.array(self._unknown),
            **{COUNTS[name]: array.copy() for name, array in flat_arrays(self._counts).items()},
            "visits_then": then.copy(),
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
            raise InvalidInput(f"Statistics are built on a view, such as world.view(), not on {type_name(view)}")
        given = {name: np.asarray(array) for name, array in dict(state).items()}
        if "transitions" in given:
            view = view.knowing(transitions=given.pop("transitions"))
        if set(given) != ENTRIES:
            raise _no_state(f"{sorted(set(given) ^ ENTRIES)[0]!r} is missing or unknown")
        delta, scale = float_array("the settings of the state", given["settings"], (2,)).tolist()
        added, limit = _whole("episodes", given["episodes"], (2,), least=-1).tolist()
        seen = cls(view, None if limit == -1 else limit, delta, str(given["radii"]), confidence_scale=scale)
        seen._added, seen._unknown = added, int(_whole("unknown_episodes", given["unknown_episodes"], ()))
        for name, own in flat_arrays(seen._counts).items():
            taken = float_array if own.dtype.kind == "f" else _whole
            own[...] = taken(COUNTS[name], given[COUNTS[name]], own.shape)
        _check_counts(seen.layout, seen._counts, added, seen._unknown)
        if given["visits_then"].size:
            seen._visits_then = _whole("visits_then", given["visits_then"], (seen.layout.num_rows,))
            if np.any(seen._visits_then > seen._counts.num_visits):
                raise _no_state("visits_then are more than the visits")
        refresh_all(seen._index, seen._counts, seen._rule, seen.boxes)
        return seen

    def __repr__(self) -> str:
        limit = "" if self.episodes is None else f" of {self.episodes}"
        parts = f"{self._added}{limit} episodes", f"radii={self.radii.kind!r}"
        return text.line(type(self).__name__, repr(self.layout), *parts)


# A state of `Observed` must be counts of episodes: each visits one row of the first layer and goes on layer by layer
# unless it was aborted, every visit leads somewhere, each cost and loss lies in [0, 1].


COUNTS = {name: "sums" if name == "cost_sums" else name for name in Counts.fields}
"""What a state calls the arrays of the counts"""
ENTRIES = {"radii", "settings", "episodes", "unknown_episodes", "visits_then", *COUNTS.values()}
TOL_SUM = 1e-9
"""Sums of numbers in [0, 1] may pass the number of their terms by rounding."""


def _check_counts(layout: Layout, counts: Counts, added: int, unknown: int) -> None:
    """Refuse counts that no `added` episodes have, of which `unknown` had unknown values."""
    visits, moves, lost, gone = counts.num_visits, counts.num_moves, counts.unknown_moves, counts.unknown_costs
    of_state = visits.reshape(-1, layout.num_actions).sum(axis=1)
    arrivals = np.bincount(layout.successor, weights=moves, minlength=layout.num_states)[1:-1]
    known = counts.num_costs[:, None] - gone
    for holds, otherwise in (
        (max(lost.max(), gone.max()) <= unknown <= added, "more is unknown than episodes can have left"),
        # Episodes of which something is unknown may miss the first layer.
        (added - unknown <= of_state[0] <= added, "the visits of the first layer are not as many as the episodes"),
        (np.array_equal(np.add.reduceat(moves, layout.row_start[:-1]), visits), "num_moves do not add up to visits"),
        (np.all(of_state[1:] <= arrivals), "some state has more visits than arrivals"),
        (np.all(known >= 0), "more costs are unknown than there are visits"),
        (np.all(counts.num_costs - gone.min(axis=1) <= visits + lost), "more costs were counted than there are visits"),
        (np.all((counts.cost_sums >= 0.0) & (counts.cost_sums <= known + TOL_SUM)), "sums are not those of the visits"),
    ):
        if not holds:
            raise _no_state(otherwise)


def _whole(name: str, array: NDArray[Any], shape: tuple[int, ...], least: int = 0) -> IntArray:
    if array.shape != shape or array.dtype.kind not in "iu" or (array.size and array.min() < least):
        raise InvalidInput(f"{name} of the state must be whole numbers >= {least} of shape {shape}")
    return array.astype(np.int64)


def _no_state(reason: str) -> InvalidInput:
    return InvalidInput(f"this is no state of Statistics: {reason}")


# --------------------------------------------------------------------------------------------------------------------
# Statistics of a learner written in Python: counts, radii, boxes, and plans made of them.
#
#     seen = Statistics(view, episodes, delta, radii="tight")
#     seen.add(episode, plan.policy)     # complete, aborted or overridden: what is unknown of it is counted as well
#     if seen.doubled():                 # the visits of some pair have doubled since the last plan
#         policy = seen.optimistic_plan()
#
# The radii are those of `hedgerow.confidence.radii`. The loss is estimated like one more cost, so delta is spent so:
#
#     delta     on the means of the m costs and of the loss, for all rows and visits: m + 1 in the place of m in xi
#     4 delta   on the transitions, for all triples and visits
#
# Hence, with probability 1 - 5 delta (the *clean event*), the transitions lie in their boxes and the mean costs between
# their bounds in every episode, whatever the losses are; and the mean loss lies between its bounds too if the losses
# are independent draws around a mean. Against an adversary the loss bounds promise nothing.
#
# Of an episode that was aborted, overridden or not measured, the bounds have room for what is unknown
# (`model/episode.py`): every pair that the policy could have visited has an unknown visit.


ROOM = 2e-9
"""Added to thresholds that are raised: at the least violation itself, rounding may leave no solution."""
TOL_MULTIPLIER = 1e-7
"""A multiplier below this is rounding: its constraint is not named as a cause of infeasibility."""


class Planned(NamedTuple):
    """What a plan of `Statistics` was computed to do, under the transitions that it chose from the boxes.

    Examples:
        >>> import hedgerow as hr
        >>> seen = hr.Statistics(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.05)
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
        parts = f"value={self.value:.6g}", f"costs={text.numbers(self.costs)}", f"raised={self.raised:.4g}"
        return text.line("Planned", *parts, repr(self.policy))


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
