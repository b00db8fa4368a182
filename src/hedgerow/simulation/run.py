"""`simulate`: run a learner in a world against an adversary, and score it exactly.

    run = simulate(cmdp, losses, learner, seed=0)
    run.episodes, run.regret, run.violation, run.mixing, run.safe         # curves at about log-spaced episodes

Regret counts from the final comparator q*, the offline optimum of the mean loss of all episodes of the run:
regret after t episodes = sum_{s<=t} l_s^T (q_s - q*). Oblivious losses run compiled, in blocks; an adaptive adversary
sees every episode before it answers, so those run step by step. Both ways give the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.adversaries.adaptive import AdaptiveLosses
from hedgerow.adversaries.loss_blocks import LossBlock, ObliviousLosses
from hedgerow.adversaries.losses import Fixed, checked
from hedgerow.checks import FloatArray, IntArray, kind_of, seed_number, unmasked, whole_number
from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.learner import Learner
from hedgerow.learners.mirror.state import OPEN, PENDING, PHASE_OVER
from hedgerow.learners.ownership import in_turn
from hedgerow.model.cmdp import CMDP, View
from hedgerow.simulation.loop import make_episode, run_block
from hedgerow.simulation.outcome import Run, make_run
from hedgerow.simulation.play import make_streams, make_world, play
from hedgerow.simulation.scoring import (
    close_episode,
    follow_core,
    make_curves,
    make_score,
    score_learning,
    score_plan,
)

P = ParamSpec("P")
T = TypeVar("T")

NUM_MARKS = 200
BLOCK_NUMBERS = 2**20
"""The largest number of losses that a block holds: 8 MB."""
MOST_EPISODES = 10_000
"""Of a block: how often progress is shown, and how soon an interrupt is heard."""


def simulate(
    cmdp: CMDP,
    losses: Any,
    learner: Learner,
    seed: int = 0,
    progress: bool = True,
    *,
    episodes: int | None = None,
    step_wise: bool = False,
    marks: str | ArrayLike = "log",
    audit: bool = False,
) -> Run:
    """Run `learner` until its horizon, or for `episodes` more, and score it.

    `losses` is an adversary of `hedgerow.losses`, one of your own, or a single loss (num_rows,) for all episodes.
    `step_wise` goes through `plan` and `observe` instead of the compiled loop; the result is the same. `marks` says
    after how many episodes of the run the curves are kept: "log" for about 200 log-spaced ones, "all", or an ascending
    list. An `audit` also watches the bounds that concern all pairs (`Run.least_excess`, `Run.mixing_slack`).
    """
    simulation = Simulation(
        cmdp, losses, learner, seed, episodes=episodes, step_wise=step_wise, marks=marks, audit=audit
    )  # fmt: skip
    return simulation.run(progress=progress)


def checkpoints(episodes: int, count: int = NUM_MARKS) -> IntArray:
    """About `count` log-spaced numbers in 1..episodes; the last one is `episodes`."""
    return np.unique(np.round(np.geomspace(1.0, episodes, count)).astype(np.int64))


def checked_marks(marks: str | ArrayLike, episodes: int) -> IntArray:
    """The checkpoints that `marks` asks for in a run of so many episodes; the last episode is always one."""
    if isinstance(marks, str):
        if marks not in ("log", "all"):
            raise InvalidInput(f"marks is {marks!r}; choose 'log', 'all' or an ascending list of numbers of episodes")
        return checkpoints(episodes) if marks == "log" else np.arange(1, episodes + 1, dtype=np.int64)
    array = np.asarray(marks)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0 or np.any(np.diff(array) <= 0):
        raise InvalidInput("marks must be an ascending list of whole numbers of episodes")
    if array[0] < 1 or array[-1] > episodes:
        raise InvalidInput(f"marks must lie in 1..{episodes}, not in {array[0]}..{array[-1]}")
    return np.union1d(array, [episodes]).astype(np.int64)


class Simulation:
    """A run in progress: `advance` as far as wanted, then `result`."""

    def __init__(
        self,
        cmdp: CMDP,
        losses: Any,
        learner: Learner,
        seed: int = 0,
        *,
        episodes: int | None = None,
        step_wise: bool = False,
        marks: str | ArrayLike = "log",
        audit: bool = False,
    ) -> None:
        _check_kinds(cmdp, losses, learner)
        _check_match(cmdp, learner)
        learner.complete()
        self.cmdp, self.learner, self.seed = cmdp, learner, seed_number(seed)
        self.losses = _adversary(losses)
        self.first = self._reached = learner.episode
        self.last = self.first + self._length(episodes)
        learner.check_horizon(self.last - self.first)
        self.step_wise = step_wise or isinstance(self.losses, AdaptiveLosses)
        self.streams, self.world = make_streams(self.seed), make_world(cmdp)
        m = cmdp.num_constraints
        self.curves = make_curves(cmdp.layout, m, self.first + checked_marks(marks, self.last - self.first))
        self.score = make_score(cmdp.layout, m, learner.core, self.world, audit=audit)
        self._closed = True
        self.episode = make_episode(cmdp.layout, m)
        self._loss = np.zeros(cmdp.layout.num_rows)
        self.seconds = 0.0
        if isinstance(self.losses, AdaptiveLosses):
            self.losses.start(cmdp.layout)

    def _length(self, episodes: int | None) -> int:
        if episodes is not None:
            return whole_number("the number of episodes", episodes, 1)
        if self.learner.episodes is None:
            raise InvalidInput("this learner has no horizon; say how many episodes to simulate")
        remaining = self.learner.episodes - self.learner.episode
        if remaining < 1:
            raise InvalidInput(f"this learner has played all of its {self.learner.episodes} episodes")
        return remaining

    @property
    def done(self) -> int:
        """Episodes of this run so far."""
        return self.learner.episode - self.first

    def run(self, progress: bool = False) -> Run:
        """Run to the end and score, as one operation on the learner."""
        return self._in_turn(self._run, progress)

    def _run(self, progress: bool) -> Run:
        self._finish(progress)
        return self._result()

    def finish(self, progress: bool = False) -> None:
        """Run to the end; `progress` shows a bar in a terminal."""
        self._in_turn(self._finish, progress)

    def _in_turn(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return _simulating(self.learner, function, *args, **kwargs)

    def _finish(self, progress: bool) -> None:
        from hedgerow.simulation.progress import progress_bar

        with progress_bar(self.last - self.first, shown=progress) as bar:
            while self.learner.episode < self.last:
                self._advance(min(MOST_EPISODES, self.last - self.learner.episode))
                bar(self.done)

    def advance(self, count: int) -> None:
        """Run `count` more episodes, at most up to the end."""
        self._in_turn(self._advance, count)

    def _advance(self, count: int) -> None:
        begun = time.perf_counter()
        self._check_ready()
        try:
            self._play(count)
        finally:
            self._reached = self.learner.episode
        self.seconds += time.perf_counter() - begun

    def _check_ready(self) -> None:
        self._check_unmoved()
        if self.learner.core.state.numbers[PENDING]:  # compiled code would toss the coin of that episode again
            raise InvalidInput(
                f"episode {self.learner.episode} of the learner is planned already; call observe with what happened "
                "in it before it is simulated"
            )

    def _check_unmoved(self) -> None:
        """Scores would be wrong without a word if somebody else had played episodes in between."""
        if self.learner.episode != self._reached:
            raise InvalidInput(
                f"the learner is at episode {self.learner.episode}, this simulation left it at {self._reached}: it has "
                "played elsewhere; begin a new simulation"
            )

    def _play(self, count: int) -> None:
        numbers = self.learner.core.state.numbers
        if not self._closed or numbers[OPEN] or numbers[PHASE_OVER]:  # the last call was interrupted
            self._closed = self._closed and not numbers[OPEN]
            self._close(self.learner.core)
        stop = min(self.last, self.learner.episode + whole_number("the number of episodes", count, 1))
        while self.learner.episode < stop:
            if isinstance(self.losses, AdaptiveLosses):
                t = self.learner.episode - self.first
                self._reached = self.learner.episode
                loss = np.asarray(self.losses.loss(t))
                self._check_unmoved()
                played = self._step(loss)
                self.losses.observe(t, played, self.episode.rows.copy())
                continue
            size = min(stop - self.learner.episode, max(1, BLOCK_NUMBERS // self.cmdp.layout.num_rows))
            block = self.losses.block(self.cmdp.layout, self.learner.episode, size)
            if self.step_wise:
                for i in block.index:
                    self._step(block.patterns[i])
            else:
                self._run_block(block)

    def _run_block(self, block: LossBlock) -> None:
        patterns, pattern, done = np.array(block.patterns, order="C"), np.array(block.index, dtype=np.int64), 0
        while done < len(pattern):
            core = self.learner.core
            done, self._closed = self._compiled(core, patterns, pattern, done)
            if not self._closed or core.state.numbers[PHASE_OVER]:
                self._close(core)

    def _compiled(self, core: Core, patterns: FloatArray, pattern: IntArray, first: int) -> tuple[int, bool]:
        """The episodes of a block from `first` on, compiled: how many are done, and whether the last one is closed."""
        streams = self.streams
        return run_block(
            core, self.world, self.score, self.curves, self.episode, patterns, pattern, first,
            self.learner.coin, streams.actions, streams.environment, streams.costs,
        )  # fmt: skip

    def _close(self, core: Core) -> None:
        """Finish the last episode, whose learning began with `core`, and follow the learner into a new phase."""
        self.learner.complete()
        if not self._closed:
            self._close_episode(core)
            self._closed = True
        if self.learner.core is not core:
            self._follow()

    def _close_episode(self, core: Core) -> None:
        close_episode(core, self.score, self.curves)

    def _follow(self) -> None:
        """The learner has begun a new phase."""
        self.score = follow_core(self.score, self.learner.core, self.world)

    def _step(self, loss: FloatArray) -> FloatArray:
        """One episode through the step-wise API; returns the policy that was played."""
        learner, episode, streams = self.learner, self.episode, self.streams
        core = learner.core
        self._loss[:] = loss
        learner.plan()
        played = learner.played_array().copy()
        score_plan(core, self.world, self._loss, self.score, self.curves)
        play(
            core.index, self.world, played, streams.actions, streams.environment, streams.costs,
            episode.rows, episode.triples, episode.costs,
        )  # fmt: skip
        done = learner.episode
        try:
            learner.observe(episode.rows, self._loss[episode.rows], episode.costs)
        finally:
            if learner.episode > done:  # learnt, even if completing it was interrupted
                score_learning(core, self.world, episode.rows, self.score)
                self._closed = False
        self._close(core)
        return played

    def result(self) -> Run:
        """The scores so far."""
        return self._in_turn(self._result)

    def _result(self) -> Run:
        return make_run(self.cmdp, self.learner, self.score, self.curves, self.first, self.seed, self.seconds)


def _check_kinds(cmdp: object, losses: object, learner: object) -> None:
    """Refuse what is mixed up: arguments in another order, a class in the place of an object."""
    if not isinstance(cmdp, CMDP):
        inside = "; pass its world, .cmdp" if isinstance(getattr(cmdp, "cmdp", None), CMDP) else ""
        raise _misplaced("first", "a world, a CMDP", cmdp, inside)
    if isinstance(losses, type | CMDP | View | Learner) or isinstance(getattr(losses, "cmdp", None), CMDP):
        inside = "; pass its own loss, .loss" if hasattr(losses, "loss") and hasattr(losses, "cmdp") else ""
        raise _misplaced("second", "the losses, an adversary of hedgerow.losses or an array", losses, inside)
    if not isinstance(learner, Learner):
        raise _misplaced("third", "a learner", learner, "")


def _misplaced(place: str, expected: str, given: object, advice: str) -> InvalidInput:
    if isinstance(given, type):
        advice = f"; make an object of it, {given.__name__}(...)"
    order = "the order is simulate(cmdp, losses, learner)"
    return InvalidInput(f"the {place} argument of a simulation is {expected}, not {kind_of(given)}{advice}; {order}")


@in_turn("simulate", rests=True)
def _simulating(learner: Learner, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Own the learner meanwhile; between episodes it is at rest, and an adversary may save it."""
    return function(*args, **kwargs)


def _check_match(cmdp: CMDP, learner: Learner) -> None:
    view = learner.view
    if view.layout != cmdp.layout or not np.array_equal(view.thresholds, cmdp.thresholds):
        raise InvalidInput("the learner was built for another world: build it on cmdp.view() of the one to simulate")


def _adversary(losses: Any) -> Any:
    """An adversary whose every loss is in [0, 1]."""
    if isinstance(losses, ObliviousLosses):
        return losses
    if isinstance(losses, np.ndarray | list | tuple):
        array: ArrayLike = unmasked("the loss", losses)
        return Fixed(np.asarray(array, dtype=np.float64))
    return checked(losses)
