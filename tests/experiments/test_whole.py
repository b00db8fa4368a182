"""An experiment from Python in one call."""

from __future__ import annotations

from pathlib import Path

import pytest

import hedgerow as hr

TEXT = """
seeds = 2
episodes = 30
[[world]]
name = "random-layered"
layers = [1, 2, 1]
[[adversary]]
name = "iid"
[[learner]]
name = "{learner}"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.format(learner="sv-ops"))
    return path


def test_results_come_back(file: Path, tmp_path: Path) -> None:
    results = hr.sweep(file, tmp_path / "out", processes=1, progress=False)
    assert results.summary().num_rows == 2
    with pytest.raises(hr.errors.InvalidInput, match="resume=True"):
        hr.sweep(file, tmp_path / "out", processes=1, progress=False)
    again = hr.sweep(file, tmp_path / "out", processes=1, resume=True, progress=False)
    assert again.summary().equals(results.summary())


@pytest.mark.nightly  # the same of `hr.compare`: test_compare.py
def test_failed_cells_are_an_error_that_names_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.format(learner="broken.py:Broken"))
    (tmp_path / "broken.py").write_text(
        "class Broken:\n"
        "    def __init__(self, view): self.view = view\n"
        "    def plan(self): raise RuntimeError('no plan today')\n"
        "    def observe(self, episode): pass\n"
    )
    with pytest.raises(hr.errors.HedgerowError, match=r"2 of 2 cells failed; the first is .*no plan today"):
        hr.sweep(path, tmp_path / "out", processes=1, progress=False)


def test_what_is_no_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        hr.errors.InvalidInput, match="the path of a TOML file, a name or a mapping, not an object of the class int"
    ):
        hr.sweep(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(hr.errors.InvalidInput, match="at least 1"):
        hr.sweep("quickstart", tmp_path, processes=0)
