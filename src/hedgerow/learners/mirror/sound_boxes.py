"""Check that boxes follow from counts: a file cannot claim to know more than it has seen.

Boxes that are rebuilt in every episode are a function of the counts. They are recomputed, the file has to agree up to
TOLERANCE (another machine may round logarithms differently), and the recomputed ones are used.

With epochs, boxes are those of earlier counts N', M', S'. Only N' is known, and that

    M - (N - N') <= M' <= M,      S - (N - N') <= S' <= S     (for estimates that forget, see `_then`).

A row that was not visited since is recomputed as well. In any other, bounds must lie where some M', S' would put them.
Both p - epsilon(p) where it is positive and p + epsilon(p) where it is below 1 grow with p, so the ends of these ranges
give the ends of the bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.estimates.boxes import Boxes, BoxRule, make_boxes, refresh_all
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.radii import RadiusRule, epsilon, transition_terms
from hedgerow.estimates.unknowns import make_unknowns
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.sound_counts import left_out
from hedgerow.learners.mirror.sound_intervals import check_gradual_boxes
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

TOLERANCE = 1e-9
LITTLE_LEFT = 1e-5
"""If an earlier estimate has less weight than this, the present one says nothing about it beyond rounding."""


def check_boxes(learner: MirrorLearner) -> None:
    """Check the boxes of the state, and replace them by recomputed ones where that is possible."""
    core, layout = learner.core, learner.layout
    if core.rule.box.gradual:
        check_gradual_boxes(learner)
        check_rows(layout, core.state.boxes)
        return
    state, counts, laws = core.state, core.state.counts, core.rule.box.laws
    fresh = boxes_of(learner, counts)
    then = state.epoch_visits if core.rule.epochs else counts.num_visits
    older = (counts.num_visits > then)[laws.moves_at]
    changed = (counts.num_visits > then)[laws.costs_at]
    apart = left_out(state) or (state.logged.episodes and state.logged.prefixes)  # K is not N
    if core.rule.epochs and left_out(state):
        older[:] = changed[:] = True  # unknown visits begin no epoch
    if np.any(older) or np.any(changed):
        if core.rule.tied:  # boxes of classes and of costs grow old by themselves
            older[:] = changed[:] = True
        num_costs = np.where(counts.num_visits > then, np.minimum(then, counts.num_costs), counts.num_costs)
        blank = counts.replace(num_visits=then.copy(), num_costs=num_costs)
        fresh.xi[:] = boxes_of(learner, blank).xi
        if not core.rule.tied and not apart:
            _check_older_costs(counts, then, core.rule.box, fresh.xi, changed, state.boxes)
            _check_older_transitions(layout, core, then, older[layout.row_of_triple])
        triples = older[layout.row_of_triple]
        for name, old in (("cost_lower", changed), ("cost_upper", changed), ("lower", triples), ("upper", triples)):
            getattr(fresh, name)[old] = getattr(state.boxes, name)[old]
        if core.rule.tied or apart:
            fresh.xi[changed] = state.boxes.xi[changed]
    for name in Boxes.fields:
        compare(name, getattr(state.boxes, name), getattr(fresh, name))
        getattr(state.boxes, name)[...] = getattr(fresh, name)
    check_rows(layout, state.boxes)


def boxes_of(learner: MirrorLearner, counts: Counts) -> Boxes:
    """The boxes that follow from the counts alone."""
    rule, view, settings = learner.core.rule.box, learner.view, learner.settings
    unknowns = make_unknowns(learner.layout, view.num_constraints, view.knowledge, ties=settings.ties)
    boxes = make_boxes(unknowns, clip_costs=rule.clip_costs)
    refresh_all(learner.core.index, counts, rule, boxes)
    return boxes


def compare(name: str, given: FloatArray, computed: FloatArray) -> None:
    wrong = np.argwhere(np.abs(given - computed) > TOLERANCE)
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise InvalidInput(
            f"state.boxes.{name} is {float(given[place])!r} at {place}; the counts make it {float(computed[place])!r}"
        )


def _check_older_costs(
    counts: Counts, then: IntArray, rule: BoxRule, xi: FloatArray, rows: NDArray[np.bool_], boxes: Boxes
) -> None:
    clip, changed = rule.clip_costs, rows & (rule.unknown_costs == 1).all(axis=1)
    least, most = _then(counts, then, rule.laws.forget, changed)
    radius = xi[changed, np.newaxis]
    low, high = (0.0, 1.0) if clip else (-1.0, 2.0)
    for name, shift in (("cost_lower", -radius), ("cost_upper", radius)):
        given = getattr(boxes, name)[changed]
        below = given < np.clip(least + shift, low, high) - TOLERANCE
        above = given > np.clip(most + shift, low, high) + TOLERANCE
        if np.any(below | above):
            raise InvalidInput(f"state.boxes.{name} are not those of any epoch with these counts")
    if not clip and np.any(np.abs(boxes.cost_upper[changed] - boxes.cost_lower[changed] - 2.0 * radius) > TOLERANCE):
        raise InvalidInput("state.boxes.cost_upper - cost_lower are not twice state.boxes.xi")


def _then(counts: Counts, then: IntArray, forget: float, changed: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The least and the largest g_hat (changed rows, m) that `then` visits can have led to.

    Of it the share W = prod (1 - b) over the visits since is left: W g' <= g_hat <= W g' + 1 - W.
    """
    sums, now, before = counts.cost_sums[changed], counts.num_visits[changed, np.newaxis], then[changed, np.newaxis]
    if forget == 0.0:
        number = np.maximum(1, before)
        return np.maximum(0.0, sums - (now - before)) / number, np.minimum(sums, before) / number
    mean, first = sums / np.maximum(1, now), np.floor(1.0 / forget)
    left = np.minimum(before, first) / np.minimum(np.maximum(1, now), first)
    left = left * (1.0 - forget) ** (np.maximum(now, first) - np.maximum(before, first))
    seen, share = before > 0, np.maximum(left, LITTLE_LEFT)
    least, most = np.clip((mean - (1.0 - left)) / share, 0.0, 1.0), np.clip(mean / share, 0.0, 1.0)
    known = seen & (left >= LITTLE_LEFT)
    return np.where(known, least, 0.0), np.where(known, most, seen)


