"""Save and load learners: all arrays of the state, the switches, the world's view and the state of the coin.

A loaded learner continues with the same bits as the one that was saved, at any point, also between `plan` and
`observe`. An intact file that describes an impossible state is refused (`soundness.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.confidence.aggregate import no_aggregate
from hedgerow.confidence.balls import no_balls
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.locking import exclusive_as
from hedgerow.learners.ops import settings as switches
from hedgerow.learners.ops.absorb import checked_digests, no_logs
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.soundness import check_indices, check_ranges, check_sizes, check_state
from hedgerow.learners.ops.soundness_sets import restored_coin
from hedgerow.learners.ops.state import Incomplete, LoggedCounts, Patience, Reals, arrays_of_state
from hedgerow.model.view import META, UNFIT, view_arrays, view_from, view_meta
from hedgerow.registry import learners
from hedgerow.storage import datafile

FILE_KIND = "learner"
FILE_VERSION = 6
OLD_VERSIONS = (3, 4, 5)
"""Still read: before raised thresholds were kept from episode to episode, before costs had counts of their own, and
before values could be unknown, absorbed logs were remembered, and what a learner was told was tested."""
TESTED_SINCE = 6
NUM_OLD_REALS = 4
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
    arrays |= {f"state.{name}": array for name, array in learner.state_arrays().items()}
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
    if file.version not in (*OLD_VERSIONS, FILE_VERSION):
        raise FileFormatError(
            f"{source} has schema version {file.version}; this release reads versions {OLD_VERSIONS[0]} to "
            f"{FILE_VERSION}"
        )
    try:
        arrays = file.arrays
        for version in range(file.version, FILE_VERSION):
            arrays = UPGRADES[version](arrays)
        return _from_parts(file.meta, dict(arrays), file.version)
    except KeyError as error:
        raise FileFormatError(f"{source} lacks the entry {error}") from error
    except UNFIT as error:
        problem = str(error) or "there is no memory for it"
        raise FileFormatError(f"{source} does not describe a learner: {problem}") from error


def _from_parts(meta: dict[str, Any], arrays: dict[str, NDArray[Any]], version: int) -> MirrorLearner:
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
    if version < TESTED_SINCE:  # the tests begin here: what was seen before says nothing against anything
        fresh = arrays_of_state(learner.core.state).items()
        groups["state"] |= {name: array.copy() for name, array in fresh if name.startswith("premises.")}
    learner.declared.update(_checked_reasons(meta.get("declared", {})))
    _restore_state(learner, groups["state"])
    if set(groups["logs"]) != {"absorbed"}:
        raise InvalidInput(f"of logs it needs logs.absorbed, not {sorted(groups['logs'])}")
    learner.absorbed = checked_digests(groups["logs"]["absorbed"], learner.core.state.logged.episodes)
    restored_coin(learner, meta["coin"])
    return learner


def _from_version_3(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Upgrade version 3, in which no thresholds were raised."""
    theta, reals = arrays["state.multipliers"], arrays["state.reals"]
    return {
        **arrays,
        "state.certificate": np.full(theta.shape, 1.0 / max(1, theta.size)),
        "state.reals": np.append(reals, np.zeros(len(Reals.fields) - NUM_OLD_REALS)),
    }


def _from_version_4(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Upgrade version 4: the costs of every visit counted, boxes did not store their visits, and P was an argument."""
    visits = arrays["state.counts.num_visits"]
    known = {"view.known.transitions": arrays["argument.transitions"]} if "argument.transitions" in arrays else {}
    return {
        **{name: array for name, array in arrays.items() if name != "argument.transitions"},
        **known,
        "state.counts.num_costs": visits.copy(),
        "state.boxes.visits": np.zeros_like(visits),
        "state.boxes.cost_visits": np.zeros_like(visits),
        **{f"state.aggregate.{name}": array for name, array in flat_arrays(no_aggregate()).items()},
        **{f"state.balls.{name}": array for name, array in flat_arrays(no_balls()).items()},
        "state.search.squares": np.zeros_like(arrays["state.search.cost_sums"]),
        "state.patience": np.zeros(len(Patience.fields), dtype=np.int64),
        "state.logged": np.zeros(len(LoggedCounts.fields), dtype=np.int64),
    }


def _from_version_5(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Upgrade version 5, in which no value was unknown: episodes that were not whole were counted otherwise."""
    prefixes, uncounted, interfered = arrays["state.logged"][2:].tolist()
    if prefixes or uncounted or interfered:
        raise InvalidInput(
            f"an earlier release has counted {max(prefixes, uncounted, interfered)} episodes that were cut "
            "short, overridden or without costs by rules that did not always hold; build the learner anew, from a log "
            "of its episodes"
        )
    return {
        **arrays,
        "logs.absorbed": no_logs(),  # nobody knows which they were
        "state.counts.unknown_moves": np.zeros_like(arrays["state.counts.num_visits"]),
        "state.counts.unknown_costs": np.zeros(arrays["state.counts.cost_sums"].shape, dtype=np.int64),
        "state.incomplete": np.zeros(len(Incomplete.fields), dtype=np.int64),
        "state.search.broken": np.zeros(2 if arrays["state.search.facts"].size else 0, dtype=np.int64),
    }


UPGRADES = {3: _from_version_3, 4: _from_version_4, 5: _from_version_5}
"""By version: the function that makes the arrays of the next one."""


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
    own = arrays_of_state(learner.core.state)
    if set(arrays) != set(own):
        raise InvalidInput(f"the state needs the arrays {sorted(own)}, not {sorted(arrays)}")
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
