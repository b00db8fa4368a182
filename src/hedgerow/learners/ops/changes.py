"""Go on with other thresholds, other costs of the baseline, or another number of episodes.

Confidence sets depend on none of the three, if they hold at all times: they stay. Thresholds may even be chosen by what
was seen, because the sets hold the truth at all times at once. The weights are projected onto the new set, and lambda
follows from the bounds that the sets give now. The mixture that CV-OPS found costs what it costs: its margin to the new
thresholds is computed anew from the same sums. What is not known for new thresholds is whether the regret stays small.

A change takes its place in the order of the plans: those before it keep their bounds, and their outcomes are learnt
later. Their loss estimates need u of their time, which is kept with them (`learners/open_plans.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.confidence.aggregate import AggregateNumbers
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import checked_baseline_costs
from hedgerow.learners.open_plans import PREFIX, OpenPlans, keep_bounds, queue_up, with_thresholds
from hedgerow.learners.ops.absorb import rebuild, reproject
from hedgerow.learners.ops.pool import PoolNumbers, PoolReals
from hedgerow.learners.ops.rates import draw_to_uniform, set_rates
from hedgerow.learners.ops.state import Numbers
from hedgerow.model.view import View, view_arrays, view_meta

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner

L = TypeVar("L", bound="MirrorLearner")
BOUND = ("multipliers", "certificate", "system")
"""The arrays that have an entry for each constraint that can bind"""
KEPT = ("aggregate.p_hat", "aggregate.g_hat", "aggregate.numbers")
"""What stays of the certificate if other constraints can bind: the generations watched the former ones"""


def changed(old: L, *, view: View | None = None, baseline_costs: Any = None, episodes: int | None = None) -> L:
    """A learner that goes on from where `old`, a copy that is used nowhere else, is."""
    old._complete()
    view = old.view if view is None else view
    words = _in_words(old, view, baseline_costs, episodes)
    eta, arguments = old.eta, old._arguments()
    if episodes is not None:
        arguments["episodes"] = episodes
        _lower_rate(old, episodes)
    state = old.state()
    if baseline_costs is not None:
        state["baseline_costs"] = np.array(checked_baseline_costs(view, baseline_costs, True))
    queue_up(old)
    keep_bounds(old, old.queue.entries)
    queue = old.queue
    state = {
        name: array for name, array in state.items() if name.partition(".")[0] not in ("arguments", "coin", PREFIX)
    }
    new = type(old)._rebuilt(view, arguments, state)
    new.coin.go_to(old.coin.state)
    new.queue = OpenPlans(most=queue.most, groups=queue.groups, changes=[words])
    _adapt(state, old, new)
    if "stay" in state:  # the limit is of the new learner, the losses are those that were seen
        state["stay"] = np.concatenate((new.core.state.stay.values[:1], state["stay"][1:]))
    try:
        new._restore(state)
    except InvalidInput as error:
        raise InvalidInput(f"the learner cannot go on with this: {error}") from error
    if new.eta < eta:
        # Weights that were learnt at a larger rate: the distance to the comparator must not grow (docs/rates.md).
        draw_to_uniform(new.core, new.eta / eta, 0.0)
    rebuild(new.core)
    reproject(new)
    queue.keys.append(old._key)
    queue.changes.append(words)
    new.queue = queue
    new._follow_queue()
    return new


def _lower_rate(old: MirrorLearner, episodes: int) -> None:
    """Let eta be at most the first one for so many episodes; a search restarts anyway, whatever their number."""
    core, before = old.core, old.eta
    if not core.rule.doubling:
        set_rates(core, float(max(1, episodes - old.begun)), core.rule.log_inverse_delta)
        core.state.reals.eta = min(before, core.state.reals.eta)


def _in_words(old: MirrorLearner, view: View, baseline_costs: Any, episodes: int | None) -> str:
    """What changes, in words, if it may."""
    before = max(len(old.queue.entries), old.progress.pending) + old.episode
    if episodes is not None:
        if old.settings.radii not in WITHOUT_HORIZON or old.episodes is None:
            raise InvalidInput(
                f"radii = {old.settings.radii!r} hold for one number of episodes; radii='kt' or 'anytime' hold for any"
                if old.episodes is not None
                else "this learner needs no number of episodes (horizon='doubling')"
            )
        if episodes < before:
            raise InvalidInput(f"{before} episodes have been planned already; episodes must be at least that")
        return f"before plan {before}, from {old.episodes} to {episodes} episodes"
    if not _same_but_for_thresholds(old.view, view):
        raise InvalidInput(
            "a learner can go on with other thresholds only: layout, names and knowledge of the view must be its own; "
            "build a new learner for another world"
        )
    if baseline_costs is not None and not old.inputs.baseline:
        raise InvalidInput(f"{old.title} is given no baseline, and so no costs of one")
    if not np.array_equal(old.view.binding, view.binding):
        watched = "search" if old.core.state.search.weights.size else "account" if old.core.rule.account.active else ""
        if watched:
            raise InvalidInput(f"its {watched} has watched other constraints than these thresholds let be violated")
    limits = (f"{n} {a:g} -> {b:g}" for n, a, b in _limits(old.view, view) if a != b)
    costs = "" if baseline_costs is None else "; other costs of the baseline"
    return f"before plan {before}, thresholds: {', '.join(limits) or 'the same'}{costs}"


def _limits(view: View, other: View) -> list[tuple[str, float, float]]:
    return list(zip(view.constraint_names, view.thresholds.tolist(), other.thresholds.tolist(), strict=True))


def _same_but_for_thresholds(view: View, other: View) -> bool:
    if not isinstance(other, View) or other.num_constraints != view.num_constraints:
        return False
    same = with_thresholds(other, view.thresholds)
    mine, others = view_arrays(view, support=True), view_arrays(same, support=True)
    return (
        view_meta(view) == view_meta(same)
        and mine.keys() == others.keys()
        and all(np.array_equal(mine[name], others[name], equal_nan=mine[name].dtype.kind == "f") for name in mine)
    )


def _empty_pool(state: dict[str, NDArray[Any]], new: MirrorLearner) -> None:
    """Leave a pool without members, which were certified for the former thresholds; plans keep what they play."""
    for name in ("policies", "weights", "bounds", "reasons"):
        state[f"pool.{name}"] = np.zeros_like(getattr(new.core.pool, name))
    numbers, reals = PoolNumbers(state["pool.numbers"]), PoolReals(state["pool.reals"])
    numbers.size, reals.base, reals.share = 0, 1.0, 0.0
    learnt = Numbers(state["numbers"])
    learnt.branch = 0
    state |= {"pool.numbers": numbers.values, "pool.reals": reals.values, "numbers": learnt.values}


def _adapt(state: dict[str, NDArray[Any]], old: MirrorLearner, new: MirrorLearner) -> None:
    """Replace the arrays of a state that do not fit the new thresholds."""
    if old.pools:
        _empty_pool(state, new)
    if np.array_equal(old.view.binding, new.view.binding):
        return
    fresh, numbers = new.state_arrays(), AggregateNumbers(state["aggregate.numbers"])
    for name in state:
        part = name.partition(".")[0]
        if part in BOUND or (part == "aggregate" and name not in KEPT):
            state[name] = fresh[name].copy()
    numbers.next_start, numbers.turn = numbers.own, 0  # generations are numbered on: each has its share of delta
    state["aggregate.numbers"] = numbers.values
