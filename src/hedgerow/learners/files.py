"""Learners as data files: all arrays of the state, the switches, the world's view and the state of the coin.

What is read back continues with the same bits as the learner that was written, at any point, also between `plan` and
`observe`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import files
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners import settings as switches
from hedgerow.learners.cvops import CVOPS
from hedgerow.learners.learner import Learner
from hedgerow.learners.sops import SOPS
from hedgerow.learners.state import BRANCH, EPISODE, flat_arrays
from hedgerow.learners.step import prepare
from hedgerow.learners.svops import SVOPS
from hedgerow.learners.uobreps import UOBREPS
from hedgerow.model.cmdp import View
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_policy
from hedgerow.projection.workspace import NO_SYSTEM

FILE_KIND = "learner"
FILE_VERSION = 3
LEARNERS: dict[str, type[Learner]] = {cls.kind: cls for cls in (SVOPS, SOPS, CVOPS, UOBREPS)}


def save(learner: Learner, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `learner` into one data file, atomically."""
    files.save(path, to_bytes(learner), overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Learner:
    """Read what `save` wrote; a damaged or foreign file is refused."""
    return from_file(files.load(path, FILE_KIND), str(path))


def copied(learner: Learner) -> Learner:
    """An equal learner with arrays of its own, whose buffers follow from its state."""
    return from_file(files.unpack(to_bytes(learner)))


def to_bytes(learner: Learner) -> bytes:
    """The content of the file; equal for equal learners."""
    layout, view = learner.layout, learner.view
    arrays: dict[str, Any] = {
        "view.layer_sizes": np.array(layout.layer_sizes, dtype=np.int64),
        "view.thresholds": view.thresholds,
    }
    if not layout.is_full:
        arrays |= {"view.row_start": layout.row_start, "view.successor": layout.successor}
    if learner.transitions is not None:
        arrays["argument.transitions"] = learner.transitions
    arrays |= {f"argument.{name}": array for name, array in learner.arguments().items()}
    arrays |= {f"state.{name}": array for name, array in learner.state_arrays().items()}
    meta = {
        "learner": learner.kind,
        "settings": switches.to_meta(learner.settings),
        "episodes": learner.episodes,
        "delta": learner.delta,
        "seed": learner.seed,
        "coin": learner.coin.bit_generator.state,
        "num_actions": layout.num_actions,
        "constraint_names": view.constraint_names,
        "state_labels": view.state_labels,
        "action_labels": view.action_labels,
    }
    return files.pack(FILE_KIND, FILE_VERSION, meta, arrays)


def from_file(file: files.DataFile, source: str = "data") -> Learner:
    """The learner in a data file that has been read already."""
    if file.version != FILE_VERSION:
        raise FileFormatError(f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}")
    try:
        return _from_parts(file.meta, dict(file.arrays))
    except KeyError as error:
        raise FileFormatError(f"{source} lacks the entry {error}") from error
    except (InvalidInput, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(f"{source} does not describe a learner: {error}") from error


def _from_parts(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Learner:
    if meta["learner"] not in LEARNERS:
        raise InvalidInput(f"unknown learner {meta['learner']!r}; known: {', '.join(LEARNERS)}")
    cls = LEARNERS[meta["learner"]]
    groups: dict[str, dict[str, NDArray[Any]]] = {"view": {}, "argument": {}, "state": {}}
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        groups[group][rest] = array
    chosen = switches.from_meta(meta["settings"])
    learner = cls(
        _view(meta, groups["view"], groups["state"]["conditional"].size),
        meta["episodes"],
        meta["delta"],
        chosen.preset,
        meta["seed"],
        **groups["argument"],
        **{name: getattr(chosen, name) for name in cls.switches},
    )
    _restore_state(learner, groups["state"])
    learner.coin.bit_generator.state = meta["coin"]
    return learner


def _view(meta: dict[str, Any], arrays: dict[str, NDArray[Any]], num_triples: int) -> View:
    layout = Layout(
        arrays["layer_sizes"].tolist(),
        meta["num_actions"],
        row_start=arrays.get("row_start"),
        successor=arrays.get("successor"),
        max_triples=num_triples,  # a few bytes of a file must not ask for gigabytes
    )
    labels = [None if meta[name] is None else tuple(meta[name]) for name in ("state_labels", "action_labels")]
    thresholds = np.asarray(arrays["thresholds"], dtype=np.float64)
    return View(layout, thresholds, tuple(meta["constraint_names"]), labels[0], labels[1])


def _restore_state(learner: Learner, arrays: dict[str, NDArray[Any]]) -> None:
    """Copy the arrays into the learner's own, which fix their names, shapes and types."""
    if set(arrays) != set(flat_arrays(learner.core.state)):
        raise InvalidInput(
            f"the state needs the arrays {sorted(flat_arrays(learner.core.state))}, not {sorted(arrays)}"
        )
    learner.expect(arrays)
    own = flat_arrays(learner.core.state)
    for name, array in arrays.items():
        target = own[name]
        if array.shape != target.shape or array.dtype != target.dtype:
            raise InvalidInput(
                f"{name} must be {target.dtype} of shape {target.shape}, not {array.dtype} {array.shape}"
            )
        if not np.all(np.isfinite(array)):
            raise InvalidInput(f"{name} has an entry that is not a finite number")
    checked_policy(learner.layout, arrays["policy"])
    branch, episode = int(arrays["numbers"][BRANCH]), int(arrays["numbers"][EPISODE])
    if not 0 <= branch <= len(learner.core.baseline.policies) or episode < 0:  # kernels look these up unchecked
        raise InvalidInput(f"there is no branch {branch} or no episode {episode}")
    candidates, count = arrays["system.candidate"], int(arrays["system.num_candidates"][0])
    if not NO_SYSTEM <= count <= candidates.size or np.any((candidates < 0) | (candidates >= candidates.size)):
        raise InvalidInput("the system of the last projection names a constraint that does not exist")
    for name, array in arrays.items():
        own[name][...] = array
    prepare(learner.core)
