"""One layer of confidence sets for every learner: what was counted, what follows from it, and the bound of a policy.

`Sets` holds references to the counts, the boxes, the balls of wide rows and the aggregate certificate of one learner or
of `Statistics`, with the rules by which they follow from each other. After an episode

    count_path(sets, rows, triples, costs, own)     counts and, if the learner's policy played, the certificate
    update_sets(sets, rows)                         boxes, then the centres and balls that follow from them

and for a policy whose boxes are in `columns`

    bound_policy(sets, columns, policy, bounds)     U_i = min(box, ball, certificate, anchored): at least its cost

On the clean event each of the four bounds is at least the expected cost of the policy, so the least is: the box by
induction from the last layer (`bounds.py`), the ball because each row is in its ball as well (`balls.py`), the
certificate by Theorem B of docs/aggregate.md, the anchored one where the costs of a baseline are known
(docs/anchored.md). All but the first are expensive and skipped while they do not help.

`SETS` is the vocabulary of all learners: "paper", "sharp", "sharpest", and "source" for the radii of other people's
learners. Those, and `Statistics`, also estimate the mean loss (`LossSets`), which shares no law with costs.

Intervals of the kind kt split 5 delta among costs, boxes, balls and the aggregate certificate (`radii.py`). All other
radii have the paper's budgets, delta for costs and 4 delta for transitions, and neither balls nor a certificate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray, short_repr
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel, shared_kernel
from hedgerow.confidence.aggregate import (
    Aggregate,
    AggregateRule,
    AggregateScratch,
    aggregate_bounds,
    close_generations,
    count_own_episode,
    fill_occupancy,
    least_certificate,
    make_aggregate,
    make_aggregate_rule,
    make_aggregate_scratch,
    no_aggregate,
    set_cost_centre,
    set_transition_centre,
    start_if_due,
)
from hedgerow.confidence.anchored import Anchor, anchored_cost, load_anchored, no_anchor
from hedgerow.confidence.balls import (
    BallRule,
    Balls,
    follow_counts,
    joint_cost_with_balls,
    make_balls,
    no_balls,
    wide_rows,
)
from hedgerow.confidence.bounds import Columns, joint_costs_of_columns, load_columns, reach_of_states
from hedgerow.confidence.boxes import (
    Boxes,
    BoxRule,
    make_box_rule,
    make_boxes,
    refresh_all,
    refresh_grown,
    refresh_rows,
)
from hedgerow.confidence.counts import (
    Counts,
    Gaps,
    LogArrays,
    Unknowns,
    make_counts,
    make_gaps,
    make_unknowns,
    record,
    record_costs,
    record_gaps,
    record_log,
    set_gaps,
)
from hedgerow.confidence.radii import Radii, Shares, make_shares
from hedgerow.errors import InvalidInput
from hedgerow.model.episode import Counting, Episode, filled_costs
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

F = TypeVar("F", bound=Callable[..., None])

WORTH_OF_BALLS, WORTH_OF_SUMS, WORTH_OF_ANCHOR = 0.01, 0.05, 0.05
"""The share of the part of U above its threshold that an expensive bound has to remove. Measured: with .1 for the
balls, regret in `dope-media` after 10^4 episodes is 2 % larger.
"""
MOST_SKIPPED = 31
"""Evaluations of an expensive bound that are skipped, at most"""
WIDE = 6
"""A ball pays from this many successors on: narrower rows lose more by the smaller budget of their boxes."""
SETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"radii": "paper", "ties": False, "clip_costs": False, "aggregate": False, "ball_from": 0},
    "sharp": {"radii": "tight", "ties": False, "clip_costs": True, "aggregate": False, "ball_from": 0},
    "sharpest": {"radii": "kt", "ties": True, "clip_costs": True, "aggregate": True, "ball_from": WIDE},
}
"""The confidence sets by name: as printed; valid improvements for a known number of episodes; the best combination."""
SOURCE = "source"
"""The sets of a learner's own source: for those of Efroni et al., and where a source has other sets, their radii"""
FORMER = {"hedgerow": "sharp", "tight": "sharp", "efroni": SOURCE, "kt": "sharpest", "anytime": "sharpest"}
"""What sets were called when they were named after their radii"""
PAPER_SHARES = Shares(costs=1.0, transitions=4.0, aggregate=0.0, balls=0.0)


