"""Validation at the boundary: turn what a caller hands in into read-only float64 arrays, or say what is wrong."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.errors import InvalidInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Locator = Callable[[int], str]
"""Turns a flat index into words: `layer 2, state 3, action 1`."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A C-ordered array that nobody can write to: the argument itself if it is one already, else a copy."""
    if array.flags.c_contiguous and _is_read_only(array):
        return array
    result = np.array(array, order="C")
    result.setflags(write=False)
    return result


def _is_read_only(array: NDArray[Any]) -> bool:
    """Whether the memory of `array` can be written to neither through it nor through an array that it is a view of."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    return memory is None or isinstance(memory, bytes)


def unmasked(what: str, value: Any, *, depth: int = 64) -> Any:
    """`value` itself, unless some of its entries are masked: numpy would silently read what is under the mask.

    Lists of masked arrays are looked into, as deep as numpy goes.
    """
    masked = sys.modules.get("numpy.ma")  # not loaded: there is no such array
    if masked is None:
        return value
    if isinstance(value, masked.MaskedArray) and masked.is_masked(value):
        raise InvalidInput(f"{what} has masked entries; fill them in, as with value.filled(0.0), or leave them out")
    if isinstance(value, list | tuple) and depth > 0:
        for part in value:
            if isinstance(part, masked.MaskedArray | list | tuple):
                unmasked(what, part, depth=depth - 1)
    return value


def numeric_array(what: str, value: ArrayLike) -> FloatArray:
    """`value` as a float64 array of any shape, unless its entries are not numbers or its rows differ in length."""
    given = unmasked(what, value)
    try:
        raw = np.asarray(given)
        if raw.dtype.kind not in "fiub":
            raise TypeError(f"found entries of type {raw.dtype}")
        with np.errstate(all="ignore"):  # what overflows becomes infinite, which is for the caller to refuse
            return raw.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{what} must be an array of numbers: {error}") from error


def float_array(what: str, value: ArrayLike, shape: tuple[int, ...], where: Locator | None = None) -> FloatArray:
    """`value` as a read-only float64 array of the given shape with finite entries."""
    array = numeric_array(what, value)
    if array.shape != shape:
        raise InvalidInput(f"{what} has shape {array.shape}, expected {shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InvalidInput(f"{what} is {_entry(array, bad, where)}; every entry must be a finite number")
    return frozen(array)


def within(what: str, array: FloatArray, low: float, high: float, where: Locator | None = None) -> FloatArray:
    """`array` itself if all its entries lie in [low, high]."""
    bad = (array < low) | (array > high)
    if bad.any():
        raise InvalidInput(f"{what} is {_entry(array, bad, where)}; every entry must lie in [{low:g}, {high:g}]")
    return array


def whole_number(what: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`; bools and fractions are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInput(f"{what} must be a whole number, not {value!r}")
    if value < least:
        raise InvalidInput(f"{what} is {value}; it must be at least {least}")
    return int(value)


def real_number(what: str, value: object, low: float, high: float) -> float:
    """`value` as a finite float in [low, high]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInput(f"{what} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf if value > 0 else -np.inf
    if not low <= number <= high:  # also catches NaN
        raise InvalidInput(f"{what} is {number!r}; it must lie in [{low:g}, {high:g}]")
    return number


def distinct_names(what: str, names: object, count: int) -> tuple[str, ...]:
    """`names` as a tuple of `count` distinct, non-empty strings."""
    # A set has no order, so its names could not be told apart by position.
    if not isinstance(names, Iterable) or isinstance(names, str | bytes | Mapping | AbstractSet):
        raise InvalidInput(f"{what} must be a sequence of {count} strings, not {names!r}")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"{what} must be non-empty strings, found {name!r}")
    if len(result) != count:
        raise InvalidInput(f"{what}: {len(result)} given, {count} needed")
    if len(set(result)) != count:
        repeated = sorted(name for name, times in Counter(result).items() if times > 1)[:3]
        raise InvalidInput(f"{what} must be distinct; repeated: {', '.join(repeated)}")
    return result


def _entry(array: FloatArray, bad: NDArray[np.bool_], where: Locator | None) -> str:
    """The first offending entry in words; the locator speaks of the last axis."""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    value = float(array[index])
    if where is None:
        return f"{value!r} at index {index if len(index) != 1 else index[0]}"
    prefix = f"row {index[0]} of the array, " if len(index) > 1 else ""
    return f"{value!r} at {prefix}{where(index[-1])}"
