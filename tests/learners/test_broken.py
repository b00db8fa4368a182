"""Learners whose episodes are not whole: safe whoever interferes and why, and the wrong ways that cannot be written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import to_bytes

import hedgerow as hr
from hedgerow.confidence.sets import cut
from hedgerow.learners.ops.absorb import MOST_REASONS, OTHERS
from hedgerow.model.episode import COUNTED, INDEPENDENT, UNKNOWN, decide, filled_costs

LAYOUT = hr.Layout((1, 2, 1), 2)
CHEAP, DEAR = 0.05, 0.45
THRESHOLD = 0.3
WORLD = hr.CMDP(
    LAYOUT,
    [0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0],
    hr.costs.BernoulliCosts(np.array([[CHEAP, DEAR] * 3])),
    [THRESHOLD],
)
VIEW = WORLD.view()
LOSS = np.array([1.0, 0.0] * 3)


def sops(seed: int, episodes: int, **options: Any) -> hr.SOPS:
    return hr.SOPS(
        VIEW, episodes, 0.05, "sharpest", seed, baseline=[1.0, 0.0] * 3, baseline_costs=[2 * CHEAP], **options
    )  # fmt: skip


def is_unsafe(plan: Any) -> bool:
    cost = 0.0
    for weight, policy in plan.mixture.policies():
        dear = policy.probabilities[1::2] @ [1.0, 0.5, 0.5]  # how often it is chosen
        cost += weight * (2 * CHEAP + dear * (DEAR - CHEAP))
    return bool(cost > THRESHOLD + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_a_dead_sensor_makes_no_episode_unsafe(seed: int) -> None:
    """Its costs were left out by the boxes and counted as 0 by the certificate: 2,276 to 2,300 of 4,000 were unsafe."""
    learner, rng, unsafe = sops(seed, 4000), np.random.default_rng(seed), 0
    for t in range(4000):
        plan = learner.plan()
        unsafe += is_unsafe(plan)
        rows = WORLD.play(plan.policy, rng)
        if t < 1500:
            learner.observe(rows.rows, LOSS[rows.rows], rows.costs)
        else:
            learner.observe(hr.Episode(VIEW, rows.rows, LOSS[rows.rows], unknown_costs=True))
    assert unsafe == 0
    assert learner.guarantees()["safety"].holds
    assert "2500 episodes with unknown values" in learner.guarantees()["regret"].void_because


def test_a_search_without_a_single_cost_never_ends() -> None:
    """It used to end after 169 episodes, with a margin of .15, and without one cost that counted."""
    learner, rng = hr.CVOPS(VIEW, 1000, 0.05, "sharpest"), np.random.default_rng(0)
    for _ in range(300):
        played = WORLD.play(learner.plan().policy, rng)
        learner.observe(hr.Episode(VIEW, played.rows, [0.0, 0.0], unknown_costs=True))
    assert (learner.phase, learner.t_bar) == (1, None)
    assert learner.margin == pytest.approx(THRESHOLD - 2.0)


# Interventions chosen by cost -----------------------------------------------------------------------------------------


def comonotone() -> hr.CMDP:
    """Two steps; all costs of an episode are equal, 0 or 1, with the mean of the dear action in both."""
    layout = hr.Layout((1, 1, 1), 2)
    matrices = np.array([[[0.0, 0.0, 0.0, 0.0]], [[0.0, 1.0, 0.0, 1.0]]])
    return hr.CMDP(layout, np.ones(4), hr.costs.EmpiricalCosts(matrices, [0.5, 0.5]), [0.5])


def stopped(world: hr.CMDP, way: str, seed: int, episodes: int) -> int:
    """Unsafe episodes of S-OPS if a person, who sees a cost of 1, takes over and does the cheap thing."""
    view, rng, unsafe = world.view(), np.random.default_rng(seed), 0
    learner = hr.SOPS(
        view, episodes, 0.05, "sharpest", seed, baseline=[1.0, 0.0, 1.0, 0.0], baseline_costs=[0.0]
    )  # fmt: skip
    for _ in range(episodes):
        plan = learner.plan()
        own = [policy.probabilities for _, policy in plan.mixture.policies()]
        weights = [weight for weight, _ in plan.mixture.policies()]
        unsafe += 0.5 * sum(w * (p[1] + p[3]) for w, p in zip(weights, own, strict=True)) > 0.5 + 1e-9
        played = world.play(plan.policy, rng)
        loss = 1.0 - played.rows % 2
        path = [int(played.rows[0]), 2]
        costs = [float(played.costs[0, 0]), 0.0]
        if costs[0] == 0.0 or way == "nobody":
            learner.observe(played.rows, loss, played.costs)
        elif way == "a false declaration":
            learner.observe(hr.Episode(view, path[:1], loss[:1], costs[:1], ended_in=1, independent="not true"))
        else:
            learner.observe(hr.Episode(view, path, loss, costs, overridden_from=1))
    return int(unsafe)


@pytest.mark.slow
def test_who_stops_because_of_costs_must_not_declare_otherwise() -> None:
    """The old advice, to leave such costs out, made 4,856 to 4,897 of 5,000 episodes unsafe. It takes a lie now."""
    world = comonotone()
    assert stopped(world, "a false declaration", 0, 1500) > 500
    assert stopped(world, "the truth", 0, 1500) == 0


def test_costs_that_do_not_count_cannot_be_said() -> None:
    with pytest.raises(TypeError, match="costs_count"):
        hr.Episode(VIEW, [0, 2], [0.0, 0.0], [0.0, 0.0], costs_count=False)  # type: ignore[call-arg]


# The decision ---------------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[hr.Episode, dict[str, Any]]] = {
    "ordinary": (hr.Episode(VIEW, [0, 2], [0, 0], [0, 0]), {"word": COUNTED, "moves": 2, "costs": 2, "planned": True}),
    "aborted": (
        hr.Episode(VIEW, [0], [0], [0], ended_in=1),
        {"word": UNKNOWN, "moves": 1, "costs": 1, "layer": 1, "states": [1], "closes": True},
    ),
    "aborted at once": (
        hr.Episode(VIEW, [], [], [], ended_in=0),
        {"word": UNKNOWN, "moves": 0, "costs": 0, "layer": 0, "states": [0], "moves_lost": False, "closes": True},
    ),
    "end unseen": (
        hr.Episode(VIEW, [0], [0], [0], end_unseen=True),
        {"word": UNKNOWN, "moves": 0, "costs": 1, "layer": 1, "states": [1, 2], "last_lost": True, "closes": True},
    ),
    "overridden": (
        hr.Episode(VIEW, [0, 2], [0, 0], [0, 0], overridden_from=1),
        {"word": UNKNOWN, "moves": 2, "costs": 1, "layer": 1, "states": [1], "closes": True, "planned": False},
    ),
    "missing": (
        hr.Episode.missing(VIEW),
        {"word": UNKNOWN, "moves": 0, "costs": 0, "layer": 0, "states": [0], "moves_lost": True, "closes": True},
    ),
    "a cost unknown": (
        hr.Episode(VIEW, [0, 2], [0, 0], [0, 0], unknown_costs=[False, True]),
        {"word": UNKNOWN, "moves": 2, "costs": 2, "layer": -1, "planned": True, "closes": False},
    ),
    "aborted, declared": (
        hr.Episode(VIEW, [0], [0], [0], ended_in=1, independent="x"),
        {"word": INDEPENDENT, "moves": 1, "costs": 1, "layer": -1, "skipped": True, "closes": False},
    ),
    "overridden, declared": (
        hr.Episode(VIEW, [0, 2], [0, 0], [0, 0], overridden_from=0, independent="x"),
        {"word": INDEPENDENT, "moves": 2, "costs": 2, "layer": -1, "skipped": True, "closes": False},
    ),
    "missing, declared": (
        hr.Episode.missing(VIEW, independent="x"),
        {"word": INDEPENDENT, "moves": 0, "costs": 0, "layer": -1, "skipped": True, "closes": False},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_decision_per_episode(name: str) -> None:
    episode, expected = CASES[name]
    found = decide(episode)
    for what, value in expected.items():
        given = getattr(found, what)
        assert (given.tolist() if isinstance(given, np.ndarray) else given) == value, what


def test_independent_costs_make_no_cost_after_a_cut_unknown() -> None:
    for name, word, costs in (("aborted", COUNTED, 1), ("overridden", COUNTED, 2), ("a cost unknown", UNKNOWN, 2)):
        found = decide(CASES[name][0], independent_costs=True)
        assert (found.word, found.costs, found.layer) == (word, costs, -1)
    assert decide(CASES["missing"][0], independent_costs=True).layer == 0


def test_costs_that_nobody_observed_count_as_1_up_to_the_ceiling() -> None:
    episode = hr.Episode(VIEW, [0], [0], [0.25], ended_in=1)
    filled, observed = filled_costs(episode, decide(episode))
    assert filled.tolist() == [[0.25], [1.0]]
    assert cut(filled.copy(), observed, np.array([2.0])).tolist() == [[0.25], [1.0]]
    assert cut(filled.copy(), observed, np.array([0.5])).tolist() == [[0.25], [0.25]]
    person = hr.Episode(VIEW, [0, 2], [0, 0], [0.25, 0.5], overridden_from=1)
    assert filled_costs(person, decide(person))[0].tolist() == [[0.25], [1.0]]
    missing = hr.Episode.missing(VIEW)
    assert filled_costs(missing, decide(missing))[0].tolist() == [[1.0], [1.0]]


# The certificate and the search ---------------------------------------------------------------------------------------


def after(learner: Any, count: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        played = WORLD.play(learner.plan().policy, rng)
        learner.observe(played.rows, LOSS[played.rows], played.costs)
    return learner


def own_plan(learner: Any) -> Any:
    """A plan of the learner's own policy; those of the baseline are played as they come."""
    rng = np.random.default_rng(9)
    while (plan := learner.plan()).branch != "own":
        played = WORLD.play(plan.policy, rng)
        learner.observe(played.rows, LOSS[played.rows], played.costs)
    return plan


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_closes_only_where_the_path_is_unknown(name: str) -> None:
    learner = after(sops(0, 20_000), 1200)
    aggregate = learner.core.state.aggregate
    assert (aggregate.generation >= 0).any()
    own_plan(learner)
    open_before = (aggregate.generation >= 0) & (aggregate.closed == 0)
    assert open_before.any()
    before, sums, cost = aggregate.numbers.own, aggregate.sums.copy(), aggregate.episodes.copy()
    learner.observe(CASES[name][0])
    counting = decide(CASES[name][0])
    assert bool((aggregate.closed[open_before] == 1).all()) == counting.closes
    counted = not counting.closes and not counting.skipped
    assert aggregate.numbers.own == before + counted
    np.testing.assert_array_equal(aggregate.episodes - cost, open_before * counted)
    if name == "a cost unknown":  # it counts as 1: V(x') <= 1 of the last step is 0
        assert np.all((aggregate.sums - sums)[open_before] >= 1.0)


