"""Worlds of which something is known: shared laws, known rows and costs, ceilings; and how learners meet them."""

from __future__ import annotations

from typing import Any

import numpy as np
from learner_cases import draw_path, make_learner
from numpy.random import Generator

import hedgerow as hr
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.knowledge import ARRAYS

NAN = np.nan
MIXING = ("s-ops", "cv-ops")
NO_EXTRAS = {"aggregate": False, "ball_from": 0}


def process(seed: int = 0, *, horizon: int = 4) -> CMDP:
    """A process of three states, unrolled: 18 of its 24 rows share transition laws, and all of them cost laws."""
    rng = np.random.default_rng(seed)
    P = rng.exponential(size=(3, 2, 3))
    P[0, 0] = [0.0, 1.0, 0.0]
    P /= P.sum(axis=-1, keepdims=True)
    costs = rng.uniform(0.05, 0.5, (1, 3, 2))
    costs[0, 1, 0] = 0.0
    return hr.unroll(P, horizon, np.array([0.5, 0.5, 0.0]), costs=costs, thresholds=[2.0]).cmdp


TIED = process()


def _pieces(world: CMDP) -> dict[str, dict[str, Any]]:
    first, means, p = world.knowledge.same_transitions, world.mean_costs, world.transitions
    assert first is not None
    known = np.isin(first, np.unique(first)[::2])[world.layout.row_of_triple]
    some_rows, zeros = np.where(known, p, NAN), np.where(means == 0.0, 0.0, NAN)
    return {
        "ties": {},
        "some rows": {"transitions": some_rows},
        "all rows": {"transitions": p},
        "zero costs": {"costs": zeros},
        "all costs": {"costs": means},
        "a ceiling": {"max_episode_cost": [4.0]},
        "independent costs": {"independent_costs": True},
        "much": {"transitions": some_rows, "costs": zeros, "max_episode_cost": [4.0], "independent_costs": True},
    }


PIECES = _pieces(TIED)


def knowing(what: str, world: CMDP = TIED) -> CMDP:
    """The world with one of the `PIECES` beside its ties; `nothing` is without these."""
    if what == "nothing":
        return world.with_knowledge(None)
    return world.with_knowledge({**{name: getattr(world.knowledge, name) for name in ARRAYS}, **PIECES[what]})


def learner_for(kind: str, world: CMDP, episodes: int | None = 400, **options: Any) -> Learner:
    """`make_learner`, with radii for CV-OPS that let its first phase end soon, and room for 400 policies."""
    if kind == "cv-ops":
        options = {"confidence_scale": 0.05, "memory_budget": 8 * world.layout.num_rows * 400, **options}
    return make_learner(kind, world, episodes, **{"seed": 5, **options})


def episode_of(world: CMDP, policy: Any, rng: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, losses and costs of an episode, by numpy alone."""
    rows = draw_path(world, policy, rng)
    costs = (rng.random((len(rows), world.num_constraints)) < world.mean_costs[:, rows].T).astype(float)
    return rows, rng.random(len(rows)), costs


def play(learner: Learner, world: CMDP, episodes: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(episodes):
        learner.observe(*episode_of(world, learner.plan().policy, rng))
