"""Policies and mixtures: frozen, answering by number and label, drawn as they say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.model.policy import UniformMixture

VIEW = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})


def test_a_policy_is_an_array_that_answers_by_label() -> None:
    policy = hr.Policy(VIEW, [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])  # a table
    flat = np.asarray(policy)
    np.testing.assert_array_equal(flat, [0.25, 0.75, 1.0, 0.0, 0.5, 0.5])
    assert policy["home", "go"] == policy[0, 1] == policy["home"][1] == 0.75
    np.testing.assert_array_equal(hr.Policy(VIEW.layout, policy).probabilities, flat)
    with pytest.raises(ValueError, match="read-only"):
        flat[0] = 1.0
    assert np.array(policy, dtype=np.float32).dtype == np.float32
    text = repr(policy)
    assert "state 'home' -> 'wait': 0.25, 'go': 0.75" in text
    back = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(back.probabilities, flat)
    for place, message in (("hom", "did you mean 'home'"), ("end", "no action is taken there"), (7, "at most 3")):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            policy[place]
    with pytest.raises(hr.errors.InvalidInput, match=r"layer 0, state 'home' sum to 1\.5"):
        hr.Policy(VIEW, [0.75, 0.75, 1.0, 0.0, 0.5, 0.5])
    with pytest.raises(hr.errors.InvalidInput, match="a layout, a view or a world is needed here"):
        hr.Policy(3, flat)


def test_actions_are_drawn_as_the_policy_says() -> None:
    policy, rng = hr.Policy(VIEW, [0.25, 0.75, 1.0, 0.0, 0.5, 0.5]), np.random.default_rng(0)
    drawn = [policy.draw("home", rng) for _ in range(4000)]
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.1875 / 4000)
    assert {policy.draw("empty", rng) for _ in range(100)} == {0}


def test_mixtures() -> None:
    own, safe = hr.Policy.uniform(VIEW), hr.Policy(VIEW, [1.0, 0.0] * 3)
    inner = hr.Mixture((0.5, own), (0.5, safe))
    mixture, rng = hr.Mixture((0.25, safe), (0.75, inner)), np.random.default_rng(0)
    drawn = [mixture.draw(rng) is own for _ in range(4000)]
    assert abs(np.mean(drawn) - 0.375) < 5 * np.sqrt(0.25 / 4000)
    assert [weight for weight, _ in mixture.policies()] == [0.25, 0.375, 0.375]
    for parts, message in (
        ((), "at least one part"),
        (((0.5, own),), "sum to 0.5, not 1"),
        (((0.5, own), (0.5, np.ones(6))), "a part of a mixture is"),
        (((1.5, own), (-0.5, safe)), "the weight of a part is 1.5"),
        (((0.5, own), (0.5, hr.Policy.uniform(hr.Layout((1, 1), 2)))), "different layouts"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.Mixture(*parts)  # type: ignore[arg-type]


def test_many_policies_in_one_array() -> None:
    table = np.stack([[1.0, 0.0] * 3, [0.0, 1.0] * 3, [0.5, 0.5] * 3])
    many, rng = UniformMixture(VIEW, table), np.random.default_rng(0)
    firsts = np.array([many.draw(rng)[0, 0] for _ in range(3000)])
    counts = np.array([np.sum(firsts == first) for first in table[:, 0]])
    assert np.all(np.abs(counts / 3000 - 1 / 3) < 5 * np.sqrt(2 / 9 / 3000))
    assert len(list(many.policies())) == 3
    with pytest.raises(hr.errors.InvalidInput, match="at least one policy"):
        UniformMixture(VIEW, np.zeros((0, 6)))
    with pytest.raises(hr.errors.InvalidInput, match="sum to 2"):
        UniformMixture(VIEW, np.ones((1, 6)))


def test_plans() -> None:
    own, safe = hr.Policy.uniform(VIEW), hr.Policy(VIEW, [1.0, 0.0] * 3)
    assert hr.Plan(own).policy is own
    mixture = hr.Mixture((0.5, own), (0.5, safe))
    assert hr.Plan(mixture, safe, {"mood": 1}).notes == {"mood": 1.0}
    with pytest.raises(TypeError):
        hr.Plan(own, notes={"mood": 1.0}).notes["mood"] = 2.0  # type: ignore[index]
    other = hr.Policy.uniform(hr.Layout((1, 1), 2))
    for arguments, message in (
        ((mixture,), "the policy that its coin chose"),
        ((np.ones(6),), "a Policy or a Mixture"),
        ((own, other), "different layouts"),
        ((own, own, {"a b": 1.0}), "a word of letters"),
        ((own, own, {"mood": "good"}), "must be a number"),
        ((own, np.ones(6)), "is a Policy, not"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.Plan(*arguments)  # type: ignore[arg-type]


def test_views_from_names() -> None:
    view = hr.View.of(
        [["x0"], ["empty", "need"], ["empty later", "need later"]],
        ["wait", "charge"],
        thresholds={"unserved": 0.1, "noise": 1.0},
        successors={("x0", "charge"): ["empty"], "empty": ["empty later"]},
    )
    layout = view.layout
    assert view.constraint_names == ("unserved", "noise")
    assert layout.layer_sizes == (1, 2, 2, 1)
    assert layout.num_triples == (2 + 1) + (1 + 1 + 2 + 2) + 4
    assert layout.state_labels[-1] == "end"
    assert layout.row("need later", "charge") == layout.num_rows - 1
    for arguments, message in (
        ((["x0"], ["a"], {}), "one list of names per layer"),
        (([["x0"], ["y", "y"]], ["a"], {}), "must be distinct"),
        (([["x0", "x1"]], ["a"], {}), "must have exactly one"),
        (([["x0"]], ["a"], [0.5]), "a mapping"),
        (([["x0"]], ["a"], {"cost": 2.0}), r"must lie in \[0, 1\]"),
        (([["x0"]], ["a"], {"cost": float("nan")}), "finite"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            hr.View.of(*arguments)  # type: ignore[arg-type]
    with pytest.raises(hr.errors.InvalidInput, match="it is not in layer 1"):
        hr.View.of([["x0"], ["y"]], ["a"], {}, successors={"x0": ["end"]})
    with pytest.raises(hr.errors.InvalidInput, match="no state 'x1'; known: x0, y, end"):
        hr.View.of([["x0"], ["y"]], ["a"], {}, successors={"x1": ["y"]})


LABELLED = hr.View.of([["home"], ["shop"]], ["walk", "drive"], thresholds={"fuel": 0.5})


def test_a_policy_from_names() -> None:
    mixed = hr.Policy.of(LABELLED, {"home": "drive", "shop": {"walk": 0.25, "drive": 0.75}})
    assert mixed.probabilities.tolist() == [0.0, 1.0, 0.25, 0.75]
    assert hr.Policy.of(LABELLED, "walk").probabilities.tolist() == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("wak", "did you mean 'walk'"),
        ({"home": "walk"}, "no action for layer 1, state 'shop'"),
        ({"home": "walk", "shop": "walk", "end": "walk"}, "no action is taken there"),
        ({"home": "walk", "shp": "walk"}, "did you mean 'shop'"),
        ({"home": "walk", "shop": {"walk": 0.5}}, "sum"),
        ({"home": "walk", "shop": {"walk": float("nan")}}, "probability of an action"),
        (["walk"], "choices are an action or a mapping"),
    ],
)
def test_mistakes_in_names_are_named(choices: object, message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.Policy.of(LABELLED, choices)  # type: ignore[arg-type]