def _check_older_transitions(layout: Layout, core: Core, then: IntArray, changed: NDArray[np.bool_]) -> None:
    counts, boxes = core.state.counts, core.state.boxes
    lower_most, upper_least = np.ones(layout.num_triples), np.zeros(layout.num_triples)
    _older_bounds(core.index, core.rule.box.radii, counts, then, lower_most, upper_least)
    narrow = (
        changed
        & (core.rule.box.uncertain == 1)[layout.row_of_triple]
        & ((boxes.lower > lower_most + TOLERANCE) | (boxes.upper < upper_least - TOLERANCE))
    )
    if np.any(narrow):
        where = layout.describe_triple(int(np.flatnonzero(narrow)[0]))
        raise InvalidInput(f"state.boxes.lower, state.boxes.upper of {where} are narrower than any epoch makes them")


@kernel
def _older_bounds(
    index: Index, radii: RadiusRule, counts: Counts, then: IntArray, lower_most: FloatArray, upper_least: FloatArray
) -> None:
    """The largest lo and the smallest hi of rows that were visited since their boxes were made, with N' = `then`."""
    num_visits, num_moves = counts.num_visits, counts.num_moves
    for r in range(len(num_visits)):
        start, stop = index.row_start[r], index.row_start[r + 1]
        if num_visits[r] == then[r] or stop - start < 2:
            continue
        variance_factor, offset = transition_terms(radii, then[r])
        sum_lower = sum_upper = 0.0
        for j in range(start, stop):
            most = min(num_moves[j], then[r]) / max(1, then[r])
            least = max(0, num_moves[j] - (num_visits[r] - then[r])) / max(1, then[r])
            lower_most[j] = max(0.0, most - epsilon(radii, most, variance_factor, offset))
            upper_least[j] = min(1.0, least + epsilon(radii, least, variance_factor, offset))
            sum_lower += lower_most[j]
            sum_upper += upper_least[j]
        for j in range(start, stop):
            # The most that tightening can have done: the others cannot all be at their ends at once. P_hat is inside.
            most = min(num_moves[j], then[r]) / max(1, then[r])
            least = max(0, num_moves[j] - (num_visits[r] - then[r])) / max(1, then[r])
            raw_lower, raw_upper = lower_most[j], upper_least[j]
            lower_most[j] = min(max(raw_lower, 1.0 - (sum_upper - raw_upper)), most)
            upper_least[j] = max(min(raw_upper, 1.0 - (sum_lower - raw_lower)), least)


def check_rows(layout: Layout, boxes: Boxes) -> None:
    """Check that lo <= hi and that no row's set is empty: kernels rely on it."""
    starts = layout.row_start[:-1]
    empty = (np.add.reduceat(boxes.lower, starts) > 1.0 + TOLERANCE) | (
        np.add.reduceat(boxes.upper, starts) < 1.0 - TOLERANCE
    )
    crossed = boxes.lower > boxes.upper
    if np.any(empty) or np.any(crossed):
        row = int(np.flatnonzero(empty)[0]) if np.any(empty) else int(layout.row_of_triple[np.flatnonzero(crossed)[0]])
        raise InvalidInput(f"state.boxes.lower, state.boxes.upper of {layout.describe_row(row)} hold no distribution")
