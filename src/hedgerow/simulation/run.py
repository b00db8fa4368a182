"""`simulate`: run a learner in a world against an adversary, and score it.

    run = simulate(world, learner, losses, seed=0)
    run.episodes, run.regret, run.violation, run.safe            # curves at about log-spaced episodes
    run["mixing_weight"]                                         # what this learner notes of its own

Any learner that can `plan` and `observe` will do. One whose watcher runs compiled blocks does so where world and
adversary are compiled as well; all others run episode by episode. Both ways give the same bits, and `run.way` says
which one it was.

Regret counts from the final comparator q*, the offline optimum of the mean loss of all episodes of the run:
regret after t episodes = sum_{s<=t} l_s^T (q_s - q*).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, frozen, num_episodes, seed_number, type_name, unmasked, whole_number
from hedgerow.display.screen import progress_bar
from hedgerow.display.terms import USUAL, Terms
from hedgerow.environments.play import Environment
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.api import Learner, Plan, feedback_of, plan_of, tell_failure
from hedgerow.learners.base import exclusive_as
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.watch import Compiled, Watched, Watcher
from hedgerow.losses import naming
from hedgerow.losses.adaptive import AdaptiveLosses, Pursuit
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.losses.oblivious import Fixed, checked
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.model.episode import Episode
from hedgerow.model.occupancy import checked_loss, occupancy, row_occupancy
from hedgerow.model.policy import Policy
from hedgerow.model.view import View, same_layout
from hedgerow.registry.signatures import explained
from hedgerow.simulation.referee import Copies, Exact, Modelled, Sampled, Seal, is_ours, may_watch
from hedgerow.simulation.result import Run, declared_columns, make_run, true_cmdp

NUM_MARKS = 200
"""About so many checkpoints a run has, unless it is asked for others."""
BLOCK_NUMBERS = 2**20
"""The largest number of losses that a block holds: 8 MB."""
FEWEST_EPISODES, MOST_EPISODES = 1, 10_000
"""Of a block: how often progress is shown, and how soon an interrupt is heard. A run begins with few, and doubles them
while they take less than SOON seconds."""
SOON = 0.2
OnBlock = Callable[[Run], object]
"""Called with the run so far"""


@explained
def simulate(
    world: Any,
    learner: Learner,
    losses: Any = None,
    *,
    episodes: int | float | str | None = None,
    seed: int = 0,
    progress: bool = True,
    step_wise: bool = False,
    marks: str | ArrayLike = "log",
    audit: bool = False,
    on_block: OnBlock | None = None,
) -> Run:
    """Run a learner in a world against an adversary, and score it.

    The learner plays as many episodes as it was made for, or `episodes` more. Any object with `view`, `plan` and
    `observe` is a learner. Regret is counted from the best feasible policy for the mean loss of the whole run.

    Args:
        world: A CMDP, a world of the catalogue, or an environment of your own with `view()` and `play(policy, rng)`. In
            the latter only what was observed is known.
        learner: The learner, built on this world or on its view.
        losses: An adversary of `hr.losses` or one of your own; its name, or name and parameters, as in an experiment:
            "switching", {"name": "switching", "period": 500}; or one loss for all episodes, (num_rows,) or a table
            (states, actions). None takes the world's own loss; it must be None for an environment of your own.
        episodes: How many episodes to play: 100_000, 1e5 or "100k"; None plays all that the learner was made for.
        seed: Seed of everything random in the world, a whole number of at least 0, and of losses that are given by
            name. The learner has its own.
        progress: Whether to show a progress bar, in a terminal or a notebook.
        step_wise: Whether to call `plan` and `observe` for each episode instead of a compiled loop, with the same
            result.
        marks: After how many episodes the curves are kept: "log" for about 200 log-spaced checkpoints, "all", or an
            ascending list.
        audit: Whether to watch the bounds of all pairs as well, for learners that have such bounds. This is slower.
        on_block: A function that is called with the `Run` so far, between blocks of episodes: after 1, 3, 7, ... of
            them, then about every 0.2 seconds, and after the last. It changes nothing about the run; an exception in it
            ends the run between two episodes. `hr.hooks` has some.

    Returns:
        The scores at the checkpoints.

    Raises:
        InvalidInput: If the learner was built for another world, if arguments are mixed up, or if a loss is outside
            [0, 1].

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("random-layered", layers=(1, 2, 1), actions=2, constraints=1)
        >>> learner = hr.SVOPS(world, episodes=100)
        >>> run = hr.simulate(world, learner, hr.losses.Switching(period=10), progress=False)
        >>> run.way, int(run.episodes[-1]), run.regret.shape == run.episodes.shape
        ('compiled', 100, True)
    """
    if on_block is not None and not callable(on_block):
        raise InvalidInput(f"on_block is a function of the run so far, not {type_name(on_block)}")
    simulation = Simulation(
        world, learner, losses, seed, episodes=episodes, step_wise=step_wise, marks=marks, audit=audit
    )  # fmt: skip
    return simulation.run(progress=progress, on_block=on_block)


class Simulation:
    """A run in progress: `advance` as far as wanted, then `result`. `watch` are further options of the watcher."""

    def __init__(
        self,
        world: Any,
        learner: Learner,
        losses: Any = None,
        seed: int = 0,
        *,
        episodes: int | float | str | None = None,
        step_wise: bool = False,
        marks: str | ArrayLike = "log",
        audit: bool = False,
        watch: Mapping[str, Any] | None = None,
        baseline: ArrayLike | None = None,
        terms: Terms | None = None,
    ) -> None:
        """`baseline` is a policy to compare with: by default the world's own, or the one that the learner was given."""
        environment = environment_of(world)
        self.world, self.learner, self.seed = environment, learner_of(learner, losses), seed_number(seed)
        if not isinstance(environment, CMDP) and losses is not None:
            raise InvalidInput("an environment of your own has its own losses; leave `losses` out")
        view = environment.view()
        check_match(view, learner)
        self.layout, self.ours = view.layout, is_ours(learner)
        self.terms: Terms = getattr(world, "terms", USUAL) if terms is None else terms
        own = getattr(getattr(world, "baseline", None), "policy", None)
        given = getattr(learner, "baseline", None) if self.ours else None
        self.baseline = baseline_of(environment, (baseline, own, given))
        self._copies = Copies(learner, view.layout)
        self._seal = Seal(environment) if isinstance(environment, CMDP) and not self.ours else None
        self.first = self._reached = self._learner_episode
        self.last = self.first + self._length(episodes)
        self.losses: Any = None
        if isinstance(environment, CMDP):
            self.losses = adversary_of(losses, world, self.seed, self.last - self.first)
        self.referee = self._referee(checked_marks(marks, self.last - self.first))
        self.watcher: Watcher = Watcher()
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
            raise InvalidInput("full feedback needs a CMDP: an environment only reports what happened on the way")
        if true_cmdp(self.world) is not None:
            return Modelled(self.world, self.seed, marks, private=not self.ours)
        return Sampled(self.world, self.seed, marks)

    @property
    def _learner_episode(self) -> int:
        """How many episodes the learner says that it has observed; those of this run if it does not say."""
        own = getattr(self.learner, "episode", None)
        return int(own) if isinstance(own, int | np.integer) else getattr(self, "first", 0) + self.done

    def _length(self, episodes: int | float | str | None) -> int:
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

    def run(self, progress: bool = False, on_block: OnBlock | None = None) -> Run:
        """Run to the end and score, as one operation on the learner; `on_block` is called between blocks."""

        def whole() -> Run:
            self._finish(progress, on_block)
            return self._result()

        run: Run = own_turn(self.learner, whole)
        return run

    def finish(self, progress: bool = False) -> None:
        """Run to the end; `progress` shows a bar in a terminal."""
        own_turn(self.learner, lambda: self._finish(progress))

    def _finish(self, progress: bool, on_block: OnBlock | None = None) -> None:
        total = self.last - self.first
        count = FEWEST_EPISODES
        with progress_bar("episodes", total, shown=progress) as bar:
            while self.done < total:
                begun = time.perf_counter()
                self._advance(min(count, total - self.done))
                bar(self.done)
                if time.perf_counter() - begun < SOON:
                    count = min(2 * count, MOST_EPISODES)
                if on_block is not None:
                    on_block(self._result())

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
            with HeldBack() as signals:
                self._let_through = signals.let_through
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
        """Scores would be silently wrong if episodes had been played elsewhere in between."""
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
            if type(self.watcher) is Watcher:  # which cannot say what it has learnt of this episode
                self._broken = f"{type(self.learner).__name__}.observe failed in episode {self.done - 1}"
            raise
        finally:
            if self.watcher.learnt(rows):
                self._open = plan
        self._close(plan)
        return plan, rows

    def _played(self, plan: Plan, loss: FloatArray | None) -> Episode:
        """The episode of a plan; if an environment fails in it, what was seen of it is reported to the learner."""
        try:
            return self.referee.play(plan, loss)  # type: ignore[arg-type]
        except BaseException as error:
            if hasattr(self.world, "unfinished"):
                self._broken = f"the environment failed in episode {self.done - 1}"
                tell_failure(self.learner, plan, self.world.unfinished, error)
            raise

    def _planned(self) -> Plan:
        """The plan of the next episode; that of a learner that is not ours is copied and checked."""
        plan = plan_of(self.learner, self._ask("plan", self.done))
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
        """The learner's own policy, if it has one of this world; else the one that was played last."""
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


