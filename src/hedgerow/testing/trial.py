"""A learner in a small world, watched: what it plans, what it is told, how long it takes.

The worlds: one step, no constraint, three constraints, a sparse support. The chance of a trial depends on its seed
alone, so that two trials of equal learners meet the same episodes.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.api import Plan, feedback_of, plan_of
from hedgerow.losses.oblivious import Fixed
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Policy, UniformMixture
from hedgerow.model.view import View
from hedgerow.planning import offline
from hedgerow.simulation.referee import Copies, Seal

MARGIN = 0.25
"""Between the thresholds and the least costs: every world has a strictly safe policy."""


class SmallWorld(NamedTuple):
    """A world and what it is there for."""

    name: str
    cmdp: CMDP


def small_worlds() -> tuple[SmallWorld, ...]:
    """All of them, the same in every process, and new ones in every call: learners that are checked may damage them."""
    # Each has a layout of its own: a learner that damages one must not damage the others.
    plain = [Layout((1, 3, 2, 1), 2) for _ in range(3)]
    short, thin = Layout((1, 1), 3), _sparse_layout()
    return (
        SmallWorld("m = 1", _world(1, plain[0], 1)),
        SmallWorld("m = 0", _world(2, plain[1], 0)),
        SmallWorld("m = 3", _world(3, plain[2], 3)),
        SmallWorld("L = 1", _world(4, short, 1)),
        SmallWorld("sparse", _world(5, thin, 1)),
    )


def _world(seed: int, layout: Layout, m: int) -> CMDP:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 8, layout.num_triples).astype(np.float64)
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    costs = BernoulliCosts(rng.integers(1, 16, (m, layout.num_rows)) / 16.0)
    free = CMDP(layout, transitions, costs, np.full(m, float(layout.steps)))
    least = offline.slater(free).costs if m else np.zeros(0)
    return free.with_thresholds(np.minimum(least + MARGIN, layout.steps))


def _sparse_layout() -> Layout:
    """Some rows with one successor, some with two, none with all three."""
    first = np.array([[[1, 1, 0], [0, 1, 1]]], dtype=bool)
    second = np.array([[[1, 0], [0, 1]], [[1, 1], [1, 0]], [[0, 1], [1, 1]]], dtype=bool)
    return Layout.from_support([first, second, np.ones((2, 2, 1), dtype=bool)])


Factory = Callable[..., Any]
PACKAGE = Path(__file__).resolve().parent.parent


class Fault(Exception):  # noqa: N818 - read as a sentence
    """What a check found: what was done, what came back, what is expected, what to do about it."""

    def __init__(self, done: str, came_back: str, expected: str, advice: str) -> None:
        super().__init__(f"{done}: {came_back}; expected: {expected}")
        self.done, self.came_back, self.expected, self.advice = done, came_back, expected, advice

    def __reduce__(self) -> tuple[Any, ...]:
        return Fault, (self.done, self.came_back, self.expected, self.advice)

    def data(self) -> dict[str, str]:
        """The four parts by name."""
        return {"done": self.done, "came back": self.came_back, "expected": self.expected, "what to do": self.advice}


class NotApplicable(Exception):  # noqa: N818 - read as a sentence
    """The learner's own words for why it is not made for a world: it raised `InvalidInput` when it was built."""


class Snapshot(NamedTuple):
    """The content of a plan, byte for byte."""

    mixture: tuple[tuple[float, bytes], ...]
    policy: bytes
    notes: tuple[tuple[str, bytes], ...]


ORDERLY = (HedgerowError, ValueError, RuntimeError, StopIteration)
"""The errors by which a learner may refuse a call."""
REFUSAL = "an error such as hr.errors.InvalidInput"


