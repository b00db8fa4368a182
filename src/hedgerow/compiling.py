"""`kernel`: the one way a function is compiled here.

Numba's cache notices a change in the file of a kernel, not in the files of the kernels that it calls. The cache of this
package therefore lives in a folder named after a hash of all its sources: a changed kernel anywhere is a new cache.
Set NUMBA_CACHE_DIR to move the cache, NUMBA_DISABLE_JIT=1 to run every kernel as plain Python.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

config: Any = numba.config  # its attributes are made at run time

F = TypeVar("F", bound=Callable[..., Any])


@cache
def cache_directory() -> str:
    """Where compiled kernels of exactly these sources are kept."""
    package = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(package.rglob("*.py")):
        text = source.read_bytes()
        if b"@kernel" in text:
            digest.update(source.relative_to(package).as_posix().encode() + b"\0" + text)
    return str(_cache_root() / f"kernels-{digest.hexdigest()[:16]}")


def _cache_root() -> Path:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "hedgerow"


def kernel(function: F) -> F:
    """Compile with caching, strict IEEE arithmetic and the GIL released."""
    previous = config.CACHE_DIR
    config.CACHE_DIR = cache_directory()  # read when caching is enabled, that is, inside the call below
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = previous
    return cast(F, compiled)
