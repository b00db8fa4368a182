"""Kernels follow IEEE rules without a word; run as plain Python they must do so as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "learners"))  # learner_cases


@pytest.fixture(autouse=True)
def silent_arithmetic() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
