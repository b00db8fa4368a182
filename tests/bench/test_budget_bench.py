"""`python -m bench budget`: what it counts, on runs that are made up or very short."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bench.budget import LEARNERS, RULES, AttackRow, BudgetKept, SettingRow, dependent_world, setting_row
from hedgerow.planning import offline


def table(regret: list[float], overdrawn: int = 0) -> pa.Table:
    return pa.table({"episode": [10, 20, 40], "regret": regret, "overdrawn": [0, 0, overdrawn]})


def test_a_setting_has_means_and_the_episode_from_which_on_it_is_better() -> None:
    runs = {name: [table([5.0, 10.0, 20.0]), table([5.0, 10.0, 40.0])] for name in LEARNERS}
    runs["b-ops-bound"] = [table([20.0, 10.0, 10.0]), table([20.0, 10.0, 14.0], overdrawn=2)]
    row = setting_row("w", "a", runs)
    assert (row.s_ops, row.bound, row.overdrawn) == (30.0, 12.0, 1)
    assert row.episodes == 20  # 10 / 20 is below 30 / 40, and stays so
    runs["b-ops-bound"] = [table([1.0, 2.0, 100.0])] * 2
    assert setting_row("w", "a", runs).episodes is None


def test_costs_of_the_long_runs_hang_together() -> None:
    world = dependent_world(0, 2)
    drawn = np.array([world.costs.sample(np.random.default_rng(k)) for k in range(200)])
    sums = drawn.reshape(200, -1).sum(axis=1)
    assert sums.var() > 4 * drawn.reshape(200, -1).var(axis=0).sum()
    assert np.all(offline.slater(world).costs < world.thresholds)


def test_short_runs_and_what_is_right() -> None:
    bench = BudgetKept(seeds=1, runs=6, episodes=40, length=40, worlds="slater-needle", adversaries="own")
    found = bench.run()
    assert [row.world for row in found[0]] == ["slater-needle"]
    assert [(row.rule, row.constraints, row.runs) for row in found[1]] == [(r, m, 1) for r in RULES for m in (1, 2, 3)]
    assert bench.is_right(found)
    assert len(list(bench.shown(found))) == 4
    assert len(bench.figures(found)) == 7
    broken = AttackRow("bound", 1, 1, 40, 0, 1, 1, 0.5, -1.0)
    assert not bench.is_right((found[0], [broken]))
    over = SettingRow("w", "a", 0.0, 0.0, 0.0, 0.0, None, 1)
    assert not bench.is_right(([over], found[1]))


@pytest.mark.parametrize("name", ["runs", "episodes", "seeds"])
def test_the_quick_form_is_smaller(name: str) -> None:
    assert getattr(BudgetKept.quick(), name) < getattr(BudgetKept(), name)
