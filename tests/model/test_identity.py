"""Episodes, policies and logs of another view: the same, reordered and read by name, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.model.view import View, find_triples

LAYERS = [["on"], ["warm", "cold"], ["day", "dusk", "night"]]
ACTIONS = ["wait", "charge", "stop"]
THRESHOLDS = {"peak": 0.5, "unserved": 0.2}
OURS = View.of(LAYERS, ACTIONS, THRESHOLDS, successors={("warm", "stop"): ["day"], "cold": ["dusk", "night"]})


def reordered(seed: int) -> View:
    """The same world, in which everything stands in another order."""
    rng = np.random.default_rng(seed)
    layers = [list(rng.permutation(layer)) for layer in LAYERS]
    actions = [str(name) for name in rng.permutation(ACTIONS)]
    names = [str(name) for name in rng.permutation(list(THRESHOLDS))]
    successors: Any = {"cold": ["night", "dusk"], ("warm", "stop"): ["day"]}
    return View.of(
        [[str(name) for name in layer] for layer in layers],
        actions,
        {name: THRESHOLDS[name] for name in names},
        successors=successors,
    )


def drawn(view: View, rng: np.random.Generator, **more: Any) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """A path by name, and what it cost, by the names of the constraints."""
    second = str(rng.choice(LAYERS[1]))
    action = str(rng.choice(ACTIONS))
    third = "day" if (second, action) == ("warm", "stop") else str(rng.choice(["dusk", "night"]))
    path = [("on", str(rng.choice(ACTIONS))), (second, action), (third, str(rng.choice(ACTIONS)))]
    return path, {name: rng.random(3) for name in THRESHOLDS}


def told(view: View, path: Any, costs: dict[str, Any], **more: Any) -> hr.Episode:
    table = np.column_stack([costs[name] for name in view.constraint_names])
    return hr.Episode(view, path, [0.5, 0.25, 0.0], table, **more)


@pytest.mark.parametrize("seed", range(8))
def test_a_reordered_episode_is_read_by_name(seed: int) -> None:
    """Against the same episode, written down in our terms."""
    theirs, rng = reordered(seed), np.random.default_rng(seed)
    for _ in range(5):
        path, costs = drawn(theirs, rng)
        losses, everything = rng.random(OURS.layout.num_rows), rng.random((OURS.layout.num_rows, 2))
        mine = told(OURS, path, costs, all_losses=losses, all_costs=everything)
        there = theirs.layout
        rows = [
            OURS.layout.row(there.state_labels[r // 3], there.action_labels[r % 3])  # type: ignore[index]
            for r in range(there.num_rows)
        ]
        order = [OURS.constraint_names.index(name) for name in theirs.constraint_names]
        foreign = told(theirs, path, costs, all_losses=losses[rows], all_costs=everything[rows][:, order])
        found = foreign.in_terms_of(OURS)
        for name in ("rows", "triples", "losses", "costs", "all_losses", "all_costs"):
            np.testing.assert_array_equal(getattr(found, name), getattr(mine, name))
        assert found.layout is OURS.layout
        assert mine.in_terms_of(OURS) is mine


@pytest.mark.parametrize("seed", range(3))
def test_learners_and_statistics_learn_it_by_name(seed: int) -> None:
    theirs, rng = reordered(seed), np.random.default_rng(seed)
    path, costs = drawn(theirs, rng)
    for kind in (hr.SVOPS, hr.field.OptCMDP):
        one, other = kind(OURS, 10, 0.05), kind(OURS, 10, 0.05)
        for learner, view in ((one, OURS), (other, theirs)):
            learner.plan()
            learner.observe(told(view, path, costs))
        np.testing.assert_array_equal(one.policy, other.policy)
        counts = [
            learner.core.state.counts if kind is hr.SVOPS else learner.seen.counts  # type: ignore[attr-defined]
            for learner in (one, other)
        ]
        np.testing.assert_array_equal(counts[0].cost_sums, counts[1].cost_sums)
        np.testing.assert_array_equal(counts[0].num_moves, counts[1].num_moves)
        assert counts[0].cost_sums.any()
    mine, foreign = hr.learners.Statistics(OURS, 10, 0.05), hr.learners.Statistics(OURS, 10, 0.05)
    mine.add(told(OURS, path, costs))
    foreign.add(told(theirs, path, costs))
    np.testing.assert_array_equal(mine.cost_sums, foreign.cost_sums)
    logs = [hr.Log.read(OURS, [told(view, path, costs)]) for view in (OURS, theirs)]
    assert logs[0].content_hash == logs[1].content_hash


WRONG: list[tuple[View, str]] = [
    (View.of(LAYERS, ["wait", "charge", "halt"], THRESHOLDS), r"its actions are 'halt'.*, not 'stop'"),
    (View.of([["on"], ["warm", "cool"], LAYERS[2]], ACTIONS, THRESHOLDS), r"its states are 'cool'.*, not 'cold'"),
    (View.of(LAYERS, ACTIONS, {"peak": 0.5, "missed": 0.2}), r"its constraints are 'missed'.*, not 'unserved'"),
    (View.of(LAYERS, ACTIONS, {"peak": 0.5}), "its constraints are 'peak', not 'unserved', 'peak'"),
    (View.of(LAYERS, ACTIONS, THRESHOLDS), "allows other transitions"),
    (View.of([["on"], ["day", "cold"], ["warm", "dusk", "night"]], ACTIONS, THRESHOLDS), "'day' is layer 2"),
    (View.of([["on"], ["warm", "cold", "day"], ["dusk", "night"]], ACTIONS, THRESHOLDS), "its layout is Layout"),
    (View(hr.Layout((1, 2, 3, 1), 3), [0.5, 0.2], tuple(THRESHOLDS)), "its states are without labels, not 'on'"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "message"), WRONG, ids=range(len(WRONG)))
def test_anything_else_is_refused_with_a_sentence(theirs: View, message: str) -> None:
    rows = theirs.layout.state_start[:3] * 3
    episode = hr.Episode(theirs, rows, np.zeros(3), np.zeros((3, theirs.num_constraints)))
    message = f"another world.*{message}"
    for learner in (hr.SVOPS(OURS, 10, 0.05, "paper"), hr.field.Uniform(OURS, 10), hr.field.OptCMDP(OURS, 10, 0.05)):
        learner.plan()
        with pytest.raises(hr.errors.InvalidInput, match=message):
            learner.observe(episode)
        assert len(learner.open_plans) == 1
        assert learner.episode == 0
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.learners.Statistics(OURS, 10, 0.05).add(episode)
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.Log.read(OURS, [episode])
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.SVOPS(OURS, 10, 0.05, "sharpest").absorb(hr.Log.read(theirs, [episode]))
    if theirs.num_constraints == 2 and "constraints" not in message:
        with pytest.raises(hr.errors.InvalidInput, match="another layout"):
            hr.Policy(OURS, hr.Policy.uniform(theirs))


def test_a_baseline_of_a_reordered_world_is_read_by_name() -> None:
    """By position it would charge where it is told to wait."""
    world = hr.View.of([["on"]], ["wait", "charge"], {"peak": 0.5})
    other = hr.View.of([["on"]], ["charge", "wait"], {"peak": 0.5})
    waiting = hr.SafePolicy(hr.Policy.of(other, "wait"), costs=[0.1])
    assert hr.SOPS(world, 100, 0.05, "paper", baseline=waiting).core.baseline.policies.tolist() == [[1.0, 0.0]]
    assert hr.field.AlwaysBaseline(world, 100, baseline=waiting).plan().policy["on", "wait"] == 1.0
    with pytest.raises(hr.errors.InvalidInput, match="different layouts"):
        hr.Mixture((0.5, hr.Policy.of(world, "wait")), (0.5, hr.Policy.of(other, "wait")))
    assert hr.learners.Statistics(world, 10, 0.05).robust_cost(hr.Policy.of(other, "wait")).shape == (1,)


def test_a_log_of_a_reordered_view_is_absorbed_by_name() -> None:
    theirs, rng = reordered(2), np.random.default_rng(2)
    pairs = [drawn(theirs, rng) for _ in range(20)]
    one, other = (hr.SVOPS(OURS, None, 0.05, "sharpest", horizon="doubling") for _ in range(2))
    mine = one.absorb(hr.Log.read(OURS, [told(OURS, *pair) for pair in pairs]))
    foreign = other.absorb(hr.Log.read(theirs, [told(theirs, *pair) for pair in pairs]))
    assert mine.content_hash == foreign.content_hash
    np.testing.assert_array_equal(one.core.state.counts.cost_sums, other.core.state.counts.cost_sums)
    np.testing.assert_array_equal(one.core.state.counts.num_moves, other.core.state.counts.num_moves)


def test_a_simulation_refuses_a_learner_of_a_reordered_view() -> None:
    lines = {
        "state": ["a", "a"],
        "action": ["x", "y"],
        "next_state": ["b", "b"],
        "loss": [0.0, 1.0],
        "c": [0.5, 0.0],
        "d": [0.0, 0.0],
    }
    world = hr.from_table(lines, {"c": 0.4, "d": 0.4})
    other = hr.View.of([["a"]], ["y", "x"], {"c": 0.4, "d": 0.4}, end="b")
    swapped = hr.View.of([["a"]], ["x", "y"], {"d": 0.4, "c": 0.4}, end="b")
    for view in (other, swapped):
        with pytest.raises(hr.errors.InvalidInput, match="built for another world"):
            hr.simulate(world, hr.SVOPS(view, 10, 0.05, "paper"), episodes=10)


def test_triples_are_found_in_any_layout() -> None:
    layout = OURS.layout
    found = find_triples(layout, layout.row_of_triple, layout.successor.astype(np.int64))
    np.testing.assert_array_equal(found, np.arange(layout.num_triples))
    assert find_triples(layout, np.array([0]), np.array([0])).tolist() == [-1]


def test_what_is_unknown_is_read_by_name_too() -> None:
    """Costs that nobody knows, and actions that were drawn beforehand, in a world that is reordered in all respects."""
    theirs = reordered(3)
    assert theirs.constraint_names != OURS.constraint_names or theirs.action_labels != OURS.action_labels
    actions = hr.SVOPS(OURS, 10, 0.05, "paper", seed=5).plan().actions
    there = actions.in_terms_of(theirs.layout)
    names = [state for layer in LAYERS for state in layer]
    assert [there[name] for name in names] == [actions[name] for name in names]
    assert there.in_terms_of(OURS.layout).numbers.tolist() == actions.numbers.tolist()
    path, missing = [("on", actions["on"])], {"peak": [False], "unserved": [True]}
    cut = {
        view: hr.Episode(
            view, path, [0.5], [[0.25, 0.25]], ended_in="cold", actions=actions,
            unknown_costs=np.column_stack([missing[name] for name in view.constraint_names]),
        )
        for view in (OURS, theirs)
    }  # fmt: skip
    found, mine = cut[theirs].in_terms_of(OURS), cut[OURS]
    assert found.irregular is not None
    assert mine.irregular is not None
    np.testing.assert_array_equal(found.irregular.unknown, mine.irregular.unknown)  # type: ignore[arg-type]
    assert found.irregular.actions is not None
    assert found.irregular.actions.numbers.tolist() == actions.numbers.tolist()
    np.testing.assert_array_equal(found.costs, mine.costs)
    logs = [hr.Log.read(view, [episode]).in_terms_of(OURS) for view, episode in cut.items()]
    np.testing.assert_array_equal(logs[0].gaps.unknown, logs[1].gaps.unknown)
    with pytest.raises(hr.errors.InvalidInput, match="another layout than the episode: its actions are"):
        hr.Episode(WRONG[0][0], [], [], np.zeros((0, 2)), ended_in="on", actions=actions)
