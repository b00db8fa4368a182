"""Soak: learner files that somebody changed and signed again are refused in words, or hold a sound learner.

    python tests/soak/signed_mutations.py --count 2000

Each mutant changes one to three entries of a valid file: numbers, arrays, their types and shapes, the header. What
loads must pass `sound_learner.problems`, survive a file once more, play 20 episodes and still be sound. Mutants run in
child processes: one that ends by a signal is a failure too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from learner_files import Situation, observe, situations, to_bytes
from numpy.random import Generator
from sound_learner import problems

from hedgerow.errors import FileFormatError, InfeasibleWarning
from hedgerow.learners.files import FILE_KIND, FILE_VERSION, from_file
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.storage import datafile

PER_CHILD = 100
EPISODES = 20

ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, 2.0, 1e308, 10**6, 10**12, 10**30, "", "paper", "sharp", "epoch", "theory",
    "\ud800", [], {}, [1, 2], ["a", "b"], ["a", "a"], {"a": 1}, [[]], [None], "sv-ops", "s-ops", "cv-ops", "uob-reps",
]  # fmt: skip
ODD_NUMBERS = [
    np.nan, np.inf, -np.inf, -1.0, -0.0, 5e-324, 1e-12, 0.5, 1.0, 1 + 1e-12, 2.0, 1e9, 1e308, 2.0**62, -(2.0**62), -5.0,
]  # fmt: skip
DTYPES = ["<f8", ">f8", "<f4", "<f2", "<i8", ">i8", "<i4", "|i1", "<u8", "|u1", "|b1", "<c16", "longdouble"]


def change_meta(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = ["", "", "state.arguments", "state.coin"][rng.integers(4)]
    target = json.loads(str(arrays[name])) if name in arrays else meta
    if not isinstance(target, dict) or not target:
        name, target = "", meta
    key = [*target, "another"][rng.integers(len(target) + 1)]
    if rng.random() < 0.1:
        target.pop(key, None)
    elif isinstance(target.get(key), int) and rng.random() < 0.5:
        target[key] += int(rng.integers(-3, 4))
    else:
        target[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    if target is not meta:
        arrays[name] = np.array(json.dumps(target))


def some_array(rng: Generator, arrays: dict[str, np.ndarray]) -> str:
    names = [name for name in arrays if arrays[name].dtype.kind != "U"]
    return names[rng.integers(len(names))]


def change_entry(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = some_array(rng, arrays)
    array = arrays[name].copy()
    if array.size == 0 or array.dtype.kind not in "fi":
        return
    place = np.unravel_index(int(rng.integers(array.size)), array.shape)
    with np.errstate(all="ignore"):
        old = float(array[place])
        choices = [ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))], old + 1, old - 1, 2 * old, 0.9 * old, 0.0]
        value = choices[rng.integers(len(choices))]
        if array.dtype.kind == "i":
            limits = np.iinfo(array.dtype)
            value = int(np.clip(np.nan_to_num(value), limits.min / 2, limits.max / 2))
        array[place] = value
    arrays[name] = array


def change_number(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """A flag, a counter or a real number: few entries, much meaning."""
    names = ["numbers", "reals", "search.facts", "search.broken", "logged", "incomplete", "counts.unknown_costs"]
    name = str(rng.choice([*(f"state.{name}" for name in names), "view.thresholds"]))
    if name in arrays and arrays[name].size:
        changed = {name: arrays[name]}
        change_entry(rng, meta, changed)
        arrays.update(changed)


def change_many(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = some_array(rng, arrays)
    if arrays[name].dtype.kind == "f":
        arrays[name] = arrays[name] * rng.choice([0.0, 0.5, 0.99, 1.01, 2.0, -1.0])
    elif arrays[name].dtype.kind == "i":
        arrays[name] = (arrays[name] + rng.choice([-1, 1, 3])).astype(arrays[name].dtype)


def change_type(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = some_array(rng, arrays)
    with np.errstate(all="ignore"):
        arrays[name] = np.real(arrays[name]).astype(DTYPES[rng.integers(len(DTYPES))])


def change_shape(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = some_array(rng, arrays)
    array = np.atleast_1d(arrays[name])
    arrays[name] = [
        array.ravel(), array[np.newaxis], array[:-1], array[:0], np.concatenate([array, array]), np.array(array.size),
        array.T, array[::-1],
    ][rng.integers(8)]  # fmt: skip


def exchange(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    one, other = rng.choice(list(arrays), size=2)
    arrays[one], arrays[other] = arrays[other], arrays[one]


def rename(rng: Generator, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = some_array(rng, arrays)
    array = arrays.pop(name)
    if rng.random() < 0.7:
        arrays[str(rng.choice(["view.row_start", "state.seed", "state.transitions", "state.x", "other", "state"]))] = (
            array
        )


MUTATIONS: list[Callable[[Generator, dict[str, Any], dict[str, np.ndarray]], None]] = [
    change_meta, change_entry, change_entry, change_entry, change_number, change_number, change_many, change_type,
    change_shape, exchange, rename,
]  # fmt: skip


def mutant(number: int, blobs: list[bytes]) -> tuple[int, bytes]:
    """Which situation it comes from, and the bytes."""
    rng, chosen = np.random.default_rng([7, number]), number % len(blobs)
    file = datafile.unpack(blobs[chosen])
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        MUTATIONS[rng.integers(len(MUTATIONS))](rng, file.meta, file.arrays)
    return chosen, datafile.pack(FILE_KIND, FILE_VERSION, file.meta, file.arrays)


def verdict(blob: bytes, situation: Situation) -> str:
    """`refused`, `sound`, or what is wrong."""
    try:
        learner = from_file(datafile.unpack(blob, FILE_KIND, "mutant"), "mutant")
    except FileFormatError as error:
        return "refused" if "mutant" in str(error) and "\n" not in str(error) else f"a refusal without words: {error!r}"
    except Exception as error:
        return f"ended in {type(error).__name__}: {error}"
    if wrong := problems(learner):
        return f"senseless: {', '.join(wrong[:3])}"
    return _after_some_episodes(learner, situation)


def _after_some_episodes(learner: Learner, situation: Situation) -> str:
    rng = np.random.default_rng(0)
    world = situation.world.with_thresholds(learner.view.thresholds)
    from_file(datafile.unpack(to_bytes(learner)))
    for _ in range(EPISODES):
        if learner.episodes is not None and learner.episode >= learner.episodes:
            break
        if learner.core.state.numbers.pending == 0:
            learner.plan()
        observe(learner, world, rng)
    wrong = problems(learner)
    from_file(datafile.unpack(to_bytes(learner)))
    return f"senseless after {EPISODES} episodes: {', '.join(wrong[:3])}" if wrong else "sound"


def judge(first: int, count: int) -> list[str]:
    """The verdicts of some mutants, in this process."""
    cases = situations()
    blobs = [to_bytes(case.learner()) for case in cases]
    found = []
    for number in range(first, first + count):
        chosen, blob = mutant(number, blobs)
        try:
            words = verdict(blob, cases[chosen])
        except Exception as error:
            words = f"loaded, then {type(error).__name__}: {error}"
        found.append(words if words in ("refused", "sound") else f"mutant {number} of {cases[chosen].name}: {words}")
    return found


def _child(first: int, count: int) -> list[str]:
    command = [sys.executable, __file__, "--worker", str(first), "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        return [f"mutants {first} to {first + count - 1}: the process ended with {done.returncode}: {last}"]
    words: list[str] = json.loads(done.stdout.splitlines()[-1])
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--worker", type=int, help="judge from this mutant on, here, and print the verdicts")
    arguments = parser.parse_args()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore", InfeasibleWarning)
    if arguments.worker is not None:
        print(json.dumps(judge(arguments.worker, arguments.count)))
        return 0
    begun, tally, failures = time.monotonic(), Counter[str](), []
    for first in range(0, arguments.count, PER_CHILD):
        words = _child(first, min(PER_CHILD, arguments.count - first))
        failures += [word for word in words if word not in ("refused", "sound")]
        tally.update(word if word in ("refused", "sound") else "failed" for word in words)
        done, seconds = first + len(words), time.monotonic() - begun
        left = (arguments.count - done) * seconds / max(1, done)
        print(f"{done}/{arguments.count} mutants, {done / seconds:.0f} a second, {left:.0f} s left: {dict(tally)}")
    for failure in failures[:20]:
        print("  " + failure)
    print(f"signed mutations: {tally['refused']} refused, {tally['sound']} sound, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
