"""Soak: states of the learners of the field that somebody changed are refused in words, or hold a learner that goes on.

    python tests/soak/field_mutations.py --count 2000

A file that is signed again can hold any arrays, so the arrays themselves are changed, by the mutations of
`signed_mutations.py`. What is accepted must be accepted within seconds, go on for 20 episodes, and play policies that
are distributions, with a mixing weight in [0, 1].
"""

from __future__ import annotations

import argparse
import inspect
import sys
import time
import warnings
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from signed_mutations import ODD_NUMBERS, change_entry, change_many, change_shape, change_type, exchange, rename

import hedgerow as hr
from hedgerow.registry import learners
from hedgerow.testing.trial import small_worlds

PLAYED, EPISODES, LONGEST = 15, 20, 20.0
"""Episodes before the state is taken, episodes afterwards, and the seconds that all of it may take"""
HUGE = 2**31 - 1


def huge_counts(rng: Any, meta: Any, arrays: dict[str, np.ndarray]) -> None:
    """One array of whole numbers filled with the largest that 31 bits hold."""
    whole = [name for name, array in arrays.items() if array.dtype.kind == "i"]
    name = whole[int(rng.integers(len(whole)))]
    arrays[name] = np.full_like(arrays[name], HUGE)


def odd_array(rng: Any, meta: Any, arrays: dict[str, np.ndarray]) -> None:
    """One array of real numbers filled with an odd one."""
    real = [name for name, array in arrays.items() if array.dtype.kind == "f"]
    name = real[int(rng.integers(len(real)))]
    arrays[name] = np.full_like(arrays[name], ODD_NUMBERS[int(rng.integers(len(ODD_NUMBERS)))])


MUTATIONS = [
    change_entry, change_entry, change_many, change_type, change_shape, exchange, rename, huge_counts, odd_array,
]  # fmt: skip
WORLD = next(world.cmdp for world in small_worlds() if world.name == "m = 1")


@cache
def played_learners() -> list[Any]:
    """Every learner of the field that can be saved, with two kinds of sets where it has them, after some episodes."""
    found, slater = [], hr.offline.slater(WORLD)
    offered = {"delta": 0.05, "baseline": slater, "slater": slater.margin}
    for kind, place in learners.builtin.items():
        module, _, name = place.partition(":")
        cls = getattr(import_module(module), name)
        taken = inspect.signature(cls).parameters
        if ".field." not in module or kind == "oracle":
            continue
        for sets in ("source", "sharp") if "sets" in taken else (None,):
            options = {name: value for name, value in {**offered, "sets": sets}.items() if name in taken}
            if "feedback" in taken:
                options["feedback"] = "bandit"
            learner = cls(WORLD.view(), 60, **options)
            _play(learner, PLAYED)
            found.append(learner)
    return found


def _play(learner: Any, episodes: int) -> str:
    """Play on; what is wrong with a plan, in words."""
    rng, rows = np.random.default_rng(0), WORLD.layout.num_rows
    for _ in range(min(episodes, learner.episodes - learner.episode)):
        plan = learner.open_plans[0] if learner.open_plans else learner.plan()
        played = plan.policy.probabilities.reshape(-1, WORLD.layout.num_actions)
        if not (np.all(played >= 0.0) and np.all(np.abs(played.sum(axis=1) - 1.0) < 1e-9)):
            return "plays no policy"
        if not 0.0 <= plan.notes.get("mixing_weight", 0.0) <= 1.0:
            return "mixes wrongly"
        loss = rng.random(rows)
        seen = WORLD.play(plan.policy, rng, loss)
        everywhere = np.array(WORLD.mean_costs.T)
        everywhere[seen.rows] = seen.costs
        revealed = {"all_losses": loss, "all_costs": everywhere}
        learner.observe(hr.Episode(WORLD.view(), seen.rows, seen.losses, seen.costs, **revealed))
    return ""


def verdict(learner: Any, state: dict[str, np.ndarray]) -> str:
    """`refused`, `sound`, or what is wrong."""
    begun = time.process_time()
    try:
        mutant = type(learner).restored(learner.view, state)
    except hr.errors.InvalidInput as error:
        words = "refused" if "\n" not in str(error) else f"a refusal of several lines: {error!r}"
    else:
        words = _play(mutant, EPISODES) or "sound"
    seconds = time.process_time() - begun
    return words if seconds < LONGEST else f"took {seconds:.0f} s"


def judge(first: int, count: int) -> list[str]:
    """The verdicts of some mutants."""
    learners, found = played_learners(), []
    for number in range(first, first + count):
        rng, learner = np.random.default_rng([11, number]), learners[number % len(learners)]
        state = learner.state()
        numbers = {name: array for name, array in state.items() if array.dtype.kind != "U"}
        for _ in range(int(rng.choice([1, 1, 2]))):
            MUTATIONS[int(rng.integers(len(MUTATIONS)))](rng, {}, numbers)
        state = numbers | {name: array for name, array in state.items() if array.dtype.kind == "U"}
        try:
            words = verdict(learner, state)
        except Exception as error:
            words = f"ended in {type(error).__name__}: {error}"
        found.append(words if words in ("refused", "sound") else f"mutant {number} of {learner.kind}: {words}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    words = judge(arguments.first, arguments.count)
    tally = Counter(word if word in ("refused", "sound") else "failed" for word in words)
    for failure in [word for word in words if word not in ("refused", "sound")][:20]:
        print("  " + failure)
    print(f"field mutations: {tally['refused']} refused, {tally['sound']} sound, {tally['failed']} failures")
    return 1 if tally["failed"] else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