class Trial:
    """A learner made by `factory` for `episodes` episodes of a small world."""

    def __init__(
        self,
        factory: Factory,
        world: SmallWorld,
        episodes: int,
        delta: float,
        seed: int,
        options: Mapping[str, Any],
        learner: Any = None,
    ) -> None:
        self.factory, self.world, self.episodes, self.delta, self.seed = factory, world, episodes, delta, seed
        self.options = options
        self.view = world.cmdp.view()
        self.rng = np.random.default_rng([seed, episodes])
        self.learner = build(factory, world.cmdp, episodes, delta, seed, options) if learner is None else learner
        self.plans: list[tuple[Plan, Snapshot]] = []
        self.seconds = 0.0
        self._copies, self._seal = Copies(self.learner, self.view.layout), Seal(world.cmdp)

    def again(self, seed: int | None = None) -> Trial:
        """A second trial, of a fresh learner."""
        own = self.seed if seed is None else seed
        return Trial(self.factory, self.world, self.episodes, self.delta, own, self.options)

    def run(self, count: int) -> Trial:
        """Play so many episodes."""
        for _ in range(count):
            self.observe(self.episode(self.plan()))
        return self

    def plan(self) -> Plan:
        made = self.call("plan()", self.learner.plan)
        try:
            plan = plan_of(self.learner, made)
        except InvalidInput as error:
            wrong = f"it returned an object of the class {type(made).__name__}"
            raise Fault("plan()", wrong, "a hedgerow Plan or Policy", "return hr.Plan(policy)") from error
        try:
            self._copies.of(plan, len(self.plans))
        except InvalidInput as error:
            raise Fault(
                f"plan() in episode {len(self.plans)}",
                str(error.__cause__ or error),
                "policies and weights that are distributions, on the layout of the world; what is played is drawn from "
                "the mixture that is scored",
                "hr.Policy(view, array) checks it, and hr.Mixture(...); play mixture.draw(rng)",
            ) from error
        self.plans.append((plan, snapshot(plan)))
        return plan

    def observe(self, episode: Episode) -> None:
        self.call("observe(episode)", self.learner.observe, episode)
        try:
            self._seal.check(self.learner)
        except InvalidInput as error:
            raise Fault("observe(episode)", str(error), "the world as it was", "work on copies") from error
        own = self.learner.view
        if not isinstance(own, View) or own.layout != self.view.layout:
            raise Fault(
                "observe(episode)", "learner.view is another one now", "the view that it was built on", "keep it"
            )

    def episode(self, plan: Plan) -> Episode:
        """What happens when the policy of the plan is played; losses are drawn anew, and are those of an adversary."""
        cmdp, layout = self.world.cmdp, self.view.layout
        loss = (self.rng.random(layout.num_rows) < 0.5).astype(np.float64)
        costs, rows = cmdp.costs.sample(self.rng), _path(cmdp, plan.policy, self.rng)
        everything: dict[str, Any] = {}
        if feedback_of(self.learner) == "full":
            everything = {"all_losses": loss, "all_costs": costs.T}
        return Episode(self.view, rows, loss[rows], costs[:, rows].T, **everything)

    def call(self, what: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the learner; whatever it raises is a fault, also sys.exit()."""
        began = perf_counter()
        try:
            return method(*arguments)
        except (Exception, SystemExit, GeneratorExit) as error:
            _blame(what, error, f"episode {len(self.plans)} of {self.episodes}")
        finally:
            self.seconds += perf_counter() - began


def may_refuse(done: str, expected: str, advice: str, call: Callable[[], Any]) -> tuple[Any, str]:
    """What the call returns, and how it was refused; any error that is not orderly is a fault."""
    try:
        return call(), ""
    except ORDERLY as error:
        return None, f"refused: {type(error).__name__}"
    except (Exception, SystemExit) as error:
        raise Fault(done, f"it raised {type(error).__name__}: {error}", expected, advice) from error


def build(factory: Factory, cmdp: CMDP, episodes: int, delta: float, seed: int, options: Mapping[str, Any]) -> Any:
    """factory(view, episodes, delta, seed=seed): without delta or a seed if it takes none; with a baseline, the largest
    margin, the world or losses if it needs them.
    """
    try:
        known: Mapping[str, inspect.Parameter] = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        known = {}
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    extra: dict[str, Any] = {"seed": seed} if "seed" in known or (open_ended and "seed" not in options) else {}
    needed = {name for name, parameter in known.items() if parameter.default is parameter.empty} - set(options)
    if "baseline" in needed:
        safest = offline.slater(cmdp)
        extra |= {"baseline": safest.policy, "baseline_costs": safest.costs} if "baseline_costs" in known else {
            "baseline": safest
        }  # fmt: skip
    if "slater" in known and "slater" not in options:
        extra["slater"] = offline.slater(cmdp).margin
    if "world" in known and "world" not in options:
        extra["world"] = cmdp
    # Not the losses of the episodes: a learner that is given wrong ones must still play.
    if "losses" in known and "losses" not in options:
        extra["losses"] = Fixed(np.full(cmdp.layout.num_rows, 0.5))
    surety = () if "episodes" in known and "delta" not in known and not open_ended else (delta,)
    try:
        return factory(cmdp.view(), episodes, *surety, **extra, **options)
    except (Exception, SystemExit, GeneratorExit) as error:
        if isinstance(error, InvalidInput) and _raised_by(factory, error):
            raise NotApplicable(str(error)) from error
        name = getattr(factory, "__name__", type(factory).__name__)
        _blame(f"{name}(view, {episodes}, {delta}, {', '.join(extra)})", error, "construction")


def snapshot(plan: Plan) -> Snapshot:
    """The content of a plan as it is now."""
    mixture = plan.mixture
    policies = [(1.0, mixture)] if isinstance(mixture, Policy) else mixture.policies()
    return Snapshot(
        tuple((weight, policy.probabilities.tobytes()) for weight, policy in policies),
        plan.policy.probabilities.tobytes(),
        tuple((name, np.float64(value).tobytes()) for name, value in sorted(plan.notes.items())),
    )


def policies_of(made: Plan) -> list[Policy]:
    """The policies of a plan that have positive probability."""
    if isinstance(made.mixture, Policy):
        return [made.mixture]
    if isinstance(made.mixture, UniformMixture):
        return [Policy.trusted(made.mixture.layout, row) for row in made.mixture.table]
    return [policy for weight, policy in made.mixture.policies() if weight > 0.0]


def demand_same(
    one: Trial, other: Trial, when: str, advice: str = "a plan may depend on the seed and the episodes only"
) -> None:
    """Both trials have the same plans so far."""
    for t, ((_, mine), (_, yours)) in enumerate(zip(one.plans, other.plans, strict=True)):
        if mine != yours:
            part = next(name for name in mine._fields if getattr(mine, name) != getattr(yours, name))
            raise Fault(f"two runs, {when}", f"the {part} of episode {t} differs", "the same bits", advice)


def _path(cmdp: CMDP, policy: Policy, rng: np.random.Generator) -> Any:
    layout, state, rows = cmdp.layout, 0, []
    for _ in range(layout.steps):
        row = state * layout.num_actions + policy.draw_position(state, rng)
        triples = slice(int(layout.row_start[row]), int(layout.row_start[row + 1]))
        state = int(rng.choice(layout.successor[triples], p=cmdp.transitions[triples]))
        rows.append(row)
    return np.array(rows)


def _blame(what: str, error: BaseException, when: str) -> NoReturn:
    """A fault for an exception of the learner, with the place in its code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _of_a_library(Path(frame.filename))] or frames
    place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    raise Fault(
        f"{what} in {when}",
        f"it raised {type(error).__name__}: {error}{place}",
        "no error",
        "run the learner on this world by hand; a learner must work for every view",
    ) from error


def _raised_by(factory: Factory, error: Exception) -> bool:
    """Whether the error is raised in the learner's own file, not in a library that it called with wrong arguments."""
    try:
        own = inspect.getsourcefile(factory)
    except TypeError:
        return False
    return own is not None and traceback.extract_tb(error.__traceback__)[-1].filename == own


def _of_a_library(file: Path) -> bool:
    """Whether an error is better shown at the line of the learner that called this code."""
    return "site-packages" in file.parts or file.is_relative_to(PACKAGE)
