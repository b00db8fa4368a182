"""Label or position: the rule for one axis, and everything that follows it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.model.layout import Axis, value_of

PLANT: dict[str, Any] = {
    "state": ["on", "on"],
    "action": [1, 0],
    "next_state": ["end", "end"],
    "loss": [0.0, 1.0],
    "fault": [0.9, 0.05],
}


def plant() -> Any:
    """Its first action is called 1 and costs .9, its second one is called 0 and costs .05."""
    return hr.from_table(PLANT, thresholds={"fault": 0.3})


@pytest.mark.parametrize(
    "label", ["0", "7", "0456", "-1", "+1", "1.0", ".5", "1e3", "0x10", "0b1", "1_000", " 3 ", "nan"]
)
def test_what_looks_like_a_number(label: str) -> None:
    assert value_of(label) is not None


@pytest.mark.parametrize("label", ["", "one", "true", "1,5", "(0, 1)", "3 kW", "a1", "1a", "--1", "0x"])
def test_what_does_not(label: str) -> None:
    assert value_of(label) is None


def test_numbers_are_labels_on_the_whole_axis_or_on_none() -> None:
    """For every order of the labels, against a search by hand."""
    for labels in permutations(("1", "0", "off")):
        axis = Axis("action", labels)
        assert [axis.position(label) for label in labels] == [0, 1, 2]
        assert axis.position(1) == labels.index("1")
        assert axis.position(np.int32(0)) == labels.index("0")
        with pytest.raises(
            hr.errors.InvalidInput, match=r"no action 2: labels of actions look like numbers.*every number is a"
        ):
            axis.position(2)  # the position of some label, but no label
        assert [axis.position(axis.entry(i)) for i in range(3)] == [0, 1, 2]
    for labels in permutations(("slow", "fast", "off")):
        axis = Axis("action", labels)
        assert [axis.position(i) for i in range(3)] == [0, 1, 2]
        assert [axis.entry(i) for i in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("label", "given", "matches"),
    [
        ("1", 1, True), ("1", "1", True), ("1.0", 1.0, True), ("0.5", 0.5, True), ("-1", -1, True),
        ("1", np.int64(1), True), ("1", 1.0, False), ("1.0", 1, False), ("01", 1, False), ("1", "01", False),
        ("0x10", 16, False), ("1e3", 1000, False),
    ],
)  # fmt: skip
def test_a_number_matches_as_it_is_written_or_is_refused(label: str, given: Any, matches: bool) -> None:
    axis = Axis("state", ("start", label))
    if matches:
        assert axis.position(given) == 1
        return
    with pytest.raises(hr.errors.InvalidInput, match=f"no state .*'{label}' is written otherwise"):
        axis.position(given)


@pytest.mark.parametrize("given", [True, np.True_, None, (1,), b"1", 1.0])
def test_what_is_neither_label_nor_whole_number(given: Any) -> None:
    with pytest.raises(hr.errors.InvalidInput, match="must be a whole number"):
        Axis("state", ("a", "b")).position(given)


def test_files_without_types_write_positions_as_digits() -> None:
    assert Axis("state", 12).read("10") == 10
    assert Axis("state", ("a", "b")).read("1") == 1
    assert Axis("state", ("1", "0")).read("1") == 0
    for axis, text in ((Axis("state", 12), "010"), (Axis("state", 12), "0x1"), (Axis("state", ("1", "a")), "01")):
        with pytest.raises(hr.errors.InvalidInput, match="state"):
            axis.read(text)


def test_new_labels_make_a_new_axis() -> None:
    layout = hr.Layout((1, 1), 2).labelled(None, ["a", "b"])
    assert layout.action(1) == 1
    assert layout.labelled(None, ["1", "0"]).action(1) == 0
    assert layout.action(1) == 1


def test_policies_speak_of_actions_as_the_world_does() -> None:
    view = plant().view()
    for one in (1, "1"):
        assert hr.Policy.of(view, one).probabilities.tolist() == [1.0, 0.0]
        assert hr.Policy.of(view, {"on": one}).probabilities.tolist() == [1.0, 0.0]
        assert hr.Policy.of(view, {"on": {one: 1.0}})["on", one] == 1.0
    rng = np.random.default_rng(0)
    policy = hr.Policy.of(view, 1)
    drawn = policy.draw("on", rng)
    assert (drawn, policy.draw_position(0, rng)) == ("1", 0)
    episode = hr.Episode(view, [("on", drawn)], [0.0], [1.0])
    assert episode.rows.tolist() == [0]


def test_pairs_are_labels_and_rows_are_rows() -> None:
    view = plant().view()
    for path, row in (([("on", 1)], 0), ([("on", "0")], 1), ([(0, 1)], None), ([0], 0), (np.array([1]), 1)):
        if row is None:  # states have no labels that look like numbers: 0 is the first one
            row = 0
        assert hr.Episode(view, path, [0.0], [0.0]).rows.tolist() == [row]
    with pytest.raises(hr.errors.InvalidInput, match=r"no action 2: .*known: 1, 0"):
        hr.Episode(view, [("on", 2)], [0.0], [0.0])
    numbered = hr.View(hr.Layout((1, 1), 2).labelled(["5", "9"], ["1", "0"]), [0.5], ["fault"])
    assert hr.Episode(numbered, np.array([[5, 0]]), [0.0], [0.0]).rows.tolist() == [1]
    with pytest.raises(hr.errors.InvalidInput, match="no state 0"):
        hr.Episode(numbered, np.array([[0, 0]]), [0.0], [0.0])
    learner = hr.SVOPS(numbered, 10, 0.05, "paper")
    learner.plan()
    learner.observe([(5, 1)], [0.0], [1.0])
    assert learner.estimates.rows.column("visits").to_pylist() == [1, 0]


def test_views_of_names_that_are_numbers() -> None:
    view = hr.View.of(
        [["10"], ["20", "30"]], ["1", "0"], {"late": 0.5}, successors={10: ["30", 20], (10, 0): [20]}, end="99"
    )
    assert view.layout.num_triples == 7
    known = view.knowing(costs={"late": {(20, 0): 0.25}}, zero_costs=[(10, 1)])
    costs = known.knowledge.costs
    assert costs is not None
    assert costs[0, [0, 3]].tolist() == [0.0, 0.25]
    assert np.isnan(costs[0, [1, 2, 4, 5]]).all()


def test_knowledge_by_name() -> None:
    view = hr.View.of([["home"]], ["wait", "go"], {"late": 0.5, "fuel": 0.5})
    known = view.knowing(zero_costs={"fuel": [("home", "wait")]}).knowledge.costs
    assert known is not None
    assert np.isnan(known).tolist() == [[True, True], [False, True]]
    assert not view.knowing(zero_costs=[]).knowledge
    for wrong, message in (
        ({"zero_costs": [("home", "wiat")]}, "did you mean 'wait'"),
        ({"zero_costs": [("home",)]}, r"a pair \(state, action\)"),
        ({"zero_costs": {"fule": []}}, "no constraint 'fule'; did you mean 'fuel'"),
        ({"costs": {"fuel": {("home", "go"): 2.0}}}, "a known cost is 2.0"),
        ({"costs": {"fuel": [1.0]}}, "are a mapping"),
        ({"zero_costs": {"fuel": 3}}, "zero_costs of 'fuel' are a list of pairs"),
        ({"zero_costs": {"fuel": ("home", "wait")}}, r"a pair \(state, action\), not by 'home'"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            view.knowing(**wrong)  # type: ignore[arg-type]


def test_unrolled_processes_have_names() -> None:
    table = {
        "state": [3, 3, 1, 1],
        "action": ["1", "0", "1", "0"],
        "next_state": [1, 3, 1, 3],
        "fault": [0.5, 0.0, 0.5, 0.0],
    }
    world = hr.from_table(table, {"fault": 1.0}, steps=2, start=3)
    made = world.unrolled
    assert made is not None
    episode = made.episode([3, 1], [1, 0], [0.0, 0.0], [1.0, 0.0])
    assert [world.view().layout.describe_row(int(row)) for row in episode.rows] == [
        "layer 0, state '(0, 3)', action '1'",
        "layer 1, state '(1, 1)', action '0'",
    ]
    with pytest.raises(hr.errors.InvalidInput, match="no state 0"):
        made.episode([0, 1], [1, 0], [0.0, 0.0], [1.0, 0.0])


def test_names_are_no_truth_values() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="give names or whole numbers"):
        hr.from_table({**PLANT, "action": [True, False]}, thresholds={"fault": 0.3})
