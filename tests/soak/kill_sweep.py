"""kill -9 of a sweep, at random moments, then `hedgerow resume`: the files are those of an undisturbed sweep.

    python -m tests.soak.kill_sweep --count 200

Half of the sweeps are killed a second time, while they are resumed; some run in two processes, some lose all their
processes at once. What was finished before a kill is there after it, and is not made again; most kills come after a
certain number of cells, so that there is something to lose. In the end all bytes of all cells are compared. Temporary
files that a kill left are an hour old when the sweep is resumed: a process that saves beside them removes them.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "experiments")]

from rounds import Broken, main, rounds  # noqa: E402 - found by the line above
from small_experiments import BODY  # noqa: E402 - likewise

EXPERIMENT = "seeds = 3\nepisodes = [10, 20]\n" + BODY
PATIENCE = 1200.0
"""Seconds after which a process counts as one that hangs."""
TARGETS = (2, 0, 7, 1, -1, 4, 10)
"""Cells to wait for before a kill, round by round; -1: not even for the manifest"""


def soak(count: int, rng: random.Random) -> str:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kill-sweep-") as name:
        folder = Path(name)
        file = folder / "experiment.toml"
        file.write_text(EXPERIMENT)
        _finish(_start("run", str(file), "--out", str(folder / "calm"), "-j", "1", "-q"))
        calm = _cells(folder / "calm")
        for number in rounds(count):
            out = folder / f"out{number}"
            processes = "2" if rng.random() < 0.25 else "1"
            command = ("run", str(file), "--out", str(out), "-j", processes, "-q")
            target = TARGETS[number % len(TARGETS)]
            while not _kill(killed := _start(*command, pipe=subprocess.DEVNULL), out, target, rng):
                shutil.rmtree(out)  # it was faster
            victims = [killed]
            finished = _written(out)
            found["cells finished before"] += len(finished)
            if any((out / "cells").glob("*.parquet")) and rng.random() < 0.5:
                killed = _start("resume", str(out), "-j", processes, "-q", pipe=subprocess.DEVNULL)
                if _kill(killed, out, rng.choice(TARGETS), rng):
                    victims.append(killed)
                before, finished = finished, _written(out)
                if not before.items() <= finished.items():
                    raise Broken(f"round {number}: cells that were finished are gone, or were made again")
            found["kills"] += len(victims)
            found["temporary files left"] += len(list(out.rglob("*.tmp")))
            for left in out.rglob("*.tmp"):
                os.utime(left, (0.0, 0.0))
            waiting = len(_cells(out)) < len(calm)
            begun = (out / "manifest.json").exists()
            again = ("resume", str(out)) if begun else ("run", str(file), "--out", str(out))
            _finish(_start(*again, "-j", processes, "-q"))
            if not finished.items() <= _written(out).items():
                raise Broken(f"round {number}: cells that were finished are gone, or were made again")
            for killed in victims:
                _end_group(killed)
            if _cells(out) != calm:
                raise Broken(f"round {number}: other bytes than those of an undisturbed sweep")
            if list(out.rglob("*.tmp") if waiting else out.glob("*.tmp")):  # nothing was saved beside finished cells
                raise Broken(f"round {number}: temporary files stayed")
            shutil.rmtree(out)
    told = ", ".join(f"{value} {key}" for key, value in found.items())
    return f"{count} sweeps, all bytes identical ({told})"


def _start(*arguments: str, pipe: int = subprocess.PIPE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hedgerow", *arguments]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def _finish(process: subprocess.Popen[str]) -> None:
    output, errors = process.communicate(timeout=PATIENCE)
    if process.returncode or output or errors:
        raise Broken(f"{process.args} ended with {process.returncode}: {output}{errors}")


def _kill(process: subprocess.Popen[str], out: Path, target: int, rng: random.Random) -> bool:
    """Kill it, mostly while cells are written; whether it did not end by itself before."""
    limit = time.monotonic() + PATIENCE
    seen = len(_cells(out))
    while process.poll() is None:
        if target < 0 or ((out / "manifest.json").exists() and len(list(out.glob("cells/*.parquet"))) >= seen + target):
            break
        if time.monotonic() > limit:
            process.kill()
            raise Broken(f"{process.args} does not get to {target} more cells")
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.03 if target >= 0 else 2.0))
    if rng.random() < 0.5:
        process.kill()  # its workers live on for a while
    else:  # a machine that is switched off
        _end_group(process)
    killed = process.wait(PATIENCE) == -signal.SIGKILL
    if killed and len(_cells(out)) < seen + target:
        raise Broken(f"{seen + target} cells were there before the kill, {len(_cells(out))} are after it")
    return killed


def _end_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _written(directory: Path) -> dict[str, int]:
    """When each finished cell was written, in nanoseconds."""
    return {path.name: path.stat().st_mtime_ns for path in directory.glob("cells/*.parquet")}


def _cells(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("cells/*.parquet")}


if __name__ == "__main__":
    sys.exit(main("kill -9 during sweeps", soak, 200))
