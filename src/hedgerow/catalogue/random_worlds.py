"""Random worlds of two papers on safe learners, drawn once and stored.

The distributions are those of the public code of T. Kitamura and others, *A Policy Gradient Primal-Dual Algorithm for
Constrained MDPs with Uniform PAC Guarantees*, 2024 (random-uniform-pac), and *Provably Efficient RL under
Episode-Wise Safety in Constrained MDPs with Linear Function Approximation*, 2025 (the other two). That code draws
with JAX; the draw in
`data/random_worlds.npz` is ours, by `tools/draw_random_worlds.py`, which has the distributions. So these are worlds
*like* those of the papers, not the same ones.

| world               | S, A, H     | transitions of a step        | rewards, utilities      | utility at least   |
|---------------------|-------------|------------------------------|-------------------------|--------------------|
| random-uniform-pac  | 30, 3, 10   | Dirichlet(.1)                | 0 or 1; u = 1 - r       | .5 of the largest  |
| random-episode-wise | 5, 3, 4     | Dirichlet(.1)                | 0 or 1, 1 with prob. .1 | .6 of the largest  |
| linear-cmdp         | 100, 3, 4   | features @ measures, d = 5   | features @ weights      | .68 of the largest |

Losses are 1 - reward and costs 1 - utility: U of expected utility or more means H - U of expected cost or less. All
start in state 0, where the sources draw the start state once; their states are all alike. Each state may follow each
(full support). The budget of the baseline is half way between the least possible cost and the threshold.

random-episode-wise has ten worlds, `number` 0 to 9. Rewards and utilities are independent there, so in some of them the
constraint is slack: these are controls. The linear world is the first draw in which it is not.

    >>> random_episode_wise(number=3).cmdp.layout
    Layout(layers=(1, 5, 5, 5, 1), actions=3, full support)
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import files
from hedgerow.catalogue.entries import entry
from hedgerow.catalogue.world import Ingredients, Scale
from hedgerow.checks import FloatArray, whole_number
from hedgerow.importers.unroll import unroll

FILE, KIND = "random_worlds.npz", "random worlds"
MASS = 2**16
"""Probabilities and weights are multiples of 1 / MASS."""
UNIT = 2**20
"""Largest utilities are multiples of 1 / UNIT."""
WORLDS = 10


@entry(
    "random-uniform-pac",
    "a random world of 30 states whose transitions change from step to step; its utility is what is no reward",
    source="Kitamura et al. 2024, our draw",
)
def random_uniform_pac() -> Ingredients:
    stored = arrays()
    reward = stored["pac_reward"].astype(float)
    return _ingredients(stored["pac_moves"] / MASS, reward, 1.0 - reward, 0.5, stored["pac_best"])


@entry(
    "random-episode-wise",
    "ten random worlds of 5 states with sparse rewards and utilities, by number",
    frozen=({}, *({"number": number} for number in range(1, WORLDS))),
    source="Kitamura et al. 2025, our draw",
)
def random_episode_wise(*, number: int = 0) -> Ingredients:
    i = whole_number("random-episode-wise: number", number, 0, WORLDS - 1)
    moves, reward, utility, best = (arrays()[f"episode_{name}"][i] for name in ("moves", "reward", "utility", "best"))
    return _ingredients(moves / MASS, reward.astype(float), utility.astype(float), 0.6, best)


@entry(
    "linear-cmdp",
    "a random world of 100 states with transitions, rewards and utilities linear in five features",
    source="Kitamura et al. 2025, our draw",
)
def linear_cmdp() -> Ingredients:
    stored = arrays()
    # Whole numbers as long as possible: sums are exact in any order, and so the same on every machine.
    features, measures, weights = (
        stored[f"linear_{name}"].astype(np.int64) for name in ("features", "measures", "weights")
    )
    moves = np.einsum("sad,hdt->hsat", features, measures) / MASS**2
    reward, utility = np.einsum("sad,ihd->ihsa", features, weights) / MASS**2
    return _ingredients(moves, reward, utility, 0.68, stored["linear_best"])


@cache
def arrays() -> dict[str, NDArray[Any]]:
    """The arrays of the stored draw, by name."""
    blob = resources.files("hedgerow.catalogue").joinpath("data", FILE).read_bytes()
    return files.unpack(blob, KIND, FILE).arrays


def _ingredients(
    transitions: FloatArray, reward: FloatArray, utility: FloatArray, share: float, best: NDArray[Any]
) -> Ingredients:
    """Tables over (H, S, A); the expected utility must be `share` of the largest one, best / UNIT."""
    horizon, largest = len(reward), int(best) / UNIT
    world = unroll(
        transitions,
        horizon,
        0,
        loss=1.0 - reward,
        costs=(1.0 - utility)[None],
        cost_kind="deterministic",
        thresholds=[horizon - share * largest],
        constraint_names=["missing utility"],
        state_names=[f"state {s}" for s in range(transitions.shape[1])],
        action_names=[f"action {a}" for a in range(transitions.shape[2])],
        support="full",
    )
    assert world.loss is not None  # one was given
    scale = Scale("reward", offset=float(horizon), factor=-1.0)
    budget = horizon - 0.5 * (1.0 + share) * largest
    return Ingredients(world.cmdp, world.loss, scale, np.array([budget]))
