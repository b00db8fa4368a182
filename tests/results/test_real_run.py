"""A true simulation through the store: what comes back is what the run said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.results import store
from hedgerow.results.manifest import cell_hash

SPEC = {
    "world": {"name": "random-layered", "layers": [1, 2, 2, 1], "actions": 2},
    "adversary": {"name": "switching", "period": 50},
    "learner": {"name": "s-ops", "preset": "sharp"},
    "episodes": 300,
    "delta": 0.05,
    "seed": 4,
    "label": {"learner": "s-ops sharp"},
}


def simulated(**options: object) -> hr.results.Run:
    world = hr.worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1)
    slater = hr.offline.slater(world.cmdp)
    learner = hr.SOPS(world.cmdp.view(), 300, 0.05, "sharp", 4, baseline=slater)
    losses = hr.losses.Switching(period=50, seed=1)
    return hr.simulate(world.cmdp, learner, losses, seed=4, progress=False, **options)


def test_a_run_and_its_trace_come_back(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {"title": "one cell"}})
    run = simulated()
    trace = simulated(marks="all")
    path = store.write_cell(tmp_path / "out", SPEC, run, trace=trace)
    results = hr.results.open(tmp_path / "out")
    (row,) = results.summary().to_pylist()
    assert row["regret"] == run.regret[-1]
    assert row["violation"] == run.violation[-1]
    assert row["safe"] == bool(run.safe[-1])
    assert row["hash"] == cell_hash(SPEC)
    assert results.cells[0].facts["thresholds"] == run.world.thresholds.tolist()
    curves = results.table(path.stem)
    # At the end the optimum of the losses so far is the optimum of all losses.
    assert curves["regret_so_far"].to_numpy()[-1] == pytest.approx(run.regret[-1], abs=1e-8)
    every = store.read_table(tmp_path / "out" / "traces" / path.name)
    assert every.num_rows == 300
    excess = every["excess_0"].to_numpy()
    np.testing.assert_allclose(np.cumsum(np.maximum(excess, 0.0))[-1], run.violations[-1, 0], atol=1e-12)
    np.testing.assert_allclose(np.cumsum(every["mixing_weight"].to_numpy())[-1], run["mixing_total"][-1])
    assert np.max(excess) == pytest.approx(run.worst[-1, 0])


def test_the_same_run_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    blobs = []
    for name in ("a", "b"):
        store.create(tmp_path / name, {"experiment": {}})
        run = simulated()
        blobs.append(store.write_cell(tmp_path / name, SPEC, run).read_bytes())
    assert blobs[0] == blobs[1]