# Arguments, and signals -----------------------------------------------------------------------------------------------


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


# Hold Ctrl-C and SIGTERM back until an episode is over.
#
# An episode is scored, played, learnt and noted, one after the other. An exception of a signal handler between two of
# these would leave scores of an episode that the learner has not seen, or a learner of the user's that has seen half
# of one: the run could not go on. So handlers written in Python wait for its end. A second signal does not wait: a
# learner of the user's may never return. Nothing crashes then, but the simulation may have to be begun anew.


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HeldBack:
    """Holds signals back in a `with` block; `let_through` calls the handlers of those that have come.

    No generator: a signal between the two halves of one would leave it suspended, with its handlers installed. Whenever
    an exception leaves through `_hold`, the handlers are restored before it; where that fails, because still another
    signal came, `_hold` is a mere passage, because nothing is `active` any more.
    """

    def __init__(self) -> None:
        self.held: list[tuple[int, FrameType | None]] = []
        self.handlers: dict[int, Any] = {}
        self.active = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # handlers only run there
            found = {number: signal.getsignal(number) for number in SIGNALS}
            self.handlers = {number: handler for number, handler in found.items() if callable(handler)}
        self.active = True
        try:
            self._install(dict.fromkeys(self.handlers, self._hold))
        except BaseException:
            self.active = False
            self._install(self.handlers)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.active = False
        self._install(self.handlers)
        self.let_through()

    def let_through(self) -> None:
        """Call the handlers of what was held back; cheap if there is nothing."""
        while self.held:
            number, frame = self.held.pop(0)
            self.handlers[number](number, frame)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self.active and not self.held:
            self.held.append((number, frame))
            return
        held, self.active = self.active, False
        self._install(self.handlers)
        self.handlers[number](number, frame)  # which usually raises
        if held:
            self.active = True
            self._install(dict.fromkeys(self.handlers, self._hold))

    def _install(self, handlers: dict[int, Any]) -> None:
        try:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        except BaseException:  # of a handler: the others must not be forgotten
            self._install(self.handlers)
            raise


