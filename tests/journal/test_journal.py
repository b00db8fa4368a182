"""A journal: every event of its table is recorded, learnt as it says, and replayed with the same bits."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import ConflictError, InvalidInput, JournalError
from hedgerow.journal import audit, replay
from hedgerow.journal import journal as module
from hedgerow.journal.events import plain
from hedgerow.journal.journal import Journal, seconds
from hedgerow.learners.api import NumberedPlan

SECONDS = 120.0
"""After which a test gives up"""
VIEW = hr.View.of([["home"], ["road", "rail"]], ["wait", "go"], thresholds={"delay": 0.8, "fuel": 1.2})


class Clock:
    """Service time that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_an_hour(self) -> None:
        self.now += 3601.0


def make_learner(max_open: int = 8, **options: Any) -> hr.SOPS:
    policy = hr.Policy(VIEW, np.full((3, 2), 0.5))
    learner = hr.SOPS(VIEW, episodes=2000, baseline=hr.SafePolicy(policy, costs=[0.4, 0.6]), seed=3, **options)
    learner.max_open = max_open
    return learner


def make(url: str, name: str, **options: Any) -> Journal:
    return Journal.create(url, name, make_learner(), **options)


def outcome(decision: Any, number: int) -> tuple[Any, Any, Any]:
    """What happens when a decision is followed; a function of a number."""
    rng = np.random.default_rng(number)
    second = ("road", "rail")[rng.integers(2)]
    path = [("home", decision.actions["home"]), (second, decision.actions[second])]
    return path, rng.random(2).tolist(), (rng.random((2, 2)) < 0.2).astype(float).tolist()


def play(journal: Journal, first: int, last: int) -> None:
    for j in range(first, last):
        decision = journal.ask(f"day {j}")
        journal.tell(decision.id, *outcome(decision, j))


def test_the_same_name_gives_the_same_decision_and_an_outcome_counts_once(url: str, name: str) -> None:
    with make(url, name) as journal:
        decision = journal.ask("monday")
        assert journal.ask("monday").content == decision.content == journal.decision(0).content
        told = outcome(decision, 1)
        assert journal.tell("monday", *told) == "recorded"
        assert journal.tell("monday", *told) == "repeated"
        assert journal.status()["learnt"] == 1
        again = journal.ask("monday")
        assert again.status == "told"
        assert again.actions == decision.actions
        with pytest.raises(InvalidInput, match="has ended"):
            _ = again.policy


def test_another_outcome_is_a_conflict_recorded_once_and_not_learnt(url: str, name: str) -> None:
    with make(url, name) as journal:
        decision = journal.ask("monday")
        path, losses, costs = outcome(decision, 1)
        journal.tell("monday", path, losses, costs)
        before = journal.learner.state()
        for _ in range(2):
            with pytest.raises(ConflictError, match="told before"):
                journal.tell("monday", path, [0.0, 0.0], costs)
        after = journal.learner.state()
        assert all(np.array_equal(before[key], after[key]) for key in before)
        assert journal.status()["events"]["conflict"] == 1


def test_outcomes_in_any_order_lead_to_the_state_of_plan_order(url: str, name: str) -> None:
    alone = make_learner()
    plans = [alone.plan() for _ in range(6)]
    with make(url, name) as journal:
        decisions = [journal.ask(f"day {j}") for j in range(6)]
        told = [outcome(decision, j) for j, decision in enumerate(decisions)]
        for j in (3, 0, 5, 1, 4, 2):
            journal.tell(decisions[j].id, *told[j])
        learnt = journal.learner.state()
    for plan, (path, losses, costs) in zip(plans, told, strict=True):
        alone.observe(hr.Episode(VIEW, path, losses, costs), plan)
    expected = alone.state()
    assert learnt.keys() == expected.keys()
    assert all(np.array_equal(learnt[key], expected[key]) for key in expected)


def test_a_journal_goes_on_where_it_was_left(url: str, name: str) -> None:
    with make(url, name) as journal:
        play(journal, 0, 12)
        open_one = journal.ask("open")
        state = journal.learner.state()
        waiting = journal.ask("later")
        journal.tell("later", *outcome(waiting, 5))
    with Journal.open(url, name) as journal:
        assert journal.decision("open").plan is not None
        assert journal.ask("open").content == open_one.content
        assert journal.status()["waiting"] == 1
        journal.tell("open", *outcome(open_one, 4))
        assert journal.status()["learnt"] == 14
        assert state.keys()
    assert audit.verify(url, name).problem == ""


