"""Learners of anybody as data files: the name of the class, the view, and whatever `state()` tells.

A file never decides which code is run. It is read by the class of that name that is registered, installed, or imported
already (`registry/`), whose `restored(view, state)` goes on; an unknown one is named.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from hedgerow.checks import short_repr, type_name
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import Learner, Resumable
from hedgerow.model.cmdp import CMDP
from hedgerow.model.view import META, UNFIT, View, view_arrays, view_from, view_meta
from hedgerow.registry import learners
from hedgerow.storage import datafile

FILE_KIND, FILE_VERSION = "own-learner", 1


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
        SVOPS(Layout(layers=(1, 1), actions=2, full support), episode 0 of 10, preset='paper')
    """
    own = getattr(learner, "save", None)
    if callable(own):
        own(path, overwrite=overwrite)
        return
    if isinstance(learner, type) or not isinstance(learner, Resumable) or not isinstance(learner, Learner):
        raise InvalidInput(
            f"a learner is saved by its state() and restored(view, state); {type_name(learner)} does not have both"
        )
    arrays = {f"view.{name}": array for name, array in view_arrays(learner.view, support=True).items()}
    for name, value in dict(learner.state()).items():
        array = np.asarray(value)
        if not isinstance(name, str) or array.dtype.kind not in "fiubU":
            raise InvalidInput(f"the state {name!r} of {type(learner).__name__} is not an array of numbers or texts")
        arrays[f"state.{name}"] = array
    meta = {"learner": learners.name_of(type(learner)), **view_meta(learner.view)}
    datafile.save(path, datafile.pack(FILE_KIND, FILE_VERSION, meta, arrays), overwrite=overwrite)


def from_file(file: datafile.DataFile, source: str = "data") -> Any:
    """The learner in a data file that has been read already."""
    if file.version != FILE_VERSION or set(file.meta) != {"learner", *META}:
        raise FileFormatError(f"{source} does not describe a learner that this release knows")
    name, found = file.meta["learner"], learners.known(file.meta["learner"])
    cls: Any = found.target if found is not None else None
    if not isinstance(cls, type) or not all(hasattr(cls, ability) for ability in ("plan", "observe", "restored")):
        raise FileFormatError(
            f"{source} holds a learner {short_repr(name)}, which is not known here: import or register its class first"
        )
    groups: dict[str, dict[str, Any]] = {"view": {}, "state": {}}
    try:
        for entry, array in file.arrays.items():
            group, _, rest = entry.partition(".")
            groups[group][rest] = array
        if "row_start" not in groups["view"]:
            raise InvalidInput("the support of its view is missing")
        view = view_from(file.meta, groups["view"])
    except KeyError as error:
        raise FileFormatError(f"{source} lacks, or should not have, the entry {error}") from error
    except UNFIT as error:
        raise FileFormatError(f"{source} does not describe a learner: {error or 'no memory for it'}") from error
    restored: Any = getattr(cls, "restored")  # noqa: B009 - what has it was asked for above
    try:
        return restored(view, groups["state"])
    except KeyError as error:
        raise FileFormatError(
            f"{source} names the learner {short_repr(name)}, but does not hold its state: the entry {error} is missing"
        ) from error
    except (HedgerowError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{source} names the learner {short_repr(name)}, but does not hold its state: {error}"
        ) from error


_READERS = {
    "cmdp": ("hedgerow.model.cmdp", "CMDP", "from_file"),
    "view": ("hedgerow.model.view", "View", "from_file"),
    "learner": ("hedgerow.learners.ops.files", "from_file"),
    "own-learner": ("hedgerow.learners.saving", "from_file"),
}
"""By kind of data file: where its reader is. Compilers are only loaded for files that need them."""


def load(path: str | os.PathLike[str]) -> CMDP | View | Learner:
    """Read any data file that hedgerow wrote.

    Args:
        path: The file.

    Returns:
        A CMDP, a view or a learner: what the file holds.

    Raises:
        FileFormatError: If the file cannot be read, is damaged, or holds something else.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     view.save(f"{folder}/view.npz")
        ...     hr.load(f"{folder}/view.npz").constraint_names
        ('delay',)
    """
    file = datafile.load(path)
    if file.kind not in _READERS:
        raise FileFormatError(f"{path} holds a {file.kind!r}; this release can load: {', '.join(_READERS)}")
    module, *attributes = _READERS[file.kind]
    reader: Any = importlib.import_module(module)
    for attribute in attributes:
        reader = getattr(reader, attribute)
    content: CMDP | View | Learner = reader(file, str(path))
    return content