# Check the arguments of `simulate`: worlds, adversaries and learners of your own, and arguments that are mixed up.


def environment_of(world: Any) -> CMDP | Environment:
    """The CMDP of a world, or an environment of the user's own."""
    for found in (world, getattr(world, "cmdp", None)):
        if isinstance(found, CMDP):
            return found
    if isinstance(world, type) or not isinstance(world, Environment):
        raise _misplaced(
            "first", "a world: a CMDP, an entry of the catalogue, or what has view() and play()", world, ""
        )
    return world


def learner_of(learner: Any, losses: Any) -> Learner:
    """`learner`, if it can plan and observe; `losses` may be the learner, in the order of former releases."""
    if isinstance(learner, type) or not isinstance(learner, Learner):
        lacks = [name for name in ("view", "plan", "observe") if not hasattr(learner, name)]
        advice = "" if isinstance(learner, type) or len(lacks) == 3 else f"; it has no {' and no '.join(lacks)}"
        if isinstance(losses, Learner) and not isinstance(losses, type):
            advice = "; the learner comes before the losses, which may be left out"
        raise _misplaced("second", "a learner: what has view, plan() and observe(episode)", learner, advice)
    return learner


def limit_of(learner: Learner) -> int | None:
    """The number of episodes that a learner was made for: its own, or that of the `Statistics` that it keeps."""
    own = getattr(learner, "episodes", None)
    kept = [value.episodes for value in getattr(learner, "__dict__", {}).values() if isinstance(value, Statistics)]
    limits = [limit for limit in (own, *kept) if limit is not None]
    return min(limits, default=None)


