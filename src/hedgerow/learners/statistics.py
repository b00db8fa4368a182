"""What a learner has seen of a world: counts, radii, the bounds that follow from them, and plans made of these.

    seen = Statistics(view, episodes, delta, sets="sharpest")
    seen.add(episode, plan.policy)     # complete, aborted or overridden: what is unknown of it is counted as well
    if seen.doubled():                 # the visits of some pair have doubled since the last plan
        policy = seen.optimistic_plan()
    seen.bound(policy).values          # the least upper bounds of its expected costs that the sets allow

The sets are those of all learners (`confidence/sets.py`). The loss is one more column beside the m costs: xi has m + 1
in the place of m. With sets="sharpest" it has counts, and a share of the failure probability, of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray, float_array, frozen, num_episodes, positive_share, type_name
from hedgerow.confidence.anchored import Anchor, make_anchor
from hedgerow.confidence.bounds import Columns, joint_costs_of_columns, load_columns, make_columns
from hedgerow.confidence.boxes import refresh_all
from hedgerow.confidence.counts import Counts, make_gaps, record_gaps, set_gaps
from hedgerow.confidence.radii import refuse_empty_promise, transition_radius
from hedgerow.confidence.sets import (
    REASONS,
    SETS,
    SOURCE,
    bound_pool,
    check_boxes,
    check_sets,
    checked_word,
    choice_of,
    count_broken,
    count_log,
    count_seen,
    make_losses,
    make_sets,
    refresh_sets,
    refuse_radii,
    set_broken,
)
from hedgerow.confidence.snapshot import Estimates
from hedgerow.display import text
from hedgerow.errors import InfeasibleError, InvalidInput
from hedgerow.learners.api import DELTA, checked_baseline_costs, in_own_terms, safe_policy
from hedgerow.learners.guarantees import CLEAN_EVENT, Budget
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.logs import arrays_of, checked_digests, new_digests, no_logs, read_log
from hedgerow.model.cmdp import checked_transitions, view_of
from hedgerow.model.episode import UNKNOWN, Episode, decide, known_costs, refuse_impossible
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import View, same_layout
from hedgerow.planning.planner import BoxPlan, BoxPlanner

if TYPE_CHECKING:
    from hedgerow.importers.logs import Log

ROOM = 2e-9
"""Added to thresholds that are raised: at the least violation itself, rounding may leave no solution."""
TOL_MULTIPLIER = 1e-7
"""A multiplier below this is rounding: its constraint is not named as a cause of infeasibility."""
COUNTS = {name: "sums" if name == "cost_sums" else name for name in Counts.fields}
"""What a state calls the arrays of the counts"""
ENTRIES = {"radii", "settings", "episodes", "unknown_episodes", "visits_then", *COUNTS.values()}
WHICH = ("mean", "lower", "upper")
"""What `values` can be computed by"""
WORDS = {choice_of(word).radii.kind: word for word in (SOURCE, *SETS)}
"""The name of the sets by their radii, which a state names"""
SHARPEST = {"bounded": "bounded", "absorbed": "absorbed", "logged": "_logged"}
"""What the state of the sharpest sets has besides, and the attributes that it comes from"""
SIGNED = {"aggregate.generation"}
"""The arrays of a state that may be -1"""
TOL_SUM = 1e-9
"""Sums of numbers in [0, 1] may pass the number of their terms by rounding."""


class Planned(NamedTuple):
    """What a plan of `Statistics` was computed to do, under the transitions that it chose from the boxes.

    Examples:
        >>> import hedgerow as hr
        >>> seen = hr.learners.Statistics(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.05)
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


class Bound(NamedTuple):
    """The least upper bounds of the expected costs of a policy, or of K policies, that confidence sets allow.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> seen = hr.learners.Statistics(world, episodes=100, sets="sharpest")
        >>> seen.bound(hr.Policy.uniform(world))
        Bound(values=[1], by=['box'])
    """

    values: FloatArray
    """(m,), or (K, m): the bounds."""
    by: NDArray[np.str_]
    """(m,), or (K, m): what gives each: "box", the worst of all intervals; "ball", with the balls of wide rows;
    "certificate", the sums over the episodes that were played with a given policy; "anchored", the known costs of a
    baseline and the largest difference to it; "ceiling", the most that an episode can cost."""

    def __repr__(self) -> str:
        return text.line("Bound", f"values={text.numbers(self.values)}", f"by={self.by.tolist()}")


