"""Count the blocks of memory that compiled code asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.runtime import _nrt_python, rtsys


def allocations(function: Callable[..., Any], *arguments: object) -> int:
    """Blocks that a call asked for; a first call compiles and is not counted."""
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        function(*arguments)
        before = rtsys.get_allocation_stats().alloc
        function(*arguments)
        return int(rtsys.get_allocation_stats().alloc - before)
    finally:
        if not was_on:
            _nrt_python.memsys_disable_stats()
