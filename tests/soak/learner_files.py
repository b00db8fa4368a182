"""Learners in all kinds of situations, and the worlds they live in: what the soaks of learners start from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

sys.path.append(str(Path(__file__).resolve().parent.parent / "learners"))

from learner_cases import draw_path, make_learner, random_world
from learner_cases import to_bytes as to_bytes

from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.model.cmdp import CMDP


@dataclass(frozen=True)
class Situation:
    """A learner after some episodes; `pending` if it has planned another one."""

    name: str
    kind: str
    world: CMDP
    episodes: int
    options: dict[str, Any]
    pending: bool = False

    def learner(self) -> Learner:
        learner = make_learner(self.kind, self.world, **{"episodes": 300, "seed": 5, **self.options})
        rng = np.random.default_rng(1)
        for _ in range(self.episodes):
            learner.plan()
            observe(learner, self.world, rng)
        if self.pending:
            learner.plan()
        return learner


def observe(learner: Learner, world: CMDP, rng: Generator) -> None:
    """Play what is planned."""
    plans = learner.open_plans
    if not plans:  # another thread was faster
        raise InvalidInput("no episode is planned")
    rows = draw_path(world, plans[0].policy, rng)
    costs = (rng.random((len(rows), world.num_constraints)) < world.mean_costs[:, rows].T).astype(float)
    learner.observe(rows, rng.random(len(rows)), costs)


def situations() -> list[Situation]:
    plain, sparse = random_world(3), random_world(7, (1, 3, 3, 1), 2, sparse=True)
    tight, small = {"confidence_scale": 0.05}, {"confidence_scale": 0.02}
    return [
        Situation("sv-ops, new", "sv-ops", plain, 0, {}),
        Situation("sv-ops", "sv-ops", plain, 40, tight),
        Situation("sv-ops, sharp", "sv-ops", plain, 40, {"preset": "sharp"}, pending=True),
        Situation("sv-ops, sparse, known", "sv-ops", sparse, 25, {"transitions": sparse.transitions}),
        Situation("sv-ops, doubling", "sv-ops", plain, 20, {"episodes": None, "horizon": "doubling"}),
        Situation("sv-ops, infeasible", "sv-ops", plain.with_thresholds([0.4, 0.4]), 30, small),
        Situation("s-ops", "s-ops", plain, 40, tight, pending=True),
        Situation("s-ops, sharp", "s-ops", plain, 30, {"preset": "sharp", **tight}),
        Situation("s-ops, sharpest", "s-ops", plain, 60, {"preset": "sharpest", **tight}, pending=True),
        Situation("s-ops, balls", "s-ops", random_world(5, (1, 7, 2, 1), 2), 60, {"preset": "sharpest", **tight}),
        Situation("s-ops, sparse", "s-ops", sparse, 37, tight),
        Situation("b-ops", "b-ops", plain, 60, {"preset": "sharpest"}, pending=True),
        Situation("cv-ops, searching", "cv-ops", plain, 15, {}, pending=True),
        Situation("cv-ops, found", "cv-ops", plain, 60, small),
        Situation("cv-ops, discard", "cv-ops", plain, 60, {"phase2_stats": "discard", **small}, pending=True),
        Situation("cv-ops, sampled", "cv-ops", plain, 60, {"memory_budget": 8 * 12 * 5, **small}),
        Situation("uob-reps", "uob-reps", plain, 50, {}),
        Situation("uob-reps, sharp", "uob-reps", sparse, 45, {"preset": "sharp"}),
    ]
