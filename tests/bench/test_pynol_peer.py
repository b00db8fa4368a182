"""The domain that PyNOL's learner is given: mirror steps on it are those of O-REPS; a failing solver is told."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.episode_worlds import BenchWorld, random_world
from bench.mirror_steps import SIZES
from bench.plain_learners import PlainOREPS
from bench.pynol_peer import PyNOLHedge
from hedgerow.learners.ops.sv_ops import SVOPS


class StandIn:
    """What the peer uses of PyNOL's `Hedge`: a mirror step from `middle_x`, with a projection before and after it."""

    def __init__(self, domain: Any, step_size: float) -> None:
        self.domain, self.step_size, self.middle_x = domain, step_size, domain.init_x(None, None)

    def opt(self, env: Any) -> None:
        played = self.domain.project(self.middle_x)
        assert np.isfinite(env.func(played))
        self.middle_x = self.domain.project(self.middle_x * np.exp(-self.step_size * env.grad))


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> tuple[PyNOLHedge, PlainOREPS]:
    learner, environment = ModuleType("pynol.learner.base"), ModuleType("pynol.environment.environment")
    learner.Hedge, environment.Environment = StandIn, SimpleNamespace  # type: ignore[attr-defined]
    for name in ("pynol", "pynol.learner", "pynol.environment"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (learner, environment):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    world: BenchWorld = random_world(SIZES[0])
    ours = SVOPS(world.cmdp.view(), 1000, 0.01, "sharp")
    arguments = (ours, world.cmdp.transitions, world.loss)
    return PyNOLHedge(*arguments), PlainOREPS(*arguments)


NOTHING = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 1))


def test_its_steps_are_those_of_oreps(peer: tuple[PyNOLHedge, PlainOREPS]) -> None:
    pynol, plain = peer
    before = pynol.occupancy.copy()
    for _ in range(10):
        assert plain.observe(*NOTHING) == "converged"
        assert pynol.observe(*NOTHING) == "optimal"
        np.testing.assert_allclose(pynol.occupancy, plain.occupancy, atol=1e-4)
    assert np.max(np.abs(pynol.occupancy - before)) > 1e-2


def test_a_solver_without_an_answer_is_told(
    peer: tuple[PyNOLHedge, PlainOREPS], monkeypatch: pytest.MonkeyPatch
) -> None:
    pynol, _ = peer

    def fail(**_: object) -> None:
        raise pynol.domain.cp.SolverError

    monkeypatch.setattr(pynol.domain.program, "solve", fail)
    assert pynol.observe(*NOTHING) == "no answer"
    assert np.all(np.isfinite(pynol.occupancy))


def test_without_pynol_its_name_is_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynol", None)
    for name in [name for name in sys.modules if name.startswith("pynol.")]:
        monkeypatch.delitem(sys.modules, name)
    world = random_world(SIZES[0])
    with pytest.raises(ImportError) as caught:
        PyNOLHedge(SVOPS(world.cmdp.view(), 1000, 0.01, "sharp"), world.cmdp.transitions, world.loss)
    assert caught.value.name is not None
    assert caught.value.name.startswith("pynol")