@dataclass(frozen=True)
class SetChoice:
    """Which confidence sets to use; `Settings` (`learners/ops/settings.py`) explains each switch."""

    radii: Radii
    ties: bool
    clip_costs: bool
    joint_cost: bool
    aggregate: bool
    ball_from: int


def checked_word(sets: Any, words: tuple[str, ...] = (SOURCE, *SETS)) -> str:
    """`sets`, if it is one of the words."""
    if not isinstance(sets, str) or sets not in words:
        former = FORMER.get(sets) if isinstance(sets, str) else None
        now = f"; what was radii={sets!r} is sets={former!r}" if former in words else ""
        raise InvalidInput(f"the sets are {short_repr(sets)}; choose one of {', '.join(words)}{now}")
    return sets


def refuse_radii(constructor: F) -> F:
    """Let a constructor that takes `sets` refuse `radii`, and say the new word."""

    @functools.wraps(constructor)
    def with_sets(*given: Any, **named: Any) -> None:
        if "radii" in named:
            word = named["radii"]
            now = FORMER.get(word, word) if isinstance(word, str) else "sharp"
            raise InvalidInput(f"radii = {short_repr(word)} is now sets = {now!r}: the argument is called sets")
        constructor(*given, **named)

    return cast(F, with_sets)


def choice_of(sets: str, confidence_scale: float = 1.0) -> SetChoice:
    """The sets of that name for those that estimate the loss as well: costs clipped, and the joint robust cost."""
    group = SETS[sets] if sets != SOURCE else {**SETS["sharp"], "radii": "efroni"}
    radii = Radii(group["radii"], confidence_scale)
    return SetChoice(radii, group["ties"], True, True, group["aggregate"], group["ball_from"])


def certifies(view: View, choice: SetChoice) -> bool:
    """Whether the aggregate certificate can be used: not where a cost may have to do with the next state."""
    return choice.aggregate and view.knowledge.costs_drawn != "unknown"


class FailureBudget(NamedTuple):
    """What has to be estimated, and how the confidence sets share the failure probability."""

    unknowns: Unknowns
    wide: BoolArray
    """(num_rows,): the rows that have a ball"""
    num_balls: int
    shares: Shares


def failure_budget(view: View, choice: SetChoice, *, mixes: bool, loss: bool = False) -> FailureBudget:
    """The budget on `view`; `mixes` says whether upper bounds of the costs of policies are needed, `loss` whether the
    mean loss is estimated too: as one more column of costs, or for intervals of the kind kt with a share of its own.
    """
    apart = choice.radii.kind == "kt"
    unknowns = make_unknowns(
        view.layout, view.num_constraints, view.knowledge, ties=choice.ties, extra=int(loss and not apart)
    )
    wide = wide_rows(unknowns, choice.ball_from if mixes else 0)
    num_balls = int(wide[unknowns.counted_rows].sum())
    shares = PAPER_SHARES
    if apart:
        certified = certifies(view, choice) and mixes
        shares = make_shares(unknowns, aggregate=certified, num_balls=num_balls, losses=loss)
    return FailureBudget(unknowns, wide, num_balls, shares)


class Patience(Record):
    """How long the expensive bounds are skipped after they did not help, see `bound_by_balls`."""

    balls_left: int
    """Episodes until the balls are evaluated again"""
    balls_skipped: int
    """Episodes for which they are skipped"""
    sums_left: int
    """Likewise for the aggregate certificate"""
    sums_skipped: int


class SetRule(Bundle):
    """What stays the same from the first episode to the last."""

    box: BoxRule
    ball: BallRule
    """The rule of the balls, where there are some"""
    aggregate: AggregateRule
    """The rule of the aggregate certificate, where there is one"""
    joint_cost: bool
    """Whether the box bound is the joint robust cost, or the paper's sum of UCB u"""
    tied: bool
    """Whether rows share laws; then an episode may change the boxes of rows that it did not visit"""


