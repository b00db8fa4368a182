"""Outcomes that come after their plans were given up: counts as if they had come in time, sets that hold, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from learner_cases import from_bytes, make_learner, random_world, to_bytes

import hedgerow as hr
from hedgerow.confidence.kl import kt_interval
from hedgerow.learners import open_plans

WORLD = random_world(3)
VIEW = WORLD.view()
BARELY = 1e-9


def played(plan: Any, rng: np.random.Generator, world: hr.CMDP = WORLD) -> hr.Episode:
    return world.play(plan.policy, rng, np.full(world.layout.num_rows, 0.5))


def content(learner: Any) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in learner.state().items()}


def counts(learner: Any) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in learner.core.state.counts.as_dict().items()}


def mixed_run(learner: Any, most: int, rng: np.random.Generator, episodes: int = 60) -> list[hr.Episode]:
    """Plans of which every second one is given up; half of these outcomes come much later, dear ones first."""
    learner.max_open, lost, seen, waiting = most, list[tuple[Any, hr.Episode]](), [], list[Any]()
    for t in range(episodes):
        waiting.append(learner.plan())
        if len(waiting) < most:
            continue
        plan = waiting.pop(int(rng.integers(len(waiting))))
        episode = played(plan, rng)
        seen.append(episode)
        if t % 2:
            learner.abandon(plan, "no answer", actions=plan.actions if t % 4 == 3 else None)
            actions = plan.actions
            if t % 4 == 3:  # what was followed is what was drawn
                rows, state = [], 0
                for k in range(VIEW.layout.steps):
                    rows.append(state * VIEW.layout.num_actions + int(actions.numbers[state]))
                    triple = VIEW.layout.row_start[rows[-1]] + int(rng.integers(2)) % (
                        VIEW.layout.row_start[rows[-1] + 1] - VIEW.layout.row_start[rows[-1]]
                    )
                    state = int(VIEW.layout.successor[triple])
                    assert k < VIEW.layout.steps
                seen[-1] = episode = hr.Episode(VIEW, rows, episode.losses, episode.costs)
            lost.append((plan, episode))
        else:
            learner.observe(episode, plan)
        if len(lost) > 6:
            lost.sort(key=lambda one: -one[1].costs.sum())
            plan, episode = lost.pop(0)
            learner.resolve(episode, plan)
    for plan in waiting:
        seen.append(played(plan, rng))
        learner.observe(seen[-1], plan)
    for plan, episode in lost:
        learner.resolve(episode, plan.episode)
    return seen


@pytest.mark.parametrize("most", [1, 7])
@pytest.mark.parametrize("kind", ["sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops", "c-ops"])
def test_counts_are_those_of_outcomes_that_came_in_time(kind: str, most: int) -> None:
    learner: Any = make_learner(kind, WORLD, 400, preset="sharpest")
    seen = mixed_run(learner, most, np.random.default_rng(0))
    assert (learner.episode, learner.unresolved) == (60, ())
    assert learner.queue.resolved == 30 if most == 1 else learner.queue.resolved > 5  # others had not been learnt yet
    twin = hr.SVOPS(VIEW, 400, 0.05)
    twin.absorb(hr.Log.read(VIEW, seen))
    for name, array in counts(twin).items():
        np.testing.assert_allclose(counts(learner)[name], array, atol=1e-12, err_msg=name)
    assert learner.logged["unknown"] == learner.logged["off_policy"] == learner.logged["truncated"] == 0
    assert content(from_bytes(to_bytes(learner))) == content(learner)
    assert any("came after their plans were given up" in line for line in learner.guarantees().assumptions)
    assert not learner.guarantees()["regret"].holds


def test_counts_of_shared_laws_are_those_of_outcomes_that_came_in_time() -> None:
    tied = VIEW.knowing(same_costs=[0] * VIEW.layout.num_rows)
    learner, rng = hr.SVOPS(tied, 400, 0.05), np.random.default_rng(0)
    lost, seen = [], []
    for t in range(30):
        plan = learner.plan()
        seen.append(played(plan, rng))
        if t % 3:
            learner.abandon(plan, "lost")
            lost.append((plan, seen[-1]))
        else:
            learner.observe(seen[-1], plan)
    assert counts(learner)["unknown_costs"].sum() == 2 * 20
    for plan, episode in lost[::-1]:
        learner.resolve(episode, plan)
    twin = hr.SVOPS(tied, 400, 0.05)
    twin.absorb(hr.Log.read(tied, seen))
    for name, array in counts(twin).items():
        np.testing.assert_allclose(counts(learner)[name], array, atol=1e-12, err_msg=name)


FORK = hr.View.of([["home"], ["rail", "road"]], ["go"], thresholds={"delay": 2.0})


def inside(path: list[tuple[float, float]], low: float, high: float) -> None:
    """The intersection of intervals lies between two numbers, unless it is empty: then the truth was lost before."""
    least, most = max(one for one, _ in path), min(one for _, one in path)
    assert least > most or (low <= least + BARELY and high >= most - BARELY)


@cache
def kt(n: int, total: float, level: float) -> tuple[float, float]:
    low, high = kt_interval(n, total, level)
    return float(low), float(high)


def test_intervals_hold_what_those_of_every_completion_hold() -> None:
    """All fates of four episodes with fixed outcomes: told, given up, or resolved after the last one, in any order.

    What lies in the intervals of the complete sequence at all times lies in those of the learner.
    """
    rng, words = np.random.default_rng(0), ("told", "resolved", "lost")
    for fates in product(words, repeat=4):
        learner = hr.SVOPS(FORK, 100, 0.15)
        outcomes = [(int(rng.integers(2)), float(rng.integers(2)), float(rng.integers(2))) for _ in range(4)]
        late = []
        for fate, (y, first, second) in zip(fates, outcomes, strict=True):
            plan = learner.plan()
            episode = hr.Episode(FORK, [0, 1 + y], [0.0, 0.0], [first, second])
            if fate == "told":
                learner.observe(episode, plan)
                continue
            learner.abandon(plan, "lost")
            if fate == "resolved":
                late.append((episode, plan))
        for j in rng.permutation(len(late)):
            learner.resolve(*late[j])
        boxes, radii = learner.core.state.boxes, learner.core.sets.rule.box.radii
        free = [j for j, fate in enumerate(fates) if fate == "lost"]
        for guesses in product(product((0, 1), repeat=3), repeat=len(free)):
            whole = list(outcomes)
            for j, (y, first, second) in zip(free, guesses, strict=True):
                whole[j] = y, float(first), float(second)
            for row in range(3):
                paid = [one[1] if row == 0 else one[2] for one in whole if row == 0 or one[0] == row - 1]
                path = [kt(n, sum(paid[:n]), radii.cost_log) for n in range(1, len(paid) + 1)]
                inside([(0.0, 1.0), *path], boxes.cost_lower[row, 0], boxes.cost_upper[row, 0])
            path = [(0.0, 1.0)]
            for n in range(1, 5):
                moved = sum(one[0] for one in whole[:n])
                (low, high), (other, least) = (kt(n, s, radii.transition_log) for s in (moved, n - moved))
                path.append((max(low, 1.0 - least), min(high, 1.0 - other)))
            inside(path, boxes.lower[1], boxes.upper[1])


def test_a_resolved_interval_is_narrower_than_an_unknown_one() -> None:
    learner = hr.SVOPS(FORK, 10_000, 0.05)
    lost = []
    for t in range(200):
        plan = learner.plan()
        if t % 4:
            learner.observe(hr.Episode(FORK, [0, 1 + t % 2], [0.0, 0.0], [0.0, 1.0]), plan)
        else:
            learner.abandon(plan, "lost")
            lost.append(plan)
    wide = learner.core.state.boxes.cost_upper[0, 0]
    total = int(learner.core.state.counts.num_costs[0])
    for plan in lost:
        learner.resolve(hr.Episode(FORK, [0, 1], [0.0, 0.0], [0.0, 1.0]), plan)
        assert learner.core.state.counts.num_costs[0] == total  # N + K stays where the plan went
    assert wide > 0.3 > 0.06 > learner.core.state.boxes.cost_upper[0, 0]


def test_what_sums_whole_episodes_stays_as_it_was() -> None:
    """The certificate stays closed, the account of B-OPS and the search of CV-OPS keep X', premises their tests."""
    for kind in ("s-ops", "b-ops", "cv-ops"):
        learner: Any = make_learner(kind, WORLD, 400, preset="sharpest")
        rng = np.random.default_rng(1)
        for t in range(80):
            plan = learner.plan()
            if t in (60, 70):
                learner.abandon(plan, "lost")
            else:
                learner.observe(played(plan, rng), plan)
        state = learner.core.state
        kept = ("closed", "episodes", "squares", "generation")
        before = [getattr(state.aggregate, name).copy() for name in kept if hasattr(state.aggregate, name)]
        others = (state.account, state.search, state.premises)
        sums = [{name: np.array(part) for name, part in each.as_dict().items()} for each in others]
        learner.resolve(played(plan, rng), 60) if learner.episode else None
        for name, array in zip(kept, before, strict=False):
            np.testing.assert_array_equal(getattr(state.aggregate, name), array)
        for each, was in zip(others, sums, strict=True):
            for name, part in each.as_dict().items():
                np.testing.assert_array_equal(np.array(part), was[name], err_msg=name)


