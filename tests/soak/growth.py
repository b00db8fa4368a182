"""Soak: memory does not grow with the number of episodes, nor with the number of simulations.

    python tests/soak/growth.py --episodes 10000000 --simulations 10000

Two loops, each with a look at the memory of the process after a warm-up and at the end: one learner that plays so many
episodes in compiled blocks, and so many simulations of 20 episodes, each with a learner of its own. Each may grow by
`ALLOWED`, what the allocator keeps for itself included.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import hedgerow as hr

ALLOWED = 2.0
"""Megabytes"""
BLOCK = 250_000
WARM_UP = 50
"""Simulations before the first look"""


def resident() -> float:
    """Megabytes of this process in memory."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux: the largest so far
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def many_episodes(episodes: int) -> list[float]:
    """The memory after each block of one long run, the first block left out."""
    world = hr.worlds.make("lower-bound-2")
    learner = hr.SVOPS(world.view(), episodes=episodes, delta=0.05, preset="sharp")
    looks, marks = [], [1]
    for first in range(0, episodes, BLOCK):
        count = min(BLOCK, episodes - first)
        hr.simulate(world, learner, hr.losses.Switching(period=10), progress=False, episodes=count, marks=marks)
        gc.collect()
        looks.append(resident())
    return looks[1:] or looks


def many_simulations(simulations: int) -> tuple[list[float], Counter[str]]:
    """The memory after each tenth of them, after a warm-up; and which kinds of objects have become more meanwhile."""
    world, losses = hr.worlds.make("lower-bound-2"), hr.losses.Switching(period=10)
    view = world.view()

    def play(count: int) -> None:
        for seed in range(count):
            learner = hr.SVOPS(view, episodes=20, delta=0.05, preset="sharp", seed=seed)
            hr.simulate(world, learner, losses, seed=seed, progress=False)

    play(WARM_UP)
    before = _objects()
    looks = [resident()]
    for _ in range(10):
        play(max(1, simulations // 10))
        gc.collect()
        looks.append(resident())
    more = _objects() - before
    return looks, Counter({kind: count for kind, count in more.items() if count >= simulations // 4})


def _objects() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__qualname__ for one in gc.get_objects())


def report(what: str, looks: list[float], seconds: float, **more: Any) -> bool:
    """Print the figures; whether the growth is allowed."""
    grown = looks[-1] - looks[0]
    fine = grown <= ALLOWED and not any(more.values())
    print(f"{what}: {looks[0]:.1f} to {looks[-1]:.1f} MB, {grown:+.2f} MB in {seconds:.0f} s", more or "", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--episodes", type=int, default=10_000_000)
    parser.add_argument("--simulations", type=int, default=10_000)
    arguments = parser.parse_args()
    begun = time.monotonic()
    looks = many_episodes(arguments.episodes)
    fine = report(f"{arguments.episodes} episodes", looks, time.monotonic() - begun)
    begun = time.monotonic()
    looks, more = many_simulations(arguments.simulations)
    fine &= report(f"{arguments.simulations} simulations", looks, time.monotonic() - begun, objects=dict(more))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
