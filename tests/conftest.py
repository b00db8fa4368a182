"""What all tests share: Ctrl-C, what is left to `make nightly`, the arithmetic of kernels, and a browser.

Kernels follow IEEE rules (log 0 = -inf, 1/0 = inf) without a word; run as plain Python they must do so as well.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from browser import Chromium, required_or_skipped
from nightly import mark_nightly

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell that is not interactive has run `make test &`
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # `nohup make test`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.pop("COLUMNS", None)  # a shell may export the width of its window, and tables take it

OF_KERNELS = {"confidence", "learners", "projection", "properties", "simulation", "verify"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: left to `make nightly`, which runs all tests")
    config.addinivalue_line(
        "markers", "sampled(count): `make test` tries so many of its parameter sets, see nightly.py"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_nightly(items)


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
