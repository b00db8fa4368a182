"""Validate arguments: turn what a caller passes into read-only float64 arrays, or say what is wrong."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow._nearest import nearest
from hedgerow.errors import InvalidInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Locator = Callable[[int], str]
"""Turns a flat index into words: `layer 2, state 3, action 1`."""
SMALLEST_SHARE = float(np.finfo(np.float64).tiny)
"""Numbers below it have fewer digits."""

LARGEST_COUNT = 2**53
"""The largest count: up to here floats hold whole numbers exactly."""
LARGEST_SEED = 2**128 - 1
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
# Two digits of an exponent at most: what they can stand for is quickly written out and refused.
_WRITTEN_COUNT = re.compile(r"(?P<number>\d[\d_,]*(\.\d+)?([eE]\+?\d{1,2})?)\s*(?P<unit>[kKmM]?)")
LONGEST_SHOWN = 60
"""Characters of a value that a message shows"""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only C-ordered array: the argument itself if it is one already, else a copy."""
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


def taken(place: NDArray[Any], given: Any) -> bool:
    """Copy `given`, an array or lists of plain numbers of the shape of `place`, into it; False if that cannot be done.

    The numbers themselves are not checked here; compiled code does that afterwards.
    """
    if type(given) is list and all(map(_is_plain, given)):
        given = np.array(given)
    if type(given) is not np.ndarray or given.shape != place.shape:
        return False
    if given.dtype is not place.dtype:  # mostly it is
        allowed = "i" if place.dtype.kind == "i" else "fi"
        if given.dtype.kind not in allowed or given.dtype.itemsize > place.dtype.itemsize:
            return False
    place[...] = given
    return True


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is float or kind is int or (kind is list and all(type(number) in (int, float) for number in value))


def unmasked(what: str, value: Any, *, depth: int = 64) -> Any:
    """`value` itself; refused if some of its entries are masked, because numpy would silently read under the mask.

    Lists of masked arrays are searched as deep as numpy goes.
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
    """`value` as a float64 array of any shape; refused if an entry is no number or rows differ in length."""
    given = unmasked(what, value)
    try:
        raw = np.asarray(given)
        if raw.dtype.kind not in "fiub":
            raise TypeError(f"found entries of type {raw.dtype}")
        with np.errstate(all="ignore"):  # an overflow becomes infinite; the caller refuses that
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
        ends = f"[{_bound(low)}, {_bound(high)}]"
        raise InvalidInput(f"{what} is {_entry(array, bad, where)}; every entry must lie in {ends}")
    return array


def whole_number(what: str, value: object, least: int, most: int = LARGEST_COUNT) -> int:
    """`value` as an int in least..most; bools and fractions are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInput(f"{what} must be a whole number, not {short_repr(value)}")
    if value < least:
        raise InvalidInput(f"{what} is {short_repr(value)}; it must be at least {least}")
    if value > most:
        raise InvalidInput(f"{what} is {short_repr(value)}; it must be at most {most}")
    return int(value)


def num_episodes(value: object, least: int = 1) -> int:
    """`value` as a number of episodes; people write 1e5, "100k" and "1.5M".

    >>> num_episodes(1e5), num_episodes("100k"), num_episodes("1.5M")
    (100000, 100000, 1500000)
    """
    given = value
    if isinstance(value, str) and (written := _WRITTEN_COUNT.fullmatch(value.strip())):
        number = Fraction(written["number"].replace(",", "").replace("_", "")) * _UNITS[written["unit"].lower()]
        given = int(number) if number.denominator == 1 else value
    elif isinstance(value, float | np.floating) and float(value).is_integer():
        given = int(value)
    return whole_number("the number of episodes", given, least)


def seed_number(value: object) -> int:
    """`value` as the seed of a random stream."""
    return whole_number("the seed", value, 0, LARGEST_SEED)


def short_repr(value: object) -> str:
    """`value` for a message of one line, however long or deep it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def real_number(what: str, value: object, low: float, high: float) -> float:
    """`value` as a finite float in [low, high]."""
    number = _number(what, value)
    if not low <= number <= high:  # also catches NaN
        raise InvalidInput(f"{what} is {number!r}; it must lie in [{_bound(low)}, {_bound(high)}]")
    return number


def positive_share(what: str, value: object, *, below_one: bool) -> float:
    """`value` as a float in (0, 1], or in (0, 1) if it must be `below_one`; large enough for a normal logarithm."""
    number = _number(what, value)
    if not SMALLEST_SHARE <= number <= 1.0 or (below_one and number == 1.0):
        tiny = f"; the smallest number that counts as positive here is {SMALLEST_SHARE!r}" * (0.0 < number < 1.0)
        raise InvalidInput(f"{what} is {number!r}; it must lie in (0, 1{')' if below_one else ']'}{tiny}")
    return number


def type_name(value: object) -> str:
    """An argument in words: `the class SVOPS`, `an object of the class CMDP`."""
    return (
        f"the class {value.__name__}" if isinstance(value, type) else f"an object of the class {type(value).__name__}"
    )


def _number(what: str, value: object) -> float:
    """`value` as a float that may be infinite or NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInput(f"{what} must be a number, not {short_repr(value)}")
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _bound(value: float) -> str:
    """A bound in few digits, unless these would show another number, such as 1 for a number below 1."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


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


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known ones, or all of them.

    >>> did_you_mean("sharpp", ["paper", "sharp"])
    "; did you mean 'sharp'?"
    """
    names = list(known)
    near = nearest(given, names)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; known: {', '.join(names)}" if names else ""


def _entry(array: FloatArray, bad: NDArray[np.bool_], where: Locator | None) -> str:
    """The first offending entry in words; the locator speaks of the last axis."""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    value = float(array[index])
    if where is None:
        return f"{value!r} at index {index if len(index) != 1 else index[0]}"
    prefix = f"row {index[0]} of the array, " if len(index) > 1 else ""
    return f"{value!r} at {prefix}{where(index[-1])}"
