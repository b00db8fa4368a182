"""A sweep on a Dask cluster, scheduler and workers from their own command line, one worker killed in the middle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[Any]]]]:
    """(address, workers): two workers of one thread, each a process without a nanny that would restart it."""
    address = f"tcp://127.0.0.1:{free_port()}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    options = ["--no-dashboard"]
    port = address.rsplit(":", 1)[1]
    processes = [subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", port, *options], **quiet)]
    for number in range(2):
        local = ["--local-directory", str(tmp_path / f"worker{number}")]
        command = [*dask, "worker", address, "--nthreads", "1", "--no-nanny", *options, *local]
        processes.append(subprocess.Popen(command, **quiet))
    ready = f"from distributed import Client\nClient({address!r}, timeout={HUNG}).wait_for_workers(2, timeout={HUNG})"
    try:
        # On a busy machine they take longer to start than `hedgerow run` waits for a cluster that is said to be there.
        subprocess.run([sys.executable, "-c", ready], check=True, **quiet)
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()  # a worker that is told to leave waits for a scheduler that has gone
        for process in processes:
            process.wait()


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
    plan = RunOptions(backend="dask", scheduler=f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(InvalidInput, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1"):
        run_experiment(small(), tmp_path / "out", plan)
