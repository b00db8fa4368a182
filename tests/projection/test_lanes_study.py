"""The study of one learner per lane: eight learners in lanes compute what each computes alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bench.mirror_steps import Size
from hedgerow.projection.vectors import PLAIN


def _load() -> ModuleType:
    file = Path(__file__).resolve().parents[2] / "tools" / "lanes_study.py"
    spec = importlib.util.spec_from_file_location("lanes_study", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


study = _load()
put, solve_row = study.put, study.solve_row
pytestmark = pytest.mark.skipif(PLAIN, reason="only compiled code has lanes")


@study.compiled  # type: ignore[untyped-decorator]
def _solve_row(width: int, problem: Any, v: Any, p: Any, free: Any, h: Any) -> None:
    put(h, 0, solve_row(0, 0, width, problem, v, p, free))


def test_eight_rows_in_lanes_are_those_that_are_solved_alone() -> None:
    rng, width = np.random.default_rng(3), 5
    centre, pt = (rng.dirichlet(np.ones(width), study.LANES).T.copy() for _ in range(2))
    # The last learner has no box, the first one no choice.
    radius = np.linspace(0.0, 0.3, study.LANES)
    lower, upper = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)
    lower[:, -1], upper[:, -1] = 0.0, 1.0
    v = rng.normal(size=pt.shape)
    p, free, h = np.zeros_like(pt), np.zeros_like(pt), np.zeros((1, study.LANES))
    _solve_row(width, (pt, lower, upper, pt), v, p, free, h)
    for i in range(study.LANES):
        own_p, own_free, own_h = np.zeros(width), np.zeros(width), np.zeros(1)
        problem = tuple(each[:, i].copy() for each in (pt, lower, upper, pt))
        _solve_row(width, problem, v[:, i].copy(), own_p, own_free, own_h)
        assert np.abs(p[:, i] - own_p).max() <= 1e-12
        assert np.array_equal(free[:, i], own_free)
        assert abs(h[0, i] - own_h[0]) <= 1e-12
        # p = clip(t pt e^-v, lower, upper) with sum 1, by bisection.
        least, most = 0.0, 1e6
        for _ in range(200):
            t = 0.5 * (least + most)
            expected = np.clip(t * pt[:, i] * np.exp(-v[:, i]), lower[:, i], upper[:, i])
            least, most = (t, most) if expected.sum() < 1.0 else (least, t)
        assert np.abs(p[:, i] - expected).max() <= 1e-12
        assert h[0, i] == pytest.approx(expected @ (v[:, i] + np.log(expected / pt[:, i])), abs=1e-12)
    assert 0.0 < free.mean() < 1.0


@pytest.mark.nightly  # compiles for a quarter of a minute
def test_projections_in_lanes_are_those_alone_and_do_not_depend_on_neighbours() -> None:
    problems = study.after_an_episode(Size((1, 3, 3, 1), 3, 1))
    own = study.Contenders(problems)
    for name in ("alone", "in_lanes", "package"):
        own.run(name)
    assert np.abs(own.weights("in_lanes") - own.weights("alone")).max() <= 1e-12
    assert np.abs(own.weights("package") - own.weights("alone")).max() <= 1e-9
    assert 0.1 < own.share_at_bound() < 0.5
    others = study.Contenders([problems[0], *study.after_an_episode(Size((1, 3, 3, 1), 3, 1), boxes=False)[1:]])
    others.run("in_lanes")
    assert np.array_equal(others.weights("in_lanes")[:, 0], own.weights("in_lanes")[:, 0])
