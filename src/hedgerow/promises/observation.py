"""Observations, the input of judges: the last row of a cell's table and its facts, as plain numbers by name.

Numbers that do not exist in a run (the margin that SV-OPS found, say) are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Any

from hedgerow.results.metrics import num_constraints, violation_curve
from hedgerow.results.naming import label
from hedgerow.results.record import Cell


@dataclass(frozen=True)
class Observation:
    """A finished run, seen as a member of one of the groups of a level."""

    group: str
    spec: Mapping[str, Any]
    """The description of its cell"""
    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @property
    def world(self) -> str:
        return str(self.spec["world"]["name"]).rpartition(":")[2].replace("_", "-")

    @property
    def adversary(self) -> str:
        return label(self.spec, "adversary")

    @property
    def preset(self) -> str:
        return str(self.spec["learner"]["preset"])

    @property
    def episodes(self) -> int:
        return int(self.spec["episodes"])

    @property
    def delta(self) -> float:
        return float(self.spec["delta"])


def values_of(cell: Cell, table: Any) -> dict[str, float]:
    """The numbers of a finished cell: columns by name after the last episode, facts, and what follows from them.

    clean                          1 if no episode began with the truth outside a confidence set
    violation, worst               of all constraints together
    rho                            the Slater margin of the world
    violation_, unsafe_, regret_after   what came after the search of CV-OPS had ended
    """
    last = {name: table.column(name)[-1].as_py() for name in table.column_names}
    facts = {name: value for name, value in cell.facts.items() if value is None or isinstance(value, int | float)}
    values = {name: nan if value is None else float(value) for name, value in {**last, **facts}.items()}
    values["violation"] = float(violation_curve(table)[-1])
    values["worst"] = max((values[f"worst_{i}"] for i in range(num_constraints(table))), default=-inf)
    values["clean"], values["rho"] = float(values["unclean"] == 0), values["slater"]
    after = {name: values[name] - values[f"{name}_at_stop"] for name in ("violation", "unsafe", "regret")}
    return values | {f"{name}_after": value for name, value in after.items()}
