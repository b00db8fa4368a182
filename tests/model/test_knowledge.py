"""Knowledge: its normal form, everything that it refuses, its files; a world refuses what is not true of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.model.knowledge import ARRAYS, NOTHING, Knowledge, checked_knowledge
from hedgerow.storage import datafile

NAN = np.nan
LAYOUT = hr.Layout((1, 2, 2, 1), 2)
"""10 rows: 0 to 5 have two successors each (triples 0 to 11), 6 to 9 one (triples 12 to 15)"""
P = np.array([0.5, 0.5, 0.25, 0.75, 0.5, 0.5, 0.25, 0.75, 0.5, 0.5, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0])
G = np.array(
    [
        [0.0, 0.25, 0.5, 0.0, 0.5, 0.0, 0.25, 0.0, 0.25, 0.0],
        [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
    ]
)
SAME_P = np.array([0, 1, 0, 1, 0, 1, 6, 7, 8, 9])
SAME_G = np.array([0, 1, 2, 3, 2, 3, 6, 7, 6, 7])
NAMES = ("delay", "noise")
VIEW = hr.View(LAYOUT, [1.0, 2.0], NAMES)
ALL: dict[str, Any] = {
    "same_transitions": SAME_P,
    "same_costs": SAME_G,
    "independent_costs": True,
    "transitions": np.where(np.isin(LAYOUT.row_of_triple, [1, 3, 5]), P, NAN),
    "costs": np.where(G == 0.0, 0.0, NAN),
    "max_episode_cost": np.array([3.0, 2.0]),
}


def normal(**parts: Any) -> Knowledge:
    return checked_knowledge(LAYOUT, NAMES, parts)


def assert_equal(first: Knowledge, second: Knowledge) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


# The normal form ------------------------------------------------------------------------------------------------------


def test_labels_of_any_kind_become_the_first_row_of_each_class() -> None:
    labels = [7, 3, 7, 3, 7, 3, -1, -1, -5, 10**12]
    expected = []
    for row, label in enumerate(labels):
        twins = [other for other in range(10) if labels[other] == label and label >= 0]
        expected.append(min(twins, default=row))
    for given in (labels, np.array(labels), tuple(labels)):
        found = normal(same_transitions=given, same_costs=given)
        assert found.same_transitions is not None
        assert found.same_transitions.tolist() == expected == SAME_P.tolist()
        np.testing.assert_array_equal(found.same_costs, expected)
    assert normal(same_costs=np.array([200] * 10, dtype=np.uint8)).same_costs.tolist() == [0] * 10  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(5))
def test_random_labels_are_classes_of_equal_labels(seed: int) -> None:
    labels = np.random.default_rng(seed).integers(-2, 6, 10)
    found = normal(same_costs=labels).same_costs
    assert found is not None
    for one in range(10):
        for other in range(10):
            together = one == other or (labels[one] == labels[other] and labels[one] >= 0)
            assert (found[one] == found[other]) == together
        assert found[one] <= one


def test_what_says_nothing_is_nothing() -> None:
    empty = [
        {"same_transitions": np.arange(10)},
        {"same_costs": np.full(10, -1)},
        {"independent_costs": False},
        {"independent_costs": None},
        {"transitions": np.full(16, NAN)},
        {"costs": np.full((2, 10), NAN)},
        {"max_episode_cost": [3.0, 3.0]},
        {"max_episode_cost": {}},
    ]
    for parts in empty:
        found = normal(**parts)
        assert not found
        assert found.arrays() == {}
        assert_equal(found, NOTHING)
        assert found.described(LAYOUT, NAMES) == []
        assert VIEW.knowing(**parts).content_hash == VIEW.content_hash
    assert checked_knowledge(LAYOUT, NAMES, None) is NOTHING


@pytest.mark.parametrize("name", ALL)
def test_each_piece_alone_is_something(name: str) -> None:
    found = normal(**{name: ALL[name]})
    assert found
    assert list(found.arrays()) == [name]
    assert len(found.described(LAYOUT, NAMES)) in (1, 2)
    assert VIEW.knowing(**{name: ALL[name]}).content_hash != VIEW.content_hash


def test_the_normal_form_is_its_own_normal_form_and_cannot_be_written_to() -> None:
    found = normal(**ALL)
    assert_equal(found, checked_knowledge(LAYOUT, NAMES, found))
    assert_equal(found, checked_knowledge(LAYOUT, NAMES, found.arrays()))
    for array in found.arrays().values():
        if array.shape != (1,):
            assert not array.flags.writeable
    given = ALL["costs"].copy()
    known = normal(costs=given)
    given[:] = 0.5
    np.testing.assert_array_equal(known.costs, ALL["costs"])


def test_without_ties_the_rest_is_left() -> None:
    rest = normal(**ALL).without_ties()
    assert rest.same_transitions is None
    assert rest.same_costs is None
    for name in ("transitions", "costs", "max_episode_cost"):
        np.testing.assert_array_equal(getattr(rest, name), ALL[name])


def test_what_is_known_is_said_in_words() -> None:
    assert normal(**ALL).described(LAYOUT, NAMES) == [
        "6 pairs share 2 distributions of transitions",
        "8 pairs share 4 distributions of costs",
        "costs of one episode are independent of each other",
        "the transitions of 3 of 10 pairs are known",
        "'delay': the mean costs of 5 pairs are known, 5 of them as 0",
        "'noise': the mean costs of 4 pairs are known, 4 of them as 0",
        "an episode costs at most: 'delay' 3, 'noise' 2 (L = 3)",
    ]
    half = np.full((2, 10), NAN)
    half[1, :3] = [0.5, 0.0, 1.0]
    assert normal(costs=half).described(LAYOUT, NAMES) == [
        "'noise': the mean costs of 3 pairs are known, 1 of them as 0"
    ]


# Refusals -------------------------------------------------------------------------------------------------------------


def changed(name: str, place: Any, value: Any) -> dict[str, Any]:
    array = np.array(ALL[name])
    array[place] = value
    return {name: array}


def full_transitions(place: Any, value: Any) -> dict[str, Any]:
    array = P.copy()
    array[place] = value
    return {"transitions": array}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "labels of another length": ({"same_costs": SAME_G[:-1]}, r"same_costs are 10 whole numbers, .* shape \(9,\)"),
    "labels in a table": ({"same_costs": SAME_G.reshape(2, 5)}, r"shape \(2, 5\)"),
    "labels that are fractions": ({"same_transitions": SAME_P * 1.0}, "same_transitions are .* type float64"),
    "labels that are flags": ({"same_costs": SAME_G > 3}, "type bool"),
    "labels that are names": ({"same_costs": list("abcdefghij")}, "type <U1"),
    "labels that are masked": ({"same_costs": np.ma.masked_equal(SAME_G, 2)}, "mask"),
    "one label": ({"same_costs": 3}, r"shape \(\)"),
    "classes of different length": (
        {"same_transitions": [0, 1, 0, 1, 0, 1, 0, 7, 8, 9]},
        "layer 2, state 0, action 0 has 1 successors, layer 0, state 0, action 0 has 2: they cannot share",
    ),
    "independence in words": ({"independent_costs": "yes"}, "independent_costs must be True or False, not 'yes'"),
    "independence as a number": ({"independent_costs": 1}, "independent_costs must be True or False"),
    "independence twice": ({"independent_costs": [True, True]}, "independent_costs must be True or False"),
    "too few transitions": ({"transitions": P[:-1]}, r"has shape \(15,\), expected \(16,\)"),
    "a row of transitions in part": (
        full_transitions(0, NAN),
        "the transitions of layer 0, state 0, action 0 are known in part",
    ),
    "a last row in part": (full_transitions(10, NAN), "layer 1, state 1, action 1 are known in part"),
    "transitions beyond one": (full_transitions(3, 1.5), "the known transition probability is 1.5 .*must lie in"),
    "transitions below zero": (full_transitions(3, -0.25), "the known transition probability is -0.25"),
    "infinite transitions": (full_transitions(3, np.inf), "the known transition probability is inf"),
    "minus infinite transitions": (full_transitions(3, -np.inf), "the known transition probability is -inf"),
    "transitions that do not sum to one": (full_transitions(3, 0.5), "action 1 sum to 0.75, not 1"),
    "a sure row that is not sure": (full_transitions(15, 0.5), "sum to 0.5, not 1"),
    "transitions in words": ({"transitions": ["half"] * 16}, "the known transition probability"),
    "costs of one constraint": ({"costs": G[0]}, r"known costs have the shape \(2, 10\) .*, not \(10,\)"),
    "costs the other way round": ({"costs": G.T}, r"known costs have the shape \(2, 10\) .*, not \(10, 2\)"),
    "costs beyond one": (changed("costs", (1, 3), 1.01), "the known cost is 1.01 .*constraint 1, layer 1"),
    "costs below zero": (changed("costs", (0, 3), -0.5), "the known cost is -0.5 .*constraint 0, layer 1"),
    "infinite costs": (changed("costs", (0, 0), np.inf), "the known cost is inf"),
    "costs in words": ({"costs": "free"}, "the known costs"),
    "ceilings of three": ({"max_episode_cost": [1.0, 1.0, 1.0]}, r"the most that an episode costs has shape \(3,\)"),
    "a ceiling above L": ({"max_episode_cost": [1.0, 3.5]}, "the most that an episode costs is 3.5"),
    "a ceiling below zero": ({"max_episode_cost": [-1.0, 3.0]}, "the most that an episode costs is -1.0"),
    "a ceiling that is no number": ({"max_episode_cost": [NAN, 1.0]}, "the most that an episode costs is nan"),
    "an infinite ceiling": ({"max_episode_cost": [np.inf, 1.0]}, "the most that an episode costs is inf"),
    "a ceiling of another constraint": (
        {"max_episode_cost": {"dely": 1.0}},
        "max_episode_cost names 'dely'; .* 'delay', 'noise'",
    ),
    "ceilings in words": ({"max_episode_cost": "low"}, "max_episode_cost has one number per constraint"),
    "a named ceiling above L": ({"max_episode_cost": {"noise": 3.5}}, "the most that an episode costs is 3.5"),
    "known transitions that differ in a class": (
        {
            "same_transitions": SAME_P,
            "transitions": np.where(LAYOUT.row_of_triple == 2, [0.4, 0.6] * 8, P),
        },
        "the known transitions of layer 1, state 0, action 0 are not those of the pairs that it is tied to",
    ),
    "transitions known of half a class": (
        {"same_transitions": SAME_P, "transitions": np.where(LAYOUT.row_of_triple == 2, P, NAN)},
        "the known transitions of layer 1, state 0, action 0 are not those of the pairs that it is tied to",
    ),
    "transitions unknown of half a class": (
        {"same_transitions": SAME_P, "transitions": np.where(LAYOUT.row_of_triple == 2, NAN, P)},
        "the known transitions of layer 1, state 0, action 0",
    ),
    "known costs that differ in a class": (
        {"same_costs": SAME_G, **changed("costs", (1, 4), 0.25), "same_transitions": SAME_P},
        "the known costs of layer 1, state 1, action 0 are not those of the pairs that it is tied to",
    ),
    "costs known of half a class": (
        {"same_costs": SAME_G, **changed("costs", (0, 7), NAN)},
        "the known costs of layer 2, state 1, action 1",
    ),
    "a part that there is not": ({"rewards": [1.0]}, "knowledge has no part 'rewards'; it has same_transitions, "),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_known_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        normal(**parts)
    if "rewards" not in parts:
        with pytest.raises(hr.errors.InvalidInput, match=message):
            VIEW.knowing(**parts)
    world = hr.CMDP(LAYOUT, P, hr.costs.BernoulliCosts(G), [1.0, 2.0], constraint_names=NAMES)
    with pytest.raises(hr.errors.InvalidInput, match=message):
        world.with_knowledge(parts)


@pytest.mark.parametrize("given", [{"noise": NAN}, {"noise": "low"}, {"noise": [1.0, 2.0]}, {"noise": None}], ids=str)
def test_a_named_ceiling_that_is_no_number_is_refused(given: Any) -> None:
    with pytest.raises(hr.errors.InvalidInput, match="the most that an episode costs"):
        VIEW.knowing(max_episode_cost=given)
    with pytest.raises(hr.errors.InvalidInput, match="the most that an episode costs"):
        BERNOULLI.with_knowledge({"max_episode_cost": given})


# Views ----------------------------------------------------------------------------------------------------------------


def test_pieces_take_the_place_of_what_was_known_so_far() -> None:
    known = VIEW
    for name, value in ALL.items():
        known = known.knowing(**{name: value})
    assert_equal(known.knowledge, normal(**ALL))
    assert_equal(known.knowing().knowledge, known.knowledge)
    other = known.knowing(max_episode_cost=[2.0, 1.0], same_costs=np.full(10, -1), independent_costs=False)
    assert other.knowledge.max_episode_cost is not None
    assert other.knowledge.max_episode_cost.tolist() == [2.0, 1.0]
    assert other.knowledge.same_costs is None
    assert not other.knowledge.independent_costs
    np.testing.assert_array_equal(other.knowledge.same_transitions, SAME_P)
    assert not VIEW.knowledge
    assert (known.thresholds == VIEW.thresholds).all()
    assert known.constraint_names == NAMES


def test_zero_costs_are_a_mask_over_rows_or_over_both() -> None:
    zero = G == 0.0
    np.testing.assert_array_equal(VIEW.knowing(zero_costs=zero).knowledge.costs, np.where(zero, 0.0, NAN))
    of_rows = VIEW.knowing(zero_costs=(zero[0] & zero[1]).tolist()).knowledge.costs
    np.testing.assert_array_equal(of_rows, np.where(zero.all(axis=0), 0.0, NAN) * np.ones((2, 1)))
    first = np.full((2, 10), NAN)
    first[0, 2] = 0.5
    more = VIEW.knowing(costs=first).knowing(zero_costs=zero).knowledge.costs
    np.testing.assert_array_equal(more, np.where(zero, 0.0, first))
    together = VIEW.knowing(costs=first, zero_costs=zero).knowledge.costs
    np.testing.assert_array_equal(together, more)
    single = hr.View(LAYOUT, [1.0], ["delay"])
    np.testing.assert_array_equal(single.knowing(zero_costs=zero[0]).knowledge.costs, [np.where(zero[0], 0.0, NAN)])
    np.testing.assert_array_equal(single.knowing(costs=G[0], zero_costs=zero[0]).knowledge.costs, G[:1])


@pytest.mark.parametrize("mask", [np.zeros(10), np.zeros(9, dtype=bool), np.zeros((10, 2), dtype=bool), True, "all"])
def test_other_masks_are_refused(mask: Any) -> None:
    with pytest.raises(hr.errors.InvalidInput, match="zero_costs are True or False for each of the 10 pairs"):
        VIEW.knowing(zero_costs=mask)


def test_costs_of_another_shape_are_refused_with_a_mask_as_well() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="known cost"):
        VIEW.knowing(costs=np.zeros((3, 10)), zero_costs=np.ones(10, dtype=bool))


def test_ceilings_are_numbers_or_named() -> None:
    assert VIEW.ceilings.tolist() == [3.0, 3.0]
    assert VIEW.knowing(max_episode_cost={"noise": 1.5}).ceilings.tolist() == [3.0, 1.5]
    assert VIEW.knowing(max_episode_cost=[0.0, 3]).ceilings.tolist() == [0.0, 3.0]
    assert VIEW.knowing(max_episode_cost={"noise": 1.5}).knowing(max_episode_cost={"delay": 1.5}).ceilings.tolist() == [
        1.5,
        3.0,
    ]


@pytest.mark.parametrize(
    ("most", "thresholds", "binding"),
    [
        ([3.0, 3.0], [1.0, 2.0], [0, 1]),
        ([3.0, 2.0], [1.0, 2.0], [0]),  # a threshold at the ceiling cannot be violated
        ([0.5, 2.5], [1.0, 2.0], [1]),
        ([0.0, 0.0], [0.0, 0.0], []),
        ([3.0, 3.0], [3.0, 3.0], []),
    ],
)
def test_thresholds_bind_below_the_ceiling(most: list[float], thresholds: list[float], binding: list[int]) -> None:
    view = hr.View(LAYOUT, thresholds, NAMES).knowing(max_episode_cost=most)
    assert view.binding.tolist() == binding


# Files of views -------------------------------------------------------------------------------------------------------


def views() -> dict[str, hr.View]:
    labelled = hr.View.of([["home"], ["empty", "full"]], ["wait", "go"], thresholds={"delay": 0.5})
    sparse = hr.View.of([["home"], ["a", "b"]], ["x", "y"], {}, successors={("home", "x"): ["b"]})
    found = {"plain": VIEW, "labelled": labelled, "sparse": sparse, "everything": VIEW.knowing(**ALL)}
    found |= {name: VIEW.knowing(**{name: value}) for name, value in ALL.items()}
    found["sparse and known"] = sparse.knowing(transitions=[NAN, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    found["labelled and known"] = labelled.knowing(zero_costs=[True, False, True, True, True, True])
    return found


@pytest.mark.parametrize("name", views())
def test_a_file_gives_back_the_same_view(name: str, tmp_path: Path) -> None:
    view, path = views()[name], tmp_path / "view.hedge"
    view.save(path)
    for again in (hr.View.load(path), hr.load(path)):
        assert isinstance(again, hr.View)
        assert again.layout == view.layout
        np.testing.assert_array_equal(again.thresholds, view.thresholds)
        assert again.constraint_names == view.constraint_names
        assert (again.state_labels, again.action_labels) == (view.state_labels, view.action_labels)
        assert_equal(again.knowledge, view.knowledge)
        assert again.content_hash == view.content_hash
    with pytest.raises(hr.errors.InvalidInput, match="exists"):
        view.save(path)
    view.save(path, overwrite=True)


def test_content_hashes_tell_views_apart() -> None:
    found = [view.content_hash for view in views().values()]
    assert len(set(found)) == len(found)
    again = hr.View(LAYOUT, [1.0, 2.0], NAMES, knowledge=normal(**ALL))
    assert again.content_hash == views()["everything"].content_hash
    assert hr.View(LAYOUT, [1.0, 2.0], ["delay", "smell"]).content_hash != VIEW.content_hash
    assert hr.View(LAYOUT, [1.0, 1.0], NAMES).content_hash != VIEW.content_hash


def arrays_of(view: hr.View, tmp_path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    view.save(tmp_path / "sound", overwrite=True)
    data = datafile.load(tmp_path / "sound", hr.View.file_kind)
    return dict(data.meta), dict(data.arrays)


Damage = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


def put(name: str, value: Callable[[np.ndarray], np.ndarray]) -> Damage:
    return lambda meta, arrays: arrays.update({name: value(arrays[name])})


DAMAGES: dict[str, tuple[Damage, str]] = {
    "no thresholds": (lambda meta, arrays: arrays.pop("thresholds"), "lacks the entry 'thresholds'"),
    "no actions": (lambda meta, arrays: meta.pop("num_actions"), "lacks the entry 'num_actions'"),
    "another array": (lambda meta, arrays: arrays.update(more=np.zeros(2)), "view.more is unexpected"),
    "other knowledge": (lambda meta, arrays: arrays.update({"known.x": np.zeros(2)}), "view.known.x is unexpected"),
    "more metadata": (lambda meta, arrays: meta.update(note="x"), r"unexpected metadata \['note'\]"),
    "thresholds of another type": (put("thresholds", lambda a: a.astype(np.float32)), "view.thresholds"),
    "classes of another type": (put("known.same_costs", lambda a: a.astype(np.int32)), "view.known.same_costs"),
    "a flag that is a number": (put("known.independent_costs", lambda a: a.astype(np.int64)), "independent_costs"),
    "two flags": (put("known.independent_costs", lambda a: np.array([True, True])), "independent_costs"),
    "classes of different length": (put("known.same_transitions", lambda a: a * 0), "they cannot share"),
    "classes without an order": (put("known.same_costs", lambda a: a[:-1]), "same_costs are 10 whole numbers"),
    "transitions in part": (put("known.transitions", lambda a: np.where(np.arange(16) == 2, NAN, a)), "in part"),
    "transitions beyond one": (put("known.transitions", lambda a: 2.0 * a), "the known transition probability is"),
    "costs below zero": (put("known.costs", lambda a: a - 0.5), "the known cost is -0.5"),
    "costs in a row": (put("known.costs", lambda a: a.ravel()), "known costs have the shape"),
    "ceilings above L": (put("known.max_episode_cost", lambda a: a + 5.0), "the most that an episode costs is"),
    "ceilings of one": (put("known.max_episode_cost", lambda a: a[:1]), "the most that an episode costs has shape"),
    "ceilings in a table": (
        put("known.max_episode_cost", lambda a: a[None]),
        "view.known.max_episode_cost is unexpected",
    ),
    "too many layers": (put("layer_sizes", lambda a: np.array([1, 10**6, 10**6, 1])), "does not describe a view"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_describes_no_view_is_refused(damage: Damage, message: str, tmp_path: Path) -> None:
    meta, arrays = arrays_of(VIEW.knowing(**ALL), tmp_path)
    damage(meta, arrays)
    (tmp_path / "damaged").write_bytes(datafile.pack(hr.View.file_kind, hr.View.file_version, meta, arrays))
    for read in (hr.View.load, hr.load):
        with pytest.raises(hr.errors.FileFormatError, match=message) as error:
            read(tmp_path / "damaged")
        assert "\n" not in str(error.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "view"
    VIEW.save(path)
    blob = path.read_bytes()
    (tmp_path / "short").write_bytes(blob[: len(blob) // 2])
    (tmp_path / "bit").write_bytes(blob[:200] + bytes([blob[200] ^ 1]) + blob[201:])
    for name in ("short", "bit"):
        with pytest.raises(hr.errors.FileFormatError):
            hr.View.load(tmp_path / name)
    data = datafile.unpack(blob)
    (tmp_path / "newer").write_bytes(datafile.pack("view", hr.View.file_version + 1, data.meta, data.arrays))
    with pytest.raises(hr.errors.FileFormatError, match="has schema version 2; this release reads"):
        hr.View.load(tmp_path / "newer")
    hr.CMDP(LAYOUT, P).save(tmp_path / "world")
    with pytest.raises(hr.errors.FileFormatError, match="cmdp"):
        hr.View.load(tmp_path / "world")
    with pytest.raises(hr.errors.FileFormatError, match="view"):
        hr.CMDP.load(path)


# Worlds ---------------------------------------------------------------------------------------------------------------

BERNOULLI = hr.CMDP(LAYOUT, P, hr.costs.BernoulliCosts(G), [1.0, 2.0], constraint_names=NAMES)
FIXED = hr.CMDP(LAYOUT, P, hr.costs.DeterministicCosts(G), [1.0, 2.0], constraint_names=NAMES)


def test_a_world_tells_learners_what_is_true_of_it() -> None:
    world = BERNOULLI.with_knowledge(ALL)
    assert_equal(world.view().knowledge, normal(**ALL))
    assert_equal(world.with_thresholds([0.5, 0.5]).view().knowledge, normal(**ALL))
    assert not world.with_knowledge(None).knowledge
    assert not BERNOULLI.knowledge


def test_the_hash_of_a_world_is_what_it_was_without_knowledge(tmp_path: Path) -> None:
    """The content of a world of which nothing is known has no entry for knowledge, so old files and hashes stay."""
    assert BERNOULLI.with_knowledge({"same_costs": np.arange(10)}).content_hash == BERNOULLI.content_hash
    assert BERNOULLI.with_knowledge(ALL).with_knowledge(None).content_hash == BERNOULLI.content_hash
    arrays = {
        "layer_sizes": np.array([1, 2, 2, 1]),
        "transitions": P,
        "thresholds": np.array([1.0, 2.0]),
        "costs.means": G,
    }
    meta = {
        "num_actions": 2,
        "cost_kind": "bernoulli",
        "constraint_names": NAMES,
        "state_labels": None,
        "action_labels": None,
    }
    assert BERNOULLI.content_hash == datafile.content_hash("cmdp", 1, meta, arrays)
    hashes = [BERNOULLI.with_knowledge({name: value}).content_hash for name, value in ALL.items()]
    assert len({BERNOULLI.content_hash, BERNOULLI.with_knowledge(ALL).content_hash, *hashes}) == 2 + len(ALL)


@pytest.mark.parametrize("name", [*ALL, "all"])
def test_a_file_of_a_world_keeps_its_knowledge(name: str, tmp_path: Path) -> None:
    world = BERNOULLI.with_knowledge(ALL if name == "all" else {name: ALL[name]})
    world.save(tmp_path / "world")
    again = hr.load(tmp_path / "world")
    assert isinstance(again, hr.CMDP)
    assert_equal(again.knowledge, world.knowledge)
    assert again.content_hash == world.content_hash
    assert again.view().content_hash == world.view().content_hash


def test_a_file_of_a_world_with_false_knowledge_is_refused(tmp_path: Path) -> None:
    data = datafile.unpack(BERNOULLI.with_knowledge(ALL).to_bytes())
    arrays = {**data.arrays, "transitions": np.where(LAYOUT.row_of_triple == 2, [0.4, 0.6] * 8, P)}
    with pytest.raises(hr.errors.FileFormatError, match="same_transitions are not true of this world"):
        hr.CMDP.from_bytes(datafile.pack("cmdp", 1, data.meta, arrays))


FALSE: dict[str, tuple[dict[str, Any], str]] = {
    "rows with another law": (
        {"same_transitions": [0, 0, -1, -1, -1, -1, -1, -1, -1, -1]},
        "same_transitions are not true of this world: layer 0, state 0, action 1 differs",
    ),
    "rows with other costs": (
        {"same_costs": [-1, -1, -1, -1, -1, -1, 5, -1, -1, 5]},
        "same_costs are not true of this world: layer 2, state 1, action 1 differs",
    ),
    "equal costs of one constraint only": (
        {"same_costs": [4, 4, -1, -1, -1, -1, -1, -1, -1, -1]},
        "same_costs are not true of this world: layer 0, state 0, action 1 differs",
    ),
    "other transitions": (
        {"transitions": np.where(LAYOUT.row_of_triple == 5, [0.3, 0.7] * 8, NAN)},
        "the known transitions are not true of this world: layer 1, state 1, action 1 differs",
    ),
    "a slightly other probability": (
        {"transitions": np.where(LAYOUT.row_of_triple == 0, [0.5 + 1e-8, 0.5 - 1e-8] * 8, NAN)},
        "the known transitions are not true of this world: layer 0, state 0, action 0",
    ),
    "other costs": (
        {"costs": np.where(np.arange(20).reshape(2, 10) == 13, 0.25, NAN)},
        "the known costs are not true of this world: layer 1, state 0, action 1 differs",
    ),
    "a cost that is not 0": (
        {"costs": np.where(np.arange(20).reshape(2, 10) == 1, 0.0, NAN)},
        "the known costs are not true of this world: layer 0, state 0, action 1 differs",
    ),
}


@pytest.mark.parametrize(("parts", "message"), FALSE.values(), ids=FALSE)
@pytest.mark.parametrize("world", [BERNOULLI, FIXED], ids=["bernoulli", "deterministic"])
def test_a_world_refuses_what_is_false(world: hr.CMDP, parts: dict[str, Any], message: str) -> None:
    VIEW.knowing(**parts)  # without a world it might be true
    with pytest.raises(hr.errors.InvalidInput, match=message):
        world.with_knowledge(parts)


def largest_by_paths(world: hr.CMDP, amounts: np.ndarray) -> float:
    """The largest sum of `amounts` (num_rows,) over all paths with positive probability, one by one."""
    layout, best, open_paths = world.layout, 0.0, [(0, 0.0)]
    while open_paths:
        state, total = open_paths.pop()
        if state == layout.num_states - 1:
            best = max(best, total)
            continue
        for action in range(layout.num_actions):
            row = state * layout.num_actions + action
            for j in range(layout.row_start[row], layout.row_start[row + 1]):
                if world.transitions[j] > 0.0:
                    open_paths.append((int(layout.successor[j]), total + amounts[row]))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["bernoulli", "deterministic"])
def test_a_ceiling_is_true_from_the_dearest_possible_path_on(kind: str, seed: int) -> None:
    """Transitions of probability 0 do not count; a drawn cost may be 1 wherever its mean is positive."""
    rng = np.random.default_rng(seed)
    layout = hr.Layout((1, 3, 2, 3, 1), 2)
    p = rng.exponential(size=layout.num_triples) * (rng.random(layout.num_triples) < 0.6)
    for start, stop in zip(layout.row_start[:-1], layout.row_start[1:], strict=True):
        p[start] += p[start:stop].sum() == 0.0
        p[start:stop] /= p[start:stop].sum()
    means = rng.random((1, layout.num_rows)) * (rng.random(layout.num_rows) < 0.5)
    costs = hr.costs.BernoulliCosts(means) if kind == "bernoulli" else hr.costs.DeterministicCosts(means)
    world = hr.CMDP(layout, p, costs, [1.0])
    most = largest_by_paths(world, means[0] if kind == "deterministic" else (means[0] > 0.0) * 1.0)
    assert world.with_knowledge({"max_episode_cost": [min(4.0, most)]}).view().ceilings[0] == min(4.0, most)
    with pytest.raises(
        hr.errors.InvalidInput, match=r"an episode can cost .* of constraint 0, more than max_episode_cost = "
    ):
        world.with_knowledge({"max_episode_cost": [most - 1e-6]})
