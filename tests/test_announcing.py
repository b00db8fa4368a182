"""While something compiles: what is going to be compiled, about how long it takes, and one line that says so."""

from __future__ import annotations

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


def test_a_line_is_said_for_what_takes_long_and_once(capsys, monkeypatch) -> None:
    announcer = Announcer()
    with announcer.program(leaf):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(warmup, "WORTH_A_LINE", 0.1)
    with announcer.program(caller), announcer.program(large):
        pass
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("hedgerow: compiling caller, about 1 s (once, kept in ")


def test_one_line_and_one_bar_for_a_whole(capsys, monkeypatch) -> None:
    monkeypatch.setattr(warmup, "WORTH_A_LINE", 0.0)
    moved: list[float] = []
    announcer = Announcer()
    with announcer.whole("the kernels", 12.0, shown=True):
        announcer.move = moved.append
        with announcer.program(middle):
            announcer.advance(PART)
    assert capsys.readouterr().err.startswith("hedgerow: compiling the kernels, about 12 s (once, kept in ")
    assert moved == [pytest.approx(PART), pytest.approx(PART + 2 * LINK)]
    with announcer.whole("the kernels", 12.0, shown=False):
        pass
    assert capsys.readouterr().err == ""
