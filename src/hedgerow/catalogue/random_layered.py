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

import numpy as np
from numpy.random import PCG64

from hedgerow.catalogue.entries import entry
from hedgerow.catalogue.world import Ingredients
from hedgerow.checks import FloatArray, IntArray, real_number
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline
from hedgerow.planning.induction import backward_induction

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
    "random layered world with integer-built numbers; small losses have large costs (Slater margin >= 0.05)",
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
) -> Ingredients:
    real_number("random-layered: tightness", tightness, 0.0, 1.0)
    layout = Layout(layers, actions)
    words = PCG64(seed)
    transitions = _transitions(layout, words)
    loss, costs = _loss_and_costs(layout, constraints, words)
    cmdp = CMDP(layout, transitions, BernoulliCosts(costs), np.full(constraints, float(layout.steps)))
    thresholds = _thresholds(cmdp, loss, tightness)
    budget = 0.5 * (thresholds + offline.slater(cmdp).costs)
    return Ingredients(cmdp.with_thresholds(thresholds), loss, baseline_thresholds=budget)


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
