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


@pytest.mark.parametrize("command", ["signal_storm.py --count 600", "growth.py --episodes 10000 --simulations 400"])
def test_a_slice(command: str) -> None:
    file, *options = command.split()
    done = subprocess.run([sys.executable, str(Path(__file__).parent / file), *options], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
