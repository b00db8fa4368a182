"""Checks of runs: seeds, others at work, global chance, states in the middle, what is observed, the end."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from hedgerow import files
from hedgerow.contract.trial import ORDERLY, Fault, Trial, demand_same
from hedgerow.learners.protocol import Limited, Plan, Resumable
from hedgerow.model.policy import Policy


def observe_first(trial: Trial) -> str:
    """An episode that nobody planned is refused or learnt from; either way the learner goes on."""
    twin = trial.again()
    episode = twin.episode(Plan(Policy.uniform(trial.view)))
    try:
        trial.learner.observe(episode)
    except ORDERLY as error:
        trial.run(2)
        return f"refused: {type(error).__name__}"
    except (Exception, SystemExit) as error:
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
        demand_same(
            trial, twin, "built and treated alike", "draw all chance from the seed: numpy.random.default_rng(seed)"
        )
    return ""


def alone(trial: Trial) -> str:
    """Other learners of its kind, at work at the same time, change nothing: there is no state outside of it."""
    undisturbed = trial.again().run(trial.episodes)
    strangers = [trial.again(trial.seed + 1 + k) for k in range(2)]
    for t in range(trial.episodes):
        strangers[t % 2].run(1)
        trial.run(1)
    advice = "keep everything in self: no module variables, no class attributes, no mutable default arguments"
    demand_same(trial, undisturbed, "with others of its kind at work in between", advice)
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
        demand_same(trial, trial.again().run(trial.episodes), "under another global random state", advice)
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
    demand_same(
        trial,
        twin,
        f"restored after {half} episodes",
        "state() must hold all that plan and observe change, the coin included",
    )
    if files.pack("learner-state", 1, {}, {name: np.asarray(value) for name, value in dict(state).items()}) != packed:
        raise Fault("state()", "what it returned has changed during later episodes", "copies", "return array.copy()")
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
    except (Exception, SystemExit) as error:
        raise Fault(
            f"one episode more than the {trial.episodes} that it was built for",
            f"it raised {type(error).__name__}: {error}",
            "an error such as hr.InvalidInput, or that it goes on",
            "check the number of episodes in plan, and say for how many it was built",
        ) from error
    if isinstance(trial.learner, Limited) and trial.learner.episodes == trial.episodes:
        return "goes on, although `episodes` says that it may not be asked"
    return "goes on"


def _global_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that is looked at
    return name, np.asarray(keys).tobytes(), tuple(rest), random.getstate()


def _copied(rng: np.random.Generator) -> np.random.Generator:
    fresh = np.random.default_rng()
    fresh.bit_generator.state = rng.bit_generator.state
    return fresh
