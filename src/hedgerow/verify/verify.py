"""Run the cells of a level, judge every promise, check that the promises refute the controls, and report.

The runs are an ordinary directory of results below the folder of the verification:

    FOLDER/verdicts.json, verdicts.md, *.svg         what was found
    FOLDER/runs-<hash>/                              the runs behind it, for `hr.results.open`

The hash covers the cells of the level and the sources that run them. So an interrupted verification finds its finished
runs again, and after a change in the code everything is measured again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

from hedgerow import paper
from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table, TableCell
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import PLUG_IN
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.progress import Listener
from hedgerow.experiments.spec import CellSpec
from hedgerow.experiments.sweep import Tally, run_cells
from hedgerow.registry.registry import home_of
from hedgerow.report.export import FOR_DOCS, save_figures
from hedgerow.results import store
from hedgerow.results.groups import heading
from hedgerow.results.manifest import MANIFEST, fingerprint
from hedgerow.storage import atomic
from hedgerow.verify import tables
from hedgerow.verify.claims import BY_KEY, PROMISES
from hedgerow.verify.controls import CONTROLS, Control
from hedgerow.verify.figures import plots
from hedgerow.verify.judging import Claim, Observation, Status, Verdict, unrun, values_of
from hedgerow.verify.levels import Level
from hedgerow.verify.mutants import STEPPED, MutantCVOPS, MutantSOPS, MutantSVOPS, SteppedSOPS
from hedgerow.verify.twin_watcher import RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS

PACKAGE = Path(__file__).parent.parent
ASIDE = ("commands", "report", "verify")
"""Folders that no run depends on, except for `PLAYED` in the last one"""
PLAYED = (
    "bounded.py", "calibrated.py", "controls.py", "holes.py", "mutants.py", "stated.py", "twin.py", "twin_watcher.py",
    "worlds.py",
)  # fmt: skip
STEP_WISE = 20.0
"""How many times longer an episode of a broken learner takes, because it is not compiled"""


@cache
def sources() -> str:
    """The hash of all code that a run depends on."""
    wanted = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ASIDE]
    wanted += [PACKAGE / "verify" / name for name in PLAYED]
    digest = hashlib.sha256(" ".join(version(name) for name in ("numpy", "scipy", "numba")).encode())
    for source in sorted(wanted):
        digest.update(source.relative_to(PACKAGE).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


class Evidence:
    """The runs of a level in a folder: `gather` them, then look at what was `seen`."""

    def __init__(self, level: Level, folder: Path) -> None:
        self.cells, self._title = level.cells, f"hedgerow verify, level {level.name}"
        hashes = fingerprint({name: cell.hash for name, cell in self.cells.items()})
        self._experiment = {"verification": level.name, "cells": hashes, "sources": sources()}
        self.directory = folder / f"runs-{fingerprint(self._experiment)[:12]}"

    def gather(self, wanted: Sequence[CellSpec], processes: int, fresh: bool, watch: Listener | None) -> Tally:
        """Run the cells in `wanted` that are not finished yet, or all of them if `fresh`; long runs first."""
        ordered = sorted({cell.id: cell for cell in wanted}.values(), key=_duration, reverse=True)
        for cell in ordered if fresh else ():
            (self.directory / store.CELLS / f"{cell.id}.parquet").unlink(missing_ok=True)
        options = RunOptions(processes, only=tuple(cell.id for cell in ordered), resume=True)
        about = {"experiment": self._experiment, **heading(self._title)}
        tally = run_cells(list(self.cells.values()), self.directory, about, options, watch)
        if tally.interrupted:
            raise KeyboardInterrupt
        for name, error in tally.failed.items():
            raise HedgerowError(f"{len(tally.failed)} of {tally.total} runs failed, the first of them {name}: {error}")
        if not tally.complete:
            raise HedgerowError(f"{tally.total - tally.skipped - tally.done} of {tally.total} runs are missing")
        return tally

    def seen(self, group: str, cells: Sequence[CellSpec]) -> list[Observation]:
        """The finished ones of these cells, for the judges of a group."""
        return [Observation(group, cell.data, self._values[cell.id]) for cell in cells if cell.id in self._values]

    def finished(self, cells: Sequence[CellSpec]) -> int:
        """How many of these cells are finished."""
        return len({cell.id for cell in cells} & self._values.keys())

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, float]]:
        """The numbers of all finished cells, by id."""
        if not (self.directory / MANIFEST).exists():
            return {}
        found = store.open(self.directory)
        return {cell.id: values_of(cell, found.load(cell.id)) for cell in found.done}


def _duration(cell: CellSpec) -> float:
    """Roughly how long a run takes."""
    return float(cell.episodes) * (STEP_WISE if PLUG_IN in cell.learner else 1.0)


# The report -----------------------------------------------------------------------------------------------------------


TONES = {Status.HOLDS: "good", Status.REFUTED: "bad", Status.UNTESTED: "open", Status.UNRUN: "open"}


@dataclass(frozen=True)
class Judged:
    """A promise with its verdict, on sound learners or on a control that it must refute."""

    promise: Claim
    verdict: Verdict
    runs: int
    control: Control | None = None

    @property
    def caught(self) -> bool:
        return self.verdict.status is Status.REFUTED

    def as_data(self) -> dict[str, Any]:
        promise, verdict, control = self.promise, self.verdict, self.control
        if control is None:
            names = ("key", "statement", "reference", "probability")
            told = {**{name: getattr(promise, name) for name in names}, "refuted_if": promise.rule}
        else:
            told = {"name": control.name, "broken": control.broken, "promise": promise.key, "caught": self.caught}
        figures = {name: value if isfinite(value) else None for name, value in verdict.figures.items()}
        found = {"verdict": verdict.status.value, "sentence": verdict.sentence, "figures": figures}
        return {**told, "runs": self.runs, **found}


@dataclass(frozen=True)
class Report:
    """The verdicts on promises and controls."""

    level: str
    promises: tuple[Judged, ...]
    controls: tuple[Judged, ...]
    manifest: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether no promise is refuted, or left without its runs, and every control is refuted."""
        sound = {Status.HOLDS, Status.UNTESTED}
        return all(one.verdict.status in sound for one in self.promises) and all(one.caught for one in self.controls)

    def as_data(self) -> dict[str, Any]:
        told = {name: [one.as_data() for one in getattr(self, name)] for name in ("promises", "controls")}
        return {"passed": self.passed, **told, "manifest": self.manifest}

    def summary(self) -> str:
        """One line."""
        statuses = [one.verdict.status for one in self.promises]
        shown = [status for status in Status if status is not Status.UNRUN or status in statuses]
        told = ", ".join(f"{statuses.count(status)} {status.value}" for status in shown)
        caught = sum(one.caught for one in self.controls)
        controls = f"; controls refuted: {caught} of {len(self.controls)}" if self.controls else ""
        ending = "" if self.passed else "  FAILED"
        return f"{told}{controls}; {self.manifest['runs']} runs, {self.manifest['seconds']:.0f} s{ending}"