def test_one_process_writes(url: str, name: str) -> None:
    with make(url, name), pytest.raises(JournalError, match="another process"):
        Journal.open(url, name)
    with Journal.open(url, name) as journal:
        assert journal.last_event == 0


def test_a_standby_waits_for_the_writer_to_end(url: str, name: str) -> None:
    writer = make(url, name)
    play(writer, 0, 2)
    with pytest.raises(JournalError, match="another process"):
        Journal.open(url, name, wait=0.1)
    end = threading.Timer(0.2, writer.close)
    end.start()
    with Journal.open(url, name, wait="1min") as standby:
        assert standby.status()["learnt"] == 2
    end.join(SECONDS)
    for wrong in ("soon", -1.0, float("nan")):
        with pytest.raises(InvalidInput):
            Journal.open(url, name, wait=wrong)


def test_a_writer_whose_connection_breaks_takes_its_lock_again(postgresql: str, name: str) -> None:
    import sqlalchemy as sa

    with make(postgresql, name) as journal:
        play(journal, 0, 2)
        engine = journal._store.engine
        mine = journal._store.connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with engine.connect() as other:
            assert other.scalar(sa.text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": mine})
        with pytest.raises(JournalError, match="nothing was recorded"):
            journal.ask("lost")
        play(journal, 2, 4)
        assert journal.status()["learnt"] == 4
        with pytest.raises(JournalError, match="another process"):
            Journal.open(postgresql, name)
    assert audit.verify(postgresql, name).problem == ""


def test_a_decision_expires_in_service_time_and_learning_goes_on(url: str, name: str) -> None:
    clock = Clock()
    with make(url, name, deadline="1h", clock=clock) as journal:
        journal.ask("lost")
        decision = journal.ask("told")
        journal.tell("told", *outcome(decision, 2))
        assert journal.status()["learnt"] == 0
        clock.now = 3599.0
        assert journal.expire() == 0
    clock.now = 1e6  # an outage
    with Journal.open(url, name, clock=clock) as journal:
        assert journal.expire() == 0
        clock.now += 3601.0
        journal.ask("next")
        assert journal.decision("lost").status == "expired"
        assert journal.status()["learnt"] == 2
        late = outcome(journal.decision("lost"), 2)
        assert journal.tell("lost", *late) == "resolved"
        assert journal.learner.logged["unknown"] == 1  # behind the open decision
        assert journal.decision("lost").status == "resolved"
        assert journal.tell("lost", *late) == "repeated"
        with pytest.raises(ConflictError):
            journal.tell("lost", late[0], [0.0, 0.0], late[2])
        journal.tell("next", *outcome(journal.decision("next"), 3))
        assert journal.learner.logged["unknown"] == 0
        assert len(audit.exported(url, name)) == 3
    assert audit.verify(url, name).problem == ""


def test_an_outcome_that_cannot_be_learnt_any_more_is_late(url: str, name: str) -> None:
    with make(url, name) as journal:
        cut, day = journal.ask("cut"), journal.ask("monday", group="monday")
        journal.abandon("cut", "a power cut", independent=True)
        journal.abandon("monday", "lost")
        journal.close_group("monday")
        before = journal.learner.state()
        for decision in (cut, day):
            assert journal.tell(decision.id, *outcome(decision, 1)) == "late"
        after = journal.learner.state()
        assert all(np.array_equal(before[key], after[key]) for key in before)
        assert journal.status()["events"]["late"] == 2
    assert audit.verify(url, name).problem == ""


def test_snapshots_hold_what_resolves_an_unknown(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 4)
    with make(url, name) as journal:
        lost = [journal.ask(f"lost {j}") for j in range(3)]
        for decision in lost:
            journal.abandon(decision.id, "charger off")
        waits = journal.ask("waits")
        assert journal.tell("lost 0", *outcome(lost[0], 0)) == "resolved"
        play(journal, 0, 3)
    with Journal.open(url, name) as journal:
        assert journal.tell("lost 2", *outcome(lost[2], 2)) == "resolved"
        journal.tell("waits", *outcome(waits, 9))
        play(journal, 3, 6)
        assert journal.learner.logged["unknown"] == 1
        assert journal.learner.unresolved == (1,)
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.snapshots > 2) == ("", True)


