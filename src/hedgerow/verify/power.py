"""How small a mistake a level still refutes: every constant is multiplied by factors that come ever nearer to 1.

The runs of the level are repeated with mutants (`controls/mutants.py`) in the place of the sound learners, and the same
judges look at them, in two ways. *Recomputed*: the promises that compare with the twin. *By the truth*: those that only
see whether sets lose the truth, episodes are unsafe or frequencies are off; a factor near 1 may pass them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import PLUG_IN
from hedgerow.experiments.spec import CellSpec
from hedgerow.registry.registry import home_of
from hedgerow.storage import atomic
from hedgerow.verify.levels import Level
from hedgerow.verify.mutants import STEPPED, MutantCVOPS, MutantSOPS, MutantSVOPS, SteppedSOPS
from hedgerow.verify.twin.watcher import RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS
from hedgerow.verify.verify import verify

NEAR = tuple(1.0 - 10.0**-k for k in range(1, 11))
"""Factors for what is recomputed"""
FAR = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
"""Factors for what is judged by the truth"""
MUTANTS: Mapping[str, type[Any]] = {
    **dict.fromkeys(("sv-ops", home_of(RecomputedSVOPS)), MutantSVOPS),
    **dict.fromkeys(("s-ops", home_of(RecomputedSOPS)), MutantSOPS),
    **dict.fromkeys(("cv-ops", home_of(RecomputedCVOPS)), MutantCVOPS),
}


@dataclass(frozen=True)
class Constant:
    """What is multiplied, and which promises may notice it."""

    name: str
    told: str
    recomputed: tuple[str, ...]
    """Promises that compare with the twin"""
    truth: tuple[str, ...]
    """Promises about what can be seen without it"""
    groups: tuple[str, ...]
    """The runs in which these are judged"""


CONSTANTS = (
    Constant("cost_log", "logarithm of the bounds of costs", ("T22",), ("T1", "T7"), ("confidence", "coverage")),
    Constant("transition_log", "logarithm of the boxes", ("T22",), ("T2", "T7"), ("confidence", "coverage")),
    Constant("ball_log", "logarithm of the balls", ("T22",), ("T2",), ("coverage",)),
    Constant("certificate_log", "logarithm of the certificate", ("T23",), ("T1", "T7"), ("coverage",)),
    Constant("squares", "VV of the certificate", ("T23",), ("T1",), ("coverage",)),
    Constant("ceiling", "largest cost of an episode", ("T24",), ("T7",), ("confidence", "coverage")),
    Constant("mixing", "lambda", ("T24",), ("T7",), ("confidence",)),
    Constant("coin", "probability of the baseline", (), ("T25",), ("confidence",)),
    Constant("eta", "eta", ("T26",), ("T18",), ("deterministic",)),
    Constant("gamma", "gamma", ("T26",), ("T19", "T29", "T30"), ("estimator",)),
    Constant("search_radius", "radius of the search", ("T27",), ("T12", "T15"), ("search", "constant")),
)


@dataclass(frozen=True)
class Detection:
    """The factors nearest to 1 that were refuted, and by which promises; None where none of them was."""

    constant: str
    told: str
    recomputed: float | None
    recomputed_by: tuple[str, ...]
    truth: float | None
    truth_by: tuple[str, ...]


def power(level: Level, folder: Path, *, only: Sequence[str] = (), processes: int = 2) -> list[Detection]:
    """Find out for every constant, or those in `only`; results and the table are kept in `folder`."""
    names = [constant.name for constant in CONSTANTS]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise InvalidInput(f"there is no constant {unknown[0]!r}; they are {', '.join(names)}")
    found = []
    for constant in CONSTANTS:
        if only and constant.name not in only:
            continue
        trial = PowerTrial(level, folder, constant, processes)
        near, far = trial.nearest(NEAR, constant.recomputed, TWIN), trial.nearest(FAR, constant.truth, constant.groups)
        found.append(Detection(constant.name, constant.told, *near, *far))
        say(_row(found[-1]), error=True)
    text = json.dumps([asdict(one) for one in found], indent=2)
    atomic.save(folder / "power.json", f"{text}\n".encode(), overwrite=True)
    atomic.save(folder / "power.md", "\n".join([*HEAD, *map(_row, found), ""]).encode(), overwrite=True)
    return found


TWIN = ("recomputed",)
HEAD = (
    "| constant | recomputed: refuted at a factor of | by | by the truth: refuted at a factor of | by |",
    "|---|---|---|---|---|",
)


@dataclass(frozen=True)
class PowerTrial:
    """The runs of a level with a mutant in the place of the sound learner."""

    level: Level
    folder: Path
    constant: Constant
    processes: int

    def nearest(
        self, factors: Sequence[float], promises: Sequence[str], groups: Sequence[str]
    ) -> tuple[float | None, tuple[str, ...]]:
        """The last of these factors, which come ever nearer to 1, that is refuted, and by whom.

        Bisection: what is refuted is refuted farther away from 1 as well.
        """
        low, high = 0, len(factors)
        best: tuple[str, ...] = ()
        while low < high:  # factors[:low] are refuted, factors[high:] are not
            middle = (low + high) // 2
            by = self.refuted_by(factors[middle], promises, groups)
            if by:
                low, best = middle + 1, by
            else:
                high = middle
        return (factors[low - 1], best) if low else (None, ())

    def refuted_by(self, factor: float, promises: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
        """The promises among these that refute the constant times `factor`."""
        mutated = {group: self._mutated(self.level.groups.get(group, []), factor) for group in groups}
        mutated = {group: cells for group, cells in mutated.items() if cells}
        if not promises or not mutated:
            return ()
        place = self.folder / self.constant.name / f"{factor!r}-{'-'.join(groups)}"
        report = verify(Level(self.level.name, mutated), place, only=promises, processes=self.processes)
        return tuple(one.promise.key for one in report.promises if one.caught)

    def _mutated(self, cells: Sequence[CellSpec], factor: float) -> list[CellSpec]:
        name, found = self.constant.name, []
        for cell in cells:
            own = {key: value for key, value in cell.learner.items() if key != PLUG_IN}
            mutant = MUTANTS.get(own["name"])
            if mutant is MutantSOPS and name in STEPPED:
                mutant = SteppedSOPS
            if mutant is not None and name in inspect.signature(mutant).parameters:
                told = {**own, "name": home_of(mutant), name: factor}
                found.append(replace(cell, learner=components.complete_learner(told)))
        return found


def _row(one: Detection) -> str:
    cells = (one.told, _shown(one.recomputed), ", ".join(one.recomputed_by), _shown(one.truth), ", ".join(one.truth_by))
    return f"| {' | '.join(cells)} |"


def _shown(factor: float | None) -> str:
    if factor is None:
        return "none"
    return f"1 - {1.0 - factor:.0e}" if factor > 0.985 else f"{factor:g}"


def show(found: Sequence[Detection], level: str) -> None:
    """Print the table."""
    columns = ["constant", "recomputed", "by", "by the truth", "by"]
    table = Table(f"the factors nearest to 1 that level {level} refutes", columns, num_text=5)
    for one in found:
        near, far = ", ".join(one.recomputed_by), ", ".join(one.truth_by)
        table.add_row(one.told, _shown(one.recomputed), near, _shown(one.truth), far)
    Screen().table(table)
