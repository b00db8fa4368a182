"""Linear functions over one box: the vector of the specification, a linear program, and all vertices."""

import naive_boxes as naive
import numpy as np
import pytest

from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.planning.decomposition import fill_row, robust_scratch, sort_row

TOL = 1e-12
ROUNDING = 3e-16


def fill(
    f: np.ndarray, lower: np.ndarray, upper: np.ndarray, maximise: bool, support: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """(value, p) of one row; `f` has one value per state of the next layer, `support` the positions that it reaches.

    The next layer starts at state 3 and the row after the triples of two others, so that a forgotten offset shows.
    """
    n, sign = len(f), -1.0 if maximise else 1.0
    reached = np.arange(n) if support is None else support
    rows = np.ones((2, 1, n), bool)
    rows[1] = np.isin(np.arange(n), reached)
    layout = Layout.from_support([np.ones((1, 1, 2), bool), rows, np.ones((n, 1, 1), bool)])
    row = slice(layout.row_start[2], layout.row_start[3])
    boxes, scratch = np.full((2, layout.num_triples), np.nan), robust_scratch(layout)
    boxes[:, row] = lower, upper
    for output in (scratch.values, scratch.p):
        output[:] = np.nan
    scratch.values[3 : 3 + n] = sign * f
    sort_row(index_of(layout), 2, len(reached) == n, scratch)
    value = sign * fill_row(index_of(layout), *boxes, 2, scratch)
    assert np.isnan(scratch.p[: row.start]).all()
    assert np.isnan(scratch.p[row.stop :]).all()
    return value, scratch.p[row]


def random_row(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    f = rng.normal(size=n) if seed % 3 else rng.integers(0, 3, n).astype(float)  # every third with ties
    return f, *naive.random_box(rng, n, naive.BOX_KINDS[seed % 5])


def test_the_vector_of_the_specification() -> None:
    f, lower, upper = np.array([1.0, 0.5, 0.0]), np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.9, 0.6])
    value, p = fill(f, lower, upper, maximise=True)
    np.testing.assert_allclose(p, [0.5, 0.4, 0.1], atol=ROUNDING)
    assert value == pytest.approx(0.7, abs=ROUNDING)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_the_answer_is_a_distribution_in_its_box_with_the_value_of_the_linear_program(
    seed: int, maximise: bool
) -> None:
    f, lower, upper = random_row(seed)
    value, p = fill(f, lower, upper, maximise)
    if len(f) > 1:  # the only successor of a row has probability 1, whatever the box says
        assert np.all(p >= lower)
        assert np.all(p <= upper + ROUNDING)  # lower + (upper - lower) may round up
    assert p.sum() == pytest.approx(1.0, abs=len(f) * ROUNDING)
    assert value == pytest.approx(p @ f, abs=TOL)
    sign = 1.0 if maximise else -1.0
    assert value == pytest.approx(sign * naive.best_of_row(sign * f, lower, upper), abs=TOL)


@pytest.mark.parametrize("seed", range(20))
def test_no_vertex_is_better(seed: int) -> None:
    f, lower, upper = random_row(seed)
    corners = [float(p @ f) for p in naive.vertices(lower, upper)]
    assert fill(f, lower, upper, maximise=True)[0] == pytest.approx(max(corners), abs=TOL)
    assert fill(f, lower, upper, maximise=False)[0] == pytest.approx(min(corners), abs=TOL)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_a_sparse_row_is_a_full_row_without_the_states_that_it_does_not_reach(seed: int, maximise: bool) -> None:
    rng = np.random.default_rng(seed)
    f = rng.normal(size=9)
    support = np.sort(rng.choice(9, size=int(rng.integers(1, 9)), replace=False))
    lower, upper = naive.random_box(rng, len(support), naive.BOX_KINDS[seed % 5])
    sparse, p = fill(f, lower, upper, maximise, support)
    small, p_small = fill(f[support], lower, upper, maximise)
    assert sparse == pytest.approx(small, abs=TOL)
    np.testing.assert_allclose(p, p_small, atol=TOL)
    wide_lower, wide_upper = np.zeros(9), np.zeros(9)
    wide_lower[support], wide_upper[support] = lower, upper
    assert sparse == pytest.approx(fill(f, wide_lower, wide_upper, maximise)[0], abs=TOL)
