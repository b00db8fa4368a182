"""A learner saved and loaded after any number of episodes is the same learner, to the last bit, and goes on alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr

HORIZON = 60


@cache
def world() -> Any:
    return hr.worlds.make("random-layered", layers=(1, 2, 3, 1), actions=2, constraints=2).cmdp


def made(kind: str, preset: str, seed: int) -> Any:
    view, slater = world().view(), hr.offline.slater(world())
    if kind in ("s-ops", "b-ops"):
        safe: dict[str, Any] = {"baseline": slater.policy, "baseline_costs": slater.costs}
        return hr.learners.find(kind)(view, HORIZON, 0.05, preset, seed, **safe)
    cls = {"sv-ops": hr.SVOPS, "cv-ops": hr.CVOPS, "uob-reps": hr.UOBREPS}[kind]
    return cls(view, HORIZON, 0.05, preset, seed)


def played(learner: Any, episodes: int, seed: int, step_wise: bool) -> Any:
    losses = hr.losses.Switching(period=3, seed=1)
    options: dict[str, Any] = {"episodes": episodes, "step_wise": step_wise, "marks": "all", "progress": False}
    return hr.simulate(world(), learner, losses, seed=seed, **options)


def content(learner: Any, folder: Path) -> bytes:
    """Everything that a learner is."""
    path = folder / "content.hedgerow"
    learner.save(path, overwrite=True)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops"])
@settings(max_examples=settings.default.max_examples // 4)
@given(
    st.sampled_from(["paper", "sharp"]),
    st.integers(0, HORIZON - 10),
    st.integers(1, 10),
    st.integers(0, 2**63 - 1),
    st.booleans(),
    st.booleans(),
)
def test_a_loaded_learner_goes_on_bit_for_bit(
    kind: str, preset: str, before: int, after: int, seed: int, step_wise: bool, other_way: bool
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        learner = made(kind, preset, seed)
        if before:
            played(learner, before, seed, step_wise)
        learner.save(folder / "learner.hedgerow")
        loaded = hr.load(folder / "learner.hedgerow")
        assert content(loaded, folder) == content(learner, folder)
        # One goes on compiled and the other one step by step, or both alike.
        one, other = played(learner, after, 5, step_wise), played(loaded, after, 5, step_wise != other_way)
        assert np.array_equal(one.policy, other.policy)
        for mine, theirs in ((vars(one), vars(other)), (one.notes, other.notes)):
            assert set(mine) == set(theirs)
            for key, value in mine.items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(theirs[key], value, err_msg=key)
        assert content(loaded, folder) == content(learner, folder)
