"""Worlds whose optima have closed forms: the pair behind the paper's lower bound, worlds with a Slater margin of your
choice, and a combination lock. All but the pair are ours.

**lower-bound-1, lower-bound-2**: who is safe on one has a regret of order sqrt(T) / rho on the other. One step, actions
a_1 and a_2, Bernoulli costs, threshold 1/2, rewards (1/2, 0), that is losses (1/2, 1). Mean costs:

    instance 1   (1/2 + eps, 1/2 - rho)        instance 2   (1/2, 1/2 - rho)        eps = sqrt(2 / T) / 4 <= rho

With q the probability of a_1 the reward is q / 2. On instance 2 every q is safe, so the optimum is 1/2; on instance 1
the constraint q (eps + rho) <= rho gives q = rho / (eps + rho). The Slater margin is rho on both (play a_2).

**slater-chain**: one state per layer. The safe action has loss 1 and costs c = (alpha - rho) / L, the risky one has
loss 0 and costs 1. Always safe costs alpha - rho, so the Slater margin is exactly rho. Each unit of risky play costs
1 - c more than safe play: with all constraints alike the least loss is

    L - rho / (1 - c).

If they are `rotated`, a risky action of layer k costs 1 for constraint k mod m and c for the others (m <= L). Then each
constraint lets that much risky play through in its own n_i layers, and the least loss is

    L - sum_i min(rho / (1 - c), n_i).

**slater-needle**: the same with one constraint and A actions, of which one is safe; which one differs from layer to
layer and comes from `seed`. A learner that has no baseline must find it, and each try at another action costs 1.

**lock**: L layers, and a right action in each, which comes from `seed`. From `on`, the right action stays on with
probability .9, and any other one leads to `off`, from where no way leads back in this episode. The right action costs
1 wherever it is played. The reward is 1 if the last layer ends on. The budget is L - 1. A wrong first action costs
nothing and a half-opened lock is worth nothing, so the best policy is a coin between all right and all wrong:

    .9^L min(1, (L - 1) / (1 + .9 + ... + .9^(L-1))).

The sum is L - 1 or less from L = 6 on: the constraint of longer locks is slack.

Costs are coins with these means, but for the lock. The baseline of the chain and the needle is the best policy that
keeps half of the margin, that of the lock the best one at half of the budget.

    >>> lower_bound_1(episodes=8, rho=0.25).cmdp.mean_costs.tolist()
    [[0.625, 0.25]]
    >>> chain = slater_chain(rho=0.5)
    >>> chain.cmdp.mean_costs[0, :2].tolist(), chain.cmdp.thresholds.tolist()
    ([0.125, 1.0], [1.0])
    >>> round(chain_optimum(rho=0.5, steps=4, alpha=1.0), 6)
    3.428571
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import PCG64

from hedgerow.checks import FloatArray, IntArray, real_number, whole_number
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.worlds.building import world_over_steps
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Baseline, Golden, Scale, WorldDefinition

PAPER = "Stradi et al. 2025"
ONE_STEP = ("own", "iid", "switching", "cycle", "betrayal", "hidden", "tempting")
PAIR_LOSS, PAIR_THRESHOLD = (0.5, 1.0), 0.5
OURS = "ours"
ALPHA = 1.0
MOST_CONSTRAINTS = 1_000
STAYS_ON = 0.9
MOST_ACTIONS = 2**16
"""Actions are drawn from the highest 48 bits of a word by a remainder, whose bias is then below 2^-32."""


@entry(
    "lower-bound-1",
    "the better action costs eps too much: one step, two actions; T sets eps",
    source=PAPER,
    adversaries=ONE_STEP,
)
def lower_bound_1(*, episodes: int = 16_000, rho: float = 0.25) -> WorldDefinition:
    return _pair_instance(0.5 + _gap("lower-bound-1", episodes, rho), rho)


@entry(
    "lower-bound-2",
    "the better action is exactly safe: one step, two actions",
    source=PAPER,
    adversaries=ONE_STEP,
)
def lower_bound_2(*, episodes: int = 16_000, rho: float = 0.25) -> WorldDefinition:
    _gap("lower-bound-2", episodes, rho)  # both worlds of the pair accept the same parameters
    return _pair_instance(0.5, rho)


def pair_optimum(name: str, episodes: int, rho: float) -> Golden:
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


def _pair_instance(cost_of_reward: float, rho: float) -> WorldDefinition:
    costs = BernoulliCosts(np.array([[cost_of_reward, 0.5 - rho]]))
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [PAIR_THRESHOLD], action_labels=("a_1", "a_2"))
    safe = Baseline(np.array([0.0, 1.0]), np.array([0.5 - rho]))
    return WorldDefinition(cmdp, np.array(PAIR_LOSS), Scale("reward", offset=1.0, factor=-1.0), baseline=safe)


# Chains ---------------------------------------------------------------------------------------------------------------


@entry(
    "slater-chain",
    "a chain of Slater margin rho: one state per layer; safe actions are the loss, risky ones cost",
    frozen=(
        {},
        {"rho": 0.5},
        {"rho": 0.01},
        {"steps": 4, "constraints": 3},
        {"steps": 6, "constraints": 3, "rotated": True},
    ),
    published={"unconstrained": 0.0, "optimum": 3.870968},
    source=OURS,
)
def slater_chain(
    *, rho: float = 0.1, steps: int = 4, constraints: int = 1, alpha: float = ALPHA, rotated: bool = False
) -> WorldDefinition:
    _check_margin("slater-chain", rho, steps, alpha)
    whole_number("slater-chain: constraints", constraints, 1, steps if rotated else MOST_CONSTRAINTS)
    safe = (alpha - rho) / steps
    costs = np.full((constraints, steps, 2), safe)
    for k in range(steps):
        costs[k % constraints if rotated else slice(None), k, 1] = 1.0
    return _chain(costs, np.tile([1.0, 0.0], (steps, 1)), alpha, rho, ("safe", "risky"))


@entry(
    "slater-needle",
    "one safe action in every layer: another one each time, one state per layer; its Slater margin is rho",
    frozen=({}, {"rho": 0.5}, {"actions": 20}),
    published={"unconstrained": 0.0, "optimum": 3.870968},
    source=OURS,
)
def slater_needle(
    *, rho: float = 0.1, actions: int = 5, steps: int = 4, alpha: float = ALPHA, seed: int = 0
) -> WorldDefinition:
    _check_margin("slater-needle", rho, steps, alpha)
    whole_number("slater-needle: actions", actions, 2, MOST_ACTIONS)
    costs, loss = np.ones((1, steps, actions)), np.zeros((steps, actions))
    layers, needles = np.arange(steps), hidden_actions(steps, actions, seed)
    costs[0, layers, needles], loss[layers, needles] = (alpha - rho) / steps, 1.0
    return _chain(costs, loss, alpha, rho, tuple(f"action {a}" for a in range(actions)))


def chain_optimum(rho: float, steps: int, alpha: float = ALPHA, constraints: int = 1, rotated: bool = False) -> float:
    """The least loss of a slater-chain, in closed form."""
    risky = rho / (1.0 - (alpha - rho) / steps)
    if not rotated:
        return steps - risky
    own_layers = [len(range(i, steps, constraints)) for i in range(constraints)]
    return steps - sum(min(risky, layers) for layers in own_layers)


def hidden_actions(steps: int, actions: int, seed: int) -> IntArray:
    """(steps,): one action for each layer, never that of the layer before.

    They come from raw words of PCG64, whose stream numpy keeps fixed.
    """
    words = (PCG64(seed).random_raw(steps) >> np.uint64(16)).astype(np.int64)
    found = [int(words[0]) % actions]
    for word in words[1:].tolist():
        found.append((found[-1] + 1 + word % (actions - 1)) % actions)
    return np.array(found)


def _check_margin(name: str, rho: float, steps: int, alpha: float) -> None:
    whole_number(f"{name}: steps", steps, 1)
    real_number(f"{name}: alpha", alpha, 0.0, float(steps))
    if not 0.0 < real_number(f"{name}: rho", rho, 0.0, float(steps)) <= alpha:
        raise InvalidInput(f"{name}: rho is {rho:g}; a Slater margin lies above 0 and is at most alpha = {alpha:g}")


def _chain(costs: FloatArray, loss: FloatArray, alpha: float, rho: float, actions: tuple[str, ...]) -> WorldDefinition:
    """One state per layer: costs (m, L, A), loss (L, A)."""
    m, steps, A = costs.shape
    layout = Layout([1] * (steps + 1), A)
    cmdp = CMDP(
        layout,
        np.ones(layout.num_triples),
        BernoulliCosts(costs.reshape(m, -1)),
        np.full(m, alpha),
        state_labels=[*(f"layer {k}" for k in range(steps)), "end"],
        action_labels=actions,
    )
    return WorldDefinition(cmdp, loss.ravel(), baseline_thresholds=np.full(m, alpha - rho / 2))


# The lock -------------------------------------------------------------------------------------------------------------


@entry(
    "lock",
    "a combination lock: only all right actions open it, and each of them costs",
    frozen=({}, {"steps": 8}),
    source=OURS,
)
def lock(*, steps: int = 4, actions: int = 3, seed: int = 0) -> WorldDefinition:
    whole_number("lock: steps", steps, 2)
    whole_number("lock: actions", actions, 2, MOST_ACTIONS)
    layers, right = np.arange(steps), hidden_actions(steps, actions, seed)
    on, off = 0, 1
    transitions = np.zeros((steps, 2, actions, 2))
    transitions[..., off] = 1.0
    transitions[layers, on, right] = STAYS_ON, 1.0 - STAYS_ON
    costs = np.zeros((1, steps, 2, actions))
    costs[0, layers, :, right] = 1.0
    loss = np.zeros((steps, 2, actions))
    loss[-1] = 1.0
    loss[-1, on, right[-1]] = 1.0 - STAYS_ON
    return world_over_steps(
        transitions,
        steps,
        on,
        {"right actions": (float(steps - 1), (steps - 1) / 2)},
        loss=loss,
        costs=costs,
        scale=Scale("reward", offset=1.0, factor=-1.0),
        state_names=("on", "off"),
        action_names=[f"action {a}" for a in range(actions)],
    )


def lock_optimum(steps: int) -> float:
    """The largest reward of a lock, in closed form."""
    cost = sum(STAYS_ON**k for k in range(steps))
    return float(STAYS_ON**steps * min(1.0, (steps - 1) / cost))
