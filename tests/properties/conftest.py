"""Examples are the same in every run: hypothesis draws them from the test itself, and keeps no database."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("seeded", derandomize=True, database=None, deadline=None, max_examples=50)
settings.load_profile("seeded")
