"""Matrix games against HiGHS, and small ones with a known value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow.projection.infeasibility import solve_game


def solve(cuts: np.ndarray) -> tuple[np.ndarray, float]:
    count, m = cuts.shape
    theta = np.full(m, np.nan)
    value = solve_game(cuts, count, np.full((m + 1, count + m + 1), np.nan), theta)
    assert theta.sum() == pytest.approx(1.0, abs=1e-14)
    assert (theta >= 0.0).all()
    return theta, value


def by_highs(cuts: np.ndarray) -> float:
    count, m = cuts.shape
    result = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-cuts, np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(m), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * m + [(None, None)],
    )
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize("seed", range(40))
def test_the_value_is_that_of_the_linear_program_and_theta_attains_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, m = int(rng.integers(1, 30)), int(rng.integers(1, 8))
    cuts = rng.normal(size=(count, m)) * 10.0 ** rng.integers(-3, 4) + rng.normal()
    if seed % 4 == 0:  # ties and repeated cuts
        cuts = np.round(cuts / np.abs(cuts).max() * 2.0)
    theta, value = solve(cuts)
    assert value == pytest.approx(by_highs(cuts), abs=1e-9 * (1.0 + np.abs(cuts).max()))
    assert np.min(cuts @ theta) == pytest.approx(value, abs=1e-12 * (1.0 + np.abs(cuts).max()))


def test_matching_pennies() -> None:
    theta, value = solve(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert theta == pytest.approx([0.5, 0.5], abs=1e-15)
    assert value == pytest.approx(0.5, abs=1e-15)


def test_one_constraint_and_equal_cuts() -> None:
    assert solve(np.array([[3.0], [-2.0], [1.0]]))[1] == pytest.approx(-2.0, abs=1e-14)
    assert solve(np.full((5, 3), 0.7))[1] == pytest.approx(0.7, abs=1e-15)
