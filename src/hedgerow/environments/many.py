"""Many episodes of one policy, or of one mixture, drawn in one compiled call: logs for tests, benchmarks and examples.

With the same seed, a policy gets the episodes that a simulation would draw. A mixture chooses its policies with a
stream of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, seed_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.environments.play import OTHER, KernelWorld, Path, Streams, make_path, make_streams, make_world, play
from hedgerow.environments.player import Player
from hedgerow.model.cmdp import CMDP
from hedgerow.model.identity import same_layout
from hedgerow.model.index import Index, index_of
from hedgerow.model.policy import Mixture, Policy


class Played(Bundle):
    """All episodes, one after the other."""

    chosen: IntArray
    """(episodes,): which policy plays each of them"""
    rows: IntArray
    """(episodes L,)"""
    triples: IntArray
    """(episodes L,)"""
    costs: FloatArray
    """(episodes L, m)"""


def play_many(
    cmdp: CMDP, policy: Policy | Mixture | ArrayLike, episodes: int, seed: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows (episodes L,), triples (episodes L,) and costs (episodes L, m)."""
    layout, m = cmdp.layout, cmdp.num_constraints
    given = policy.policies() if isinstance(policy, Mixture) else [(1.0, policy)]
    parts = [(weight, _policy_of(cmdp, part)) for weight, part in given]
    weights = np.array([weight for weight, _ in parts])
    mixing = Generator(PCG64(SeedSequence(seed_number(seed)).spawn(4)[3]))
    chosen = (
        mixing.choice(len(parts), size=episodes, p=weights / weights.sum()) if len(parts) > 1 else np.zeros(episodes)
    )
    size = episodes * layout.steps
    target = Played(
        chosen=chosen.astype(np.int64),
        rows=np.zeros(size, dtype=np.int64),
        triples=np.zeros(size, dtype=np.int64),
        costs=np.zeros((size, m)),
    )
    world = make_world(cmdp)
    if world.cost_kind == OTHER:
        _play_slowly(cmdp, world, [part for _, part in parts], seed, target)
    else:
        policies = np.array([part.probabilities for _, part in parts])
        play_block(index_of(layout), world, policies, make_streams(seed), make_path(layout, m), target)
    return target.rows, target.triples, target.costs


def _policy_of(cmdp: CMDP, policy: Policy | ArrayLike) -> Policy:
    own = isinstance(policy, Policy) and same_layout(policy.layout, cmdp.layout)
    return policy if isinstance(policy, Policy) and own else Policy(cmdp.layout, policy)


@kernel
def play_block(
    index: Index, world: KernelWorld, policies: FloatArray, streams: Streams, path: Path, target: Played
) -> None:
    """Play policies[chosen[e]] (num_rows,) in each episode e."""
    steps = len(path.rows)
    for e in range(len(target.chosen)):
        play(index, world, policies[target.chosen[e]], streams, path)
        copy_into(path.rows, target.rows[e * steps : (e + 1) * steps])
        copy_into(path.triples, target.triples[e * steps : (e + 1) * steps])
        for k in range(steps):
            for i in range(path.costs.shape[1]):
                target.costs[e * steps + k, i] = path.costs[k, i]


def _play_slowly(cmdp: CMDP, world: KernelWorld, policies: list[Policy], seed: int, target: Played) -> None:
    """Play outside compiled code, for cost classes that compiled code does not know."""
    player, steps = Player(cmdp, world, make_streams(seed)), cmdp.layout.steps
    silent = np.zeros(cmdp.layout.num_rows)
    for e, j in enumerate(target.chosen.tolist()):
        episode, own = player.play(policies[j], silent), slice(e * steps, (e + 1) * steps)
        target.rows[own], target.triples[own], target.costs[own] = episode.rows, episode.triples, episode.costs
