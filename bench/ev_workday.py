"""`python -m bench ev-workday`: what each learner saves on 19,440 real charger-days, and what it costs in safety.

The world is `ev-workday` of the catalogue, the losses are those of the real days in true order (`ev-days`). *Saved* is
the share of the baseline's loss (charge at once) that a learner avoids; the best policy in hindsight would save 19.7 %.
*Unsafe* counts episodes whose expected cost is above the threshold. Figures are means over seeds.

`--world ev-workday-hard` takes the hard twin, `--cars 1` the real cars instead of the world (`RealCars`): without a
world there is no regret and no unsafe episode, but the expected costs of the worst 500 charger-days in a row.

A variant is a function (world, episodes, preset, seed) -> learner; add one to `VARIANTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self, cast

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, in_any_order, option
from hedgerow.checks import FloatArray
from hedgerow.confidence.radii import WITHOUT_HORIZON
from hedgerow.display.table import Table
from hedgerow.environments.scores import Occupancies
from hedgerow.errors import InvalidInput
from hedgerow.importers.logs import Log
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.settings import PRESETS, Preset
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.policy import Policy
from hedgerow.simulation.run import simulate
from hedgerow.worlds import ev_workday as workday
from hedgerow.worlds import make
from hedgerow.worlds.ev_replay import EVDays, RealCars, replayed
from hedgerow.worlds.world import World

DELTA = 0.01
ALPHAS = (0.1, 0.2)
WINDOW = 500
LOGGED, LOG_SEED = 5_000, 1_000
LOGS = f"S-OPS, {LOGGED:,} logged days"
MIXING = "mixing_weight"
"""The note of lambda, the weight of the baseline."""

Variant = Callable[[World, int, Preset, int], MirrorLearner]


def sv_ops(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    return SVOPS(world.view(), episodes, DELTA, preset, seed)


def s_ops(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    return SOPS(world.view(), episodes, DELTA, preset, seed, baseline=world.baseline)


def s_ops_known(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    transitions = world.cmdp.transitions
    return SOPS(world.view(), episodes, DELTA, preset, seed, baseline=world.baseline, transitions=transitions)


def s_ops_knowing(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    """S-OPS that knows P, and the seven rows that cannot cost anything by construction."""
    view = world.view().knowing(transitions=world.cmdp.transitions, zero_costs=world.cmdp.mean_costs == 0.0)
    return SOPS(view, episodes, DELTA, preset, seed, baseline=world.baseline)


def s_ops_logged(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    """S-OPS with LOGGED days before the first one, on which actions were drawn uniformly."""
    learner = SOPS(world.view(), episodes, DELTA, preset, seed, baseline=world.baseline)
    uniform = np.full(world.cmdp.layout.num_rows, 1.0 / world.cmdp.layout.num_actions)
    learner.absorb(Log.played(world.cmdp, uniform, LOGGED, seed=LOG_SEED + seed))
    return learner


def cv_ops(world: World, episodes: int, preset: Preset, seed: int) -> MirrorLearner:
    return CVOPS(world.view(), episodes, DELTA, preset, seed)


VARIANTS: Mapping[str, Variant] = {
    "SV-OPS": sv_ops,
    "S-OPS": s_ops,
    "S-OPS, P known": s_ops_known,
    "S-OPS, P and zero-cost rows known": s_ops_knowing,
    LOGS: s_ops_logged,
    "CV-OPS": cv_ops,
}


class Task(NamedTuple):
    """One run."""

    world: str
    variant: str
    alpha: float
    preset: Preset
    episodes: int
    seed: int
    cars: bool
    """Whether the real cars are played, not the world"""


class Score(NamedTuple):
    """The result of one run."""

    task: Task
    saved: float
    regret: float
    unsafe: float
    mixing: float
    """lambda of the last episode; NaN without one"""
    worst_window: float
    """The largest mean expected cost of 500 episodes in a row; NaN unless the real cars were played"""


@dataclass(frozen=True)
class EVRow:
    """A variant at a threshold: means over seeds, and the worst window of any."""

    learner: str
    alpha: float
    saved: float
    """Share of the baseline's loss"""
    regret: float | None
    unsafe: float | None
    mixing: float | None
    worst_window: float | None


