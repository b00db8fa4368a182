"""One thread that owns a journal. Calls that come while a commit is under way share the next one.

A commit that waits for the disk takes as long for one call as for a hundred: under load the number of decisions per
second grows with the number of clients.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError, InvalidInput, JournalError
from hedgerow.journal.journal import Journal
from hedgerow.learners.base import BaseLearner
from hedgerow.model.episode import Episode

MOST_CALLS = 256
"""In one commit"""
MOST_WAITING = 4096
"""Calls beyond these are refused, so that memory stays bounded"""
PATIENCE = 30.0
"""Seconds for which `stop` waits for a database that does not answer"""
Call = Callable[[Journal], Any]


def rehearse(learner: BaseLearner) -> None:
    """Decide and learn twice on a copy, so that whatever has to be compiled is there before the first call comes."""
    copy = learner.__copy__()
    layout, num_actions = copy.layout, copy.layout.num_actions
    zeros = np.zeros(layout.steps), np.zeros((layout.steps, copy.view.num_constraints))
    with suppress(InvalidInput):  # all episodes are planned, or what the view knows rules this path out
        copy.max_open += 2
        plans = [copy.plan(), copy.plan()]
        for plan in reversed(plans):
            rows, state = [], 0
            for _ in range(layout.steps):
                rows.append(state * num_actions + int(plan.actions.numbers[state]))
                state = int(layout.successor[layout.row_start[rows[-1]]])
            copy.observe(Episode(copy.view, rows, *zeros), plan)


class Writer:
    """Carries out calls in the order in which they come; `group=False` gives each of them its own commit."""

    def __init__(self, journal: Journal, *, group: bool = True) -> None:
        self.journal = journal
        rehearse(journal.learner)
        self.commits = self.calls = self.failures = 0
        self._most = MOST_CALLS if group else 1
        self._calls: queue.Queue[tuple[Call, Future[Any]] | None] = queue.Queue()
        self._door, self._stopped = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name="hedgerow journal", daemon=True)
        self._thread.start()

    def submit(self, call: Call) -> Future[Any]:
        """Ask for a call; its answer comes after its commit. One that is cancelled before it begins is left out."""
        future: Future[Any] = Future()
        with self._door:
            if self._stopped:
                raise JournalError("the service has stopped")
            if self._calls.qsize() >= MOST_WAITING:
                raise JournalError(f"{MOST_WAITING} calls wait already; try again later")
            self._calls.put((call, future))
        return future

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return self._calls.qsize()

    def stop(self) -> None:
        """Finish what was asked for, and close the journal."""
        with self._door:  # nothing comes after the end, so that nobody waits for an answer that will not come
            if not self._stopped:
                self._calls.put(None)
            self._stopped = True
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise JournalError(f"the journal did not finish within {PATIENCE:g} s; what was answered is recorded")
        self.journal.close(snapshot=True)

    def _work(self) -> None:
        while (first := self._calls.get()) is not None:
            taken = [first]
            over = False
            while len(taken) < self._most and not over:
                try:
                    further = self._calls.get_nowait()
                except queue.Empty:
                    break
                over = further is None
                if further is not None:
                    taken.append(further)
            self._carry_out(taken)
            if over:
                return

    def _carry_out(self, taken: list[tuple[Call, Future[Any]]]) -> None:
        taken = [each for each in taken if each[1].set_running_or_notify_cancel()]
        if not taken:
            return
        try:
            answers = self._together([call for call, _ in taken])
        except BaseException:  # one of them, or the database: each for itself then, so that only the guilty ones fail
            answers = [self._alone(call) for call, _ in taken]
        for (_, future), answer in zip(taken, answers, strict=True):
            self.calls += 1
            with suppress(Exception):  # whoever asked may have gone
                if isinstance(answer, BaseException):
                    self.failures += 1
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _together(self, calls: list[Call]) -> list[Any]:
        answers: list[Any] = []
        with self.journal.batch():
            for call in calls:
                try:
                    answers.append(call(self.journal))
                except JournalError:
                    raise
                except HedgerowError as refused:  # nothing of it was done
                    answers.append(refused)
        self.commits += 1
        return answers

    def _alone(self, call: Call) -> Any:
        try:
            answer = call(self.journal)
        except BaseException as error:  # the thread goes on: others wait for its answers
            return error
        self.commits += 1
        return answer
