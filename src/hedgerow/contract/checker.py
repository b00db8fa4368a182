"""`check_learner`: every check on every small world, and a table of what was found.

>>> from hedgerow.learners.protocol import Plan
>>> from hedgerow.model.policy import Policy
>>> class Still:
...     def __init__(self, view, episodes, delta):
...         self.view = view
...     def plan(self):
...         return Plan(Policy.uniform(self.view))
...     def observe(self, episode):
...         pass
>>> check_learner(Still).ok
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hedgerow import brief
from hedgerow.checks import kind_of, num_episodes, positive_share, seed_number
from hedgerow.contract.checks import FIRST, THEN, Check
from hedgerow.contract.trial import Declined, Factory, Fault, Trial
from hedgerow.contract.worlds import SmallWorld, small_worlds
from hedgerow.errors import InvalidInput
from hedgerow.output import Table

PASSED, FAILED, UNTRIED, DECLINED = "passed", "failed", "not tried", "declined"


@dataclass(frozen=True)
class Finding:
    """What one check found on one small world.

    Examples:
        >>> from hedgerow.contract.checker import Finding
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
        >>> from hedgerow.contract.checker import Finding, Findings
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
        checks = f"{passed} of {brief.counted(len(self.findings), 'check')} passed"
        return brief.line("Findings", brief.quoted(self.learner, 60), checks, failed)

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
            cells = [(finding.outcome, "bold red" if finding.outcome == FAILED else "") for finding in row]
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
                {
                    "check": finding.check,
                    "world": finding.world,
                    "outcome": finding.outcome,
                    "remark": finding.remark,
                    "fault": None if finding.fault is None else finding.fault.data(),
                }
                for finding in self.findings
            ],
        }

    def lines(self) -> list[str]:
        """Return what failed, in words, as lines of text."""
        words = []
        for finding in self.failures:
            words.append(f"{finding.check}, world {finding.world}:")
            told = {} if finding.fault is None else finding.fault.data()
            words += [f"    {name + ':':<12}{text}" for name, text in told.items()]
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
            f"not {kind_of(factory)}"
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
    except Declined as words:
        return Finding(name, world.name, DECLINED, str(words))
    except Fault as fault:
        return Finding(name, world.name, FAILED, fault=fault)
