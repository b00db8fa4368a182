"""`python -m bench ev-workday`: rows from known scores, then small runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench_runs import invoke

from bench import ev_workday
from bench.ev_workday import EVWorkday, Score, Task
from hedgerow.errors import InvalidInput


def score(seed: int, saved: float, mixing: float, worst: float = np.nan) -> Score:
    task = Task("ev-workday", "S-OPS", 0.1, "sharp", 100, seed, cars=False)
    return Score(task, saved, 10.0 * seed, 0.0, mixing, worst)


def test_rows_are_means_and_the_worst_window() -> None:
    (row,) = ev_workday.rows([score(0, 0.1, 0.5, 0.05), score(1, 0.3, 0.7, 0.08)])
    assert (row.saved, row.regret, row.unsafe, row.mixing) == pytest.approx((0.2, 5.0, 0.0, 0.6))
    assert row.worst_window == 0.08
    (row,) = ev_workday.rows([score(0, 0.1, np.nan)])
    assert row.mixing is None
    assert row.worst_window is None


def test_more_days_than_there_are_and_unknown_variants() -> None:
    with pytest.raises(InvalidInput, match="19,440 real charger-days; 20,000 episodes are too many"):
        EVWorkday(episodes=20_000).tasks  # noqa: B018
    with pytest.raises(InvalidInput, match="no variant 'S'; known: SV-OPS; S-OPS;"):
        EVWorkday(only="S").tasks  # noqa: B018


@pytest.mark.slow
def test_every_variant_runs_in_the_world() -> None:
    data = json.loads(invoke("ev-workday", "--quick", "--episodes", "300", "--json"))
    found = {(row["learner"], row["alpha"]): row for row in data["figures"]}
    assert {learner for learner, _ in found} == set(ev_workday.VARIANTS)
    for (learner, _), row in found.items():
        assert -1.0 < row["saved"] < 0.2
        assert row["worst_window"] is None
        if learner.startswith("S-OPS"):
            assert row["unsafe"] == 0
            assert 0.0 <= row["mixing"] <= 1.0


@pytest.mark.slow
def test_the_real_cars() -> None:
    shown = invoke("ev-workday", "--quick", "--episodes", "200", "--cars", "1", "--only", "S-OPS")
    assert "S-OPS" in shown
    data = json.loads(invoke("ev-workday", "--quick", "--episodes", "200", "--cars", "1", "--only", "CV-OPS", "--json"))
    assert all(0.0 <= row["worst_window"] <= 3.0 and row["regret"] is None for row in data["figures"])


def test_every_table_has_a_file_of_its_own() -> None:
    assert EVWorkday().file_name() == "ev-workday.json"
    assert EVWorkday(preset="sharp").file_name() == "ev-workday-sharp.json"
    assert EVWorkday(world="ev-workday-hard").file_name() == "ev-workday-hard.json"
    assert EVWorkday(cars=1, preset="sharp").file_name() == "ev-workday-cars-sharp.json"
