"""The state that the events of a journal lead to. Live calls and replay go through the same methods.

Nothing else decides the state: what is lost with a process is computed anew from the last snapshot and the events after
it. A plan that is made again must be the recorded one, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from hedgerow.checks import did_you_mean
from hedgerow.errors import InvalidInput, JournalError, PremiseWarning
from hedgerow.journal.events import START, Event, is_chained, plain
from hedgerow.learners import files
from hedgerow.learners.api import NumberedPlan
from hedgerow.learners.base import BaseLearner
from hedgerow.learners.guarantees import Ledger
from hedgerow.learners.open_plans import Waiting, leave_out, unpacked, with_thresholds
from hedgerow.model.episode import Episode
from hedgerow.model.view import View
from hedgerow.storage import datafile

GIVEN_UP = "no outcome by the deadline"
"""The reason by which an expired decision is abandoned"""
MOST_BLOCKS = 200
"""Of the history on the page"""


@dataclass
class Sums:
    """What was played and told so far, for the status."""

    asked: int = 0
    own: float = 0.0
    """Sum of the probabilities with which the learner's own policy was to be played"""
    told: int = 0
    """Whole episodes that were told"""
    loss: float = 0.0
    costs: list[float] = field(default_factory=list)
    branches: dict[str, dict[str, float]] = field(default_factory=dict)
    """Whole outcomes and their losses by whose policy was played"""
    blocks: list[list[float]] = field(default_factory=list)
    """Of every `per_block` whole outcomes in turn: how many, the sum of lambda, and the sums of the costs"""
    per_block: int = 20

    def add(self, branch: str, mixing_weight: float, loss: float, costs: list[float]) -> None:
        """Count a whole outcome."""
        self.told += 1
        self.loss += loss
        self.costs = [a + b for a, b in zip(self.costs, costs, strict=True)]
        of_branch = self.branches.setdefault(branch, {"told": 0, "loss": 0.0})
        of_branch["told"] += 1
        of_branch["loss"] += loss
        if not self.blocks or self.blocks[-1][0] >= self.per_block:
            self.blocks.append([0.0] * (2 + len(costs)))
        self.blocks[-1] = [a + b for a, b in zip(self.blocks[-1], [1, mixing_weight, *costs], strict=True)]
        if len(self.blocks) > MOST_BLOCKS:  # so that a journal of years has as many as one of days
            pairs = zip(self.blocks[::2], [*self.blocks[1::2], [0.0] * (2 + len(costs))], strict=False)
            self.blocks = [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]
            self.per_block *= 2


