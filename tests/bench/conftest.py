"""The commands choose one thread per solver through variables that must not outlive the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _keep_the_environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for pool in ("OMP", "OPENBLAS", "MKL", "RAYON"):
            patch.setenv(f"{pool}_NUM_THREADS", "1")
        yield
