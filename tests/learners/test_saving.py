"""Learners of anybody in files: they go on with the same bits, and a file never brings code of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foreign_learners import FollowTheLeader, Uniform
from learner_cases import make_learner, random_world

import hedgerow as hr
from hedgerow.simulation.run import Simulation
from hedgerow.storage import datafile


@pytest.mark.parametrize("sparse", [False, True])
def test_a_foreign_learner_goes_on_from_its_file(sparse: bool, tmp_path: Path) -> None:
    world = random_world(3, (1, 3, 3, 1), sparse=sparse)
    first = Simulation(world, FollowTheLeader(world.view(), 60, seed=4), hr.losses.IID(seed=1), 7)
    first.advance(25)
    hr.save(first.learner, tmp_path / "own.hedge")
    back = hr.load(tmp_path / "own.hedge")
    assert isinstance(back, FollowTheLeader)
    assert back.view.layout == world.layout
    for _ in range(10):
        one, other = first.learner.plan(), back.plan()
        np.testing.assert_array_equal(one.policy, other.policy)
        assert one.notes == other.notes
        episode = hr.Episode(world.view(), [0, 2, 8], np.ones(3), np.zeros((3, 2))) if not sparse else None
        if episode is None:
            break
        first.learner.observe(episode)
        back.observe(episode)
    with pytest.raises(hr.errors.InvalidInput, match="exists already"):
        hr.save(back, tmp_path / "own.hedge")


def test_own_learners_are_saved_as_ever(tmp_path: Path) -> None:
    learner = make_learner("s-ops", random_world(0))
    hr.save(learner, tmp_path / "s.hedge")
    assert isinstance(hr.load(tmp_path / "s.hedge"), hr.SOPS)


def test_what_cannot_be_saved_or_read_is_named(tmp_path: Path) -> None:
    world = random_world(0)
    with pytest.raises(hr.errors.InvalidInput, match="and restored"):
        hr.save(Uniform(world.view()), tmp_path / "no.hedge")
    learner = FollowTheLeader(world.view(), 10)
    learner.sums = np.array([1j])  # type: ignore[assignment]
    with pytest.raises(hr.errors.InvalidInput, match="the state 'sums' of FollowTheLeader is not an array of numbers"):
        hr.save(learner, tmp_path / "no.hedge")
    hr.save(FollowTheLeader(world.view(), 10), tmp_path / "own.hedge")
    file = datafile.load(tmp_path / "own.hedge")
    for meta, message in (
        ({**file.meta, "learner": "os:system"}, "which is not known here"),
        ({**file.meta, "learner": "not_imported_yet:Learner"}, "import or register its class first"),
        ({**file.meta, "mood": 1}, "does not describe a learner"),
        ({**file.meta, "num_actions": 3}, "does not describe a learner"),
    ):
        blob = datafile.pack(file.kind, file.version, meta, dict(file.arrays))
        (tmp_path / "bad.hedge").write_bytes(blob)
        with pytest.raises(hr.errors.FileFormatError, match=message):
            hr.load(tmp_path / "bad.hedge")


@pytest.mark.parametrize("name", ["sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops", "dope", "safe-etc"])
def test_a_file_that_names_a_shipped_learner_and_holds_another_state_is_refused(name: str, tmp_path: Path) -> None:
    """It ended in a KeyError: what a file says of itself is never to be believed."""
    hr.save(FollowTheLeader(random_world(0).view(), 10), tmp_path / "own.hedge")
    file = datafile.load(tmp_path / "own.hedge")
    for state in ({}, {"state.x": np.zeros(3)}, {"state.arguments": np.array("x")}, {"state.arguments": np.array("5")}):
        arrays = {key: array for key, array in file.arrays.items() if key.startswith("view.")} | state
        (tmp_path / "bad.hedge").write_bytes(
            datafile.pack(file.kind, file.version, {**file.meta, "learner": name}, arrays)
        )
        with pytest.raises(hr.errors.FileFormatError, match=f"names the learner '{name}', but does not hold its state"):
            hr.load(tmp_path / "bad.hedge")
