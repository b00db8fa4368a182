"""Random streams as kernels take them: the state of numpy's generator PCG64 in an array, and uniform numbers.

    state  <-  (state * MULTIPLIER + inc) mod 2^128,       then, with its halves h (high) and l (low),
    output  =  (h xor l) rotated right by h >> 58          64 bits;     uniform  =  (output >> 11) / 2^53

A `Stream` gives the bits that `numpy.random.Generator(PCG64(...))` gives. It is the only owner of its state: Python and
compiled code draw from the same six words. No kernel takes a `Generator`: numba reads one with calls of Python whose
failure it does not check, so an exception of a signal handler at that moment ends the process, and it keeps each one
for ever. `lent` makes a `Generator` of a stream for Python code that wants one, and `borrowed` makes a stream of
somebody's generator; both give the state back.

    >>> from numpy.random import SeedSequence
    >>> stream, rng = seeded(SeedSequence(5)), np.random.default_rng(5)
    >>> [uniform(stream), uniform(stream)] == rng.random(2).tolist()
    True
    >>> stream.state == rng.bit_generator.state
    True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from hedgerow.checks import type_name
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
MASK = 2**64 - 1
_HIGH, _LOW, _INC_HIGH, _INC_LOW, _HAS_HALF, _HALF = range(6)

# Compiled code must not mix these with signed numbers: the sum of a signed and an unsigned one is a float.
_M_HIGH, _M_LOW = np.uint64(MULTIPLIER >> 64), np.uint64(MULTIPLIER & MASK)
_M_LOW_1, _M_LOW_0 = np.uint64((MULTIPLIER & MASK) >> 32), np.uint64(MULTIPLIER & (2**32 - 1))
_HALF_MASK = np.uint64(2**32 - 1)
_11, _32, _58, _63, _64 = (np.uint64(bits) for bits in (11, 32, 58, 63, 64))
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Stream(Bundle):
    """One random stream."""

    words: NDArray[np.uint64]
    """(6,): the halves of the state, high and low, and those of inc; whether a half of an output is left, and it"""

    @property
    def state(self) -> dict[str, Any]:
        """What `bit_generator.state` of a generator at this place is."""
        words = self.words.tolist()
        return {
            "bit_generator": "PCG64",
            "state": {"state": words[_HIGH] << 64 | words[_LOW], "inc": words[_INC_HIGH] << 64 | words[_INC_LOW]},
            "has_uint32": words[_HAS_HALF],
            "uinteger": words[_HALF],
        }

    def go_to(self, state: Mapping[str, Any]) -> None:
        """Continue at a place that `state` named.

        Raises:
            ValueError: If this is no state of a PCG64 generator.
        """
        try:
            numbers = state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]
            right = state["bit_generator"] == "PCG64"
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no state of a PCG64 generator: {error!r}") from error
        for number, limit in zip(numbers, (2**128, 2**128, 2, 2**32), strict=True):
            right = right and type(number) is int and 0 <= number < limit
        if not right:
            raise ValueError("this is no state of a PCG64 generator: its name or a number of it is wrong")
        place, inc, has_half, half = numbers
        words = place >> 64, place & MASK, inc >> 64, inc & MASK, has_half, half
        self.words[:] = np.array(words, dtype=np.uint64)

    def random(self) -> float:
        """Draw a number, uniform in [0, 1)."""
        return uniform(self)


def stream_at(state: Mapping[str, Any]) -> Stream:
    """A stream at a place that `Stream.state` or a PCG64 generator named."""
    stream = Stream(np.zeros(6, dtype=np.uint64))
    stream.go_to(state)
    return stream


def seeded(sequence: SeedSequence) -> Stream:
    """The stream of `Generator(PCG64(sequence))`."""
    return stream_at(PCG64(sequence).state)


@contextmanager
def lent(stream: Stream) -> Iterator[Generator]:
    """A generator at the place of a stream, which goes on where the generator is left."""
    bits: Any = PCG64(0)
    bits.state = stream.state
    try:
        yield Generator(bits)
    finally:
        stream.go_to(bits.state)


@contextmanager
def borrowed(rng: Generator) -> Iterator[Stream]:
    """A stream at the place of a generator, which goes on where the stream is left.

    A generator that is no PCG64 cannot lend its place: four numbers of its own seed a stream.
    """
    if not isinstance(rng, Generator):
        raise InvalidInput(f"rng must be a numpy.random.Generator, such as default_rng(seed), not {type_name(rng)}")
    if type(rng.bit_generator) is not PCG64:
        yield seeded(SeedSequence(rng.integers(2**32, size=4).tolist()))
        return
    bits: Any = rng.bit_generator
    stream = stream_at(bits.state)
    try:
        yield stream
    finally:
        bits.state = stream.state


@kernel
def next_word(stream: Stream) -> np.uint64:
    """Advance the stream and return 64 random bits."""
    # np.add and np.multiply wrap around without a word, in plain Python as well.
    words = stream.words
    high, low = words[0], words[1]
    low_1, low_0 = low >> _32, low & _HALF_MASK
    # low * _M_LOW in full: no sum of these reaches 2^64.
    both, inner, outer = low_0 * _M_LOW_0, low_0 * _M_LOW_1, low_1 * _M_LOW_0
    middle = (both >> _32) + (inner & _HALF_MASK) + (outer & _HALF_MASK)
    above = low_1 * _M_LOW_1 + (inner >> _32) + (outer >> _32) + (middle >> _32)
    above = np.add(above, np.add(np.multiply(low, _M_HIGH), np.multiply(high, _M_LOW)))
    below = (middle << _32) | (both & _HALF_MASK)
    low = np.add(below, words[3])
    carry = _ONE if low < below else _ZERO
    high = np.add(np.add(above, words[2]), carry)
    words[0], words[1] = high, low
    mixed, turn = high ^ low, high >> _58
    return np.uint64((mixed >> turn) | (mixed << ((_64 - turn) & _63)))


@kernel
def uniform(stream: Stream) -> float:
    """A number in [0, 1), a multiple of 2^-53: `Generator.random()`."""
    return float(next_word(stream) >> _11) * 2.0**-53


# --------------------------------------------------------------------------------------------------------------------
# Beta variables from a stream, in compiled code: the algorithms and the bits of `Generator.beta`.
#
#     a, b <= 1     Johnk: X = U^(1/a), Y = V^(1/b), again until X + Y <= 1; then X / (X + Y)
#     otherwise     G_a / (G_a + G_b) with standard gamma variables: of shape 1 an exponential one; below 1 by rejection
#                   (Ahrens and Dieter); above 1 by the cube of a normal one (Marsaglia and Tsang)
#
# Normal and exponential variables are drawn with the ziggurats of numpy, whose tables numba keeps as well.


_UINT_ONE, _THREE, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(8)
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
        before = place - _UINT_ONE
        if (fe_double[before] - fe_double[place]) * uniform(stream) + fe_double[place] < np.exp(-x):
            return float(x)


@kernel
def standard_normal(stream: Stream) -> float:
    """A normal variable of mean 0 and variance 1."""
    while True:
        word = next_word(stream)
        place = word & _BYTE
        word >>= _EIGHT
        size = (word >> _UINT_ONE) & _52_BITS
        x = float(size) * wi_double[place]
        if word & _UINT_ONE:
            x = -x
        if size < ki_double[place]:
            return float(x)
        if place == 0:
            tail = _tail(stream)
            return -tail if (size >> _EIGHT) & _UINT_ONE else tail
        before = place - _UINT_ONE
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
