"""The journal of a learner: ask for decisions, tell their outcomes, and answer for both years later.

    journal = hr.Journal.create("sqlite:///site.db", "chargers", learner, deadline="36h")
    decision = journal.ask("charger-17/2026-11-18")     # the same name again gives the same decision
    journal.tell(decision.id, path, losses, costs)      # "recorded"; again: "repeated"

Every call is checked, carried out in memory, written, committed, and only then answered. If it raises, nothing of it is
durable, and the state in memory is computed anew from what is. A decision whose outcome does not come by the deadline
expires: its outcome is unknown, and learning goes on. Deadlines run in *service time*, which stands still while no
process has the journal open, so that an outage does not expire everything that was open.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike

from hedgerow.checks import real_number, short_repr, type_name
from hedgerow.display import text
from hedgerow.errors import ConflictError, HedgerowError, InvalidInput, JournalError
from hedgerow.importers.logs import Log
from hedgerow.journal.drift import drift
from hedgerow.journal.events import ENDS, OUTCOMES, Event, chained, plain
from hedgerow.journal.replay import Live, Sums
from hedgerow.journal.storage import Durability, Store, checked_name
from hedgerow.learners.api import NumberedPlan
from hedgerow.learners.base import BaseLearner
from hedgerow.learners.guarantees import Ledger
from hedgerow.learners.open_plans import Waiting, may_resolve, packed
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy

SNAPSHOT_EVERY = 10_000
"""Events between two snapshots, about a second of replay"""
ANSWERS = {"tell": "recorded", "resolve": "resolved"}
"""What `tell` says of the event that it recorded, where that is not its name"""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class UnknownDecisionError(InvalidInput):
    """No decision of this name was asked for."""


class Decision(NamedTuple):
    """What a journal decided for one episode, and what became of it.

    Examples:
        >>> import tempfile
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> always_go = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     learner = hr.SOPS(view, episodes=1000, baseline=always_go)
        ...     with hr.Journal.create(f"sqlite:///{folder}/site.db", "site", learner) as journal:
        ...         decision = journal.ask("monday")
        >>> decision.id, decision.status, decision.actions
        ('monday', 'open', {'home': 'go'})
    """

    id: str
    """Its name."""
    status: str
    """One of "open", "told", "abandoned", "expired", "resolved" and "poisoned"."""
    content: dict[str, Any]
    """What was recorded when it was asked for: bounds, thresholds, branch, and how many outcomes had been learnt."""
    events: tuple[Event, ...]
    """All events that concern it."""
    actions: dict[Any, Any]
    """The action of each state, drawn beforehand; by label, or by number where the view has no labels."""
    plan: NumberedPlan | None
    """The plan, while it is open."""

    @property
    def policy(self) -> Policy:
        """The policy to play. Only open decisions have one: of those that ended the journal keeps the actions."""
        if self.plan is None:
            raise InvalidInput(f"the decision {self.id!r} has ended ({self.status}); its actions are kept, no policy")
        return self.plan.policy

    def explain(self) -> str:
        """Say in one sentence which policy was to be played, and by which bounds that was decided."""
        return str(self.content["explanation"])

    def to_dict(self, *, events: bool = False) -> dict[str, Any]:
        """Return the decision as JSON can hold it, with its `events` if they are asked for."""
        actions = {str(state): action for state, action in self.actions.items()}
        told = {"events": [{**event._asdict(), "body": event.content} for event in self.events]} if events else {}
        known = {"id": self.id, "status": self.status, "actions": actions, "at": self.events[0].at}
        return {**self.content, **known, **told}

    def __repr__(self) -> str:
        return text.line("Decision", repr(self.id), self.status, self.explain())


class Journal:
    """A learner in a database: named decisions, recorded outcomes, a state that any process can take over.

    Make one with `create`, go on with `open`. One process at a time writes to a journal; its threads may share the
    object.

    Args:
        store: The database; `create` and `open` make it.
        clock: Seconds, by which deadlines run.

    Examples:
        >>> import tempfile
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> always_go = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
        >>> learner = hr.SOPS(view, episodes=1000, baseline=always_go)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with hr.Journal.create(f"sqlite:///{folder}/site.db", "site", learner, deadline="36h") as journal:
        ...         asked = journal.ask("monday")
        ...         first = journal.tell("monday", [("home", "go")], losses=[0.5], costs=[0.0])
        ...         again = journal.tell("monday", [("home", "go")], losses=[0.5], costs=[0.0])
        >>> first, again
        ('recorded', 'repeated')
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock, self._lock = store, clock, threading.RLock()
        self._live: Live | None = None
        self._since, self._begun = 0.0, 0.0
        self._depth, self._dirty, self._kept, self._closed = 0, False, 0, False

    @classmethod
    def create(
        cls, url: str, name: str, learner: BaseLearner, *, deadline: str | float | None = None,
        durability: Durability = "full", clock: Callable[[], float] = time.monotonic,
    ) -> Self:  # fmt: skip
        """Put a learner into a database, and go on with it there.

        Args:
            url: The address of the database: sqlite:///file.db, or postgresql://user@host/name.
            name: What the journal is called; a database may hold many.
            learner: A learner of hedgerow. Its `max_open` says how many decisions may be open.
            deadline: Service time after which an outcome that has not come is unknown: "90s", "15min", "36h", "2d", or
                seconds. None waits for ever, and so do all later outcomes.
            durability: "full" waits for the disk at every commit; "normal" may lose the last ones when the power fails.
            clock: Seconds; for tests.

        Returns:
            The journal, open for writing.

        Raises:
            InvalidInput: If the name is taken, or if an argument is wrong.
        """
        if not isinstance(learner, BaseLearner):
            raise InvalidInput(f"a journal keeps a learner of hedgerow, not {type_name(learner)}")
        if learner.num_open or learner.queue.entries:
            raise InvalidInput("the learner has open plans, which have no names in a journal; observe or abandon them")
        if learner.on_refuted == "raise":
            raise InvalidInput("a journal cannot keep a learner with on_refuted='raise'; choose 'stay' or 'warn'")
        store = Store(url, name, durability=durability)
        live = Live(learner, store.log)
        live.version = version("hedgerow")
        meta, content = live.packed()
        try:
            store.create(plain({"deadline": seconds(deadline)}), meta, content)
            return cls(store, clock)
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls, url: str, name: str, *, durability: Durability = "full", wait: str | float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:  # fmt: skip
        """Go on with a journal; the state is computed from its last snapshot and the events after it.

        Args:
            url: The address of the database.
            name: What the journal is called.
            durability: As in `create`.
            wait: How long to wait for another process to end that has the journal open, as in `deadline`; 0 does not.
            clock: Seconds; for tests.

        Raises:
            InvalidInput: If there is no such journal.
            JournalError: If another process still has it open, or if replay gives something else than was recorded.
        """
        patience = seconds(wait) if wait else None
        store = Store(url, name, durability=durability)
        try:
            store.open(patience or 0.0)
            journal = cls(store, clock)
            with journal.batch():
                live = journal._here
                if live.version != version("hedgerow"):
                    journal._record("version", None, {"version": version("hedgerow"), "before": live.version})
            return journal
        except BaseException:
            store.close()
            raise

    # Calls

    def ask(self, key: str, *, group: str | None = None) -> Decision:
        """Decide an episode. The same name gives the same decision, however often it is asked for.

        Args:
            key: The name of the decision, such as "charger-17/2026-11-18".
            group: The group of decisions whose costs share a cause with those of this one, such as the day; see
                `close_group`.

        Raises:
            InvalidInput: If too many decisions are open, or if the name is known with another group.
            JournalError: If nothing could be recorded. Then play the baseline.
        """
        checked_name(key)
        self.expire()
        with self.batch():
            known = self._known(key)
            if known is not None:
                if known.content.get("group") != group:
                    raise InvalidInput(f"the decision {key!r} was asked for with the group {known.content['group']!r}")
                return known
            self._record("ask", key, {"group": group})
            return self._asked(key)

    def tell(
        self, key: str, path: Any, losses: ArrayLike | None = None, costs: ArrayLike | None = None, **how: Any
    ) -> str:
        """Record the outcome of a decision, and learn from it as soon as all earlier ones are known.

        Args:
            key: The name of the decision.
            path: An `Episode`, or what its constructor takes: the visited pairs, with `losses` and `costs`.
            losses: (L,) losses.
            costs: (L, m) costs.
            **how: Other arguments of `Episode`, such as `ended_in`.

        Returns:
            "recorded"; "repeated" if the same outcome was told before; "resolved" if the decision had been given up or
            had expired, and the outcome is learnt all the same; "late" if it cannot be learnt any more.

        Raises:
            InvalidInput: If the decision is unknown, or if it cannot have had this outcome. Nothing was recorded.
            ConflictError: If another outcome was told before. It is recorded, and not learnt.
        """
        answer = self.try_tell(key, path, losses, costs, **how)
        if answer == "conflict":
            raise ConflictError(
                f"another outcome of the decision {key!r} was told before; this one is recorded, not learnt"
            )
        return answer

    def try_tell(
        self, key: str, path: Any, losses: ArrayLike | None = None, costs: ArrayLike | None = None, **how: Any
    ) -> str:
        """`tell` that answers "conflict" in the place of raising, for calls in a `batch`.

        Args:
            key: The name of the decision.
            path: As in `tell`.
            losses: As in `tell`.
            costs: As in `tell`.
            **how: As in `tell`.
        """
        checked_name(key)
        with self.batch():
            decision = self._asked(key)
            episode = self._outcome(path, losses, costs, how)
            content = episode.to_dict()
            number, unresolved = decision.content["episode"], self._here.learner.unresolved
            resolves = decision.status in ("abandoned", "expired") and number in unresolved and may_resolve(episode)
            told = next((event for event in decision.events if event.kind in OUTCOMES), None)
            if told is not None and not (told.kind == "late" and resolves):
                return self._again(decision, told, content)
            kind, body = "tell", content
            if decision.status != "open":
                asked = {name: decision.content[name] for name in ("branch", "mixing_weight")}
                kind, body = "resolve" if resolves else "late", {"plan": number, "outcome": content, **asked}
            try:
                self._record(kind, key, body)
            except HedgerowError:
                raise
            except Exception as error:  # it breaks the learner
                self._compute()
                late = kind == "resolve"
                kind, body = ("late", body) if late else ("poisoned", {"outcome": content})
                self._record(kind, key, {**body, "reason": _broken_by(error)})
        return ANSWERS.get(kind, kind)

    def _outcome(self, path: Any, losses: Any, costs: Any, how: Mapping[str, Any]) -> Episode:
        view = self._here.learner.view
        if isinstance(path, Episode):
            if losses is not None or costs is not None or how:
                raise InvalidInput("an Episode holds everything already; pass it alone")
            return path.in_terms_of(view)
        if losses is None:
            raise InvalidInput("the losses along the path are missing: tell(key, path, losses, costs)")
        return Episode(view, path, losses, costs, **how)

    def _again(self, decision: Decision, told: Event, content: dict[str, Any]) -> str:
        """An outcome of a decision that has one."""
        if plain(told.outcome) == plain(content):
            return "repeated"
        if not any(event.kind == "conflict" and event.body == plain(content) for event in decision.events):
            self._record("conflict", decision.id, content)
        return "conflict"

    def abandon(self, key: str, reason: str, *, independent: bool = False) -> str:
        """End a decision whose outcome will not be known; see `abandon` of learners.

        Args:
            key: The name of the decision.
            reason: Why, in words.
            independent: Whether the reason is declared to have nothing to do with what the episode cost, or would have.

        Returns:
            "recorded", or "repeated" if it has ended already.
        """
        checked_name(key)
        with self.batch():
            decision = self._asked(key)
            if decision.status != "open":
                return "repeated"
            self._record("abandon", key, {"reason": reason, "independent": bool(independent)})
        return "recorded"

    def close_group(self, group: str) -> None:
        """Say that a `group` of decisions will have no further ones; see `close_group` of learners."""
        with self.batch():
            self._record("close", None, {"group": group})

    def change(
        self, *, by: str, why: str, thresholds: Mapping[str, float] | None = None,
        baseline_costs: Mapping[str, float] | None = None, episodes: int | None = None,
    ) -> None:  # fmt: skip
        """Change thresholds, bounds of the baseline's costs or the number of episodes for later decisions.

        Decisions that are open keep the bounds that they were asked for under.

        Args:
            by: Who decided it.
            why: For what reason.
            thresholds: The new thresholds by name; others stay.
            baseline_costs: The new bounds of the baseline's costs by name; others stay.
            episodes: The new number of episodes.
        """
        for what, words in (("by", by), ("why", why)):
            if not isinstance(words, str) or not words.strip():
                raise InvalidInput(f"a change needs {what} in words, not {short_repr(words)}")
        content = {"thresholds": thresholds, "baseline_costs": baseline_costs, "episodes": episodes}
        content = {name: _plain_numbers(value) for name, value in content.items() if value is not None}
        if not content:
            raise InvalidInput("nothing is to be changed: give thresholds, baseline_costs or episodes")
        with self.batch():
            self._record("change", None, {**content, "by": by, "why": why})

    def absorb(self, log: Log | Any, **how: Any) -> Log:
        """Learn from episodes that were recorded elsewhere; see `absorb` of learners.

        Args:
            log: A `Log`, or what `Log.read` takes. The journal keeps a copy.
            **how: Options of `Log.read`.
        """
        with self.batch():
            view = self._here.learner.view
            read = log.in_terms_of(view) if isinstance(log, Log) else Log.read(view, log, **how)
            self._store.add_log(read.content_hash, packed(read).tobytes())
            what = {"digest": read.content_hash, "episodes": len(read), "with_costs": bool(read.gaps.with_costs)}
            self._record("absorb", None, what)
        return read

    def expire(self) -> int:
        """Let decisions whose deadline has passed expire; how many they were. `ask` does it by itself."""
        deadline = self._store.deadline
        if deadline is None:
            return 0
        with self.batch():
            now = self.service_time
            due = [name for name, (_, asked) in self._here.waiting.items() if asked + deadline <= now]
            for name in due:
                self._record("expire", name, {})
        return len(due)

    # Answers

    def decision(self, key: str | int) -> Decision:
        """Return the decision that was asked for as `key`, a name or the number of its episode."""
        with self.batch():
            return self._asked(checked_name(asked_as(self._here, self._store, key) if isinstance(key, int) else key))

    def _asked(self, key: str) -> Decision:
        found = self._known(key)
        if found is None:
            raise UnknownDecisionError(f"no decision {key!r} was asked for")
        return found

    def _known(self, key: str) -> Decision | None:
        return decision_of(self._here, self._store, key)

    def status(self) -> dict[str, Any]:
        """Return where the journal stands, as JSON can hold it."""
        with self.batch():
            return status_of(self._here, self._store.name, self.service_time, self._store.deadline)

    def guarantees(self) -> Ledger:
        """Return the ledger of the learner, with what the journal adds to it, such as conflicts."""
        with self.batch():
            return self._here.guarantees()

    def latest(self, count: int = 20) -> list[dict[str, Any]]:
        """Return what was recorded of the last `count` decisions, the newest first."""
        with self.batch():
            return latest_of(self._store, count)

    @property
    def last_event(self) -> int:
        """The number of the last event."""
        with self.batch():
            return self._here.number

    @property
    def learner(self) -> BaseLearner:
        """The learner as it stands. Look at it; whatever it is asked or told here is not recorded."""
        with self.batch():
            return self._here.learner

    @property
    def service_time(self) -> float:
        """Seconds for which the journal has been in service, outages left out."""
        return self._begun + self._clock() - self._since

    # The machinery

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Let several calls share one commit; none of their answers may be passed on before the block ends."""
        with self._lock:
            if self._closed:
                raise InvalidInput("the journal is closed; Journal.open goes on with it")
            if self._depth:
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                return
            self._load()
            self._depth, self._dirty = 1, False
            try:
                with self._store.transaction():
                    yield
            except BaseException:
                if self._dirty or self._store.is_broken:
                    self._live = None  # what was done in memory is not durable
                raise
            finally:
                self._depth = 0
            self._keep_snapshot()

    @property
    def _here(self) -> Live:
        assert self._live is not None
        return self._live

    def _load(self) -> None:
        """Compute the state, unless it is there."""
        if self._live is not None:
            return
        if self._store.is_broken:
            self._store.reopen()
        with self._store.transaction():
            self._compute()
        self._begun, self._since = self._here.clock, self._clock()

    def _compute(self) -> None:
        """The state from the last snapshot and the events after it."""
        self._live = None
        live = Live.from_snapshot(self._store.snapshot(), self._store.log)
        self._kept = live.number
        for event in self._store.events(after=live.number):
            live.apply(event)
        self._live = live

    def _record(self, kind: str, decision: str | None, content: dict[str, Any]) -> None:
        """Carry out an event and write it. What waited, and breaks the learner now that its turn has come, is left out.

        A learner that refuses is unchanged. After any other error the state has to be computed anew.
        """
        while True:
            live = self._here
            try:
                content = live.do(kind, decision, content)
                break
            except BaseException as error:
                waited, refused = live.broken, isinstance(error, HedgerowError)
                self._dirty = self._dirty or not refused or waited is not None
                if waited is None or not isinstance(error, Exception) or not self._leave_out(waited, error):
                    raise
        self._dirty = True
        self._write(kind, decision, content)

    def _leave_out(self, waited: Waiting, error: Exception) -> bool:
        """Record that what waited cannot be learnt; False if it did not wait, but has only now come."""
        self._compute()
        live, (kind, number) = self._here, waited
        content = {"reason": _broken_by(error), "waited": list(waited)}
        try:
            live.do("poisoned", None, content)
        except JournalError:
            return False
        self._write("poisoned", asked_as(live, self._store, int(number)) if kind == "plan" else None, content)
        return True

    def _write(self, kind: str, decision: str | None, content: Mapping[str, Any]) -> None:
        live, at = self._here, datetime.now(UTC).isoformat(timespec="milliseconds")
        event = chained(live.hash, live.number + 1, kind, decision, at, self.service_time, plain(content))
        self._store.append(event)
        live.passed(event)

    def _keep_snapshot(self, after: int | None = None) -> None:
        live = self._live
        if live is not None and live.number - self._kept >= (after or SNAPSHOT_EVERY):
            with self._store.transaction():
                self._store.add_snapshot(live.number, *live.packed())
            self._kept = live.number

    def close(self, *, snapshot: bool = False) -> None:
        """Let go of the journal, so that another process may go on.

        Args:
            snapshot: Whether to keep the state first, so that whoever goes on need not replay anything. Do it before an
                upgrade: another release may give other bits.
        """
        with self._lock:
            try:
                if snapshot and not self._closed:
                    self._load()
                    self._keep_snapshot(1)
            finally:
                self._closed = True
                self._live = None
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"event {0 if self._live is None else self._live.number}"
        return text.line("Journal", repr(self._store.name), state)


def seconds(duration: str | float | None) -> float | None:
    """A duration in seconds: "90s", "15min", "36h", "2d", or a number."""
    if duration is None:
        return None
    if isinstance(duration, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", duration)
        if parts is None:
            raise InvalidInput(f"a duration is written as 90s, 15min, 36h or 2d, not {short_repr(duration)}")
        duration = float(parts[1]) * UNITS[parts[2]]
    return real_number("the deadline in seconds", duration, 1e-3, 1e12)


def _broken_by(error: Exception) -> str:
    return f"the outcome could not be learnt: {type(error).__name__}: {error}"


def decision_of(live: Live, store: Store, key: str) -> Decision | None:
    """What was recorded of a decision; None if it was never asked for."""
    events = store.of_decision(key)
    if not events:
        return None
    plan = live.waiting[key][0] if key in live.waiting else None
    ends = [ENDS[event.kind] for event in events if event.kind in ENDS]
    content, layout = events[0].content, live.learner.view.layout
    states, actions = layout.state_labels, layout.action_labels
    drawn = {
        (x if states is None else states[x]): (a if actions is None else actions[a])
        for x, a in enumerate(content["actions"])
    }
    return Decision(key, ends[-1] if ends else "open", content, tuple(events), drawn, plan)


def asked_as(live: Live, store: Store, episode: int) -> str:
    """The name of the decision of an episode, whose number says how many were asked for after it."""
    learner = live.learner
    after = learner.episode + learner.num_open + learner.num_waiting - episode - 1
    found = store.newest("ask", 1, after) if 0 <= after < live.sums.asked else []
    if not found:
        raise UnknownDecisionError(f"no decision was asked for that has the episode {episode}")
    return str(found[0].decision)


def latest_of(store: Store, count: int) -> list[dict[str, Any]]:
    """What was recorded of the last decisions, the newest first."""
    return [{"id": event.decision, "at": event.at, **event.content} for event in store.newest("ask", count)]


def status_of(live: Live, name: str, clock: float, deadline: float | None) -> dict[str, Any]:
    """Where a journal stands at a service time."""
    learner, sums, view = live.learner, live.sums, live.learner.view
    told, names = max(1, sums.told), view.constraint_names
    oldest = min((at for _, at in live.waiting.values()), default=clock)
    thresholds, history = dict(zip(names, view.thresholds.tolist(), strict=True)), _history(sums, names)
    return {
        "journal": name, "learner": learner.title, "version": live.version, "events": dict(live.kinds),
        "last_event": live.number, "hash": live.hash, "asked": sums.asked, "told": sums.told,
        "learnt": learner.episode, "open": learner.num_open, "waiting": learner.num_waiting,
        "oldest_open_seconds": clock - oldest, "deadline_seconds": deadline, "service_seconds": clock,
        "share_left_to_baseline": 1.0 - sums.own / max(1, sums.asked), "mean_loss": sums.loss / told,
        "thresholds": thresholds, "drift": drift(history, thresholds),
        "mean_costs": dict(zip(names, (each / told for each in sums.costs), strict=True)),
        "branches": sums.branches, "history": history, "ledger": live.guarantees().to_dict(),
    }  # fmt: skip


def _history(sums: Sums, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"told": told, "baseline": mixing / told, "costs": dict(zip(names, costs, strict=True))}
        for told, mixing, *costs in sums.blocks
    ]


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): float(number) for name, number in value.items()}
    return int(value)
