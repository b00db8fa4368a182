"""What the catalogue hands out: a world, its own loss, and the numbers that are known about it.

A builder returns `Ingredients`; `entries` turns them into a `World` with a content hash and, for frozen
parameter choices, a `Golden`. Values are losses in [0, L]; `Scale` converts them to the scale of the source.

    >>> Scale("reward", offset=6.0, factor=-1.0)(4.0)
    2.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow import brief, files
from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.view import View


@dataclass(frozen=True)
class Scale:
    """The source's own scale: source value = offset + factor * loss value, per episode."""

    unit: str = "loss"
    """What the source counts, e.g. `reward`."""
    offset: float = 0.0
    factor: float = 1.0

    def __call__(self, loss_value: float) -> float:
        return self.offset + self.factor * loss_value


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """A policy that the source knows to be safe. Learners that ask for a baseline take it as it is."""

    policy: FloatArray
    """(rows,)"""
    costs: FloatArray
    """(m,): upper bounds of its expected costs, which a learner may be told"""

    def __repr__(self) -> str:
        return brief.line("Baseline", brief.counted(len(self.policy), "row"), f"costs={brief.numbers(self.costs)}")


@dataclass(frozen=True, eq=False)
class Ingredients:
    """What a builder returns."""

    cmdp: CMDP
    loss: FloatArray
    """(rows,) in [0, 1]"""
    scale: Scale = Scale()
    baseline_thresholds: FloatArray | None = None
    """(m,): the budget at which the source takes its safe baseline policy, if it defines one."""
    baseline: Baseline | None = None
    """The baseline policy itself, if the source names one."""


@dataclass(frozen=True)
class Golden:
    """Optimal values of a frozen world, as losses per episode."""

    optimum: float
    """Least loss under the constraints."""
    unconstrained: float
    """Least loss without them."""
    margin: float
    """Slater margin rho."""
    baseline: float | None = None
    """Loss of the source's baseline policy, or the least one at its baseline budget, where it has either."""
    published: Mapping[str, float] | None = None
    """Numbers that the source or a closed form gives, on the source's scale: `optimum`, `unconstrained`, `baseline`."""


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A named world with its own loss. `golden` is None unless these parameters are frozen."""

    name: str
    description: str
    params: Mapping[str, Any]
    """All parameters, defaults included."""
    cmdp: CMDP
    loss: FloatArray
    """(rows,) in [0, 1]"""
    scale: Scale
    golden: Golden | None
    hash: str
    """SHA-256 of the world and its loss."""
    baseline_thresholds: FloatArray | None = None
    """(m,) or None: see `Ingredients`."""
    baseline: Baseline | None = None
    """A policy that is known to be safe: `SOPS(world.view(), ..., baseline=world.baseline)`"""

    def __repr__(self) -> str:
        layout, known = self.cmdp.layout, [f"optimum={self.golden.optimum:.6g}"] if self.golden else []
        constraints = brief.counted(self.cmdp.num_constraints, "constraint")
        return brief.line("World", brief.quoted(self.name), repr(layout), constraints, *known)

    def _repr_html_(self) -> str:
        from hedgerow.model.notebook import cmdp_html

        facts = f"{self.name}: {self.description}"
        return cmdp_html(self.cmdp, title=facts)

    def view(self) -> View:
        """What a learner may know of this world."""
        return self.cmdp.view()

    @property
    def unit(self) -> str:
        """What the source counts: `source_value` is in this unit."""
        return self.scale.unit

    def source_value(self, loss_value: float) -> float:
        """A loss per episode on the source's own scale."""
        return self.scale(loss_value)


def content_hash(cmdp: CMDP, loss: FloatArray) -> str:
    """SHA-256 over the content of the world and its loss (rows,)."""
    return files.content_hash("instance", 1, {"cmdp": cmdp.content_hash}, {"loss": loss})
