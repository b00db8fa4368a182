"""`run_cell`: from the description of a cell to its scores. A pure function: the same description, the same bits.

Besides the keys of every cell, a description may say how closely to watch:

    "marks": 40                                                          about so many checkpoints instead of 200
    "watch": {"audit": true, "notes": true, "estimator": true}           options of the learner's own watcher
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow.errors import InfeasibleWarning, InvalidInput
from hedgerow.experiments import parts
from hedgerow.experiments.cells import seeds_of
from hedgerow.planning import offline
from hedgerow.simulation.marks import NUM_MARKS, checkpoints
from hedgerow.simulation.outcome import Run
from hedgerow.simulation.run import FEWEST_EPISODES, MOST_EPISODES, SOON, Simulation

Tick = Callable[[int], None]
"""Called with the number of episodes done."""


class CellRun(NamedTuple):
    """The result of a cell."""

    run: Run
    seconds: dict[str, float]
    """Wall time: build (world, baseline, learner), loop (episodes), score (comparators), total"""
    facts: dict[str, float | str]
    """What is known of the world and worth keeping with the curves: slater, its margin rho; baseline_taken, which of
    its baselines `baseline = "offered"` stood for"""
    trace: Run | None = None
    """The same run with every episode as a checkpoint, if it was asked for"""


def run_cell(
    spec: Mapping[str, Any],
    folder: Path | None = None,
    tick: Tick | None = None,
    *,
    trace: bool = False,
    beat: Callable[[str], None] = lambda _: None,
) -> CellRun:
    """Run one cell; files that it names are looked for in `folder`. A `trace` keeps every single episode as well.

    `beat` is called with what comes next, each episode of a learner that is not compiled; with nothing when the rest is
    scoring, which may take its time.
    """
    begun = time.perf_counter()
    seeds = seeds_of(spec)
    cmdp, own_loss = parts.build_world(spec["world"], folder or Path())
    adversary = parts.build_adversary(
        spec["adversary"], seeds.adversary, own_loss, folder, cmdp=cmdp, episodes=spec["episodes"]
    )
    beat("the construction of the learner")
    learner = parts.build_learner(
        spec["learner"], cmdp, spec["episodes"], spec["delta"], seeds.learner, folder, spec["world"], adversary
    )
    marks = checkpoints(spec["episodes"], spec.get("marks", NUM_MARKS))
    closely = dict(spec.get("watch", {}))
    simulation = Simulation(
        cmdp, adversary, learner, seeds.simulation, episodes=spec["episodes"], marks="all" if trace else marks,
        audit=closely.pop("audit", False), watch=closely,
    )  # fmt: skip
    if simulation.first:
        raise InvalidInput(f"a new learner says that it has observed {simulation.first} episodes already")
    simulation.on_episode = lambda done: beat(f"episode {done}")
    built = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)  # the table of the cell counts such episodes
        count = MOST_EPISODES if simulation.ours or simulation.way == "step-wise" else FEWEST_EPISODES
        while simulation.done < spec["episodes"]:
            if tick is not None:
                tick(simulation.done)
            beat(f"episode {simulation.done}")
            before = time.perf_counter()
            simulation.advance(count)
            if time.perf_counter() - before < SOON:
                count = min(2 * count, MOST_EPISODES)
    beat("")
    played = time.perf_counter()
    whole, rho = simulation.result(), offline.slater(cmdp).margin
    run = whole.at(marks) if trace else whole
    _ = run.regret_so_far  # an optimum for each checkpoint: its time belongs here
    scored = time.perf_counter()
    seconds = {"build": built - begun, "loop": played - built, "score": scored - played, "total": scored - begun}
    facts: dict[str, float | str] = {"slater": rho}
    if spec["learner"].get("baseline") == "offered":
        facts["baseline_taken"] = parts.baseline_taken(spec["learner"], spec["world"], folder or Path())
    return CellRun(run, seconds, facts, whole if trace else None)
