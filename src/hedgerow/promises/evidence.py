"""The runs of a verification on disk: an ordinary directory of results below the folder of the verification.

    FOLDER/verdicts.json, verdicts.md, *.svg         what was found
    FOLDER/runs-<hash>/                              the runs behind it, for `hr.results.open`

The hash covers the cells of the level and the sources that run them. So a verification that was interrupted finds its
finished runs again, and a change in the code is a new measurement, never an old one read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hedgerow.errors import HedgerowError
from hedgerow.experiments.cells import Cell
from hedgerow.experiments.sweep import Plan, Tally, Watcher, run_cells
from hedgerow.promises.levels import Level
from hedgerow.promises.observation import Observation, values_of
from hedgerow.results import store
from hedgerow.results.manifest import MANIFEST
from hedgerow.results.naming import fingerprint
from hedgerow.results.record import heading

PACKAGES = ("numpy", "scipy", "numba")
HERE = Path(__file__).parent
ASIDE = ("bench", "commands", "pages", "promises")
"""Folders that no run depends on, but for the worlds and controls in the last one."""
STEP_WISE = 20.0
"""How much longer the episodes of a broken learner take, which are not compiled."""


@cache
def sources() -> str:
    """The hash of all code that a run depends on."""
    package = HERE.parent
    wanted = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in ASIDE]
    digest = hashlib.sha256()
    for source in sorted([*wanted, HERE / "worlds.py", *(HERE / "controls").glob("*.py")]):
        digest.update(str(source.relative_to(package)).encode() + b"\0" + source.read_bytes())
    for name in PACKAGES:
        digest.update(version(name).encode())
    return digest.hexdigest()


class Evidence:
    """The finished runs of a level in a folder."""

    def __init__(self, level: Level, folder: Path) -> None:
        self.cells = level.cells
        hashes = fingerprint({name: cell.hash for name, cell in self.cells.items()})
        self._about = {"experiment": {"verification": level.name, "cells": hashes, "sources": sources()}}
        self.directory = folder / f"runs-{fingerprint(self._about)[:12]}"
        self._values: Mapping[str, Mapping[str, float]] | None = None

    def gather(self, wanted: Sequence[Cell], processes: int, fresh: bool, watch: Watcher | None) -> Tally:
        """Run what is not finished yet, or everything that is `wanted`; long runs first."""
        ordered = sorted({cell.id: cell for cell in wanted}.values(), key=_duration, reverse=True)
        if fresh:
            for cell in ordered:
                (self.directory / store.CELLS / f"{cell.id}.parquet").unlink(missing_ok=True)
        about = {**self._about, **heading(f"hedgerow verify: {self._about['experiment']['verification']}")}
        tally = run_cells(
            list(self.cells.values()), self.directory, about, plan=Plan("loky", processes), resume=True,
            only=[cell.id for cell in ordered], watch=watch,
        )  # fmt: skip
        self._values = None
        if tally.interrupted:
            raise KeyboardInterrupt
        for name, error in tally.failed.items():
            raise HedgerowError(f"{len(tally.failed)} of {tally.total} runs failed, the first of them {name}: {error}")
        return tally

    def seen(self, group: str, cells: Sequence[Cell]) -> list[Observation]:
        """Those of the cells that are finished, for the judges of a group."""
        known = self.values
        return [Observation(group, cell.spec, known[cell.id]) for cell in cells if cell.id in known]

    @property
    def values(self) -> Mapping[str, Mapping[str, float]]:
        """The numbers of all finished cells, by id."""
        if self._values is None:
            there = (self.directory / MANIFEST).exists()
            found = store.open(self.directory) if there else None
            self._values = {cell.id: values_of(cell, found.load(cell.id)) for cell in found.done} if found else {}
        return self._values


def _duration(cell: Cell) -> float:
    """Roughly how long a run takes."""
    return float(cell.spec["episodes"]) * (STEP_WISE if "plug-in" in cell.spec["learner"] else 1.0)
