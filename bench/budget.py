"""`python -m bench budget`: does B-OPS keep its budget, and what does it gain over S-OPS by promising less?

Two parts. First B-OPS by both rules beside S-OPS and its baseline, on the worlds and losses of `compare hour` and at
the baselines that it offers: regret after T episodes, and how many episodes B-OPS takes until its average regret is
that of S-OPS at the end. Then long runs in worlds with one to three constraints in which all costs of an episode hang
together, against losses that pursue the learner or switch: how often its account was wrong, which delta allows for, and
whether the summed expected costs ever exceeded the budget while it was right. Exit code 1: they did.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from hedgerow.display.table import Table
from hedgerow.experiments.source import find
from hedgerow.experiments.sweep import sweep
from hedgerow.learners.ops.b_ops import BOPS
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.oblivious import Switching
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import EmpiricalCosts
from hedgerow.planning import offline
from hedgerow.simulation.run import simulate
from hedgerow.worlds import make

Rule = Literal["bound", "ceiling"]
RULES: tuple[Rule, ...] = ("bound", "ceiling")
LEARNERS: dict[str, dict[str, str]] = {
    "baseline": {"name": "always-baseline"},
    "s-ops": {"name": "s-ops", "preset": "sharpest"},
    **{f"b-ops-{rule}": {"name": "b-ops", "preset": "sharpest", "rule": rule} for rule in RULES},
}
DELTA = 0.05
"""Of the long runs: large, so that a wrong account would be seen"""
LEVELS = 20
"""Different costs that an episode of the long runs can have in a pair, all of them decided by one draw"""


@dataclass(frozen=True)
class SettingRow:
    """Mean regrets in one world against one adversary."""

    world: str
    adversary: str
    baseline: float
    s_ops: float
    bound: float
    ceiling: float
    episodes: int | None
    """Episodes after which the average regret of B-OPS is that of S-OPS at the end; None if never"""
    overdrawn: int
    """Runs of B-OPS whose summed expected costs exceeded the budget at some time"""


@dataclass(frozen=True)
class AttackRow:
    """Long runs by one rule with so many constraints."""

    rule: str
    constraints: int
    runs: int
    episodes: int
    wrong: int
    """Runs in which the account was wrong at some time"""
    overdrawn: int
    """Runs in which the budget was exceeded"""
    refuted: int
    """Those of them in which nothing that the promise rests on had failed"""
    own: float
    """The share of own episodes"""
    reserve: float
    """The least reserve of all runs, per episode of the run"""


Found = tuple[list[SettingRow], list[AttackRow]]


@dataclass(frozen=True)
class BudgetKept(Benchmark[Found]):
    """Regret of B-OPS beside S-OPS, and whether its budget is kept in long runs."""

    name, json_file, is_timed = "budget", "budget.json", False

    seeds: int = option(2, "of each setting")
    runs: int = option(200, "long ones")
    episodes: int = option(20_000, "of each long run")
    length: int = option(10_000, "of each run of the settings")
    adversaries: str = option("own,cycle,betrayal,tempting", "of the settings, with commas")
    worlds: str = option("", "of the settings, with commas; all of `compare hour` by default")

    @classmethod
    def quick(cls) -> Self:
        return cls(seeds=1, runs=12, episodes=500, length=300, worlds="streaming-5,random-small")

    def run(self) -> Found:
        return self._settings(), self._attack()

    def _settings(self) -> list[SettingRow]:
        given = tomllib.loads(find("compare-hour").text)
        wanted = self.worlds.split(",") if self.worlds else None
        worlds = [world for world in given["world"] if wanted is None or world.get("label", world["name"]) in wanted]
        learners = [{**learner, "baseline": "offered", "label": label} for label, learner in LEARNERS.items()]
        experiment = {
            "seeds": self.seeds, "episodes": self.length, "delta": given["delta"], "world": worlds, "learner": learners,
            "adversary": [{"name": name} for name in self.adversaries.split(",")],
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            results = sweep(experiment, f"{folder}/runs", processes=1)
            curves: dict[tuple[str, str], dict[str, list[Any]]] = {}
            for cell in results.done:
                label = cell.spec["label"]
                runs = curves.setdefault((label["world"], label["adversary"]), {name: [] for name in LEARNERS})
                runs[label["learner"]].append(results.load(cell.id))
        return [setting_row(*key, runs) for key, runs in sorted(curves.items())]

    def _attack(self) -> list[AttackRow]:
        rows = []
        with terminal.progress("bench budget", self.runs, forecast=True) as advance:
            for rule in RULES:
                for constraints in (1, 2, 3):
                    rows.append(self._long_runs(rule, constraints, advance))
        return rows

    def _long_runs(self, rule: Rule, constraints: int, advance: Any) -> AttackRow:
        count = len(range(2 * (constraints - 1) + RULES.index(rule), self.runs, 2 * 3))
        wrong = overdrawn = refuted = own = 0
        reserve = np.inf
        for number in range(count):
            world = dependent_world(number, constraints)
            learner = BOPS(world, self.episodes, DELTA, baseline=offline.slater(world), rule=rule, seed=number)
            losses = Pursuit() if number % 2 else Switching(period=7, seed=number)
            run = simulate(world, learner, losses, seed=number, progress=False)
            wrong += bool(run.facts["account_breaches"])
            overdrawn += bool(run["overdrawn"][-1] > 0)
            refuted += bool(run.facts["refuted_budget"])
            own += self.episodes - int(run["mixing_total"][-1])
            reserve = min(reserve, float(run["reserve"][-1]))
            advance(f"{rule}, m = {constraints}")
        total = max(1, count * self.episodes)
        return AttackRow(rule, constraints, count, self.episodes, wrong, overdrawn, refuted, own / total, reserve)

    def figures(self, found: Found) -> list[SettingRow | AttackRow]:
        return [*found[0], *found[1]]

    def is_right(self, found: Found) -> bool:
        return all(row.refuted == 0 for row in found[1]) and all(row.overdrawn == 0 for row in found[0])

    def shown(self, found: Found) -> Iterator[Table | str]:
        settings, attacks = found
        columns = ["world", "losses", "baseline", "S-OPS", "B-OPS", "by the ceiling", "episodes", "overdrawn"]
        table = Table(f"regret after {self.length:,} episodes, {self.seeds} seeds", columns, num_text=2)
        for row in settings:
            regrets = (row.baseline, row.s_ops, row.bound, row.ceiling)
            until = "-" if row.episodes is None else f"{row.episodes:,}"
            table.add_row(row.world, row.adversary, *(f"{value:,.0f}" for value in regrets), until, str(row.overdrawn))
        yield table
        less = [sum(getattr(row, rule) < row.s_ops for row in settings) for rule in RULES]
        yield (
            f"less regret than S-OPS: {less[0]} of {len(settings)} settings, {less[1]} by the ceiling. episodes: until "
            "the average regret is that of S-OPS at the end."
        )
        columns = ["rule", "constraints", "runs", "episodes", "wrong", "overdrawn", "refuted", "own", "least reserve"]
        table = Table(f"long runs, delta = {DELTA:g}", columns, num_text=1)
        for one in attacks:
            counts = (one.constraints, one.runs, one.episodes, one.wrong, one.overdrawn, one.refuted)
            table.add_row(one.rule, *(f"{count:,}" for count in counts), f"{one.own:.2f}", f"{one.reserve:.2f}")
        yield table
        yield "wrong: runs whose account was wrong at some time. refuted: overdrawn though nothing had failed."


def setting_row(world: str, adversary: str, runs: dict[str, list[Any]]) -> SettingRow:
    """The means over seeds of the runs (tables) by learner."""
    curves = {name: np.mean([one.column("regret").to_numpy() for one in some], axis=0) for name, some in runs.items()}
    episodes = runs["s-ops"][0].column("episode").to_numpy()
    last = {name: float(curve[-1]) for name, curve in curves.items()}
    below = np.flatnonzero(curves["b-ops-bound"] / episodes > last["s-ops"] / episodes[-1])
    until = int(below[-1]) + 1 if len(below) else 0
    overdrawn = sum(int(one.column("overdrawn")[-1].as_py() > 0) for rule in RULES for one in runs[f"b-ops-{rule}"])
    return SettingRow(
        world,
        adversary,
        baseline=last["baseline"],
        s_ops=last["s-ops"],
        bound=last["b-ops-bound"],
        ceiling=last["b-ops-ceiling"],
        episodes=int(episodes[until]) if until < len(episodes) else None,
        overdrawn=overdrawn,
    )


def dependent_world(seed: int, constraints: int) -> CMDP:
    """A random world in which one draw decides all costs of an episode: all of them are high, or low, together."""
    base = make("random-layered", layers=(1, 3, 3, 1), actions=2, constraints=constraints, seed=seed).cmdp
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    matrices = [(level < base.mean_costs).astype(np.float64) for level in levels]
    costs = EmpiricalCosts(matrices, np.full(LEVELS, 1.0 / LEVELS))
    free = CMDP(base.layout, base.transitions, costs, np.full(constraints, float(base.layout.steps)))
    least = offline.slater(free).costs
    return free.with_thresholds(np.minimum(least + 0.3, base.layout.steps))