def test_the_search_goes_on_after_episodes_that_are_not_whole() -> None:
    """X' and t, by hand; a declared one is neither in t nor in the mixture."""
    learner = hr.CVOPS(VIEW, 1000, 0.05, "sharpest")
    total, t, filled = 0.0, 0, 0
    for k, (name, (episode, _)) in enumerate(3 * list(CASES.items())):
        policy = learner.plan().policy.probabilities
        learner.observe(episode)
        if "declared" not in name:
            total += float(filled_costs(episode, decide(episode))[0].sum())
            t += 1
            filled += name != "ordinary"
            np.testing.assert_array_equal(learner.core.state.search.policies[t - 1], policy)
        search = learner.core.state.search
        assert (search.broken.filled, search.broken.skipped) == (filled, k + 1 - t)
        assert search.cost_sums[0] == pytest.approx(total)
        assert learner.margin == pytest.approx(THRESHOLD - total / max(1, t), abs=1e-12) or t == 0
    again = hr.load(_saved(learner))
    assert again.core.state.search.cost_sums[0] == learner.core.state.search.cost_sums[0]


def _saved(learner: Any) -> Any:
    import tempfile
    from pathlib import Path

    path = Path(tempfile.mkdtemp()) / "learner.npz"
    learner.save(path)
    return path


