"""Signals wait for the end of an episode, and a second one does not wait."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.simulation.arguments import held_back
from hedgerow.simulation.run import Simulation


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
    simulation = Simulation(world.cmdp, world.loss, Interrupted(world.view(), signals), episodes=10)
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
        with held_back() as let_through:
            signal.raise_signal(signal.SIGINT)
            assert caught == []
            let_through()
            assert caught == [signal.SIGINT]
            signal.raise_signal(signal.SIGINT)
        assert caught == [signal.SIGINT, signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_handlers_alone() -> None:
    seen = []

    def inside() -> None:
        with held_back() as let_through:
            seen.append(signal.getsignal(signal.SIGINT))
            let_through()

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
