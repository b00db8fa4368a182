"""How small a mistake is refuted: the search for it, and a slice of the real thing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hedgerow import cli
from hedgerow.errors import InvalidInput
from hedgerow.verify import levels
from hedgerow.verify.claims import BY_KEY
from hedgerow.verify.levels import SMALL, Level, runs
from hedgerow.verify.mutants import RIGHT
from hedgerow.verify.twin_watcher import RecomputedSOPS
from hedgerow.verify.verify import CONSTANTS, FAR, NEAR, PowerTrial, power


class Threshold(PowerTrial):
    """Refutes whatever is at most `most`."""

    most = 0.0

    def refuted_by(self, factor: float, promises: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
        return tuple(promises) if factor <= self.most else ()


@pytest.mark.parametrize(("most", "found"), [(0.0, None), (0.1, 0.1), (0.7, 0.65), (0.98, 0.98), (1.0, 0.98)])
def test_the_factor_nearest_to_one_is_found(most: float, found: float | None, tmp_path: Path) -> None:
    trial = Threshold(Level("x", {}), tmp_path, CONSTANTS[0], 1)
    object.__setattr__(trial, "most", most)
    assert trial.nearest(FAR, ("T1",), ()) == (found, ("T1",) if found else ())


def test_every_constant_is_measured_by_promises_with_runs() -> None:
    assert {constant.name for constant in CONSTANTS} == set(RIGHT)
    for constant in CONSTANTS:
        for key in (*constant.recomputed, *constant.truth):
            assert BY_KEY[key].groups
        assert any(group in BY_KEY[key].groups for key in constant.truth for group in constant.groups)
    for factors in (NEAR, FAR):
        assert list(factors) == sorted(factors)
        assert factors[-1] < 1.0


def tiny(name: str = "quick") -> Level:
    cells = runs(SMALL, RecomputedSOPS, 12, 1, adversaries=["drifting"], twin=True)
    return Level(name, {"recomputed": cells, "confidence": runs(SMALL, "s-ops", 12, 2)})


@pytest.mark.slow
def test_a_mistake_of_a_millionth_is_refuted_where_numbers_are_recomputed(tmp_path: Path) -> None:
    """Of the ceiling, which gives the first lambda; that episodes are unsafe shows only a mistake of half of it."""
    (found,) = power(tiny(), tmp_path, only=["ceiling"], processes=1)
    assert found.recomputed is not None
    assert 1e-10 < 1.0 - found.recomputed < 1e-6
    assert found.recomputed_by == ("T24",)
    assert found.truth is not None
    assert found.truth < 0.8
    assert found.truth_by == ("T7",)
    (kept,) = json.loads((tmp_path / "power.json").read_text())
    assert kept["constant"] == "ceiling"
    assert "| largest cost of an episode | 1 - 1e-0" in (tmp_path / "power.md").read_text()


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "make_level", lambda name: tiny(name))
    wanted: list[Any] = ["verify", "--quick", "--power", "--only", "eta", "-j", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, wanted)
    assert done.exit_code == 0, done.output
    assert "T26" in done.stdout


def test_constants_have_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no constant 'pi'; they are cost_log"):
        power(tiny(), tmp_path, only=["pi"])