def test_what_a_search_with_gaps_does_not_promise() -> None:
    cheap = hr.CMDP(LAYOUT, WORLD.transitions, hr.costs.BernoulliCosts(np.full((1, 6), 0.01)), [1.5])
    learner = hr.CVOPS(cheap.view(), 1000, 0.05, "sharpest")
    rng, t = np.random.default_rng(0), 0
    while learner.phase == 1:
        played = cheap.play(learner.plan().policy, rng)
        t += 1
        if t == 3:
            learner.observe(hr.Episode(cheap.view(), played.rows[:1], [0.0], played.costs[:1], end_unseen=True))
        elif t == 4:
            learner.observe(hr.Episode.missing(cheap.view(), independent="power cut"))
        else:
            learner.observe(played.rows, [0.0, 0.0], played.costs)
        assert t < 900
    facts = learner.core.state.search.facts
    assert (learner.t_bar, facts.t_bar, len(learner.baseline_policies)) == (t, t - 1, t - 1)
    assert learner.core.state.search.broken.filled == 1
    assert learner.guarantees()["margin"].holds
    after_search = hr.load(_saved(learner))
    assert after_search.t_bar == t
    assert after_search.declared == {"power cut": 1}


# Actions drawn beforehand ---------------------------------------------------------------------------------------------


