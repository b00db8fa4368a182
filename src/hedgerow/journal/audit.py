"""Questions to a journal that is read, not written: is it whole, what was learnt, what if the limits had been others.

None of them takes the lock, so that they can be asked while a service runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NamedTuple

from hedgerow.errors import HedgerowError, JournalError
from hedgerow.importers.logs import Log
from hedgerow.journal.events import LEARNT, Event, is_chained
from hedgerow.journal.journal import Journal
from hedgerow.journal.replay import Live
from hedgerow.journal.storage import Store
from hedgerow.model.episode import Episode


class Audit(NamedTuple):
    """What `verify` found."""

    events: int
    """How many events there are, up to the first thing that is wrong."""
    snapshots: int
    """How many snapshots were compared."""
    hash: str
    """The hash of the last event: whoever knows it can tell whether anything before it was changed."""
    problem: str
    """The first thing that is wrong; empty if nothing is."""
    skipped: int = 0
    """How many of the events only the release can replay that recorded them: here their chain was checked."""


@contextmanager
def reading(url: str, name: str) -> Iterator[Store]:
    """A journal to read from."""
    store = Store(url, name, writes=False)
    try:
        store.open()
        with store.transaction():
            yield store
    finally:
        store.close()


def verify(url: str, name: str, progress: Callable[[int], None] | None = None) -> Audit:
    """Replay a journal from its first snapshot: the chain of hashes, every decision and every snapshot, bit for bit.

    Another release may give other bits. Its events are then passed over, but for their chain, up to the snapshot by
    which it handed the journal over.
    """
    with reading(url, name) as store:
        live = Live.from_snapshot(store.snapshot(0), store.log)
        before, compared, skipped, snapshots = live.hash, 0, 0, store.snapshot_numbers()
        try:
            for event in store.events():
                replayed = event.number > live.number
                if replayed:
                    try:
                        live.apply(event)
                        compared += _is_kept(store, live, snapshots)
                    except HedgerowError:
                        later = None if live.version == version("hedgerow") else _handed_over(store, event, snapshots)
                        if later is None:
                            raise
                        live, replayed = later, False
                if not replayed:
                    skipped += 1
                    if not is_chained(before, event) or (event.number == live.number and event.hash != live.hash):
                        raise JournalError(f"event {event.number} does not follow event {event.number - 1}")
                before = event.hash
                if progress is not None and event.number % 1000 == 0:
                    progress(event.number)
        except HedgerowError as error:
            return Audit(live.number, compared, live.hash, f"after event {live.number}: {error}", skipped)
        return Audit(live.number, compared, live.hash, "", skipped)


def _is_kept(store: Store, live: Live, snapshots: set[int]) -> bool:
    """Whether there is a snapshot of the state, which must be equal to it."""
    if live.number not in snapshots:
        return False
    kept = store.snapshot(live.number)
    if (kept.meta, bytes(kept.learner)) != live.packed():
        raise JournalError(f"the snapshot after event {live.number} is not what replay gives")
    return True


def _handed_over(store: Store, event: Event, snapshots: set[int]) -> Live | None:
    """The state that a release left to the next one, at this event or later."""
    upgrades = store.events(after=event.number, kinds=("version",))
    number = next((each.number - 1 for each in upgrades if each.number - 1 in snapshots), None)
    return None if number is None else Live.from_snapshot(store.snapshot(number), store.log)


def current(store: Store) -> Live:
    """The state of a journal now, as a reader computes it."""
    live = Live.from_snapshot(store.snapshot(), store.log)
    for event in store.events(after=live.number):
        live.apply(event)
    return live


def outcomes(store: Store, live: Live) -> Iterator[tuple[Event, Episode]]:
    """The outcomes that were told, in the order in which they came."""
    for event in store.events(kinds=LEARNT):
        yield event, Episode.from_dict(live.learner.view, event.outcome)


def exported(url: str, name: str) -> Log:
    """All outcomes that were told, as a log that learners absorb."""
    with reading(url, name) as store:
        live = current(store)
        episodes = [episode for _, episode in outcomes(store, live) if len(episode.rows)]
        return Log.read(live.learner.view, episodes)


def fork(url: str, name: str, other: str, thresholds: Mapping[str, float]) -> dict[str, Any]:
    """Make a journal that starts with all that another one has observed, under other thresholds.

    Decisions that are open there are unknown to it: nobody will tell it their outcomes.

    Returns:
        The weight of the baseline in the next decision, here and there.
    """
    with reading(url, name) as store:
        here = current(store)
        for group in {entry.plan.group for entry in here.learner.queue.entries} - {None, *here.learner.queue.closed}:
            here.learner.close_group(str(group))
        for plan in here.learner.open_plans:
            here.learner.abandon(plan, "it was open when the journal was forked")
        before = here.learner.__copy__().plan().mixing_weight
        there = Live(here.learner, store.log)
        there.do("change", None, {"thresholds": dict(thresholds)})
    with Journal.create(url, other, there.learner, deadline=store.deadline) as journal:
        after = journal.learner.__copy__().plan().mixing_weight
    return {"baseline_here": before, "baseline_there": after}
