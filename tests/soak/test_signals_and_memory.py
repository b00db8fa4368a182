"""A slice of the soaks of signals and of memory, each in a process of its own, which must end by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them"),
]


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [("signal_storm", 600, "600 rounds without a crash"), ("flat_memory", 400, "400 simulations keep")],
)
def test_a_slice(name: str, count: int, words: str) -> None:
    command = [sys.executable, str(Path(__file__).parent / f"{name}.py"), "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, words in done.stdout) == (0, True), (done.returncode, done.stdout, done.stderr)
