"""Golden runs: do two versions of the package compute the same bits?

    python tools/golden_runs.py record out/golden.json      # with the version before a change
    python tools/golden_runs.py check out/golden.json       # with the version after it

A run is a learner with a preset in a world, for 2,000 episodes, compiled and step by step. The tool compares hashes of
every array of the learner's state and of the curves of the run; arrays that only the later version has do not count.
Hashes depend on the machine (its vector instructions decide the last bits), so the file is made where it is used and is
not part of the repository.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr

EPISODES = 2_000
WORLDS = ("random-layered", "dope-media", "dope-inventory")
PRESETS = ("paper", "sharp")
LEARNERS = ("svops", "sops", "cvops", "uobreps")
CURVES = ("episodes", "loss", "costs", "violations")


def runs() -> Iterator[tuple[str, dict[str, str]]]:
    """The name of every run, and the hashes of its arrays by name."""
    for world_name in WORLDS:
        world = hr.catalogue.make(world_name)
        for learner_name in LEARNERS:
            for preset in PRESETS:
                for way in ("compiled", "step-wise"):
                    learner = _learner(learner_name, world.cmdp, preset)
                    losses = hr.losses.Switching(period=100, seed=1)
                    run = hr.simulate(world.cmdp, losses, learner, 3, False, step_wise=way == "step-wise")
                    curves = {f"curve.{name}": np.asarray(getattr(run, name)) for name in CURVES}
                    curves["curve.mixing_total"] = run["mixing_total"]
                    yield f"{world_name} {learner_name} {preset} {way}", _digests({**learner.state_arrays(), **curves})


def _learner(name: str, cmdp: hr.CMDP, preset: str) -> Any:
    common: dict[str, Any] = {"preset": preset, "seed": 5}
    if name == "sops":
        slater = hr.offline.slater(cmdp)
        common |= {"baseline": slater}
    if name == "cvops":
        common |= {"confidence_scale": 0.05}  # else phase 2 would not begin
    return getattr(hr, name.upper())(cmdp.view(), EPISODES, 0.05, **common)


def _digests(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, str]:
    found = {}
    for name, array in arrays.items():
        what = f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
        found[name] = hashlib.sha256(what).hexdigest()[:16]
    return found


def main(command: str, file: Path) -> int:
    """Record all hashes in `file`, or compare with them; the number of runs that differ."""
    found, different = {}, 0
    known = json.loads(file.read_text()) if command == "check" else {}
    for name, digests in runs():
        found[name] = digests
        if command == "record":
            print(name, flush=True)
            continue
        wrong = [array for array, digest in known[name].items() if digests.get(array) != digest]
        different += bool(wrong)
        print(f"{name:45} {'DIFFERENT: ' + ', '.join(wrong) if wrong else 'same'}", flush=True)
    if command == "record":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n")
    else:
        print(f"{len(found)} runs, {different} different")
    return different


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "check"):
        sys.exit(__doc__)
    sys.exit(min(1, main(sys.argv[1], Path(sys.argv[2]))))
