"""Methods that end in a later folder: a CMDP can be played, a run can be drawn, though both know nothing of the how.

Imports point one way, along the flow of the data (tests/test_import_order.py). The few methods that go against it look
up their function by name, here, when they are called. The test counts them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def late(place: str) -> Any:
    """The function at `place`, such as "environments.play:played"; its module is imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"hedgerow.{module}"), name)
