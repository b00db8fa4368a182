"""kill -9 in the middle of saving, at random moments: what is there is whole, and nothing else stays.

    python -m tests.soak.kill_save --count 1000

A process saves without pause, replacing one file and making another one anew each time, until it is killed. It says of
each save that it is done. Both files must then be whole (the second may be missing), and the first no older than what
it has said; in most rounds it is only killed after some saves. A later process that saves there removes the temporary
files, once they are old enough.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))

from rounds import Broken, main, rounds

from hedgerow.storage import atomic

LARGEST = 2_000_000
LONGEST_LIFE = 0.08
REPLACED, NEW = "replaced", "new"


def content(number: int, rng: random.Random) -> bytes:
    """Bytes that know their number and their own checksum."""
    body = number.to_bytes(8, "big") + rng.randbytes(1000) * rng.randrange(1, LARGEST // 1000)
    return body + hashlib.sha256(body).digest()


def number_in(path: Path) -> int:
    blob = path.read_bytes()
    if hashlib.sha256(blob[:-32]).digest() != blob[-32:]:
        raise Broken(f"{path} is torn: {len(blob)} bytes")
    return int.from_bytes(blob[:8], "big")


def save_for_ever(folder: Path, first: int, seed: int) -> None:
    rng, number = random.Random(seed), first
    print("ready", flush=True)
    while True:
        number += 1
        atomic.save(folder / REPLACED, content(number, rng), overwrite=True)
        print(number, flush=True)
        (folder / NEW).unlink(missing_ok=True)
        atomic.save(folder / NEW, content(number, rng))


def soak(count: int, rng: random.Random) -> str:
    found: Counter[str] = Counter()
    an_hour_later = patch.object(atomic, "LEFT_BEHIND", 0.0)  # than the kill, this process saves
    with tempfile.TemporaryDirectory(prefix="kill-save-") as name, an_hour_later:
        folder, number = Path(name), 0
        atomic.save(folder / REPLACED, content(number, rng))
        for _ in rounds(count):
            said = _kill_one(folder, number, rng)
            left = {path.name for path in folder.iterdir()} - {REPLACED, NEW}
            found["left a temporary file"] += bool(left)
            found["left no new file"] += not (folder / NEW).exists()
            now = number_in(folder / REPLACED)
            if now < said:
                raise Broken(f"a save that was done is lost: {now} after {said}")
            if now < number or ((folder / NEW).exists() and not number <= number_in(folder / NEW) <= now):
                raise Broken(f"an older file came back: {now} after {number}")
            found["files replaced"] += now - number
            found["saves waited for"] += said > number
            number = now + 1
            atomic._cleaned.clear()  # as in a process that has saved nothing yet
            atomic.save(folder / REPLACED, content(number, rng), overwrite=True)
            atomic.save(folder / NEW, content(number, rng), overwrite=True)
            left = {path.name for path in folder.iterdir()} - {REPLACED, NEW}
            if left:
                raise Broken(f"temporary files stayed: {left}")
    if not found["files replaced"] >= found["saves waited for"] > 0:
        raise Broken("nothing was saved before the kills")
    told = ", ".join(f"{value} {key}" for key, value in found.items())
    return f"{count} kills, 0 torn, 0 lost, 0 temporary files after the next save ({told})"


def _kill_one(folder: Path, number: int, rng: random.Random) -> int:
    """Kill a process that saves; the last number that it has said to be saved, `number` if none."""
    command = [sys.executable, __file__, "--save", str(folder), str(number), str(rng.getrandbits(32))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
        assert saver.stdout is not None
        if saver.stdout.readline() != "ready\n":
            raise Broken("the saver did not begin")
        said = [number, *(int(saver.stdout.readline()) for _ in range(rng.choice((0, 1, 1, 3))))]
        time.sleep(rng.uniform(0.0, LONGEST_LIFE))
        if saver.poll() is not None:
            raise Broken(f"the saver ended by itself with {saver.returncode}")
        saver.kill()
        said += [int(line) for line in saver.stdout if line.endswith("\n")]
    return max(said)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--save"]:
        save_for_ever(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.exit(main("kill -9 during save", soak, 1000))
