"""Signals wait for the end of an episode, and a second one does not wait."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.simulation.run import SIGNALS, HeldBack, Simulation


class Interrupted:
    """Gets so many signals while it plans its fourth episode."""

    def __init__(self, view: hr.View, signals: int) -> None:
        self.view, self.signals, self.planned, self.observed = view, signals, 0, 0

    def plan(self) -> hr.Plan:
        self.planned += 1
        if self.planned == 4:
            for _ in range(self.signals):
                signal.raise_signal(signal.SIGINT)
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode: hr.Episode) -> None:
        self.observed += 1


def interrupted(signals: int) -> Simulation:
    world = hr.worlds.make("lower-bound-2")
    simulation = Simulation(world.cmdp, Interrupted(world.view(), signals), world.loss, episodes=10)
    with pytest.raises(KeyboardInterrupt):
        simulation.run()
    return simulation


def test_a_signal_waits_for_the_end_of_the_episode() -> None:
    simulation: Any = interrupted(signals=1)
    assert simulation.done == simulation.learner.observed == 4
    simulation.run()
    assert simulation.done == 10


def test_a_second_signal_does_not_wait() -> None:
    simulation: Any = interrupted(signals=2)
    assert simulation.learner.observed == 3


def test_handlers_are_restored_and_called_at_the_end() -> None:
    before, caught = signal.getsignal(signal.SIGINT), []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    own = signal.getsignal(signal.SIGINT)
    try:
        with HeldBack() as signals:
            signal.raise_signal(signal.SIGINT)
            assert caught == []
            signals.let_through()
            assert caught == [signal.SIGINT]
            signal.raise_signal(signal.SIGINT)
        assert caught == [signal.SIGINT, signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_handlers_alone() -> None:
    seen = []

    def inside() -> None:
        with HeldBack() as signals:
            seen.append(signal.getsignal(signal.SIGINT))
            signals.let_through()

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("moment", ["entered", "left"])
def test_signals_while_a_block_is_entered_or_left_do_not_stay_held(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    install, struck = signal.signal, []

    def strike(number: int, handler: Any) -> Any:
        found = install(number, handler)
        if not struck and (handler in before.values()) == (moment == "left"):
            struck.append(number)
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(signal, "signal", strike)
    try:
        with pytest.raises(KeyboardInterrupt), HeldBack():
            pass
        assert struck
        assert {number: signal.getsignal(number) for number in SIGNALS} == before
    finally:
        for number, handler in before.items():
            install(number, handler)


def test_a_handler_that_does_not_raise_leaves_the_rest_of_the_block_protected() -> None:
    before, caught = signal.getsignal(signal.SIGINT), []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:
        with HeldBack() as signals:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
            assert len(caught) == 1
            signals.let_through()
            assert len(caught) == 2
            signal.raise_signal(signal.SIGINT)
            assert len(caught) == 2
        assert len(caught) == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exception_between_entering_and_the_block_leaves_no_handler_behind() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        HeldBack().__enter__()  # what a `with` calls; the interrupts come before its block has begun
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert {number: signal.getsignal(number) for number in SIGNALS} == before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