def test_a_call_that_is_refused_changes_nothing(url: str, name: str) -> None:
    with make(url, name) as journal:
        play(journal, 0, 3)
        decision = journal.ask("monday")
        before = journal.status()
        path, losses, costs = outcome(decision, 1)
        calls = (
            lambda: journal.tell("nobody", path, losses, costs),
            lambda: journal.tell("monday", path, [2.0, 0.0], costs),
            lambda: journal.tell("monday", path, losses, [[np.nan, 0.0]] * 2),
            lambda: journal.tell("monday", path),
            lambda: journal.ask("x" * 201),
            lambda: journal.ask("monday", group="other"),
            lambda: journal.change(by="", why="w", thresholds={"delay": 0.5}),
            lambda: journal.change(by="b", why="w"),
            lambda: journal.change(by="b", why="w", thresholds={"delya": 0.5}),
            lambda: journal.change(by="b", why="w", thresholds={"delay": 0.3}),  # the baseline is not safe then
            lambda: journal.abandon("monday", " "),
            lambda: journal.abandon("nobody", "reason"),
        )
        for call in calls:
            with pytest.raises(InvalidInput):
                call()
        after = journal.status()
        before.pop("service_seconds"), after.pop("service_seconds")
        before.pop("oldest_open_seconds"), after.pop("oldest_open_seconds")
        assert after == before


def test_more_decisions_than_may_be_open_are_refused(url: str, name: str) -> None:
    with make(url, name) as journal:
        for j in range(8):
            journal.ask(f"day {j}")
        with pytest.raises(InvalidInput, match="max_open"):
            journal.ask("one more")


def test_changed_limits_hold_for_later_decisions(url: str, name: str) -> None:
    with make(url, name) as journal:
        play(journal, 0, 4)
        before = journal.ask("before")
        journal.change(by="management", why="complaints", thresholds={"delay": 0.7})
        after = journal.ask("after")
        assert before.content["thresholds"]["delay"] == 0.8
        assert after.content["thresholds"] == {"delay": 0.7, "fuel": 1.2}
        journal.tell("before", *outcome(before, 1))
        journal.tell("after", *outcome(after, 2))
        assert journal.decision("before").content["thresholds"]["delay"] == 0.8
    assert audit.verify(url, name).problem == ""


def test_other_costs_of_the_baseline_and_another_number_of_episodes(url: str, name: str) -> None:
    with make(url, name) as journal:
        play(journal, 0, 4)
        before = journal.ask("before").content["mixing_weight"]
        journal.change(by="a", why="measured", baseline_costs={"delay": 0.1, "fuel": 0.2})
        journal.change(by="a", why="a good year", episodes=5000)
        assert journal.learner.episodes == 5000
        assert journal.ask("after").content["mixing_weight"] < before
        with pytest.raises(InvalidInput, match="have been planned"):
            journal.change(by="a", why="b", episodes=3)
    assert audit.verify(url, name).problem == ""


def test_a_full_disk_fails_the_call_and_nothing_else(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/site.db"
    with make(url, "site") as journal:
        play(journal, 0, 3)
        connection = journal._store.connection
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")  # what SQLite does when the disk is full
        with pytest.raises(JournalError, match="full"):
            play(journal, 3, 100)
        told = journal.status()["learnt"]
        assert told < 100
        journal._store.connection.exec_driver_sql("PRAGMA max_page_count = 100000")
        play(journal, told, told + 3)
        assert journal.status()["learnt"] == told + 3
    assert audit.verify(url, "site").problem == ""


def test_a_learner_that_cannot_be_changed_says_so(url: str, name: str) -> None:
    log = hr.Log.read(VIEW, [hr.Episode(VIEW, [0, 2], [0.0, 0.0], np.zeros((2, 2)))])
    with Journal.create(url, name, hr.field.Uniform(VIEW, 10)) as journal:
        for call in (lambda: journal.change(by="b", why="w", thresholds={"delay": 0.7}), lambda: journal.absorb(log)):
            with pytest.raises(InvalidInput, match="uniform has no"):
                call()
        play(journal, 0, 2)
    assert audit.verify(url, name).events == 4


def test_a_log_is_absorbed_once_and_kept(url: str, name: str) -> None:
    with make(url, name) as journal:
        decision = journal.ask("monday")
        path, losses, costs = outcome(decision, 1)
        journal.tell("monday", path, losses, costs)
        log = hr.Log.read(VIEW, [hr.Episode(VIEW, path, losses, costs)] * 5)
        journal.absorb(log)
        with pytest.raises(InvalidInput, match="absorbed"):
            journal.absorb(log)
        play(journal, 0, 3)
    assert audit.verify(url, name).problem == ""
    with Journal.open(url, name) as journal:
        assert journal.status()["events"]["absorb"] == 1


def test_snapshots_are_what_replay_gives(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 10)
    with make(url, name) as journal:
        play(journal, 0, 12)
        journal.ask("open")
        state = journal.status()["hash"]
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.snapshots, verdict.hash) == ("", 2, state)


