"""`hedgerow bench episode`: microseconds per episode, ours beside learners written with general solvers.

Every learner plays a warm-up first, preset `sharp`, until boxes are informative and constraints active. Then all
contenders of a world take turns, the first one rotating, each with a short run of episodes, until all have had their
turns or used up their time: what disturbs the machine disturbs all. Times are medians of processor time.

Ours are timed in the compiled loop with everything in it: drawing the episode, learning, exact scoring. The others go
on from what our SV-OPS has seen, on episodes that it played, and are timed while they learn, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from hedgerow.bench import terminal
from hedgerow.bench.episode_contenders import Compiled, Contender, Plain, Selected
from hedgerow.bench.episode_parts import EVALUATED, FLOOR, LOOP, NOTHING, PARTS, Parts, Recorded
from hedgerow.bench.episode_report import Activity, Report, Row
from hedgerow.bench.episode_worlds import LABELS, BenchWorld
from hedgerow.bench.mirror_steps import SIZES
from hedgerow.bench.plain_learners import OptimisticLP, PlainLearner, PlainOREPS, PlainSVOPS
from hedgerow.bench.pynol_peer import PyNOLHedge
from hedgerow.bench.timing import Spread
from hedgerow.estimates.counts import find_triple
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.files import copied
from hedgerow.learners.mirror.learner import Learner
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.learners.mirror.uobreps import UOBREPS
from hedgerow.planning import offline
from hedgerow.simulation.run import Simulation

DELTA = 0.01
OURS = "SV-OPS"
FLOOR_NAME = "floor of SV-OPS"
AT_BOUND = 1e-9
LEAST_PARTS, MOST_PARTS = 20, 2_000
"""Episodes of a turn that only consists of parts."""
LARGE = 5_000
"""Triples beyond which an eighth of the warm-up is enough: a sparse support has little to learn about each row."""


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    worlds: tuple[str, ...] = tuple(LABELS)
    horizon: int = 20_000
    """Episodes that every learner is built for"""
    warm_up: int = 8_000
    turns: int = 40
    turn: float = 0.02
    """Seconds that a turn of ours should last; the others have one episode"""
    most_per_turn: int = 250
    budget: float = 30.0
    """Seconds per contender and world; the turn that exceeds it is the last"""
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        return cls(tuple(size.label for size in SIZES[:2]), warm_up=4_000, turns=12, budget=2.0)


def run(settings: Settings) -> Report:
    """Measure everything."""
    rows: list[Row] = []
    parts: list[Row] = []
    activities: list[Activity] = []
    with terminal.progress("bench episode", len(settings.worlds) * (settings.turns + 1)) as advance:
        for label in settings.worlds:
            try:
                world = LABELS[label]()
            except ImportError as error:
                rows.append(Row(label, 0, OURS, f"not installed ({error.name})"))
                continue
            measured = _one_world(world, settings, advance)
            rows += measured.rows
            parts += measured.parts
            activities += measured.activities
    return Report(tuple(rows), tuple(parts), tuple(activities))


def _one_world(world: BenchWorld, settings: Settings, advance: terminal.Advance) -> Report:
    compiled = [
        _warmed(world, name, learner, settings) for name, learner in our_learners(world, settings.horizon).items()
    ]
    own = compiled[0].simulation.learner
    recorded, activity = record(world, copied(own), settings)
    selected = [
        _selected(name, which, Parts(world.cmdp, copied(own), world.loss, recorded), settings)
        for name, which in {FLOOR_NAME: FLOOR, LOOP: NOTHING, **PARTS}.items()
    ]
    plain, missing = _plain_learners(world, own, recorded)
    advance(f"{world.label}, warm")
    samples = _take_turns([*compiled, *selected, *plain], settings, lambda: advance(world.label))
    rows, parts = _rows(world, samples, [*compiled, *selected, *plain])
    rows += [Row(world.label, world.triples, name, reason) for name, reason in missing.items()]
    return Report(tuple(rows), tuple(parts), (activity,))


def our_learners(world: BenchWorld, horizon: int) -> dict[str, Learner]:
    """By name; the first is the one that others are compared with."""
    view, best = world.cmdp.view(), offline.slater(world.cmdp)
    safe: dict[str, Any] = {"baseline": best.policy, "baseline_costs": best.costs}
    return {
        OURS: SVOPS(view, horizon, DELTA, "sharp"),
        "S-OPS, joint": SOPS(view, horizon, DELTA, "sharp", **safe),
        "S-OPS, all pairs": SOPS(view, horizon, DELTA, "sharp", joint_cost=False, **safe),
        # With the theory's constants the search does not end, and its episodes cost the same.
        "CV-OPS, phase 1": CVOPS(view, horizon, DELTA, "sharp", stop="theory"),
        "UOB-REPS": UOBREPS(view, horizon, DELTA, "sharp"),
    }


def _warmed(world: BenchWorld, name: str, learner: Learner, settings: Settings) -> Compiled:
    episodes = settings.warm_up if world.triples <= LARGE else settings.warm_up // 8
    warm_up = Simulation(world.cmdp, world.loss, learner, settings.seed, episodes=episodes)
    warm_up.advance(episodes // 2)  # compiles, if need be
    begun = warm_up.seconds
    warm_up.finish()
    price = (warm_up.seconds - begun) / (episodes - episodes // 2)
    per_turn = int(np.clip(settings.turn / price, 10, settings.most_per_turn))
    return Compiled(name, Simulation(world.cmdp, world.loss, learner, settings.seed + 1), per_turn)


def _selected(name: str, which: int, parts: Parts, settings: Settings) -> Selected:
    """Some parts, as many in a turn as make it last: a call from Python costs more than most of them."""
    parts.run(which, 1)  # compiles, if need be
    price = max(1e-9, parts.seconds(which, LEAST_PARTS))
    return Selected(name, parts, which, int(np.clip(settings.turn / price, LEAST_PARTS, MOST_PARTS)))


def record(world: BenchWorld, learner: Learner, settings: Settings) -> tuple[Recorded, Activity]:
    """Play `learner` for as many episodes as there are turns; keep them, and say what they were like."""
    simulation = Simulation(world.cmdp, world.loss, learner, settings.seed + 2, episodes=settings.turns)
    layout, state, before = world.cmdp.layout, learner.core.state, learner.diagnostics["iterations"]
    has_choice = (np.diff(layout.row_start) > 1)[layout.row_of_triple]
    rows, costs, occupancy, at_bound, active = [], [], [], [], []
    for _ in range(settings.turns):
        simulation.advance(1)
        rows.append(simulation.episode.rows.copy())
        costs.append(simulation.episode.costs.copy())
        occupancy.append(np.exp(state.log_weight))
        p, boxes = state.conditional, state.boxes
        at_bound.append(np.mean(((p <= boxes.lower + AT_BOUND) | (p >= boxes.upper - AT_BOUND))[has_choice]))
        active.append(bool(np.any(state.multipliers > AT_BOUND)))
    steps = (learner.diagnostics["iterations"] - before) / settings.turns
    visited = np.array(rows)
    targets = np.column_stack([visited[:, 1:] // layout.num_actions, np.full(len(visited), layout.num_states - 1)])
    triples = [
        [find_triple(learner.core.index, r, x) for r, x in zip(*path, strict=True)]
        for path in zip(visited, targets, strict=True)
    ]
    recorded = Recorded(
        visited, np.array(triples, dtype=np.int64), world.loss[visited], np.array(costs), np.array(occupancy)
    )
    return recorded, Activity(world.label, steps, float(np.mean(at_bound)), float(np.mean(active)))


def _plain_learners(world: BenchWorld, own: Learner, recorded: Recorded) -> tuple[list[Plain], dict[str, str]]:
    """Those that can run here, and why the others cannot."""
    makers: dict[str, tuple[Callable[[], PlainLearner], bool]] = {
        PlainSVOPS.name: (lambda: PlainSVOPS(own), True),
        OptimisticLP.name: (lambda: OptimisticLP(own, world.loss), False),
        PlainOREPS.name: (lambda: PlainOREPS(own, world.cmdp.transitions, world.loss), False),
        PyNOLHedge.name: (lambda: PyNOLHedge(own, world.cmdp.transitions, world.loss), False),
    }
    able: list[Plain] = []
    missing: dict[str, str] = {}
    for name, (make, follows) in makers.items():
        try:
            able.append(Plain(name, make(), recorded, follows))
        except ImportError as error:
            missing[name] = f"not installed ({error.name})"
    return able, missing


def _take_turns(able: Sequence[Contender], settings: Settings, advance: Callable[[], None]) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {contender.name: [] for contender in able}
    spent = dict.fromkeys(samples, 0.0)
    for i in range(settings.turns):
        first = i % len(able)
        for contender in [*able[first:], *able[:first]]:
            if spent[contender.name] <= settings.budget:
                begun = perf_counter()
                samples[contender.name].append(contender.turn())
                spent[contender.name] += perf_counter() - begun
        advance()
    return samples


def _rows(world: BenchWorld, samples: dict[str, list[float]], able: Sequence[Contender]) -> tuple[list[Row], list[Row]]:
    """Contenders, and the parts of an episode of SV-OPS."""
    ours, empty = float(np.median(samples[OURS])), float(np.median(samples[LOOP]))
    rows, parts = [], []
    for contender in able:
        time = Spread.of(samples[contender.name])
        if contender.name in PARTS or contender.name == LOOP:
            price = time if contender.name == LOOP else time.less(empty)
            parts.append(Row(world.label, world.triples, contender.name, "", price, price.median / ours))
        else:
            factor = time.median / ours
            told = (contender.status, time, factor, contender.deviation)
            rows.append(Row(world.label, world.triples, contender.name, *told))
    evaluation = float(np.median(samples[EVALUATED])) - empty
    rest = Spread.of([max(0.0, ours - float(np.median(samples[FLOOR_NAME])) + evaluation)])
    projection = Row(world.label, world.triples, "projection", "by difference", rest, rest.median / ours)
    return rows, [projection, *parts]
