"""Which runs a verification makes: how long, how many seeds, at which of the levels.

quick           under a minute on two idle cores: everything, at horizons where most curves have just begun to bend
default         some minutes
full            a quarter of an hour: horizons to 10^7, paper radii, at least 200 seeds for probabilities
deterministic   the implications that need no statistics (T3, T4, T7, T8, T9, T18), on five worlds of the catalogue
                against three adversaries with twenty seeds, T = 20,000, both presets, run by run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.promises.specs import Items, RunSpec, spread

SMALL: Items = (("actions", 3), ("constraints", 1), ("layers", (1, 3, 3, 1)))
CATALOGUE: tuple[tuple[str, Items], ...] = (
    ("lower-bound-1", ()),
    ("lower-bound-2", ()),
    ("random-layered", SMALL),
    ("random-layered", ()),
    ("dope-factored", (("support", "known"),)),
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
    groups: dict[str, list[RunSpec]]
    controls: dict[str, list[RunSpec]] = field(default_factory=dict)


def make_level(name: str) -> Level:
    if name == "deterministic":
        return Level(name, {"deterministic": deterministic(20_000, 20)}, {})
    if name not in SCALES:
        raise InvalidInput(f"there is no level {name!r}; choose one of {', '.join(SCALES)}, deterministic")
    scale = SCALES[name]
    return Level(name, _groups(scale), controls())


def _groups(scale: Scale) -> dict[str, list[RunSpec]]:
    return {
        "deterministic": deterministic(*scale.deterministic),
        "confidence": confidence(*scale.confidence),
        "soft-violation": _soft(scale),
        "soft-regret": [*_regret(*scale.regret), *_regret_binding(*scale.regret_binding)],
        "safe-growth": _safe(scale),
        "safe-width": _width(*scale.width),
        "search": _search(*scale.search),
        "constant": _constant(*scale.constant),
        "oracle": _oracle(*scale.oracle),
        "lower-bound": _pair(*scale.pair),
        "estimator": _estimator(*scale.estimator),
    }


def deterministic(episodes: int, seeds: int) -> list[RunSpec]:
    """Five worlds x three adversaries x seeds x presets x SV-OPS and S-OPS, audited."""
    return [
        spec
        for world, params in CATALOGUE
        for learner in ("sv-ops", "s-ops")
        for spec in spread(
            RunSpec("deterministic", world, learner, episodes, delta=0.01, world_params=params, audit=True),
            range(seeds),
            adversaries=ADVERSARIES,
            presets=BOTH,
        )
    ]


def confidence(episodes: int, seeds: int) -> list[RunSpec]:
    """Half of the seeds for SV-OPS, half for S-OPS; the tight radii, which leave the least room."""
    base = RunSpec("confidence", "random-layered", "sv-ops", episodes, world_params=SMALL, adversary="drifting")
    first = spread(base, range(seeds // 2))
    return first + spread(replace(base, learner="s-ops"), range(seeds // 2, seeds))


def _soft(scale: Scale) -> list[RunSpec]:
    base = RunSpec("soft-violation", "two-actions", "sv-ops", 0)
    layered = replace(base, world="random-layered", world_params=SMALL)
    return [
        *_horizons(base, scale.soft),
        *_horizons(replace(base, preset="paper"), scale.soft_paper),
        *_horizons(layered, scale.soft_layered),
    ]


def _horizons(base: RunSpec, choice: tuple[Sequence[int], int]) -> list[RunSpec]:
    horizons, seeds = choice
    return spread(base, range(seeds), episodes=horizons) if seeds else []


def _regret(horizons: Sequence[int], seeds: int) -> list[RunSpec]:
    """On a world whose constraint does not bind: elsewhere early violations make the regret of SV-OPS negative."""
    base = RunSpec("soft-regret", "lower-bound-2", "sv-ops", 0)
    kinds = ("noisy", "turning", *ADVERSARIES)
    return spread(base, range(seeds), episodes=horizons, adversaries=kinds)


def _regret_binding(horizons: Sequence[int], seeds: int) -> list[RunSpec]:
    """Where the constraint binds, against the adversary that leaves the least to gain from violating it."""
    base = RunSpec("soft-regret", "two-actions", "sv-ops", 0, adversary="pursuit")
    return _horizons(base, (horizons, seeds))


def _safe(scale: Scale) -> list[RunSpec]:
    base = RunSpec("safe-growth", "two-actions", "s-ops", 0)
    return [*_horizons(base, scale.safe), *_horizons(replace(base, preset="paper"), scale.safe_paper)]


def _width(horizons: Sequence[int], seeds: int) -> list[RunSpec]:
    base = RunSpec("safe-width", "gate", "s-ops", 0, estimator=True)
    return spread(base, range(seeds), episodes=horizons)


def _search(episodes: int, seeds: int) -> list[RunSpec]:
    return spread(RunSpec("search", "wide", "cv-ops", episodes), range(seeds))


def _constant(horizons: Sequence[int], seeds: int) -> list[RunSpec]:
    params: Items = (("costly", 1.0), ("threshold", 0.4))
    return spread(RunSpec("constant", "two-actions", "cv-ops", 0, world_params=params), range(seeds), episodes=horizons)


def _oracle(episodes: int, seeds: int) -> list[RunSpec]:
    switches: Items = (("primal_constant", ORACLE_CONSTANT), ("stop", "theory"))
    base = RunSpec("oracle", "lower-bound-2", "cv-ops", episodes, switches=switches)
    return spread(replace(base, world_params=(("rho", 0.5),)), range(seeds))


def _pair(horizons: Sequence[int], margins: Sequence[float], seeds: int) -> list[RunSpec]:
    return [
        spec
        for T in horizons
        for rho in margins
        for world in ("lower-bound-1", "lower-bound-2")
        for spec in spread(
            RunSpec("lower-bound", world, "s-ops", T, world_params=(("episodes", T), ("rho", rho))), range(seeds)
        )
    ]


def _estimator(episodes: int, seeds: int) -> list[RunSpec]:
    base = RunSpec(
        "estimator", "random-layered", "sv-ops", episodes, world_params=SMALL, adversary="drifting", estimator=True
    )
    return [*spread(base, range(seeds // 2)), *spread(replace(base, learner="s-ops"), range(seeds // 2, seeds))]


# Controls -------------------------------------------------------------------------------------------------------------


def controls() -> dict[str, list[RunSpec]]:
    """By the names of `controls/__init__.py`; the same at every level: a broken learner shows soon."""
    narrow: Items = (("confidence_scale", 0.1),)

    def one(name: str, world: str, learner: str, episodes: int, seeds: int, **more: Any) -> list[RunSpec]:
        return spread(RunSpec(name, world, learner, episodes, control=name, **more), range(seeds))

    return {
        "literal-sigma": one("literal-sigma", "opposed", "s-ops", 1500, 2, switches=(("sigma", "literal"),)),
        "layer-0-skipped": one("layer-0-skipped", "front-loaded", "cv-ops", 1100, 2),
        "index-drawn-once": one("index-drawn-once", "needle", "cv-ops", 900, 40),
        "per-step-mixing": one("per-step-mixing", "turncoat", "s-ops", 1000, 1),
        "narrow-radii": one(
            "narrow-radii", "random-layered", "sv-ops", 500, 16,
            world_params=SMALL, adversary="drifting", switches=narrow,
        ),
        "narrow-radii-mixing": one(
            "narrow-radii-mixing", "two-actions", "s-ops", 1000, 16, delta=0.01, switches=narrow
        ),
        "wrong-counts": one("wrong-counts", "random-layered", "sv-ops", 400, 2, world_params=SMALL),
        "unconstrained": [
            spec for T in (2**10, 2**12, 2**14) for spec in one("unconstrained", "two-actions", "uob-reps", T, 2)
        ],
        "explore-then-commit": [
            spec
            for T in (2**7, 2**8, 2**9)
            for spec in one("explore-then-commit", "two-actions", "uob-reps", T, 2, adversary="turning")
        ],
        "wrong-box": one("wrong-box", "gate", "sv-ops", 200, 1),
        "backward-steps": one("backward-steps", "two-actions", "sv-ops", 1000, 1, adversary="noisy"),
        "timid-estimator": one("timid-estimator", "two-actions", "sv-ops", 400, 4, adversary="noisy", estimator=True),
    }  # fmt: skip
