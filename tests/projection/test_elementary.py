"""Exponentials and logarithms in vector lanes against numpy's."""

import numpy as np
import pytest

from hedgerow.projection.vectors import exponentials, logarithms

ULP = float(np.finfo(np.float64).eps)


def applied(function, values: np.ndarray, pad: int = 3) -> np.ndarray:
    """The function of `values`, which stand between others that must stay."""
    padded = np.concatenate((np.full(pad, 7.0), values, np.full(pad, 7.0)))
    function(padded, pad, pad + len(values))
    assert padded[:pad].tolist() == padded[-pad:].tolist() == [7.0] * pad
    return padded[pad:-pad]


@pytest.mark.parametrize("n", [0, 1, 3, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0, 30.0, 700.0])
def test_exponentials_are_those_of_numpy(n: int, spread: float) -> None:
    x = spread * np.random.default_rng(n).uniform(-1.0, 1.0, n)
    np.testing.assert_allclose(applied(exponentials, x), np.exp(x), rtol=2 * ULP)


@pytest.mark.parametrize("n", [0, 1, 3, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0, 30.0, 600.0])
def test_logarithms_are_those_of_numpy(n: int, spread: float) -> None:
    x = np.exp(spread * np.random.default_rng(n).uniform(-1.0, 1.0, n))
    np.testing.assert_allclose(applied(logarithms, x), np.log(x), rtol=4 * ULP)


def test_many_of_each() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-707.0, 708.0, 100_000)
    np.testing.assert_allclose(applied(exponentials, x), np.exp(x), rtol=2 * ULP)
    y = np.concatenate((rng.uniform(0.4, 2.2, 100_000), 10.0 ** rng.uniform(-300.0, 300.0, 100_000)))
    np.testing.assert_allclose(applied(logarithms, y), np.log(y), rtol=4 * ULP)


def test_exact_and_extreme_values() -> None:
    x = np.array([0.0, -0.0, -np.inf, np.inf, np.nan, -1e300, 1e300])
    np.testing.assert_array_equal(applied(exponentials, x), [1.0, 1.0, 0.0, np.inf, np.nan, 0.0, np.inf])
    np.testing.assert_array_equal(applied(logarithms, np.array([1.0, 2.0, 0.5])), np.log([1.0, 2.0, 0.5]))
    powers = 2.0 ** np.arange(-1000, 1000, 37)
    np.testing.assert_allclose(applied(logarithms, powers), np.log(powers), rtol=ULP)
