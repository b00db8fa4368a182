"""Seeds together: the runs of one learner on one world against one adversary for one number of episodes.

for group in results.groups:
    group.learner, group.summary().regret, group.curve("regret").shape     # (seeds, C)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow import brief
from hedgerow.checks import FloatArray, IntArray, did_you_mean
from hedgerow.errors import InvalidInput
from hedgerow.registry import learners
from hedgerow.results.metrics import (
    REGRET,
    Growth,
    column,
    growth_exponent,
    interquartile_mean,
    net_violation_curve,
    violation_curve,
)
from hedgerow.results.record import Cell, Results
from hedgerow.results.tables import COLUMNS, PER_CONSTRAINT

WATCHED = (
    "mixing_weight", "mixing_total", "residual", "branch", "status", "clean_now", "unclean", "infeasible", "suspect",
    "unsolved", "iterations",
)  # fmt: skip
"""What watchers add to a table, each its own part of it: none of these columns is in every table."""


@dataclass(frozen=True)
class Setting:
    """What the learners of a comparison share.

    Examples:
        >>> from hedgerow.results.groups import Setting
        >>> Setting("dope-media", "switching", 10_000).episodes
        10000
    """

    world: str
    """The name of the world."""
    adversary: str
    """The name of the adversary."""
    episodes: int
    """The number of episodes."""


@dataclass(frozen=True, repr=False)
class GroupSummary:
    """The final numbers of a group of runs.

    Means are interquartile means over seeds: the mean of the middle half. Quartiles are those of the seeds.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.pages.page import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> world = hr.catalogue.make("lower-bound-2")
        >>> run = hr.simulate(world, None, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> summary = run_results(run).groups[0].summary()
        >>> summary.seeds, summary.t_bar
        (1, ())
    """

    seeds: int
    """The number of seeds."""
    regret: float
    """The mean regret after the last episode."""
    regret_quartiles: tuple[float, float]
    """The lower and the upper quartile of the regret."""
    regret_growth: Growth
    """The fitted exponent of the regret."""
    violation: float
    """The mean summed violation, of the constraint where it is largest."""
    violation_quartiles: tuple[float, float]
    """The lower and the upper quartile of the violation."""
    safe: int
    """The number of seeds that respected every constraint in every episode."""
    worst_excess: float | None
    """The largest cost minus threshold of any constraint, episode and seed; None without constraints."""
    net_violation: float
    """The mean violation with cancellation: cheap episodes make up for unsafe ones."""
    mixing_total: float | None
    """The mean sum of the mixing weights lambda over all episodes; None for learners that do not note it."""
    clean: int | None
    """The number of seeds whose confidence sets always held the truth; None if nobody watched them."""
    t_bar: tuple[int, ...]
    """The number of episodes of the first phase, for each seed that has ended one."""
    rho_hat: tuple[float, ...]
    """The margin that the first phase found, for each seed that has ended one."""
    episodes_per_second: float | None
    """The median speed; None if no time is known."""

    def __repr__(self) -> str:
        regret = f"regret={self.regret:.4g} {brief.numbers(self.regret_quartiles)}"
        violation = f"violation={self.violation:.4g} {brief.numbers(self.violation_quartiles)}"
        return brief.line("GroupSummary", regret, violation, f"safe in {self.safe} of {self.seeds} seeds")


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """Runs that differ in their seed alone: one learner on one world against one adversary.

    `results.groups` lists them. Curves have the shape (seeds, C), where C is the number of checkpoints.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.pages.page import run_results  # one run as a sweep; `hr.sweep` returns a real one
        >>> world = hr.catalogue.make("lower-bound-2")
        >>> run = hr.simulate(world, None, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> group = run_results(run).groups[0]
        >>> group.learner, group.curve("regret").shape == (1, len(group.episodes))
        ('uob-reps (paper)', True)
    """

    setting: Setting
    """The world, the adversary and the number of episodes."""
    learner: str
    """The readable name of the learner."""
    cells: tuple[Cell, ...]
    """The cells, one per seed."""
    tables: tuple[Any, ...]
    """The tables of the cells, in the same order."""

    def __repr__(self) -> str:
        setting, seeds = self.setting, brief.counted(len(self.cells), "seed")
        where = f"{brief.quoted(setting.world, 50)} against {brief.quoted(setting.adversary, 40)}"
        return brief.line("Group", brief.quoted(self.learner, 40), where, f"episodes={setting.episodes}", seeds)

    @property
    def kind(self) -> str:
        """The kind of the learner, such as "s-ops", whatever its switches are called."""
        return str(self.cells[0].facts.get("kind", ""))

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of the constraints."""
        return self.cells[0].constraints

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of the constraints."""
        return tuple(self.cells[0].facts["thresholds"])

    @cached_property
    def episodes(self) -> IntArray:
        """(C,): the checkpoints that all seeds have."""
        common = set.intersection(*(set(table.column("episode").to_pylist()) for table in self.tables))
        if not common:
            raise InvalidInput(f"the seeds of {self.learner} on {self.setting.world} have no checkpoint in common")
        return np.array(sorted(common), dtype=np.int64)

    def curve(self, name: str) -> FloatArray:
        """Return the column `name` of all seeds (seeds, C).

        Every run has its scores; columns that only some learners have are found by `noted`.

        Raises:
            InvalidInput: If a seed does not have the column.
        """
        found = self.noted(name)
        if found is None:
            known = self.tables[0].column_names
            raise InvalidInput(f"the runs of {self.learner} have no column {name!r}{did_you_mean(name, known)}")
        return found

    def noted(self, name: str) -> FloatArray | None:
        """Return the column `name` of all seeds (seeds, C), or None if not all of them have it.

        Learners note what they like, and their watchers see what there is to see.
        """
        if not self.has(name):
            return None
        return np.stack([self._at_common(table, column(table, name)) for table in self.tables])

    def has(self, name: str) -> bool:
        """Whether all seeds have the column `name`."""
        return all(name in table.column_names for table in self.tables)

    @property
    def notes(self) -> tuple[str, ...]:
        """The columns that the learner's own plans added."""
        common = {name for name, _, _ in COLUMNS} | set(WATCHED)
        each = tuple(f"{name}_" for name in (*(name for name, _ in PER_CONSTRAINT), "bound"))
        found = [name for name in self.tables[0].column_names if name not in common and not name.startswith(each)]
        return tuple(name for name in found if self.has(name))

    def net_violation(self) -> FloatArray:
        """Return the violation with cancellation of all seeds (seeds, C).

        Cheap episodes make up for unsafe ones.
        """
        curves = [net_violation_curve(table, self.thresholds) for table in self.tables]
        return np.stack([self._at_common(table, curve) for table, curve in zip(self.tables, curves, strict=True)])

    @property
    def scored(self) -> str:
        """How the runs were scored: "exact", or "sampled" where the truth is not known."""
        return str(self.cells[0].facts.get("scored", "exact"))

    @property
    def ways(self) -> tuple[str, ...]:
        """How the runs were played: "compiled", "step-wise", or both."""
        return tuple(sorted({str(cell.facts.get("way") or "unknown") for cell in self.cells}))

    def violation(self) -> FloatArray:
        """Return the summed violation of all seeds (seeds, C), of the constraint where it is largest."""
        return np.stack([self._at_common(table, violation_curve(table)) for table in self.tables])

    def margin(self, i: int) -> FloatArray:
        """Return threshold minus cost of constraint `i` for all seeds (seeds, C); negative if violated."""
        return -self.curve(f"excess_{i}")

    def _at_common(self, table: Any, values: FloatArray) -> FloatArray:
        return values[np.isin(column(table, "episode"), self.episodes)]

    def summary(self) -> GroupSummary:
        """Return the numbers after the last episode."""
        return self._summary

    @property
    def _mixing_total(self) -> float | None:
        totals = self.noted("mixing_total")
        return None if totals is None else float(interquartile_mean(totals[:, -1]))

    @cached_property
    def _summary(self) -> GroupSummary:
        regret, violation = self.curve("regret")[:, -1], self.violation()
        worst = [self.curve(f"worst_{i}")[:, -1] for i in range(len(self.constraints))]
        speeds = [cell.episodes_per_second for cell in self.cells]
        known = [speed for speed in speeds if speed is not None]
        facts: list[Mapping[str, Any]] = [cell.facts for cell in self.cells]
        unclean = self.noted("unclean")
        return GroupSummary(
            seeds=len(self.cells),
            regret=float(interquartile_mean(regret)),
            regret_quartiles=_quartiles(regret),
            regret_growth=growth_exponent(self.episodes, self.curve(REGRET)),
            violation=float(interquartile_mean(violation[:, -1])),
            violation_quartiles=_quartiles(violation[:, -1]),
            safe=int(np.sum(np.all(np.array(worst) <= 0.0, axis=0))) if worst else len(self.cells),
            worst_excess=float(np.max(worst)) if worst else None,
            net_violation=float(interquartile_mean(self.net_violation()[:, -1])),
            mixing_total=self._mixing_total,
            clean=None if unclean is None else int(np.sum(unclean[:, -1] == 0)),
            t_bar=tuple(entry["t_bar"] for entry in facts if entry.get("t_bar") is not None),
            rho_hat=tuple(entry["rho_hat"] for entry in facts if entry.get("rho_hat") is not None),
            episodes_per_second=float(np.median(known)) if known else None,
        )


def groups(results: Results) -> list[Group]:
    """The finished cells of a sweep, seeds together, ordered by setting, then learner; `Results.groups` keeps them."""
    found: dict[tuple[Setting, str], list[Cell]] = {}
    for cell in results.done:
        setting = Setting(cell.label("world"), cell.label("adversary"), cell.episodes)
        found.setdefault((setting, cell.label("learner")), []).append(cell)
    made = []
    for (setting, learner), cells in found.items():
        cells.sort(key=lambda cell: cell.seed)
        made.append(Group(setting, learner, tuple(cells), tuple(results.table(cell.id) for cell in cells)))
    return sorted(made, key=_place)


def _place(group: Group) -> tuple[str, str, int, int, str]:
    setting = group.setting
    order = list(learners.builtin)  # others follow
    kind = order.index(group.kind) if group.kind in order else len(order)
    return setting.world, setting.adversary, setting.episodes, kind, group.learner


def _quartiles(values: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)
