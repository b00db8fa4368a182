"""`simulate`: run a learner in a world against an adversary, and score it.

    run = simulate(world, losses, learner, seed=0)
    run.episodes, run.regret, run.violation, run.safe            # curves at about log-spaced episodes
    run["mixing_weight"]                                         # what this learner notes of its own

Any learner that can `plan` and `observe` will do. One whose watcher runs compiled blocks does so where world and
adversary are compiled as well; everybody else goes episode by episode. Both ways give the same bits, and `run.way` says
which one it was.

Regret counts from the final comparator q*, the offline optimum of the mean loss of all episodes of the run:
regret after t episodes = sum_{s<=t} l_s^T (q_s - q*).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, num_episodes, seed_number, type_name, whole_number
from hedgerow.display.screen import progress_bar
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.api import Compiled, Learner, NullWatcher, Plan, Watched, Watcher, feedback_of
from hedgerow.learners.plans import tell_failure
from hedgerow.losses.adaptive import AdaptiveLosses, Pursuit
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy
from hedgerow.simulation.arguments import (
    adversary_of,
    check_match,
    checked_marks,
    environment_of,
    held_back,
    learner_of,
    limit_of,
    own_turn,
)
from hedgerow.simulation.referee import Copies, Exact, Sampled, Seal, is_ours, may_watch
from hedgerow.simulation.result import Run, declared_columns, make_run

BLOCK_NUMBERS = 2**20
"""The largest number of losses that a block holds: 8 MB."""
FEWEST_EPISODES, MOST_EPISODES = 1, 10_000
"""Of a block: how often progress is shown, and how soon an interrupt is heard. A run begins with few, and doubles them
while they take less than SOON seconds."""
SOON = 0.2


def simulate(
    world: Any,
    losses: Any,
    learner: Learner,
    *,
    seed: int = 0,
    progress: bool = True,
    episodes: int | None = None,
    step_wise: bool = False,
    marks: str | ArrayLike = "log",
    audit: bool = False,
) -> Run:
    """Run a learner in a world against an adversary, and score it.

    The learner plays as many episodes as it was made for, or `episodes` more. Any object with `view`, `plan` and
    `observe` is a learner. Regret is counted from the best feasible policy for the mean loss of the whole run.

    Args:
        world: A CMDP, a world of the catalogue, or an environment of your own with `view()` and `play(policy, rng)`. In
            the latter only what was observed is known.
        losses: An adversary of `hr.losses` or one of your own; or one loss for all episodes, (num_rows,) or a table
            (states, actions). None takes the world's own loss; it must be None for an environment of your own.
        learner: The learner, built on `world.view()`.
        seed: Seed of everything random in the world, a whole number of at least 0. The learner has its own.
        progress: Whether to show a progress bar, in a terminal or a notebook.
        episodes: How many episodes to play; None plays all that the learner was made for.
        step_wise: Whether to call `plan` and `observe` for each episode instead of a compiled loop, with the same
            result.
        marks: After how many episodes the curves are kept: "log" for about 200 log-spaced checkpoints, "all", or an
            ascending list.
        audit: Whether to watch the bounds of all pairs as well, for learners that have such bounds. This is slower.

    Returns:
        The scores at the checkpoints.

    Raises:
        InvalidInput: If the learner was built for another world, if arguments are mixed up, or if a loss is outside
            [0, 1].

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("random-layered", layers=(1, 2, 1), actions=2, constraints=1)
        >>> learner = hr.SVOPS(world.view(), episodes=100, delta=0.05, preset="sharp")
        >>> run = hr.simulate(world, hr.losses.Switching(period=10), learner, progress=False)
        >>> run.way, int(run.episodes[-1]), run.regret.shape == run.episodes.shape
        ('compiled', 100, True)
    """
    simulation = Simulation(
        world, losses, learner, seed, episodes=episodes, step_wise=step_wise, marks=marks, audit=audit
    )  # fmt: skip
    return simulation.run(progress=progress)


class Simulation:
    """A run in progress: `advance` as far as wanted, then `result`. `watch` are further options of the watcher."""

    def __init__(
        self,
        world: Any,
        losses: Any,
        learner: Learner,
        seed: int = 0,
        *,
        episodes: int | None = None,
        step_wise: bool = False,
        marks: str | ArrayLike = "log",
        audit: bool = False,
        watch: Mapping[str, Any] | None = None,
    ) -> None:
        environment = environment_of(world)
        exact = isinstance(environment, CMDP)
        if not exact and losses is not None:
            raise InvalidInput("an environment of your own tells its losses itself; pass None for them")
        self.losses: Any = adversary_of(losses, world) if exact else None
        self.world, self.learner, self.seed = environment, learner_of(learner), seed_number(seed)
        view = environment.view()
        check_match(view, learner)
        self.layout, self.ours = view.layout, is_ours(learner)
        self._copies = Copies(learner, view.layout)
        self._seal = Seal(environment) if isinstance(environment, CMDP) and not self.ours else None
        self.first = self._reached = self._learner_episode
        self.last = self.first + self._length(episodes)
        self.referee = self._referee(checked_marks(marks, self.last - self.first))
        self.watcher: Watcher = NullWatcher()
        if isinstance(self.referee, Exact) and isinstance(learner, Watched) and may_watch(learner):
            self.watcher = type(learner).watch(learner, self.referee.stage, audit=audit, **(watch or {}))
        seen = self.referee.declared, getattr(self.watcher, "declared", ())
        self.declared = declared_columns(learner, *seen, num_constraints=view.num_constraints)
        oblivious = not isinstance(self.losses, AdaptiveLosses) or isinstance(self.losses, Pursuit)
        willing = isinstance(self.watcher, Compiled) and self.watcher.compiled
        self.way = "compiled" if willing and self.referee.compiled and oblivious and not step_wise else "step-wise"
        self._notes: list[tuple[int, Mapping[str, float]]] = []
        self._open: Plan | None = None
        self._last: Plan | None = None
        self._broken = ""
        self._let_through: Callable[[], None] = lambda: None
        self.on_episode: Callable[[int], None] = lambda done: None
        self.seconds = 0.0
        if isinstance(self.losses, AdaptiveLosses):
            self.losses.start(self.layout)

    def _referee(self, marks: Any) -> Exact | Sampled:
        full = feedback_of(self.learner) == "full"
        if isinstance(self.world, CMDP):
            return Exact(self.world, self.seed, marks, full=full, private=not self.ours)
        if full:
            raise InvalidInput("full feedback needs a CMDP: an environment only tells what happened on the way")
        return Sampled(self.world, self.seed, marks)

    @property
    def _learner_episode(self) -> int:
        """How many episodes the learner says that it has observed; those of this run if it does not say."""
        own = getattr(self.learner, "episode", None)
        return int(own) if isinstance(own, int | np.integer) else getattr(self, "first", 0) + self.done

    def _length(self, episodes: int | None) -> int:
        limit = limit_of(self.learner)
        if episodes is not None:
            wanted = num_episodes(episodes)
            if limit is not None and self.first + wanted > limit:
                raise InvalidInput(
                    f"this learner was built for {limit} episodes and has played {self.first}; build one for more, or "
                    "for as many as one likes where it can (horizon='doubling')"
                )
            return wanted
        if limit is None:
            raise InvalidInput("this learner does not say for how many episodes it is made; pass episodes=...")
        remaining = num_episodes(limit) - self.first
        if remaining < 1:
            raise InvalidInput(f"this learner has played all of its {limit} episodes")
        return remaining

    @property
    def done(self) -> int:
        """Episodes of this run so far."""
        return self.referee.scores.tallies.played if hasattr(self, "referee") else 0

    def run(self, progress: bool = False) -> Run:
        """Run to the end and score, as one operation on the learner."""

        def whole() -> Run:
            self._finish(progress)
            return self._result()

        run: Run = own_turn(self.learner, whole)
        return run

    def finish(self, progress: bool = False) -> None:
        """Run to the end; `progress` shows a bar in a terminal."""
        own_turn(self.learner, lambda: self._finish(progress))

    def _finish(self, progress: bool) -> None:
        total = self.last - self.first
        count = FEWEST_EPISODES
        with progress_bar("episodes", total, shown=progress) as bar:
            while self.done < total:
                begun = time.perf_counter()
                self._advance(min(count, total - self.done))
                bar(self.done)
                if time.perf_counter() - begun < SOON:
                    count = min(2 * count, MOST_EPISODES)

    def advance(self, count: int) -> None:
        """Run `count` more episodes, at most up to the end."""
        own_turn(self.learner, lambda: self._advance(count))

    def _advance(self, count: int) -> None:
        begun = time.perf_counter()
        self._check_unmoved()
        if self._open is not None:  # the last call was interrupted
            self._close(self._open)
        self.watcher.ready()
        try:
            with held_back() as let_through:
                self._let_through = let_through
                self._play(min(self.last - self.first, self.done + whole_number("the number of episodes", count, 1)))
        finally:
            self._reached = self._learner_episode
        self._check_untouched()
        self.seconds += time.perf_counter() - begun

    def _check_untouched(self) -> None:
        """Refuse scores of a learner that is not ours, if it has changed the world or they are no numbers."""
        if self._seal is not None:
            self._seal.check(self.learner)
            scores = self.referee.scores
            if not np.isfinite(scores.loss[0]) or not np.isfinite(scores.costs).all():
                raise InvalidInput(f"the losses and costs of {type(self.learner).__name__} are not finite")

    def _check_unmoved(self) -> None:
        """Scores would be wrong without a word if somebody else had played episodes in between."""
        if self._broken:
            raise InvalidInput(f"{self._broken}; begin a new simulation")
        if self._learner_episode != self._reached:
            raise InvalidInput(
                f"the learner is at episode {self._learner_episode}, this simulation left it at {self._reached}: it "
                "has played elsewhere; begin a new simulation"
            )

    def _play(self, stop: int) -> None:
        while self.done < stop:
            self._let_through()
            if self.way == "compiled":
                self._run_block(stop)
            elif isinstance(self.losses, AdaptiveLosses):
                self._reached = self._learner_episode
                t = self.done
                loss = np.asarray(self.losses.loss(t))
                self._check_unmoved()
                plan, rows = self._step(loss)
                self.losses.observe(t, plan.policy.probabilities, rows)
            elif self.losses is None:
                self._step(None)
            else:
                block = self._block(stop)
                for i in block.index:
                    self._step(block.patterns[i])
                    self._let_through()

    def _run_block(self, stop: int) -> None:
        if isinstance(self.losses, Pursuit):
            before = self.done
            try:
                self.watcher.run_block(stop - before, self.losses)  # type: ignore[attr-defined]
            finally:
                self.losses.skip(self.done - before)
        else:
            self.watcher.run_block(self._block(stop))  # type: ignore[attr-defined]

    def _block(self, stop: int) -> Any:
        size = min(stop - self.done, max(1, BLOCK_NUMBERS // self.layout.num_rows))
        return self.losses.block(self.layout, self.first + self.done, size)

    def _step(self, loss: FloatArray | None) -> tuple[Plan, Any]:
        """One episode through `plan` and `observe`; returns the plan and the visited rows."""
        referee, plan = self.referee, self._planned()
        self._last = plan
        referee.add(plan, loss)  # type: ignore[arg-type]
        self.watcher.planned()
        episode = self._played(plan, loss)
        if loss is not None:
            self.watcher.played(loss, episode.costs)
        rows = episode.rows if self.ours else episode.rows.copy()
        try:
            self._ask("observe", self.done - 1, episode)
        except BaseException:
            if isinstance(self.watcher, NullWatcher):  # nobody knows what it has learnt of this episode
                self._broken = f"{type(self.learner).__name__}.observe failed in episode {self.done - 1}"
            raise
        finally:
            if self.watcher.learnt(rows):
                self._open = plan
        self._close(plan)
        return plan, rows

    def _played(self, plan: Plan, loss: FloatArray | None) -> Episode:
        """The episode of a plan; if an environment fails in it, the learner is told what was seen of it."""
        try:
            return self.referee.play(plan, loss)  # type: ignore[arg-type]
        except BaseException as error:
            if hasattr(self.world, "unfinished"):
                self._broken = f"the environment failed in episode {self.done - 1}"
                tell_failure(self.learner, plan, self.world.unfinished, error)
            raise

    def _planned(self) -> Plan:
        """The plan of the next episode; that of a learner that is not ours is copied and checked."""
        plan = self._ask("plan", self.done)
        if not isinstance(plan, Plan):
            raise InvalidInput(f"plan of {type(self.learner).__name__} returns a Plan, not {type_name(plan)}")
        return plan if self.ours else self._copies.of(plan, self.done)

    def _ask(self, method: str, episode: int, *arguments: Any) -> Any:
        """Call a method of the learner; it may fail, but it may not end the program."""
        try:
            return getattr(self.learner, method)(*arguments)
        except (SystemExit, GeneratorExit) as error:
            raise HedgerowError(
                f"{type(self.learner).__name__}.{method} raised {error!r} in episode {episode}: a learner may raise "
                "an error, but must not end the program"
            ) from error

    def _close(self, plan: Plan) -> None:
        self.watcher.finish()
        mark = self.referee.keep()
        self._open = None
        self.watcher.closed(mark)
        if mark >= 0:
            self._notes.append((mark, plan.notes))
        self.on_episode(self.done)

    def result(self) -> Run:
        """The scores so far."""
        run: Run = own_turn(self.learner, self._result)
        return run

    def _result(self) -> Run:
        return make_run(self)

    def last_policy(self) -> Policy | None:
        """The learner's own policy, if it tells one of this world; else the one that was played last."""
        own, played = getattr(self.learner, "policy", None), None if self._last is None else self._last.policy
        if isinstance(own, np.ndarray) and own.shape == (self.layout.num_rows,):
            own = Policy.trusted(self.layout, own)
        if not isinstance(own, Policy):
            return played
        try:
            return own if self.ours else self._copies.policy(own)
        except InvalidInput:
            return played

    def columns(self, reached: int) -> dict[str, Any]:
        """What the learner noted at the first `reached` checkpoints: arrays (reached,) by name; NaN where nothing."""
        names = dict.fromkeys(name for _, notes in self._notes for name in notes)
        noted = {name: np.full(reached, np.nan) for name in names}
        for mark, notes in self._notes:
            for name, value in notes.items():
                noted[name][mark] = value
        return {**noted, **self.referee.columns(reached), **self.watcher.columns(reached)}
