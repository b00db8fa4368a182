"""The tool that compares the bits of two versions: equal runs are equal, and a single bit is seen."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hedgerow as hr


def _load() -> ModuleType:
    file = Path(__file__).resolve().parent.parent / "tools" / "golden_runs.py"
    spec = importlib.util.spec_from_file_location("golden_runs", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = _load()
SLICE = r"^(s-ops sharp logged|sv-ops sharpest known|dope hedgerow tied|uniform - three) switching"
ONE = r"^s-ops sharp tied switching compiled"


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden.Case, "episodes", 8)


def recorded(path: Path, only: str) -> dict[str, dict[str, str]]:
    assert golden.main(["record", str(path), "--only", only]) == 0
    found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_slice_repeated_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = recorded(tmp_path / "golden.json", SLICE)
    assert len(found) == 8  # four learners, both ways
    for name, digests in found.items():
        groups = {re.sub(r"half \d: ", "", array).partition(".")[0] for array in digests}
        assert groups >= {"state", "curve", "comparator", "policy"}, name
    capsys.readouterr()
    assert golden.main(["check", str(tmp_path / "golden.json"), "--only", SLICE]) == 0
    assert "8 runs, 0 not the same, 0 not run" in capsys.readouterr().out


def test_a_changed_bit_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path / "golden.json", ONE)
    own = golden.digests

    def flipped(learner: Any, *halves: hr.results.Run) -> Any:
        learner.state_arrays()["log_weight"].view(np.uint8)[0] ^= 1
        return own(learner, *halves)

    monkeypatch.setattr(golden, "digests", flipped)
    assert golden.main(["check", str(tmp_path / "golden.json"), "--only", ONE]) == 1
    assert "DIFFERENT: state.log_weight\n" in capsys.readouterr().out


def test_arrays_that_are_gone_are_not_called_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "golden.json"
    found = recorded(file, ONE)
    (name,) = found
    del found[name]["coin"]  # only the later version has it: does not count
    found[name]["state.old"] = "0123"
    file.write_text(json.dumps({**found, "s-ops sharp tied switching compiled, long ago": {}}), encoding="utf-8")
    capsys.readouterr()
    assert golden.main(["check", str(file), "--only", ONE]) == 1
    shown = capsys.readouterr().out
    assert "MISSING: state.old\n" in shown
    assert "DIFFERENT" not in shown
    assert "NOT RUN" in shown
    assert "1 runs, 1 not the same, 1 not run" in shown


def test_a_file_that_loses_something_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(learner: Any) -> Any:
        learner = golden_reloaded(learner)
        learner.coin.random()
        return learner

    golden_reloaded = golden._reloaded
    monkeypatch.setattr(golden, "_reloaded", forgetful)
    assert golden.main(["record", str(tmp_path / "golden.json"), "--only", ONE]) == 1


def test_every_registered_learner_is_in_it() -> None:
    names = {(case.learner, case.variant) for case in golden.cases()}
    assert {learner for learner, _ in names} == set(hr.learners.names())
    assert {(learner, preset) for learner in golden.OWN for preset in golden.PRESETS} <= names
    assert {("dope", radii) for radii in golden.RADII} <= names
    every = [case.name for case in golden.cases()]
    assert len(every) == len(set(every))
