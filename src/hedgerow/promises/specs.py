"""A run as data: which learner in which world against which adversary, how long, with which seed and switches.

Equal specs give equal runs, bit for bit, so that the hash of a spec names its result: a verification that was
interrupted goes on where it stopped, and promises that need the same runs share them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hedgerow.adversaries import losses
from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.base import MirrorLearner as Learner
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.promises.worlds import Ground, ground
from hedgerow.registry import learners

PERIODS = 8
"""How often a switching or drifting adversary comes round within a run."""
PURSUIT_RATE = 0.1
Items = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class RunSpec:
    """One run. `control` names what is broken in it, if anything (`controls/`)."""

    group: str
    world: str
    learner: str
    episodes: int
    seed: int = 0
    adversary: str = "fixed"
    delta: float = 0.05
    preset: str = "sharp"
    world_params: Items = ()
    switches: Items = ()
    audit: bool = False
    estimator: bool = False
    shrink: float = 0.0
    """S-OPS: how much of the baseline's margin is given away, so that Delta = (1 - shrink) rho"""
    control: str = ""

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def digest(self) -> str:
        """Names the run; the group is only a label and does not matter."""
        data = {key: value for key, value in self.as_data().items() if key != "group"}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        broken = f", broken: {self.control}" if self.control else ""
        return f"{self.group}: {self.learner} on {self.world}, {self.adversary}, T = {self.episodes:,}{broken}"


def spread(
    spec: RunSpec,
    seeds: Iterable[int],
    *,
    episodes: Iterable[int] | None = None,
    adversaries: Iterable[str] | None = None,
    presets: Iterable[str] | None = None,
) -> list[RunSpec]:
    """All combinations of what is given; the rest as in `spec`."""
    return [
        replace(spec, seed=seed, episodes=T, adversary=adversary, preset=preset)
        for T in (episodes or [spec.episodes])
        for adversary in (adversaries or [spec.adversary])
        for preset in (presets or [spec.preset])
        for seed in seeds
    ]


def make_learner(spec: RunSpec, where: Ground, learner: type[Learner] | None = None) -> Learner:
    """The learner of a spec, or another class in its place (controls)."""
    switches: dict[str, Any] = dict(spec.switches)
    chosen: Any = learner or learners.find(spec.learner)
    if issubclass(chosen, SOPS):
        margins = where.cmdp.thresholds - where.safest_costs
        switches |= {"baseline": where.safest, "baseline_costs": where.safest_costs + spec.shrink * margins}
    made: Learner = chosen(where.cmdp.view(), spec.episodes, spec.delta, spec.preset, seed=spec.seed, **switches)
    return made


def make_losses(spec: RunSpec, where: Ground) -> Any:
    """The adversary of a spec."""
    seed, period, quarter = spec.seed, max(2, spec.episodes // PERIODS), max(1, spec.episodes // 4)
    made: Mapping[str, Any] = {
        "fixed": lambda: losses.Fixed(where.loss),
        "switching": lambda: losses.Switching(period, np.array([where.loss, 1.0 - where.loss, where.loss]), seed),
        "complementary": lambda: losses.Switching(period, 2, seed),
        "drifting": lambda: losses.Drifting(period, seed),
        "noisy": lambda: losses.IID(seed, where.loss),
        "turning": lambda: losses.Switching(quarter, np.array([where.loss, *[1.0 - where.loss] * 3]), seed),
        "pursuit": lambda: losses.Pursuit(PURSUIT_RATE),
    }
    if spec.adversary not in made:
        raise InvalidInput(f"there is no adversary {spec.adversary!r}; known: {', '.join(made)}")
    return made[spec.adversary]()


def ground_of(spec: RunSpec) -> Ground:
    return ground(spec.world, spec.world_params)
