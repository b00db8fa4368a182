"""Checks of plans: what they are made of, what is played, what a second one does, whether they stay as they are."""

from __future__ import annotations

import numpy as np

from hedgerow.contract.trial import ORDERLY, Fault, Trial, demand_same, policies_of, snapshot
from hedgerow.errors import InvalidInput
from hedgerow.learners.protocol import Plan, check_note_names, feedback_of
from hedgerow.model.view import View


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
    """A simulation accepts its plans, and finds the world as it was; notes are finite."""
    for _ in range(trial.episodes):
        made = trial.plan()
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


def double_plan(trial: Trial) -> str:
    """A second plan before `observe` is refused or the same, and changes nothing."""
    twin, remark = trial.again(), ""
    for t in range(trial.episodes):
        made, expected = trial.plan(), twin.plan()
        demand_same(trial, twin, "after plan() had been called twice in the episodes before")
        try:
            second = trial.learner.plan()
        except ORDERLY as error:
            remark = f"refused: {type(error).__name__}"
        except (Exception, SystemExit) as error:
            raise Fault(
                f"plan() twice in episode {t}",
                f"the second raised {type(error).__name__}: {error}",
                "the same plan, or an error such as hr.InvalidInput",
                "keep the plan until observe is called",
            ) from error
        else:
            remark = "the same plan"
            if not isinstance(second, Plan) or snapshot(made) != snapshot(second):
                raise Fault(
                    f"plan() twice in episode {t}",
                    "two different plans",
                    "the same plan, or an error such as hr.InvalidInput",
                    "keep the plan, with its coin, until observe is called",
                )
        trial.observe(trial.episode(made))
        twin.observe(twin.episode(expected))
    return remark


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
        if any(policy.probabilities.flags.writeable for policy in [made.policy, *policies_of(made)]):
            raise Fault(
                f"the policy of episode {t}",
                "its array can be written to",
                "a read-only array",
                "use hr.Policy(view, array)",
            )
    return ""
