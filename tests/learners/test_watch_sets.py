"""The watch of the confidence sets against the definitions, recomputed in plain Python after every episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow import losses
from hedgerow.confidence.aggregate import aggregate_radius, log_term_of
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.state import Core
from hedgerow.learners.watch import is_clean
from hedgerow.model.cmdp import CMDP
from hedgerow.planning import offline
from hedgerow.simulation.run import Simulation
from hedgerow.verify.worlds import buffer, fan, layered

TOL = 1e-12


class Reckless(SOPS):
    """Balls and certificate are so narrow that the truth leaves them."""

    def _first_core(self) -> Core:
        core = super()._first_core()
        ball = core.sets.rule.ball.replace(log_inverse_delta=-1.0)
        aggregate = core.sets.rule.aggregate.replace(log_inverse_delta=-6.4)
        return core.replace(sets=core.sets.replace(rule=core.sets.rule.replace(ball=ball, aggregate=aggregate)))


def expected(world: CMDP, core: Core) -> dict[str, int]:
    """How many sets the truth is outside of."""
    layout, boxes, balls, sums = world.layout, core.state.boxes, core.state.balls, core.state.aggregate
    P, g, row = world.transitions, world.mean_costs.T, layout.row_of_triple
    box = np.unique(row[(boxes.lower - TOL > P) | (boxes.upper + TOL < P)])
    cost = ((boxes.cost_lower - TOL > g) | (boxes.cost_upper + TOL < g)).any(axis=1)
    outside = 0
    for r in range(layout.num_rows) if len(balls.radius) else ():
        own = slice(layout.row_start[r], layout.row_start[r + 1])
        if balls.visits[r]:
            share = balls.moves[own] / balls.visits[r]
            some = share > 0.0
            outside += float(share[some] @ np.log(share[some] / P[own][some])) > balls.radius[r] + TOL
    failed = 0
    for slot in np.flatnonzero(sums.generation >= 0):
        for i in core.sets.rule.aggregate.watched:
            ahead = np.add.reduceat(P * sums.values[slot, i][layout.successor], layout.row_start[:-1])
            log_term = log_term_of(core.sets.rule.aggregate.log_inverse_delta, 1, int(sums.generation[slot]))
            radius = aggregate_radius(log_term, float(sums.squares[slot, i]), float(sums.ranges[slot, i]))
            failed += float(sums.visits[slot] @ (g[:, i] + ahead)) > sums.sums[slot, i] + radius
    return {"transitions": len(box), "costs": int(cost.sum()), "balls": outside, "sums": failed}


@pytest.mark.parametrize(
    ("build", "kind", "switches", "episodes"),
    [
        (buffer, SOPS, {"confidence_scale": 0.3}, 250),
        (fan, Reckless, {}, 400),
        (layered, Reckless, {}, 400),
        (layered, SOPS, {"radii": "tight", "confidence_scale": 0.1}, 100),
    ],
)
def test_all_sets_are_watched_as_they_are_used(build: Any, kind: Any, switches: Any, episodes: int) -> None:
    world, _ = build()
    learner = kind(world.view(), episodes, 0.05, "sharpest", 1, baseline=offline.slater(world), **switches)
    simulation = Simulation(world, learner, losses.Drifting(period=50), 2)
    tallies, seen = simulation.watcher.event.tallies, dict.fromkeys(("transitions", "costs", "balls", "sums"), 0)
    unclean = 0
    for _ in range(episodes):
        unclean += not is_clean(tallies)
        simulation.advance(1)
        found = expected(world, learner.core)
        assert {name: getattr(tallies, name) for name in found} == found
        seen = {name: max(seen[name], found[name]) for name in seen}
    assert simulation.result()["unclean"][-1] == unclean
    if kind is Reckless:
        assert seen["sums"] > 0
        assert (seen["balls"] > 0) == (build is fan)
    else:
        assert seen["transitions"] + seen["costs"] > 0
