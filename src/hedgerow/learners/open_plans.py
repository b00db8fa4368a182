"""Several open plans: outcomes may come in any order, and are learnt in the order of the plans.

    learner.max_open = 200
    first, second = learner.plan(), learner.plan()
    learner.observe(outcome, second)            # waits
    learner.observe(other, first)               # now both are learnt, `first` first

In that order every outcome is a fresh draw given all that was learnt before it, however late it came and whatever its
delay had to do with its costs (docs/open-plans.md has the proof, and the two assumptions that it needs). An early one
waits here, and is saved with the learner. A log that is absorbed while plans are open takes its place behind them.

A plan that was made before others were learnt is *late*: its loss estimate needs u of the time when it was made, which
is kept with it. As long as nothing is learnt, plans share the arrays of their policy.

A *group* has plans whose costs share a cause. It is open to further plans until `close_group`; its outcomes are learnt
once it is closed and all of them have come.

A plan that was given up is *lost*: what it may have visited is unknown. Its outcome may still come, and `resolve` puts
it in the place of the unknown. What that takes is kept of the last MOST_LOST of them. Like a log, it takes its place
behind the plans that are open.

A learner with one open plan has nothing here: its state says all of that plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, float_array, frozen, short_repr, whole_number, within
from hedgerow.errors import InvalidInput
from hedgerow.importers.logs import Log
from hedgerow.learners.api import BASELINE, OWN, NumberedPlan, PlanMaker, check_open
from hedgerow.learners.guarantees import Ledger
from hedgerow.learners.kernels import no_baseline
from hedgerow.model.episode import Episode
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.policy import Actions, Mixture, Policy
from hedgerow.model.view import View

if TYPE_CHECKING:
    from hedgerow.learners.base import BaseLearner

PREFIX = "open"
"""The arrays of a state that belong here are called `open` and `open.*`"""
MOST_NAMES = 10_000
"""Names of closed groups that are remembered, so that none is opened again"""
MOST_LOST = 1000
"""Plans that were given up and may still be resolved: the last ones"""
INDEPENDENT = (
    "costs and moves of plans that were open at the same time are independent of each other, but for the costs of one "
    "group (a of docs/open-plans.md)"
)
SILENT = (
    "what had arrived when a plan was made, and when it had arrived, says nothing about the costs and moves of that "
    "plan (b of docs/open-plans.md)"
)
IN_GROUPS = (
    "what the plans of a group share acts on their costs, not on their moves, and groups were closed without regard to "
    "their outcomes"
)


Waiting = tuple[Literal["plan", "log"], int | str]
"""An outcome by the number of its plan, or a log by the hash of its content"""


@dataclass(eq=False)
class OpenPlan:
    """A plan whose outcome is not learnt yet."""

    plan: NumberedPlan
    branch: int
    """0 for the learner's policy, j + 1 for the j-th baseline"""
    repeats: bool = False
    """Whether an earlier plan has the same group"""
    u: FloatArray | None = None
    """(num_rows,): upper occupancy bounds of the plan, once something was learnt after it was made; else None"""
    outcome: Episode | None = None
    """What happened, as soon as it is known"""
    drawn: int = 0
    """1 if the coin fell on the pool of C-OPS"""
    tilt: FloatArray | None = None
    """(num_rows,): for C-OPS, kept with `u`: see `tilt_of` in `learners/ops/pool.py`"""

    @property
    def episode(self) -> int:
        """The number of its episode."""
        return self.plan.episode

    @property
    def own(self) -> Policy:
        """The learner's policy of that time."""
        own = self.plan.mixture
        while isinstance(own, Mixture):  # a pool stands before the mixture with the baseline
            own = own.parts[-1][1]
        return own

    @property
    def is_pooled(self) -> bool:
        """Whether a pool was part of the plan."""
        mixture = self.plan.mixture
        return isinstance(mixture, Mixture) and isinstance(mixture.parts[-1][1], Mixture)

    @property
    def played(self) -> FloatArray:
        """(num_rows,): the policy that plays."""
        return self.plan.policy.probabilities

    def drew(self, actions: Actions) -> bool:
        """Whether these are the actions that were drawn beforehand."""
        return np.array_equal(actions.numbers, self.plan.actions.numbers)

    @property
    def is_given_up(self) -> bool:
        """Whether its outcome is unknown, and was not left out for a declared reason."""
        return is_unknown(self.outcome)


