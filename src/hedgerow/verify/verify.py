"""The runs of a verification on disk: an ordinary directory of results below the folder of the verification.

    FOLDER/verdicts.json, verdicts.md, *.svg         what was found
    FOLDER/runs-<hash>/                              the runs behind it, for `hr.results.open`

The hash covers the cells of the level and the sources that run them. So an interrupted verification finds its finished
runs again, and after a change in the code everything is measured again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.components import PLUG_IN
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.progress import Listener
from hedgerow.experiments.spec import CellSpec
from hedgerow.experiments.sweep import Tally, run_cells
from hedgerow.results import store
from hedgerow.results.groups import heading
from hedgerow.results.manifest import MANIFEST, fingerprint
from hedgerow.storage import atomic
from hedgerow.verify.claims import BY_KEY, PROMISES
from hedgerow.verify.controls import CONTROLS
from hedgerow.verify.judging import Claim, Observation, values_of
from hedgerow.verify.levels import Level
from hedgerow.verify.report import Judged, Report, markdown

PACKAGE = Path(__file__).parent.parent
ASIDE = ("bench", "commands", "pages", "promises")
"""Folders that no run depends on, except for `PLAYED` in the last one"""
PLAYED = ("worlds.py", "worlds_known.py", "logged.py", "controls/*.py", "twin/*.py")
STEP_WISE = 20.0
"""How many times longer an episode of a broken learner takes, because it is not compiled"""


@cache
def sources() -> str:
    """The hash of all code that a run depends on."""
    wanted = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ASIDE]
    wanted += [path for pattern in PLAYED for path in (PACKAGE / "promises").glob(pattern)]
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


# --------------------------------------------------------------------------------------------------------------------
# Run the cells of a level, judge every promise, and check that the promises refute the controls.


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
    watch: Listener | None = None,
) -> Report:
    """Do everything that `hedgerow verify` does, without its output; results and report are kept in `folder`."""
    begun, evidence, promises = time.perf_counter(), Evidence(level, folder), chosen_promises(only, level)
    pairs = [
        (promise, control)
        for control in CONTROLS
        for promise in promises
        if control.name in level.controls and promise.key in control.promises
    ]
    wanted = [cell for promise in promises for group in promise.groups for cell in level.groups.get(group, [])]
    wanted += [cell for _, control in pairs for cell in level.controls[control.name]]
    tally = evidence.gather(wanted, processes, fresh, watch)
    judged = []
    for promise in promises:
        seen = [one for group in promise.groups for one in evidence.seen(group, level.groups.get(group, []))]
        judged.append(Judged(promise, promise.judge(seen), len(seen)))
    controlled = []
    for promise, control in pairs:
        seen = evidence.seen(control.name, level.controls[control.name])
        controlled.append(Judged(promise, promise.judge(seen), len(seen), control))
    manifest = {
        "level": level.name,
        "only": list(only),
        "results": evidence.directory.name,
        "runs": tally.total,
        "found_finished": tally.skipped,
        "seconds": round(time.perf_counter() - begun, 1),
    }
    report = Report(level.name, tuple(judged), tuple(controlled), manifest)
    text = json.dumps(report.as_data(), indent=2, allow_nan=False)
    atomic.save(folder / "verdicts.json", f"{text}\n".encode(), overwrite=True)
    if not only:
        atomic.save(folder / "verdicts.md", markdown(report).encode(), overwrite=True)
    return report