class Values(NamedTuple):
    """V and Q of a policy, as `Statistics.values` estimates or bounds them: what is still to come, to the end.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> seen = hr.learners.Statistics(world, episodes=100)
        >>> seen.values(hr.Policy.uniform(world), "upper").q_loss.tolist()
        [1.0, 1.0]
    """

    loss: FloatArray
    """(num_decision_states,): V of the loss."""
    costs: FloatArray
    """(num_decision_states, m): V of each cost."""
    q_loss: FloatArray
    """(num_rows,): Q of the loss."""
    q_costs: FloatArray
    """(num_rows, m): Q of each cost."""

    def __repr__(self) -> str:
        first = f"loss={self.loss[0]:.6g}", f"costs={text.numbers(self.costs[0])}"
        return text.line("Values", *first, f"from the first of {text.counted(len(self.loss), 'state')}")


class Statistics:
    """Counts and confidence bounds for a learner of your own, and plans made of them.

    Add each episode that was played; read the bounds, or ask for a plan. With probability 1 - 5 delta all transitions
    lie between `lower` and `upper` and all mean costs between `cost_lower` and `cost_upper`, in every episode and
    whatever the losses are. The mean loss lies between its bounds as well if losses are independent draws around a
    mean; against an adversary its bounds promise nothing. The failure probability is delta for costs and loss, 4 delta
    for transitions.

    Of an episode that was aborted, overridden or not measured, the bounds have room for what is unknown. Pass the
    policy that was played to `add`: it says which pairs could have been visited, and with sets="sharpest" its episodes
    count for the certificate.

    Args:
        view: What is known of the world: `world.view()`.
        episodes: The number of episodes that the bounds must hold for; None only for sets="sharpest".
        delta: How unsure the bounds may be, in (0, 1).
        sets: "sharp" (Hoeffding and empirical Bernstein), "paper" (as printed by Stradi et al.), "source" (as printed
            by Efroni et al. 2020; never narrower than "sharp"), or "sharpest", the sets of S-OPS: intervals that need
            no number of episodes, what pairs are known to share, balls for wide rows, and the certificate of the
            episodes that were played with a given policy.
        confidence_scale: Factor on all radii, in (0, 1]. Below 1 nothing is promised.
        bounded: Whether `bound` is to be as small as possible: then balls and certificate get a share of the failure
            probability of "sharpest". Else all of it goes to the bounds of single pairs.
        transitions: (num_triples,) probabilities of next states, if they are known; None estimates them.

    Raises:
        InvalidInput: If an argument is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> seen = hr.learners.Statistics(view, episodes=1000, delta=0.05)
        >>> seen.add(hr.Episode(view, [("home", "go")], losses=[0.25], costs=[1.0]))
        >>> seen.visits.tolist(), seen.mean_costs.ravel().tolist()
        ([0, 1], [0.0, 1.0])
    """

    planned: Planned | None = None
    """What the last plan was computed to do; None before the first one."""
    _columns: Columns | None = None
    _planner: BoxPlanner | None = None

    @refuse_radii
    def __init__(
        self, view: View | Any, episodes: int | None, delta: float = DELTA, sets: str = "sharp", *,
        confidence_scale: float = 1.0, bounded: bool = True, transitions: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        self.view = view = view_of(view)
        self.layout = view.layout
        self.episodes = None if episodes is None else num_episodes(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        self.sets = checked_word(sets)
        """The name of its confidence sets."""
        choice = choice_of(self.sets, confidence_scale)
        self.confidence_scale = choice.radii.confidence_scale
        if not isinstance(bounded, bool):
            raise InvalidInput(f"bounded is {bounded!r}; choose True or False")
        self.bounded = bounded or self.sets != "sharpest"  # others have nothing to share
        if transitions is not None:
            self.view = view.knowing(transitions=checked_transitions(self.layout, transitions))
        if self.sets != SOURCE:  # which have another budget (`learners/field/base.py`)
            known = self.view.knowledge.transitions
            certain = known is not None and not np.isnan(known).any() and self.sets != "sharpest"
            refuse_empty_promise(self.delta, Budget(self.delta, certain).spent(CLEAN_EVENT))
        self.layer = make_sets(self.view, choice, self.delta, self.episodes, mixes=bounded, loss=True)
        """The sets as kernels take them (`confidence/sets.py`)."""
        self.losses = make_losses(self.view, choice, self.delta, self.layer)
        """What was seen of the loss, as kernels take it."""
        self.counts, self.boxes, self.box_rule = self.layer.counts, self.layer.boxes, self.layer.rule.box
        self.absorbed = no_logs()
        """The digests of the logs that it has absorbed."""
        self._index = self.layer.index
        self._nobody = np.zeros(self.layout.num_rows)
        self._added = self._unknown = self._logged = 0
        self._visits_then: IntArray | None = None

    def add(self, episode: Episode, policy: Policy | None = None, *, own: bool | None = None) -> None:
        """Count what is known of `episode`, and what is unknown of it.

        With sets="sharpest" the episodes that were played with a `policy` count for the certificate, which bounds the
        costs of policies like those. It must have been fixed before the episode, and not have looked at its costs. Of a
        mixture, give the policy that was drawn. Whether an episode counts must not depend on what happened in it.

        Args:
            episode: What happened.
            policy: The policy that was played, which says which pairs an episode that is not whole could have visited;
                None if it is not known: then it could have visited every pair that the layout can reach.
            own: Whether the episode counts for the certificate; None if and only if there is a policy. False for a
                baseline, whose episodes would say little about other policies.

        Raises:
            InvalidInput: If the episode belongs to another world, if what the view knows rules it out, or if all
                `episodes` have been added.
        """
        if not isinstance(episode, Episode):
            raise InvalidInput(
                f"add takes an Episode, such as hr.Episode(view, rows, losses, costs), not {type_name(episode)}"
            )
        if own is not None and (not isinstance(own, bool) or (own and policy is None)):
            raise InvalidInput(f"own is {own!r}; choose True, together with the policy that was played, or False")
        episode = in_own_terms(self.view, episode)
        refuse_impossible(self.view, episode.rows, episode.triples, known_costs(episode))
        if self.episodes is not None and self._added >= self.episodes:
            raise InvalidInput(
                f"the radii were made for {self.episodes} episodes, and all of them were added; make Statistics "
                "for more, or use sets='sharpest' with episodes=None"
            )
        plays = None if policy is None else self._policy("add", policy).probabilities.copy()
        own = plays is not None if own is None else own
        seen = np.column_stack((episode.costs, episode.losses))
        rows, triples = episode.rows.copy(), episode.triples.copy()  # kernels are compiled for writable arrays
        if episode.irregular is None:
            played = self._nobody if plays is None else plays
            count_seen(self.layer, self.losses, rows, triples, seen, played, own)
        else:
            self._add_broken(episode, plays, rows, triples, seen, own)
        self._added += 1

    def _add_broken(
        self, episode: Episode, plays: FloatArray | None, rows: IntArray, triples: IntArray, seen: FloatArray, own: bool
    ) -> None:
        layer, losses = self.layer, self.losses
        counting = decide(episode, independent_costs=self.view.knowledge.independent_costs)
        set_broken(layer, episode, counting, plays)
        costs = np.ascontiguousarray(seen[:, : layer.counts.cost_sums.shape[1]])
        count_broken(layer, rows, triples, costs, own, counting.closes, counting.skipped)
        refresh_sets(layer)
        if losses.apart:
            gaps = make_gaps(self.layout, 1)
            set_gaps(gaps, episode, counting._replace(gaps=None), plays)
            gaps.extent.moves = gaps.extent.moves_lost = gaps.extent.last_lost = 0  # which the costs have counted
            loss = np.ascontiguousarray(seen[:, -1:])
            record_gaps(self._index, losses.rule.laws, losses.counts, rows, triples, loss, gaps)
            refresh_all(self._index, losses.counts, losses.rule, losses.boxes)
        self._unknown += counting.word == UNKNOWN

    def absorb(self, log: Log | Any, **how: Any) -> Log:
        """Count episodes that were played before, by any policy; only with sets="sharpest".

        What holds of a log that a learner absorbs holds here (`hedgerow.importers.logs`): nothing in it was selected by
        its outcome, and none of its episodes is counted twice. A log that was absorbed before is refused. It counts for
        the bounds of single pairs; the certificate counts the episodes of `add`.

        Args:
            log: A `Log`, or what `Log.read` takes.
            **how: Options of `Log.read`.

        Returns:
            The log, in the terms of the view.

        Raises:
            InvalidInput: If the log was absorbed before, if it is of another world, or if the sets hold for a fixed
                number of episodes only.
        """
        from hedgerow.importers.log_columns import decisions, summary

        if self.sets != "sharpest":
            raise InvalidInput(
                f"sets = {self.sets!r} hold for a fixed number of episodes, and a log would exceed it; use "
                "sets='sharpest'"
            )
        found = read_log(self.view, log, how)
        one = new_digests(self.absorbed, found)
        decided = decisions(found, bool(self.box_rule.laws.every_visit))
        arrays = arrays_of(found, decided)
        self.absorbed = np.concatenate((self.absorbed, one))
        count_log(self.layer, arrays)
        self._logged += len(found)
        self._unknown += summary(decided)[0]
        return found

    def doubled(self) -> bool:
        """Whether the visits of some pair have doubled since the last True, or gone from 0 to 1.

        The first answer is True. A run of T episodes has at most num_rows * (log2(T) + 1) + 1 answers True, so it is a
        good moment to plan anew.
        """
        visits, then = self.counts.num_visits, self._visits_then
        if then is not None and not np.any(visits >= np.maximum(2 * then, 1)):
            return False
        self._visits_then = visits.copy()
        return True

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
        """(num_rows,): how many episodes visited each row, or one that shares its law; N in the paper."""
        return frozen(self.counts.num_visits[self.box_rule.laws.moves_at])

    @property
    def moves(self) -> IntArray:
        """(num_triples,): how many episodes went on to each successor; M in the paper."""
        layout, at = self.layout, self.box_rule.laws.moves_at[self.layout.row_of_triple]
        first = layout.row_start[at] - layout.row_start[layout.row_of_triple]
        return frozen(self.counts.num_moves[first + np.arange(layout.num_triples)])

    @property
    def cost_sums(self) -> FloatArray:
        """(num_rows, m): the sums of observed costs."""
        return frozen(self.counts.cost_sums[self.box_rule.laws.costs_at, : self.view.num_constraints])

    @property
    def loss_sums(self) -> FloatArray:
        """(num_rows,): the sums of observed losses."""
        return frozen(self.losses.counts.cost_sums[:, self.losses.column])

    @property
    def mean_costs(self) -> FloatArray:
        """(num_rows, m): the mean observed costs, 0 in rows without visits."""
        counts, at, m = self.counts, self.box_rule.laws.costs_at, self.view.num_constraints
        return frozen(self.cost_sums / np.maximum(1, counts.num_costs[at, None] - counts.unknown_costs[at, :m]))

    @property
    def mean_loss(self) -> FloatArray:
        """(num_rows,): the mean observed losses, 0 in rows without visits."""
        counts, column = self.losses.counts, self.losses.column
        return frozen(self.loss_sums / np.maximum(1, counts.num_costs - counts.unknown_costs[:, column]))

    @property
    def mean_transitions(self) -> FloatArray:
        """(num_triples,): the observed frequencies of next states, 0 in rows without visits."""
        return frozen(self.moves / np.maximum(1, self.visits)[self.layout.row_of_triple])

    @property
    def cost_radius(self) -> FloatArray:
        """(num_rows,): how far each mean cost and the mean loss may be off; xi in the paper."""
        return frozen(np.maximum(self.boxes.xi, self.losses.boxes.xi))

    @property
    def transition_radius(self) -> FloatArray:
        """(num_triples,): how far each frequency may be off, at most 1; epsilon in the paper.

        It is 0 where the transitions are known or a row has one successor.
        """
        layout, visits = self.layout, self.visits[self.layout.row_of_triple]
        radii = [
            min(1.0, transition_radius(self.box_rule.radii, float(p), int(n)))
            for p, n in zip(self.mean_transitions, visits, strict=True)
        ]
        known = self.box_rule.uncertain[layout.row_of_triple] == 0
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
        return frozen(self.boxes.cost_lower[:, : self.view.num_constraints])

    @property
    def cost_upper(self) -> FloatArray:
        """(num_rows, m): upper bounds of the mean costs, in [0, 1]."""
        return frozen(self.boxes.cost_upper[:, : self.view.num_constraints])

    @property
    def loss_lower(self) -> FloatArray:
        """(num_rows,): lower bounds of the mean loss, in [0, 1]."""
        return frozen(self.losses.boxes.cost_lower[:, self.losses.column])

    @property
    def loss_upper(self) -> FloatArray:
        """(num_rows,): upper bounds of the mean loss, in [0, 1]."""
        return frozen(self.losses.boxes.cost_upper[:, self.losses.column])

    @property
    def estimates(self) -> Estimates:
        """All of the above as labelled tables: a snapshot.

        The loss is one more cost, but not with sets="sharpest", where it is counted apart.

        Returns:
            `Estimates` whose `rows` and `moves` are Arrow tables; what is added later does not change them.
        """
        return Estimates.of(self.view, self._added, self.counts, self.boxes, self.box_rule)

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
        played = self._policy("robust_cost", policy)
        if self._columns is None:
            self._columns = make_columns(self.layout)
        bounds = np.zeros(self.view.num_constraints)
        load_columns(self._index, self.boxes.lower, self.boxes.upper, played.probabilities.copy(), self._columns)
        joint_costs_of_columns(self._index, self._columns, self.cost_upper.copy(), bounds)
        return frozen(bounds)

    def bound(
        self, policy: Policy | ArrayLike, *, baseline: Any = None,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
    ) -> Bound:  # fmt: skip
        """Compute the least upper bounds of the expected costs of a policy, and what gives each of them.

        They are what the sets allow: `robust_cost`, or less where sets="sharpest" has something better
        (docs/aggregate.md), or where a baseline is given (docs/anchored.md). They hold for all policies and at all
        times at once, with the probability of the bounds of single pairs, if the baseline costs no more than is said.
        For a mixture, take the weighted average of its policies.

        Args:
            policy: A `Policy`, an array (num_rows,), or a table (states, actions).
            baseline: A policy whose expected costs are known to respect the thresholds, such as a `SafePolicy`.
            baseline_costs: (m,) upper bounds of its costs, or a mapping {constraint name: bound}; None takes
                `baseline.costs`.

        Returns:
            m bounds, each with its reason.

        Raises:
            InvalidInput: If `policy` is a mixture, or belongs to another layout, or if the baseline is not safe.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> seen = hr.learners.Statistics(view, episodes=1000)
            >>> sometimes, safe = hr.Policy(view, [[0.1, 0.9]]), hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), [0.25])
            >>> seen.bound(sometimes), seen.bound(sometimes, baseline=safe)
            (Bound(values=[1], by=['box']), Bound(values=[0.35], by=['anchored']))
        """
        values, by = self.bounds([policy], baseline=baseline, baseline_costs=baseline_costs)
        return Bound(values[0], by[0])

    def bounds(
        self, policies: Sequence[Policy | ArrayLike] | FloatArray, *, baseline: Any = None,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
    ) -> Bound:  # fmt: skip
        """Compute `bound` of many policies by one compiled call.

        Args:
            policies: K policies, or an array (K, num_rows) of their probabilities, whose rows are checked together.
            baseline: As for `bound`.
            baseline_costs: As for `bound`.

        Returns:
            (K, m) bounds, each with its reason.

        Raises:
            InvalidInput: If one of them is a mixture, or belongs to another layout, or if the baseline is not safe.
        """
        table = self._table(policies)
        if self._columns is None:
            self._columns = make_columns(self.layout)
        shape = len(table), self.view.num_constraints
        values, by, levels = np.zeros(shape), np.zeros(shape, dtype=np.int64), np.full(shape[1], -1.0)
        layer = self.layer
        if baseline is not None or baseline_costs is not None:
            layer = layer.replace(anchor=self._anchor(baseline, baseline_costs))
        bound_pool(layer, self._columns, table, levels, values, by)
        return Bound(frozen(values), np.array(REASONS)[by])

    def _anchor(self, baseline: Any, costs: ArrayLike | Mapping[str, float] | None) -> Anchor:
        """What bounds may start from, checked."""
        if baseline is None:
            raise InvalidInput("there are baseline_costs but no baseline: pass the policy that they belong to")
        policy, costs = safe_policy(baseline, costs, self.view)
        beta = checked_baseline_costs(self.view, costs, allow_no_margin=True)
        return make_anchor(self.layout, self._policy("baseline", policy).probabilities.copy(), beta.copy())

    def _table(self, policies: Sequence[Policy | ArrayLike] | FloatArray) -> FloatArray:
        """(K, num_rows): the probabilities of K policies, checked."""
        layout = self.layout
        if not isinstance(policies, np.ndarray):
            parts = [self._policy("bounds", policy).probabilities for policy in policies]
            return np.array(parts).reshape(len(parts), layout.num_rows)
        table = float_array("the policies", policies, (len(policies), layout.num_rows)).copy()
        sums = table.reshape(len(table), -1, layout.num_actions).sum(axis=2)
        wrong = (table < 0.0).any(axis=1) | (np.abs(sums - 1.0) > TOL_SUM).any(axis=1)
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            raise InvalidInput(f"policy {k} of the array has probabilities below 0, or that do not sum to 1")
        return table

    def values(self, policy: Policy | ArrayLike, which: str = "mean") -> Values:
        """Compute V and Q of a policy, for the loss and for each cost, by one backward pass.

            Q(x, a) = mean(x, a) + sum_x' P(x' | x, a) V(x'),    V(x) = sum_a pi(a | x) Q(x, a)

        While the bounds hold, the true values lie between those of "lower" and "upper". These are exact for a policy:
        each pair has the transitions of its box that are best or worst for what follows.

        Args:
            policy: A `Policy`, an array (num_rows,), or a table (states, actions).
            which: "mean" for the observed means and frequencies, which are 0 in pairs without visits; "lower" or
                "upper" for the least or the largest values within the bounds.

        Returns:
            V and Q, in losses and costs to go.

        Raises:
            InvalidInput: If `policy` is a mixture, or belongs to another layout, or if there is no such choice.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> seen = hr.learners.Statistics(view, episodes=1000)
            >>> seen.add(hr.Episode(view, [("home", "go")], losses=[0.25], costs=[1.0]))
            >>> seen.values(hr.Policy.of(view, "go")).loss.tolist()
            [0.25]
        """
        if which not in WHICH:
            raise InvalidInput(f"which is {which!r}; choose one of {', '.join(WHICH)}")
        layout, chances = self.layout, self._policy("values", policy).probabilities
        costs, loss = {
            "mean": (self.mean_costs, self.mean_loss),
            "lower": (self.cost_lower, self.loss_lower),
            "upper": (self.cost_upper, self.loss_upper),
        }[which]
        bounds = np.column_stack((costs, loss))
        exact = self.boxes.lower == self.boxes.upper  # known, or the only successor
        estimate = np.where(exact, self.boxes.lower, self.mean_transitions)
        q, v = np.zeros_like(bounds), np.zeros((layout.num_states, bounds.shape[1]))
        for row in reversed(range(layout.num_rows)):  # states are numbered layer after layer
            own = slice(layout.row_start[row], layout.row_start[row + 1])
            following = v[layout.successor[own]]
            if which == "mean":
                ahead = estimate[own] @ following
            else:
                ahead = _extreme(self.boxes.lower[own], self.boxes.upper[own], following, most=which == "upper")
            q[row] = bounds[row] + ahead
            v[row // layout.num_actions] += chances[row] * q[row]
        v = v[: layout.num_decision_states]
        return Values(frozen(v[:, -1]), frozen(v[:, :-1]), frozen(q[:, -1]), frozen(q[:, :-1]))

    def _policy(self, what: str, policy: Policy | ArrayLike) -> Policy:
        if isinstance(policy, Mixture):
            raise InvalidInput(
                f"{what} takes a policy; for a mixture, add up weight * {what}(policy) over mixture.policies()"
            )
        own = isinstance(policy, Policy) and same_layout(policy.layout, self.layout)
        return policy if isinstance(policy, Policy) and own else Policy(self.layout, policy)

    def _pessimistic_costs(self) -> FloatArray:
        """(num_rows, m): UCB, and what the worst transitions could add to the costs of the layers that follow."""
        layout = self.layout
        width = 0.5 * np.add.reduceat(self.boxes.upper - self.boxes.lower, layout.row_start[:-1])
        layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
        extra = (layout.steps - layer - 1) * np.minimum(1.0, width)
        costs: FloatArray = self.cost_upper + extra[:, None]
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

    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name: all that is needed to continue; `restored` takes them back."""
        then = np.zeros(0, dtype=np.int64) if self._visits_then is None else self._visits_then
        arrays: dict[str, NDArray[Any]] = {
            "radii": np.array(choice_of(self.sets).radii.kind),
            "settings": np.array([self.delta, self.confidence_scale]),
            "episodes": np.array([self._added, -1 if self.episodes is None else self.episodes]),
            "unknown_episodes": np.array(self._unknown),
            **{COUNTS[name]: array.copy() for name, array in flat_arrays(self.counts).items()},
            "visits_then": then.copy(),
            **{name: array.copy() for name, array in self._kept().items()},
        }
        if self.sets == "sharpest":
            arrays |= {name: np.array(getattr(self, own)) for name, own in SHARPEST.items()}
        if self.view.knowledge.transitions is not None:
            arrays["transitions"] = self.view.knowledge.transitions.copy()
        return arrays

    def _kept(self) -> dict[str, NDArray[Any]]:
        """The arrays that do not follow from the counts: sets that are older than these, and the losses apart."""
        if not self.losses.apart:
            return {}
        layer, losses = self.layer, self.losses
        parts = {"boxes": layer.boxes, "balls": layer.balls, "aggregate": layer.aggregate}
        parts |= {"losses.counts": losses.counts, "losses.boxes": losses.boxes}
        return {f"{part}.{name}": array for part, own in parts.items() for name, array in flat_arrays(own).items()}

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> Self:
        """Return the statistics on `view` whose `state()` was `state`.

        Raises:
            InvalidInput: If the arrays cannot be such a state.
        """
        view = view_of(view)
        given = {name: np.asarray(array) for name, array in dict(state).items()}
        if "transitions" in given:
            view = view.knowing(transitions=given.pop("transitions"))
        kind = str(given.pop("radii", ""))
        if kind not in WORDS:
            raise _no_state(f"its radii are {kind!r}")
        word = WORDS[kind]
        needed = (ENTRIES - {"radii"}) | (set(SHARPEST) if word == "sharpest" else set())
        if not needed <= set(given):
            raise _no_state(f"{sorted(needed - set(given))[0]!r} is missing")
        delta, scale = float_array("the settings of the state", given.pop("settings"), (2,)).tolist()
        added, limit = _whole("episodes", given.pop("episodes"), (2,), least=-1).tolist()
        bounded = word != "sharpest" or given.pop("bounded").tolist() is True
        seen = cls(view, None if limit == -1 else limit, delta, word, confidence_scale=scale, bounded=bounded)
        seen._added, seen._unknown = added, int(_whole("unknown_episodes", given.pop("unknown_episodes"), ()))
        if word == "sharpest":
            seen._logged = int(_whole("logged", given.pop("logged"), ()))
            seen.absorbed = checked_digests(given.pop("absorbed"), seen._logged)
        seen._take(given)
        return seen

    def _take(self, given: dict[str, NDArray[Any]]) -> None:
        """Take the arrays of a state, if they are sound."""
        then = given.pop("visits_then")
        own = {COUNTS[name]: array for name, array in flat_arrays(self.counts).items()} | self._kept()
        if set(given) != set(own):
            raise _no_state(f"{sorted(set(given) ^ set(own))[0]!r} is missing or unknown")
        for name, mine in own.items():
            if mine.dtype.kind == "f":
                mine[...] = float_array(name, given[name], mine.shape)
            else:
                mine[...] = _whole(name, given[name], mine.shape, least=-1 if name in SIGNED else 0)
        _check_counts(self.layout, self.counts, self.layer.rule.tied, self._added + self._logged, self._unknown)
        if self.losses.apart:
            check_sets(self.layout, self.layer)
            check_boxes(self.layout, self.losses.boxes)
        else:
            refresh_sets(self.layer)
        if then.size:
            self._visits_then = _whole("visits_then", then, (self.layout.num_rows,))
            if np.any(self._visits_then > self.counts.num_visits):
                raise _no_state("visits_then are more than the visits")

    def __repr__(self) -> str:
        limit = "" if self.episodes is None else f" of {self.episodes}"
        parts = f"{self._added}{limit} episodes", f"sets={self.sets!r}"
        return text.line(type(self).__name__, repr(self.layout), *parts)


def _extreme(lower: FloatArray, upper: FloatArray, values: FloatArray, *, most: bool) -> FloatArray:
    """(k,): the least or largest p @ values (s, k) over all distributions p between the bounds (s,), column by column.

    What the lower bounds leave of the mass 1 goes to the best successors first, as far as their upper bounds allow.
    """
    order = np.argsort(-values if most else values, axis=0, kind="stable")
    width = (upper - lower)[order]
    before = np.cumsum(width, axis=0) - width
    given = np.clip(1.0 - lower.sum() - before, 0.0, width)
    extreme: FloatArray = lower @ values + np.sum(given * np.take_along_axis(values, order, axis=0), axis=0)
    return extreme


def _check_counts(layout: Layout, counts: Counts, tied: bool, added: int, unknown: int) -> None:
    """Refuse counts that no `added` episodes have, of which `unknown` had unknown values.

    Each visits one row of the first layer and goes on layer by layer unless it was aborted, every visit leads
    somewhere, each cost and loss lies in [0, 1]. Where rows share laws, visits are those of the whole class.
    """
    visits, moves, lost, gone = counts.num_visits, counts.num_moves, counts.unknown_moves, counts.unknown_costs
    of_state = visits.reshape(-1, layout.num_actions).sum(axis=1)
    arrivals = np.bincount(layout.successor, weights=moves, minlength=layout.num_states)[1:-1]
    known = counts.num_costs[:, None] - gone
    steps = layout.steps if tied else 1
    for holds, otherwise in (
        (max(lost.max(), gone.max(initial=0)) <= steps * unknown <= steps * added, "more is unknown than can be"),
        # Episodes of which something is unknown may miss the first layer.
        (tied or added - unknown <= of_state[0] <= added, "the visits of the first layer are not as many as episodes"),
        (np.array_equal(np.add.reduceat(moves, layout.row_start[:-1]), visits), "num_moves do not add up to visits"),
        (tied or np.all(of_state[1:] <= arrivals), "some state has more visits than arrivals"),
        (visits.sum() <= layout.steps * added, "there are more visits than episodes can have made"),
        (np.all(known >= 0), "more costs are unknown than there are visits"),
        (tied or np.all(counts.num_costs - gone.min(axis=1, initial=2**53) <= visits + lost), "too many costs counted"),
        (np.all((counts.cost_sums >= 0.0) & (counts.cost_sums <= known + TOL_SUM)), "sums are not those of the visits"),
    ):
        if not holds:
            raise _no_state(otherwise)


def _whole(name: str, array: NDArray[Any], shape: tuple[int, ...], *, least: int = 0) -> IntArray:
    if array.shape != shape or array.dtype.kind not in "iu" or (array.size and array.min() < least):
        raise InvalidInput(f"{name} of the state must be whole numbers >= {least} of shape {shape}")
    return array.astype(np.int64)


def _no_state(reason: str) -> InvalidInput:
    return InvalidInput(f"this is no state of Statistics: {reason}")
