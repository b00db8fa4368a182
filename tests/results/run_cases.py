"""Runs and directories that the tests of results and reports share: made up, with numbers that are known in advance."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hedgerow.environments.columns import spread
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.learners.ops.loop import DECLARED
from hedgerow.results import store
from hedgerow.results.groups import heading
from hedgerow.simulation.result import Run


class MadeRun(Run):
    """A run of whose world only the view is needed: the optimum of the losses so far is 3 per episode."""

    @property
    def regret_so_far(self) -> np.ndarray:  # type: ignore[override]
        return self.loss - 3.0 * self.episodes


EPISODES = np.unique(np.round(np.geomspace(1, 1000, 40)).astype(np.int64))


def made_run(
    seed: int = 0,
    *,
    episodes: np.ndarray = EPISODES,
    m: int = 2,
    exponent: float = 0.5,
    worst: Any = -0.1,
    **changes: Any,
) -> Any:
    """A run whose regret is (10 + seed) t^exponent; its i-th violation is (i + 1) sqrt(t) if `worst` is positive."""
    t = episodes.astype(float)
    count = len(t)
    ones = np.ones((count, m))
    positive = float(np.max(worst) > 0.0)
    notes: dict[str, Any] = {
        "mixing_weight": 0.5 / np.sqrt(t),
        "mixing_total": 0.5 * np.sqrt(t),
        "residual": np.full(count, 1e-12),
        "branch": (np.arange(count) % 2).astype(np.int32),
        "status": np.zeros(count, dtype=np.int32),
        "clean_now": np.ones(count, dtype=bool),
        **{name: np.zeros(count, dtype=np.int64) for name in ("unclean", "infeasible", "suspect")},
        "iterations": 3 * episodes,
        **{f"bound_{i}": np.full(count, 1.5) for i in range(m)},
    }
    facts: dict[str, Any] = {
        "least_excess": 0.0,
        "refuted_feasibility": 0,
        "refuted_safety": 0,
        "mirror_left": 1.0,
        "mirror_right": 2.0,
        "mixing_over": -0.1,
        "mixing_slack": float("inf"),
        "t_bar": None,
        "rho_hat": None,
    }
    for own in (notes, facts):
        own |= {name: changes.pop(name) for name in list(changes) if name in own}
    learner = changes.pop("learner", None) or made_learner(m)
    fields: dict[str, Any] = {
        "episodes": episodes,
        "loss": 3.0 * t + (10.0 + seed) * t**exponent,
        "regret": (10.0 + seed) * t**exponent,
        "unsafe": np.zeros(count, dtype=np.int64),
        "costs": t[:, None] * ones,
        "violations": positive * np.sqrt(t)[:, None] * np.arange(1, m + 1),
        "worst": worst * ones,
        "excess": worst * ones,
        "losses": np.zeros((count, 1)),
        "notes": notes,
        "facts": facts,
        "policy": None,
        "optimum": 2.5,
        "comparator": np.zeros(1),
        "scored": "exact",
        "way": "compiled",
        "world": SimpleNamespace(view=lambda: learner.view),
        "learner": learner,
        "seed": seed,
        "seconds": 0.25,
        "columns": tuple(spread(DECLARED, m)),
    }
    return MadeRun(**{**fields, **changes})


def made_learner(m: int = 2, names: tuple[str, ...] | None = None, kind: str = "s-ops") -> Any:
    """Only what a table asks of a learner."""
    names = names or tuple(f"budget {i}" for i in range(m))
    view = SimpleNamespace(constraint_names=names, thresholds=np.linspace(1.0, 2.0, m), num_constraints=m)
    promises = (
        Promise("clean event", "the truth is inside", 0.95, "Lemma 1"),
        Promise("safety", "costs <= thresholds", 0.95, "Theorem 2", "confidence_scale = 0.5 < 1"),
    )
    return SimpleNamespace(view=view, kind=kind, guarantees=lambda: Ledger("S-OPS", promises))


def made_spec(learner: str = "s-ops sharp", seed: int = 0, world: str = "toy", **changes: Any) -> dict[str, Any]:
    return {
        "world": {"name": "random-layered", "seed": 0},
        "adversary": {"name": "switching", "period": 100},
        "learner": {"name": "s-ops", "preset": "sharp", "as": learner},
        "episodes": 1000,
        "delta": 0.01,
        "seed": seed,
        "label": {"world": world, "adversary": "switching 100", "learner": learner},
        **changes,
    }


def made_directory(path: Path, seeds: int = 4, worlds: tuple[str, ...] = ("toy",), **names: Any) -> Path:
    """Two learners on each world: a safe one of exponent 0.5, one of exponent 0.75 that violates."""
    store.create(path, {**heading("made up"), "experiment": {}, "source": 'title = "made up"\n'})
    entries = {}
    for world in worlds:
        for learner, exponent, worst in (("s-ops sharp", 0.5, -0.1), ("sv-ops", 0.75, 0.2)):
            for seed in range(seeds):
                spec = made_spec(learner, seed, world)
                spec["world"]["name"] = world
                run = made_run(seed, exponent=exponent, worst=worst, learner=made_learner(**names))
                written = store.write_cell(path, spec, run, facts={"slater": 0.3})
                entries[written.stem] = {"status": "done", "seconds": {"loop": 0.5, "total": 0.8}, "attempts": 1}
    store.update_manifest(path, {"cells": entries})
    return path
