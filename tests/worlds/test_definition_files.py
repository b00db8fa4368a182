"""A world with its loss and its baseline in one data file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import FileFormatError
from hedgerow.storage import datafile
from hedgerow.worlds.world import definition_of


@pytest.mark.parametrize("name", ["ev-workday", "dope-media", "lower-bound-1"])
def test_what_is_saved_comes_back(name: str, tmp_path: Path) -> None:
    world = hr.worlds.make(name)
    stored = definition_of(world)
    assert isinstance(stored, hr.worlds.WorldDefinition)
    stored.save(tmp_path / "world.npz")
    found: Any = hr.load(tmp_path / "world.npz")
    assert found.content_hash == stored.content_hash
    assert found.cmdp.content_hash == world.cmdp.content_hash
    assert (found.loss.tobytes(), found.scale, found.terms) == (world.loss.tobytes(), world.scale, world.terms)
    assert (found.baseline is None, found.baseline_thresholds is None) == (
        world.baseline is None,
        world.baseline_thresholds is None,
    )
    if world.baseline is not None:
        assert np.array_equal(found.baseline.policy, world.baseline.policy)
        assert np.array_equal(found.baseline.costs, world.baseline.costs)


def test_every_part_counts() -> None:
    world = hr.worlds.make("ev-workday")
    assert world.baseline is not None
    changes: list[dict[str, Any]] = [
        {"loss": 0.5 * world.loss},
        {"cmdp": world.cmdp.with_thresholds([0.2])},
        {"baseline": None},
        {"baseline": hr.worlds.Baseline(world.baseline.policy, 2.0 * world.baseline.costs)},
        {"baseline_thresholds": np.array([0.01])},
    ]
    hashes = {definition_of(replace(world, **change)).content_hash for change in [{}, *changes]}
    assert len(hashes) == 1 + len(changes)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("loss", np.array([0.5, 2.0]), r"the loss is 2\.0"),
        ("loss", np.array([0.5]), "shape"),
        ("baseline.policy", np.array([1.0, np.nan]), "the baseline policy"),
        ("baseline_thresholds", np.array([0.1, 0.1]), "the baseline threshold has shape"),
        ("more", np.array([0.1]), "unexpected arrays"),
    ],
)
def test_a_wrong_file_is_refused(name: str, value: Any, words: str, tmp_path: Path) -> None:
    stored = definition_of(hr.worlds.make("lower-bound-1"))
    meta, arrays = stored._content()
    costs = {"baseline.costs": np.array([0.1])} if name == "baseline.policy" else {}
    blob = datafile.pack("world", 1, meta, {**arrays, name: value, **costs})
    (tmp_path / "world.npz").write_bytes(blob)
    with pytest.raises(FileFormatError, match=words):
        hr.worlds.WorldDefinition.load(tmp_path / "world.npz")
