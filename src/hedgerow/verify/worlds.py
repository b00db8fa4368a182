"""Small worlds that each show one mistake; the other worlds of the checks are entries of the catalogue.

An experiment names them like any plug-in world, `hedgerow.verify.worlds:two_actions`.

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

from hedgerow import worlds
from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import unroll
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts, EmpiricalCosts
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


# --------------------------------------------------------------------------------------------------------------------
# Worlds of which learners know more than the layout, and worlds whose costs of one episode depend on each other.
#
# `layered`        random-layered with costs that depend on each other: `equal`, one number decides all costs of an
#                  episode; `opposite`, every second layer has the opposite luck
# `partly_known`   random-layered with known rows of P, known mean costs, rows that cost nothing, and a ceiling
# `cycle`          dope-factored with fewer steps; rows share laws
# `buffer`         dope-media with fewer levels and steps; rows share laws, and are wide enough for balls
# `chorus`         all rows share one cost law, and all costs of an episode are equal
# `fan`            one step to ten places, two times: rows with balls and no laws in common
# `rooms`          one step to a room, and there an action that costs: few visits of each, many of all, so that the
#                  certificate is soon better than boxes


KINDS = ("independent", "equal", "opposite")


def dependent_costs(layout: Layout, means: FloatArray, kind: str) -> EmpiricalCosts:
    """Costs 0 or 1 with the given means (m, num_rows), all decided by one uniform number U per episode.

    A row costs 1 if U is below its mean; with the kind `opposite` every second layer uses 1 - U.
    """
    if kind not in KINDS[1:]:
        raise InvalidInput(f"costs that depend on each other are {' or '.join(KINDS[1:])}, not {kind!r}")
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    turned = np.broadcast_to((layer % 2 == 1) & (kind == "opposite"), means.shape)
    ends = np.unique(np.concatenate(([0.0, 1.0], np.where(turned, 1.0 - means, means).ravel())))
    middle = 0.5 * (ends[1:] + ends[:-1])[:, np.newaxis, np.newaxis]
    table = np.where(turned, middle > 1.0 - means, middle < means).astype(np.float64)
    return EmpiricalCosts(table, np.diff(ends))


def layered(kind: str = "equal", *, constraints: int = 1, layers: tuple[int, ...] = (1, 3, 3, 1)) -> Built:
    world = worlds.make("random-layered", layers=tuple(layers), actions=3, constraints=constraints)
    cmdp = world.cmdp
    costs = dependent_costs(cmdp.layout, cmdp.mean_costs, kind)
    return CMDP(cmdp.layout, cmdp.transitions, costs, cmdp.thresholds), world.loss


def partly_known(tightness: float = 0.6) -> Built:
    """The first layer is free of costs: an episode costs L - 1 at most. Half of the rest is known as well."""
    world = worlds.make("random-layered", layers=(1, 3, 3, 3, 1), actions=3, constraints=1)
    layout, means, P = world.cmdp.layout, world.cmdp.mean_costs.copy(), world.cmdp.transitions
    means[:, layout.rows(0)] = 0.0
    known_costs, known_moves = np.full_like(means, np.nan), np.full_like(P, np.nan)
    known_costs[:, layout.rows(0)] = 0.0
    some = np.arange(layout.rows(1).start, layout.rows(1).stop, 2)
    known_costs[:, some] = means[:, some]
    known_moves[layout.triples(1)] = P[layout.triples(1)]
    knowledge = {"costs": known_costs, "transitions": known_moves, "max_episode_cost": [layout.steps - 1.0]}
    thresholds = tightness * world.cmdp.thresholds
    return CMDP(layout, P, BernoulliCosts(means), thresholds, knowledge=knowledge), world.loss


def cycle(horizon: int = 4) -> Built:
    states = np.arange(3)
    moves = np.zeros((3, 2, 3))
    moves[states, 0, states] = moves[states, 1, (states + 1) % 3] = 1.0
    loss, cost = np.stack((np.ones(3), 1.0 - (states + 1) / 3), axis=1), np.tile([0.0, 1.0], (3, 1))
    return _unrolled(moves, horizon, loss, cost)


def buffer(horizon: int = 4, levels: int = 8) -> Built:
    moves = np.zeros((levels, 2, levels))
    for a, arrival in enumerate((0.9, 0.1)):
        for s in range(levels):
            moves[s, a, s] += arrival * 0.8 + (1.0 - arrival) * 0.2
            moves[s, a, min(s + 1, levels - 1)] += arrival * 0.2
            moves[s, a, max(s - 1, 0)] += (1.0 - arrival) * 0.8
    loss, cost = np.zeros((levels, 2)), np.tile([1.0, 0.0], (levels, 1))
    loss[0] = 1.0
    return _unrolled(moves, horizon, loss, cost)


def _unrolled(moves: FloatArray, horizon: int, loss: FloatArray, cost: FloatArray) -> Built:
    """Unroll a world with half of the steps as the threshold."""
    world = unroll(moves, horizon, 0, loss=loss, costs=cost[None], thresholds=[0.5 * horizon], support="full")
    assert world.loss is not None
    return world.cmdp, world.loss


def chorus(steps: int = 6, mean: float = 0.5) -> Built:
    """The first action of every state costs, with one law for all; the second does not, and that is known."""
    layout = Layout((1, *[2] * (steps - 1), 1), 2)
    first = np.arange(layout.num_rows) % 2 == 0
    means = np.where(first, mean, 0.0)[np.newaxis]
    share = np.repeat(1.0 / np.diff(layout.row_start), np.diff(layout.row_start))
    knowledge = {"same_costs": np.where(first, 0, 1), "costs": np.where(first, np.nan, 0.0)[np.newaxis]}
    costs = dependent_costs(layout, means, "equal")
    return CMDP(layout, share, costs, [0.5 * mean * steps], knowledge=knowledge), np.where(first, 0.0, 1.0)


def fan(places: int = 10) -> Built:
    layout = Layout((1, places, places, 1), 2)
    weights = 1.0 + np.arange(layout.num_triples) * 7 % 11  # no particular order
    sums = np.add.reduceat(weights, layout.row_start[:-1])
    means = (0.1 + 0.8 * ((np.arange(layout.num_rows) * 5) % 13) / 13.0)[np.newaxis]
    means[:, 1::2] *= 0.5
    loss = np.tile([0.0, 1.0], layout.num_rows // 2)
    return CMDP(layout, weights / sums[layout.row_of_triple], BernoulliCosts(means), [0.8]), loss


def rooms(places: int = 12) -> Built:
    """An episode costs 1 at most, in its room; the way there is free, and its law is known."""
    layout = Layout((1, places, 1), 2)
    first = np.arange(layout.num_rows) % 2 == 0
    P = np.repeat(1.0 / np.diff(layout.row_start), np.diff(layout.row_start))
    means, known = np.where(first, 0.6, 0.02)[np.newaxis], np.full((1, layout.num_rows), np.nan)
    means[:, layout.rows(0)] = known[:, layout.rows(0)] = 0.0
    knowledge = {"costs": known, "max_episode_cost": [1.0], "transitions": P}
    loss = np.where(first, 0.0, 1.0)
    return CMDP(layout, P, BernoulliCosts(means), [0.55], knowledge=knowledge), loss
