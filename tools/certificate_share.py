"""The table in docs/aggregate.md: how long S-OPS plays its baseline, by the certificate's share of the failure budget.

python tools/certificate_share.py --seeds 10 3 1         seeds for 10^4, 10^5 and 10^6 episodes; 0 leaves a length out

Of the costs' share of 5 delta the certificate gets a half, a sixth (the default) or nothing. Every number is the mean
of lambda over all episodes and seeds, with the preset `sharpest`, delta = 0.01, the world's own losses and the baseline
of the largest margin. An episode that violates a constraint ends the program with an error.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.confidence import radii

LENGTHS = (10_000, 100_000, 1_000_000)
PARTS = (2.0, 6.0, 0.0)
"""The certificate has one in so many parts; 0: there is no certificate"""
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: (name, {})
        for name in (
            "dope-factored", "dope-media", "dope-inventory", "alwayssafe-simple", "alwayssafe-difficult", "streaming-5",
            "bidding", "ev-charging", "maintenance", "slater-needle",
        )
    },
    "random (1,3,3,1) x 3, m = 1": ("random-layered", {"layers": [1, 3, 3, 1], "actions": 3, "constraints": 1}),
    "random (1,5,5,5,1) x 4, m = 2": ("random-layered", {"layers": [1, 5, 5, 5, 1], "actions": 4, "constraints": 2}),
}  # fmt: skip


def mean_lambda(label: str, episodes: int, part: float, seed: int) -> float:
    """The mean of lambda_t over a run."""
    name, options = WORLDS[label]
    world = hr.worlds.make(name, **options)
    radii.CERTIFICATE_PART = part or 6.0
    baseline = hr.offline.slater(world.cmdp)
    learner = hr.SOPS(world, episodes, baseline=baseline, aggregate=part > 0.0)
    run = hr.simulate(world, learner, seed=seed, progress=False)
    if run.unsafe[-1]:
        raise SystemExit(f"{label}, seed {seed}: {run.unsafe[-1]} unsafe episodes")
    return float(run["mixing_total"][-1]) / episodes


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs=3, default=(10, 3, 1), help="for 10^4, 10^5 and 10^6 episodes")
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("-j", "--processes", type=int, default=2)
    given = parser.parse_args()
    jobs = [
        (world, episodes, part, seed)
        for episodes, seeds in zip(LENGTHS, given.seeds, strict=True)
        for world, seed, part in product(given.worlds, range(seeds), PARTS)
    ]
    found: dict[tuple[str, int], list[float]] = {}
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for number, (job, value) in enumerate(zip(jobs, pool.map(mean_lambda, *zip(*jobs, strict=True)), strict=True)):
            found.setdefault(job[:2], []).append(value)
            print(f"{number + 1} of {len(jobs)}: {job} {value:.4f}", file=sys.stderr, flush=True)
    lengths = [(n, s) for n, s in zip(LENGTHS, given.seeds, strict=True) if s]
    print("| world |", " | ".join(f"T = {n:,}, seeds {s}" for n, s in lengths), "|")
    print("|---" * (len(lengths) + 1) + "|")
    for world in given.worlds:
        cells = []
        for episodes, seeds in lengths:
            means = np.reshape(found[world, episodes], (seeds, len(PARTS))).mean(axis=0)
            cells.append(" / ".join(f"{mean:.4f}".removeprefix("0") for mean in means))
        print(f"| {world} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