def show_report(report: Report) -> None:
    """Print promises and controls as tables, and the overall verdict."""
    out = Screen()
    for table in _tables(report):
        out.table(table)
    out.line(report.summary())


def markdown(report: Report) -> str:
    """The same tables for a page."""
    return "\n\n".join([*(table.to_markdown() for table in _tables(report)), report.summary(), ""]).rstrip() + "\n"


def _tables(report: Report) -> list[Table]:
    columns = ["", "promise", "probability", "runs", "verdict", "measured"]
    promises = Table(f"promises of arXiv {paper.ARXIV}, level {report.level}", columns, num_text=6)
    for one in report.promises:
        promise, verdict = one.promise, one.verdict
        status = TableCell(verdict.status.value, tone=TONES[verdict.status])
        statement = f"{promise.statement} ({promise.reference})"
        promises.add_row(promise.key, statement, promise.probability, f"{one.runs:,}", status, verdict.sentence)
    controls = Table("controls: broken on purpose", ["control", "broken", "by", "refuted", "measured"], num_text=5)
    for one in report.controls:
        data, caught = one.as_data(), TableCell("yes", tone="good") if one.caught else TableCell("NO", tone="bad")
        controls.add_row(data["name"], data["broken"], data["promise"], caught, data["sentence"])
    return [promises, controls] if report.controls else [promises]


# The verification -----------------------------------------------------------------------------------------------------


def chosen_promises(only: Sequence[str], level: Level) -> list[Claim]:
    """The requested promises for which the level has runs."""
    unknown = [key for key in only if key not in BY_KEY]
    if unknown:
        raise InvalidInput(f"there is no promise {unknown[0]!r}; they are T1 to {PROMISES[-1].key}")
    found = [p for p in PROMISES if (not only or p.key in only) and any(g in level.groups for g in p.groups)]
    if not found:
        raise InvalidInput(f"the level {level.name!r} has no runs for {', '.join(only)}")
    return found


