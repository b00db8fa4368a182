"""Runs in files, and `load`, which reads any data file that hedgerow wrote.

A run is one data file: its curves, its world and what its learner promised. The learner itself is not in it; it has a
file of its own (`hr.save`). In its place a loaded run has a `LearnerRecord`, and in the place of an environment without
a model an `EnvironmentRecord`: neither can play.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hedgerow._late import late
from hedgerow.checks import frozen
from hedgerow.display.terms import Terms
from hedgerow.environments.columns import Column
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners import files as learner_files
from hedgerow.learners.api import Inputs, Learner, Plan
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy
from hedgerow.model.view import UNFIT, View
from hedgerow.simulation.result import CURVES, FILE_KIND, FILE_VERSION, TEXTS, Run
from hedgerow.storage import datafile


@dataclass(eq=False)
class LearnerRecord:
    """What a file keeps of the learner of a run: its name, what it knew, and what it promised."""

    view: View
    class_name: str
    """The class that it was an object of."""
    kind: str
    inputs: Inputs | None
    feedback: str
    delta: float | None
    settings: SimpleNamespace
    """With the `preset`, the empty text for a learner without one."""
    ledger: Ledger | None

    def plan(self) -> Plan:
        """Refuse: a record cannot play."""
        raise InvalidInput("a saved run does not hold its learner, only what it promised; save learners with hr.save")

    def observe(self, episode: Episode) -> None:
        """Refuse: a record cannot learn."""
        self.plan()

    def guarantees(self) -> Ledger | None:
        """Return what the learner promised; None if it made no promises."""
        return self.ledger


@dataclass(frozen=True, eq=False)
class EnvironmentRecord:
    """What a file keeps of an environment: its view, why it voids promises, and the model that scored it, if any."""

    shown: View
    void_because: str = ""
    model: SimpleNamespace | None = None
    """With the `cmdp`."""

    def view(self) -> View:
        """Return what a learner could know of it."""
        return self.shown

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Refuse: a record cannot be played in."""
        raise InvalidInput("a saved run does not hold its environment; build it anew")


def run_from_file(file: datafile.DataFile, source: str = "data") -> Run:
    """The run in a data file that has been read already."""
    if file.version != FILE_VERSION:
        raise FileFormatError(f"{source} has schema version {file.version}; this release reads version {FILE_VERSION}")
    try:
        return _run(dict(file.meta), dict(file.arrays), source)
    except KeyError as error:
        raise FileFormatError(f"{source} lacks the entry {error} of a run") from error
    except (*UNFIT, HedgerowError, AttributeError) as error:
        raise FileFormatError(f"{source} does not describe a run: {error or 'no memory for it'}") from error


def _run(meta: dict[str, Any], arrays: dict[str, NDArray[Any]], source: str) -> Run:
    kinds: dict[str, Any] = {"cmdp": CMDP, "view": View}
    place = kinds[meta["world"]].from_bytes(arrays["world"].tobytes(), f"the world in {source}")
    model = None
    if "model" in arrays:
        model = SimpleNamespace(cmdp=CMDP.from_bytes(arrays["model"].tobytes(), f"the model in {source}"))
    world = place if isinstance(place, CMDP) else EnvironmentRecord(place, meta["void_because"], model)
    view = world.view()
    curves = _curves(arrays, view)
    count, rows = len(curves["episodes"]), (view.layout.num_rows,)
    noted = {name: frozen(_shaped(arrays, f"note.{name}", (count,))) for name in meta["notes"]}
    facts = {name: None if kept is None else arrays[f"fact.{name}"].item() for name, kept in meta["facts"].items()}
    policy = Policy(view, arrays["policy"]) if "policy" in arrays else None
    return Run(
        **curves,
        notes=MappingProxyType(noted),
        facts=MappingProxyType(facts),
        policy=policy,
        optimum=float(_shaped(arrays, "optimum", ())),
        comparator=frozen(_shaped(arrays, "comparator", rows)),
        seconds=float(_shaped(arrays, "seconds", ())),
        world=world,
        learner=_record(meta["learner"], view),
        columns=msgspec.convert(meta["columns"], tuple[Column, ...]),
        baseline=frozen(_shaped(arrays, "baseline", rows)) if "baseline" in arrays else None,
        terms=msgspec.convert(meta["terms"], Terms),
        **{name: meta[name] for name in TEXTS},
    )


def _curves(arrays: Mapping[str, NDArray[Any]], view: View) -> dict[str, Any]:
    count, m, rows = len(arrays["curve.episodes"]), view.num_constraints, view.layout.num_rows
    wide = {"costs": (count, m), "violations": (count, m), "worst": (count, m), "excess": (count, m)}
    shapes = {**wide, "losses": (count, rows)}
    curves = {name: frozen(_shaped(arrays, f"curve.{name}", shapes.get(name, (count,)))) for name in CURVES}
    episodes = curves["episodes"]
    if episodes.dtype != np.int64 or curves["unsafe"].dtype != np.int64 or np.any(np.diff(episodes, prepend=0) <= 0):
        raise InvalidInput("its checkpoints are not ascending numbers of episodes")
    return curves


def _shaped(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if arrays[name].shape != shape or arrays[name].dtype.kind not in "fib":
        raise InvalidInput(f"{name} has the shape {arrays[name].shape}, not {shape}")
    return arrays[name]


def _record(kept: Mapping[str, Any], view: View) -> LearnerRecord:
    ledger = kept["ledger"]
    if ledger is not None:
        promises = tuple(Promise(**promise) for promise in ledger["promises"])
        ledger = Ledger(ledger["learner"], promises, tuple(ledger["assumptions"]))
    inputs = None if kept["inputs"] is None else Inputs(**kept["inputs"])
    settings = SimpleNamespace(preset=kept["preset"])
    return LearnerRecord(
        view, kept["class_name"], kept["kind"], inputs, kept["feedback"], kept["delta"], settings, ledger
    )


_READERS: dict[str, Callable[[datafile.DataFile, str], Any]] = {
    "cmdp": CMDP.from_file,
    "view": View.from_file,
    learner_files.FILE_KIND: learner_files.from_file,
    FILE_KIND: run_from_file,
    "world": lambda file, source: late("worlds.world:read_definition")(file, source),
    ObliviousLosses.file_kind: ObliviousLosses.from_file,
}
"""By kind of data file"""


def load(path: str | os.PathLike[str]) -> CMDP | View | Learner | Run:
    """Read any data file that hedgerow wrote.

    Args:
        path: The file.

    Returns:
        A CMDP, a view, a `WorldDefinition`, losses, a learner or a run: what the file holds. A run has its world and
        what its learner promised, but not the learner itself.

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
    content: CMDP | View | Learner | Run = _READERS[file.kind](file, str(path))
    return content
