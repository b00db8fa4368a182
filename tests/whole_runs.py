"""Short runs of every learner through the public API, as arrays: for `test_two_modes`, which compares two interpreters.

python tests/whole_runs.py FILE.npz
"""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

import numpy as np

import hedgerow as hr

EPISODES = 20
NOT_OF_THE_RUN = {"seconds"}


def runs() -> dict[str, np.ndarray]:
    """All arrays and numbers of the runs, by learner, preset and name."""
    world = hr.worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=2).cmdp
    losses = hr.losses.Switching(period=4, seed=1)
    found = {}
    for preset in ("paper", "sharp"):
        for name, learner in _learners(world, preset).items():
            run = hr.simulate(world, learner, losses, seed=3, progress=False, marks="all", audit=True)
            found |= {f"{name} {preset}: {key}": value for key, value in _arrays(run).items()}
            found[f"{name} {preset}: policy"] = np.array(learner.policy)
    return found


def _learners(world: hr.CMDP, preset: str) -> dict[str, Any]:
    view, slater = world.view(), hr.offline.slater(world)
    safe: dict[str, Any] = {"baseline": slater.policy, "baseline_costs": slater.costs}
    return {
        "sv-ops": hr.SVOPS(view, EPISODES, 0.05, preset, 5),
        "s-ops": hr.SOPS(view, EPISODES, 0.05, preset, 5, **safe),
        "s-ops, all pairs": hr.SOPS(view, EPISODES, 0.05, preset, 5, joint_cost=False, **safe),
        "cv-ops": hr.CVOPS(view, EPISODES, 0.05, preset, 5),
        "uob-reps": hr.UOBREPS(view, EPISODES, 0.05, preset, 5),
        "b-ops": hr.BOPS(view, EPISODES, 0.05, preset, 5, **safe),
        "c-ops": hr.COPS(view, EPISODES, 0.05, preset, 5, **safe),
    }


def _arrays(run: Any) -> dict[str, np.ndarray]:
    """What a run holds that is a number or an array of them."""
    values = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in NOT_OF_THE_RUN}
    kept = {name: np.asarray(value) for name, value in values.items() if isinstance(value, (int, float, np.ndarray))}
    noted = {**run.notes, **{name: fact for name, fact in run.facts.items() if fact is not None}}
    return kept | {name: np.asarray(value) for name, value in noted.items()}


if __name__ == "__main__":
    with np.errstate(all="ignore"):  # kernels follow IEEE rules without a word
        np.savez(sys.argv[1], **runs())  # type: ignore[arg-type]
