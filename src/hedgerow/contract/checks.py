"""What is asked of a learner: one function for each check, which raises a `Fault` or returns a remark.

Every check gets a fresh trial. The first two, construction and plan, are the ground of all others: where they fail, the
others are not tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow import files
from hedgerow.contract.trial import Fault, Trial, snapshot
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.protocol import Limited, Plan, Resumable, check_note_names, feedback_of
from hedgerow.model.cmdp import View
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.policy import Policy, UniformMixture

ORDERLY = (HedgerowError, ValueError, RuntimeError, StopIteration)
"""The errors by which a learner may refuse a call."""
Check = Callable[[Trial], str]


def construction(trial: Trial) -> str:
    """It is built on a view and has `view`, `plan` and `observe`."""
    learner = trial.learner
    for name in ("view", "plan", "observe"):
        if not hasattr(learner, name):
            raise Fault(
                "looking at the learner", f"it has no {name!r}", "view, plan() and observe(episode)", f"add {name}"
            )
    if not isinstance(learner.view, View) or learner.view.layout != trial.view.layout:
        raise Fault("learner.view", f"it is {learner.view!r}", "the view that it was built on", "self.view = view")
    try:
        feedback_of(learner)
    except InvalidInput as error:
        raise Fault("learner.feedback", str(error), "'bandit' or 'full'", "leave it out for bandit feedback") from error
    return ""


def plan(trial: Trial) -> str:
    """Its plans have the shapes of the world, probabilities that sum to 1, and finite notes."""
    layout = trial.view.layout
    for _ in range(trial.episodes):
        made = trial.plan()
        if made.policy.layout != layout:
            raise Fault(
                "plan()", f"a policy on {made.policy.layout!r}", f"one on {layout!r}", "use the layout of self.view"
            )
        for policy in [made.policy, *_policies(made)]:
            try:
                checked_policy(layout, policy)
            except InvalidInput as error:
                raise Fault(
                    "plan()",
                    str(error),
                    "a distribution over actions in each state",
                    "hr.Policy(view, array) checks it",
                ) from error
        _check_notes(made)
        trial.observe(trial.episode(made))
    return ""


def _check_notes(made: Plan) -> None:
    for name, value in made.notes.items():
        if not np.isfinite(value):
            raise Fault(f"notes[{name!r}] of a plan", f"{value}", "a finite number", "leave out notes without a value")
    try:
        check_note_names(made.notes)
    except InvalidInput as error:
        raise Fault("notes of a plan", str(error), "names of its own", "rename the note") from error


def mixture(trial: Trial) -> str:
    """The policy that is played is a part of the mixture that is scored."""
    for t in range(trial.episodes):
        made = trial.plan()
        played = made.policy.probabilities
        if not any(np.array_equal(policy.probabilities, played) for policy in _policies(made)):
            raise Fault(
                f"plan() in episode {t}",
                "its policy is no part of its mixture with positive probability",
                "plan.policy drawn from plan.mixture",
                "hr.Plan(mixture, mixture.draw(rng)); losses and safety are scored for the mixture",
            )
        trial.observe(trial.episode(made))
    return ""


def double_plan(trial: Trial) -> str:
    """A second plan before `observe` is refused or the same, and changes nothing."""
    twin, remark = trial.again(), ""
    for t in range(trial.episodes):
        made, expected = trial.plan(), twin.plan()
        _same(trial, twin, "after plan() had been called twice in the episodes before")
        try:
            second = trial.learner.plan()
        except ORDERLY as error:
            remark = f"refused: {type(error).__name__}"
        except Exception as error:
            raise Fault(
                f"plan() twice in episode {t}",
                f"the second raised {type(error).__name__}: {error}",
                "the same plan, or an error such as hr.InvalidInput",
                "keep the plan until observe is called",
            ) from error
        else:
            remark = "the same plan"
            if not isinstance(second, Plan) or not _equal_plans(made, second):
                raise Fault(
                    f"plan() twice in episode {t}",
                    "two different plans",
                    "the same plan, or an error such as hr.InvalidInput",
                    "keep the plan, with its coin, until observe is called",
                )
        trial.observe(trial.episode(made))
        twin.observe(twin.episode(expected))
    return remark


def observe_first(trial: Trial) -> str:
    """An episode that nobody planned is refused or learnt from; either way the learner goes on."""
    twin = trial.again()
    episode = twin.episode(Plan(Policy.uniform(trial.view)))
    try:
        trial.learner.observe(episode)
    except ORDERLY as error:
        trial.run(2)
        return f"refused: {type(error).__name__}"
    except Exception as error:
        raise Fault(
            "observe(episode) before any plan()",
            f"it raised {type(error).__name__}: {error}",
            "an error such as hr.InvalidInput, or that it learns from the episode",
            "refuse what was not planned, or do not rely on a plan in observe",
        ) from error
    trial.run(2)
    return "learnt from"


def same_seed(trial: Trial) -> str:
    """Equal seeds and equal episodes give equal plans, bit for bit."""
    twin = trial.again()
    for _ in range(trial.episodes):
        for one in (trial, twin):
            one.run(1)
        _same(trial, twin, "built and treated alike", "draw all chance from the seed: numpy.random.default_rng(seed)")
    return ""


def alone(trial: Trial) -> str:
    """Other learners of its kind, at work at the same time, change nothing: there is no state outside of it."""
    undisturbed = trial.again().run(trial.episodes)
    strangers = [trial.again(trial.seed + 1 + k) for k in range(2)]
    for t in range(trial.episodes):
        strangers[t % 2].run(1)
        trial.run(1)
    advice = "keep everything in self: no module variables, no class attributes, no mutable default arguments"
    _same(trial, undisturbed, "with others of its kind at work in between", advice)
    return ""


def global_random(trial: Trial) -> str:
    """It leaves the global random states of numpy and Python alone, and does not depend on them."""
    kept_numpy, kept_python = np.random.get_state(), random.getstate()  # noqa: NPY002 - the state that is looked at
    advice = "use a numpy.random.Generator of your own, made from the seed"
    try:
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        before = _global_state()
        trial.run(trial.episodes)
        if _global_state() != before:
            raise Fault("a run", "the global random state has changed", "it is as before", advice)
        np.random.seed(2)  # noqa: NPY002
        random.seed(2)
        _same(trial, trial.again().run(trial.episodes), "under another global random state", advice)
    finally:
        np.random.set_state(kept_numpy)  # noqa: NPY002
        random.setstate(kept_python)
    return ""


def restored(trial: Trial) -> str:
    """If it has `state` and `restored`: written down in the middle of a run it goes on bit for bit."""
    learner = trial.learner
    if not isinstance(learner, Resumable):
        return "not offered"
    half = trial.episodes // 2
    trial.run(half)
    state = trial.call("state()", learner.state)
    try:
        packed = files.pack("learner-state", 1, {}, {name: np.asarray(value) for name, value in dict(state).items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise Fault(
            "state()",
            f"it cannot be written to a file: {error}",
            "arrays and numbers by name",
            "no objects, no lists of different lengths",
        ) from error
    arrays = files.unpack(packed).arrays
    again = trial.call("restored(view, state)", type(learner).restored, trial.view, arrays)
    twin = Trial(trial.factory, trial.world, trial.episodes, trial.delta, trial.seed, trial.options, learner=again)
    twin.rng = _copied(trial.rng)
    twin.plans = list(trial.plans)
    trial.run(trial.episodes - half)
    twin.run(trial.episodes - half)
    _same(
        trial,
        twin,
        f"restored after {half} episodes",
        "state() must hold all that plan and observe change, the coin included",
    )
    if files.pack("learner-state", 1, {}, {name: np.asarray(value) for name, value in dict(state).items()}) != packed:
        raise Fault("state()", "what it returned has changed during later episodes", "copies", "return array.copy()")
    return ""


def plans_stay(trial: Trial) -> str:
    """Plans that were handed out do not change later, and nobody can write to them."""
    trial.run(trial.episodes)
    for t, (made, then) in enumerate(trial.plans):
        if snapshot(made) != then:
            raise Fault(
                f"the plan of episode {t} at the end of the run",
                "it has changed since it was made",
                "the same numbers",
                "make a new hr.Policy for every plan; it copies the array that it is given",
            )
        if any(policy.probabilities.flags.writeable for policy in [made.policy, *_policies(made)]):
            raise Fault(
                f"the policy of episode {t}",
                "its array can be written to",
                "a read-only array",
                "use hr.Policy(view, array)",
            )
    return ""


def episodes_stay(trial: Trial) -> str:
    """It does not change the episodes that it is given."""
    for t in range(trial.episodes):
        episode = trial.episode(trial.plan())
        arrays = {name: getattr(episode, name) for name in ("rows", "triples", "losses", "costs")}
        before = {name: array.tobytes() for name, array in arrays.items()}
        trial.observe(episode)
        for name, array in arrays.items():
            if array.tobytes() != before[name] or array.flags.writeable or getattr(episode, name) is not array:
                raise Fault(
                    f"observe(episode) in episode {t}",
                    f"episode.{name} has changed, or can be changed now",
                    "the episode as it was",
                    f"work on episode.{name}.copy()",
                )
    return ""


def exhausted(trial: Trial) -> str:
    """After its number of episodes it goes on or refuses in an orderly way."""
    trial.run(trial.episodes)
    try:
        made = trial.learner.plan()
        trial.learner.observe(trial.episode(made))
    except ORDERLY as error:
        return f"refused: {type(error).__name__}"
    except Exception as error:
        raise Fault(
            f"one episode more than the {trial.episodes} that it was built for",
            f"it raised {type(error).__name__}: {error}",
            "an error such as hr.InvalidInput, or that it goes on",
            "check the number of episodes in plan, and say for how many it was built",
        ) from error
    if isinstance(trial.learner, Limited) and trial.learner.episodes == trial.episodes:
        return "goes on, although `episodes` says that it may not be asked"
    return "goes on"


FIRST: dict[str, Check] = {"construction": construction, "plan": plan}
"""What must hold for anything else to be tried"""
THEN: dict[str, Check] = {
    "mixture": mixture,
    "double plan": double_plan,
    "observe first": observe_first,
    "same seed": same_seed,
    "alone": alone,
    "global random": global_random,
    "restored": restored,
    "plans stay": plans_stay,
    "episodes stay": episodes_stay,
    "exhausted": exhausted,
}


def _policies(made: Plan) -> list[Policy]:
    """The policies of a plan that have positive probability."""
    if isinstance(made.mixture, Policy):
        return [made.mixture]
    if isinstance(made.mixture, UniformMixture):
        return [Policy.trusted(made.mixture.layout, row) for row in made.mixture.table]
    return [policy for weight, policy in made.mixture.policies() if weight > 0.0]


def _equal_plans(first: Plan, second: Plan) -> bool:
    return snapshot(first) == snapshot(second)


def _same(
    one: Trial, other: Trial, when: str, advice: str = "a plan may depend on the seed and the episodes only"
) -> None:
    """Both trials have the same plans so far."""
    for t, ((_, mine), (_, yours)) in enumerate(zip(one.plans, other.plans, strict=True)):
        if mine != yours:
            part = next(name for name in mine._fields if getattr(mine, name) != getattr(yours, name))
            raise Fault(f"two runs, {when}", f"the {part} of episode {t} differs", "the same bits", advice)


def _global_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that is looked at
    return name, np.asarray(keys).tobytes(), tuple(rest), random.getstate()


def _copied(rng: np.random.Generator) -> np.random.Generator:
    fresh = np.random.default_rng()
    fresh.bit_generator.state = rng.bit_generator.state
    return fresh
