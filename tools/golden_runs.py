"""Golden runs: do two versions of the package compute the same bits?

    python tools/golden_runs.py record out/golden.json             # with the version before a change
    python tools/golden_runs.py check out/golden.json              # with the version after it
    python tools/golden_runs.py check out/golden.json --only "s-ops .* tied"

A run is a learner with a preset or with radii, in a world, against an adversary, compiled or step by step. The tool
compares hashes of every array of the learner's state, of the curves, and of all notes and facts of the run. Arrays that
only the later version has do not count; arrays that only the earlier version has are called missing, not different.

All of these are crossed:

    learners      the five of the package with the presets paper, sharp, sharpest; those of `hr.field` with the radii of
                  their sources and with `hedgerow`, where they have radii
    worlds        tied    rows that share their laws
                  known   transitions of some rows, costs of some pairs and a ceiling are known
                  three   three constraints, rows with seven successors
                  logged  a log was absorbed before the first episode: only the learners of the package
                  long    24 steps: fewer episodes
                  roomy   a wide margin, more episodes: those that are cautious leave their baselines
    adversaries   switching (oblivious), pursuit (adaptive)
    ways          compiled and step-wise, where a learner has both

and runs with `OPTIONS` beside the presets are in the world `roomy` against `switching`.

Each run is made of two halves, and the tool itself demands that they fit. The learner is saved to a file between them:
loaded again it must do in the second half what the one that went on did, bit for bit. And both ways must end alike.
A learner that cannot be built for a world declines it, which is recorded as well.

Hashes depend on the machine (its vector instructions decide the last bits), so the file is made where it is used and is
not part of the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hedgerow as hr

Digests = dict[str, str]

OWN = ("sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops", "c-ops")
"""The learners that have presets and can absorb logs."""
PRESETS = ("paper", "sharp", "sharpest")
RADII = {"source": "source", "hedgerow": "sharp"}
"""The sets of the learners of `hr.field`, by the names that their runs have had from the beginning"""
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "sv-ops": ({"radii": "kt", "horizon": "doubling"},),
    "s-ops": ({"radii": "anytime"},),
    "cv-ops": ({"phase2_stats": "discard"}, {"search_radius": "variance"}),
    "b-ops": ({"rule": "ceiling"}, {"radii": "kt", "horizon": "doubling"}),
    "opt-cmdp": ({"optimism": "bonus"}, {"replan": "epoch"}),
    "dope": ({"warmup": 10, "sharp": True, "sets": "sharp"},),
    "opt-primal-dual": ({"regularised": True},),
    "bob-pd": ({"feedback": "bandit"},),
    "opse-dp": ({"constants": "experiment"},),
    "triple-q": ({"constants": "experiment"},),
}
"""Further switches, one run each."""
CURVES = ("episodes", "loss", "regret", "costs", "violations", "worst", "unsafe", "excess", "losses")
ADVERSARIES: dict[str, Callable[[], Any]] = {
    "switching": lambda: hr.losses.Switching(period=20, seed=1),
    "pursuit": lambda: hr.losses.Pursuit(rate=0.1),
}
WAYS = ("compiled", "step-wise")
LOG_EPISODES = 40


class Case(NamedTuple):
    """One run of one learner."""

    learner: str
    variant: str
    options: Mapping[str, Any]
    world: str
    adversary: str
    way: str

    @property
    def name(self) -> str:
        """What the run is called in files and lists."""
        return " ".join((self.learner, self.variant, self.world, self.adversary, self.way))

    @property
    def episodes(self) -> int:
        """An even number: there are two halves."""
        if self.world == "roomy":
            return 2_000
        return (600 if self.learner in OWN else 240) // (4 if self.world == "long" else 1)


def cases() -> Iterator[Case]:
    """All runs, in their order; both ways of one run follow each other."""
    for learner in hr.learners.names():
        for variant, options in _variants(learner):
            for world in WORLDS:
                if world == "logged" and learner not in OWN:
                    continue
                for adversary in ADVERSARIES:
                    yield from (Case(learner, variant, options, world, adversary, way) for way in WAYS)
        for options in OPTIONS.get(learner, ()):
            variant = ",".join(f"{name}={value}" for name, value in options.items())
            variant = variant.replace("sets=sharp", "radii=hedgerow")
            switches = {"preset": "paper", **options} if learner in OWN else options
            yield from (Case(learner, variant, switches, "roomy", "switching", way) for way in WAYS)


def _variants(learner: str) -> list[tuple[str, dict[str, Any]]]:
    if learner in OWN:
        return [(preset, {"preset": preset}) for preset in PRESETS]
    if "sets" in inspect.signature(hr.learners.find(learner)).parameters:
        return [(name, {"sets": sets}) for name, sets in RADII.items()]
    return [("-", {})]


# Worlds --------------------------------------------------------------------------------------------------------------


def _process(horizon: int, seed: int, free_steps: int = 0) -> hr.CMDP:
    """Three states and two actions, unrolled, with one constraint; the first steps may be free of costs."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet([1.0, 1.0, 1.0], size=(3, 2))
    costs = rng.uniform(0.05, 0.6, (1, 3, 2))
    costs[0, 1, 0] = 0.0
    if free_steps:
        costs = np.repeat(costs[:, None], horizon, axis=1)
        costs[:, :free_steps] = 0.0
    free = hr.unroll(moves, horizon, 0, costs=costs, thresholds=[float(horizon)]).cmdp
    least = hr.offline.slater(free).costs
    return free.with_thresholds(least + 0.1 * (horizon - least))


