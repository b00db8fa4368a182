"""One flipped bit anywhere in the file of a log: it is refused, never read as other costs, actions or states.

python -m tests.soak.flip_logs --count 4000
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from rounds import Broken, main, rounds

import hedgerow as hr
from hedgerow.errors import HedgerowError

LINES = {
    "state": ["on", "on", "warm", "warm", "cold", "cold"],
    "action": [1, 0] * 3,
    "next_state": ["warm", "cold", "end", "end", "end", "end"],
    "loss": [0.2, 0.9] * 3,
    "fault": [0.9, 0.1] * 3,
}


def soak(count: int, rng: random.Random) -> str:
    world = hr.from_table(LINES, thresholds={"fault": 0.6})
    log = hr.Log.played(world.cmdp, hr.Policy.uniform(world), 60, seed=1)
    said: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="flip-logs-") as name:
        path = Path(name) / "log.parquet"
        log.write(path)
        blob = path.read_bytes()
        for _ in rounds(count):
            bit = rng.randrange(8 * len(blob))
            damaged = bytearray(blob)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            said[_reading(world.view(), path, log, f"bit {bit} of {len(blob):,} bytes")] += 1
    told = ", ".join(f"{value} {key}" for key, value in said.items())
    return f"{count} flips, 0 read as other values ({told})"


def _reading(view: hr.View, path: Path, log: hr.Log, where: str) -> str:
    """What came of reading a damaged file."""
    try:
        found = hr.Log.read(view, path)
    except HedgerowError as error:
        if "\n" in str(error):
            raise Broken(f"{where} takes more than a line") from error
        return "refused"
    raise Broken(f"{where} was read as {'the same' if found.content_hash == log.content_hash else 'other'} values")


if __name__ == "__main__":
    sys.exit(main("bit flips of logs", soak, 4000))