def adversary_of(losses: Any, world: Any, seed: int, episodes: int) -> Any:
    """An adversary whose every loss is in [0, 1]; None stands for the world's own loss, a text for a name."""
    own = getattr(world, "loss", None)
    if losses is None:
        if own is None:
            raise InvalidInput(
                "this world has no loss of its own: say which losses to play, simulate(world, learner, losses), such "
                "as hr.losses.Switching() or 'iid'"
            )
        losses = own
    if isinstance(losses, str | Mapping):
        return naming.named(losses, seed=seed, world=cmdp_of(world), own_loss=own, episodes=episodes)
    if isinstance(losses, ObliviousLosses | Pursuit):
        return losses
    if isinstance(losses, type | CMDP | View | Learner) or isinstance(getattr(losses, "cmdp", None), CMDP):
        inside = "; pass its own loss, .loss" if hasattr(losses, "loss") and hasattr(losses, "cmdp") else ""
        raise _misplaced("third", "the losses, an adversary of hedgerow.losses or an array", losses, inside)
    if isinstance(losses, np.ndarray | list | tuple):
        return Fixed(checked_loss(environment_of(world).view().layout, unmasked("the loss", losses)))
    return checked(losses)


def baseline_of(world: CMDP | Environment, candidates: Iterable[Any]) -> FloatArray | None:
    """The occupancy (num_rows,) of the first policy among the candidates; None without one, or without a truth."""
    cmdp, given = true_cmdp(world), next((each for each in candidates if each is not None), None)
    if cmdp is None or given is None:
        return None
    policy = getattr(given, "probabilities", given)
    return frozen(row_occupancy(cmdp.layout, occupancy(cmdp.layout, cmdp.transitions, policy)))


def check_match(view: View, learner: Learner) -> None:
    """Refuse a learner that was built for another world."""
    own = learner.view
    if not isinstance(own, View):
        raise InvalidInput(f"the view of a learner is what cmdp.view() returns, not {type_name(own)}")
    named = same_layout(own.layout, view.layout) and own.constraint_names == view.constraint_names
    if not named or not np.array_equal(own.thresholds, view.thresholds):
        raise InvalidInput("the learner was built for another world: build it on the view() of the one to simulate")


def _misplaced(place: str, expected: str, given: object, advice: str) -> InvalidInput:
    if isinstance(given, type):
        advice = f"; make an object of it, {given.__name__}(...)"
    order = "the order is simulate(world, learner, losses)"
    return InvalidInput(f"the {place} argument of a simulation is {expected}, not {type_name(given)}{advice}; {order}")


def own_turn(learner: Any, function: Callable[[], Any]) -> Any:
    """Call `function` while holding the lock of the learner, if it has one.

    Between episodes the learner is at rest, and an adversary may save it.
    """
    if not hasattr(learner, "turn"):
        return function()
    return exclusive_as("simulate", rests=True)(lambda _: function())(learner)