def _tied() -> hr.CMDP:
    return _process(4, 0)


def _known() -> hr.CMDP:
    world = _process(4, 0, free_steps=2)
    layout, means = world.layout, world.mean_costs
    rows = np.arange(layout.num_rows)
    knowledge = {
        "transitions": np.where((rows % 3 == 0)[layout.row_of_triple], world.transitions, np.nan),
        "costs": np.where((means == 0.0) | (rows % 4 == 1), means, np.nan),
        "max_episode_cost": [2.0],
    }
    return world.with_knowledge(knowledge)


def _three() -> hr.CMDP:
    return hr.worlds.make("random-layered", layers=(1, 3, 7, 1), actions=2, constraints=3, seed=2).cmdp


def _roomy() -> hr.CMDP:
    """A cheap and a dear action: a wide margin for the first, so that everybody leaves the baseline, and a violation by
    the second.
    """
    layout = hr.Layout((1, 2, 1), 2)
    moves = np.array([0.4, 0.6, 0.7, 0.3, 1.0, 1.0, 1.0, 1.0])
    costs = hr.costs.BernoulliCosts(np.array([[0.04, 0.9, 0.05, 0.8, 0.05, 0.95]]))
    return hr.CMDP(layout, moves, costs, [1.3])


def _long() -> hr.CMDP:
    return _process(24, 3).with_knowledge(None)


WORLDS: dict[str, Callable[[], hr.CMDP]] = {
    "tied": cache(_tied),
    "known": cache(_known),
    "three": cache(_three),
    "logged": cache(_tied),
    "long": cache(_long),
    "roomy": cache(_roomy),
}


def _learner(case: Case, world: hr.CMDP) -> Any:
    """The learner at its first episode; the ones that absorb a log get radii without a horizon."""
    cls = hr.learners.find(case.learner)
    known = inspect.signature(cls).parameters
    given: dict[str, Any] = {"view": world.view(), "episodes": case.episodes, "delta": 0.05, "seed": 5}
    safest = hr.offline.slater(world)
    given |= {"baseline": safest, "slater": safest.margin, "world": world}
    if "losses" in known:
        given["losses"] = ADVERSARIES[case.adversary]()
    options = {name: value for name, value in given.items() if name in known} | dict(case.options)
    if case.learner == "cv-ops":
        options |= {"confidence_scale": 0.05}  # else phase 2 would not begin
    if case.options.get("horizon") == "doubling":
        options |= {"episodes": None}
    if case.world != "logged":
        return cls(**options)
    if case.variant != "sharpest":
        options |= {"radii": "anytime"}
    learner = cls(**options)
    learner.absorb(hr.Log.played(world, hr.Policy.uniform(world), LOG_EPISODES, 7))
    return learner


# Runs ----------------------------------------------------------------------------------------------------------------


def play(case: Case) -> tuple[Digests, list[str]]:
    """The hashes of a run by name, and what is wrong with it; no hashes if the learner has no such way."""
    world = WORLDS[case.world]()
    try:
        learner = _learner(case, world)
    except hr.errors.InvalidInput:
        if case.options in OPTIONS.get(case.learner, ()):
            raise
        return ({"declined": "yes"} if case.way == WAYS[0] else {}), []

    def half(who: Any, seed: int) -> hr.results.Run:
        return hr.simulate(
            world,
            who,
            ADVERSARIES[case.adversary](),
            seed=seed,
            progress=False,
            episodes=case.episodes // 2,
            step_wise=case.way == "step-wise",
        )

    first = half(learner, 3)
    if first.way != case.way:
        return {}, []
    again = _reloaded(learner)
    whole = digests(learner, first, half(learner, 4))
    continued = digests(again, first, half(again, 4))
    wrong = sorted(name for name in whole | continued if whole.get(name) != continued.get(name))
    return whole, [f"saved and loaded in the middle it goes on otherwise: {', '.join(wrong)}"] if wrong else []


