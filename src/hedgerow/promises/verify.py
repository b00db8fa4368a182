"""Run what a level asks for, judge every promise, and hold the controls against them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.promises import confidence, constant, lower, machinery, safe, soft
from hedgerow.promises.controls import CONTROLS, Control
from hedgerow.promises.levels import Level
from hedgerow.promises.observation import Observation, take
from hedgerow.promises.promise import Promise, Status, Verdict
from hedgerow.promises.specs import RunSpec
from hedgerow.promises.store import Store, manifest

PROMISES: tuple[Promise, ...] = (
    *confidence.PROMISES,
    *soft.PROMISES,
    *safe.PROMISES,
    *constant.PROMISES,
    *lower.PROMISES,
    *machinery.PROMISES,
)
BY_KEY = {promise.key: promise for promise in PROMISES}

Advance = Callable[[int, int, str], None]
"""Called with (runs done, runs in all, what was just done)."""


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
    advance: Advance | None = None,
) -> Report:
    """Everything that `hedgerow verify` does, without its output; observations and report are kept in `folder`."""
    begun, store = time.perf_counter(), Store(folder)
    promises = chosen_promises(only, level)
    keys = {promise.key for promise in promises}
    controls = [c for c in CONTROLS if c.name in level.controls and keys & set(c.promises)]
    wanted = [spec for promise in promises for group in promise.groups for spec in level.groups.get(group, [])]
    wanted += [spec for control in controls for spec in level.controls[control.name]]
    found, resumed = _observe_all(wanted, store, processes, fresh, advance)
    judged = tuple(_judge(promise, level, found) for promise in promises)
    controlled = tuple(
        Controlled(c, key, BY_KEY[key].judge([found[s.digest] for s in level.controls[c.name]]),
                   len(level.controls[c.name]))
        for c in controls
        for key in c.promises
        if key in keys
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    report = Report(
        level.name, judged, controlled, manifest(level.name, tuple(only), len(found), resumed, seconds)
    )  # fmt: skip
    store.write_json("manifest.json", report.manifest)
    store.write_json("verdicts.json", report.as_data())
    return report


def _judge(promise: Promise, level: Level, found: dict[str, Observation]) -> Judged:
    observations = [
        Observation(spec, found[spec.digest].values, found[spec.digest].curves)
        for group in promise.groups
        for spec in level.groups.get(group, [])
    ]
    return Judged(promise, promise.judge(observations), len(observations))


# Runs -----------------------------------------------------------------------------------------------------------------


def _observe_all(
    wanted: Sequence[RunSpec], store: Store, processes: int, fresh: bool, advance: Advance | None
) -> tuple[dict[str, Observation], int]:
    """The observations of all specs by digest, and how many were there already."""
    specs = list({spec.digest: spec for spec in wanted}.values())
    found: dict[str, Observation] = {}
    if not fresh:
        for spec in specs:
            known = store.find(spec)
            if known is not None:
                found[spec.digest] = known
    resumed, missing = len(found), [spec for spec in specs if spec.digest not in found]
    tell = advance or (lambda done, total, what: None)
    tell(len(found), len(specs), "found finished")
    for observation in _runs(missing, processes):
        store.keep(observation)
        found[observation.spec.digest] = observation
        tell(len(found), len(specs), observation.spec.title)
    return found, resumed


def _cost(spec: RunSpec) -> float:
    """Roughly how long a run takes: long ones first, so that the processes end together."""
    step_wise = 20.0 if spec.control and spec.control not in ("literal-sigma", "unconstrained") else 1.0
    return spec.episodes * step_wise


def _runs(specs: Sequence[RunSpec], processes: int) -> Any:
    """Observations as they come."""
    ordered = sorted(specs, key=_cost, reverse=True)
    if processes == 1 or len(ordered) < 2:
        return map(take, ordered)
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        raise InvalidInput("several processes need joblib; install hedgerow[bench], or use one: -j 1") from error

    return Parallel(n_jobs=processes, return_as="generator_unordered")(delayed(take)(spec) for spec in ordered)