class Live:
    """A learner, the decisions that wait for their outcome, and the end of the chain."""

    def __init__(self, learner: BaseLearner, logs: Callable[[str], bytes | None]) -> None:
        self.learner = learner
        self.waiting: dict[str, tuple[NumberedPlan, float]] = {}
        """The open decisions in the order in which they were asked for: the plan, and the clock of that time"""
        self.number, self.hash, self.clock = 0, START, 0.0
        self.kinds: Counter[str] = Counter()
        self.sums = Sums(costs=[0.0] * learner.view.num_constraints)
        self.version = ""
        self._logs = logs

    def do(self, kind: str, decision: str | None, content: dict[str, Any]) -> dict[str, Any]:
        """Carry out what an event of this kind records, now or again; returns what it records.

        A learner that refuses is unchanged, unless `broken` says that what waited could not be learnt.
        """
        action = getattr(self, f"_{kind}", None)
        return content if action is None else action(decision, content) or content

    @property
    def broken(self) -> Waiting | None:
        """What was being learnt after it had waited, when the learner raised; None if there is nothing like that."""
        return self.learner.queue.turn

    def _ask(self, decision: str, content: Mapping[str, Any]) -> dict[str, Any]:
        plan = self.learner.plan(group=content["group"])
        self.waiting[decision] = plan, self.clock
        self.sums.asked += 1
        self.sums.own += 1.0 - plan.mixing_weight
        return recorded(plan, self.learner.episode)

    def _tell(self, decision: str, content: Mapping[str, Any]) -> None:
        plan, episode = self.waiting[decision][0], Episode.from_dict(self.learner.view, content)
        self.learner.observe(episode, plan=plan)
        del self.waiting[decision]
        self._count(plan.branch, plan.mixing_weight, episode)

    def _resolve(self, decision: str, content: Mapping[str, Any]) -> None:
        self.learner.resolve(Episode.from_dict(self.learner.view, content["outcome"]), content["plan"])
        self._late(decision, content)

    def _late(self, _: str, content: Mapping[str, Any]) -> None:
        episode = Episode.from_dict(self.learner.view, content["outcome"])
        self._count(content["branch"], content["mixing_weight"], episode)

    def _abandon(self, decision: str, content: Mapping[str, Any]) -> None:
        plan, _ = self.waiting[decision]
        self.learner.abandon(plan, content.get("reason", GIVEN_UP), independent=content.get("independent", False))
        del self.waiting[decision]

    _expire = _abandon

    def _poisoned(self, decision: str | None, content: Mapping[str, Any]) -> None:
        if decision in self.waiting:
            plan = self.waiting[decision][0]
            self._abandon(decision, content)
            self._count(plan.branch, plan.mixing_weight, Episode.from_dict(self.learner.view, content["outcome"]))
        elif not leave_out(self.learner, *content["waited"]):
            raise JournalError(f"what cannot be learnt does not wait: {content['waited']}")

    def _close(self, _: None, content: Mapping[str, Any]) -> None:
        self.learner.close_group(content["group"])

    def _change(self, _: None, content: Mapping[str, Any]) -> None:
        learner = self.learner
        if content.get("thresholds") or content.get("baseline_costs"):
            view = _with_thresholds(learner.view, content.get("thresholds") or {})
            learner = able(learner, "with_view")(view, baseline_costs=content.get("baseline_costs") or None)
        if content.get("episodes"):
            learner = able(learner, "with_episodes")(content["episodes"])
        self.learner = learner

    def _absorb(self, _: None, content: Mapping[str, Any]) -> None:
        stored = self._logs(content["digest"])
        if stored is None:
            raise JournalError(f"the log {content['digest']} is not in the journal")
        able(self.learner, "absorb")(
            unpacked(self.learner.view, np.frombuffer(stored, dtype=np.uint8), content["with_costs"])
        )  # fmt: skip

    def _version(self, _: None, content: Mapping[str, Any]) -> None:
        self.version = content["version"]

    def _count(self, branch: str, mixing_weight: float, episode: Episode) -> None:
        """Add a whole outcome to the sums."""
        if episode.irregular is None:
            self.sums.add(branch, mixing_weight, float(episode.losses.sum()), episode.costs.sum(axis=0).tolist())

    def apply(self, event: Event) -> None:
        """Do again what an event recorded."""
        if event.number != self.number + 1 or not is_chained(self.hash, event):
            raise JournalError(f"event {event.number} does not follow event {self.number}: the chain is broken there")
        content = event.content
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PremiseWarning)  # it was shown when it happened
            if self.do(event.kind, event.decision, content) != content:
                raise JournalError(
                    f"event {event.number}: the decision {event.decision!r} is not the recorded one{self._by_another()}"
                )
        self.passed(event)

    def _by_another(self) -> str:
        if self.version == version("hedgerow"):
            return ""
        return (
            f". It was recorded by hedgerow {self.version}; this is {version('hedgerow')}, which gives other bits: "
            "open the journal with that release, end by close(snapshot=True), as the service does, and go on with this"
        )

    def guarantees(self) -> Ledger:
        """What is promised, and what that rests on: the ledger of the learner, and what the journal has to add."""
        ledger, conflicts = self.learner.guarantees(), self.kinds["conflict"]
        if not conflicts:
            return ledger
        first = f"{conflicts} other outcomes were told of decisions that had one: the first of each was the right one"
        return replace(ledger, assumptions=(*ledger.assumptions, first))

    def passed(self, event: Event) -> None:
        """Note that an event is the last one."""
        self.number, self.hash, self.clock = event.number, event.hash, event.clock
        self.kinds[event.kind] += 1
        if event.kind == "ask":  # its deadline runs from the time that was recorded, here as in replay
            self.waiting[event.decision or ""] = self.waiting[event.decision or ""][0], event.clock

    def packed(self) -> tuple[str, bytes]:
        """The state as a snapshot keeps it: what JSON holds, and the file of the learner."""
        meta = {
            "hash": self.hash, "clock": self.clock, "kinds": dict(self.kinds), "sums": vars(self.sums),
            "version": self.version, "waiting": {name: [plan.episode, at] for name, (plan, at) in self.waiting.items()},
        }  # fmt: skip
        return plain(meta), files.pack(self.learner, self.learner.state())

    @classmethod
    def from_snapshot(cls, kept: Any, logs: Callable[[str], bytes | None]) -> Live:
        """The state that a snapshot (number, meta, learner) keeps."""
        number, meta, learner = kept
        source = f"the snapshot after event {number}"
        live = cls(files.from_file(datafile.unpack(learner, files.FILE_KIND, source), source), logs)
        content = json.loads(meta)
        live.number, live.hash, live.clock = number, content["hash"], content["clock"]
        live.kinds, live.sums, live.version = Counter(content["kinds"]), Sums(**content["sums"]), content["version"]
        plans = {plan.episode: plan for plan in live.learner.open_plans}
        live.waiting = {name: (plans[episode], at) for name, (episode, at) in content["waiting"].items()}
        return live


def able(learner: BaseLearner, ability: str) -> Callable[..., Any]:
    """A method that not all learners have."""
    found = getattr(learner, ability, None)
    if found is None:
        raise InvalidInput(f"{learner.title} has no {ability!r}, and neither has its journal")
    return cast(Callable[..., Any], found)


def recorded(plan: NumberedPlan, learnt: int) -> dict[str, Any]:
    """What a journal records of a plan, made after so many outcomes were learnt."""
    content = {name: value for name, value in plan.to_dict().items() if name not in ("policy", "notes")}
    digest = hashlib.sha256(plan.policy.probabilities.tobytes()).hexdigest()
    return {**content, "policy": digest[:16], "learnt": learnt}


def _with_thresholds(view: View, thresholds: Mapping[str, float]) -> View:
    unknown = sorted(set(thresholds) - set(view.constraint_names))
    if unknown:
        raise InvalidInput(f"there is no constraint {unknown[0]!r}{did_you_mean(unknown[0], view.constraint_names)}")
    old = zip(view.constraint_names, view.thresholds.tolist(), strict=True)
    return with_thresholds(view, np.array([thresholds.get(name, value) for name, value in old]))