def test_snapshots_with_open_decisions_are_what_replay_gives(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 5)
    with make(url, name, deadline="1h") as journal:  # by a clock that moves between any two looks
        for j in range(6):
            decisions = [journal.ask(f"{j}: {k}") for k in range(3)]
            for decision in decisions[:2] if j == 5 else decisions:
                journal.tell(decision.id, *outcome(decision, j))
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.snapshots) == ("", 7)


def test_a_decision_is_found_without_going_through_the_journal(tmp_path: Any) -> None:
    import sqlalchemy as sa

    from hedgerow.journal.storage import OF_DECISION

    with make(f"sqlite:///{tmp_path}/site.db", "site") as journal:
        play(journal, 0, 3)
        asked = str(OF_DECISION.compile(journal._store.engine)).replace("?", "1")
        steps = journal._store.connection.execute(sa.text(f"EXPLAIN QUERY PLAN {asked}")).all()
    assert [step.detail for step in steps] == [
        "SEARCH hedgerow_events USING INDEX hedgerow_decisions (journal=? AND decision=?)"
    ]


def tamper(url: str, name: str, number: int) -> None:
    """Change what an event says."""
    import sqlalchemy as sa

    from hedgerow.journal.storage import EVENTS, Store

    store = Store(url, name)
    store.open()
    with store.transaction():
        mine = (EVENTS.c.journal == store.journal) & (EVENTS.c.number == number)
        body = json.loads(store.connection.scalar(sa.select(EVENTS.c.body).where(mine)))
        store.connection.execute(sa.update(EVENTS).where(mine).values(body=plain(body | {"losses": [0.125, 0.5]})))
    store.close()


def test_a_changed_event_breaks_the_chain(url: str, name: str) -> None:
    with make(url, name) as journal:
        play(journal, 0, 5)
    tamper(url, name, 4)
    assert "event 4 does not follow event 3" in audit.verify(url, name).problem
    with pytest.raises(JournalError, match="chain is broken"):
        Journal.open(url, name)


