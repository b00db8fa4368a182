"""The runs of a verification at each level: how long, and with how many seeds.

quick           under a minute on two idle cores: everything, at horizons where most curves have just begun to bend
default         some minutes
full            half an hour: horizons to 10^7, paper radii, at least 200 seeds for probabilities
deterministic   the implications that need no statistics (T3, T4, T7, T8, T9, T18, T33), on five worlds of the catalogue
                against three adversaries with twenty seeds, T = 20,000, all presets, run by run; with five seeds,
                worlds of which more is known
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.checks import FloatArray, did_you_mean
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import ComponentSpec
from hedgerow.experiments.spec import CellSpec, label_of
from hedgerow.registry.registry import home_of
from hedgerow.results.manifest import canonical
from hedgerow.verify import controls as broken
from hedgerow.verify import mutants
from hedgerow.verify import worlds as made
from hedgerow.verify.bounded import BoundedSOPS, NarrowBounds
from hedgerow.verify.calibrated import CalibratedSOPS
from hedgerow.verify.holes import FallsIntoHoles, holes
from hedgerow.verify.twin_watcher import RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS

SMALL: ComponentSpec = {"name": "random-layered", "actions": 3, "constraints": 1, "layers": [1, 3, 3, 1]}
CATALOGUE: tuple[Named, ...] = (
    "lower-bound-1",
    "lower-bound-2",
    SMALL,
    "random-layered",
    {"name": "dope-factored", "support": "known"},
)
EQUAL: ComponentSpec = {"name": made.layered, "kind": "equal"}
OPPOSITE: ComponentSpec = {"name": made.layered, "kind": "opposite", "constraints": 2}
INFORMED: tuple[Named, ...] = (EQUAL, OPPOSITE, made.partly_known, made.cycle, made.buffer, made.chorus)
"""Ties, known parts, ceilings, costs that depend on each other"""
ADVERSARIES = ("switching", "drifting", "pursuit")
PRESETS = ("paper", "sharp", "sharpest")
SHARPEST = ("sharpest",)
COVERED = (0.04, 0.01)
"""delta of the runs that count how often sets lose the truth; 5 delta is the budget of the clean event"""
SETTLED = 800
"""Episodes after which searches in `wide` have ended, and the certificate gives U there"""
ORACLE_CONSTANT = 1.5
"""C_P for T13 and T14: above the regret constants that are measured on the worlds where it is used."""


def _powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    return tuple(2**k for k in range(first, last + 1, step))


LONG = 10**7
NONE: tuple[tuple[int, ...], int] = ((), 0)
SIZES: dict[str, tuple[Any, Any, Any]] = {
    "deterministic": ((300, 1), (4_000, 2), (20_000, 2)),
    "confidence": ((500, 24), (2_000, 200), (5_000, 400)),
    "coverage": ((300, 40), (2_000, 1_000), (3_000, 1_000)),
    "soft": ((_powers(10, 14), 4), (_powers(10, 18), 6), ((*_powers(10, 20), LONG), 4)),
    "soft paper": (NONE, (_powers(12, 18), 3), ((*_powers(12, 20), LONG), 4)),
    "soft layered": (NONE, (_powers(12, 16), 3), (_powers(12, 20), 4)),
    "regret": ((_powers(8, 12), 6), (_powers(10, 16), 6), (_powers(10, 20), 6)),
    "regret binding": (NONE, NONE, ((*_powers(12, 20), LONG), 20)),
    "safe": ((_powers(10, 14), 4), (_powers(10, 18), 4), ((*_powers(10, 20), LONG), 4)),
    "safe paper": (NONE, (_powers(12, 18), 3), ((*_powers(12, 20), LONG), 4)),
    "width": ((_powers(8, 12), 3), (_powers(10, 16), 3), (_powers(10, 18), 6)),
    "search": ((1_500, 16), (2_500, 500), (5_000, 1_000)),
    "constant": ((_powers(11, 13, 1), 4), (_powers(11, 16, 1), 6), ((2**11, *_powers(12, 20), LONG), 12)),
    "oracle": ((3_000, 8), (6_000, 40), (10_000, 200)),
    "pair": (
        ((2_000,), (0.1, 0.25, 0.5), 6),
        ((4_000, 16_000, 64_000), (0.05, 0.1, 0.25, 0.5), 3),
        ((4_000, 16_000, 64_000, 256_000), (0.05, 0.1, 0.25, 0.5), 8),
    ),
    "estimator": ((500, 16), (2_000, 100), (4_000, 400)),
    "soft width": ((_powers(8, 12), 3), (_powers(10, 16), 3), (_powers(10, 18), 6)),
    "recomputed": ((400, 1), (2_000, 1), (4_000, 2)),
    "interrupted": ((400, 6), (2_000, 20), (4_000, 60)),
    "calibration": ((1_000, 2), (10_000, 10), (100_000, 40)),
    "steps": ((400, 6), (2_000, 40), (4_000, 200)),
    "choice": ((400, 2), (4_000, 10), (20_000, 20)),
    "bounds": ((300, 12), (1_000, 100), (2_000, 400)),
    "budget": ((1_000, 6), (4_000, 60), (20_000, 200)),
    "rates": ((500, 1), (4_000, 2), (20_000, 5)),
}
"""At the levels quick, default and full: (episodes, or horizons; seeds), of the pair (horizons, margins rho, seeds)."""
LEVELS = ("quick", "default", "full")


@dataclass(frozen=True)
class Level:
    """Runs by group, and the runs of the controls by name."""

    name: str
    groups: dict[str, list[CellSpec]]
    controls: dict[str, list[CellSpec]] = field(default_factory=dict)

    @property
    def cells(self) -> dict[str, CellSpec]:
        """All cells by id; groups that need the same runs share them."""
        found: dict[str, CellSpec] = {}
        for cells in (*self.groups.values(), *self.controls.values()):
            for cell in cells:
                if found.setdefault(cell.id, cell).hash != cell.hash:
                    raise InvalidInput(f"level {self.name}: two cells would be called {cell.id}")
        return found


def make_level(name: str) -> Level:
    if name == "deterministic":
        return Level(name, {"deterministic": deterministic(20_000, 20)}, {})
    if name not in LEVELS:
        raise InvalidInput(f"there is no level {name!r}; choose one of {', '.join(LEVELS)}, deterministic")
    sizes = {what: sizes[LEVELS.index(name)] for what, sizes in SIZES.items()}
    return Level(name, _groups(sizes) | {"coverage": coverage(name, *sizes["coverage"])}, controls())


def _groups(size: dict[str, Any]) -> dict[str, list[CellSpec]]:
    """The groups, by the names that promises use; runs of one set differ in length and seed only."""
    return {
        "deterministic": deterministic(*size["deterministic"]),
        "confidence": _both_learners(*size["confidence"]),
        "soft-violation": [
            *runs(made.two_actions, "sv-ops", *size["soft"]),
            *runs(made.two_actions, "sv-ops", *size["soft paper"], presets=("paper",)),
            *runs(SMALL, "sv-ops", *size["soft layered"]),
        ],
        # On a world whose constraint does not bind: elsewhere early violations make the regret of SV-OPS negative.
        # Where it binds, against the adversary that leaves the least to gain from violating it.
        "soft-regret": [
            *runs("lower-bound-2", "sv-ops", *size["regret"], adversaries=("noisy", "turning", *ADVERSARIES)),
            *runs(made.two_actions, "sv-ops", *size["regret binding"], adversaries=("pursuit",)),
        ],
        "safe-growth": [
            *runs(made.two_actions, "s-ops", *size["safe"]),
            *runs(made.two_actions, "s-ops", *size["safe paper"], presets=("paper",)),
        ],
        "safe-width": runs(made.gate, "s-ops", *size["width"], estimator=True),
        "search": runs(made.wide, "cv-ops", *size["search"]),
        "constant": runs({"name": made.two_actions, "costly": 1.0, "threshold": 0.4}, "cv-ops", *size["constant"]),
        "oracle": runs(
            {"name": "lower-bound-2", "rho": 0.5},
            {"name": broken.TheoryStop, "primal_constant": ORACLE_CONSTANT},
            *size["oracle"],
        ),
        "lower-bound": _pair(*size["pair"]),
        "estimator": _both_learners(*size["estimator"], estimator=True),
        "soft-width": runs(made.gate, "sv-ops", *size["soft width"], estimator=True),
        "recomputed": recomputed(*size["recomputed"]),
        "rates": rates(*size["rates"]),
        "interrupted": [
            cell
            for learner in (broken.Interrupted, broken.TakenOver)
            for cell in runs(EQUAL, learner, *size["interrupted"], adversaries=("drifting",), presets=SHARPEST)
        ],
        "calibration": [
            cell
            for world in (SMALL, EQUAL, made.two_actions)
            for cell in runs(
                world, CalibratedSOPS, *size["calibration"], adversaries=("drifting",), presets=PRESETS[1:], delta=0.01
            )
        ],
        "steps": runs(holes, FallsIntoHoles, *size["steps"], adversaries=("drifting",), presets=SHARPEST, delta=0.04),
        "choice": [
            cell
            for world in (SMALL, made.opposed, EQUAL, made.buffer)
            for cell in runs(world, "c-ops", *size["choice"], adversaries=ADVERSARIES, presets=SHARPEST, delta=0.01)
        ],
        "bounds": runs(EQUAL, BoundedSOPS, *size["bounds"], adversaries=("drifting",), presets=SHARPEST, delta=0.01),
        "budget": budget(*size["budget"]),
    }


def budget(episodes: int, seeds: int) -> list[CellSpec]:
    """B-OPS by both rules, with costs of an episode that are all equal, in one and in two constraints."""
    return [
        cell
        for world in (EQUAL, OPPOSITE)
        for rule in ("bound", "ceiling")
        for cell in runs(
            world, {"name": "b-ops", "rule": rule}, episodes, seeds, adversaries=("pursuit",), presets=SHARPEST
        )
    ]


def recomputed(episodes: int, seeds: int) -> list[CellSpec]:
    """Every preset and learner, watched by the twin, which plays step by step in Python. S-OPS also in the worlds of
    which more is known, with balls, with two constraints, and where the certificate gives U.
    """
    wanted: list[tuple[Named, Named, int, Sequence[str]]] = [
        (SMALL, RecomputedSOPS, episodes, PRESETS),
        (SMALL, RecomputedSVOPS, episodes, PRESETS),
        (made.wide, RecomputedCVOPS, max(episodes, SETTLED), PRESETS),
        *(
            (world, RecomputedSOPS, episodes, SHARPEST)
            for world in (EQUAL, made.partly_known, made.buffer, made.chorus, made.rooms)
        ),
        (made.wide, RecomputedSOPS, max(episodes, SETTLED), SHARPEST),
    ]
    return [
        cell
        for world, learner, T, presets in wanted
        for cell in runs(world, learner, T, seeds, adversaries=("drifting",), presets=presets, twin=True)
    ]


def rates(episodes: int, seeds: int) -> list[CellSpec]:
    """Rates other than the paper's: multiples, adaptive ones, without a horizon, with uniform weights mixed in."""
    switches: tuple[ComponentSpec, ...] = (
        {"eta": 10.0, "gamma": 0.1},
        {"eta": "adaptive", "gamma": 0.1},
        {"eta": "adaptive", "gamma": 0.1, "horizon": "doubling"},
        {"eta": "adaptive", "gamma": 0.1, "share": 0.001},
    )
    return [
        cell
        for some in switches
        for learner in ("sv-ops", "s-ops")
        for cell in runs(
            SMALL, {"name": learner, **some}, episodes, seeds, adversaries=ADVERSARIES, presets=SHARPEST, delta=0.01
        )
    ]


