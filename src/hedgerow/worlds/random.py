"""Random layered worlds in which the cheap actions are the costly ones, always strictly feasible.

Numbers are integers over powers of two, made of the raw 64-bit words of PCG64 (whose stream numpy keeps fixed). The
same seed gives the same bits everywhere. Transitions are multiples of 2^-20 that sum to exactly 1 in each row and are
skewed (a row favours a few successors); losses and Bernoulli mean costs are multiples of 2^-10. Each row has a hidden
level z in [0, 1]; loss = 3/4 z + noise and cost_i = 1/2 (1 - z) + noise: a small loss has large costs.

Thresholds: let c be the costs of the policy whose largest cost is the smallest possible and u those of the
unconstrained optimum. Then

    alpha_i = c_i + max(least slack, (1 - tightness) (u_i - c_i)),   rounded up to a multiple of 2^-10.

The least slack exceeds 0.05 and costs are at most 7/8 per step, so alpha_i < L and the Slater margin is at least
`MARGIN` = 0.05 for every choice of parameters. The larger `tightness` in [0, 1], the harder the constraints bind; at 0
the unconstrained optimum is feasible. The budget of the baseline is half way between c and alpha.

    >>> cmdp = random_layered(layers=(1, 3, 1), actions=2, constraints=1).cmdp
    >>> bool((cmdp.transitions * 2**20 % 1 == 0).all()), bool((cmdp.thresholds * 2**10 % 1 == 0).all())
    (True, True)
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.random import PCG64
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, real_number, whole_number
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction, evaluate
from hedgerow.planning import offline
from hedgerow.storage import datafile
from hedgerow.worlds.building import world_over_steps
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import WorldDefinition

MARGIN = 0.05
"""Every world has at least this Slater margin."""
UNIT = 2**10
"""Losses, mean costs and thresholds are multiples of 1 / UNIT."""
MASS = 2**20
"""Transition probabilities are multiples of 1 / MASS."""
LEAST_SLACK = 52 / UNIT
ROUNDING = 2.0**-20
"""Solver noise that must not lift a threshold to the next multiple; far below LEAST_SLACK - MARGIN."""

FIVES, TENS = (1, *[5] * 9, 1), (1, *[10] * 9, 1)


@entry(
    "random-layered",
    "random layers of states: small losses have large costs; integer-built numbers, Slater margin >= 0.05",
    source="ours",
    adversaries=("own", "iid", "switching", "random-walk", "cycle", "betrayal", "tempting"),
    frozen=(
        {},
        {"layers": (1, 3, 3, 1), "actions": 3, "constraints": 1},
        {"layers": FIVES},
        {"layers": TENS, "actions": 5},
    ),
)
def random_layered(
    *,
    layers: tuple[int, ...] = (1, 5, 5, 5, 1),
    actions: int = 4,
    constraints: int = 2,
    seed: int = 0,
    tightness: float = 0.5,
) -> WorldDefinition:
    real_number("random-layered: tightness", tightness, 0.0, 1.0)
    layout = Layout(layers, actions)
    words = PCG64(seed)
    transitions = _transitions(layout, words)
    loss, costs = _loss_and_costs(layout, constraints, words)
    cmdp = CMDP(layout, transitions, BernoulliCosts(costs), np.full(constraints, float(layout.steps)))
    thresholds = _thresholds(cmdp, loss, tightness)
    budget = 0.5 * (thresholds + offline.slater(cmdp).costs)
    return WorldDefinition(cmdp.with_thresholds(thresholds), loss, baseline_thresholds=budget)


def _bits(words: PCG64, count: int) -> IntArray:
    """`count` integers, uniform on 0..UNIT - 1: the ten highest bits of each word, which are its best."""
    return (words.random_raw(count) >> np.uint64(54)).astype(np.int64)


def _transitions(layout: Layout, words: PCG64) -> FloatArray:
    """(triples,): each row shares MASS among its n successors, one each and the rest in proportion to z^4."""
    z = _bits(words, layout.num_triples)
    weight = UNIT + (z**4 >> 20)  # 2^10 .. 2^20 + 2^10: products with MASS stay far inside 64 bits
    first = layout.row_start[:-1]
    total, n = np.add.reduceat(weight, first), np.diff(layout.row_start)
    share = 1 + (MASS - n)[layout.row_of_triple] * weight // total[layout.row_of_triple]
    share[first] += MASS - np.add.reduceat(share, first)  # what the divisions left over, fewer than n units
    return np.asarray(share / MASS)


def _loss_and_costs(layout: Layout, m: int, words: PCG64) -> tuple[FloatArray, FloatArray]:
    """Loss (rows,) and mean costs (m, rows) of opposite tendency."""
    z = _bits(words, layout.num_rows)
    loss = (3 * z + _bits(words, layout.num_rows)) // 4
    noise = _bits(words, m * layout.num_rows).reshape(m, layout.num_rows)
    costs = (4 * (UNIT - 1 - z) + 3 * noise) // 8
    return loss / UNIT, costs / UNIT


def _thresholds(cmdp: CMDP, loss: FloatArray, tightness: float) -> FloatArray:
    """(m,): as in the module's docstring; `cmdp` has equal thresholds, so its Slater point is the min-max policy."""
    c = offline.slater(cmdp).costs
    u = evaluate(cmdp, backward_induction(cmdp.layout, cmdp.transitions, loss).policy).costs
    alpha = c + np.maximum(LEAST_SLACK, (1.0 - tightness) * (u - c))
    return np.asarray(np.ceil((alpha - ROUNDING) * UNIT) / UNIT)


