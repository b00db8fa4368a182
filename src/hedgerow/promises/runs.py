"""The runs of a verification: ordinary cells of an experiment, in which the proofs are watched.

Every adversary has a one-word name here, and depends on the world's own loss and on the length of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.checks import FloatArray, did_you_mean
from hedgerow.errors import InvalidInput
from hedgerow.experiments import parts
from hedgerow.experiments.cells import PlannedCell
from hedgerow.experiments.parts import Part
from hedgerow.registry.table import home_of
from hedgerow.results.naming import canonical

Named = str | Callable[..., Any] | Part
"""A world or a learner: by its name, as a function or class, or as a part with its parameters."""
MARKS = 40
"""Checkpoints of a run: fewer than in a sweep, because many runs are stored"""
DELTA = 0.05
PERIODS = 8
"""Periods of a switching or drifting adversary within a run"""
PURSUIT_RATE = 0.1

ADVERSARIES: Mapping[str, Callable[[FloatArray, int], Part]] = {
    "fixed": lambda loss, T: {"name": "own"},
    "switching": lambda loss, T: _switching(max(2, T // PERIODS), loss, 1.0 - loss, loss),
    "drifting": lambda loss, T: {"name": "drifting", "period": max(2, T // PERIODS)},
    "noisy": lambda loss, T: {"name": "iid", "means": loss.tolist()},
    "turning": lambda loss, T: _switching(max(1, T // 4), loss, *[1.0 - loss] * 3),
    "pursuit": lambda loss, T: {"name": "pursuit", "rate": PURSUIT_RATE},
}


def runs(
    world: Named,
    learner: Named,
    episodes: int | Iterable[int],
    seeds: int | Iterable[int],
    *,
    adversaries: Iterable[str] = ("fixed",),
    presets: Iterable[str] = ("sharp",),
    delta: float = DELTA,
    audit: bool = False,
    estimator: bool = False,
    twin: bool = False,
) -> list[PlannedCell]:
    """The runs of all combinations, by length, adversary, preset, seed; `seeds` is how many, or which. `audit`,
    `estimator` and `twin` say how closely they are watched; the last needs a learner of `twin/learners.py`.
    """
    place, own = _given(world), _given(learner)
    closely = {"audit": audit, "estimator": estimator, **({"twin": True} if twin else {})}
    return [
        _cell(place, adversary, {"name": own["name"], "preset": preset, **own}, T, seed, delta, closely)
        for T in ([episodes] if isinstance(episodes, int) else episodes)
        for adversary in adversaries
        for preset in presets
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
    ]


def _given(thing: Named) -> Part:
    part = thing if isinstance(thing, dict) else {"name": thing}
    return {**part, "name": part["name"] if isinstance(part["name"], str) else home_of(part["name"])}


def _cell(
    world: Part, adversary: str, learner: Part, T: int, seed: int, delta: float, closely: Mapping[str, bool]
) -> PlannedCell:
    told = {**learner, "delta": delta, **{name: True for name, chosen in closely.items() if chosen}}
    labels = {"world": parts.default_label(world), "learner": parts.default_label(told, quiet=("preset",))}
    return PlannedCell.of(
        {
            "world": _world(canonical(world))[0],
            "adversary": _adversary(adversary, canonical(world), T),
            "learner": _learner(canonical(learner)),
            "episodes": T,
            "delta": delta,
            "seed": seed,
            "root_seed": None,
            "marks": MARKS,
            "watch": {**closely, "notes": True},
            "label": {**labels, "adversary": adversary},
        }
    )


@cache
def _world(given: str) -> tuple[Part, FloatArray]:
    """A complete part, and the world's own loss (num_rows,)."""
    part = parts.complete_world(json.loads(given), 0, Path())
    _, loss = parts.build_world(part, Path())
    assert loss is not None
    return part, loss


@cache
def _learner(given: str) -> Part:
    return parts.complete_learner(json.loads(given))


@cache
def _adversary(name: str, world: str, T: int) -> Part:
    if name not in ADVERSARIES:
        raise InvalidInput(f"there is no adversary {name!r}{did_you_mean(name, ADVERSARIES)}")
    return parts.complete_adversary(ADVERSARIES[name](_world(world)[1], T), T)


def _switching(period: int, *patterns: FloatArray) -> Part:
    return {"name": "switching", "period": period, "patterns": [pattern.tolist() for pattern in patterns]}