def _reloaded(learner: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "learner.npz"
        hr.save(learner, file)
        return hr.load(file)


def digests(learner: Any, *halves: hr.results.Run) -> Digests:
    """Hashes of the state of a learner and of all numbers of its runs, by name."""
    own = learner.state_arrays() if hasattr(learner, "state_arrays") else learner.state()
    found = {f"state.{name}": np.asarray(array) for name, array in own.items() if name != "arguments"}
    if getattr(learner, "coin", None) is not None:
        at = getattr(learner.coin, "bit_generator", learner.coin).state  # older versions have a Generator
        found["coin"] = np.array(json.dumps(at, sort_keys=True))
    for number, run in enumerate(halves):
        numbers = {f"curve.{name}": getattr(run, name) for name in CURVES}
        numbers |= {f"note.{name}": values for name, values in run.notes.items()}
        numbers |= {f"fact.{name}": np.nan if value is None else value for name, value in run.facts.items()}
        numbers |= {"comparator": run.comparator, "policy": np.asarray(run.policy)}
        found |= {f"half {number}: {name}": np.asarray(value) for name, value in numbers.items()}
    return {name: _digest(array) for name, array in found.items()}


def _digest(array: np.ndarray[Any, Any]) -> str:
    what = f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(what).hexdigest()[:16]


def runs(only: str = "") -> Iterator[tuple[str, Digests, list[str]]]:
    """Name, hashes and faults of every run whose name `only` is found in."""
    other: tuple[str, Digests] = ("", {})
    for case in cases():
        if not re.search(only, case.name):
            continue
        found, faults = play(case)
        if not found:
            continue
        name, both = case.name.rpartition(" ")[0], other[1]
        if other[0] == name:
            wrong = sorted(array for array in both.keys() & found.keys() if both[array] != found[array])
            faults += [f"the compiled run is another one: {', '.join(wrong)}"] if wrong else []
        other = (name, found)
        yield case.name, found, faults


# Files ---------------------------------------------------------------------------------------------------------------


def compare(known: Digests, found: Digests) -> list[str]:
    """What is wrong with the hashes of a run that had the hashes `known` before."""
    changed = [name for name, digest in known.items() if name in found and found[name] != digest]
    missing = [name for name in known if name not in found]
    sentences = [f"DIFFERENT: {', '.join(changed)}"] if changed else []
    return sentences + ([f"MISSING: {', '.join(missing)}"] if missing else [])


def record(file: Path, only: str) -> int:
    """Write the hashes of all runs to `file`; the number of runs with a fault."""
    found, faulty = {}, 0
    for name, own, faults in runs(only):
        found[name] = own
        faulty += bool(faults)
        print("\n    ".join((name, *faults)), flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} runs, {faulty} with a fault; {time.process_time():.0f} s of processor time")
    return faulty


def check(file: Path, only: str) -> int:
    """Compare all runs with the hashes in `file`; the number of runs that are not the same."""
    known: dict[str, Digests] = json.loads(file.read_text(encoding="utf-8"))
    seen, wrong = set(), 0
    for name, own, faults in runs(only):
        seen.add(name)
        if name in known:
            faults = compare(known[name], own) + faults
        sentences = faults or ["same" if name in known else "new"]
        wrong += bool(faults)
        print(f"{name:60} {'; '.join(sentences)}", flush=True)
    lost = [name for name in known if name not in seen and re.search(only, name)]
    for name in lost:
        print(f"{name:60} NOT RUN: this version has no such run")
    print(f"{len(seen)} runs, {wrong} not the same, {len(lost)} not run; {time.process_time():.0f} s of processor time")
    return wrong + len(lost)


def main(arguments: list[str] | None = None) -> int:
    """Record or check; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=["record", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="PATTERN", help="runs whose name has this regular expression")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # what a version warns of is not what it computes
    return min(1, {"record": record, "check": check}[given.command](given.file, given.only))


if __name__ == "__main__":
    sys.exit(main())