@dataclass(frozen=True, eq=False)
class LostPlan:
    """A plan that was given up, and learnt as unknown: what it takes to learn its outcome in the place of that."""

    episode: int
    digest: int
    """Of the actions that were drawn beforehand"""
    played: FloatArray
    """(num_rows,): 1 for the rows that its policy may have visited, else 0"""

    @staticmethod
    def of(episode: int, drawn: Actions, played: FloatArray, *, followed: bool) -> LostPlan:
        """The plan of an episode that played a policy (num_rows,); `followed`: it did nothing but what was drawn."""
        rows = drawn.policy if followed else played
        return LostPlan(episode, digest_of(drawn), frozen((rows > 0.0).astype(np.float64)))

    def drew(self, actions: Actions) -> bool:
        """Whether these are the actions that were drawn beforehand."""
        return digest_of(actions) == self.digest


def digest_of(actions: Actions) -> int:
    """A number by which drawn actions are told apart."""
    return int.from_bytes(hashlib.sha256(actions.numbers.astype("<i8").tobytes()).digest()[:7], "big")


def is_unknown(outcome: Episode | None) -> bool:
    """Whether nothing of an outcome is known, for no declared reason."""
    irregular = None if outcome is None else outcome.irregular
    return irregular is not None and irregular.missing and irregular.independent is None


def may_resolve(outcome: Episode) -> bool:
    """Whether an outcome may take the place of an unknown one: not if it is missing, or left out for some reason."""
    irregular = outcome.irregular
    return irregular is None or not (irregular.missing or irregular.independent is not None)


