"""Soak: many threads on the same learners; nothing crashes, and every file that was saved loads.

    python tests/soak/thread_torture.py --seconds 600

Child processes of about 20 seconds each share three learners among their threads, which plan, observe, simulate, save,
copy, pickle, load and read as they like. A call may be refused (`BusyError`, or `InvalidInput` out of turn); whatever
else is raised, a file that does not load, an unsound learner or a process that ends by a signal is a failure.
"""

from __future__ import annotations

import argparse
import copy
import json
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from learner_files import make_learner, observe, random_world
from numpy.random import Generator
from sound_learner import problems

from hedgerow import errors
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.losses import oblivious
from hedgerow.model.cmdp import CMDP
from hedgerow.simulation.files import load
from hedgerow.simulation.run import simulate

THREADS = 6
PER_CHILD = 20.0
REFUSED = (getattr(errors, "BusyError", errors.InvalidInput), errors.InvalidInput)


class Torture:
    """What the threads of one process share."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.world = random_world(3, (1, 6, 6, 1), 3)
        self.folder, self.tally, self.failures = folder, Counter[str](), list[str]()
        small = {"confidence_scale": 0.02, "episodes": 10**6, "seed": seed}
        self.learners = [make_learner(kind, self.world, **small) for kind in ("sv-ops", "s-ops", "cv-ops")]

    def thread(self, number: int, until: float) -> None:
        rng = np.random.default_rng(number)
        own = make_learner("sv-ops", self.world, 10**6)
        while time.monotonic() < until:
            learner = own if rng.random() < 0.1 else self.learners[rng.integers(len(self.learners))]
            operation = OPERATIONS[rng.integers(len(OPERATIONS))]
            try:
                operation(learner, self.world, self.folder / f"{number}.hedge", rng)
                self.tally[operation.__name__] += 1
            except REFUSED:
                self.tally["refused"] += 1
                if learner is own:
                    self._own_turn(learner, rng)
            except BaseException as error:
                self.failures.append(f"{operation.__name__}: {type(error).__name__}: {error}")

    def _own_turn(self, learner: Learner, rng: Generator) -> None:
        """A learner that no other thread knows is refused nothing but calls out of turn; put it in order."""
        try:
            observe(learner, self.world, rng)
        except errors.InvalidInput:
            self.tally["own"] += 1


def step(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    learner.plan()
    observe(learner, world, rng)


def finish(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    observe(learner, world, rng)


def run(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    simulate(
        world,
        learner,
        oblivious.IID(seed=1),
        seed=int(rng.integers(10**6)),
        progress=False,
        episodes=int(rng.integers(1, 400)),
    )


def run_step_wise(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    simulate(
        world,
        learner,
        oblivious.Pursuit(),
        seed=int(rng.integers(10**6)),
        progress=False,
        episodes=int(rng.integers(1, 40)),
    )


def save(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    learner.save(path, overwrite=True)
    twin = load(path)
    if wrong := problems(twin):
        raise AssertionError(f"a torn file: {wrong[:3]}")
    step_or_finish(twin, world, rng)


def step_or_finish(learner: Learner, world: CMDP, rng: Generator) -> None:
    if not learner.core.state.numbers.pending:
        learner.plan()
    observe(learner, world, rng)


def duplicate(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    twin = copy.copy(learner) if rng.random() < 0.5 else pickle.loads(pickle.dumps(learner))
    step_or_finish(twin, world, rng)


def read(learner: Learner, world: CMDP, path: Path, rng: Generator) -> None:
    policy = learner.policy
    if np.any(np.abs(policy.reshape(-1, world.layout.num_actions).sum(axis=1) - 1.0) > 1e-9):
        raise AssertionError("a torn policy")
    learner.guarantees(), learner.diagnostics, learner.episode, repr(learner)
    seen = learner.estimates
    if not np.array_equal(np.add.reduceat(seen.counts, world.layout.row_start[:-1]), seen.visits):
        raise AssertionError("torn estimates")
    if len(learner.open_plans) > 1:
        raise AssertionError("two open plans")


OPERATIONS = (step, step, finish, run, run_step_wise, save, duplicate, read)


def torture(seed: int, seconds: float) -> dict[str, object]:
    """One process worth of it."""
    with tempfile.TemporaryDirectory() as folder:
        shared = Torture(seed, Path(folder))
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=shared.thread, args=(THREADS * seed + i, until), name=f"t{i}")
            for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for learner in shared.learners:
            if wrong := problems(learner):
                shared.failures.append(f"{learner!r} is unsound: {wrong[:3]}")
    return {"tally": shared.tally, "failures": shared.failures}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--worker", type=int, help="torture in this process, with this seed, and print what happened")
    arguments = parser.parse_args()
    np.seterr(all="ignore")
    if arguments.worker is not None:
        print(json.dumps(torture(arguments.worker, arguments.seconds)))
        return 0
    begun, tally, failures, crashed, children = time.monotonic(), Counter[str](), list[str](), 0, 0
    while (left := arguments.seconds - (time.monotonic() - begun)) > 0.0:
        command = [sys.executable, __file__, "--worker", str(children), "--seconds", str(min(PER_CHILD, left))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        children += 1
        if done.returncode != 0:
            crashed += 1
            last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            failures.append(f"process {children} ended with {done.returncode}: {last}")
        else:
            found = json.loads(done.stdout.splitlines()[-1])
            tally.update(found["tally"])
            failures += found["failures"]
        total, seconds = tally.total(), time.monotonic() - begun
        left = max(0.0, arguments.seconds - seconds)
        print(f"{children} processes, {total} calls, {total / seconds:.0f} a second, {left:.0f} s left", flush=True)
    for failure in failures[:20]:
        print("  " + failure)
    print(
        f"thread torture: {tally.total()} calls ({tally['refused']} refused, {tally['save']} files saved and loaded) "
        f"in {children} processes, {crashed} crashed, {len(failures)} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