# Random worlds of two papers on safe learners, drawn once and stored --------------------------------------------------
#
# The distributions are those of the public code of T. Kitamura and others, *A Policy Gradient Primal-Dual Algorithm for
# Constrained MDPs with Uniform PAC Guarantees*, 2024 (random-uniform-pac), and *Provably Efficient RL under
# Episode-Wise Safety in Constrained MDPs with Linear Function Approximation*, 2025 (the other two). That code draws
# with JAX; the draw in `data/random_worlds.npz` is ours, by `tools/draw_random_worlds.py`, which has the distributions.
# So these are worlds *like* those of the papers, not the same ones.
#
# | world               | S, A, H     | transitions of a step        | rewards, utilities      | utility at least   |
# |---------------------|-------------|------------------------------|-------------------------|--------------------|
# | random-uniform-pac  | 30, 3, 10   | Dirichlet(.1)                | 0 or 1; u = 1 - r       | .5 of the largest  |
# | random-episode-wise | 5, 3, 4     | Dirichlet(.1)                | 0 or 1, 1 with prob. .1 | .6 of the largest  |
# | linear-cmdp         | 100, 3, 4   | features @ measures, d = 5   | features @ weights      | .68 of the largest |
#
# Losses are 1 - reward and costs 1 - utility: U of expected utility or more means H - U of expected cost or less. All
# start in state 0, where the sources draw the start state once; their states are all alike. Each state may follow each
# (full support). The budget of the baseline is half way between the least possible cost and the threshold.
#
# random-episode-wise has ten worlds, `number` 0 to 9. Rewards and utilities are independent there, so in some of them
# the constraint is slack. The linear world is the first draw in which it is not.


FILE, KIND = "random_worlds.npz", "random worlds"
RANDOM_WORLDS_MASS = 2**16
"""Probabilities and weights are multiples of 1 / MASS."""
RANDOM_WORLDS_UNIT = 2**20
"""Largest utilities are multiples of 1 / UNIT."""
WORLDS = 10


@entry(
    "random-uniform-pac",
    "a random world that changes: 30 states, other transitions in every step; its utility is what is no reward",
    source="Kitamura et al. 2024, our draw",
)
def random_uniform_pac() -> WorldDefinition:
    stored = arrays()
    reward = stored["pac_reward"].astype(float)
    return _ingredients(stored["pac_moves"] / RANDOM_WORLDS_MASS, reward, 1.0 - reward, 0.5, stored["pac_best"])


@entry(
    "random-episode-wise",
    "ten random worlds of 5 states: sparse rewards and utilities; chosen by number",
    frozen=({}, *({"number": number} for number in range(1, WORLDS))),
    source="Kitamura et al. 2025, our draw",
)
def random_episode_wise(*, number: int = 0) -> WorldDefinition:
    i = whole_number("random-episode-wise: number", number, 0, WORLDS - 1)
    moves, reward, utility, best = (arrays()[f"episode_{name}"][i] for name in ("moves", "reward", "utility", "best"))
    return _ingredients(moves / RANDOM_WORLDS_MASS, reward.astype(float), utility.astype(float), 0.6, best)


@entry(
    "linear-cmdp",
    "a random linear world: 100 states; transitions, rewards and utilities are linear in five features",
    source="Kitamura et al. 2025, our draw",
)
def linear_cmdp() -> WorldDefinition:
    stored = arrays()
    # Whole numbers as long as possible: sums are exact in any order, and so the same on every machine.
    features, measures, weights = (
        stored[f"linear_{name}"].astype(np.int64) for name in ("features", "measures", "weights")
    )
    moves = np.einsum("sad,hdt->hsat", features, measures) / RANDOM_WORLDS_MASS**2
    reward, utility = np.einsum("sad,ihd->ihsa", features, weights) / RANDOM_WORLDS_MASS**2
    return _ingredients(moves, reward, utility, 0.68, stored["linear_best"])


@cache
def arrays() -> dict[str, NDArray[Any]]:
    """The arrays of the stored draw, by name."""
    blob = resources.files("hedgerow.worlds").joinpath("data", FILE).read_bytes()
    return datafile.unpack(blob, KIND, FILE).arrays


def _ingredients(
    transitions: FloatArray, reward: FloatArray, utility: FloatArray, share: float, best: NDArray[Any]
) -> WorldDefinition:
    """Tables over (H, S, A); the expected utility must be `share` of the largest one, best / UNIT."""
    horizon, largest = len(reward), int(best) / RANDOM_WORLDS_UNIT
    threshold, budget = horizon - share * largest, horizon - 0.5 * (1.0 + share) * largest
    return world_over_steps(
        transitions,
        horizon,
        0,
        {"missing utility": (threshold, budget)},
        loss=1.0 - reward,
        costs=(1.0 - utility)[None],
        state_names=[f"state {s}" for s in range(transitions.shape[1])],
        action_names=[f"action {a}" for a in range(transitions.shape[2])],
        support="full",
    )