def test_actions_are_drawn_from_the_policy_and_kept_with_the_learner() -> None:
    learner = sops(0, 5000)
    plan = learner.plan()
    np.testing.assert_array_equal(plan.actions.numbers, hr.load(_saved(learner)).open_plans[0].actions.numbers)
    policy, drawn = np.array([0.25, 0.75, 0.0, 1.0, 0.5, 0.5]), []
    for episode in range(2000):
        from hedgerow.learners.api import drawn_actions

        drawn.append(drawn_actions(LAYOUT, policy, 3, episode).numbers)
    shares = np.mean(drawn, axis=0)
    np.testing.assert_allclose(shares, [0.75, 1.0, 0.5], atol=0.04)
    assert abs(np.corrcoef(np.array(drawn)[:, [0, 2]].T)[0, 1]) < 0.08


def test_actions_do_not_move_the_streams() -> None:
    one, other = sops(0, 100), sops(0, 100)
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(50):
        asked, plan = one.plan(), other.plan()
        assert asked.actions is asked.actions
        np.testing.assert_array_equal(asked.policy.probabilities, plan.policy.probabilities)
        for learner, stream in ((one, rng), (other, same)):
            played = WORLD.play(plan.policy, stream)
            learner.observe(played.rows, LOSS[played.rows], played.costs)
    assert to_bytes(one) == to_bytes(other)


def test_only_drawn_pairs_become_unknown_where_they_were_followed() -> None:
    learner = hr.SVOPS(VIEW, 1000, 0.05, "sharpest")
    plan = learner.plan()
    first = plan.actions.numbers[0]
    learner.observe(hr.Episode(VIEW, [first], [0.0], [0.0], ended_in=1, actions=plan.actions))
    expected = np.zeros(6)
    expected[2 + plan.actions.numbers[1]] = 1
    np.testing.assert_array_equal(learner.core.state.counts.unknown_costs[:, 0], expected)
    plan = learner.plan()
    other = 1 - plan.actions.numbers[0]
    episode = hr.Episode(VIEW, [other, 2], [0.0, 0.0], [0.0, 0.0], actions=plan.actions)
    assert episode.irregular is not None
    assert episode.irregular.overridden_from == 0  # an action that differs
    with pytest.raises(hr.errors.InvalidInput, match="not those of the plan"):
        learner.observe(hr.Episode.missing(VIEW, actions=type(plan.actions)(LAYOUT, 1 - plan.actions.numbers)))
    learner.observe(hr.Episode.missing(VIEW, actions=plan.actions))
    drawn = 2 * np.arange(3) + plan.actions.numbers
    expected[drawn] += 1
    np.testing.assert_array_equal(learner.core.state.counts.unknown_costs[:, 0], expected)
    np.testing.assert_array_equal(np.flatnonzero(learner.core.state.counts.unknown_moves), drawn)
    followed = hr.Episode(VIEW, [0, 2], [0.0, 0.0], [0.0, 0.0], actions=type(plan.actions)(LAYOUT, [0, 0, 1]))
    assert followed.irregular is None


def test_many_reasons_are_told_together() -> None:
    learner = hr.SVOPS(VIEW, 1000, 0.05, "sharpest")
    for t in range(MOST_REASONS + 3):
        learner.plan()
        learner.observe(hr.Episode.missing(VIEW, independent=f"reason {t}"))
    assert learner.declared[OTHERS] == 3
    assert sum(learner.declared.values()) == learner.logged["independent"] == MOST_REASONS + 3
    assert any("'reason 7'" in line for line in learner.guarantees().assumptions)
    assert not np.any(learner.core.state.counts.num_costs)


def test_learners_of_the_field_promise_nothing_with_unknown_values() -> None:
    learner = hr.field.DOPE(VIEW, 100, 0.05, baseline=[1.0, 0.0] * 3, baseline_costs=[2 * CHEAP])
    assert learner.guarantees()["safety"].holds
    rng = np.random.default_rng(0)
    for t in range(20):
        played = WORLD.play(learner.plan().policy, rng)
        learner.observe(hr.Episode.missing(VIEW) if t % 5 == 4 else played)
    assert "4 episodes with unknown values" in learner.guarantees()["safety"].void_because
    assert learner.statistics.num_unknown == 4
    again = hr.field.DOPE.restored(VIEW, learner.state())
    assert again.statistics.num_unknown == 4
