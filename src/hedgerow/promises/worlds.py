"""Small worlds that each show one mistake; the other worlds of the checks are entries of the catalogue.

An experiment names them like any plug-in world, `hedgerow.promises.worlds:two_actions`.

`two-actions`   one step: the free action costs .9, the other .1; threshold .5. Every curve bends early.
`opposed`       two constraints that pull in opposite directions: what is safe for one is costly for the other.
`needle`        one step: of many actions only the first is free of costs, and a search takes long to settle on it.
`turncoat`      four steps: changing sides on the way costs 1, staying on either side next to nothing.
`front-loaded`  two steps, all costs in the first one (spec of the search: a rule that skips layer 0 sees nothing).
`gate`          two steps: the true transitions lead to a free state, wrong ones to a costly one.
`wide`          two steps, two constraints, wide margins: searches end soon.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout

Built = tuple[CMDP, FloatArray]
"""A world and its own loss (num_rows,)."""


def two_actions(margin: float = 0.4, threshold: float = 0.5, costly: float = 0.9) -> Built:
    costs = BernoulliCosts([[costly, threshold - margin]])
    return CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [threshold]), np.array([0.0, 1.0])


def opposed() -> Built:
    """Constraint 0 dislikes the first action, constraint 1 the second; the loss prefers the first."""
    costs = BernoulliCosts([[0.9, 0.0], [0.0, 0.7]])
    return CMDP(Layout((1, 1), 2), [1.0, 1.0], costs, [0.3, 0.8]), np.array([0.0, 1.0])


def needle(actions: int = 8, threshold: float = 0.6) -> Built:
    costs = BernoulliCosts([[0.0] + [1.0] * (actions - 1)])
    return CMDP(Layout((1, 1), actions), np.ones(actions), costs, [threshold]), np.linspace(1.0, 0.0, actions)


def turncoat() -> Built:
    layout = Layout((1, 2, 2, 2, 1), 2)
    stay = [[1.0, 0.0], [0.0, 1.0]]
    moves = [[stay], [stay, stay], [stay, stay], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    costs = layout.join_rows([[[0.0, 0.03125]], *[[[0.0, 1.0], [1.0, 0.03125]]] * 3])
    loss = layout.join_rows([[[1.0, 0.0]], *[[[1.0, 0.5], [0.5, 0.0]]] * 3])  # the second side has the smaller loss
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([costs]), [0.5]), loss


def front_loaded() -> Built:
    layout = Layout((1, 1, 1), 2)
    costs = layout.join_rows([[[1.0, 0.0]], [[0.0, 0.0]]])
    loss = layout.join_rows([[[0.0, 1.0]], [[0.5, 0.5]]])
    return CMDP(layout, np.ones(layout.num_triples), BernoulliCosts([costs]), [0.4]), loss


def gate() -> Built:
    layout = Layout((1, 2, 1), 2)
    moves = [[[[0.8, 0.2], [0.7, 0.3]]], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    costs = layout.join_rows([[[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])
    loss = layout.join_rows([[[1.0, 0.0]], [[0.5, 0.5], [0.5, 0.0]]])
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([costs]), [0.35]), loss


def wide() -> Built:
    layout = Layout((1, 2, 1), 2)
    moves = [[[[0.75, 0.25], [0.25, 0.75]]], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    first = layout.join_rows([[[0.75, 0.125]], [[0.75, 0.125], [0.875, 0.25]]])
    second = layout.join_rows([[[0.5, 0.25]], [[0.5, 0.25], [0.75, 0.125]]])
    loss = layout.join_rows([[[0.0, 1.0]], [[0.0, 1.0], [0.25, 0.75]]])
    return CMDP(layout, layout.join_triples(moves), BernoulliCosts([first, second]), [1.0, 1.0]), loss
