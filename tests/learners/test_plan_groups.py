"""Groups of plans whose costs share a cause: one value each, learnt once a group is closed and complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, to_bytes
from test_open_plans import LAYOUT, LOSS, VIEW, WORLD, played, sops

import hedgerow as hr
from hedgerow.confidence.counts import make_counts
from hedgerow.learners.open_plans import IN_GROUPS, OpenPlans
from hedgerow.learners.ops.groups import add_means

MEAN = 0.5
FREE = WORLD.with_thresholds([2.0]).view()


def day(learner: Any, name: str | None, size: int, rng: np.random.Generator) -> list[hr.Episode]:
    """A day of plans whose costs are all 0 or all 1, wherever they are."""
    plans = [learner.plan(group=name) for _ in range(size)]
    cost, episodes = float(rng.random() < MEAN), []
    for plan in plans:
        rows = played(plan, rng).rows
        episodes.append(hr.Episode(VIEW, rows, LOSS[rows], np.full((2, 1), cost)))
        learner.observe(episodes[-1], plan)
    return episodes


def lost(learner: Any) -> bool:
    """Whether the mean of some pair has left its interval."""
    boxes = learner.core.state.boxes
    return bool(np.any((boxes.cost_lower > MEAN) | (boxes.cost_upper < MEAN)))


def test_costs_that_share_a_cause_are_one_draw() -> None:
    """Ten days of 40 plans are ten draws: counted as 400, they make intervals that lose the mean in most runs."""
    failed = {"grouped": 0, "alone": 0}
    for seed in range(10):
        grouped, alone = (hr.SVOPS(FREE, 1000, 0.05, "sharpest", seed) for _ in range(2))
        grouped.max_open = alone.max_open = 40
        rng = np.random.default_rng(seed)
        ever = {"grouped": False, "alone": False}
        for number in range(10):
            day(grouped, f"day {number}", 40, rng)
            grouped.close_group(f"day {number}")
            day(alone, None, 40, rng)
            ever["grouped"] |= lost(grouped)
            ever["alone"] |= lost(alone)
        for name, value in ever.items():
            failed[name] += value
    assert failed["grouped"] == 0
    assert failed["alone"] >= 6


def test_a_group_is_learnt_when_it_is_closed_and_complete() -> None:
    learner, rng = sops(most=10), np.random.default_rng(0)
    plans = [learner.plan(group="a"), learner.plan(), learner.plan(group="a"), learner.plan(group="b")]
    outcomes = [played(plan, rng) for plan in plans]
    for j in (0, 1):
        learner.observe(outcomes[j], plans[j])
    assert learner.episode == 0  # it is open
    with pytest.raises(hr.errors.InvalidInput, match="no open plan has the group 'c'"):
        learner.close_group("c")
    learner.close_group("a")
    assert learner.episode == 0  # it is closed, and an outcome is missing
    learner.observe(outcomes[2], plans[2])
    assert learner.episode == 3
    with pytest.raises(hr.errors.InvalidInput, match="the group 'a' is closed"):
        learner.plan(group="a")
    with pytest.raises(hr.errors.InvalidInput, match="closed already"):
        learner.close_group("a")
    learner.close_group("b")
    assert learner.episode == 3
    learner = from_bytes(to_bytes(learner))
    learner.observe(outcomes[3], plans[3])
    assert (learner.episode, learner.queue.groups) == (4, 2)
    assert any(IN_GROUPS in line for line in learner.guarantees().assumptions)
    for wrong in ("", "  ", 3):
        with pytest.raises(hr.errors.InvalidInput, match="a group is a text"):
            learner.plan(group=wrong)


def test_the_counts_have_the_mean_of_a_group_by_hand() -> None:
    learner, rng = sops(most=100), np.random.default_rng(3)
    costs: dict[int, list[list[float]]] = {row: [] for row in range(LAYOUT.num_rows)}
    visits = np.zeros(LAYOUT.num_rows)
    for number in range(4):
        plans = [learner.plan(group=str(number)) for _ in range(25)]
        own: dict[int, list[float]] = {}
        for plan in rng.permutation(np.array(plans, dtype=object)):
            episode = played(plan, rng)
            learner.observe(episode, plan)
            for row, cost in zip(episode.rows.tolist(), episode.costs[:, 0].tolist(), strict=True):
                own.setdefault(row, []).append(cost)
                visits[row] += 1
        learner.close_group(str(number))
        for row, paid in own.items():
            costs[row].append(paid)
        learner = from_bytes(to_bytes(learner))
    counts = learner.core.state.counts
    np.testing.assert_array_equal(counts.num_visits, visits)
    np.testing.assert_array_equal(counts.num_costs, [len(costs[row]) for row in costs])
    means = [sum(np.mean(paid) for paid in costs[row]) for row in costs]
    np.testing.assert_allclose(counts.cost_sums[:, 0], means, rtol=1e-12)
    # Sums over whole episodes have the first plan of each group, if it played the learner's policy.
    assert learner.core.state.aggregate.numbers.own <= 4


def test_unknown_values_of_groups_leave_enough_room() -> None:
    """Whatever the unknown costs were, the sum of the means lies between what was counted and that plus the unknown."""
    rng, queue, total = np.random.default_rng(0), OpenPlans(), make_counts(LAYOUT, 1)
    low, high = np.zeros((LAYOUT.num_rows, 1)), np.zeros((LAYOUT.num_rows, 1))
    for _ in range(400):
        members = []
        for _ in range(3):
            one = make_counts(LAYOUT, 1)
            one.num_costs[:] = rng.integers(0, 3, LAYOUT.num_rows)
            one.unknown_costs[:, 0] = np.where(rng.random(LAYOUT.num_rows) < 0.2, rng.integers(0, one.num_costs + 1), 0)
            one.cost_sums[:, 0] = rng.random(LAYOUT.num_rows) * (one.num_costs - one.unknown_costs[:, 0])
            members.append(one)
        added = make_counts(LAYOUT, 1)
        gained = add_means(added, members, queue)
        queue.slack = gained if queue.slack is None else queue.slack + gained
        visits = sum(one.num_costs for one in members)[:, np.newaxis]
        known, unknown = sum(one.cost_sums for one in members), sum(one.unknown_costs for one in members)
        low += known / np.maximum(visits, 1)
        high += (known + unknown) / np.maximum(visits, 1)
        for name in ("num_costs", "cost_sums", "unknown_costs"):
            getattr(total, name)[...] += getattr(added, name)
        assert np.all(total.cost_sums <= low + 1e-9)
        assert np.all(total.cost_sums + total.unknown_costs >= high - 1e-9)
        assert np.all(total.cost_sums <= total.num_costs[:, np.newaxis] - total.unknown_costs + 1e-9)
    assert 0 < total.unknown_costs.sum() < 0.5 * total.num_costs.sum()


def test_an_abandoned_plan_of_a_group_makes_little_unknown() -> None:
    learner, rng = sops(most=50), np.random.default_rng(1)
    for number in range(20):
        plans = [learner.plan(group=str(number)) for _ in range(50)]
        for j, plan in enumerate(plans):
            if j == 7:
                learner.abandon(plan, "lost")
            else:
                learner.observe(played(plan, rng), plan)
        learner.close_group(str(number))
    counts = learner.core.state.counts
    # A group counts as unknown only while there is no slack for one lost plan of 50.
    assert counts.unknown_costs[0, 0] < 0.3 * counts.num_costs[0]
    assert learner.guarantees()["safety"].holds


def test_a_group_of_one_is_like_a_plan_without_one() -> None:
    alone, grouped, rng = sops(most=2, preset="sharp"), sops(most=2, preset="sharp"), np.random.default_rng(0)
    for number in range(15):
        plan = alone.plan()
        episode = played(plan, rng)
        alone.observe(episode, plan)
        grouped.observe(episode, grouped.plan(group=str(number)))
        grouped.close_group(str(number))
    for name in ("num_visits", "num_moves", "num_costs", "cost_sums"):
        np.testing.assert_allclose(getattr(grouped.core.state.counts, name), getattr(alone.core.state.counts, name))
    np.testing.assert_allclose(grouped.policy, alone.policy, rtol=1e-7)


def test_costs_that_are_drawn_with_the_moves_have_no_groups() -> None:
    learner = sops(view=VIEW.knowing(costs_drawn="step"))
    with pytest.raises(hr.errors.InvalidInput, match=r"cannot be in groups: where costs are drawn with the moves"):
        learner.plan(group="today")


def test_the_search_counts_the_first_plan_of_a_group() -> None:
    learner, rng = (
        hr.CVOPS(VIEW, 100, 0.05, "sharpest", memory_budget=8 * LAYOUT.num_rows * 6),
        np.random.default_rng(0),
    )
    learner.max_open = 10
    sums = 0.0
    for number in range(10):
        plans = [learner.plan(group=str(number)) for _ in range(4)]
        episodes = [played(plan, rng) for plan in plans]
        sums += episodes[0].costs.sum()
        for plan, episode in zip(plans[::-1], episodes[::-1], strict=True):
            learner.observe(episode, plan)
        learner.close_group(str(number))
        learner = from_bytes(to_bytes(learner))
    assert learner.episode == 40
    search = learner.core.state.search
    assert search.broken.skipped == 30
    assert search.cost_sums[0] == pytest.approx(sums)
    assert np.all(search.policies.sum(axis=1) == pytest.approx(3.0))
