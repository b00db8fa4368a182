"""Beta variables from a stream, in compiled code: the algorithms and the bits of `Generator.beta`.

    a, b <= 1     Johnk: X = U^(1/a), Y = V^(1/b), again until X + Y <= 1; then X / (X + Y)
    otherwise     G_a / (G_a + G_b) with standard gamma variables: of shape 1 an exponential one; below 1 by rejection
                  (Ahrens and Dieter); above 1 by the cube of a normal one (Marsaglia and Tsang)

Normal and exponential variables are drawn with the ziggurats of numpy, whose tables numba keeps as well.
"""

from __future__ import annotations

import numpy as np
from numba.np.random._constants import (
    fe_double,
    fi_double,
    ke_double,
    ki_double,
    we_double,
    wi_double,
    ziggurat_exp_r,
    ziggurat_nor_inv_r,
    ziggurat_nor_r,
)

from hedgerow.compiling.kernels import kernel
from hedgerow.model.pcg64 import Stream, next_word, uniform

_ONE, _THREE, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(8)
_BYTE, _52_BITS = np.uint64(255), np.uint64(2**52 - 1)


@kernel
def beta(stream: Stream, a: float, b: float) -> float:
    """A variable of Beta(a, b) for positive a and b."""
    if a > 1.0 or b > 1.0:
        first = standard_gamma(stream, a)
        second = standard_gamma(stream, b)
        return first / (first + second)
    while True:
        u, v = uniform(stream), uniform(stream)
        x, y = u ** (1.0 / a), v ** (1.0 / b)
        if x + y <= 1.0 and u + v > 0.0:
            break
    if x > 0.0 and y > 0.0:
        return float(x / (x + y))
    # One of them is too small for a number: the same from their logarithms.
    away = np.log(u) / a - np.log(v) / b
    return float(np.exp(-np.log1p(np.exp(-away)))) if away > 0.0 else float(np.exp(away - np.log1p(np.exp(away))))


@kernel
def standard_gamma(stream: Stream, shape: float) -> float:
    """A gamma variable of positive shape and scale 1."""
    if shape == 1.0:
        return standard_exponential(stream)
    if shape < 1.0:
        return _small_gamma(stream, shape)
    b = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * b)
    while True:
        x = standard_normal(stream)
        v = 1.0 + c * x
        while v <= 0.0:
            x = standard_normal(stream)
            v = 1.0 + c * x
        v = v * v * v
        u = uniform(stream)
        if u < 1.0 - 0.0331 * (x * x) * (x * x):
            return float(b * v)
        if np.log(u) < 0.5 * x * x + b * (1.0 - v + np.log(v)):
            return float(b * v)


@kernel
def _small_gamma(stream: Stream, shape: float) -> float:
    """A gamma variable of shape below 1."""
    while True:
        u = uniform(stream)
        v = standard_exponential(stream)
        if u <= 1.0 - shape:
            x = u ** (1.0 / shape)
            if x <= v:
                return float(x)
        else:
            y = -np.log((1.0 - u) / shape)
            x = (1.0 - shape + shape * y) ** (1.0 / shape)
            if x <= v + y:
                return float(x)


@kernel
def standard_exponential(stream: Stream) -> float:
    """An exponential variable of mean 1."""
    while True:
        word = next_word(stream) >> _THREE
        place = word & _BYTE
        word >>= _EIGHT
        x = float(word) * we_double[place]
        if word < ke_double[place]:
            return float(x)
        if place == 0:
            return float(ziggurat_exp_r - np.log1p(-uniform(stream)))
        before = place - _ONE
        if (fe_double[before] - fe_double[place]) * uniform(stream) + fe_double[place] < np.exp(-x):
            return float(x)


@kernel
def standard_normal(stream: Stream) -> float:
    """A normal variable of mean 0 and variance 1."""
    while True:
        word = next_word(stream)
        place = word & _BYTE
        word >>= _EIGHT
        size = (word >> _ONE) & _52_BITS
        x = float(size) * wi_double[place]
        if word & _ONE:
            x = -x
        if size < ki_double[place]:
            return float(x)
        if place == 0:
            tail = _tail(stream)
            return -tail if (size >> _EIGHT) & _ONE else tail
        before = place - _ONE
        if (fi_double[before] - fi_double[place]) * uniform(stream) + fi_double[place] < np.exp(-0.5 * x * x):
            return float(x)


@kernel
def _tail(stream: Stream) -> float:
    """The size of a normal variable that is beyond the ziggurat."""
    while True:
        x = -ziggurat_nor_inv_r * np.log1p(-uniform(stream))
        y = -np.log1p(-uniform(stream))
        if y + y > x * x:
            return float(ziggurat_nor_r + x)
