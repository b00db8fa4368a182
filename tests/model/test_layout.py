"""One index order: the arithmetic of rows and triples, and flat arrays <-> one array per layer."""

import numpy as np
import pytest
from naive_model import as_dict, random_layout, random_support

from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout


@pytest.mark.parametrize("seed", range(20))
def test_every_triple_is_where_counting_puts_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    keys = list(as_dict(layout, np.zeros(layout.num_triples)))
    assert keys == sorted(keys)
    assert len(keys) == layout.num_triples
    for j, (k, x, a, y) in enumerate(keys):
        row = layout.row_of_triple[j]
        state = layout.state_start[k] + x
        assert row == state * layout.num_actions + a
        assert layout.successor[j] == layout.state_start[k + 1] + y
        assert layout.layer_of_state[state] == k
        assert layout.describe_triple(j) == f"layer {k}, state {x}, action {a}, successor {y}"
        assert layout.triples(k).start <= j < layout.triples(k).stop
        assert layout.rows(k).start <= row < layout.rows(k).stop


@pytest.mark.parametrize("seed", range(20))
def test_support_survives_the_round_trip(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (1, *rng.integers(1, 6, size=3).tolist(), 1)
    support = random_support(rng, sizes, actions=3, density=rng.choice([0.0, 0.3, 0.9]))
    layout = Layout.from_support(support)
    assert layout.layer_sizes == sizes
    back = layout.split_triples(np.ones(layout.num_triples))
    for given, found in zip(support, back, strict=True):
        np.testing.assert_array_equal(given, found.astype(bool))
    assert layout.is_full == all(block.all() for block in support)
    assert layout.num_dense_triples == sum(block.size for block in support)


@pytest.mark.parametrize("seed", range(20))
def test_flat_and_layered_arrays_convert_both_ways(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    rows, triples = rng.random(layout.num_rows), rng.random(layout.num_triples)
    np.testing.assert_array_equal(layout.join_rows(layout.split_rows(rows)), rows)
    np.testing.assert_array_equal(layout.join_triples(layout.split_triples(triples)), triples)
    blocks = layout.split_triples(triples, outside=-1.0)
    named = as_dict(layout, triples)
    for k, block in enumerate(blocks):
        for place, value in np.ndenumerate(block):
            assert value == named.get((k, *place), -1.0)
    for k, block in enumerate(layout.split_rows(rows)):
        for (x, a), value in np.ndenumerate(block):
            assert value == rows[(layout.state_start[k] + x) * layout.num_actions + a]


def test_full_support_is_the_special_case_of_a_sparse_one() -> None:
    full = Layout((1, 3, 2, 1), 2)
    sparse = Layout.from_support([np.ones((1, 2, 3)), np.ones((3, 2, 2)), np.ones((2, 2, 1))])
    assert full == sparse
    assert hash(full) == hash(sparse)
    assert full.is_full
    assert full != Layout((1, 3, 2, 1), 3)
    assert full != "layout"
    assert repr(full) == "Layout(layers=(1, 3, 2, 1), actions=2, full support)"


def test_sizes_of_a_layout_counted_by_hand() -> None:
    layout = Layout((1, 3, 2, 1), 2)
    assert (layout.steps, layout.num_states, layout.num_decision_states) == (3, 7, 6)
    assert (layout.num_rows, layout.num_triples) == (12, 2 * 3 + 3 * 2 * 2 + 2 * 2)


def test_arrays_cannot_be_written_to() -> None:
    layout = Layout((1, 2, 1), 2)
    for array in (layout.row_start, layout.successor, layout.state_start, layout.row_of_triple, layout.layer_of_state):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


STARTS, TARGETS = [0, 2, 3, 4], [1, 2, 3, 3]  # layers (1, 2, 1), one action
BAD = [
    (lambda: Layout((), 2), "0 layer.s. given; an episode needs at least X_0 and X_1"),
    (lambda: Layout((1,), 2), "1 layer.s. given"),
    (lambda: Layout((1, 0, 1), 2), "the size of layer 1 is 0; it must be at least 1"),
    (lambda: Layout((1, 2.5, 1), 2), "the size of layer 1 must be a whole number, not 2.5"),
    (lambda: Layout((1, True, 1), 2), "the size of layer 1 must be a whole number, not True"),
    (lambda: Layout("121", 2), "layer sizes must be a sequence of whole numbers, not '121'"),
    (lambda: Layout(3, 2), "layer sizes must be a sequence of whole numbers, not 3"),
    (lambda: Layout((2, 2, 1), 2), "layer 0 has 2 states; the first and the last layer must have exactly one"),
    (lambda: Layout((1, 2), 2), "layer 1 has 2 states; .*put a single start or end state around yours"),
    (lambda: Layout((1, 2, 1), 0), "the number of actions is 0; it must be at least 1"),
    (lambda: Layout((1, 2, 1), "2"), "the number of actions must be a whole number, not '2'"),
    (lambda: Layout((1, 2**40, 1), 2), "full support needs 4398046511104 triples, .*give the sparse support"),
    (lambda: Layout((1, 2, 1), 1, row_start=STARTS), "needs both row_start and successor"),
    (lambda: Layout((1, 2, 1), 1, row_start=[0, 2, 4], successor=TARGETS), "row_start must have 4 entries"),
    (lambda: Layout((1, 2, 1), 1, row_start=[0, 2, 3, 5], successor=TARGETS), "end with the number of triples, 4"),
    (lambda: Layout((1, 2, 1), 1, row_start=[0.0, 2, 3, 4], successor=TARGETS), "row_start must be a one-dimensional"),
    (lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[[1]]), "successor must be a one-dimensional array"),
    (lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[[1], [1, 2]]), "successor must be a one-dimensional"),
    (lambda: Layout((1, 2, 1), 1, row_start=[0, 2, 2, 4], successor=TARGETS), "layer 1, state 0, action 0 has no succ"),
    (
        lambda: Layout((1, 2, 1), 1, row_start=[0, 2**63 - 1, -9, 4], successor=TARGETS),
        "row_start is 9223372036854775807",
    ),
    (
        lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[1, 3, 3, 3]),
        "leads to state 3, which is not in layer 1",
    ),
    (
        lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[1, -2, 3, 3]),
        "leads to state -2, which is not in layer 1",
    ),
    (lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[2, 1, 3, 3]), "action 0 are not strictly ascending"),
    (lambda: Layout((1, 2, 1), 1, row_start=STARTS, successor=[1, 1, 3, 3]), "action 0 are not strictly ascending"),
    (
        lambda: Layout((1, 2, 1), 1, row_start=[0, 1, 2, 3], successor=[1, 3, 3]),
        "layer 1, state 1 is the successor of no row: it is unreachable; remove it",
    ),
    (lambda: Layout.from_support([]), "the support needs one array per layer; none given"),
    (lambda: Layout.from_support([np.ones((1, 2))]), "the support of layer 0 has 2 axes"),
    (lambda: Layout.from_support([[[1], [1, 2]]]), "the support of layer 0 must be an array of truth values"),
    (
        lambda: Layout.from_support([np.ones((1, 2, 2)), np.ones((3, 2, 1))]),
        "layer 1 has 3 states and 2 actions; layer 0 leads to 2 states",
    ),
    (lambda: Layout.from_support([np.zeros((1, 1, 1))]), "layer 0, state 0, action 0 has no successor"),
    (lambda: Layout((1, 2, 1), 1).split_rows([1.0]), r"over rows of this layout has shape \(3,\), not \(1,\)"),
    (lambda: Layout((1, 2, 1), 1).split_rows(["a", "b", "c"]), "the array over rows must be an array of numbers"),
    (lambda: Layout((1, 2, 1), 1).split_triples([1.0]), r"over triples of this layout has shape \(4,\)"),
    (lambda: Layout((1, 2, 1), 1).join_rows([[[1.0]]]), "1 arrays of rows given; this layout has 2 layers"),
    (lambda: Layout((1, 2, 1), 1).join_rows(3), "rows must be given as a list with one array per layer, not 3"),
    (lambda: Layout((1, 2, 1), 1).join_rows([[[1.0]], [[1.0]]]), r"layer 1 of the rows has shape \(1, 1\), expected"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_an_entry_outside_the_support_is_named() -> None:
    layout = Layout.from_support([np.array([[[1, 0], [1, 1]]]), np.ones((2, 2, 1))])
    blocks = layout.split_triples(np.ones(layout.num_triples))
    blocks[0][0, 0, 1] = 0.5
    with pytest.raises(
        InvalidInput, match=r"layer 0, state 0, action 0 has the entry 0.5 at successor 1, which is not"
    ):
        layout.join_triples(blocks)
