"""The world: what it accepts, what it refuses and in which words, what a learner sees, and its file."""

import zipfile

import numpy as np
import pytest
from naive_model import random_cmdp, random_layout, random_transitions

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts, BetaCosts, DeterministicCosts, EmpiricalCosts
from hedgerow.model.layout import Layout
from hedgerow.storage import datafile

LAYOUT = Layout((1, 2, 1), 2)  # 6 rows; triples: 2 rows with 2 successors, 4 rows with 1
P = np.array([0.5, 0.5, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0])
COSTS = BernoulliCosts(np.full((2, 6), 0.5))


def changed(array: np.ndarray, index: int, value: float) -> np.ndarray:
    result = array.copy()
    result[index] = value
    return result


def worlds() -> list[CMDP]:
    rng = np.random.default_rng(5)
    layout = random_layout(rng)
    p, rows = random_transitions(rng, layout), layout.num_rows
    labels = {
        "state_labels": [f"s{i}" for i in range(layout.num_states)],
        "action_labels": [f"a{i}" for i in range(layout.num_actions)],
    }
    return [
        CMDP(LAYOUT, P),
        CMDP(LAYOUT, P, COSTS, [0.5, 1.5], constraint_names=["Zeit", "größe"]),
        CMDP(layout, p, BetaCosts(rng.random((1, rows)) + 1, rng.random((1, rows)) + 1), [0.0], **labels),
        CMDP(layout, p, EmpiricalCosts(rng.random((4, 2, rows)), [0.5, 0.0, 0.25, 0.25]), [0.5, 1.0]),
        CMDP(layout, p, DeterministicCosts(rng.random((3, rows))), rng.random(3)),
        random_cmdp(rng, constraints=1),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_file_gives_back_the_same_world(number: int, tmp_path) -> None:
    world = worlds()[number]
    world.save(tmp_path / "world.hedge")
    again = CMDP.load(tmp_path / "world.hedge")
    assert again.layout == world.layout
    np.testing.assert_array_equal(again.transitions, world.transitions)
    np.testing.assert_array_equal(again.mean_costs, world.mean_costs)
    np.testing.assert_array_equal(again.thresholds, world.thresholds)
    assert type(again.costs) is type(world.costs)
    assert again.constraint_names == world.constraint_names
    assert (again.state_labels, again.action_labels) == (world.state_labels, world.action_labels)
    assert again.content_hash == world.content_hash


def test_content_hashes_tell_worlds_apart() -> None:
    base = CMDP(LAYOUT, P, COSTS, [0.5, 1.5])
    others = [
        CMDP(LAYOUT, P, COSTS, [0.5, 1.25]),
        CMDP(LAYOUT, changed(changed(P, 0, 0.25), 1, 0.75), COSTS, [0.5, 1.5]),
        CMDP(LAYOUT, P, DeterministicCosts(COSTS.means), [0.5, 1.5]),
        CMDP(LAYOUT, P, COSTS, [0.5, 1.5], constraint_names=["a", "b"]),
    ]
    assert len({world.content_hash for world in (base, *others)}) == 5
    assert base.with_thresholds([0.5, 1.25]).content_hash == others[0].content_hash


def test_the_content_hash_does_not_cover_the_container(monkeypatch) -> None:
    """Releases of Python write different zip files for the same content."""
    world = CMDP(LAYOUT, P, COSTS, [0.5, 1.5], constraint_names=["Zeit", "größe"])
    before, blob = world.content_hash, world.to_bytes()
    member = datafile._member

    def newer(name: str) -> zipfile.ZipInfo:
        info = member(name)
        info.create_version = 63
        return info

    monkeypatch.setattr(datafile, "_member", newer)
    assert world.to_bytes() != blob
    assert world.content_hash == before == "c2a3d89206ab47b44f31352c7aea667800a364cc13d1d08bceefdec01163d745"


def test_a_learner_sees_neither_transitions_nor_costs() -> None:
    view = CMDP(LAYOUT, P, COSTS, [0.5, 1.5], action_labels=["stay", "go"]).view()
    assert view.layout == LAYOUT
    assert view.thresholds.tolist() == [0.5, 1.5]
    assert view.constraint_names == ("cost 1", "cost 2")
    assert view.action_labels == ("stay", "go")
    assert view.num_constraints == 2
    assert not {"transitions", "costs", "mean_costs"} & set(dir(view))


def test_the_caller_keeps_no_way_to_change_a_world() -> None:
    p, thresholds = P.copy(), np.array([0.5, 1.5])
    world = CMDP(LAYOUT, p, COSTS, thresholds)
    before = world.content_hash
    p[:], thresholds[:] = 0.0, 0.0
    assert world.content_hash == before
    base = P.copy()
    seemingly_frozen = base.view()
    seemingly_frozen.setflags(write=False)
    world = CMDP(LAYOUT, seemingly_frozen)
    base[:] = 0.0
    np.testing.assert_array_equal(world.transitions, P)


def test_thresholds_at_both_ends_are_allowed_and_no_constraint_is_too() -> None:
    assert CMDP(LAYOUT, P, COSTS, [0.0, 2.0]).thresholds.tolist() == [0.0, 2.0]
    assert CMDP(LAYOUT, P).num_constraints == 0
    assert repr(CMDP(LAYOUT, P)).startswith("CMDP(Layout(layers=(1, 2, 1), actions=2")


TWO = [0.5, 1.5]
BAD = [
    (lambda: CMDP("layout", P), "layout must be a hedgerow Layout, not str"),
    (
        lambda: CMDP(LAYOUT, changed(P, 2, np.nan)),
        "probability is nan at layer 0, state 0, action 1, successor 0; every",
    ),
    (lambda: CMDP(LAYOUT, changed(P, 7, np.inf)), "probability is inf at layer 1, state 1, action 1, successor 0"),
    (lambda: CMDP(LAYOUT, changed(P, 1, -0.5)), "is -0.5 at layer 0, state 0, action 0, successor 1; .* lie in .0, 1."),
    (
        lambda: CMDP(LAYOUT, changed(P, 4, 0.98)),
        "transitions of layer 1, state 0, action 0 sum to 0.98, not 1; divide each row by its sum",
    ),
    (lambda: CMDP(LAYOUT, P[:-1]), r"the transition probability has shape \(7,\), expected \(8,\)"),
    (lambda: CMDP(LAYOUT, ["a"] * 8), "the transition probability must be an array of numbers"),
    (lambda: CMDP(LAYOUT, P, np.full((2, 6), 0.5), TWO), "costs must be a cost distribution such as Bern.*not ndarray"),
    (lambda: CMDP(LAYOUT, P, BernoulliCosts([[0.5]]), [1.0]), "costs are given for 1 rows; the layout has 6"),
    (lambda: CMDP(LAYOUT, P, COSTS, 1.0), r"one number per constraint \(2\), not 1.0"),
    (lambda: CMDP(LAYOUT, P, COSTS, None), "the thresholds must be an array of numbers"),
    (lambda: CMDP(LAYOUT, P, COSTS, [1.0]), r"the threshold has shape \(1,\), expected \(2,\)"),
    (lambda: CMDP(LAYOUT, P, COSTS, [[1.0], [1.0, 2.0]]), "the thresholds must be an array of numbers"),
    (lambda: CMDP(LAYOUT, P, COSTS, [0.5, 2.1]), r"the threshold is 2.1 at index 1; every entry must lie in \[0, 2\]"),
    (lambda: CMDP(LAYOUT, P, COSTS, [-0.1, 1.0]), "the threshold is -0.1 at index 0"),
    (lambda: CMDP(LAYOUT, P, COSTS, [np.nan, 1.0]), "the threshold is nan at index 0"),
    (lambda: CMDP(LAYOUT, P, COSTS, TWO, constraint_names=["a"]), "constraint names: 1 given, 2 needed"),
    (
        lambda: CMDP(LAYOUT, P, COSTS, TWO, constraint_names=["a", "a"]),
        "constraint names must be distinct; repeated: a",
    ),
    (lambda: CMDP(LAYOUT, P, COSTS, TWO, constraint_names="ab"), "must be a sequence of 2 strings, not 'ab'"),
    (lambda: CMDP(LAYOUT, P, COSTS, TWO, state_labels=["x"]), "state labels: 1 given, 4 needed"),
    (lambda: CMDP(LAYOUT, P, COSTS, TWO, action_labels=["x", ""]), "action labels must be non-empty strings, found ''"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def signed(meta: dict | None = None, arrays: dict | None = None, without: tuple = (), version: int = 1) -> bytes:
    """The file of a good world with some entries replaced or left out, and a correct checksum."""
    good = datafile.unpack(CMDP(LAYOUT, P, COSTS, TWO).to_bytes())
    kept = {name: array for name, array in {**good.arrays, **(arrays or {})}.items() if name not in without}
    return datafile.pack(
        "cmdp", version, {k: v for k, v in {**good.meta, **(meta or {})}.items() if k not in without}, kept
    )


BAD_FILES = [
    (signed(version=2), "schema version 2; this release reads version 1"),
    (signed(without=("thresholds",)), "lacks the entry 'thresholds'"),
    (signed(without=("layer_sizes",)), "lacks the entry 'layer_sizes'"),
    (signed(without=("cost_kind",)), "lacks the entry 'cost_kind'"),
    (signed({"colour": "red"}), r"unexpected metadata \['colour'\]"),
    (signed(arrays={"extra": np.ones(1)}), r"unexpected arrays \['extra'\]"),
    (signed(arrays={"costs.extra": np.ones(1)}), "a bernoulli cost distribution cannot be made of"),
    (signed({"num_actions": 10**15}), "full support needs .* triples, at most 8 are possible here"),
    (signed({"num_actions": 2.0}), "the number of actions must be a whole number, not 2.0"),
    (signed({"cost_kind": {}}), "unknown cost distribution {}"),
    (signed({"constraint_names": {"a": 1, "b": 2}}), "constraint names must be a sequence of 2 strings"),
    (signed({"state_labels": [1, 2, 3, 4]}), "state labels must be non-empty strings, found 1"),
    (signed(arrays={"layer_sizes": np.array(3)}), "layer sizes must be a sequence of whole numbers, not 3"),
    (signed(arrays={"layer_sizes": np.array([1, 2**50, 1])}), "full support needs"),
    (signed(arrays={"transitions": changed(P, 0, 0.75)}), "layer 0, state 0, action 0 sum to 1.25, not 1"),
    (signed(arrays={"row_start": np.arange(7)}), "needs both row_start and successor"),
    (datafile.pack("learner", 1, {}, {}), "holds a 'learner', not a 'cmdp'"),
]


@pytest.mark.parametrize(("blob", "message"), BAD_FILES)
def test_an_intact_file_with_wrong_content_is_refused(blob: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=f"here.hedge .*{message}"):
        CMDP.from_bytes(blob, "here.hedge")