def deterministic(episodes: int, seeds: int) -> list[CellSpec]:
    """Five worlds x three adversaries x seeds x presets x SV-OPS and S-OPS, audited. Under the preset sharpest also,
    with a quarter of the seeds, the worlds of which more is known, and S-OPS with a log.
    """
    plain, known = (
        [(world, learner) for world in worlds for learner in ("sv-ops", "s-ops")] for worlds in (CATALOGUE, INFORMED)
    )
    return [
        *_audited(plain, episodes, seeds, PRESETS),
        *_audited([*known, (EQUAL, broken.LoggedRun)], episodes, max(1, seeds // 4), SHARPEST),
    ]


def _audited(pairs: Sequence[tuple[Named, Named]], episodes: int, seeds: int, presets: Sequence[str]) -> list[CellSpec]:
    return [
        cell
        for world, learner in pairs
        for cell in runs(
            world, learner, episodes, seeds, adversaries=ADVERSARIES, presets=presets, delta=0.01, audit=True
        )
    ]


def coverage(level: str, episodes: int, seeds: int) -> list[CellSpec]:
    """Count how often the sets of the preset sharpest lose the truth; they spend much of their budget.

    S-OPS with costs of an episode that are independent, and all equal; a quarter of the seeds for sets with other
    shares of delta: those of SV-OPS, of a world without uncertain transitions, of balls. The level full has both
    budgets.
    """
    few = seeds // 4
    wanted: list[tuple[Named, str, int, int]] = [
        (SMALL, "s-ops", episodes, seeds),
        (EQUAL, "s-ops", episodes, seeds if level == "full" else few),
        (SMALL, "sv-ops", episodes, few),
        (made.two_actions, "s-ops", episodes, few),
        (made.fan, "s-ops", episodes // 3, few),
    ]
    return [
        cell
        for world, learner, T, count in wanted
        for delta in (COVERED if level == "full" else COVERED[:1])
        for cell in runs(world, learner, T, count, adversaries=("drifting",), presets=SHARPEST, delta=delta)
    ]


def _both_learners(episodes: int, seeds: int, *, estimator: bool = False) -> list[CellSpec]:
    """Half of the seeds for SV-OPS, half for S-OPS, with the tight radii, which leave the least room."""
    first, second = range(seeds // 2), range(seeds // 2, seeds)
    return [
        cell
        for learner, some in (("sv-ops", first), ("s-ops", second))
        for cell in runs(SMALL, learner, episodes, some, adversaries=("drifting",), estimator=estimator)
    ]


def _pair(horizons: Sequence[int], margins: Sequence[float], seeds: int) -> list[CellSpec]:
    return [
        cell
        for T in horizons
        for rho in margins
        for world in ("lower-bound-1", "lower-bound-2")
        for cell in runs({"name": world, "episodes": T, "rho": rho}, "s-ops", T, seeds)
    ]


def controls() -> dict[str, list[CellSpec]]:
    """The runs of the controls, by the names of `controls.CONTROLS`; the same at every level: they fail soon."""
    scale, noisy, drifting = {"confidence_scale": 0.1}, ("noisy",), ("drifting",)
    return {
        "literal-sigma": runs(made.opposed, broken.LiteralSigma, 1500, 2),
        "layer-0-skipped": runs(made.front_loaded, broken.SkipsFirstLayer, 1100, 2),
        "index-drawn-once": runs(made.needle, broken.IndexOnce, 900, 40),
        "per-step-mixing": runs(made.turncoat, broken.PerStep, 1000, 1),
        "narrow-radii": runs(SMALL, {"name": "sv-ops", **scale}, 500, 16, adversaries=drifting),
        "narrow-radii-mixing": runs(made.two_actions, {"name": "s-ops", **scale}, 1000, 16, delta=0.01),
        "wrong-counts": runs(SMALL, broken.WrongCounts, 400, 2),
        "unconstrained": runs(made.two_actions, "uob-reps", (2**10, 2**12, 2**14), 2),
        "explore-then-commit": runs(made.two_actions, broken.Commits, (2**7, 2**8, 2**9), 2, adversaries=("turning",)),
        "wrong-box": runs(made.gate, broken.WrongBox, 200, 1),
        "backward-steps": runs(made.two_actions, broken.MovesWrongly, 1000, 1, adversaries=noisy),
        "rising-rate": runs("lower-bound-2", broken.RisingRate, 1000, 1),
        "hundred-delta": runs(SMALL, broken.HundredDelta, 300, 24, adversaries=drifting, presets=SHARPEST, delta=0.004),
        "false-ties": runs(SMALL, broken.FalseTies, 300, 4, presets=SHARPEST),
        "false-baseline": runs(SMALL, broken.ToldTooLittle, 300, 4, presets=PRESETS),
        "selected-log": runs(EQUAL, broken.KeepsCheap, 100, 3, presets=SHARPEST),
        "counts-all": runs(made.chorus, broken.CountsAll, 300, 12, presets=SHARPEST),
        "timid-estimator": runs(made.two_actions, broken.TimidEstimator, 400, 4, adversaries=noisy, estimator=True),
        "dull-estimator": runs(made.two_actions, broken.DullEstimator, 400, 4, adversaries=noisy, estimator=True),
        "frozen-boxes": runs(
            made.gate, {"name": mutants.MutantSVOPS, "transition_log": 1e6}, (2**8, 2**10), 3, estimator=True
        ),
        "false-reason": runs(EQUAL, broken.FalselyDeclared, 400, 4, presets=SHARPEST),
        "false-steps": runs(made.chorus, broken.ClaimsSteps, 400, 8, presets=SHARPEST),
        "narrow-calibration": runs(SMALL, {"name": CalibratedSOPS, **scale}, 1_000, 16, presets=SHARPEST, delta=0.01),
        "narrow-bounds": runs(EQUAL, NarrowBounds, 300, 8, adversaries=drifting, presets=SHARPEST, delta=0.01),
        "bare-pool": runs(SMALL, broken.BarePool, 300, 2, presets=SHARPEST),
        "cheap-certificate": runs(made.chorus, broken.CountsCheap, 400, 4, presets=SHARPEST),
        "no-radius": runs(EQUAL, {"name": broken.SpendsAll, "rule": "ceiling"}, 1_000, 8, presets=SHARPEST),
        **_imprecise(),
    }


def _imprecise() -> dict[str, list[CellSpec]]:
    """The controls that are wrong by little, where one run is enough."""
    logs = dict.fromkeys(("cost_log", "transition_log", "certificate_log", "ball_log"), 0.95)
    return {
        "short-logs": runs(SMALL, {"name": mutants.MutantSOPS, **logs}, 150, 1, presets=PRESETS, twin=True),
        "squares-per-step": runs(EQUAL, broken.SquaresPerStep, 200, 1, presets=SHARPEST, twin=True),
        "late-lambda": runs(made.two_actions, broken.LateMixing, 100, 1, presets=SHARPEST, twin=True),
        "low-ceiling": runs(SMALL, {"name": mutants.MutantSOPS, "ceiling": 0.95}, 50, 1, twin=True),
        "biased-coin": runs(SMALL, {"name": mutants.SteppedSOPS, "coin": 0.8}, 300, 4),
        "low-anchor": runs(SMALL, broken.LowAnchor, 100, 1, presets=SHARPEST, twin=True),
        "idle-coin": runs(SMALL, broken.PlaysOwn, 100, 1, twin=True),
        "small-gamma": runs(SMALL, {"name": mutants.MutantSVOPS, "gamma": 0.95}, 50, 1, twin=True),
        "short-search": runs(made.wide, {"name": mutants.MutantCVOPS, "search_radius": 0.95}, SETTLED, 1, twin=True),
    }


# --------------------------------------------------------------------------------------------------------------------
# The runs of a verification: ordinary cells of an experiment, in which the proofs are watched.
#
# Every adversary has a one-word name here, and depends on the world's own loss and on the length of the run.


Named = str | Callable[..., Any] | ComponentSpec
"""A world or a learner: by its name, as a function or class, or as a part with its parameters."""
MARKS = 40
"""Checkpoints of a run: fewer than in a sweep, because many runs are stored"""
DELTA = 0.05
PERIODS = 8
"""Periods of a switching or drifting adversary within a run"""
PURSUIT_RATE = 0.1

ADVERSARY_SPECS: Mapping[str, Callable[[FloatArray, int], ComponentSpec]] = {
    "fixed": lambda loss, T: {"name": "own"},
    "switching": lambda loss, T: _switching(max(2, T // PERIODS), loss, 1.0 - loss, loss),
    "drifting": lambda loss, T: {"name": "drifting", "period": max(2, T // PERIODS)},
    "noisy": lambda loss, T: {"name": "iid", "means": loss.tolist()},
    "turning": lambda loss, T: _switching(max(1, T // 4), loss, *[1.0 - loss] * 3),
    "pursuit": lambda loss, T: {"name": "pursuit", "rate": PURSUIT_RATE},
}


def runs(
    world: Named,
    learner: Named,
    episodes: int | Iterable[int],
    seeds: int | Iterable[int],
    *,
    adversaries: Iterable[str] = ("fixed",),
    presets: Iterable[str] = ("sharp",),
    delta: float = DELTA,
    audit: bool = False,
    estimator: bool = False,
    twin: bool = False,
) -> list[CellSpec]:
    """The runs of all combinations, by length, adversary, preset, seed; `seeds` is how many, or which. `audit`,
    `estimator` and `twin` say how closely they are watched; the last needs a `Recomputed` learner.
    """
    place, own = _given(world), _given(learner)
    closely = {"audit": audit, "estimator": estimator, **({"twin": True} if twin else {})}
    return [
        _cell(place, adversary, {"name": own["name"], "preset": preset, **own}, T, seed, delta, closely)
        for T in ([episodes] if isinstance(episodes, int) else episodes)
        for adversary in adversaries
        for preset in presets
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
    ]


def _given(thing: Named) -> ComponentSpec:
    part = thing if isinstance(thing, dict) else {"name": thing}
    return {**part, "name": part["name"] if isinstance(part["name"], str) else home_of(part["name"])}


def _cell(
    world: ComponentSpec,
    adversary: str,
    learner: ComponentSpec,
    T: int,
    seed: int,
    delta: float,
    closely: Mapping[str, bool],
) -> CellSpec:
    told = {**learner, "delta": delta, **{name: True for name, chosen in closely.items() if chosen}}
    labels = {"world": label_of(world), "learner": label_of(told, quiet=("preset",))}
    return CellSpec(
        world=_world(canonical(world))[0],
        adversary=_adversary(adversary, canonical(world), T),
        learner=_learner(canonical(learner)),
        episodes=T,
        delta=delta,
        seed=seed,
        root_seed=None,
        label={**labels, "adversary": adversary},
        marks=MARKS,
        watch={**closely, "notes": True},
    )


@cache
def _world(given: str) -> tuple[ComponentSpec, FloatArray]:
    """A complete part, and the world's own loss (num_rows,)."""
    part = components.complete_world(json.loads(given), 0, Path())
    loss = components.build_world(part, Path()).loss
    assert loss is not None
    return part, loss


@cache
def _learner(given: str) -> ComponentSpec:
    return components.complete_learner(json.loads(given))


@cache
def _adversary(name: str, world: str, T: int) -> ComponentSpec:
    if name not in ADVERSARY_SPECS:
        raise InvalidInput(f"there is no adversary {name!r}{did_you_mean(name, ADVERSARY_SPECS)}")
    return components.complete_adversary(ADVERSARY_SPECS[name](_world(world)[1], T), T)


def _switching(period: int, *patterns: FloatArray) -> ComponentSpec:
    return {"name": "switching", "period": period, "patterns": [pattern.tolist() for pattern in patterns]}
