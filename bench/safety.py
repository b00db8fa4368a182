"""`python -m bench safety`: are the safe learners safe? Many short runs, and each unsafe episode on the clean event.

Worlds with one to three constraints, losses that switch, pursue the learner or are drawn, all kinds of sets, and a
large delta, so that learners leave their baselines early: safety must not depend on any of it. Exit code 1: an episode
violated a constraint although all confidence sets held the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from hedgerow.display.table import Table
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.oblivious import IID, Switching
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline
from hedgerow.registry import learners
from hedgerow.simulation.run import simulate
from hedgerow.worlds import make

SAFE = ("s-ops", "c-ops", "opt-pess-lp", "dope", "s-lp", "safe-etc", "opse-dp", "dope-plus")
"""Those that promise no violation; one that is not registered is left out"""
SETS = ("source", "sharp", "sharpest")
DELTA = 0.15


@dataclass(frozen=True)
class SafetyRow:
    """All runs of one learner."""

    learner: str
    runs: int
    episodes: int
    unclean: int
    """Episodes in which some confidence set did not hold the truth"""
    unsafe: int
    """Episodes that violated a constraint"""
    refuted: int
    """Those of them on the clean event"""
    left: int
    """Runs whose last episode was not left to the baseline alone"""
    mixing: float
    """The mean weight of the baseline"""

    @property
    def verdict(self) -> str:
        return "safe" if self.refuted == 0 else "NOT SAFE"


@dataclass(frozen=True)
class Safety(Benchmark[list[SafetyRow]]):
    """Unsafe episodes on the clean event, in many runs of each safe learner."""

    name, json_file, is_timed = "safety", "safety.json", False

    runs: int = option(2_000, "of each learner")
    episodes: int = option(2_000, "of each run")

    @classmethod
    def quick(cls) -> Self:
        return cls(runs=12, episodes=500)

    def run(self) -> list[SafetyRow]:
        names = [name for name in SAFE if name in learners.names()]
        rows = []
        with terminal.progress("bench safety", len(names) * self.runs, forecast=True) as advance:
            for name in names:
                rows.append(self._one_learner(name, partial(advance, name)))
        return rows

    def _one_learner(self, name: str, advance: Any) -> SafetyRow:
        unclean = unsafe = refuted = left = 0
        mixing = 0.0
        for number in range(self.runs):
            world = world_of(number, one_constraint=name == "opse-dp")
            learner = build(name, world, self.episodes, number)
            run = simulate(world, learner, losses_of(number), seed=number, progress=False)
            unclean += int(run["unclean"][-1])
            unsafe += int(run.unsafe[-1])
            refuted += int(run.facts["refuted_safety"] or 0)
            left += bool(run["mixing_weight"][-1] < 1.0)
            mixing += float(run["mixing_total"][-1])
            advance()
        total = self.runs * self.episodes
        return SafetyRow(name, self.runs, total, unclean, unsafe, refuted, left, mixing / total)

    def is_right(self, found: list[SafetyRow]) -> bool:
        return all(row.refuted == 0 for row in found)

    def shown(self, found: list[SafetyRow]) -> Iterator[Table | str]:
        columns = ["learner", "runs", "episodes", "unclean", "unsafe", "unsafe though clean", "left", "lambda", ""]
        table = Table("safety of every episode", columns)
        for row in found:
            counts = (row.runs, row.episodes, row.unclean, row.unsafe, row.refuted, row.left)
            table.add_row(row.learner, *(f"{count:,}" for count in counts), f"{row.mixing:.3f}", row.verdict)
        yield table
        yield "unclean: episodes whose sets missed the truth. left: runs whose last episode was not the baseline alone."


def world_of(number: int, one_constraint: bool = False) -> CMDP:
    """World number 0, 1, ...: small ones with a wide margin, random ones, and a world of DOPE, in turn.

    They have one to three constraints, or always one, which OPSE-DP is made for.
    """
    kind, m, seed = number % 4, 1 if one_constraint else 1 + number % 3, number // 4
    if kind < 2:
        return roomy_world(seed, m)
    if kind == 2:
        options: dict[str, Any] = {"layers": (1, 3, 3, 1), "actions": 2, "constraints": m, "seed": seed}
        return make("random-layered", tightness=0.7, **options).cmdp
    return make("dope-factored").cmdp


def roomy_world(seed: int, num_constraints: int) -> CMDP:
    """Two steps, a cheap and a dear action: pessimists leave their baselines after some hundred episodes."""
    layout, rng = Layout((1, 2, 1), 2), np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.7, 2)
    transitions = np.concatenate([np.column_stack((p, 1.0 - p)).ravel(), np.ones(4)])
    share = np.where(np.arange(layout.num_rows) % 2 == 0, 0.05, 0.95)
    means = share * rng.uniform(0.8, 1.0, (num_constraints, layout.num_rows))
    return CMDP(layout, transitions, BernoulliCosts(means), np.full(num_constraints, 1.3))


def losses_of(number: int) -> Any:
    """Losses that switch, that pursue the learner, or independent draws."""
    if number % 3 == 0:
        return Switching(period=7, seed=number)
    if number % 3 == 1:
        return Pursuit()
    return IID(seed=number)


def build(name: str, world: CMDP, episodes: int, number: int) -> Any:
    """A learner with the Slater policy as its baseline, and other switches in every run."""
    cls = learners.find(name)
    options: dict[str, Any] = {"baseline": offline.slater(world)}
    if name in ("s-ops", "c-ops"):
        options["preset"] = ("paper", "sharp", "sharpest")[number % 3]
    else:
        # The radii of OPSE-DP are formulas of their own, which know nothing of `sharpest`.
        offered = SETS[:2] if name == "opse-dp" else SETS
        options["sets"] = offered[(number // 4) % len(offered)]
    if name == "dope":
        options |= {"warmup": 0, "sharp": bool(number % 2)}
    return cls(world.view(), episodes, DELTA, seed=number, **options)