class SetScratch(Bundle):
    """Buffers."""

    all_rows: IntArray
    """(num_rows,): 0, 1, ..."""
    changed: IntArray
    """(2 num_rows,): the rows whose boxes the last update changed"""
    before: FloatArray
    """(m,): bounds before a certificate improved them"""
    by: IntArray
    """(m,): reasons of bounds that are not asked for"""
    reach: FloatArray
    """(num_states,): largest probability of each decision state under a policy; only the sum of UCB u needs it"""
    certificate: AggregateScratch
    """Buffers of the aggregate certificate"""
    gaps: Gaps
    """What is not known of an episode that is not whole"""
    filled: FloatArray
    """(L, m): its costs, 1 in the place of those that were not observed, in sum at most the ceilings"""


class Sets(Bundle):
    """All of it: rules, counts, and what follows from them."""

    index: LayoutArrays
    rule: SetRule
    counts: Counts
    boxes: Boxes
    balls: Balls
    """Empty where there are none"""
    aggregate: Aggregate
    """Empty where there is no certificate"""
    patience: Patience
    anchor: Anchor
    """The baseline whose costs are known, where bounds may start from it; else empty"""
    scratch: SetScratch


def make_sets(
    view: View, choice: SetChoice, delta: float, episodes: int | None, *, mixes: bool, bounded: bool | None = None,
    loss: bool = False, anchor: Anchor | None = None,
) -> Sets:  # fmt: skip
    """Nothing seen yet. `mixes` makes the sets share their budget with what bounds the costs of policies, balls and a
    certificate; `bounded` = False leaves these out all the same, because there is no policy to be bounded yet. `loss`:
    the mean loss is estimated, too (`make_losses`). Bounds may start from `anchor`, which has no share in the budget.
    """
    layout, m = view.layout, view.num_constraints
    bounded = mixes if bounded is None else bounded
    unknowns, wide, num_balls, shares = failure_budget(view, choice, mixes=mixes, loss=loss)
    columns = unknowns.unknown_costs.shape[1]
    radii = choice.radii.rule(layout, columns, delta, episodes, unknowns, shares)
    boxes = make_boxes(unknowns, clip_costs=choice.clip_costs)
    rule = SetRule(
        box=make_box_rule(radii, unknowns, choice.clip_costs, gradual=choice.radii.kind == "kt"),
        ball=BallRule(wide.astype(np.int8), log(max(1, num_balls)) - log(max(shares.balls, 1.0) * delta)),
        aggregate=make_aggregate_rule(
            layout,
            boxes,
            -log((shares.aggregate or 1.0) * delta),  # without a share there is no certificate either
            view.thresholds,
            ceilings=view.ceilings,
            watched=view.binding,
            per_step=view.knowledge.costs_drawn == "step",
        ),
        joint_cost=choice.joint_cost,
        tied=unknowns.tied,
    )
    return Sets(
        index=index_of(layout),
        rule=rule,
        counts=make_counts(layout, columns),
        boxes=boxes,
        balls=make_balls(wide, layout.num_triples) if bounded else no_balls(),
        aggregate=make_aggregate(layout, boxes) if bounded and certifies(view, choice) else no_aggregate(),
        patience=Patience(),
        anchor=no_anchor() if anchor is None else anchor,
        scratch=_make_scratch(layout, m, columns),
    )


def _make_scratch(layout: Layout, num_constraints: int, columns: int) -> SetScratch:
    return SetScratch(
        all_rows=np.arange(layout.num_rows, dtype=np.int64),
        changed=np.zeros(2 * layout.num_rows, dtype=np.int64),
        before=np.zeros(num_constraints),
        by=np.zeros(num_constraints, dtype=np.int64),
        reach=np.zeros(layout.num_states),
        certificate=make_aggregate_scratch(layout),
        gaps=make_gaps(layout, columns),
        filled=np.zeros((layout.steps, num_constraints)),
    )


class LossSets(Bundle):
    """What was seen of the loss, and the bounds of its mean: one column of counts and boxes."""

    counts: Counts
    boxes: Boxes
    rule: BoxRule
    column: int
    """Where the loss is"""
    apart: bool
    """Whether counts and boxes are its own; else they are those of the costs, and the loss is one more column"""