def test_a_failed_commit_leaves_nothing_behind(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    with make(url, name) as journal:
        play(journal, 0, 3)
        before, store = journal.status()["hash"], journal._store
        add = store.append

        def full(event: Any) -> None:
            add(event)
            raise OperationalError("INSERT", {}, Exception("disk full"))

        monkeypatch.setattr(store, "append", full)
        with pytest.raises(JournalError, match="nothing was recorded"):
            journal.ask("monday")
        monkeypatch.setattr(store, "append", add)
        assert journal.status()["hash"] == before
        play(journal, 3, 6)
    assert audit.verify(url, name).problem == ""


BREAKS = 0.123
"""A loss that breaks the learner of the tests below, as a defect would"""


@pytest.fixture
def breakable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a learner fail halfway, when it learns an outcome with this loss."""
    end = hr.SOPS._end
    absorbing = {"_take_in": hr.SOPS._take_in, "_take_back": hr.SOPS._take_back}

    def broken(learner: Any, episode: Any) -> None:
        end(learner, episode)
        if BREAKS in episode.losses:
            raise ZeroDivisionError("a defect")

    def broken_log(learner: Any, log: Any) -> None:
        absorbing["_take_in"](learner, log)
        raise ZeroDivisionError("a defect")

    def broken_late(learner: Any, plan: Any, episode: Any) -> None:
        absorbing["_take_back"](learner, plan, episode)
        if BREAKS in episode.losses:
            raise ZeroDivisionError("a defect")

    monkeypatch.setattr(hr.SOPS, "_end", broken)
    monkeypatch.setattr(hr.SOPS, "_take_in", broken_log)
    monkeypatch.setattr(hr.SOPS, "_take_back", broken_late)


def breaking(decision: Any, number: int) -> tuple[Any, Any, Any]:
    path, losses, costs = outcome(decision, number)
    return path, [BREAKS, losses[1]], costs


@pytest.mark.usefixtures("breakable")
@pytest.mark.parametrize("others", [0, 2])
def test_an_outcome_that_breaks_the_learner_counts_as_unknown(url: str, name: str, others: int) -> None:
    with make(url, name) as journal:
        play(journal, 0, 3)
        decision = journal.ask("monday")
        for j in range(others):
            journal.ask(f"open {j}")
        told = breaking(decision, 1)
        assert journal.try_tell("monday", *told) == "poisoned"
        assert journal.decision("monday").status == "poisoned"
        assert journal.try_tell("monday", *told) == "repeated"
        assert journal.try_tell("monday", *outcome(decision, 1)) == "conflict"
        assert (journal.status()["learnt"], journal.learner.logged["unknown"]) == (4, 1)
        assert journal.status()["told"] == 4  # it was observed all the same
        for j in range(others):
            journal.abandon(f"open {j}", "off")
        play(journal, 3, 6)
    assert audit.verify(url, name).problem == ""


@pytest.mark.usefixtures("breakable")
@pytest.mark.parametrize("how", ["tell", "abandon", "expire", "in a batch"])
def test_an_outcome_that_waits_and_breaks_the_learner_is_unknown_and_no_other(url: str, name: str, how: str) -> None:
    """Its turn comes with the outcome of an earlier decision, which is not to blame."""
    clock = Clock()
    with make(url, name, deadline="1h", clock=clock) as journal:
        first, *bad, last = [journal.ask(day) for day in ("first", "bad", "worse", "last")]
        for decision in (*bad, last):
            journal.tell(decision.id, *(outcome(decision, 3) if decision is last else breaking(decision, 2)))
        assert journal.status()["learnt"] == 0
        if how == "tell":
            assert journal.tell("first", *outcome(first, 1)) == "recorded"
        elif how == "abandon":
            assert journal.abandon("first", "off") == "recorded"
        elif how == "expire":
            clock.now = 3601.0
            assert journal.expire() == 1
        else:
            with journal.batch():
                before = journal.ask("in the batch")
                journal.tell("first", *outcome(first, 1))
            assert journal.decision("in the batch").content == before.content
        statuses = [journal.decision(day).status for day in ("first", "bad", "worse", "last")]
        ended = {"abandon": "abandoned", "expire": "expired"}.get(how, "told")
        assert statuses == [ended, "poisoned", "poisoned", "told"]
        assert journal.status()["learnt"] == 4
        assert journal.learner.logged["unknown"] == 2 + (ended != "told")
        assert "a defect" in journal.decision("bad").events[-1].content["reason"]
        assert journal.tell("bad", *breaking(bad[0], 2)) == "repeated"
        play(journal, 3, 6)
    assert audit.verify(url, name).problem == ""
    with Journal.open(url, name) as journal:
        assert journal.decision("first").status == ended


@pytest.mark.usefixtures("breakable")
def test_a_log_and_a_late_outcome_that_wait_and_break_the_learner_are_left_out(url: str, name: str) -> None:
    with make(url, name) as journal:
        lost, gone = journal.ask("lost"), journal.ask("gone")
        for decision in (lost, gone):
            journal.abandon(decision.id, "off")
        assert journal.tell("gone", *breaking(gone, 5)) == "late"  # at once: no decision is open
        first = journal.ask("first")
        path, losses, costs = outcome(first, 1)
        journal.absorb(hr.Log.read(VIEW, [hr.Episode(VIEW, path, losses, costs)] * 5))
        assert journal.tell("lost", *breaking(lost, 5)) == "resolved"  # when "first" is learnt
        assert journal.tell("first", path, losses, costs) == "recorded"
        assert journal.decision("lost").status == "poisoned"
        assert journal.status()["events"]["poisoned"] == 2  # it, and the log
        assert (journal.learner.logged["unknown"], journal.learner.logged["episodes"]) == (2, 0)
        play(journal, 0, 3)
    assert audit.verify(url, name).problem == ""


def test_outcomes_that_came_late_are_in_the_mean_costs(url: str, name: str) -> None:
    """A deadline must not make the costs look lower than they were: those that came late are costs as well."""
    with make(url, name) as journal:
        decisions = [journal.ask(day) for day in "abc"]
        grouped, cut = journal.ask("d", group="monday"), journal.ask("e")
        told = [outcome(decision, j) for j, decision in enumerate([*decisions, grouped, cut])]
        for day in "bc":
            journal.abandon(day, "no answer")
        journal.abandon("d", "no answer")
        journal.abandon("e", "a power cut", independent=True)
        journal.close_group("monday")
        answers = [journal.tell(day, *each) for day, each in zip("abcde", told, strict=True)]
        assert answers == ["recorded", "resolved", "resolved", "late", "late"]
        answers = [journal.tell(day, *each) for day, each in zip("abcde", told, strict=True)]
        assert answers == ["repeated"] * 5
        with pytest.raises(ConflictError):
            journal.tell("e", told[4][0], [0.0, 0.0], told[4][2])
        status = journal.status()
        assert status["events"] == {"ask": 5, "tell": 1, "abandon": 4, "close": 1, "resolve": 2, "late": 2,
                                    "conflict": 1}  # fmt: skip
        assert status["told"] == sum(branch["told"] for branch in status["branches"].values()) == 5
        means = np.mean([np.sum(costs, axis=0) for _, _, costs in told], axis=0)
        assert list(status["mean_costs"].values()) == pytest.approx(means.tolist())
        assert status["mean_loss"] == pytest.approx(np.mean([np.sum(losses) for _, losses, _ in told]))
        assert sum(block["told"] for block in status["history"]) == 5
    assert audit.verify(url, name).problem == ""


@pytest.mark.parametrize("kind", [hr.BOPS, hr.COPS])
def test_budgets_and_pools_with_several_open_decisions_are_replayed(
    url: str, name: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 25)
    policy = hr.SafePolicy(hr.Policy(VIEW, np.full((3, 2), 0.5)), costs=[0.4, 0.6])
    learner = kind(VIEW, episodes=2000, baseline=policy, seed=3)
    learner.max_open = 6
    rng, waiting = np.random.default_rng(0), list[Any]()
    with Journal.create(url, name, learner) as journal:
        for j in range(60):
            waiting.append(journal.ask(f"day {j}"))
            if j == 20:
                journal.change(by="management", why="complaints", thresholds={"delay": 0.7})
            if j == 40:
                journal.abandon(waiting.pop(0).id, "charger off")
            while len(waiting) > 3:
                decision = waiting.pop(int(rng.integers(len(waiting))))
                journal.tell(decision.id, *outcome(decision, j))
        assert {journal.decision(f"day {j}").content["branch"] for j in range(60)} == {"own", "baseline"}
        state, told = journal.learner.state(), waiting[0]
    with Journal.open(url, name) as journal:
        again = journal.learner.state()
        assert state.keys() == again.keys()
        assert all(np.array_equal(state[key], again[key]) for key in state)
        journal.tell(told.id, *outcome(told, 99))
        assert journal.status()["open"] == 2
        promise = "budget" if kind is hr.BOPS else "safety"
        assert journal.learner.guarantees()[promise].holds
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.snapshots > 2) == ("", True)


class OtherRelease:
    """A release that records other words of its decisions, as one with other bits would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        explain, own = NumberedPlan.explain, module.version("hedgerow")
        for part in (module, replay, audit):
            monkeypatch.setattr(part, "version", lambda _: "0.0.1" if self.runs else own)
        monkeypatch.setattr(NumberedPlan, "explain", lambda plan: explain(plan) + " (as of old)" * self.runs)
        self.runs = True


def test_another_release_goes_on_with_the_same_bits(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "version", lambda _: "0.0.1")
    with make(url, name) as journal:
        play(journal, 0, 3)
    monkeypatch.undo()
    with Journal.open(url, name) as journal:
        assert journal.status()["version"] == module.version("hedgerow")
        play(journal, 3, 6)
        assert journal.status()["events"]["version"] == 1
    with Journal.open(url, name) as journal:
        assert journal.status()["events"]["version"] == 1
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.events, verdict.skipped) == ("", 13, 0)


