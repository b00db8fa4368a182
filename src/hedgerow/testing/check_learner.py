"""`check_learner`: every check on every small world, and a table of what was found.

A check is a function that raises a `Fault` or returns a remark, and gets a fresh trial (`trial.py`). The first two,
construction and plan, are the ground of all others: where they fail, the others are not tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.checks import num_episodes, positive_share, seed_number, type_name
from hedgerow.display import text
from hedgerow.display.table import Table, TableCell
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Limited, Plan, Resumable, feedback_of, plan_of
from hedgerow.model.policy import Policy
from hedgerow.model.view import View
from hedgerow.simulation.referee import check_note_names
from hedgerow.storage import datafile
from hedgerow.testing.trial import (
    REFUSAL,
    Factory,
    Fault,
    NotApplicable,
    SmallWorld,
    Trial,
    demand_same,
    may_refuse,
    policies_of,
    small_worlds,
    snapshot,
)

# Plans: what they are made of, what is played, what a second one does, whether they stay as they are ------------------


def construction(trial: Trial) -> str:
    """It is built on a view and has `view`, `plan` and `observe`."""
    learner = trial.learner
    for name in ("view", "plan", "observe"):
        if not hasattr(learner, name):
            expected = "view, plan() and observe(episode)"
            raise Fault("looking at the learner", f"it has no {name!r}", expected, f"add {name}")
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
        asked = f"plan() twice in episode {t}", f"the same plan, or {REFUSAL}"
        second, remark = may_refuse(*asked, "keep the plan until observe is called", trial.learner.plan)
        if not remark:
            remark = "the same plan"
            if not isinstance(second, Plan) or snapshot(made) != snapshot(second):
                advice = "keep the plan, with its coin, until observe is called"
                raise Fault(asked[0], "two different plans", asked[1], advice)
        trial.observe(trial.episode(made))
        twin.observe(twin.episode(expected))
    return remark


def plans_stay(trial: Trial) -> str:
    """Plans that were handed out do not change later, and cannot be written to."""
    trial.run(trial.episodes)
    for t, (made, then) in enumerate(trial.plans):
        if snapshot(made) != then:
            done, advice = f"the plan of episode {t} at the end of the run", "make a new hr.Policy for every plan"
            raise Fault(done, "it has changed since it was made", "the same numbers", f"{advice}; it copies the array")
        if any(policy.probabilities.flags.writeable for policy in [made.policy, *policies_of(made)]):
            done, advice = f"the policy of episode {t}", "use hr.Policy(view, array)"
            raise Fault(done, "its array can be written to", "a read-only array", advice)
    return ""


# Runs: seeds, others at work, global chance, states in the middle, what is observed, the end --------------------------


def observe_first(trial: Trial) -> str:
    """An episode that was not planned is refused or learnt from; either way the learner goes on."""
    twin = trial.again()
    episode = twin.episode(Plan(Policy.uniform(trial.view)))
    _, remark = may_refuse(
        "observe(episode) before any plan()",
        f"{REFUSAL}, or that it learns from the episode",
        "refuse what was not planned, or do not rely on a plan in observe",
        lambda: trial.learner.observe(episode),
    )
    trial.run(2)
    return remark or "learnt from"


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
        packed = _packed(state)
    except (TypeError, ValueError, AttributeError) as error:
        wrong, advice = f"it cannot be written to a file: {error}", "no objects, no lists of different lengths"
        raise Fault("state()", wrong, "arrays and numbers by name", advice) from error
    arrays = datafile.unpack(packed).arrays
    again = trial.call("restored(view, state)", type(learner).restored, trial.view, arrays)
    twin = Trial(trial.factory, trial.world, trial.episodes, trial.delta, trial.seed, trial.options, learner=again)
    twin.rng = _copied(trial.rng)
    twin.plans = list(trial.plans)
    trial.run(trial.episodes - half)
    twin.run(trial.episodes - half)
    advice = "state() must hold all that plan and observe change, the coin included"
    demand_same(trial, twin, f"restored after {half} episodes", advice)
    if _packed(state) != packed:
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
                done, wrong = f"observe(episode) in episode {t}", f"episode.{name} has changed, or can be changed now"
                raise Fault(done, wrong, "the episode as it was", f"work on episode.{name}.copy()")
    return ""


def exhausted(trial: Trial) -> str:
    """After its number of episodes it goes on or refuses in an orderly way."""
    trial.run(trial.episodes)
    _, remark = may_refuse(
        f"one episode more than the {trial.episodes} that it was built for",
        f"{REFUSAL}, or that it goes on",
        "check the number of episodes in plan, and say for how many it was built",
        lambda: trial.learner.observe(trial.episode(plan_of(trial.learner, trial.learner.plan()))),
    )
    if remark:
        return remark
    if isinstance(trial.learner, Limited) and trial.learner.episodes == trial.episodes:
        return "goes on, although `episodes` says that it may not be asked"
    return "goes on"


def _global_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that is looked at
    return name, np.asarray(keys).tobytes(), tuple(rest), random.getstate()


def _packed(state: Mapping[str, Any]) -> bytes:
    return datafile.pack("learner-state", 1, {}, {name: np.asarray(value) for name, value in dict(state).items()})


def _copied(rng: np.random.Generator) -> np.random.Generator:
    fresh = np.random.default_rng()
    fresh.bit_generator.state = rng.bit_generator.state
    return fresh


Check = Callable[[Trial], str]

FIRST: dict[str, Check] = {"construction": construction, "plan": plan}
"""What must hold for anything else to be tried"""
THEN: dict[str, Check] = {
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


# The findings ---------------------------------------------------------------------------------------------------------


PASSED, FAILED, UNTRIED, DECLINED = "passed", "failed", "not tried", "declined"


@dataclass(frozen=True)
class Finding:
    """What one check found on one small world.

    Examples:
        >>> from hedgerow.testing.check_learner import Finding
        >>> Finding("same seed", "one step", "passed").outcome
        'passed'
    """

    check: str
    """The name of the check."""
    world: str
    """The name of the world."""
    outcome: str
    """One of "passed", "failed", "not tried" because an earlier check failed, and "declined" by the learner itself."""
    remark: str = ""
    """How the check was passed, where there is more than one way."""
    fault: Fault | None = None
    """What was done, what came back, what was expected and what to do; None unless the check failed."""


@dataclass(frozen=True, repr=False)
class Findings:
    """What `hr.check_learner` found; print it to read what failed.

    Examples:
        >>> from hedgerow.testing.check_learner import Finding, Findings
        >>> Findings("Mine", (Finding("same seed", "one step", "passed"),), milliseconds={}).ok
        True
    """

    learner: str
    """The name of the learner."""
    findings: tuple[Finding, ...]
    """All findings."""
    milliseconds: dict[str, float]
    """The time of `plan` and `observe` for one episode, by world."""

    def __repr__(self) -> str:
        passed = sum(finding.outcome == PASSED for finding in self.findings)
        failed = f"{len(self.failures)} failed" if self.failures else ""
        checks = f"{passed} of {text.counted(len(self.findings), 'check')} passed"
        return text.line("Findings", text.quoted(self.learner, 60), checks, failed)

    @property
    def ok(self) -> bool:
        """Whether the learner passed every check on every world that it did not decline, and on one at least."""
        outcomes = {finding.outcome for finding in self.findings}
        return PASSED in outcomes <= {PASSED, DECLINED}

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings if finding.outcome == FAILED)

    def table(self) -> Table:
        """Return a table with one row per check and one column per world; its last row are times."""
        worlds = list(dict.fromkeys(finding.world for finding in self.findings))
        by_place = {(finding.check, finding.world): finding for finding in self.findings}
        made = Table(
            f"{self.learner}: {'all checks passed' if self.ok else 'some checks failed'}",
            ["check", *worlds, "remark"],
            len(worlds) + 2,
        )
        for check in dict.fromkeys(finding.check for finding in self.findings):
            row = [by_place[check, world] for world in worlds]
            remarks = dict.fromkeys(finding.remark for finding in row if finding.remark)
            cells = [TableCell(finding.outcome, tone="bad" * (finding.outcome == FAILED)) for finding in row]
            made.add_row(check, *cells, "; ".join(remarks))
        times = [f"{self.milliseconds[world]:.3g} ms" if world in self.milliseconds else "-" for world in worlds]
        made.add_row("time per episode", *times, "plan and observe")
        return made

    def data(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "learner": self.learner,
            "ok": self.ok,
            "milliseconds": self.milliseconds,
            "findings": [
                {**vars(finding), "fault": None if finding.fault is None else finding.fault.data()}
                for finding in self.findings
            ],
        }

    def lines(self) -> list[str]:
        """Return what failed, in words, as lines of text."""
        words = []
        for finding in self.failures:
            words.append(f"{finding.check}, world {finding.world}:")
            told = {} if finding.fault is None else finding.fault.data()
            words += [f"    {name + ':':<12}{said}" for name, said in told.items()]
        return words

    def __str__(self) -> str:
        passed = sum(finding.outcome == PASSED for finding in self.findings)
        head = f"{self.learner}: {passed} of {len(self.findings)} checks passed"
        return "\n".join([head, *self.lines()])


def check_learner(
    factory: Factory,
    *,
    episodes: int = 24,
    delta: float = 0.05,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Findings:
    """Check a learner of your own on small worlds.

    The checks ask whether it plans and observes as a simulation needs it, whether equal seeds give equal runs, whether
    it can be restored, and more. A learner that fails raises nothing: the findings say what failed and what to do.

    Args:
        factory: Its class, or a function (view, episodes, delta, seed=0) that makes one. A required parameter
            `baseline` gets the safest policy of each world, `slater` the margin of that policy (infinite without
            constraints), `world` the CMDP itself, and `losses` an adversary whose losses are 1/2.
        episodes: How many episodes to play on each world, at least 2.
        delta: The failure probability that the learner is built with, in (0, 1).
        seed: Seed of the learner and of the worlds.
        options: Further arguments for every construction; None for none.

    Returns:
        The findings, with `ok`, `failures` and `table()`.

    Raises:
        InvalidInput: If `factory` cannot be called, or if a number is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> class Still:
        ...     def __init__(self, view, episodes, delta):
        ...         self.view = view
        ...
        ...     def plan(self):
        ...         return hr.Plan(hr.Policy.uniform(self.view))
        ...
        ...     def observe(self, episode):
        ...         pass
        >>> hr.check_learner(Still).ok
        True
    """
    if not callable(factory):
        raise InvalidInput(
            f"check_learner takes a class, or a function (view, episodes, delta, seed=0) that makes a learner, "
            f"not {type_name(factory)}"
        )
    count, chance, start = num_episodes(episodes, 2), positive_share("delta", delta, below_one=True), seed_number(seed)
    return examine(factory, count, chance, start, dict(options or {}), lambda _: None)


def examine(
    factory: Factory, count: int, chance: float, start: int, options: dict[str, Any], beat: Callable[[str], None]
) -> Findings:
    """`check_learner` for checked arguments; `beat` is told which check comes next."""

    def fresh(world: SmallWorld) -> Trial:
        return Trial(factory, world, count, chance, start, options)

    findings: list[Finding] = []
    milliseconds: dict[str, float] = {}
    for world in small_worlds():
        instead = ""
        for name, check in (FIRST | THEN).items():
            beat(f"the check {name!r} in the world {world.name!r}")
            findings.append(Finding(name, world.name, instead) if instead else _tried(name, check, world, fresh))
            outcome = findings[-1].outcome
            if outcome == DECLINED or (name in FIRST and outcome == FAILED):
                instead = DECLINED if outcome == DECLINED else UNTRIED
        if not instead:
            with suppress(Fault):  # of a learner that fails now and then
                milliseconds[world.name] = 1e3 * fresh(world).run(count).seconds / count
    title = str(getattr(factory, "__qualname__", type(factory).__name__))
    return Findings(title, tuple(findings), milliseconds)


def _tried(name: str, check: Check, world: SmallWorld, fresh: Any) -> Finding:
    try:
        return Finding(name, world.name, PASSED, check(fresh(world)))
    except NotApplicable as words:
        return Finding(name, world.name, DECLINED, str(words))
    except Fault as fault:
        return Finding(name, world.name, FAILED, fault=fault)