def verify(
    level: Level,
    folder: Path,
    *,
    only: Sequence[str] = (),
    processes: int = 2,
    fresh: bool = False,
    finished: bool = False,
    watch: Listener | None = None,
) -> Report:
    """Do everything that `hedgerow verify` does, without its output; results and report are kept in `folder`.

    With `finished` nothing is run, and promises whose runs are not all there are not judged.
    """
    begun, evidence, promises = time.perf_counter(), Evidence(level, folder), chosen_promises(only, level)
    pairs = [
        (promise, control)
        for control in CONTROLS
        for promise in promises
        if control.name in level.controls and promise.key in control.promises
    ]
    wanted = [cell for promise in promises for group in promise.groups for cell in level.groups.get(group, [])]
    wanted += [cell for _, control in pairs for cell in level.controls[control.name]]
    there = evidence.finished(wanted) if finished else evidence.gather(wanted, processes, fresh, watch).skipped
    judged = [_judged(evidence, promise, {group: level.groups.get(group, []) for group in promise.groups})
              for promise in promises]  # fmt: skip
    controlled = [_judged(evidence, promise, {control.name: level.controls[control.name]}, control)
                  for promise, control in pairs]  # fmt: skip
    manifest = {
        "level": level.name,
        "only": list(only),
        "results": evidence.directory.name,
        "runs": evidence.finished(wanted),
        "found_finished": there,
        "seconds": round(time.perf_counter() - begun, 1),
    }
    report = Report(level.name, tuple(judged), tuple(controlled), manifest)
    text = json.dumps(report.as_data(), indent=2, allow_nan=False)
    atomic.save(folder / "verdicts.json", f"{text}\n".encode(), overwrite=True)
    if not only:
        atomic.save(folder / "verdicts.md", markdown(report).encode(), overwrite=True)
    return report


def _judged(
    evidence: Evidence, promise: Claim, groups: Mapping[str, Sequence[CellSpec]], control: Control | None = None
) -> Judged:
    """The verdict of a promise on its runs, or that some of them are missing."""
    seen = [one for group, cells in groups.items() for one in evidence.seen(group, cells)]
    wanted = sum(map(len, groups.values()))
    verdict = promise.judge(seen) if len(seen) == wanted else unrun(len(seen), wanted)
    return Judged(promise, verdict, len(seen), control)


# Figures and tables of the finished runs (`hedgerow verify --figures`) ------------------------------------------------
#
# Figures take a browser, as all figures in files do (`report.export`); tables do not.


def draw(level: Level, folder: Path) -> list[Path]:
    """Write the tables and figures that the finished runs in a folder allow; the files, by name."""
    evidence = Evidence(level, folder)
    found = tables.tables_of({group: evidence.seen(group, cells) for group, cells in level.groups.items()})
    written = tables.keep(folder, found)
    for name, table in tables.PAGE_TABLES.items():
        written.append(folder / f"{name}.md")
        atomic.save(written[-1], f"{table(found).to_markdown()}\n".encode(), overwrite=True)
    drawn = save_figures([(plot, folder / f"{name}.svg") for name, plot in plots(found).items()], FOR_DOCS)
    return sorted([*written, *drawn])


# Power ----------------------------------------------------------------------------------------------------------------
#
# How small a mistake a level still refutes: every constant is multiplied by factors that come ever nearer to 1. The
# runs of the level are repeated with mutants in the place of the sound learners, and the same judges look at them, in
# two ways. *Recomputed*: the promises that compare with the twin. *By the truth*: those that only see whether sets
# lose the truth, episodes are unsafe or frequencies are off; a factor near 1 may pass them.


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
        say(f"{constant.told}: {_shown(near[0])} recomputed, {_shown(far[0])} by the truth", error=True)
    text = json.dumps([asdict(one) for one in found], indent=2)
    atomic.save(folder / "power.json", f"{text}\n".encode(), overwrite=True)
    atomic.save(folder / "power.md", f"{power_table(found, level.name).to_markdown()}\n".encode(), overwrite=True)
    return found


TWIN = ("recomputed",)


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


def power_table(found: Sequence[Detection], level: str) -> Table:
    """The factors nearest to 1 that were refuted, by constant."""
    columns = ["constant", "recomputed: refuted at a factor of", "by", "by the truth: refuted at a factor of", "by"]
    table = Table(f"the factors nearest to 1 that level {level} refutes", columns, num_text=5)
    for one in found:
        near, far = ", ".join(one.recomputed_by), ", ".join(one.truth_by)
        table.add_row(one.told, _shown(one.recomputed), near, _shown(one.truth), far)
    return table


def _shown(factor: float | None) -> str:
    if factor is None:
        return "none"
    return f"1 - {1.0 - factor:.0e}" if factor > 0.985 else f"{factor:g}"