def test_another_release_with_other_bits_begins_with_the_snapshot(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = OtherRelease(monkeypatch)
    journal = make(url, name)
    play(journal, 0, 4)
    waits = journal.ask("waits")
    journal.close()
    former.runs = False
    with pytest.raises(JournalError, match=r"recorded by hedgerow 0\.0\.1; .* close\(snapshot=True\)"):
        Journal.open(url, name)
    assert "0.0.1" in audit.verify(url, name).problem
    former.runs = True
    Journal.open(url, name).close(snapshot=True)
    former.runs = False
    with Journal.open(url, name) as journal:
        assert journal.decision("waits").content == waits.content
        journal.tell("waits", *outcome(waits, 9))
        play(journal, 4, 8)
        assert journal.status()["learnt"] == 9
    verdict = audit.verify(url, name)
    assert (verdict.problem, verdict.events, verdict.skipped) == ("", 19, 9)
    tamper(url, name, 3)
    assert "event 3 does not follow event 2" in audit.verify(url, name).problem


# The table of events (docs/years.md): what is written, what is learnt, and the sentence that the ledger then carries

UNKNOWN = "1 episodes with unknown values, for which the confidence sets have room"
DECLARED = "which is declared to have nothing to do with their costs or moves: 'a power cut'"
SEVERAL = "costs and moves of plans that were open at the same time are independent of each other"
Row = tuple[Callable[[Journal, Any, Clock], Any], list[str], int, str, bool]
TABLE: dict[str, Row] = {  # the written kinds, how much is learnt, the sentence, whether a regret is claimed
    "an outcome": (lambda j, d, _: j.tell("day", *outcome(d, 1)), ["tell"], 1, "", True),
    "the same again": (
        lambda j, d, _: [j.tell("day", *outcome(d, 1)) for _ in range(3)], ["tell"], 1, "", True,
    ),
    "another outcome": (
        lambda j, d, _: [j.try_tell("day", *outcome(d, k)) for k in (1, 2, 2)], ["tell", "conflict"], 1,
        "1 other outcomes were told of decisions that had one: the first of each was the right one", True,
    ),
    "aborted": (
        lambda j, d, _: j.tell("day", *(part[:1] for part in outcome(d, 1)), ended_in="road"), ["tell"], 1, UNKNOWN,
        False,
    ),
    "overridden": (
        lambda j, d, _: j.tell("day", *outcome(d, 1), overridden_from=1), ["tell"], 1,
        "1 own episodes did not follow their plans to the end", False,
    ),
    "a missing cost": (
        lambda j, d, _: j.tell("day", *outcome(d, 1), unknown_costs=[[True, False], [False, False]]), ["tell"], 1,
        UNKNOWN, False,
    ),
    "missing": (lambda j, d, _: j.tell("day", hr.Episode.missing(VIEW)), ["tell"], 1, UNKNOWN, False),
    "expired": (lambda j, d, clock: (clock.pass_an_hour(), j.expire()), ["expire"], 1, UNKNOWN, False),
    "resolved": (
        lambda j, d, _: (j.abandon("day", "no answer"), j.tell("day", *outcome(d, 1))), ["abandon", "resolve"], 1,
        "1 outcomes came after their plans were given up, and are in the confidence sets", False,
    ),
    "never carried out": (lambda j, d, _: j.abandon("day", "charger off"), ["abandon"], 1, UNKNOWN, False),
    "never carried out, declared": (
        lambda j, d, _: j.abandon("day", "a power cut", independent=True), ["abandon"], 1, DECLARED, True,
    ),
    "several open": (
        lambda j, d, _: (j.tell(j.ask("other").id, *outcome(d, 2)), j.tell("day", *outcome(d, 1))),
        ["tell", "ask", "tell"], 2, SEVERAL, False,
    ),
    "thresholds changed": (
        lambda j, d, _: j.change(by="management", why="complaints", thresholds={"delay": 0.7}), ["change"], 0,
        "what was promised changed 1 times, at last: before plan 1, thresholds: delay 0.8 -> 0.7", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("event", TABLE)
def test_what_an_event_writes_and_teaches_and_what_the_ledger_says(url: str, name: str, event: str) -> None:
    act, kinds, learnt, sentence, regret = TABLE[event]
    clock = Clock()
    with make(url, name, deadline="1h", clock=clock) as journal:
        decision = journal.ask("day")
        act(journal, decision, clock)
        status, ledger = journal.status(), journal.guarantees()
        assert status["events"] == Counter(["ask", *kinds])
        assert status["learnt"] == learnt
        assert status["ledger"] == ledger.to_dict()
    assert any(sentence in line for line in ledger.assumptions)
    assert ledger["confidence"].holds
    assert ledger["safety"].holds
    assert ledger["regret"].holds == regret
    assert audit.verify(url, name).problem == ""
    with Journal.open(url, name) as journal:
        assert journal.guarantees().to_dict() == ledger.to_dict()


def test_calls_in_a_batch_share_a_commit_or_are_all_undone(url: str, name: str) -> None:
    with make(url, name) as journal:
        with journal.batch():
            first, second = journal.ask("a"), journal.ask("b")
        assert first.content["episode"] + 1 == second.content["episode"]
        with pytest.raises(ZeroDivisionError), journal.batch():
            assert journal.ask("c").content["episode"] / 0
        with pytest.raises(InvalidInput, match="no decision"):
            journal.decision("c")
        assert journal.status()["asked"] == 2


def test_groups_are_closed_through_the_journal(url: str, name: str) -> None:
    with make(url, name) as journal:
        both = [journal.ask(f"{charger} on monday", group="monday") for charger in "ab"]
        for j, decision in enumerate(both):
            journal.tell(decision.id, *outcome(decision, j))
        assert journal.status()["learnt"] == 0
        journal.close_group("monday")
        assert journal.status()["learnt"] == 2
    assert audit.verify(url, name).problem == ""


def test_export_and_fork(url: str, name: str, tmp_path: Any) -> None:
    with make(url, name) as journal:
        play(journal, 0, 9)
        log = audit.exported(url, name)  # while it is open
        counts = journal.learner.state()
        for group in (None, "today"):
            journal.ask(f"open, {group}", group=group)
    assert len(log) == 9
    other = make_learner()
    other.absorb(log)
    for part in ("counts.num_visits", "counts.num_moves", "counts.num_costs", "counts.cost_sums"):
        np.testing.assert_allclose(other.state()[part], counts[part], atol=1e-12)
    found = audit.fork(url, name, f"{name}-strict", {"delay": 0.7})
    assert found["baseline_there"] >= found["baseline_here"]
    with Journal.open(url, f"{name}-strict") as strict:
        np.testing.assert_array_equal(strict.learner.state()["counts.num_visits"], counts["counts.num_visits"])
        assert strict.ask("first").content["thresholds"]["delay"] == 0.7
        assert any("2 episodes with unknown values" in line for line in strict.guarantees().assumptions)
    assert audit.verify(url, f"{name}-strict").problem == ""
    with Journal.open(url, name) as journal:
        assert journal.status()["open"] == 2  # it was only read


def test_a_killed_writer_is_replaced_and_nothing_acknowledged_is_lost(url: str, name: str) -> None:
    with make(url, name):
        pass
    code = f"""
import sys
sys.path.insert(0, {str(__file__.rpartition("/tests/")[0])!r})
from hedgerow.journal.journal import Journal
from tests.journal.test_journal import outcome
journal = Journal.open({url!r}, {name!r})
j = 0
while True:
    decision = journal.ask(f"day {{j}}")
    print(f"day {{j}}", flush=True)
    journal.tell(decision.id, *outcome(decision, j))
    print(f"told {{j}}", flush=True)
    j += 1
"""
    answers = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as worker:
        watchdog = threading.Timer(SECONDS, worker.kill)  # whatever it waits for
        watchdog.start()
        assert worker.stdout is not None
        for line in worker.stdout:
            answers.append(line.strip())
            if line.startswith("told 20"):
                break
        worker.kill()
        answers += [line.strip() for line in worker.stdout]
        watchdog.cancel()
    with Journal.open(url, name, wait=SECONDS) as journal:
        for answer in answers:
            word, number = answer.split()
            status = journal.decision(f"day {number}").status
            assert status == "told" if word == "told" else status in ("open", "told")
        play(journal, 100, 103)
        assert journal.status()["learnt"] >= 21
    assert audit.verify(url, name).problem == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [("90s", 90.0), ("15min", 900.0), ("36h", 129600.0), ("2d", 172800.0), (5, 5.0), (None, None)],
)
def test_durations(given: Any, expected: float | None) -> None:
    assert seconds(given) == expected


@pytest.mark.parametrize("given", ["soon", "-3h", "0s", float("nan"), float("inf"), "3 weeks", True])
def test_what_is_no_duration(given: Any) -> None:
    with pytest.raises(InvalidInput):
        seconds(given)


@pytest.mark.parametrize("address", ["nothing", "sqlite://", "sqlite:///:memory:", "mysql://a@b/c", 3, ""])
def test_what_is_no_database(address: Any) -> None:
    with pytest.raises(InvalidInput):
        Journal.create(address, "site", make_learner())


def test_what_cannot_be_kept(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/site.db"
    with pytest.raises(InvalidInput, match="on_refuted"):
        Journal.create(url, "site", make_learner(on_refuted="raise"))
    with pytest.raises(InvalidInput, match="a learner of hedgerow"):
        Journal.create(url, "site", object())  # type: ignore[arg-type]
    planned = make_learner()
    planned.plan()
    with pytest.raises(InvalidInput, match="open plans"):
        Journal.create(url, "site", planned)
    with pytest.raises(InvalidInput, match="no database"):
        Journal.open(url, "site")
    make(url, "other").close()
    with pytest.raises(InvalidInput, match="no journal"):
        Journal.open(url, "site")
    with pytest.raises(InvalidInput, match="durability"):
        Journal.create(url, "site", make_learner(), durability="none")  # type: ignore[arg-type]
    make(url, "site").close()
    with pytest.raises(InvalidInput, match="already"):
        make(url, "site")
