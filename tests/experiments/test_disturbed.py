"""A sweep from the command line that is interrupted or killed, and then finished: the files are those of a calm one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from small_experiments import HUNG, SMALL, cell_files, small, start

from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.sweep import run_experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them"),
]

# Long enough that the last of ten cells is far away when the second one is there.
LONGER = SMALL.replace("seeds = 2", "seeds = 5").replace("[50, 80]", "100_000")
NUM_CELLS = 10


def wait_for_cells(directory: Path, number: int, process: subprocess.Popen[str]) -> None:
    """Until so many cells are finished."""
    limit = time.monotonic() + HUNG
    while len(list(directory.glob("cells/*.parquet"))) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit, "the sweep does not get on"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("calm") / "out"
    assert run_experiment(small(LONGER), directory, RunOptions(backend="serial")).complete
    return cell_files(directory)


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGINT, 130, "interrupted with"),
        pytest.param(signal.SIGTERM, 143, "interrupted with", marks=pytest.mark.nightly),
        pytest.param(9, -9, "", marks=pytest.mark.nightly),  # SIGKILL, which Windows has no name for
    ],
)
def test_resume_after_a_violent_end(number: int, code: int, words: str, tmp_path: Path, calm: dict[str, bytes]) -> None:
    file, directory = tmp_path / "longer.toml", tmp_path / "out"
    file.write_text(LONGER)
    process = start("run", str(file), "--out", str(directory), "-j", "2")
    wait_for_cells(directory, 2, process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does: everybody hears Ctrl-C
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=HUNG)
    assert process.returncode == code, errors
    assert words in errors
    assert "Traceback" not in errors
    found = cell_files(directory)
    assert 2 <= len(found) < NUM_CELLS
    assert found == {name: calm[name] for name in found}
    processes = "1" if number == signal.SIGINT else "2"  # each takes seconds to start; `make nightly` has them
    again = start("resume", str(directory), "-j", processes, "--quiet")
    output, errors = again.communicate(timeout=HUNG)
    assert (again.returncode, output, errors) == (0, "", "")
    assert cell_files(directory) == calm


def test_a_killed_sweep_leaves_no_process_behind(tmp_path: Path) -> None:
    file = tmp_path / "endless.toml"
    file.write_text(SMALL.replace("[50, 80]", "[10_000_000]"))
    process = start("run", str(file), "--out", str(tmp_path / "out"), "-j", "2", stderr=subprocess.DEVNULL)
    limit = time.monotonic() + HUNG
    while not (workers := children(process.pid)):
        assert time.monotonic() < limit
        time.sleep(0.05)
    time.sleep(3.0)  # until they are in the middle of a cell
    workers = children(process.pid)
    process.kill()
    process.communicate(timeout=HUNG)
    limit = time.monotonic() + HUNG
    while any(running(worker) for worker in workers):
        assert time.monotonic() < limit, "orphans"
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
