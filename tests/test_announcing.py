"""While something compiles: what is going to be compiled, about how long it takes, and one line that says so."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numba
import pytest

from hedgerow.compiling import warmup
from hedgerow.compiling.kernels import kernel, shared_kernel
from hedgerow.compiling.warmup import LINK, PART, Announcer, callees, parts_of, seconds_ahead

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@kernel
def leaf(x: float) -> float:
    return x + 1.0


@kernel
def middle(x: float) -> float:
    return leaf(x) + leaf(2.0 * x)


@shared_kernel(0.0)
def large(x: float) -> float:
    return middle(x)


@kernel
def caller(x: float) -> float:
    return large(x) + leaf(x)


def test_what_a_program_consists_of_is_known_beforehand() -> None:
    assert callees(middle) == [leaf]
    assert set(callees(caller)) == {large, leaf}
    assert set(parts_of(middle)) == {middle, leaf}
    assert set(parts_of(caller)) == {caller, leaf}  # `large` is a program of its own
    assert seconds_ahead([caller]) == pytest.approx(4 * PART + (2 + 3) * LINK)


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time that the announcer sees, of which a third is processor time; a test moves it."""
    now = [100.0]
    stub = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0] / 3.0)
    monkeypatch.setattr(warmup, "time", stub)
    return now


def test_a_line_is_said_for_what_takes_long_and_once(capsys, monkeypatch, clock) -> None:
    announcer = Announcer()
    with announcer.program(leaf):
        clock[0] += 10.0
    assert capsys.readouterr().err == ""  # not worth a line by its weight
    monkeypatch.setattr(warmup, "WORTH_A_LINE", 0.1)
    with announcer.program(caller), announcer.program(large):
        clock[0] += 0.09
        announcer.advance(PART)
        assert capsys.readouterr().err == ""  # too early
        clock[0] += 1.0
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("hedgerow: compiling caller, about ")


def test_the_time_in_the_line_follows_from_how_busy_the_machine_is(capsys, clock) -> None:
    announcer = Announcer()
    with announcer.whole("the kernels", 10.0, shown=True):
        clock[0] += 1.9
        announcer.advance(1.0)
        assert capsys.readouterr().err == ""
        clock[0] += 4.1
        announcer.advance(1.0)
        told = 10.0 * warmup.PACE * 3.0
        assert capsys.readouterr().err.startswith(
            f"hedgerow: compiling the kernels, about {told:.0f} s (once, kept in "
        )
        clock[0] += 4.0
        announcer.advance(1.0)
        assert capsys.readouterr().err == ""
    with announcer.whole("more than was known", 1.0, shown=True):
        clock[0] += 6.0
        announcer.advance(2.0)
        assert "about 6 s" in capsys.readouterr().err  # not less than has passed


def test_one_bar_for_a_whole_and_nothing_if_it_is_not_to_be_shown(capsys, clock) -> None:
    moved: list[float] = []
    announcer = Announcer()
    with announcer.whole("the kernels", 12.0, shown=False):
        announcer.move = moved.append
        with announcer.program(middle):
            clock[0] += 60.0
            announcer.advance(PART)
    assert moved == [pytest.approx(PART), pytest.approx(PART + 2 * LINK)]
    assert capsys.readouterr().err == ""


def test_the_garbage_collector_rests_while_a_program_is_compiled_and_is_left_as_it_was() -> None:
    announcer = Announcer()
    with announcer.program(caller):
        with announcer.program(large):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), announcer.program(leaf):
        _ = 1 / 0
    assert gc.isenabled()
    gc.disable()
    try:
        with announcer.program(leaf):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
