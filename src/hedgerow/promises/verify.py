"""Run the cells of a level, judge every promise, and check that the promises refute the controls."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from hedgerow import disk
from hedgerow.errors import InvalidInput
from hedgerow.experiments.sweep import Listener
from hedgerow.promises.controls import CONTROLS
from hedgerow.promises.evidence import Evidence
from hedgerow.promises.levels import Level
from hedgerow.promises.promise import Claim
from hedgerow.promises.report import Judged, Report, markdown
from hedgerow.promises.table import BY_KEY, PROMISES


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
    disk.save(folder / "verdicts.json", f"{text}\n".encode(), overwrite=True)
    if not only:
        disk.save(folder / "verdicts.md", markdown(report).encode(), overwrite=True)
    return report
