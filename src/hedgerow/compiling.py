"""`kernel`: the one way a function is compiled here.

Numba's cache notices a change in the file of a kernel, not in the files of the kernels that it calls. Compiled code is
therefore kept in a folder named after a hash of the module's own source and of every module of this package that it
imports, directly or not: a change in any of them is a new cache, a change elsewhere is not.

Kernels own no memory: they work on arrays of their caller, who keeps them alive. Numba's reference counting, which took
more than half of a small projection, is therefore off (`_nrt=False`), and a kernel that allocates, be it the temporary
of `a[:] = b` for two arrays, is refused by the compiler: "NRT required but not enabled". `returning_kernel` is for the
rare one whose result is an array.

Set NUMBA_CACHE_DIR to move the cache, NUMBA_DISABLE_JIT=1 to run every kernel as plain Python.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba import config

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    """The files of this package that `source` imports at its top level."""
    found = []
    for node in ast.parse(source.read_bytes()).body:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            root, *parts = name.split(".")
            file = _PACKAGE.joinpath(*parts).with_suffix(".py")
            if root == _PACKAGE.name and parts and file.is_file():
                found.append(file)
    return tuple(found)


def sources_of(module: Path) -> tuple[Path, ...]:
    """`module` and every file of this package that it depends on, sorted."""
    closed: set[Path] = set()
    pending = [module]
    while pending:
        source = pending.pop()
        if source not in closed:
            closed.add(source)
            pending.extend(_imports(source))
    return tuple(sorted(closed))


@cache
def cache_directory(module: Path) -> str:
    """Where compiled kernels of exactly these sources are kept."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources_of(module):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return str(_cache_root() / f"{module.stem}-{digest.hexdigest()[:16]}")


def _cache_root() -> Path:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "hedgerow"


def kernel(function: F) -> F:
    """Compile with caching, strict IEEE arithmetic and the GIL released; no allocation, no array as a result."""
    return _compiled(function, inline="never", counting=False)


def inlined_kernel(function: F) -> F:
    """A kernel that becomes part of its callers: for pieces of a hot path that hand bundles of arrays to each other."""
    return _compiled(function, inline="always", counting=False)


def returning_kernel(function: F) -> F:
    """A kernel that counts references, because it returns one of its arrays or a view of it."""
    return _compiled(function, inline="never", counting=True)


def _compiled(function: F, inline: Literal["never", "always"], counting: bool) -> F:
    settings: Any = config
    previous = settings.CACHE_DIR
    # Read when caching is enabled, that is, inside the call below.
    settings.CACHE_DIR = cache_directory(Path(function.__code__.co_filename))
    try:
        compile_later: Any = numba.njit  # its types do not know _nrt
        compiled = compile_later(cache=True, nogil=True, error_model="numpy", inline=inline, _nrt=counting)(function)
    finally:
        settings.CACHE_DIR = previous
    return cast(F, compiled)
