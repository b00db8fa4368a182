"""The pair of instances behind the paper's lower bound: safe on one means regret of order sqrt(T) / rho on the other.

One step, actions a_1 and a_2, Bernoulli costs, threshold 1/2, rewards (1/2, 0), that is losses (1/2, 1). Mean costs:

    instance 1   (1/2 + eps, 1/2 - rho)        instance 2   (1/2, 1/2 - rho)        eps = sqrt(2 / T) / 4 <= rho

Closed form: with q the probability of a_1 the reward is q / 2. On instance 2 every q is safe, so the optimum is 1/2; on
instance 1 the constraint q (eps + rho) <= rho gives q = rho / (eps + rho). The Slater margin is rho on both (play a_2).

    >>> lower_bound_1(episodes=8, rho=0.25).cmdp.mean_costs.tolist()
    [[0.625, 0.25]]
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.checks import real_number, whole_number
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Baseline, Golden, Scale, WorldDefinition

SOURCE = "Stradi et al. 2025"
ONE_STEP = ("own", "iid", "switching", "cycle", "betrayal", "hidden", "tempting")
LOSS = (0.5, 1.0)
THRESHOLD = 0.5


@entry(
    "lower-bound-1",
    "one step, two actions: the rewarding action costs eps too much (T sets eps)",
    source=SOURCE,
    adversaries=ONE_STEP,
)
def lower_bound_1(*, episodes: int = 16_000, rho: float = 0.25) -> WorldDefinition:
    return _instance(0.5 + _gap("lower-bound-1", episodes, rho), rho)


@entry(
    "lower-bound-2",
    "one step, two actions: the rewarding action is exactly safe",
    source=SOURCE,
    adversaries=ONE_STEP,
)
def lower_bound_2(*, episodes: int = 16_000, rho: float = 0.25) -> WorldDefinition:
    _gap("lower-bound-2", episodes, rho)  # both worlds of the pair accept the same parameters
    return _instance(0.5, rho)


def closed_form(name: str, episodes: int, rho: float) -> Golden:
    """The values above, as losses."""
    q = rho / (_gap(name, episodes, rho) + rho) if name == "lower-bound-1" else 1.0
    return Golden(optimum=1.0 - q / 2, unconstrained=0.5, margin=rho, baseline=1.0)


def _gap(name: str, episodes: int, rho: float) -> float:
    """eps for the horizon T = episodes, checked against rho."""
    eps = 0.25 * math.sqrt(2.0 / whole_number(f"{name}: episodes", episodes, 1))
    if real_number(f"{name}: rho", rho, 0.0, 0.5) < eps:
        raise InvalidInput(
            f"{name}: rho is {rho:g}, below eps = sqrt(2 / episodes) / 4 = {eps:.4g}; the bound needs rho >= eps: "
            "raise rho or take more episodes"
        )
    return eps


def _instance(cost_of_reward: float, rho: float) -> WorldDefinition:
    costs = BernoulliCosts(np.array([[cost_of_reward, 0.5 - rho]]))
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [THRESHOLD], action_labels=("a_1", "a_2"))
    safe = Baseline(np.array([0.0, 1.0]), np.array([0.5 - rho]))
    return WorldDefinition(cmdp, np.array(LOSS), Scale("reward", offset=1.0, factor=-1.0), baseline=safe)
