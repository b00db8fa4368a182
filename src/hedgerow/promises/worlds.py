"""The worlds of the checks: entries of the catalogue, and small ones in which one mistake shows.

`two-actions`   one step: the free action costs .9, the other .1; threshold .5. Every curve bends early.
`opposed`       two constraints that pull in opposite directions: what is safe for one is costly for the other.
`needle`        one step: of many actions only the first is free of costs, and a search takes long to settle on it.
`turncoat`      four steps: changing sides on the way costs 1, staying on either side next to nothing.
`front-loaded`  two steps, all costs in the first one (spec of the search: a rule that skips layer 0 sees nothing).
`gate`          two steps: the true transitions lead to a free state, wrong ones to a costly one.
`wide`          two steps, two constraints, wide margins: searches end soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hedgerow import catalogue
from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline


class Ground(NamedTuple):
    """A world with its own loss and its Slater point."""

    cmdp: CMDP
    loss: FloatArray
    """(num_rows,)"""
    rho: float
    """The Slater margin"""
    safest: FloatArray
    """(num_rows,): the policy that has it"""
    safest_costs: FloatArray
    """(m,)"""


def ground(name: str, params: Mapping[str, Any] | tuple[tuple[str, Any], ...] = ()) -> Ground:
    """The world `name`: one of those above, or an entry of the catalogue with parameters."""
    return _ground(name, tuple(sorted(dict(params).items())))


@cache
def _ground(name: str, params: tuple[tuple[str, Any], ...]) -> Ground:
    if name in SMALL:
        cmdp, loss = SMALL[name](**dict(params))
    elif name in catalogue.names():
        world = catalogue.make(name, **dict(params))
        cmdp, loss = world.cmdp, world.loss
    else:
        raise InvalidInput(f"there is no world {name!r}; small ones: {', '.join(SMALL)}; others: `hedgerow worlds`")
    slater = offline.slater(cmdp)
    return Ground(cmdp, loss, slater.margin, slater.policy, slater.costs)


def _two_actions(margin: float = 0.4, threshold: float = 0.5, costly: float = 0.9) -> tuple[CMDP, FloatArray]:
    costs = BernoulliCosts([[costly, threshold - margin]])
    return CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [threshold]), np.array([0.0, 1.0])


def _opposed() -> tuple[CMDP, FloatArray]:
    """Constraint 0 dislikes the first action, constraint 1 the second; the loss prefers the first."""
    costs = BernoulliCosts([[0.9, 0.0], [0.0, 0.7]])
    return CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [0.3, 0.8]), np.array([0.0, 1.0])


def _needle(actions: int = 8, threshold: float = 0.6) -> tuple[CMDP, FloatArray]:
    costs = BernoulliCosts([[0.0] + [1.0] * (actions - 1)])
    return CMDP(Layout((1, 1), actions), np.ones(actions), costs, [threshold]), np.linspace(1.0, 0.0, actions)


def _turncoat() -> tuple[CMDP, FloatArray]:
    layout = Layout((1, 2, 2, 2, 1), 2)
    stay = [[1.0, 0.0], [0.0, 1.0]]
    moves = [[stay], [stay, stay], [stay, stay], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    costs = layout.join_rows([[[0.0, 0.03125]], *[[[0.0, 1.0], [1.0, 0.03125]]] * 3])
    loss = layout.join_rows([[[1.0, 0.0]], *[[[1.0, 0.5], [0.5, 0.0]]] * 3])  # the second side is the one to be on
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([costs]), [0.5]), loss


def _front_loaded() -> tuple[CMDP, FloatArray]:
    layout = Layout((1, 1, 1), 2)
    costs = layout.join_rows([[[1.0, 0.0]], [[0.0, 0.0]]])
    loss = layout.join_rows([[[0.0, 1.0]], [[0.5, 0.5]]])
    return CMDP(layout, np.ones(layout.num_triples), BernoulliCosts([costs]), [0.4]), loss


def _gate() -> tuple[CMDP, FloatArray]:
    layout = Layout((1, 2, 1), 2)
    moves = [[[[0.8, 0.2], [0.7, 0.3]]], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    costs = layout.join_rows([[[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])
    loss = layout.join_rows([[[1.0, 0.0]], [[0.5, 0.5], [0.5, 0.0]]])
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([costs]), [0.35]), loss


def _wide() -> tuple[CMDP, FloatArray]:
    layout = Layout((1, 2, 1), 2)
    moves = [[[[0.75, 0.25], [0.25, 0.75]]], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    first = layout.join_rows([[[0.75, 0.125]], [[0.75, 0.125], [0.875, 0.25]]])
    second = layout.join_rows([[[0.5, 0.25]], [[0.5, 0.25], [0.75, 0.125]]])
    loss = layout.join_rows([[[0.0, 1.0]], [[0.0, 1.0], [0.25, 0.75]]])
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([first, second]), [1.0, 1.0]), loss


SMALL: dict[str, Callable[..., tuple[CMDP, FloatArray]]] = {
    "two-actions": _two_actions,
    "opposed": _opposed,
    "needle": _needle,
    "turncoat": _turncoat,
    "front-loaded": _front_loaded,
    "gate": _gate,
    "wide": _wide,
}
