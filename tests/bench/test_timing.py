"""Times of calls: what is on the clock, what the clock itself takes, how many calls make a batch."""

from __future__ import annotations

import pytest

from bench import timing


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still unless a call moves it, and takes half a second to be read."""
    time = [0.0]
    monkeypatch.setattr(timing, "process_time", lambda: time[0])
    monkeypatch.setattr(timing, "reading", lambda: 0.5)
    return time


def test_only_calls_are_on_the_clock(now: list[float]) -> None:
    def spend(seconds: float) -> None:
        now[0] += seconds

    assert timing.clocked(lambda: spend(2.5), 3, lambda: spend(5.0)) == [2.0, 2.0, 2.0]
    assert timing.clocked(lambda: spend(2.0), 2, lambda: spend(5.0), batch=4) == [1.875, 1.875]
    assert timing.clocked(lambda: None, 1) == [0.0]  # never negative


def test_a_batch_takes_as_long_as_asked(now: list[float]) -> None:
    def spend() -> None:
        now[0] += 1.5

    assert timing.batch_for(spend, 20.0) == 20
    assert timing.batch_for(spend, 0.1) == 1


def test_reading_the_clock_takes_little() -> None:
    assert 0.0 <= timing.reading() < 1e-4