def make_losses(view: View, choice: SetChoice, delta: float, sets: Sets) -> LossSets:
    """The losses beside `sets`, which were made with `loss` = True.

    Rows that share the law of their costs have losses of their own: with ties they are counted apart.
    """
    layout, box = view.layout, sets.rule.box
    if choice.radii.kind != "kt":
        return LossSets(sets.counts, sets.boxes, box, view.num_constraints, apart=False)
    share = failure_budget(view, choice, mixes=False, loss=True).shares.losses
    radii = box.radii.replace(cost_log=log(layout.num_rows) - log(share * delta))
    unknowns = make_unknowns(layout, 1)
    rule = make_box_rule(radii, unknowns, clip_costs=True, gradual=True)
    rule = rule.replace(uncertain=np.zeros(layout.num_rows, dtype=np.int8))  # its counts hold no moves
    return LossSets(make_counts(layout, 1), make_boxes(unknowns, clip_costs=True), rule, 0, apart=True)


# Counting ------------------------------------------------------------------------------------------------------------


@kernel
def count_path(sets: Sets, rows: IntArray, triples: IntArray, costs: FloatArray, own: bool) -> None:
    """Count an episode: its rows and triples (L,), costs (L, m); `own` if the policy that is bounded played it.

    Whether an episode is an own one has to be known before it starts (docs/aggregate.md).
    """
    if own and len(sets.aggregate.generation) > 0:
        count_own_episode(sets.index, rows, triples, costs, sets.rule.aggregate, sets.aggregate)
    record(sets.index, sets.rule.box.laws, sets.counts, rows, triples)
    record_costs(sets.rule.box.laws, sets.counts, rows, costs)


@kernel
def count_broken(
    sets: Sets, rows: IntArray, triples: IntArray, costs: FloatArray, own: bool, closes: bool, skipped: bool
) -> None:
    """Count an episode that is not whole, of which `set_broken` has said what is unknown: the steps that were taken."""
    count_sums(sets, rows, triples, own, closes, skipped)
    record_gaps(sets.index, sets.rule.box.laws, sets.counts, rows, triples, costs, sets.scratch.gaps)


@kernel
def count_sums(sets: Sets, rows: IntArray, triples: IntArray, own: bool, closes: bool, skipped: bool) -> None:
    """What sums over whole episodes count of it: `closes` if they end with it, `skipped` if they leave it out."""
    if own and len(sets.aggregate.generation) > 0:
        if closes:
            close_generations(sets.aggregate)
        elif not skipped:
            paid = sets.scratch.filled
            count_own_episode(sets.index, rows, triples, paid, sets.rule.aggregate, sets.aggregate)


@shared_kernel(None)
def count_seen(
    sets: Sets, losses: LossSets, rows: IntArray, triples: IntArray, seen: FloatArray, plays: FloatArray, own: bool
) -> None:
    """Count an episode with costs and loss `seen` (L, m + 1), and bring the sets up to date.

    `plays` (num_rows,) is the policy that played; the certificate may start a generation with it.
    """
    count_path(sets, rows, triples, seen, own)
    if losses.apart:
        counts = losses.counts
        for k in range(len(rows)):
            counts.num_costs[rows[k]] += 1
            counts.cost_sums[rows[k], 0] += seen[k, seen.shape[1] - 1]
        refresh_grown(sets.index, counts, losses.rule, rows, losses.boxes, sets.scratch.changed)
    if own and len(sets.aggregate.generation) > 0:
        start_if_due(sets.index, plays, sets.rule.aggregate, sets.aggregate)
    update_sets(sets, rows)


@kernel
def count_log(sets: Sets, logged: LogArrays) -> None:
    """Count a log and bring all sets up to date; the certificate counts own episodes only."""
    record_log(sets.index, sets.rule.box.laws, sets.counts, logged, sets.scratch.gaps)
    refresh_sets(sets)


def set_broken(sets: Sets, episode: Episode, counting: Counting, policy: FloatArray | None) -> None:
    """Write what is not known of an episode, and what sums over whole episodes take as its costs."""
    set_gaps(sets.scratch.gaps, episode, counting, policy)
    filled, observed = filled_costs(episode, counting)
    if counting.planned and len(sets.aggregate.generation):  # which takes known means instead of costs
        known = sets.rule.aggregate.known_costs[episode.rows] == 1
        filled[known] = 0.0
        observed |= known
    sets.scratch.filled[:] = cut(filled, observed, sets.rule.aggregate.ceilings)


