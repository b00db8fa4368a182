"""The kernels mean the same compiled and as plain Python: unit tests pass in both modes, and whole runs agree.

`make test` runs everything compiled, and short runs of every learner once more in an interpreter with
NUMBA_DISABLE_JIT=1; `make nightly` also the tests of kernels; by hand:

    NUMBA_DISABLE_JIT=1 python -m pytest tests/confidence tests/planning tests/projection

A run takes sampling, boxes, columns, bounds, mirror step, mixing and scoring together. Both modes have the same bits
until the first projection. There numpy does what eight lanes do in compiled code (`projection/vectors.py`), which may
round otherwise; from then on they agree to some units in the last place, and choices, counts and statuses are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import whole_runs

TESTS = Path(__file__).resolve().parent
KERNEL_TESTS = (
    "planning/test_greedy.py",
    "planning/test_robust.py",
    "planning/test_master.py",
    "projection/test_rows.py",
    "projection/test_dual.py",
    "projection/test_factor.py",
)
CLOSE = 1e-12
RANDOM_ORDER = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")


@pytest.mark.nightly  # whole runs in both modes: below
def test_the_kernel_tests_pass_as_plain_python() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["NUMBA_DISABLE_JIT"] = "1"
    command = [
        sys.executable,
        "-m",
        "pytest",
        *RANDOM_ORDER,
        *(str(TESTS / name) for name in KERNEL_TESTS),
    ]
    outcome = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert outcome.returncode == 0, outcome.stdout[-5_000:] + outcome.stderr[-2_000:]
    assert " passed" in outcome.stdout


def test_kernels_are_plain_functions_in_that_mode() -> None:
    code = "from hedgerow.projection.dual import evaluate; print(type(evaluate).__name__)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "function"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The arrays of the whole runs, compiled and as plain Python."""
    file = tmp_path_factory.mktemp("plain") / "runs.npz"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, str(TESTS / "whole_runs.py"), str(file)], env=environment, check=True, timeout=300)
    compiled = whole_runs.runs()
    with np.load(file) as plain:
        assert set(plain.files) == set(compiled)
        return {name: (compiled[name], plain[name]) for name in compiled}


def test_whole_runs_agree(both: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    assert len({name.partition(":")[0] for name in both}) == 14  # learners and presets
    for name, (compiled, plain) in both.items():
        assert compiled.dtype == plain.dtype, name
        if compiled.dtype.kind == "f":
            np.testing.assert_allclose(plain, compiled, rtol=CLOSE, atol=CLOSE, err_msg=name)
        else:
            np.testing.assert_array_equal(plain, compiled, err_msg=name)


def test_before_the_first_projection_they_have_the_same_bits(both: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    curves = [pair for name, pair in both.items() if pair[0].shape[:1] == (whole_runs.EPISODES,)]
    assert len(curves) > 100
    for compiled, plain in curves:
        np.testing.assert_array_equal(plain[0], compiled[0])


def test_runs_are_worth_comparing(both: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """Learners learn, mix and violate within these episodes, and no two of them do the same."""
    policies = [compiled for name, (compiled, _) in both.items() if name.endswith("sharp: policy")]
    assert len({policy.tobytes() for policy in policies}) >= 4
    assert not any(np.allclose(policy, 0.5) for policy in policies)
    (weights,) = (pair[0] for name, pair in both.items() if name.startswith("s-ops sharp") and "mixing_weight" in name)
    assert 0.0 < weights.min() < weights.max()
    assert both["sv-ops sharp: violations"][0].max() > 0.0