def test_it_waits_behind_the_plans_that_are_open() -> None:
    """Who has seen an open outcome may not choose by it from which centres it is counted."""
    for most in (1, 3):
        learner, rng = hr.SVOPS(VIEW, 400, 0.05), np.random.default_rng(0)
        learner.max_open = most
        first = learner.plan()
        learner.abandon(first, "lost")
        plans = [learner.plan() for _ in range(most)]
        learner.resolve(played(first, rng), first)
        assert (learner.unresolved, learner.queue.resolved) == ((), 0)
        assert counts(learner)["unknown_moves"].sum() > 0
        with pytest.raises(hr.errors.InvalidInput, match="none of those that this learner gave up"):
            learner.resolve(played(first, rng), first)
        loaded = from_bytes(to_bytes(learner))
        assert to_bytes(loaded) == to_bytes(learner)
        for each in (learner, loaded):
            for plan in plans[::-1]:
                assert each.queue.resolved == 0
                each.observe(played(plan, np.random.default_rng(plan.episode)), plan)
            assert each.queue.resolved == 1
            assert counts(each)["unknown_moves"].sum() == 0
            each.plan()
        assert content(learner) == content(loaded)


def test_an_outcome_whose_loss_nobody_has_learnt_yet_takes_its_place() -> None:
    twin, learner, rng = hr.SVOPS(VIEW, 400, 0.05), hr.SVOPS(VIEW, 400, 0.05), np.random.default_rng(0)
    twin.max_open = learner.max_open = 2
    pairs = [(learner.plan(), twin.plan()) for _ in range(2)]
    episodes = [played(plan, rng) for plan, _ in pairs]
    learner.abandon(pairs[1][0], "lost")
    assert learner.unresolved == (1,)
    learner.resolve(episodes[1], pairs[1][0])
    twin.observe(episodes[1], pairs[1][1])
    learner.observe(episodes[0], pairs[0][0])
    twin.observe(episodes[0], pairs[0][1])
    assert content(learner) == content(twin)


