"""Samples of parameter sets: all values and pairs that fit, the same in any order; the nightly run loses nothing.

And the clock that says what tests cost counts the work of their processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from nightly import covering
from tools.test_times import processor_seconds

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["a", "b", "c"])
@pytest.mark.parametrize("seed", range(20))
def test_sampled(seed, kind):
    pass

@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.nightly)])
def test_sizes(count):
    pass

def test_plain():
    pass
"""
CONFTEST = """
import pytest
from nightly import mark_nightly

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_nightly(items)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    markers = "markers = ['sampled(count): x', 'nightly: x', 'slow: x']"
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n{markers}\npythonpath = [{str(ROOT / 'tests')!r}]\n"
    )
    return tmp_path


def collected(folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    shown = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    return sorted(line for line in shown.splitlines() if "::" in line)


def test_a_sample_and_the_rest_are_all(folder: Path) -> None:
    everything, daily = collected(folder), collected(folder, "-m", "not nightly")
    assert len(everything) == 60 + 2 + 1
    assert len(daily) == 6 + 1 + 1
    assert sorted([*daily, *collected(folder, "-m", "nightly")]) == everything
    assert {name.rpartition("-")[2] for name in daily if "sampled" in name} == {"a]", "b]", "c]"}
    assert collected(folder, "-m", "not slow") == daily
    assert collected(folder, "-m", "not nightly", "-p", "pytest_randomly") == daily


def test_every_value_and_every_pair_is_tried_if_there_is_room() -> None:
    sets = [{"a": a, "b": b, "c": c} for a, b, c in product(range(3), "xyz", (True, False))]
    few = [sets[place] for place in covering(sets, 3)]
    assert [{one[name] for one in few} for name in "abc"] == [{0, 1, 2}, {"x", "y", "z"}, {True, False}]
    more = [sets[place] for place in covering(sets, 9)]
    assert {(one["a"], one["b"]) for one in more} == set(product(range(3), "xyz"))
    assert {(one["a"], one["c"]) for one in more} == set(product(range(3), (True, False)))
    assert {(one["b"], one["c"]) for one in more} == set(product("xyz", (True, False)))


def test_a_sample_larger_than_the_whole_is_the_whole() -> None:
    assert sorted(covering([{"a": 1}, {"a": 2}], 5)) == [0, 1]


BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n{then}"


def test_processes_that_have_ended_cost_what_they_worked() -> None:
    before = processor_seconds()
    subprocess.run([sys.executable, "-c", BURN.format(then="")], check=True)
    assert processor_seconds() - before >= 0.25


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
def test_so_do_living_ones() -> None:
    before = processor_seconds()
    command = [sys.executable, "-c", BURN.format(then="print('done', flush=True); time.sleep(60)")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        assert processor_seconds() - before >= 0.25
        process.kill()