@dataclass(frozen=True)
class EVWorkday(Benchmark[list[Score]]):
    """What each learner saves on real charger-days, at two thresholds."""

    name = "ev-workday"
    json_file = "ev-workday.json"
    is_timed = False

    world: str = option("ev-workday", "ev-workday, or ev-workday-hard")
    preset: str = option("sharpest", "the preset of all learners")
    episodes: int = option(0, "0 for all real charger-days; never more than these", least=0)
    seeds: int = option(3, "runs per cell of the table")
    processes: int = option(1, "processes that share the runs")
    cars: int = option(0, "1: play the real cars in place of the world", least=0)
    only: str = option("", "one variant, by its name in the table")

    @classmethod
    def quick(cls) -> Self:
        """One seed and the first 2,000 days."""
        return cls(episodes=2_000, seeds=1)

    def file_name(self) -> str:
        """One file for each world and preset, and for the real cars."""
        preset, cars = f"-{self.preset}" * (self.preset != "sharpest"), "-cars" * bool(self.cars)
        return f"{self.world}{cars}{preset}.json"

    @property
    def tasks(self) -> list[Task]:
        known = workday.days_of(self.world).total
        if self.episodes > known:
            raise InvalidInput(f"there are {known:,} real charger-days; {self.episodes:,} episodes are too many")
        if self.only and self.only not in VARIANTS:
            raise InvalidInput(f"there is no variant {self.only!r}; known: {'; '.join(VARIANTS)}")
        if self.preset not in PRESETS:
            raise InvalidInput(f"there is no preset {self.preset!r}; known: {', '.join(PRESETS)}")
        preset = cast(Preset, self.preset)
        return [
            Task(self.world, variant, alpha, preset, self.episodes or known, seed, bool(self.cars))
            for variant in ([self.only] if self.only else VARIANTS)
            if variant != LOGS or PRESETS[preset].get("radii") in WITHOUT_HORIZON
            for alpha in ALPHAS
            for seed in range(self.seeds)
        ]

    def run(self) -> list[Score]:
        """All runs, in the order of the table."""
        tasks, found = self.tasks, []
        with terminal.progress("bench ev-workday", len(tasks), forecast=True) as advance:
            for score in in_any_order(one_run, tasks, self.processes):
                found.append(score)
                advance(f"{score.task.variant}, {score.task.alpha:g}")
        return sorted(found, key=lambda score: tasks.index(score.task))

    def figures(self, found: list[Score]) -> list[EVRow]:
        return rows(found)

    def shown(self, found: list[Score]) -> Iterator[Table | str]:
        columns = ["learner", "alpha", "saved", "regret", "unsafe episodes", "lambda at T", f"worst {WINDOW}"]
        title = f"{self.world}, preset {self.preset}, {found[0].task.episodes:,} episodes: means of {self.seeds} seeds"
        table = Table(title, columns, num_text=1, num_keys=2)
        for row in rows(found):
            numbers = [_shown(row.regret, ",.0f"), _shown(row.unsafe, ",.0f"), _shown(row.mixing, ".3f")]
            saved = f"{100 * row.saved:.1f} %"
            table.add_row(row.learner, f"{row.alpha:g}", saved, *numbers, _shown(row.worst_window, ".3f"))
        yield table
        yield "saved: of the loss of charging at once; lambda: the weight of the baseline in the last episode"


def one_run(task: Task) -> Score:
    """Simulate one learner on the real days."""
    world = _world(task.world, task.alpha)
    learner = VARIANTS[task.variant](world, task.episodes, task.preset, task.seed)
    if task.cars:
        return _on_cars(task, learner)
    losses = EVDays(task.world)
    run = simulate(world.cmdp, learner, losses, seed=task.seed, progress=False)
    baseline = run.losses[-1] @ _occupancy(task.world, task.alpha)
    saved = 1.0 - float(run.loss[-1]) / float(baseline)
    last = {MIXING: float(run[MIXING][-1])}
    return Score(task, saved, float(run.regret[-1]), float(run.unsafe[-1]), _mixing(learner, last), np.nan)


def _on_cars(task: Task, learner: MirrorLearner) -> Score:
    """Run on the real cars episode by episode: the expectation of a charger-day must be asked before it is played."""
    cars, rng = RealCars(task.world, alpha=task.alpha, seed=task.seed), np.random.default_rng(task.seed)
    expected = np.zeros((task.episodes, 2))
    for t in range(task.episodes):
        plan = learner.plan()
        expected[t] = cars.expected(plan.mixture)
        learner.observe(cars.play(plan.policy, rng))
    baseline = replayed(workday.charge_at_once(task.world), task.world).losses[: task.episodes].sum()
    saved = 1.0 - float(expected[:, 0].sum() / baseline)
    return Score(task, saved, np.nan, np.nan, _mixing(learner, plan.notes), worst_window(expected[:, 1]))


def worst_window(costs: FloatArray, width: int = WINDOW) -> float:
    """The largest mean of so many costs in a row.

    >>> worst_window(np.array([0.0, 1.0, 1.0, 0.0]), width=2)
    1.0
    """
    summed = np.concatenate(([0.0], np.cumsum(costs)))
    width = min(width, len(costs))
    return float(np.max(summed[width:] - summed[:-width])) / width


@cache
def _world(name: str, alpha: float) -> World:
    return make(name, alpha=alpha)


@cache
def _occupancy(name: str, alpha: float) -> FloatArray:
    """(num_rows,): the occupancy of charging at once."""
    cmdp = _world(name, alpha).cmdp
    return Occupancies(cmdp.layout, cmdp.transitions).of(Policy(cmdp, workday.charge_at_once(name)))


def _mixing(learner: MirrorLearner, notes: Mapping[str, float]) -> float:
    """lambda of the last episode; NaN for a learner without a baseline, or one that is still looking for it."""
    searching = isinstance(learner, CVOPS) and learner.t_bar is None
    return np.nan if isinstance(learner, SVOPS) or searching else float(notes[MIXING])


def rows(found: list[Score]) -> list[EVRow]:
    """The table, in the order of the runs."""
    groups: dict[tuple[str, float], list[Score]] = {}
    for score in found:
        groups.setdefault((score.task.variant, score.task.alpha), []).append(score)
    return [_row(variant, alpha, own) for (variant, alpha), own in groups.items()]


def _row(variant: str, alpha: float, own: list[Score]) -> EVRow:
    saved, regret, unsafe, mixing = np.mean([score[1:5] for score in own], axis=0).tolist()
    worst = max(score.worst_window for score in own)
    return EVRow(variant, alpha, saved, _known(regret), _known(unsafe), _known(mixing), _known(worst))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _shown(value: float | None, kind: str) -> str:
    return "-" if value is None else format(value, kind)
