"""Examples are the same in every run: hypothesis draws them from the test itself, and keeps no database.

Where nightly tests are not left out there are ten times as many.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("daily", derandomize=True, database=None, deadline=None, max_examples=50)
settings.register_profile("nightly", settings.get_profile("daily"), max_examples=500)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("daily" if "not nightly" in config.option.markexpr else "nightly")
