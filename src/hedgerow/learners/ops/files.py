"""Save and load learners: all arrays of the state, the switches, the world's view and the state of the coin.

A loaded learner continues with the same bits as the one that was saved, at any point, also between `plan` and
`observe`. An intact file whose state compiled code could not work with is refused (`soundness.py`).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners.locking import exclusive_as
from hedgerow.learners.ops import settings as switches
from hedgerow.learners.ops.absorb import checked_digests
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.soundness import (
    check_indices,
    check_ranges,
    check_sizes,
    check_state,
    derived,
    restored_coin,
)
from hedgerow.learners.ops.state import arrays_of_state
from hedgerow.model.view import META, UNFIT, view_arrays, view_from, view_meta
from hedgerow.registry import learners
from hedgerow.storage import datafile

FILE_KIND = "learner"
FILE_VERSION = 7
META_ENTRIES = {"learner", "settings", "episodes", "delta", "seed", "coin", "declared", *META}


def save(learner: MirrorLearner, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `learner` into one data file, atomically."""
    datafile.save(path, to_bytes(learner), overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> MirrorLearner:
    """Read what `save` wrote; a damaged or foreign file is refused."""
    return from_file(datafile.load(path, FILE_KIND), str(path))


def copied(learner: MirrorLearner) -> MirrorLearner:
    """An equal learner with arrays of its own; its buffers are computed from its state."""
    return from_bytes(own_bytes(learner))


def own_bytes(learner: MirrorLearner) -> bytes:
    """`to_bytes` of a learner that the bytes describe completely; one of another class would come back as its base."""
    if learners.name_of(type(learner)) not in learners.builtin:
        raise InvalidInput(
            f"{type(learner).__name__} is not one of hedgerow's own learners and may hold more than a file does: "
            "it cannot be copied or pickled; build another one"
        )
    return _content_for_copy(learner)


def to_bytes(learner: MirrorLearner) -> bytes:
    """The content of the file; equal for equal learners."""
    return _content_for_file(learner)


def from_bytes(blob: bytes) -> MirrorLearner:
    """The learner that `to_bytes` described."""
    return from_file(datafile.unpack(blob, FILE_KIND))


def _content(learner: MirrorLearner) -> bytes:
    arrays: dict[str, Any] = {f"view.{name}": array for name, array in view_arrays(learner.view).items()}
    arrays |= {f"argument.{name}": array for name, array in learner.arguments().items()}
    left_out = derived(learner.core)
    arrays |= {f"state.{name}": array for name, array in learner.state_arrays().items() if name not in left_out}
    arrays["logs.absorbed"] = learner.absorbed
    meta = {
        "learner": learner.kind,
        "settings": switches.to_meta(learner.settings),
        "episodes": learner.episodes,
        "delta": learner.delta,
        "seed": learner.seed,
        "coin": learner.coin.state,
        "declared": learner.declared,
        **view_meta(learner.view),
    }
    return datafile.pack(FILE_KIND, FILE_VERSION, meta, arrays)


_content_for_file = exclusive_as("save")(_content)
_content_for_copy = exclusive_as("copy")(_content)


def from_file(file: datafile.DataFile, source: str = "data") -> MirrorLearner:
    """The learner in a data file that has been read already."""
    if file.version != FILE_VERSION:
        raise FileFormatError(f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}")
    try:
        return _from_parts(file.meta, dict(file.arrays))
    except KeyError as error:
        raise FileFormatError(f"{source} lacks the entry {error}") from error
    except UNFIT as error:
        problem = str(error) or "there is no memory for it"
        raise FileFormatError(f"{source} does not describe a learner: {problem}") from error


def _from_parts(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> MirrorLearner:
    unexpected = sorted(set(meta) - META_ENTRIES)
    if unexpected:
        raise InvalidInput(f"unexpected metadata {unexpected}")
    family = MirrorLearner.__module__.rpartition(".")[0]
    own = [name for name, place in learners.builtin.items() if place.startswith(family)]
    if meta["learner"] not in own:
        raise InvalidInput(f"unknown learner {meta['learner']!r}; known: {', '.join(own)}")
    cls: Any = learners.find(meta["learner"])
    groups: dict[str, dict[str, NDArray[Any]]] = {"view": {}, "argument": {}, "state": {}, "logs": {}}
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        if group not in groups:
            raise InvalidInput(f"unexpected array {name!r}")
        groups[group][rest] = array
    chosen = switches.from_meta(meta["settings"])
    view = view_from(meta, groups["view"], groups["state"]["conditional"].size)
    check_sizes(view, groups["state"])
    learner: MirrorLearner = cls(
        view,
        meta["episodes"],
        meta["delta"],
        chosen.preset,
        meta["seed"],
        **groups["argument"],
        **{name: getattr(chosen, name) for name in cls.switches},
    )
    if learner.settings != chosen:
        raise InvalidInput(f"settings hold a switch that {cls.__name__} does not have")
    _check_arguments(learner, groups["argument"])
    learner.declared.update(_checked_reasons(meta["declared"]))
    _restore_state(learner, groups["state"])
    if set(groups["logs"]) != {"absorbed"}:
        raise InvalidInput(f"of logs it needs logs.absorbed, not {sorted(groups['logs'])}")
    learner.absorbed = checked_digests(groups["logs"]["absorbed"], learner.core.state.logged.episodes)
    restored_coin(learner, meta["coin"])
    return learner


def _checked_reasons(given: Any) -> dict[str, int]:
    """The declared reasons, with how many episodes each was given for."""
    if not isinstance(given, dict) or not all(
        isinstance(reason, str) and reason.strip() and type(count) is int and count > 0
        for reason, count in given.items()
    ):
        raise InvalidInput("declared must be numbers of episodes by reason")
    return given


def _check_arguments(learner: MirrorLearner, given: dict[str, NDArray[Any]]) -> None:
    """Demand that the learner was built with what the file says, in value and type: nothing is converted."""
    own = learner.arguments()
    for name, array in given.items():
        if array.dtype != own[name].dtype or not np.array_equal(array, own[name]):
            raise InvalidInput(f"argument.{name} must be {own[name].dtype} and mean what it says")


def _restore_state(learner: MirrorLearner, arrays: dict[str, NDArray[Any]]) -> None:
    """Copy the arrays into the learner's own, which fix their names, shapes and types, if the result is sound."""
    own, needed = arrays_of_state(learner.core.state), set(arrays_of_state(learner.core.state)) - derived(learner.core)
    if set(arrays) != needed:
        raise InvalidInput(f"the state needs the arrays {sorted(needed)}, not {sorted(arrays)}")
    for name, array in arrays.items():
        if array.dtype != own[name].dtype:
            raise InvalidInput(f"state.{name} must be {own[name].dtype}, not {array.dtype}")
    check_ranges(arrays)
    learner.expect(arrays)
    own = arrays_of_state(learner.core.state)
    for name, array in arrays.items():
        if array.shape != own[name].shape:
            raise InvalidInput(f"state.{name} must have the shape {own[name].shape}, not {array.shape}")
    check_indices(arrays, len(learner.core.baseline.policies))
    for name, array in arrays.items():
        own[name][...] = array
    check_state(learner, arrays)
