"""What tests of sweeps share: a Dask cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_experiments import HUNG

READY = f"""\
import sys
from distributed import Client
client = Client(scheduler_file=sys.argv[1], timeout={HUNG})
client.wait_for_workers(2, timeout={HUNG})
print(client.scheduler.address)
"""
"""On a busy machine workers take longer to start than `hedgerow run` waits for a cluster that is said to be there."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[Any]]]]:
    """(address, workers): two workers of one thread, each a process without a nanny that would restart it."""
    pytest.importorskip("distributed", reason="needs hedgerow[dask]")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    file = str(tmp_path / "scheduler.json")  # it chooses a free port itself: one that we looked up may be taken since
    dask, options = [sys.executable, "-m", "dask"], ["--no-dashboard", "--scheduler-file", file]
    processes = [subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *options], **quiet)]
    for number in range(2):
        local = ["--local-directory", str(tmp_path / f"worker{number}")]
        command = [*dask, "worker", "--nthreads", "1", "--no-nanny", *options, *local]
        processes.append(subprocess.Popen(command, **quiet))
    try:
        ready = subprocess.run([sys.executable, "-c", READY, file], check=True, capture_output=True, text=True)
        yield ready.stdout.strip(), processes[1:]
    finally:
        for process in processes:
            process.kill()  # a worker that is told to leave waits for a scheduler that has gone
        for process in processes:
            process.wait()
