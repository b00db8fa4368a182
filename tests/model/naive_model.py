"""Slow, obvious twins of the model, and random worlds to compare on.

The twins know no flat index: they walk over dictionaries whose keys are (k, x, a, x') with states numbered inside their
layer.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.random import Generator

from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout


def random_support(rng: Generator, sizes: tuple[int, ...], actions: int, density: float) -> list[np.ndarray]:
    """One boolean array (|X_k|, |A|, |X_{k+1}|) per layer: every row leads somewhere, every state is reached."""
    support = []
    for here, there in pairwise(sizes):
        block = rng.random((here, actions, there)) < density
        for x in range(here):
            for a in range(actions):
                block[x, a, rng.integers(there)] = True
        for y in range(there):
            block[rng.integers(here), rng.integers(actions), y] = True
        support.append(block)
    return support


def random_layout(rng: Generator, density: float = 0.4) -> Layout:
    sizes = (1, *rng.integers(1, 6, size=rng.integers(1, 5)).tolist(), 1)
    return Layout.from_support(random_support(rng, sizes, int(rng.integers(1, 5)), density))


def random_transitions(rng: Generator, layout: Layout) -> np.ndarray:
    """(num_triples,): positive weights, divided by the sum of their row, row after row."""
    p = rng.random(layout.num_triples) + 0.01
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        p[row] /= p[row].sum()
    return p


def random_policy(rng: Generator, layout: Layout) -> np.ndarray:
    pi = rng.random((layout.num_decision_states, layout.num_actions)) + 0.01
    return (pi / pi.sum(axis=1, keepdims=True)).ravel()


def random_cmdp(rng: Generator, constraints: int = 2, layout: Layout | None = None) -> CMDP:
    layout = random_layout(rng) if layout is None else layout
    means = rng.random((constraints, layout.num_rows))
    thresholds = rng.random(constraints) * layout.steps
    return CMDP(layout, random_transitions(rng, layout), BernoulliCosts(means), thresholds)


Triple = tuple[int, int, int, int]


def as_dict(layout: Layout, flat: np.ndarray) -> dict[Triple, float]:
    """An array over triples as a dictionary, by counting through layers, states, actions and successors."""
    first = np.cumsum((0, *layout.layer_sizes))
    result, row = {}, 0
    for k in range(len(layout.layer_sizes) - 1):
        for x in range(layout.layer_sizes[k]):
            for a in range(layout.num_actions):
                for j in range(layout.row_start[row], layout.row_start[row + 1]):
                    result[k, x, a, int(layout.successor[j] - first[k + 1])] = float(flat[j])
                row += 1
    return result


def occupancy(layout: Layout, p: dict[Triple, float], pi: list[np.ndarray]) -> dict[Triple, float]:
    """q(k, x, a, x') by following every way through the layers; `pi` has one array (|X_k|, |A|) per layer."""
    reach = {(0, 0): 1.0}
    q = {}
    for k in range(len(layout.layer_sizes) - 1):
        for (layer, x, a, y), probability in p.items():
            if layer == k:
                q[k, x, a, y] = reach.get((k, x), 0.0) * pi[k][x, a] * probability
                reach[k + 1, y] = reach.get((k + 1, y), 0.0) + q[k, x, a, y]
    return q


def induced_policy(layout: Layout, q: dict[Triple, float]) -> dict[tuple[int, int, int], float]:
    pi = {}
    for k, size in enumerate(layout.layer_sizes[:-1]):
        for x in range(size):
            mass = sum(value for key, value in q.items() if key[:2] == (k, x))
            for a in range(layout.num_actions):
                of_row = sum(value for key, value in q.items() if key[:3] == (k, x, a))
                pi[k, x, a] = of_row / mass if mass > 0 else 1.0 / layout.num_actions
    return pi


def residuals(layout: Layout, q: dict[Triple, float], p: dict[Triple, float]) -> tuple[float, float, float, float]:
    """Negativity, mass, flow and transitions, each from its definition."""
    horizon = len(layout.layer_sizes) - 1
    mass = max(abs(sum(v for key, v in q.items() if key[0] == k) - 1.0) for k in range(horizon))
    flow, off = 0.0, 0.0
    for k in range(1, horizon):
        for x in range(layout.layer_sizes[k]):
            inflow = sum(v for key, v in q.items() if key[0] == k - 1 and key[3] == x)
            outflow = sum(v for key, v in q.items() if key[:2] == (k, x))
            flow = max(flow, abs(inflow - outflow))
    for key, value in q.items():
        row = sum(v for other, v in q.items() if other[:3] == key[:3])
        off = max(off, abs(value - p[key] * row))
    return max(0.0, -min(q.values())), mass, flow, off


def sparse_layout(rng: np.random.Generator, sizes: tuple[int, ...], actions: int, density: float) -> Layout:
    """A random support in which every row has a successor and every state is one."""
    support = []
    for here, there in pairwise(sizes):
        block = rng.random((here, actions, there)) < density
        block[rng.integers(here, size=there), rng.integers(actions, size=there), np.arange(there)] = True
        block[..., 0] |= ~block.any(axis=2)
        support.append(block)
    return Layout.from_support(support)
