"""`baseline = "offered"`: the best that a world has, in every world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.components import BuiltWorld, safe_policy
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import cells_of, parse
from hedgerow.experiments.worker import run_cell

OFFERED = {"baseline": "offered"}


def built(name: str, folder: Path | None = None, **more: str) -> BuiltWorld:
    part = components.complete_world({"name": name, **more}, 100, folder or Path())
    return components.build_world(part, folder or Path())


def taken(name: str) -> str:
    return components.baseline_taken(OFFERED, built(name))


def policy_in(name: str) -> tuple[hr.worlds.World, object]:
    return hr.worlds.make(name), safe_policy(OFFERED, built(name))


def test_a_budget_comes_first() -> None:
    world, found = policy_in("dope-factored")
    best = hr.offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    np.testing.assert_array_equal(found.policy, best.policy)  # type: ignore[attr-defined]
    assert taken("dope-factored") == "budget"


def test_then_what_the_world_names() -> None:
    world, found = policy_in("ev-workday")
    assert world.baseline is not None
    np.testing.assert_array_equal(found.policy, world.baseline.policy)  # type: ignore[attr-defined]
    assert taken("ev-workday") == "own"


POOR = """
import hedgerow as hr

def poor():
    world = hr.worlds.make("lower-bound-2")
    return hr.worlds.WorldDefinition(world.cmdp, world.loss)
"""


def test_else_least_loss_at_half_of_the_margin(tmp_path: Path) -> None:
    """The margin is 1/4, and the loss falls with the cost: half of the margin is left, and no more."""
    (tmp_path / "poor.py").write_text(POOR)
    world, poor = hr.worlds.make("lower-bound-2"), built("poor.py:poor", tmp_path)
    found = safe_policy(OFFERED, poor)
    rho = hr.offline.slater(world).margin
    assert rho == pytest.approx(0.25)
    assert world.cmdp.thresholds - hr.occupancy.evaluate(world.cmdp, found.policy).costs == pytest.approx(0.5 * rho)
    assert components.baseline_taken(OFFERED, poor) == "half of the margin"


def test_a_file_has_no_loss_and_takes_the_least_cost(tmp_path: Path) -> None:
    cmdp = hr.worlds.make("lower-bound-2").cmdp
    cmdp.save(tmp_path / "world.npz")
    found = safe_policy(OFFERED, built("file", tmp_path, file="world.npz"))
    assert found.costs == pytest.approx(hr.offline.slater(cmdp).costs)


def test_a_world_without_a_margin_has_none() -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp.with_thresholds([0.25])
    with pytest.raises(InvalidInput, match="no baseline to offer: no policy is safe with a margin"):
        safe_policy(OFFERED, BuiltWorld(cmdp))


def test_a_cell_says_which_it_was() -> None:
    text = (
        'seeds = 1\nepisodes = 10\n[[world]]\nname = "lower-bound-2"\n[[adversary]]\nname = "own"\n'
        '[[learner]]\nname = "always-baseline"\nbaseline = "offered"\n'
        '[[learner]]\nname = "always-baseline"\nmargin = 0.1\n'
    )
    offered, other = (run_cell(cell).facts for cell in cells_of(parse(Source("x.toml", text, Path()))))
    assert offered["baseline_taken"] == "own"
    assert "baseline_taken" not in other
    assert components.baseline_taken({"baseline": "slater"}, built("lower-bound-2")) == "slater"
    assert components.baseline_taken({}, built("lower-bound-2")) == ""


def test_it_has_no_margin_of_its_own() -> None:
    with pytest.raises(components.SpecError, match="a margin belongs to baseline = 'margin', not to 'offered'"):
        components.complete_learner({"name": "always-baseline", "baseline": "offered", "margin": 0.1})
