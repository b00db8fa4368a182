"""The kernels mean the same compiled and as plain Python: their unit tests pass in both modes.

`make test` runs them compiled. This runs the fast ones once more in an interpreter with NUMBA_DISABLE_JIT=1; by hand:

    NUMBA_DISABLE_JIT=1 python -m pytest tests/estimates tests/projection
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
KERNEL_TESTS = (
    "estimates/test_greedy.py",
    "estimates/test_robust.py",
    "projection/test_rows.py",
    "projection/test_dual.py",
    "projection/test_factor.py",
)
RANDOM_ORDER = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")


def test_the_kernel_tests_pass_as_plain_python() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["NUMBA_DISABLE_JIT"] = "1"
    command = [sys.executable, "-m", "pytest", *RANDOM_ORDER, *(str(TESTS / name) for name in KERNEL_TESTS)]
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