def cut(filled: FloatArray, observed: BoolArray, ceilings: FloatArray) -> FloatArray:
    """Lower costs (L, m) that were not observed, the last ones first, until no sum exceeds its ceiling (m,)."""
    for i, ceiling in enumerate(ceilings):
        excess = float(filled[:, i].sum()) - ceiling
        for k in np.flatnonzero(~observed[:, i])[::-1]:
            if excess <= 0.0:
                break
            less = min(excess, filled[k, i])
            filled[k, i] -= less
            excess -= less
    return filled


# What follows from the counts ----------------------------------------------------------------------------------------


@kernel
def update_sets(sets: Sets, rows: IntArray) -> int:
    """Bring the sets up to date after the counts of `rows` have changed.

    Returns how many rows are in `scratch.changed`: those whose boxes may have changed, some of them twice.
    """
    index, counts, rule, boxes, changed = sets.index, sets.counts, sets.rule.box, sets.boxes, sets.scratch.changed
    if rule.gradual:
        count = refresh_grown(index, counts, rule, rows, boxes, changed)
    else:
        refresh_rows(index, counts, rule, rows, boxes)
        count = len(sets.scratch.all_rows) if sets.rule.tied else len(rows)
        for k in range(count):
            changed[k] = k if sets.rule.tied else rows[k]
    follow_boxes(sets, changed[:count])
    return count


@kernel
def refresh_sets(sets: Sets) -> None:
    """Bring the sets of all rows up to date."""
    refresh_all(sets.index, sets.counts, sets.rule.box, sets.boxes)
    follow_boxes(sets, sets.scratch.all_rows)


@kernel
def follow_boxes(sets: Sets, rows: IntArray) -> None:
    """Centres of the certificate and balls of some rows whose boxes were just refreshed."""
    if len(sets.aggregate.generation) > 0:
        _set_centres(sets, rows)
    if len(sets.balls.radius) > 0:
        follow_counts(sets.index, sets.rule.box.laws, sets.counts, sets.rule.ball, rows, sets.balls)


@kernel
def _set_centres(sets: Sets, rows: IntArray) -> None:
    counts, boxes, rule, aggregate = sets.counts, sets.boxes, sets.rule.box, sets.aggregate
    for row in rows:
        if rule.uncertain[row]:
            place = rule.laws.moves_at[row]
            first = sets.index.row_start[place]
            set_transition_centre(sets.index, row, counts.num_moves, first, counts.num_visits[place], aggregate)
        place = rule.laws.costs_at[row]
        set_cost_centre(
            row, counts.cost_sums, place, counts.num_costs[place], boxes.cost_lower, boxes.cost_upper, aggregate
        )


# The bound of a policy -----------------------------------------------------------------------------------------------


@kernel
def bound_policy(sets: Sets, columns: Columns, policy: FloatArray, bounds: FloatArray) -> None:
    """U (m,) of a policy (num_rows,) whose boxes are in `columns`, into `bounds`.

    The certificate may start a generation with it: the policy is that of the next own episode.
    """
    bound_by_boxes(sets, columns, policy, bounds)
    bound_by_balls(sets, columns, bounds)
    bound_by_sums(sets, columns, policy, bounds)
    bound_by_anchor(sets, policy, bounds)


BOX, BALL, CERTIFICATE, ANCHORED, CEILING = 0, 1, 2, 3, 4
REASONS = ("box", "ball", "certificate", "anchored", "ceiling")
"""What may bound the cost of a policy"""


@kernel
def least_bounds(
    sets: Sets, columns: Columns, policy: FloatArray, levels: FloatArray, bounds: FloatArray, by: IntArray
) -> None:
    """The least of all bounds of a policy (num_rows,), into `bounds` (m,), and which of `REASONS` gave it into `by`.

    Bounds at or below their `levels` (m,) are not improved any further. Nothing of the state changes: no generation
    starts, nothing is skipped.
    """
    load_columns(sets.index, sets.boxes.lower, sets.boxes.upper, policy, columns)
    bound_by_boxes(sets, columns, policy, bounds)
    rule, reached = sets.rule.aggregate, False
    for i in range(len(bounds)):
        by[i] = BOX
        if bounds[i] > levels[i] and len(sets.balls.radius) > 0:
            near = joint_cost_with_balls(sets.index, columns, sets.rule.ball, sets.balls, sets.boxes.cost_upper, i)
            if near < bounds[i]:
                bounds[i], by[i] = near, BALL
    for i in rule.watched:
        if bounds[i] > levels[i] and len(sets.aggregate.generation) > 0:
            if not reached:
                fill_occupancy(sets.index, policy, sets.aggregate.p_hat, sets.scratch.certificate)
                reached = True
            least = least_certificate(
                sets.index, columns, sets.boxes, rule, sets.aggregate, sets.scratch.certificate, i, bounds[i]
            )
            if least < bounds[i]:
                bounds[i], by[i] = least, CERTIFICATE
    _lower_by_anchor(sets, policy, levels, bounds, by)
    for i in range(len(bounds)):
        if rule.ceilings[i] < bounds[i]:
            bounds[i], by[i] = rule.ceilings[i], CEILING


