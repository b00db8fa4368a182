"""A sweep on a Dask cluster, scheduler and workers from their own command line, one worker killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from small_experiments import HUNG, SMALL, cell_files, small, start

from hedgerow.errors import InvalidInput
from hedgerow.experiments import backends
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.sweep import run_experiment

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask", reason="needs hedgerow[dask]")
pytest.importorskip("distributed", reason="needs hedgerow[dask]")

LONGER = SMALL.replace("seeds = 2", "seeds = 4").replace("[50, 80]", "3_000")


@pytest.mark.nightly  # a cluster that nobody disturbs: test_compare.py
def test_a_worker_that_dies_costs_time_only(cluster: tuple[str, list[subprocess.Popen[Any]]], tmp_path: Path) -> None:
    address, workers = cluster
    file, directory = tmp_path / "longer.toml", tmp_path / "out"
    file.write_text(LONGER)
    process = start("run", str(file), "--out", str(directory), "--backend", "dask", "--scheduler", address)
    limit = time.monotonic() + HUNG
    while len(list(directory.glob("cells/*.parquet"))) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.kill(workers[0].pid, signal.SIGKILL)
    output, errors = process.communicate(timeout=HUNG)
    assert process.returncode == 0, errors
    assert "8 cells run" in output
    assert run_experiment(small(LONGER), tmp_path / "calm", RunOptions(backend="serial")).complete
    assert cell_files(directory) == cell_files(tmp_path / "calm")


def test_encryption_is_asked_for_before_anybody_waits(tmp_path: Path) -> None:
    plan = RunOptions(backend="dask", scheduler="tls://127.0.0.1:1")
    with pytest.raises(InvalidInput, match=r"needs a certificate: name ca-file, cert and key"):
        run_experiment(small(), tmp_path / "out", plan)
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(InvalidInput, match=r"requires encryption, and tcp://127\.0\.0\.1:1 has none"),
    ):
        run_experiment(small(), tmp_path / "other", RunOptions(backend="dask", scheduler="tcp://127.0.0.1:1"))


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(backends, "PATIENCE", 0.5)
    plan = RunOptions(backend="dask", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InvalidInput, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1"):
        run_experiment(small(), tmp_path / "out", plan)
