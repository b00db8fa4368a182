"""Episodes: from rows, from pairs by number or label, complete, aborted or overridden; nothing unsound gets in."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hedgerow as hr

VIEW = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
TWO = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5, "noise": 1.0})


def test_three_ways_to_say_the_same() -> None:
    costs = [[0.0], [1.0]]
    episodes = [
        hr.Episode(VIEW, [1, 4], [0.5, 0.0], costs),
        hr.Episode(VIEW, [(0, 1), (2, 0)], [0.5, 0.0], [0.0, 1.0]),
        hr.Episode(VIEW, [("home", "go"), ("full", "wait")], [0.5, 0.0], costs),
        hr.Episode(VIEW, np.array([[0, 1], [2, 0]]), [0.5, 0.0], costs),
    ]
    for episode in episodes:
        assert episode.rows.tolist() == [1, 4]
        assert VIEW.layout.successor[episode.triples].tolist() == [2, 3]
        assert episode.costs.shape == (2, 1)
        assert episode.complete
        assert not episode.overridden
        with pytest.raises(ValueError, match="read-only"):
            episode.costs[0] = 1.0
    assert "state 'full', action 'wait'" in repr(episodes[0])


def test_aborted_and_overridden() -> None:
    aborted = hr.Episode(VIEW, [("home", "go")], [0.5], [0.0], ended_in="full")
    assert not aborted.complete
    assert VIEW.layout.successor[aborted.triples].tolist() == [2]
    assert "aborted" in repr(aborted)
    assert hr.Episode(VIEW, [1, 4], [0.5, 0.0], [0.0, 1.0], overridden_from=1).overridden


BAD: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "too short": (([1], [0.5], [0.0]), {}, "1 of 2 steps; if it was aborted, say where"),
    "no steps": (([], [], []), {}, "0 of 2 steps; if it was aborted, say where"),
    "no steps, yet far": (([], [], []), {"ended_in": "full"}, "without steps cannot have ended in layer 1"),
    "an end twice": (([1], [0], [0]), {"ended_in": "full", "end_unseen": True}, "no ended_in"),
    "overridden by a word": (
        ([1, 4], [0, 0], [0, 0]),
        {"overridden_from": True},
        "the first step, counted from 0, whose action",
    ),
    "overridden later": (([1, 4], [0, 0], [0, 0]), {"overridden_from": 2}, "the episode has the steps 0 to 1"),
    "flags that are numbers": (([1, 4], [0, 0], [0, 0]), {"unknown_costs": [0, 1]}, "unknown_costs is True, or flags"),
    "too few flags": (([1, 4], [0, 0], [0, 0]), {"unknown_costs": [True]}, r"flags of the shape \(2, 1\)"),
    "a reason without words": (([1], [0], [0]), {"ended_in": "full", "independent": " "}, "the reason, in words"),
    "a reason for nothing": (
        ([1, 4], [0, 0], [0, 0]),
        {"independent": "power cut"},
        "nothing of this episode is",
    ),
    "actions that are none": (([1, 4], [0, 0], [0, 0]), {"actions": [0, 1]}, "actions are plan.actions"),
    "an unknown cost that is NaN": (([1, 4], [0, 0], [0, np.nan]), {"unknown_costs": [False, True]}, "the cost is nan"),
    "complete, yet ended": (([1, 4], [0, 0], [0, 0]), {"ended_in": "full"}, "leave out ended_in"),
    "another layer": (([1, 1], [0, 0], [0, 0]), {}, "step 1 of the trajectory is row 1"),
    "no row": (([1, 99], [0, 0], [0, 0]), {}, "row 99; layer 1 has the rows 2 to 5"),
    "fractions": (([1.0, 4.0], [0, 0], [0, 0]), {}, "whole numbers"),
    "a wrong label": (([("home", "went"), ("full", "wait")], [0, 0], [0, 0]), {}, "no action 'went'"),
    "loss shape": (([1, 4], [0.0], [0, 0]), {}, r"the loss has shape \(1,\), expected \(2,\)"),
    "loss range": (([1, 4], [0.0, 2.0], [0, 0]), {}, "the loss is 2.0 at index 1"),
    "NaN": (([1, 4], [0.0, np.nan], [0, 0]), {}, "the loss is nan"),
    "no costs": (([1, 4], [0, 0]), {}, "the costs of the 1 constraints .* are missing"),
    "costs of three": (([1, 4], [0, 0], np.zeros((2, 3))), {}, r"the cost has shape \(2, 3\)"),
    "all losses": (([1, 4], [0, 0], [0, 0]), {"all_losses": np.zeros(3)}, "the loss of all pairs has shape"),
}


@pytest.mark.parametrize(("arguments", "options", "message"), BAD.values(), ids=BAD)
def test_what_is_unsound_is_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.Episode(VIEW, *arguments, **options)


def test_one_list_of_costs_is_not_enough_for_two_constraints() -> None:
    with pytest.raises(hr.errors.InvalidInput, match=r"the cost has shape \(2,\), expected \(2, 2\)"):
        hr.Episode(TWO, [1, 4], [0.0, 0.0], [0.0, 0.0])


def test_a_path_that_the_support_forbids() -> None:
    view = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], {}, successors={("home", "go"): ["empty"]})
    with pytest.raises(hr.errors.InvalidInput, match="state 'home', action 'go' cannot lead to layer 1, state 'full'"):
        hr.Episode(view, [("home", "go"), ("full", "wait")], [0.0, 0.0])


@pytest.mark.parametrize("kind", ["sv-ops", "s-ops", "uob-reps", "cv-ops"])
def test_overridden_episodes_teach_the_confidence_sets_alone(kind: str) -> None:
    from learner_cases import make_learner, random_world

    world = random_world(0)
    learner = make_learner(kind, world, 100)
    plan = learner.plan()
    view, rows = world.view(), [int(np.argmax(plan.policy.probabilities[:2])), 2, 8]
    assert plan.episode == 0
    learner.observe(hr.Episode(view, rows, np.ones(3), np.ones((3, 2)), overridden_from=1))
    counts = learner.core.state.counts
    assert counts.num_visits[rows].tolist() == [1, 1, 1]
    assert counts.cost_sums[rows].tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert counts.unknown_costs[rows[0]].tolist() == [0, 0]
    possible = plan.policy.probabilities[2:4] > 0.0  # in the state in which somebody took over
    assert counts.unknown_costs[2:4].tolist() == [[int(p)] * 2 for p in possible]
    assert (learner.logged["off_policy"], learner.logged["unknown"]) == (1, 1)
    assert any("1 own episodes did not follow their plans" in line for line in learner.guarantees().assumptions)
    np.testing.assert_array_equal(learner.core.buffers.trace.estimate, np.zeros(3))
    assert learner.plan().episode == 1


def described() -> dict[str, hr.Episode]:
    actions = hr.SVOPS(TWO, 10, 0.05).plan().actions
    path, losses, costs = [("home", "go"), ("full", "wait")], [0.1, 0.7], [[0.1, 0.0], [1.0, 1.0 / 3.0]]
    return {
        "whole": hr.Episode(TWO, path, losses, costs),
        "aborted": hr.Episode(TWO, path[:1], losses[:1], costs[:1], ended_in="full"),
        "no steps": hr.Episode(TWO, [], [], ended_in="home", independent="power cut"),
        "unseen": hr.Episode(TWO, path[:1], losses[:1], costs[:1], end_unseen=True, actions=actions),
        "overridden": hr.Episode(TWO, path, losses, costs, overridden_from=1),
        "unknown": hr.Episode(TWO, path, losses, costs, unknown_costs=[[False, True], [False, False]]),
        "missing": hr.Episode.missing(TWO, actions=actions),
        "full": hr.Episode(TWO, path, losses, costs, all_losses=np.full(6, 0.5), all_costs=np.full((6, 2), 0.25)),
        "numbered": hr.Episode(NUMBERED, [(7, 1)], [0.5], [0.5], ended_in=9),
    }


NUMBERED = hr.View.of([["7"], ["8", "9"]], ["1", "0"], thresholds={"delay": 0.5})
"""Labels that look like numbers: a number is a label there, not a position."""


@pytest.mark.parametrize("name", described())
def test_an_episode_comes_back_from_json_as_it_was(name: str) -> None:
    one, view = described()[name], NUMBERED if name == "numbered" else TWO
    other = hr.Episode.from_dict(view, json.loads(json.dumps(one.to_dict(), allow_nan=False)))
    for part in ("rows", "triples", "losses", "costs", "all_losses", "all_costs"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert repr(one) == repr(other)
    assert one.to_dict() == other.to_dict()


def test_a_description_of_no_episode_is_refused() -> None:
    good = described()["unknown"].to_dict()
    for change in (
        {"path": None},
        {"losses": "x"},
        {"costs": [1.0]},
        {"more": 1},
        {"actions": "go"},
        {"path": [1, 99]},
    ):
        with pytest.raises(hr.errors.InvalidInput):
            hr.Episode.from_dict(TWO, good | change)
    with pytest.raises(hr.errors.InvalidInput, match="no episode"):
        hr.Episode.from_dict(TWO, {})