@kernel
def _lower_by_anchor(sets: Sets, policy: FloatArray, levels: FloatArray, bounds: FloatArray, by: IntArray) -> None:
    """Lower those `bounds` (m,) of a policy that are above their `levels` (m,) by the anchor, if there is one."""
    anchor, loaded = sets.anchor, False
    for i in sets.rule.aggregate.watched:
        if bounds[i] > levels[i] and len(anchor.policy) > 0:
            if not loaded:
                anchor.scratch.columns.kept[0] = 0  # boxes have changed since
                load_anchored(sets.index, sets.boxes, policy, anchor.policy, anchor.scratch)
                loaded = True
            cost = anchored_cost(sets.index, policy, anchor.policy, sets.boxes, anchor.costs[i], i, anchor.scratch)
            if cost < bounds[i]:
                bounds[i], by[i] = cost, ANCHORED


@kernel
def bound_pool(
    sets: Sets, columns: Columns, policies: FloatArray, levels: FloatArray, bounds: FloatArray, by: IntArray
) -> None:
    """`least_bounds` of policies (K, num_rows), into `bounds` and `by` (K, m)."""
    for k in range(len(policies)):
        least_bounds(sets, columns, policies[k], levels, bounds[k], by[k])


@kernel
def bound_by_boxes(sets: Sets, columns: Columns, policy: FloatArray, bounds: FloatArray) -> None:
    """The largest costs of the policy within the boxes: UCB^T u, or the joint robust cost."""
    upper, reach = sets.boxes.cost_upper, sets.scratch.reach
    if sets.rule.joint_cost:
        joint_costs_of_columns(sets.index, columns, upper, bounds)
        return
    num_states = len(reach) - 1
    reach_of_states(sets.index, columns, columns.states, num_states, reach)
    bounds[:] = 0.0
    for x in range(num_states):
        for r in range(x * sets.index.num_actions, (x + 1) * sets.index.num_actions):
            u = policy[r] * reach[x]
            for i in range(len(bounds)):
                bounds[i] += upper[r, i] * u


@kernel
def bound_by_balls(sets: Sets, columns: Columns, bounds: FloatArray) -> None:
    """Let the balls of wide rows, if there are any, improve on the `bounds` of a policy.

    That is expensive, and often of little use: after an evaluation that removed little of what lies above the
    thresholds, the next 1, 3, 7, ... are skipped. U stays valid without them.
    """
    alpha, patience = sets.rule.aggregate.levels, sets.patience
    if len(sets.balls.radius) == 0:
        return
    if patience.balls_left > 0:
        patience.balls_left -= 1
        return
    looked = helped = False
    for i in sets.rule.aggregate.watched:
        if bounds[i] > alpha[i]:  # else nothing is gained
            looked = True
            near = joint_cost_with_balls(sets.index, columns, sets.rule.ball, sets.balls, sets.boxes.cost_upper, i)
            helped |= bounds[i] - near > WORTH_OF_BALLS * (bounds[i] - alpha[i])
            bounds[i] = min(bounds[i], near)
    if looked:
        patience.balls_left = patience.balls_skipped = _to_skip(patience.balls_skipped, helped)


