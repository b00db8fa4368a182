"""The worlds whose episodes are timed: four sizes of random layers, two worlds of DOPE, and a large sparse grid.

Random worlds are tight (tightness 0.9): constraints are active once the confidence sets have shrunk. FrozenLake 8x8 of
gymnasium is unrolled over 20 steps; a step costs the probability of falling into a hole, at most 0.1 in all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.mirror_steps import SIZES, Size
from hedgerow.checks import FloatArray
from hedgerow.importers.gym_table import unroll_gymnasium
from hedgerow.model.cmdp import CMDP
from hedgerow.worlds import make

TIGHTNESS = 0.9
LAKE_HORIZON = 20
LAKE_RISK = 0.1


class BenchWorld(NamedTuple):
    """A world with the loss (num_rows,) of all its episodes."""

    label: str
    cmdp: CMDP
    loss: FloatArray

    @property
    def triples(self) -> int:
        return self.cmdp.layout.num_triples


def random_world(size: Size) -> BenchWorld:
    """The catalogue's random world of that size, with tight thresholds."""
    world = make(
        "random-layered", layers=size.layers, actions=size.actions, constraints=size.constraints, tightness=TIGHTNESS
    )
    return BenchWorld(size.label, world.cmdp, world.loss)


def catalogue_world(name: str) -> BenchWorld:
    world = make(name)
    return BenchWorld(name, world.cmdp, world.loss)


def frozen_lake() -> BenchWorld:
    """FrozenLake 8x8, slippery; needs gymnasium."""
    import gymnasium

    env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True).unwrapped
    table, holes = env.P, np.asarray(env.desc).ravel() == b"H"  # type: ignore[attr-defined]
    risk = np.array([
        [sum(p for p, to, _, _ in table[s][a] if holes[to] and not holes[s]) for a in table[s]] for s in table
    ])  # fmt: skip
    world = unroll_gymnasium(
        table, LAKE_HORIZON, 0, costs=risk[np.newaxis], thresholds=[LAKE_RISK], constraint_names=["hole"]
    )
    assert world.loss is not None  # tables have rewards
    return BenchWorld("FrozenLake 8x8", world.cmdp, world.loss)


LABELS: dict[str, Callable[[], BenchWorld]] = {
    **{size.label: (lambda size=size: random_world(size)) for size in SIZES},  # type: ignore[misc]
    "dope-media": lambda: catalogue_world("dope-media"),
    "dope-inventory": lambda: catalogue_world("dope-inventory"),
    "FrozenLake 8x8": frozen_lake,
}
"""How to make each world, by its name in the tables."""
