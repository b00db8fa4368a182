"""The spelt-out vector operation against numpy, bit by bit, and nothing beyond its ends."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.projection.vectors import add_multiple, weigh_rows


@pytest.mark.parametrize("count", range(14))
def test_a_multiple_is_added_where_it_belongs(count: int) -> None:
    rng = np.random.default_rng(count)
    target, source, factor = rng.normal(size=20), rng.normal(size=20), float(rng.normal())
    for to, at in ((0, 0), (3, 1), (5, 6)):
        expected = target.copy()
        expected[to : to + count] += factor * source[at : at + count]
        add_multiple(target, to, factor, source, at, count)
        np.testing.assert_array_equal(target, expected)


def test_two_rows_of_one_array() -> None:
    matrix = np.arange(20.0)
    add_multiple(matrix, 10, -2.0, matrix, 0, 7)
    np.testing.assert_array_equal(matrix[10:17], np.arange(10.0, 17.0) - 2.0 * np.arange(7.0))
    np.testing.assert_array_equal(matrix[17:], np.arange(17.0, 20.0))


@pytest.mark.parametrize("width", [1, 2, 5, 7, 8, 9, 16, 19])
@pytest.mark.parametrize("num", [1, 2, 5])
def test_rows_are_weighed_one_after_the_other_and_nothing_beyond_is_touched(width: int, num: int) -> None:
    rng = np.random.default_rng(width)
    target, weights, source = rng.normal(size=40), rng.normal(size=9), rng.normal(size=5 * 19 + 3)
    expected = target.copy()
    total = np.zeros(width)
    for i in range(num):
        total += weights[2 + i] * source[3 + i * width : 3 + (i + 1) * width]
    expected[4 : 4 + width] = total
    weigh_rows(target, 4, weights, 2, num, source, 3, width)
    np.testing.assert_array_equal(target, expected)