def test_the_last_ones_can_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_plans, "MOST_LOST", 3)
    learner = hr.SVOPS(VIEW, 400, 0.05)
    for _ in range(5):
        learner.abandon(learner.plan(), "lost")
    assert learner.unresolved == (2, 3, 4)


def test_what_is_refused_changes_nothing() -> None:
    learner, other, rng = hr.SVOPS(VIEW, 400, 0.05), hr.SVOPS(VIEW, 400, 0.05, seed=1), np.random.default_rng(0)
    told, left = learner.plan(), None
    learner.observe(played(told, rng), told)
    left = learner.plan()
    learner.abandon(left, "a power cut", independent=True)
    lost = learner.plan()
    learner.abandon(lost, "lost")
    foreign = other.plan()
    followed = learner.plan()
    learner.abandon(followed, "lost", actions=followed.actions)
    drawn = int(followed.actions.numbers[0])
    before, episode = content(learner), played(lost, rng)
    off = next(e for e in (played(followed, rng) for _ in range(99)) if int(e.rows[0]) != drawn)
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: learner.resolve(episode, told), "none of those that this learner gave up"),
        (lambda: learner.resolve(episode, left), "none of those"),
        (lambda: learner.resolve(episode, foreign), "none of those"),
        (lambda: learner.resolve(episode, 17), "none of those"),
        (lambda: learner.resolve(episode, None), "none of those"),  # type: ignore[arg-type]
        (lambda: learner.resolve([0, 1, 2], lost), "takes an Episode"),  # type: ignore[arg-type]
        (lambda: learner.resolve(hr.Episode.missing(VIEW), lost), "must be known"),
        (lambda: learner.resolve(hr.Episode.missing(VIEW, independent="cut"), lost), "must be known"),
        (lambda: learner.resolve(hr.Episode(VIEW, episode.rows, episode.losses, episode.costs,
                                            actions=told.actions), lost), "not those of the plan"),
        (lambda: learner.resolve(off, followed), "has probability 0 under the plan"),
    ]  # fmt: skip
    for call, words in refusals:
        with pytest.raises(hr.errors.InvalidInput, match=words):
            call()
    assert content(learner) == before
    learner.resolve(hr.Episode(VIEW, episode.rows[:1], episode.losses[:1], episode.costs[:1], end_unseen=True), lost)
    assert (learner.logged["unknown"], learner.unresolved) == (2, (followed.episode,))  # its end is still unknown


