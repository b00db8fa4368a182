"""Many short simulations in one process: its memory stays what it was.

    python -m tests.soak.flat_memory --count 10000

The first quarter warms up. From then on the resident memory may grow by GROWTH in all; 10 kB for each run, as numba's
generators took, would be a hundred times that.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from rounds import Broken, main, rounds

import hedgerow as hr

GROWTH = 600
"""kB"""


def resident() -> int:
    """The resident memory of this process, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def soak(count: int, rng: random.Random) -> str:
    world = hr.catalogue.make("random-layered", layers=(1, 2, 1), actions=2, constraints=1)
    warm, before = max(1, count // 4), 0
    for number in rounds(count):
        if number == warm:
            before = resident()
        learner = hr.SVOPS(world.view(), 5, 0.05, preset="sharp", seed=number)
        hr.simulate(world, None, learner, seed=rng.getrandbits(32), progress=False)
    grown = resident() - before
    if grown > GROWTH:
        raise Broken(f"{count - warm} simulations keep {grown} kB, {1000 * grown / (count - warm):.0f} bytes each")
    return f"{count} simulations keep {grown} kB"


if __name__ == "__main__":
    sys.exit(main("memory of many simulations", soak, 10_000))
