"""Worlds and learners that the tests of learners and simulations share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from hedgerow.learners.files import FILE_KIND, from_file, pack
from hedgerow.learners.ops.b_ops import BOPS
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.c_ops import COPS
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.learners.ops.uob_reps import UOBREPS
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts, BetaCosts, CostDistribution, DeterministicCosts, EmpiricalCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline
from hedgerow.simulation.result import CURVES, Run
from hedgerow.storage import datafile


def random_world(
    seed: int, layers: tuple[int, ...] = (1, 3, 2, 1), actions: int = 2, m: int = 2, *, sparse: bool = False
) -> CMDP:
    """A strictly feasible world with Bernoulli costs; `sparse` takes away every second successor or so."""
    rng = np.random.default_rng(seed)
    layout = Layout(layers, actions)
    if sparse:
        layout = Layout.from_support(
            [_thinned(block, rng) for block in layout.split_triples(np.ones(layout.num_triples))]
        )
    weights = rng.exponential(size=layout.num_triples) + 0.1
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = rng.uniform(0.05, 0.95, (m, layout.num_rows))
    free = CMDP(layout, transitions, BernoulliCosts(costs), np.full(m, float(layout.steps)))
    least = offline.slater(free).costs if m else np.zeros(0)
    return free.with_thresholds(np.minimum(least + 0.25, layout.steps))


def _thinned(block: np.ndarray, rng: Generator) -> np.ndarray:
    keep = rng.random(block.shape) < 0.6
    keep[np.arange(block.shape[0]), :, np.arange(block.shape[0]) % block.shape[2]] = True
    keep[0, 0, :] = True
    return keep


def with_costs(world: CMDP, kind: str) -> CMDP:
    """The same world with costs of another kind (and other means, for some)."""
    means = world.mean_costs
    kinds: dict[str, Callable[[], CostDistribution]] = {
        "bernoulli": lambda: BernoulliCosts(means),
        "deterministic": lambda: DeterministicCosts(means),
        "beta": lambda: BetaCosts(2.0 * means + 0.1, 2.0 * (1.0 - means) + 0.1),
        "empirical": lambda: EmpiricalCosts([means, 0.5 * means], [0.75, 0.25]),
    }
    return CMDP(world.layout, world.transitions, kinds[kind](), world.thresholds)


def make_learner(kind: str, world: CMDP, episodes: int | None = 200, delta: float = 0.05, **options: Any) -> Learner:
    """A learner by its kind, as printed; those with a baseline get the Slater point of the world."""
    options = {"preset": "paper", **options}
    if kind in WITH_BASELINE:
        slater = offline.slater(world)
        options = {"baseline": slater.policy, "baseline_costs": slater.costs, **options}
    cls = {"sv-ops": SVOPS, "s-ops": SOPS, "b-ops": BOPS, "c-ops": COPS, "cv-ops": CVOPS, "uob-reps": UOBREPS}[kind]
    return cls(world.view(), episodes, delta, **options)


KINDS = ("sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops", "c-ops")
WITH_BASELINE = ("s-ops", "b-ops", "c-ops")


def draw_path(world: CMDP, policy: np.ndarray, rng: Generator) -> np.ndarray:
    """The rows (L,) of an episode, by numpy alone."""
    layout, state, rows, policy = world.layout, 0, [], np.asarray(policy)
    for _ in range(layout.steps):
        own = slice(state * layout.num_actions, (state + 1) * layout.num_actions)
        row = own.start + rng.choice(layout.num_actions, p=policy[own] / policy[own].sum())
        triples = slice(layout.row_start[row], layout.row_start[row + 1])
        state = int(rng.choice(layout.successor[triples], p=world.transitions[triples]))
        rows.append(row)
    return np.array(rows)


def snapshot(learner: Learner) -> dict[str, np.ndarray]:
    """A copy of all that the learner's state holds, and the place of its coin."""
    arrays = {name: array.copy() for name, array in learner.state_arrays().items()}
    coin = learner.coin.state["state"]
    return {**arrays, "coin": np.array([str(coin)])}


def scores(run: Run) -> dict[str, np.ndarray]:
    """All numbers of a run, by name."""
    own = {**run.notes, **{name: np.nan if value is None else value for name, value in run.facts.items()}}
    common = {name: getattr(run, name) for name in (*CURVES, "optimum", "comparator")}
    return {name: np.asarray(value) for name, value in {**common, **own}.items()}


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    """Bit for bit."""
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def to_bytes(learner: Any) -> bytes:
    """The content of its file."""
    return pack(learner, learner.state())


def from_bytes(blob: bytes) -> Any:
    """The learner in such a content."""
    return from_file(datafile.unpack(blob, FILE_KIND))