@kernel
def bound_by_sums(sets: Sets, columns: Columns, policy: FloatArray, bounds: FloatArray) -> None:
    """Let the aggregate certificate, if there is one, improve on the `bounds`, with the same patience."""
    rule, before, patience = sets.rule.aggregate, sets.scratch.before, sets.patience
    if len(sets.aggregate.generation) == 0:
        return
    if patience.sums_left > 0:
        patience.sums_left -= 1
        return
    copy_into(bounds, before)
    aggregate_bounds(sets.index, columns, policy, sets.boxes, rule, sets.aggregate, sets.scratch.certificate, bounds)
    looked = helped = False
    for i in rule.watched:
        above = before[i] - rule.levels[i]
        looked |= above > 0.0
        helped |= above > 0.0 and before[i] - bounds[i] > WORTH_OF_SUMS * above
    if looked:
        patience.sums_left = patience.sums_skipped = _to_skip(patience.sums_skipped, helped)


@kernel
def bound_by_anchor(sets: Sets, policy: FloatArray, bounds: FloatArray) -> None:
    """Let the known costs of the baseline, if there is an anchor, improve on the `bounds`, with the same patience."""
    rule, anchor, before = sets.rule.aggregate, sets.anchor, sets.scratch.before
    if len(anchor.policy) == 0:
        return
    if anchor.pause[0] > 0:
        anchor.pause[0] -= 1
        return
    copy_into(bounds, before)
    _lower_by_anchor(sets, policy, rule.levels, bounds, sets.scratch.by)
    looked = helped = False
    for i in rule.watched:
        above = before[i] - rule.levels[i]
        looked |= above > 0.0
        helped |= above > 0.0 and before[i] - bounds[i] > WORTH_OF_ANCHOR * above
    if looked:
        anchor.pause[0] = anchor.pause[1] = _to_skip(anchor.pause[1], helped)


@kernel
def _to_skip(skipped: int, helped: bool) -> int:
    """How many evaluations to skip after one that helped or did not, if `skipped` were skipped before it."""
    return 0 if helped else min(2 * skipped + 1, MOST_SKIPPED)


# What a file may hold ------------------------------------------------------------------------------------------------


TOLERANCE = 1e-9


def demand(condition: bool, otherwise: str) -> None:
    """Refuse the file in these words unless the condition holds."""
    if not condition:
        raise InvalidInput(otherwise)


def check_sets(layout: Layout, sets: Sets) -> None:
    """Check sets that were read from a file: kernels take distributions from boxes, balls and centres, and slots."""
    balls, aggregate, starts = sets.balls, sets.aggregate, layout.row_start[:-1]
    check_boxes(layout, sets.boxes)
    if len(balls.radius):
        moves = np.add.reduceat(balls.moves, starts)
        demand(np.array_equal(moves, balls.visits), "state.balls.moves do not add up to state.balls.visits")
    slots = len(aggregate.generation)
    if slots:
        turn, started = aggregate.numbers.turn, aggregate.numbers.started
        demand(turn < slots, f"state.aggregate.numbers: turn is {turn}; there are {slots} slots")
        demand(bool(np.all(aggregate.best < slots)), "state.aggregate.best names a slot that does not exist")
        demand(bool(np.all(aggregate.generation < started)), "state.aggregate.generation is not started yet")
        p_sums = np.add.reduceat(aggregate.p_hat, starts)
        demand(bool(np.all(np.abs(p_sums - 1.0) <= TOLERANCE)), "state.aggregate.p_hat of a row do not sum to 1")
        demand(bool(np.all(aggregate.ranges > 0.0)), "state.aggregate.ranges must be positive")


def check_boxes(layout: Layout, boxes: Boxes) -> None:
    """Check that lo <= hi, that no row's set is empty, and LCB <= UCB."""
    starts = layout.row_start[:-1]
    empty = (np.add.reduceat(boxes.lower, starts) > 1.0 + TOLERANCE) | (
        np.add.reduceat(boxes.upper, starts) < 1.0 - TOLERANCE
    )
    crossed = boxes.lower > boxes.upper
    if np.any(empty) or np.any(crossed):
        row = int(np.flatnonzero(empty)[0]) if np.any(empty) else int(layout.row_of_triple[np.flatnonzero(crossed)[0]])
        raise InvalidInput(f"state.boxes.lower, state.boxes.upper of {layout.describe_row(row)} hold no distribution")
    demand(bool(np.all(boxes.cost_lower <= boxes.cost_upper + TOLERANCE)), "state.boxes.cost_lower exceed cost_upper")
