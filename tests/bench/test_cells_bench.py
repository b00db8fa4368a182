"""`python -m bench cells`: a small run, and the clock that is put back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_runs import invoke

from bench import cells
from bench.cells import CellRow, Cells, episodes_timed
from bench.timing import Spread
from hedgerow.simulation.run import Simulation


def test_the_goal_is_about_the_median() -> None:
    rows = [CellRow("w", 4, 10, Spread(seconds, 0.0, 1.0, 3), 0.0) for seconds in (0.005, 0.0051)]
    assert [row.verdict for row in rows] == ["met", "not met"]


def test_the_clock_is_put_back() -> None:
    plain = Simulation.advance
    with episodes_timed():
        assert Simulation.advance is not plain
    assert Simulation.advance is plain


@pytest.mark.slow
def test_cells_in_one_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "WORLDS", {"lower bound": cells.WORLDS["lower bound"]})
    monkeypatch.setattr(Cells, "quick", classmethod(lambda cls: cls(sweeps=1, seeds=1, episodes=5)))
    shown = invoke("cells", "--quick", "--out", str(tmp_path))
    (row,) = json.loads((tmp_path / Cells.json_file).read_text())["figures"]
    assert row["cells"] == 2
    assert row["outside"]["median"] > 0.0
    assert "lower bound" in shown
