"""Run what a level asks for, judge every promise, and hold the controls against them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow import disk
from hedgerow.errors import InvalidInput
from hedgerow.experiments.sweep import Watcher
from hedgerow.promises import confidence, constant, lower, machinery, safe, soft
from hedgerow.promises.controls import CONTROLS, Control
from hedgerow.promises.evidence import Evidence
from hedgerow.promises.levels import Level
from hedgerow.promises.promise import Promise, Status, Verdict

PROMISES: tuple[Promise, ...] = (
    *confidence.PROMISES,
    *soft.PROMISES,
    *safe.PROMISES,
    *constant.PROMISES,
    *lower.PROMISES,
    *machinery.PROMISES,
)
BY_KEY = {promise.key: promise for promise in PROMISES}


@dataclass(frozen=True)
class Judged:
    """A promise with its verdict."""

    promise: Promise
    verdict: Verdict
    runs: int


@dataclass(frozen=True)
class Controlled:
    """A control with the verdict of one of the promises that must refute it."""

    control: Control
    promise: str
    verdict: Verdict
    runs: int

    @property
    def caught(self) -> bool:
        return self.verdict.status is Status.REFUTED


@dataclass(frozen=True)
class Report:
    """The table of a verification."""

    level: str
    promises: tuple[Judged, ...]
    controls: tuple[Controlled, ...]
    manifest: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Nothing refuted that should hold, nothing left standing that should fall."""
        return all(one.verdict.status is not Status.REFUTED for one in self.promises) and all(
            one.caught for one in self.controls
        )

    def as_data(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "promises": [
                {
                    "key": one.promise.key,
                    "statement": one.promise.statement,
                    "reference": one.promise.reference,
                    "probability": one.promise.probability,
                    "refuted_if": one.promise.rule,
                    "runs": one.runs,
                    **_verdict_data(one.verdict),
                }
                for one in self.promises
            ],
            "controls": [
                {
                    "name": one.control.name,
                    "broken": one.control.broken,
                    "promise": one.promise,
                    "caught": one.caught,
                    "runs": one.runs,
                    **_verdict_data(one.verdict),
                }
                for one in self.controls
            ],
            "manifest": self.manifest,
        }


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    figures = {name: value if math.isfinite(value) else None for name, value in verdict.figures.items()}
    return {"verdict": verdict.status.value, "sentence": verdict.sentence, "figures": figures}


def chosen_promises(only: Sequence[str], level: Level) -> list[Promise]:
    """The promises that are asked for and that the level has runs for."""
    unknown = [key for key in only if key not in BY_KEY]
    if unknown:
        raise InvalidInput(f"there is no promise {unknown[0]!r}; they are T1 to T{len(PROMISES)}")
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
    watch: Watcher | None = None,
) -> Report:
    """Everything that `hedgerow verify` does, without its output; results and report are kept in `folder`."""
    begun, evidence = time.perf_counter(), Evidence(level, folder)
    promises = chosen_promises(only, level)
    keys = {promise.key for promise in promises}
    controls = [control for control in CONTROLS if control.name in level.controls and keys & set(control.promises)]
    wanted = [cell for promise in promises for group in promise.groups for cell in level.groups.get(group, [])]
    wanted += [cell for control in controls for cell in level.controls[control.name]]
    tally = evidence.gather(wanted, processes, fresh, watch)
    judged = tuple(_judge(promise, level, evidence) for promise in promises)
    controlled = tuple(
        Controlled(control, key, BY_KEY[key].judge(evidence.seen(control.name, level.controls[control.name])),
                   len(level.controls[control.name]))
        for control in controls
        for key in control.promises
        if key in keys
    )  # fmt: skip
    manifest = {
        "level": level.name,
        "only": list(only),
        "results": evidence.directory.name,
        "runs": tally.total,
        "found_finished": tally.skipped,
        "seconds": round(time.perf_counter() - begun, 1),
    }
    report = Report(level.name, judged, controlled, manifest)
    text = json.dumps(report.as_data(), indent=2, allow_nan=False)
    disk.save(folder / "verdicts.json", f"{text}\n".encode(), overwrite=True)
    return report


def _judge(promise: Promise, level: Level, evidence: Evidence) -> Judged:
    observations = [one for group in promise.groups for one in evidence.seen(group, level.groups.get(group, []))]
    return Judged(promise, promise.judge(observations), len(observations))
