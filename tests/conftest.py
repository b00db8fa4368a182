"""What all tests share: Ctrl-C, the arithmetic of kernels, and a browser.

Kernels follow IEEE rules (log 0 = -inf, 1/0 = inf) without a word; run as plain Python they must do so as well.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest

from browser import Chromium, required_or_skipped

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell that is not interactive has run `make test &`
    signal.signal(signal.SIGINT, signal.default_int_handler)

OF_KERNELS = {"estimates", "learners", "projection", "promises", "properties", "simulation"}


@pytest.fixture(autouse=True)
def silent_arithmetic(request: pytest.FixtureRequest) -> Iterator[None]:
    if OF_KERNELS.isdisjoint(request.path.parts):
        yield
        return
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """A headless browser; its tests are skipped where there is none, unless HEDGEROW_BROWSER=required."""
    browser = required_or_skipped()
    yield browser
    browser.stop()
