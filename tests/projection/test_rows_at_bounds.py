"""What rows at a bound add to the Hessian: in registers and entry by entry, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.compiling.bundles import Bundle
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.projection import direction
from hedgerow.projection.problem import Workspace, make_workspace


def filled(layout: Layout, seed: int) -> Workspace:
    """A workspace whose rows have weights, conditionals and bounds: none, some, all but one and all of a row."""
    rng, ws = np.random.default_rng(seed), make_workspace(layout, 1)
    assert isinstance(ws, Bundle)
    ws.w[:] = rng.random(layout.num_rows)
    for r in range(layout.num_rows):
        own = slice(int(layout.row_start[r]), int(layout.row_start[r + 1]))
        size = own.stop - own.start
        ws.p[own] = rng.dirichlet(np.ones(size))
        held = (0, int(rng.integers(0, size + 1)), size - 1, size)[int(rng.integers(4))]
        ws.bound[own] = rng.permutation([*rng.choice([-1, 1], held), *[0] * (size - held)])
        ws.num_bound[r] = held
    return ws


@pytest.mark.parametrize("width", range(2, 11))
def test_rows_at_a_bound_add_the_same_bits_either_way(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout((1, 3, width, width, 1), 4)
    index, one, other = index_of(layout), filled(layout, width), filled(layout, width)
    for k in range(layout.steps - 1):
        direction._correct_layer(index, k, one)
        with monkeypatch.context() as patched:
            patched.setattr(direction, "PLAIN", True)
            direction._correct_layer.py_func(index, k, other)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(one.diagonal, other.diagonal)
    np.testing.assert_array_equal(one.held, other.held)
    assert one.held.any()
