"""A run in a file, and as a data frame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import hedgerow as hr
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.simulation.result import CURVES, FILE_KIND, FILE_VERSION
from hedgerow.storage import datafile

WORLD = hr.worlds.make("lower-bound-2")


class Bell:
    """An environment without a model, which voids what its learners promise."""

    void_because = "it clipped a cost"

    def view(self) -> hr.View:
        return WORLD.view()

    def play(self, policy: hr.Policy, rng: Generator) -> hr.Episode:
        return WORLD.cmdp.play(policy, rng, WORLD.loss)


class Lazy:
    """A learner that promises nothing and notes something."""

    def __init__(self, view: hr.View) -> None:
        self.view = view

    def plan(self) -> hr.Plan:
        return hr.Plan(hr.Policy.uniform(self.view), notes={"heat": 0.5})

    def observe(self, episode: hr.Episode) -> None:
        return


RUNS: dict[str, Any] = {
    "S-OPS": lambda: hr.simulate(WORLD, hr.SOPS(WORLD, 50, baseline="slater"), "switching", seed=2, progress=False),
    "CV-OPS": lambda: hr.simulate(WORLD, hr.CVOPS(WORLD, 50), progress=False),
    "own": lambda: hr.simulate(WORLD, Lazy(WORLD.view()), "iid", episodes=30, progress=False),
    "sampled": lambda: hr.simulate(Bell(), hr.SVOPS(Bell(), 30), progress=False),
    "infeasible": lambda: hr.simulate(
        WORLD.cmdp.with_thresholds([0.0]), hr.field.Uniform(WORLD.cmdp.with_thresholds([0.0]), 5), "iid", progress=False
    ),
}


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_a_run_is_read_as_it_was(make: Any, tmp_path: Path) -> None:
    run = make()
    run.save(tmp_path / "run.npz")
    again = hr.load(tmp_path / "run.npz")
    assert isinstance(again, hr.results.Run)
    for name in (*CURVES, "comparator", "violation", "net_violation", "safe", "regret_so_far"):
        before, after = getattr(run, name), getattr(again, name)
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f"), name
        assert before.dtype == after.dtype
        assert name not in CURVES or not after.flags.writeable
    assert list(run.notes) == list(again.notes)
    for name, values in run.notes.items():
        assert np.array_equal(values, again.notes[name], equal_nan=True), name
    assert dict(run.facts) == dict(again.facts)
    assert np.array_equal([run.optimum], [again.optimum], equal_nan=True)
    for name in ("scored", "way", "seed", "seconds", "adversary", "stochastic", "columns", "learner_name"):
        assert getattr(run, name) == getattr(again, name), name
    assert np.array_equal(run.policy.probabilities, again.policy.probabilities)
    assert again.world.view().content_hash == run.world.view().content_hash
    promised, kept = run.guarantees(), again.guarantees()
    assert (promised is None and kept is None) or promised == kept
    assert repr(run) == repr(again)
    assert run._repr_html_() == again._repr_html_()
    what = "regret" if run.scored == "exact" else "mixing"
    assert again.plot(what).layout == run.plot(what).layout


def test_a_saved_run_is_no_learner(tmp_path: Path) -> None:
    run = hr.simulate(Bell(), hr.SVOPS(Bell(), 5), progress=False)
    run.save(tmp_path / "run.npz")
    again = hr.load(tmp_path / "run.npz")
    assert isinstance(again, hr.results.Run)
    with pytest.raises(InvalidInput, match="does not hold its learner"):
        again.learner.plan()
    with pytest.raises(InvalidInput, match="does not hold its environment"):
        again.world.play(hr.Policy.uniform(again.world), np.random.default_rng(0))
    again.save(tmp_path / "second.npz")  # what was read can be written
    assert (tmp_path / "second.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


def test_files_are_not_replaced_unless_asked(tmp_path: Path) -> None:
    run = RUNS["own"]()
    run.save(tmp_path / "run.npz")
    with pytest.raises(HedgerowError, match="exists"):
        run.save(tmp_path / "run.npz")
    run.save(tmp_path / "run.npz", overwrite=True)


def _changed(path: Path, **arrays: Any) -> None:
    file = datafile.load(path)
    kept = {name: array for name, array in {**file.arrays, **arrays}.items() if array is not None}
    path.write_bytes(datafile.pack(FILE_KIND, FILE_VERSION, file.meta, kept))


@pytest.mark.parametrize(
    "change",
    [
        {"curve.regret": None},
        {"curve.regret": np.zeros(3)},
        {"curve.episodes": np.zeros(1)},
        {"curve.losses": np.zeros((1, 1))},
        {"comparator": np.zeros(9)},
        {"note.heat": np.array(["a"])},
        {"policy": np.array([2.0, -1.0])},
        {"world": np.zeros(5, dtype=np.uint8)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_run_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    RUNS["own"]().save(path)
    _changed(path, **change)
    with pytest.raises(FileFormatError, match=r"run\.npz"):
        hr.load(path)


def test_a_damaged_or_a_later_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    RUNS["own"]().save(path)
    file, whole = datafile.load(path), path.read_bytes()
    path.write_bytes(datafile.pack(FILE_KIND, FILE_VERSION + 1, file.meta, file.arrays))
    with pytest.raises(FileFormatError, match="schema version 2; this release reads version 1"):
        hr.load(path)
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])  # times are in it: no byte is known
    with pytest.raises(FileFormatError, match="corrupt"):
        hr.load(path)


def test_a_data_frame_has_the_columns_of_the_tables() -> None:
    pytest.importorskip("pandas")
    run = RUNS["S-OPS"]()
    frame = run.to_pandas()
    assert list(frame["episode"]) == run.episodes.tolist()
    for name, values in {
        "loss": run.loss, "regret": run.regret, "regret_so_far": run.regret_so_far, "unsafe": run.unsafe,
        "violation_0": run.violations[:, 0], "worst_0": run.worst[:, 0], "mixing_weight": run["mixing_weight"],
    }.items():  # fmt: skip
        assert np.array_equal(frame[name], values), name
    assert len(frame) == len(run.episodes)


def test_without_pandas_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HedgerowError, match="needs pandas: pip install pandas"):
        RUNS["own"]().to_pandas()
