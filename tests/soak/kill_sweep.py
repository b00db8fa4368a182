"""kill -9 of a sweep, at random moments, then `hedgerow resume`: the files are those of an undisturbed sweep.

    python -m tests.soak.kill_sweep --count 200

Half of the sweeps are killed a second time, while they are resumed; some run in two processes, some lose all their
processes at once. In the end all bytes of all cells are compared, and no temporary file may be left.
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
PATIENCE = 120.0


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
            while not _kill(killed := _start(*command, pipe=subprocess.DEVNULL), out, rng):
                shutil.rmtree(out)  # it was faster
            victims = [killed]
            found["cells finished before"] += len(_cells(out))
            if any((out / "cells").glob("*.parquet")) and rng.random() < 0.5:
                killed = _start("resume", str(out), "-j", processes, "-q", pipe=subprocess.DEVNULL)
                if _kill(killed, out, rng):
                    victims.append(killed)
            found["kills"] += len(victims)
            found["temporary files left"] += len(list(out.rglob("*.tmp")))
            begun = (out / "manifest.json").exists()
            again = ("resume", str(out)) if begun else ("run", str(file), "--out", str(out))
            _finish(_start(*again, "-j", processes, "-q"))
            for killed in victims:
                _end_group(killed)
            if _cells(out) != calm:
                raise Broken(f"round {number}: other bytes than those of an undisturbed sweep")
            if list(out.rglob("*.tmp")):
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


def _kill(process: subprocess.Popen[str], out: Path, rng: random.Random) -> bool:
    """Kill it, mostly while cells are written; whether it did not end by itself before."""
    limit = time.monotonic() + PATIENCE
    seen = len(_cells(out))
    target = rng.choice((-1, 0, 1, 2, 4, 7, 10))  # cells to wait for; -1: not even for the manifest
    while process.poll() is None and time.monotonic() < limit:
        if target < 0 or ((out / "manifest.json").exists() and len(list(out.glob("cells/*.parquet"))) >= seen + target):
            break
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.03 if target >= 0 else 2.0))
    if rng.random() < 0.5:
        process.kill()  # its workers live on for a while
    else:  # a machine that is switched off
        _end_group(process)
    return process.wait(PATIENCE) == -signal.SIGKILL


def _end_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _cells(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("cells/*.parquet")}


if __name__ == "__main__":
    sys.exit(main("kill -9 during sweeps", soak, 200))
