"""Kernels follow IEEE rules without a word; run as plain Python they must do so as well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def silent_arithmetic() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