@dataclass(eq=False)
class OpenPlans:
    """The open plans of a learner, and what the ledger says of former ones."""

    most: int = 1
    """How many may wait for their outcome at once"""
    widest: int = 1
    """The most plans so far that were made before the first of them was learnt"""
    entries: list[OpenPlan] = field(default_factory=list)
    """In the order of the plans; none if the state of the learner says all"""
    logs: list[tuple[int, Log]] = field(default_factory=list)
    """Logs that were absorbed meanwhile, with the number of the plan before which each is learnt"""
    closed: list[str] = field(default_factory=list)
    """The groups that were closed, the last MOST_NAMES of them"""
    groups: int = 0
    """How many were learnt"""
    slack: FloatArray | None = None
    """(num_rows, m): see `learners/ops/groups.py`"""
    keys: list[str] = field(default_factory=list)
    """The keys that the learner had before its view was changed"""
    changes: list[str] = field(default_factory=list)
    """What was changed, in words"""
    unprotected: int = 0
    """How many plans of a search were open when it ended"""
    lost: list[LostPlan] = field(default_factory=list)
    """The plans that were given up and can be resolved, the last MOST_LOST of them"""
    late: list[tuple[int, LostPlan, Episode]] = field(default_factory=list)
    """Their outcomes that wait, with the number of the plan before which each is learnt"""
    resolved: int = 0
    """How many have been learnt"""
    folding: FloatArray | None = None
    """(num_rows,): the policy of the plan that is being learnt from; None between two of them"""
    turn: Waiting | None = None
    """What is being learnt after it had waited; still there if that raised, so that it can be left out"""

    @property
    def waiting(self) -> list[OpenPlan]:
        """The plans whose outcome is not known."""
        return [entry for entry in self.entries if entry.outcome is None]

    def add(self, plan: NumberedPlan, branch: int) -> None:
        """Put a plan behind the others."""
        repeats = plan.group is not None and any(entry.plan.group == plan.group for entry in self.entries)
        self.entries.append(OpenPlan(plan, branch, repeats))
        self.widest = max(self.widest, len(self.entries))

    def lose(self, plan: LostPlan) -> None:
        """Keep a plan whose outcome was learnt as unknown."""
        self.lost = [*self.lost[1 - MOST_LOST :], plan]

    def members(self, group: str | None) -> list[OpenPlan]:
        """The plans of a group that are not learnt yet."""
        return [entry for entry in self.entries if entry.plan.group == group]

    @property
    def is_ready(self) -> bool:
        """Whether the outcome of the first plan can be learnt, and if it has a group all outcomes of that."""
        if not self.entries or self.entries[0].outcome is None:
            return False
        group = self.entries[0].plan.group
        return group is None or (group in self.closed and all(entry.outcome for entry in self.members(group)))

    def find(self, given: Any, key: str, episode: int) -> OpenPlan:
        """The entry of a plan that waits for its outcome, None for the only one; every other plan is refused."""
        waiting = self.waiting
        if given is None:
            if len(waiting) == 1:
                return waiting[0]
            raise InvalidInput(
                f"{len(waiting)} plans wait for their outcomes; say whose this is: observe(episode, plan), "
                f"abandon(plan, reason). open_plans lists them"
            )
        number = getattr(given, "episode", None)
        found = next((entry for entry in self.entries if entry.episode == number), None)
        current = None if found is None else found.plan
        former = getattr(given, "learner_key", None) in self.keys
        own_key = current.learner_key if current is not None else given.learner_key if former else key
        check_open(given, current, own_key, episode if current is None else current.episode)
        assert found is not None
        if found.outcome is not None:
            raise InvalidInput(
                f"the outcome of the plan of episode {number} has come already, and waits for those of earlier plans; "
                "nothing is learnt twice"
            )
        return found

    def stated_in(self, ledger: Ledger, spared: tuple[str, ...]) -> Ledger:
        """The ledger with what it rests on where several plans were open, or something was changed.

        No regret is proved for either, nor a violation that is summed over episodes, but for the `spared` promises.
        """
        rests, reasons = list(ledger.assumptions), []
        if self.widest > 1:
            rests += [INDEPENDENT, SILENT]
            reasons.append(f"up to {self.widest} plans were open at once: for that no such bound is proved")
        if self.groups or any(entry.plan.group for entry in self.entries):
            rests.append(f"{self.groups} groups of plans have one value per pair in the confidence sets: {IN_GROUPS}")
        if self.changes:
            rests.append(f"what was promised changed {len(self.changes)} times, at last: {self.changes[-1]}")
            reasons.append("what it was built for was changed: no bound is proved for such a sum")
        names = tuple(p.name for p in ledger if p.name not in ("regret", "violation") or p.name in spared)
        for reason in reasons:
            ledger = ledger.voided(reason, but=names)
        return replace(ledger, assumptions=tuple(rests))

    # Files -----------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file needs to hold of them, by name; nothing if all is as it was in the beginning."""
        facts = {name: getattr(self, name) for name in FACTS}
        if not (self.entries or self.logs or self.lost or self.late) and facts == {
            name: getattr(OpenPlans(), name) for name in FACTS
        }:
            return {}
        policies: dict[int, FloatArray] = {}
        bounds: dict[int, FloatArray] = {}
        tilts: dict[int, FloatArray] = {}
        for entry in self.entries:
            if entry.u is not None:
                policies.setdefault(id(entry.own.probabilities), entry.own.probabilities)
                bounds.setdefault(id(entry.u), entry.u)
            if entry.tilt is not None:
                tilts.setdefault(id(entry.tilt), entry.tilt)
            if entry.is_pooled:
                for policy in (entry.plan.policy, *_leaves(entry.plan.mixture)):
                    policies.setdefault(id(policy.probabilities), policy.probabilities)
        places = {key: place for arrays in (policies, bounds, tilts) for place, key in enumerate(arrays)}
        described = [_described(entry, places) for entry in self.entries]
        told = {
            "logs": [(before, bool(log.gaps.with_costs)) for before, log in self.logs],
            "lost": [(plan.episode, plan.digest) for plan in self.lost],
            "late": [(before, (plan.episode, plan.digest), one.to_dict()) for before, plan, one in self.late],
        }
        text = json.dumps(facts | told | {"entries": described}, sort_keys=True)
        found = {PREFIX: np.array(text), f"{PREFIX}.policies": _stacked(policies), f"{PREFIX}.u": _stacked(bounds)}
        if tilts:
            found[f"{PREFIX}.tilt"] = _stacked(tilts)
        given_up = [*self.lost, *(plan for _, plan, _ in self.late)]
        if given_up:
            found[f"{PREFIX}.lost"] = np.packbits([plan.played > 0.0 for plan in given_up], axis=1)
        if self.slack is not None:
            found[f"{PREFIX}.slack"] = self.slack
        return found | {f"{PREFIX}.log{j}": packed(log) for j, (_, log) in enumerate(self.logs)}

    @staticmethod
    def of_facts(arrays: Mapping[str, NDArray[Any]]) -> OpenPlans:
        """What `arrays` of a file say, without the plans."""
        if not arrays:
            return OpenPlans()
        given = json.loads(str(arrays[PREFIX]))
        found = OpenPlans(**{name: given[name] for name in FACTS})
        for name in ("most", "widest", "groups", "unprotected", "resolved"):
            whole_number(f"open: {name}", getattr(found, name), 0)
        if not all(isinstance(word, str) for word in (*found.closed, *found.keys, *found.changes)):
            raise InvalidInput("open: a name or a key is not a text")
        return found

    def take(self, learner: BaseLearner, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the plans from `arrays` of a file, for a learner whose state is restored already."""
        if not arrays:
            return
        given = json.loads(str(arrays[PREFIX]))
        policies, bounds = (_numbers(learner, arrays, name, 0.0, 1.0 + 1e-9) for name in ("policies", "u"))
        tilts = _numbers(learner, arrays, "tilt", -np.inf, np.inf) if f"{PREFIX}.tilt" in arrays else []
        for policy in policies:
            checked_policy(learner.layout, np.minimum(policy, 1.0))
        fresh = frozen(learner.own_policy)
        for number, entry in enumerate(given["entries"], start=learner.episode):
            if entry["episode"] != number:
                raise InvalidInput(f"open: the plan of episode {entry['episode']} stands in the place of {number}")
            u = None if entry["u"] is None else bounds[entry["u"]]
            own = fresh if entry["own"] is None else policies[entry["own"]]
            self.entries.append(_entry(learner, entry, own, u, policies))
            self.entries[-1].tilt = None if entry["tilt"] is None else tilts[entry["tilt"]]
        if self.entries and not (learner.progress.pending or learner.unfinished):
            raise InvalidInput("open: there are open plans, but none is pending")
        if f"{PREFIX}.slack" in arrays:
            shape = (learner.layout.num_rows, learner.view.num_constraints)
            self.slack = within("open.slack", np.array(arrays[f"{PREFIX}.slack"]).reshape(shape), 0.0, 2.0**53)
        for j, (before, with_costs) in enumerate(given["logs"]):
            self.logs.append((int(before), unpacked(learner.view, arrays[f"{PREFIX}.log{j}"], bool(with_costs))))
        self._take_lost(learner, given, arrays)
        learner._follow_queue()

    def _take_lost(self, learner: BaseLearner, given: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the plans that were given up, and outcomes of theirs that wait."""
        numbers = [*given["lost"], *(numbers for _, numbers, _ in given["late"])]
        if not numbers:
            return
        rows = np.unpackbits(arrays[f"{PREFIX}.lost"], axis=1, count=learner.layout.num_rows).astype(np.float64)
        if len(rows) != len(numbers) or len(given["lost"]) > MOST_LOST:
            raise InvalidInput("open.lost: there are more or fewer plans than were given up")
        plans = [
            LostPlan(whole_number("open: lost", episode, 0, learner.episode - 1), int(digest), frozen(row))
            for (episode, digest), row in zip(numbers, rows, strict=True)
        ]
        self.lost = plans[: len(given["lost"])]
        for plan, (before, _, outcome) in zip(plans[len(self.lost) :], given["late"], strict=True):
            checked = learner.checked_outcome(Episode.from_dict(learner.view, outcome), plan)
            self.late.append((whole_number("open: late", before, learner.episode), plan, checked))


FACTS = ("most", "widest", "closed", "groups", "keys", "changes", "unprotected", "resolved")
"""What is a number or a text"""


def _described(entry: OpenPlan, places: Mapping[int, int]) -> dict[str, Any]:
    plan, pooled = entry.plan, entry.is_pooled

    def place(array: FloatArray | None) -> int | None:
        return None if array is None else places[id(array)]

    def listed(array: FloatArray | None) -> list[float] | None:
        return None if array is None else array.tolist()

    return {
        "episode": plan.episode, "branch": entry.branch, "group": plan.group,
        "notes": {name: float(value) for name, value in plan.notes.items()},
        "repeats": entry.repeats, "key": plan.learner_key, "thresholds": listed(plan.view.thresholds),
        "mixes": isinstance(plan.mixture, Mixture),
        "cost_bounds": listed(plan.cost_bounds), "own_bounds": listed(plan.own_bounds),
        "own": place(None if entry.u is None else entry.own.probabilities), "u": place(entry.u),
        "outcome": None if entry.outcome is None else entry.outcome.to_dict(),
        "drawn": entry.drawn, "tilt": place(entry.tilt),
        "mixture": _tree(plan.mixture, places) if pooled else None,
        "policy": place(plan.policy.probabilities) if pooled else None,
    }  # fmt: skip


def _leaves(mixture: Policy | Mixture) -> list[Policy]:
    if isinstance(mixture, Policy):
        return [mixture]
    return [policy for _, part in mixture.parts for policy in _leaves(part)]


def _tree(mixture: Policy | Mixture, places: Mapping[int, int]) -> Any:
    """A mixture with the places of its policies."""
    if isinstance(mixture, Policy):
        return places[id(mixture.probabilities)]
    return [[weight, _tree(part, places)] for weight, part in mixture.parts]


def _grown(tree: Any, policies: list[Policy]) -> Policy | Mixture:
    """The mixture of such a tree, checked."""
    if isinstance(tree, list):
        return Mixture(*((weight, _grown(part, policies)) for weight, part in tree))
    return policies[whole_number("open: policy", tree, 0, len(policies) - 1)]


def _entry(
    learner: BaseLearner, given: Mapping[str, Any], own: FloatArray, u: FloatArray | None, policies: list[FloatArray]
) -> OpenPlan:
    """An open plan from its description."""
    view = with_thresholds(learner.view, np.array(given["thresholds"], dtype=np.float64))
    baselines = learner.baselines if given["mixes"] else no_baseline(view)
    branch = whole_number("open: branch", given["branch"], 0, len(baselines.policies) + learner._num_members)
    notes = {str(name): float(value) for name, value in given["notes"].items()}
    cost_bounds, own_bounds = (
        None if given[name] is None else frozen(np.array(given[name])) for name in ("cost_bounds", "own_bounds")
    )
    maker = PlanMaker(view, baselines, learner.seed, str(given["key"]))
    weight = within("open: mixing_weight", np.array(notes.get("mixing_weight", 0.0)), 0.0, 1.0).item()
    group = None if given["group"] is None else str(given["group"])
    plan = maker.plan(int(given["episode"]), own, weight, branch, notes, cost_bounds, own_bounds, group)
    if given["mixture"] is not None:
        known = [Policy.trusted(learner.layout, policy) for policy in policies]
        whose = BASELINE if 0 < branch <= len(baselines.policies) else OWN
        plan.__dict__.update(
            mixture=_grown(given["mixture"], known), policy=_grown(given["policy"], known), branch=whose
        )
    entry = OpenPlan(plan, branch, bool(given["repeats"]), u, drawn=whole_number("open: drawn", given["drawn"], 0, 1))
    if given["outcome"] is not None:
        entry.outcome = learner.checked_outcome(Episode.from_dict(learner.view, given["outcome"]), entry)
    return entry


def with_thresholds(view: View, thresholds: FloatArray) -> View:
    """The same view with other thresholds (m,); itself if they are the same."""
    if np.array_equal(thresholds, view.thresholds):
        return view
    return View(view.layout, thresholds, view.constraint_names, knowledge=view.knowledge)


def _numbers(
    learner: BaseLearner, arrays: Mapping[str, NDArray[Any]], name: str, least: float, most: float
) -> list[FloatArray]:
    """The rows of an array (n, num_rows) of numbers between these."""
    what, rows = f"{PREFIX}.{name}", learner.layout.num_rows
    return [frozen(within(what, float_array(what, array, (rows,)), least, most)) for array in arrays[what]]


def _stacked(arrays: Mapping[int, FloatArray]) -> FloatArray:
    return np.array(list(arrays.values())) if arrays else np.zeros((0, 0))


def packed(log: Log) -> NDArray[np.uint8]:
    """A log as the bytes of an Arrow stream."""
    import pyarrow as pa

    table, sink = log.table(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpacked(view: View, stored: NDArray[Any], with_costs: bool) -> Log:
    import pyarrow as pa

    try:
        table = pa.ipc.open_stream(pa.py_buffer(stored.astype(np.uint8).tobytes())).read_all()
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"open: a log that waits cannot be read: {error}") from error
    return Log.read(view, table, costs=with_costs, unknown_costs=with_costs, open_ends=True)


# The steps of a learner with open plans ------------------------------------------------------------------------------


def check_room(learner: BaseLearner, group: Any) -> None:
    """Refuse a plan beyond `max_open`, or of a group that is closed."""
    queue, open_now = learner.queue, learner.num_open
    if open_now >= queue.most:
        if queue.most == 1:
            raise InvalidInput(f"episode {learner.episode} is planned already; call observe with what happened in it")
        raise InvalidInput(
            f"{open_now} plans are open, and max_open is {queue.most}: observe or abandon some of them, or raise it"
        )
    if group is None:
        return
    if learner.no_groups:
        raise InvalidInput(f"the plans of this learner cannot be in groups: {learner.no_groups}")
    if not isinstance(group, str) or not group.strip():
        raise InvalidInput(f"a group is a text such as '2026-11-18', not {short_repr(group)}")
    if group in queue.closed:
        raise InvalidInput(f"the group {short_repr(group)} is closed: its outcomes may have been learnt; name another")


def queue_up(learner: BaseLearner) -> None:
    """Enter the plan that the state alone describes, before another one follows it."""
    if learner.progress.pending and not learner.queue.entries:
        enqueue(learner, learner._open_plan())


def enqueue(learner: BaseLearner, plan: NumberedPlan) -> None:
    """Put the plan that was just made behind the others."""
    learner.queue.add(plan, learner.progress.branch)
    learner.queue.entries[-1].drawn = learner._pool_drawn
    learner._follow_queue()


def settle(learner: BaseLearner) -> None:
    """Let the first open plan be the one that the state waits for; also after an interrupt."""
    entries = learner.queue.entries
    while entries and entries[0].episode < learner.episode:
        entries.pop(0)
    if entries and not learner.progress.pending:
        learner._complete()
        learner._enter(entries[0].own.probabilities, entries[0].repeats)
        learner.progress.pending = 1
    learner._follow_queue()


def fold(learner: BaseLearner) -> None:
    """Learn from the outcomes that have come, in the order of the plans, until one is missing."""
    queue = learner.queue
    if not (queue.entries or queue.logs or queue.late):
        return
    settle(learner)
    while True:
        has_log, has_late = (bool(each) and each[0][0] == learner.episode for each in (queue.logs, queue.late))
        if not (has_log or has_late or queue.is_ready):
            break
        learner._complete()
        if has_log:
            queue.turn = "log", queue.logs[0][1].content_hash
            keep_bounds(learner, queue.entries)
            learner._take_in(queue.logs.pop(0)[1])
        elif has_late:
            queue.turn = "plan", queue.late[0][1].episode
            keep_bounds(learner, queue.entries)
            learner._take_back(*queue.late.pop(0)[1:])
            queue.resolved += 1
        else:
            queue.turn = "plan", queue.entries[0].episode
            _learn(learner, queue.entries[0])
        queue.turn = None
        settle(learner)
        learner.announce()


def _learn(learner: BaseLearner, entry: OpenPlan) -> None:
    """Learn from the outcome of the first plan."""
    queue = learner.queue
    keep_bounds(learner, queue.entries[1:])
    queue.folding, learner.progress.branch = entry.played, entry.branch
    try:
        learner._fold(entry)
    finally:
        queue.folding = None
    learner._complete()


def leave_out(learner: BaseLearner, kind: str, key: int | str) -> bool:
    """Let what waits be unknown, as if it had never come; False if nothing like that waits."""
    queue, found = learner.queue, False
    if kind == "log":
        kept = [each for each in queue.logs if each[1].content_hash != key]
        found, queue.logs = len(kept) < len(queue.logs), kept
        return found
    for entry in queue.entries:
        if entry.episode == key and entry.outcome is not None and not entry.is_given_up:
            entry.outcome, found = Episode.missing(learner.view), True
    kept_late = [each for each in queue.late if each[1].episode != key]
    found, queue.late = found or len(kept_late) < len(queue.late), kept_late
    return found


def keep_bounds(learner: BaseLearner, entries: list[OpenPlan]) -> None:
    """Keep u of the plans that were made from the present state, before something else is learnt."""
    fresh = [entry for entry in entries if entry.u is None]
    if fresh:
        learner._keep_for_later(fresh)


def resolve(learner: BaseLearner, outcome: Episode, given: Any) -> None:
    """Learn the outcome of a plan that was given up: neither its losses nor sums over whole episodes."""
    settle(learner)
    queue, number = learner.queue, given if isinstance(given, int) else getattr(given, "episode", None)
    if not may_resolve(outcome):
        raise InvalidInput("an outcome that comes late must be known, and cannot be left out for a declared reason")
    plans: list[OpenPlan | LostPlan] = [*(entry for entry in queue.entries if entry.is_given_up), *queue.lost]
    found = next((each for each in plans if each.episode == number), None)
    former = isinstance(given, int) or getattr(given, "learner_key", None) in (learner._key, *queue.keys)
    if found is None or not former or not (isinstance(given, int) or found.drew(given.actions)):
        raise InvalidInput(
            f"the plan {short_repr(number)} is none of those that this learner gave up and can resolve; unresolved "
            "lists them"
        )
    outcome = learner.checked_outcome(outcome, found)
    if isinstance(found, OpenPlan):
        found.outcome = outcome  # nobody has learnt that it was unknown
    else:
        queue_up(learner)
        queue.lost.remove(found)
        queue.late.append((learner.episode + len(queue.entries), found, outcome))
    fold(learner)
