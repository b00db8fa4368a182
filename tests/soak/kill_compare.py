"""kill -9 of `hedgerow compare -j 2`, again and again in one directory: no finished cell is lost, more are gained.

    python -m tests.soak.kill_compare --count 100

A comparison is killed at a random moment after it has finished one cell more than it found, alone or with all of its
workers, and started again. After each kill the finished cells are those of before and more, byte for byte those of an
undisturbed comparison. Once all are finished, the comparison ends by itself with its page, and begins anew elsewhere.
A sweep that keeps what it has but does not get on fails as well: one more cell must be there within PATIENCE seconds.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "experiments"), str(HERE.parent / "learners")]

import forgers  # noqa: E402 - found by the line above
from kill_sweep import _cells, _end_group, _finish, _start  # noqa: E402 - likewise
from rounds import Broken, main, rounds  # noqa: E402 - likewise
from small_experiments import BODY  # noqa: E402 - likewise

EXPERIMENT = "seeds = {seeds}\nepisodes = [20, 3_000]\n" + BODY + '[[learner]]\nname = "forgers.py:Honest"\n'
SEEDS, NUM_KINDS = 8, 6
PATIENCE = 180.0


def soak(count: int, rng: random.Random, seeds: int = SEEDS) -> str:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kill-compare-") as name:
        folder = Path(name)
        file = folder / "experiment.toml"
        file.write_text(EXPERIMENT.format(seeds=seeds))
        (folder / "forgers.py").write_text(Path(forgers.__file__).read_text())
        _finish(_compare(file, folder / "calm", processes="1"))
        calm = _cells(folder / "calm")
        if len(calm) != seeds * NUM_KINDS:
            raise Broken(f"an undisturbed comparison has {len(calm)} cells")
        out, begun = folder / "out0", 0
        for number in rounds(count):
            before = _cells(out)
            process = _compare(file, out)
            grown = _wait_for_more(process, out, len(before))
            if not grown:
                code = process.poll()
                _end_group(process)
                said = process.communicate(timeout=PATIENCE)[1][-500:]
                raise Broken(f"round {number}: no progress after {len(before)} cells, exit code {code}: {said}")
            time.sleep(rng.uniform(0.0, 0.3))
            if rng.random() < 0.5:
                process.kill()  # its workers live on for a while
                process.wait(PATIENCE)
            _end_group(process)
            process.communicate(timeout=PATIENCE)
            after = _cells(out)
            if any(after.get(cell) != content for cell, content in before.items()):
                raise Broken(f"round {number}: a finished cell was lost or changed")
            if len(after) <= len(before):
                raise Broken(f"round {number}: no progress, {len(before)} cells before and {len(after)} after")
            if any(calm[cell] != content for cell, content in after.items()):
                raise Broken(f"round {number}: other bytes than those of an undisturbed comparison")
            found["kills"] += 1
            found["cells gained"] += len(after) - len(before)
            if len(after) == len(calm):
                _finish(_compare(file, out))
                _check_end(out, calm)
                found["comparisons finished"] += 1
                begun += 1
                out = folder / f"out{begun}"
        _finish(_compare(file, out))
        _check_end(out, calm)
    told = ", ".join(f"{value} {key}" for key, value in found.items())
    return f"no cell lost ({told})"


def _compare(file: Path, out: Path, processes: str = "2") -> subprocess.Popen[str]:
    return _start("compare", str(file), "--out", str(out), "-j", processes, "-q")


def _wait_for_more(process: subprocess.Popen[str], out: Path, before: int) -> bool:
    """Whether it finishes one cell more in time."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        if len(list(out.glob("cells/*.parquet"))) > before:
            return True
        if process.poll() is not None:
            return len(list(out.glob("cells/*.parquet"))) > before
        time.sleep(0.005)
    return False


def _check_end(out: Path, calm: dict[str, bytes]) -> None:
    if _cells(out) != calm:
        raise Broken(f"{out.name}: other bytes than those of an undisturbed comparison")
    if list(out.rglob("*.tmp")):
        raise Broken(f"{out.name}: temporary files stayed")
    if not (out / "compare.html").exists():
        raise Broken(f"{out.name}: it has no page")


if __name__ == "__main__":
    sys.exit(main("kill -9 during comparisons", soak, 100))
