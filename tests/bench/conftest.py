"""What surrounds every test of a benchmark: no variable outlives it, and no browser is needed.

Commands choose one thread per solver through variables. Figures are kept as plotly takes them; how a browser draws them
is tested with the pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import benchmark


@pytest.fixture(scope="module", autouse=True)
def _keep_the_environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for pool in ("OMP", "OPENBLAS", "MKL", "RAYON"):
            patch.setenv(f"{pool}_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module", autouse=True)
def _keep_plots_as_data() -> Iterator[None]:
    def save(jobs: list[tuple[Any, Path]], paper: Any) -> list[Path]:
        for plot, path in jobs:
            path.write_text(json.dumps(plot, allow_nan=False))
        return [path for _, path in jobs]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "save_figures", save)
        patch.setattr(benchmark, "check_browser", lambda: None)
        yield
