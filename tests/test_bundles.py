"""Bundles and records: the same attributes in Python and in compiled code, and no address that outlives its array."""

from __future__ import annotations

import copy
import pickle

import numba
import numpy as np
import pytest

from hedgerow.compiling import bundles
from hedgerow.compiling.bundles import Bundle, Record, words_of
from hedgerow.compiling.kernels import kernel

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="kernels run as Python")


class Tally(Record):
    seen: int
    missed: int


class Sums(Record):
    total: float
    largest: float


class Inner(Bundle):
    matrix: np.ndarray
    scale: float
    flag: bool


class Outer(Bundle):
    weights: np.ndarray
    inner: Inner
    count: int
    tally: Tally
    sums: Sums
    bytes_: np.ndarray


def make(n: int = 3) -> Outer:
    matrix = np.arange(2.0 * n).reshape(2, n)
    return Outer(np.ones(n), Inner(matrix, 2.5, True), 7, Tally(), Sums(), np.arange(n, dtype=np.int8))


@kernel
def work(outer: Outer, extra: float) -> float:
    inner, sums = outer.inner, outer.sums
    for i in range(outer.inner.matrix.shape[0]):
        for j in range(len(outer.weights)):
            value = inner.matrix[i, j] * outer.weights[j] * inner.scale
            sums.total += value
            sums.largest = max(sums.largest, value)
            outer.tally.seen += 1
    outer.tally.missed = outer.count
    outer.weights[0] = extra
    outer.inner.matrix[1, 1] = -1.0
    if inner.flag:
        outer.tally.values[1] += outer.bytes_[2]
    return sums.total


def test_kernels_and_python_see_and_change_the_same_numbers() -> None:
    outer = make()
    assert work(outer, 9.0) == 2.5 * 15.0
    assert (outer.sums.total, outer.sums.largest) == (37.5, 12.5)
    assert (outer.tally.seen, outer.tally.missed) == (6, 9)
    assert outer.weights.tolist() == [9.0, 1.0, 1.0]
    assert outer.inner.matrix[1, 1] == -1.0
    outer.sums.total = 0.0
    assert work(outer, 9.0) == 2.5 * (0.0 + 1.0 + 2.0 + 27.0 - 1.0 + 5.0)


@kernel
def tally_up(tally: Tally, by: int) -> None:
    tally.seen += by


def test_a_record_can_be_handed_over_alone() -> None:
    tally = Tally(np.array([3, 4]))
    tally_up(tally, 2)
    assert (tally.seen, tally.values.tolist()) == (5, [5, 4])
    assert Tally.place("missed") == 1
    assert repr(tally) == "Tally({'seen': 5, 'missed': 4})"


@jit
def test_all_bundles_of_a_shape_share_one_compilation() -> None:
    work(make(3), 1.0)
    frozen = np.ones(5)
    frozen.setflags(write=False)
    before = len(work.overloads)
    work(make(5), 1.0)
    make(5).replace(weights=frozen)  # read-only arrays have the same type
    assert len(work.overloads) == before


def test_fields_cannot_be_set_but_exchanged() -> None:
    outer = make()
    with pytest.raises(AttributeError):
        outer.count = 8
    other = outer.replace(count=8, weights=np.zeros(3))
    assert (other.count, outer.count) == (8, 7)
    assert other.inner is outer.inner
    assert list(outer.as_dict()) == ["weights", "inner", "count", "tally", "sums", "bytes_"]
    assert "Outer(weights, inner" in repr(outer)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_work_on_arrays_of_their_own(way) -> None:
    outer = make()
    work(outer, 1.0)  # has a table now
    outer.sums.total = 0.0
    other = way(outer)
    work(other, 5.0)
    assert outer.weights[0] == 1.0
    assert other.weights[0] == 5.0
    assert (outer.sums.total, outer.tally.seen) == (0.0, 6)
    assert (other.sums.total > 0.0, other.tally.seen) == (True, 12)


def test_content_is_taken_over() -> None:
    class Pair(Bundle):
        first: np.ndarray
        second: np.ndarray

    one, two = Pair(np.zeros(2), np.zeros(3)), Pair(np.ones(2), np.ones(3))
    one.take(two)
    assert one.first.tolist() == [1.0, 1.0]
    two.first[0] = 5.0
    assert one.first[0] == 1.0


def test_what_cannot_be_handed_over_is_refused() -> None:
    with pytest.raises(TypeError, match="weights of Outer must be a C-ordered array"):
        words_of(make().replace(weights=np.ones(6)[::2]))
    with pytest.raises(TypeError, match="count of Outer is str"):
        words_of(make().replace(count="many"))
    with pytest.raises(TypeError, match="must be all int or all float"):
        type("Mixed", (Record,), {"__annotations__": {"a": "int", "b": "float"}})
    with pytest.raises(TypeError, match="Tally takes 2 numbers"):
        Tally(np.zeros(2))
    with pytest.raises(TypeError, match="Tally takes 2 numbers"):
        Tally(np.zeros(3, dtype=np.int64))


def test_the_table_holds_addresses_shapes_and_numbers() -> None:
    outer = make()
    words = words_of(outer)
    assert words[:2] == [outer.weights.ctypes.data, 3]
    assert words[2:5] == [outer.inner.matrix.ctypes.data, 2, 3]
    assert np.array(words[5]).view(np.float64) == 2.5
    assert words[6:8] == [1, 7]
    assert words[8] == outer.tally.values.ctypes.data
    assert bundles.address_of(outer) == bundles.address_of(outer)
