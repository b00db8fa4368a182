"""A slice of the soak of the service: two kills, in a process of its own, because it forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("uvicorn")
SOAK = Path(__file__).parent / "kill_serve.py"


@pytest.mark.slow
def test_kills_of_a_service_under_load() -> None:
    done = subprocess.run([sys.executable, str(SOAK), "--count", "2"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kills, 0 of" in done.stdout
