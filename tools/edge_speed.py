"""Speed at the edges: worlds whose thresholds no policy can meet, and worlds with many layers. SV-OPS, preset `sharp`.

    python tools/edge_speed.py infeasible      # episodes per second in ten stretches, beside the feasible world
    python tools/edge_speed.py long            # microseconds per layer of an episode, 100 to 10,000 layers

Times are processor times. The slowest episode comes from the step-wise loop, which times each one by itself.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time

import numpy as np

import hedgerow as hr
from hedgerow.simulation.run import Simulation

SIZES = {
    "48 triples": ((1, 3, 3, 3, 1), 2, 1),
    "240 triples": ((1, 4, 4, 4, 4, 1), 4, 2),
    "880 triples": ((1, 8, 8, 8, 8, 1), 4, 3),
}
SHARES = (2.0, 0.5, 0.0)
"""Thresholds as shares of the costs of the Slater policy: loose, impossible, and none allowed at all."""
EPISODES, STRETCHES = 30_000, 10
LAYERS = (100, 300, 1_000, 3_000, 10_000)


def infeasible() -> None:
    print(
        f"{'world':14}{'thresholds':>11}{'infeasible':>12}{'slowest stretch':>17}{'median':>10}{'slowest episode':>17}"
    )
    for name, (layers, actions, m) in SIZES.items():
        entry = hr.worlds.make("random-layered", layers=layers, actions=actions, constraints=m)
        costs = np.asarray(hr.offline.slater(entry.cmdp).costs)
        for share in SHARES:
            world = entry.cmdp.with_thresholds(np.minimum(share * costs, entry.cmdp.layout.steps))
            rates, learner = _stretches(world, entry.loss)
            slowest = _slowest_episode(world, entry.loss)
            print(
                f"{name:14}{share:>11g}{learner.diagnostics['infeasible']:>12,}{min(rates):>15,.0f}/s"
                f"{np.median(rates):>8,.0f}/s{1e3 * slowest:>14.1f} ms",
                flush=True,
            )


def _learner(world: hr.CMDP) -> hr.SVOPS:
    return hr.SVOPS(world.view(), 1_000_000, 0.05, "sharp")


def _stretches(world: hr.CMDP, loss: np.ndarray) -> tuple[list[float], hr.SVOPS]:
    learner, rates = _learner(world), []
    simulation = Simulation(world, learner, loss)
    simulation.advance(10)
    for _ in range(STRETCHES):
        begun = process_time()
        simulation.advance(EPISODES // STRETCHES)
        rates.append(EPISODES / STRETCHES / (process_time() - begun))
    return rates, learner


def _slowest_episode(world: hr.CMDP, loss: np.ndarray) -> float:
    simulation, slowest = Simulation(world, _learner(world), loss, step_wise=True), 0.0
    simulation.advance(10)
    for _ in range(EPISODES // 5):
        begun = process_time()
        simulation.advance(1)
        slowest = max(slowest, process_time() - begun)
    return slowest


def long() -> None:
    print(f"{'layers':>8}{'an episode':>14}{'per layer':>12}{'observe':>14}{'per layer':>12}")
    for layers in (10, *LAYERS):
        world = _corridor(layers)
        learner = hr.SVOPS(world.view(), 1_000, 0.05, "sharp")
        loss = np.full(world.layout.num_rows, 0.5)
        simulation, stepping = (
            Simulation(world, learner, loss, step_wise=False),
            Simulation(world, hr.SVOPS(world.view(), 1_000, 0.05, "sharp"), loss, step_wise=True),
        )
        times = []
        for each in (simulation, stepping):
            each.advance(2)
            count = max(3, 20_000 // layers) if layers < 5_000 else 3
            begun = process_time()
            each.advance(min(count, 500))
            times.append((process_time() - begun) / min(count, 500))
        if layers in LAYERS:
            cells = "".join(f"{1e3 * t:>11.3f} ms{1e6 * t / layers:>9.2f} us" for t in times)
            print(f"{layers:>8,}{cells}", flush=True)


def _corridor(layers: int) -> hr.CMDP:
    """Two states in a layer, two actions, one constraint."""
    layout = hr.Layout((1, *[2] * (layers - 1), 1), num_actions=2)
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=layout.num_triples) + 0.05
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = rng.uniform(0.2, 0.8, (1, layout.num_rows))
    return hr.CMDP(layout, transitions, hr.costs.BernoulliCosts(costs), np.full(1, 0.6 * layers))


if __name__ == "__main__":
    commands = {"infeasible": infeasible, "long": long}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    warnings.simplefilter("ignore", hr.errors.InfeasibleWarning)
    commands[sys.argv[1]]()