def test_a_plan_of_a_group_that_was_learnt_stays_unknown() -> None:
    learner, rng = hr.SVOPS(VIEW, 400, 0.05), np.random.default_rng(0)
    learner.max_open = 2
    plans = [learner.plan(group="monday") for _ in range(2)]
    learner.abandon(plans[0], "lost")
    learner.observe(played(plans[1], rng), plans[1])
    assert learner.unresolved == (0,)
    learner.close_group("monday")
    assert learner.unresolved == ()


def test_a_file_that_cannot_be_right_is_refused() -> None:
    learner = hr.SVOPS(VIEW, 400, 0.05)
    learner.abandon(learner.plan(), "lost")
    for change in (lambda text: text["lost"].clear() or text.update(late=[[0, [0, 1], {"missing": 3}]]),
                   lambda text: text["lost"][0].__setitem__(0, 5),
                   lambda text: text["lost"].append([0, 1])):  # fmt: skip
        state = learner.state()
        text = json.loads(str(state["open"]))
        change(text)
        state["open"] = np.array(json.dumps(text))
        with pytest.raises(hr.errors.InvalidInput):
            hr.SVOPS.restored(VIEW, state)


def test_a_resolved_plan_of_before_a_change_goes_to_the_learner_after_it() -> None:
    learner, rng = make_learner("s-ops", WORLD, 400, preset="sharpest"), np.random.default_rng(0)
    plan = learner.plan()
    learner.abandon(plan, "lost")
    other = learner.with_view(WORLD.with_thresholds(WORLD.thresholds + 0.1).view())
    other.resolve(played(plan, rng), plan)
    assert counts(other)["unknown_moves"].sum() == 0
    assert counts(learner)["unknown_moves"].sum() > 0
