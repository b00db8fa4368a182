"""Intervals with unknown values: against all completions, and how often they hold the truth."""

from __future__ import annotations

from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.confidence.boxes import Boxes, BoxRule, make_box_rule, make_boxes, refresh_all
from hedgerow.confidence.counts import Counts, make_counts, make_unknowns
from hedgerow.confidence.kl import kt_interval
from hedgerow.confidence.radii import Radii
from hedgerow.model.kernel_layout import index_of

KINDS = ["paper", "tight", "anytime", "efroni", "kt"]
BARELY = 1e-11
"""Ends are rounded outward, each by itself"""


@pytest.mark.parametrize("level", [0.0, 0.5, 3.0, 9.0, 40.0])
def test_one_more_1_raises_both_ends_of_kt_and_one_more_0_lowers_them(level: float) -> None:
    """UCB(n + 1, S + 1) >= UCB(n, S) and UCB(n, S) grows with S; mirrored below; sums need not be whole."""
    n = np.repeat(np.array([0, 1, 2, 3, 7, 20, 100, 10_000]), 40)
    S = n * np.tile(np.linspace(0.0, 1.0, 40), 8)
    low, high = kt_interval(n, S, level)
    assert np.all(kt_interval(n + 1, S + 1, level)[1] >= high - BARELY)
    assert np.all(kt_interval(n + 1, S, level)[0] <= low + BARELY)
    more = np.minimum(n, S + 0.3)
    assert np.all(kt_interval(n, more, level)[1] >= high - BARELY)
    assert np.all(kt_interval(n, more, level)[0] >= low - BARELY)


@pytest.mark.parametrize("level", [0.0, 1.0, 6.0])
def test_the_mean_that_the_mixture_expects_is_in_the_interval(level: float) -> None:
    """The step of the proof: (S + 1/2) / (n + 1) lies between the ends, whatever the level."""
    n = np.repeat(np.arange(1, 60), 21)
    S = n * np.tile(np.linspace(0.0, 1.0, 21), 59)
    low, high = kt_interval(n, S, level)
    expected = (S + 0.5) / (n + 1)
    assert np.all((low <= expected + BARELY) & (expected <= high + BARELY))


def bounds_of(rule: BoxRule, layout: hr.Layout, counts: Counts, clip: bool) -> Boxes:
    boxes = make_boxes(make_unknowns(layout, 1), clip_costs=clip)
    refresh_all(index_of(layout), counts, rule, boxes)
    return boxes


def counted(layout: hr.Layout, moves: Any, num: int, total: float, lost: int = 0, gone: int = 0) -> Counts:
    """Counts of the first row of a layout."""
    counts = make_counts(layout, 1)
    counts.num_moves[: len(moves)] = moves
    counts.num_visits[0], counts.num_costs[0], counts.cost_sums[0, 0] = sum(moves), num, total
    counts.unknown_moves[0], counts.unknown_costs[0, 0] = lost, gone
    return counts


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_means_with_unknown_values_have_room_for_every_completion(kind: str, clip: bool) -> None:
    layout, rng = hr.Layout((1, 1), 1), np.random.default_rng(0)
    for scale, T in ((1.0, 40), (0.1, 40), (0.02, 10**6)):
        rule = make_box_rule(Radii(kind, scale).rule(layout, 1, 0.1, T), make_unknowns(layout, 1), clip)
        for _ in range(25):
            seen, gone = int(rng.integers(0, 40)), int(rng.integers(1, 8))
            total = float(rng.uniform(0.0, seen)) if rng.random() < 0.7 else float(rng.integers(0, seen + 1))
            boxes = bounds_of(rule, layout, counted(layout, [seen + gone], seen + gone, total, 0, gone), clip)
            lower, upper = boxes.cost_lower[0, 0], boxes.cost_upper[0, 0]
            for happened in range(gone + 1):
                for extra in np.linspace(0.0, happened, 4):
                    whole = counted(layout, [seen + happened], seen + happened, total + float(extra))
                    one = bounds_of(rule, layout, whole, clip)
                    assert min(upper, 1.0) >= min(one.cost_upper[0, 0], 1.0) - BARELY
                    assert max(lower, 0.0) <= max(one.cost_lower[0, 0], 0.0) + BARELY


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_with_unknown_moves_have_room_for_every_completion(kind: str) -> None:
    """Every distribution in the box of a completion is in the widened box: all sizes of the unknown, all successors."""
    layout, rng = hr.Layout((1, 3, 1), 1), np.random.default_rng(1)
    for scale in (1.0, 0.1):
        rule = make_box_rule(Radii(kind, scale).rule(layout, 1, 0.1, 200), make_unknowns(layout, 1), True)
        for _ in range(12):
            moves, lost = rng.multinomial(int(rng.integers(1, 60)), [0.9, 0.08, 0.02]), int(rng.integers(1, 4))
            wide = bounds_of(rule, layout, counted(layout, moves, 0, 0.0, lost), True)
            for more in product(range(lost + 1), repeat=3):
                if sum(more) <= lost:
                    one = bounds_of(rule, layout, counted(layout, moves + more, 0, 0.0), True)
                    assert np.all(wide.lower[:3] <= one.lower[:3] + 1e-9)
                    assert np.all(wide.upper[:3] >= one.upper[:3] - 1e-9)


