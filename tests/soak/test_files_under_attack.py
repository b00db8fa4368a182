"""A slice of the soaks of files: a few rounds each, seeded."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import flip_cells
import flip_logs
import kill_compare
import kill_save
import kill_sweep

pytestmark = pytest.mark.slow


def test_kill_during_save() -> None:
    assert "20 kills, 0 torn" in kill_save.soak(20, random.Random(1))


@pytest.mark.nightly
def test_kill_during_sweeps() -> None:
    assert "2 sweeps, all bytes identical" in kill_sweep.soak(2, random.Random(1))


def test_flipped_bits_of_cells() -> None:
    assert "30 flips, all found" in flip_cells.soak(30, random.Random(1))


def test_flipped_bits_of_logs() -> None:
    assert "300 flips, 0 read as other values (300 refused)" in flip_logs.soak(300, random.Random(1))


@pytest.mark.nightly
def test_kill_during_comparisons() -> None:
    assert "no cell lost (2 kills" in kill_compare.soak(2, random.Random(1), seeds=2)
