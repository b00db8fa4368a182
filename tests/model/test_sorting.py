"""The shell sort: sorted, together with its keys, and nothing else moved."""

import numpy as np
import pytest

from hedgerow.model.kernel_layout import first_gap, sort_by_key


@pytest.mark.parametrize("part", [3, 9, 1_000])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 200])
def test_entries_and_keys_are_sorted_up_to_their_count_only(n: int, part: int) -> None:
    rng = np.random.default_rng(n)
    values = np.round(rng.normal(size=n + 5), 1)  # rounded: with ties
    order, key = np.arange(n + 5, dtype=np.uint64), values.copy()
    sort_by_key(order, key, n, first_gap(n // part))
    assert sorted(order[:n]) == list(range(n))
    assert order[n:].tolist() == list(range(n, n + 5))
    np.testing.assert_array_equal(key, values[order])
    assert np.all(np.diff(key[:n]) <= 0.0)
    if part > n:  # an insertion sort
        assert order[:n].tolist() == np.argsort(-values[:n], kind="stable").tolist()


def test_gaps() -> None:
    assert [first_gap(least) for least in (0, 1, 2, 4, 5, 13, 14)] == [1, 1, 4, 4, 13, 13, 40]
