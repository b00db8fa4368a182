"""Learners as data files of one kind: the name of the class, the view, and the arrays of `state()`.

A file never decides which code is run. It is read by the class of that name that is registered, installed, or imported
already (`registry/`), whose `restored(view, state)` goes on; an unknown one is named. A learner that ships with
hedgerow puts the arguments of its constructor and the state of its coin into its state, as texts in JSON (`base.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import short_repr, type_name
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import Learner, Resumable
from hedgerow.model.random_streams import seeded
from hedgerow.model.view import META, UNFIT, view_arrays, view_from, view_meta
from hedgerow.registry import learners
from hedgerow.storage import datafile

FILE_KIND, FILE_VERSION = "learner", 9


def save(learner: Learner | Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a learner to one data file, atomically; `hr.load` reads it.

    The shipped learners can be saved between any two calls. A learner of your own needs `state()` and `restored(view,
    state)`, and is saved between two episodes. A file holds data and the name of the class, never code: import or
    register the class before you load it.

    Args:
        learner: The learner.
        path: The file; `.npz` is the usual ending.
        overwrite: Whether an existing file may be replaced.

    Raises:
        InvalidInput: If the learner has no `state()` and `restored(...)`, if its state is not made of numbers and
            texts, or if the file exists and `overwrite` is False.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> learner = hr.SVOPS(hr.worlds.make("lower-bound-2").view(), episodes=10, delta=0.05)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.save(learner, f"{folder}/learner.npz")
        ...     hr.load(f"{folder}/learner.npz")
        SVOPS(Layout(layers=(1, 1), actions=2, full support), episode 0 of 10, preset='sharpest')
    """
    own = getattr(learner, "save", None)
    if callable(own):
        own(path, overwrite=overwrite)
        return
    if isinstance(learner, type) or not isinstance(learner, Resumable) or not isinstance(learner, Learner):
        raise InvalidInput(
            f"a learner is saved by its state() and restored(view, state); {type_name(learner)} does not have both"
        )
    datafile.save(path, pack(learner, learner.state()), overwrite=overwrite)


def pack(learner: Any, state: Mapping[str, ArrayLike]) -> bytes:
    """The content of the file of a learner in this state; equal for equal learners."""
    arrays = {f"view.{name}": array for name, array in view_arrays(learner.view, support=True).items()}
    for name, value in dict(state).items():
        array = np.asarray(value)
        if not isinstance(name, str) or array.dtype.kind not in "fiubU":
            raise InvalidInput(f"the state {name!r} of {type(learner).__name__} is not an array of numbers or texts")
        arrays[f"state.{name}"] = array
    meta = {"learner": learners.name_of(type(learner)), **view_meta(learner.view)}
    return datafile.pack(FILE_KIND, FILE_VERSION, meta, arrays)


def from_file(file: datafile.DataFile, source: str = "data") -> Any:
    """The learner in a data file that has been read already."""
    if file.version != FILE_VERSION:
        raise FileFormatError(f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}")
    name, found = file.meta.get("learner"), learners.known(file.meta.get("learner"))
    cls: Any = found.target if found is not None else None
    if not isinstance(cls, type) or not all(hasattr(cls, ability) for ability in ("plan", "observe", "restored")):
        raise FileFormatError(
            f"{source} holds a learner {short_repr(name)}, which is not known here: import or register its class first"
        )
    groups: dict[str, dict[str, NDArray[Any]]] = {"view": {}, "state": {}}
    try:
        if set(file.meta) != {"learner", *META}:
            raise InvalidInput(f"its metadata are {', '.join(sorted(file.meta))}")
        for entry, array in file.arrays.items():
            group, _, rest = entry.partition(".")
            groups[group][rest] = array
        if "row_start" not in groups["view"]:  # what is full would be as large as a few numbers say
            raise InvalidInput("the support of its view is missing")
        view = view_from(file.meta, groups["view"])
    except KeyError as error:
        raise FileFormatError(f"{source} lacks, or should not have, the entry {error}") from error
    except UNFIT as error:
        raise FileFormatError(f"{source} does not describe a learner: {error or 'no memory for it'}") from error
    restored: Any = getattr(cls, "restored")  # noqa: B009 - what has it was asked for above
    try:
        return restored(view, groups["state"])
    except (HedgerowError, KeyError, TypeError, ValueError) as error:
        problem = f"the entry {error} is missing" if isinstance(error, KeyError) else error
        raise FileFormatError(
            f"{source} names the learner {short_repr(name)}, but does not hold its state: {problem}"
        ) from error


def checked_coin(given: Any, seed: int) -> dict[str, Any]:
    """The state of a learner's coin, if it can be one of a generator with this seed."""
    expected = seeded(SeedSequence(seed)).state
    if not (isinstance(given, dict) and given.keys() == expected.keys() and isinstance(given["state"], dict)):
        raise InvalidInput("coin is not the state of a PCG64 generator")
    numbers = given["state"].get("state"), given["state"].get("inc")
    if len(given["state"]) != len(numbers) or not all(type(one) is int and 0 <= one < 2**128 for one in numbers):
        raise InvalidInput("coin: state and inc must be whole numbers of 128 bits")
    if numbers[1] != expected["state"]["inc"]:
        raise InvalidInput("coin: inc does not belong to the seed")
    for name in expected.keys() - {"state"}:
        if given[name] != expected[name] or type(given[name]) is not type(expected[name]):
            raise InvalidInput(f"coin: {name} is wrong")
    return given
