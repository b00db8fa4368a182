"""Which runs a verification makes: how long, how many seeds, at which of the levels.

quick           under a minute on two idle cores: everything, at horizons where most curves have just begun to bend
default         some minutes
full            a quarter of an hour: horizons to 10^7, paper radii, at least 200 seeds for probabilities
deterministic   the implications that need no statistics (T3, T4, T7, T8, T9, T18), on five worlds of the catalogue
                against three adversaries with twenty seeds, T = 20,000, both presets, run by run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.experiments.cells import Cell
from hedgerow.experiments.parts import Part
from hedgerow.promises.runs import runs

SMALL: Part = {"name": "random-layered", "actions": 3, "constraints": 1, "layers": [1, 3, 3, 1]}
CATALOGUE: tuple[str | Part, ...] = (
    "lower-bound-1",
    "lower-bound-2",
    SMALL,
    "random-layered",
    {"name": "dope-factored", "support": "known"},
)
ADVERSARIES = ("switching", "drifting", "pursuit")
BOTH = ("paper", "sharp")
ORACLE_CONSTANT = 1.5
"""C_P for T13 and T14: above the regret constants that are measured on the worlds where it is used."""


@dataclass(frozen=True)
class Scale:
    """The numbers that make a level."""

    deterministic: tuple[int, int]
    """(episodes, seeds)"""
    confidence: tuple[int, int]
    soft: tuple[tuple[int, ...], int]
    """(horizons, seeds)"""
    soft_paper: tuple[tuple[int, ...], int]
    soft_layered: tuple[tuple[int, ...], int]
    regret: tuple[tuple[int, ...], int]
    regret_binding: tuple[tuple[int, ...], int]
    safe: tuple[tuple[int, ...], int]
    safe_paper: tuple[tuple[int, ...], int]
    width: tuple[tuple[int, ...], int]
    search: tuple[int, int]
    constant: tuple[tuple[int, ...], int]
    oracle: tuple[int, int]
    pair: tuple[tuple[int, ...], tuple[float, ...], int]
    """(horizons, margins rho, seeds)"""
    estimator: tuple[int, int]


NONE: tuple[tuple[int, ...], int] = ((), 0)
SCALES = {
    "quick": Scale(
        deterministic=(300, 1),
        confidence=(500, 24),
        soft=((2**10, 2**12, 2**14), 4),
        soft_paper=NONE,
        soft_layered=NONE,
        regret=((2**8, 2**10, 2**12), 6),
        regret_binding=NONE,
        safe=((2**10, 2**12, 2**14), 4),
        safe_paper=NONE,
        width=((2**8, 2**10, 2**12), 3),
        search=(1500, 16),
        constant=((2**11, 2**12, 2**13), 4),
        oracle=(3000, 8),
        pair=((2000,), (0.1, 0.25, 0.5), 6),
        estimator=(500, 16),
    ),
    "default": Scale(
        deterministic=(4_000, 2),
        confidence=(2_000, 200),
        soft=(tuple(2**k for k in (10, 12, 14, 16, 18)), 6),
        soft_paper=(tuple(2**k for k in (12, 14, 16, 18)), 3),
        soft_layered=(tuple(2**k for k in (12, 14, 16)), 3),
        regret=(tuple(2**k for k in (10, 12, 14, 16)), 6),
        regret_binding=NONE,
        safe=(tuple(2**k for k in (10, 12, 14, 16, 18)), 4),
        safe_paper=(tuple(2**k for k in (12, 14, 16, 18)), 3),
        width=(tuple(2**k for k in (10, 12, 14, 16)), 3),
        search=(2_500, 500),
        constant=(tuple(2**k for k in (11, 12, 13, 14, 15, 16)), 6),
        oracle=(6_000, 40),
        pair=((4_000, 16_000, 64_000), (0.05, 0.1, 0.25, 0.5), 3),
        estimator=(2_000, 100),
    ),
    "full": Scale(
        deterministic=(20_000, 2),
        confidence=(5_000, 400),
        soft=((*(2**k for k in range(10, 21, 2)), 10**7), 4),
        soft_paper=((*(2**k for k in range(12, 21, 2)), 10**7), 4),
        soft_layered=(tuple(2**k for k in (12, 14, 16, 18, 20)), 4),
        regret=(tuple(2**k for k in (10, 12, 14, 16, 18, 20)), 6),
        regret_binding=((*(2**k for k in range(12, 21, 2)), 10**7), 20),
        safe=((*(2**k for k in range(10, 21, 2)), 10**7), 4),
        safe_paper=((*(2**k for k in range(12, 21, 2)), 10**7), 4),
        width=(tuple(2**k for k in (10, 12, 14, 16, 18)), 6),
        search=(5_000, 1_000),
        constant=((2**11, *(2**k for k in range(12, 21, 2)), 10**7), 12),
        oracle=(10_000, 200),
        pair=((4_000, 16_000, 64_000, 256_000), (0.05, 0.1, 0.25, 0.5), 8),
        estimator=(4_000, 400),
    ),
}


@dataclass(frozen=True)
class Level:
    """Runs by group, and the runs of the controls by name."""

    name: str
    groups: dict[str, list[Cell]]
    controls: dict[str, list[Cell]] = field(default_factory=dict)

    @property
    def cells(self) -> dict[str, Cell]:
        """All of them by id; groups that need the same runs share them."""
        found: dict[str, Cell] = {}
        for cells in (*self.groups.values(), *self.controls.values()):
            for cell in cells:
                if found.setdefault(cell.id, cell).hash != cell.hash:
                    raise InvalidInput(f"level {self.name}: two cells would be called {cell.id}")
        return found


def make_level(name: str) -> Level:
    if name == "deterministic":
        return Level(name, {"deterministic": deterministic(20_000, 20)}, {})
    if name not in SCALES:
        raise InvalidInput(f"there is no level {name!r}; choose one of {', '.join(SCALES)}, deterministic")
    return Level(name, _groups(SCALES[name]), controls())


def _groups(scale: Scale) -> dict[str, list[Cell]]:
    """By the names that promises use; runs of one set differ in length and seed only."""
    return {
        "deterministic": deterministic(*scale.deterministic),
        "confidence": _both_learners(*scale.confidence),
        "soft-violation": [
            *_growing("two-actions", "sv-ops", scale.soft),
            *_growing("two-actions", "sv-ops", scale.soft_paper, presets=("paper",)),
            *_growing(SMALL, "sv-ops", scale.soft_layered),
        ],
        # On a world whose constraint does not bind: elsewhere early violations make the regret of SV-OPS negative.
        # Where it binds, against the adversary that leaves the least to gain from violating it.
        "soft-regret": [
            *_growing("lower-bound-2", "sv-ops", scale.regret, adversaries=("noisy", "turning", *ADVERSARIES)),
            *_growing("two-actions", "sv-ops", scale.regret_binding, adversaries=("pursuit",)),
        ],
        "safe-growth": [
            *_growing("two-actions", "s-ops", scale.safe),
            *_growing("two-actions", "s-ops", scale.safe_paper, presets=("paper",)),
        ],
        "safe-width": _growing("gate", "s-ops", scale.width, estimator=True),
        "search": _growing("wide", "cv-ops", scale.search),
        "constant": _growing({"name": "two-actions", "costly": 1.0, "threshold": 0.4}, "cv-ops", scale.constant),
        "oracle": _growing(
            {"name": "lower-bound-2", "rho": 0.5},
            {"name": "cv-ops", "primal_constant": ORACLE_CONSTANT, "stop": "theory"},
            scale.oracle,
        ),
        "lower-bound": _pair(*scale.pair),
        "estimator": _both_learners(*scale.estimator, estimator=True),
    }


def deterministic(episodes: int, seeds: int) -> list[Cell]:
    """Five worlds x three adversaries x seeds x presets x SV-OPS and S-OPS, audited."""
    return [
        cell
        for world in CATALOGUE
        for learner in ("sv-ops", "s-ops")
        for cell in runs(
            world, learner, episodes, range(seeds), adversaries=ADVERSARIES, presets=BOTH, delta=0.01, audit=True
        )
    ]


def _growing(
    world: str | Part, learner: str | Part, choice: tuple[int | Sequence[int], int], **more: Any
) -> list[Cell]:
    """The runs of a choice (horizons, seeds)."""
    return runs(world, learner, choice[0], range(choice[1]), **more)


def _both_learners(episodes: int, seeds: int, *, estimator: bool = False) -> list[Cell]:
    """Half of the seeds for SV-OPS, half for S-OPS; the tight radii, which leave the least room."""
    first, second = range(seeds // 2), range(seeds // 2, seeds)
    return [
        cell
        for learner, some in (("sv-ops", first), ("s-ops", second))
        for cell in runs(SMALL, learner, episodes, some, adversaries=("drifting",), estimator=estimator)
    ]


def _pair(horizons: Sequence[int], margins: Sequence[float], seeds: int) -> list[Cell]:
    return [
        cell
        for T in horizons
        for rho in margins
        for world in ("lower-bound-1", "lower-bound-2")
        for cell in runs({"name": world, "episodes": T, "rho": rho}, "s-ops", T, range(seeds))
    ]


def controls() -> dict[str, list[Cell]]:
    """By the names of `controls/__init__.py`; the same at every level: a broken learner shows soon."""
    scale, noisy, drifting = {"confidence_scale": 0.1}, ("noisy",), ("drifting",)
    return {
        "literal-sigma": runs("opposed", {"name": "s-ops", "sigma": "literal"}, 1500, range(2)),
        "layer-0-skipped": runs("front-loaded", "layer-0-skipped", 1100, range(2)),
        "index-drawn-once": runs("needle", "index-drawn-once", 900, range(40)),
        "per-step-mixing": runs("turncoat", "per-step-mixing", 1000, range(1)),
        "narrow-radii": runs(SMALL, {"name": "sv-ops", **scale}, 500, range(16), adversaries=drifting),
        "narrow-radii-mixing": runs("two-actions", {"name": "s-ops", **scale}, 1000, range(16), delta=0.01),
        "wrong-counts": runs(SMALL, "wrong-counts", 400, range(2)),
        "unconstrained": runs("two-actions", "uob-reps", (2**10, 2**12, 2**14), range(2)),
        "explore-then-commit": runs(
            "two-actions", "explore-then-commit", (2**7, 2**8, 2**9), range(2), adversaries=("turning",)
        ),
        "wrong-box": runs("gate", "wrong-box", 200, range(1)),
        "backward-steps": runs("two-actions", "backward-steps", 1000, range(1), adversaries=noisy),
        "timid-estimator": runs("two-actions", "timid-estimator", 400, range(4), adversaries=noisy, estimator=True),
    }