# How often the truth is inside ----------------------------------------------------------------------------------------

VIEW = hr.View.of([["first"], ["second"]], ["one", "other"], thresholds={"cost": 1.0})
PLAYED = hr.Policy(VIEW.layout, [1.0, 0.0, 0.5, 0.5])
PERSON = hr.Policy(VIEW.layout, [1.0, 0.0, 1.0, 0.0])
MEAN, DELTA, EPISODES, RUNS = 0.3, 0.05, 100, 20


def failures(rule: str) -> int:
    """Runs in which the interval of the second state's other action loses the mean cost, when a person who sees a cost
    of 1 takes over and chooses its first action: 30 % of the episodes. All costs of an episode are equal.
    """
    failed = 0
    for run in range(RUNS):
        rng, seen = np.random.default_rng([7, run]), hr.learners.Statistics(VIEW, None, DELTA, "sharpest")
        lost = False
        for _ in range(EPISODES):
            cost, action = float(rng.random() < MEAN), int(rng.random() < 0.5)
            path = [0, 2 + action * (cost == 0.0)]
            if cost == 0.0:
                episode = hr.Episode(VIEW, path, [0.0, 0.0], [cost, cost])
            elif rule == "nothing unknown":
                episode = hr.Episode(VIEW, path[:1], [0.0], [cost], ended_in="second", independent="a lie")
            else:
                episode = hr.Episode(VIEW, path, [0.0, 0.0], [cost, cost], overridden_from=1)
            seen.add(episode, PERSON if rule == "the person's pair" else PLAYED)
            lost |= not seen.cost_lower[3, 0] <= MEAN <= seen.cost_upper[3, 0]
        failed += lost
    return failed


@pytest.mark.slow
def test_which_pairs_get_the_unknown_visits_decides() -> None:
    assert failures("nothing unknown") == RUNS
    assert failures("the person's pair") == RUNS
    assert failures("every pair that the branch could have visited") <= 2  # 0.05 is allowed for all rows together


def test_a_later_visit_never_takes_the_place_of_a_missing_first_one() -> None:
    """Costs g and 1 - g of two rows that share a law, the first missing whenever it is 0: the mean 1/2 is not 1."""
    tied = VIEW.knowing(same_costs=[0, 0, 0, 0])
    learner = hr.SVOPS(tied, 1000, DELTA, "sharpest")
    rng = np.random.default_rng(0)
    for _ in range(200):
        cost = float(rng.random() < 0.5)
        learner.plan()
        learner.observe(hr.Episode(tied, [0, 2], [0.0, 0.0], [cost, 1.0 - cost], unknown_costs=[cost == 0.0, False]))
    counts, boxes = learner.core.state.counts, learner.core.state.boxes
    assert counts.num_costs[0] == 200
    assert counts.cost_sums[0, 0] + counts.unknown_costs[0, 0] == 200
    assert boxes.cost_lower[0, 0] <= 0.5 <= boxes.cost_upper[0, 0]
    assert kt_interval(200, 200.0, log(1 / DELTA))[0] > 0.5  # what the later visits would have led to


def test_old_bounds_stay_where_they_are_tighter() -> None:
    """A burst of missing outcomes widens no interval that holds at all times."""
    learner = hr.SVOPS(hr.View(hr.Layout((1, 2, 1), 2), [0.5], ["c"]), 1000, DELTA, "sharpest")
    rng, before = np.random.default_rng(0), {}
    for t in range(300):
        plan = learner.plan()
        if t < 150:
            x = 1 + int(rng.random() < 0.4)
            rows = [plan.policy.draw(0, rng), 2 * x + plan.policy.draw(x, rng)]
            learner.observe(rows, [0.5, 0.5], [0.2, 0.1])
        else:
            learner.observe(hr.Episode.missing(learner.view))
        boxes = learner.core.state.boxes
        now = {name: getattr(boxes, name).copy() for name in ("lower", "upper", "cost_lower", "cost_upper")}
        if t > 150:
            assert np.all(now["lower"] >= before["lower"] - 1e-12)
            assert np.all(now["upper"] <= before["upper"] + 1e-12)
            assert np.all(now["cost_lower"] >= before["cost_lower"])
            assert np.all(now["cost_upper"] <= before["cost_upper"])
        before = now
    assert np.all(learner.core.state.counts.unknown_moves == 150)
