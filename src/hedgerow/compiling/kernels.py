"""`kernel` and `shared_kernel`: the two decorators that compile a function.

A kernel takes bundles, records, arrays and numbers, ten arguments at most. Python calls it as a program, and other
kernels link it as a part (`linking.py`). A large one that several programs need is a `shared_kernel`: compiled once,
and called by all of them.

Numba's cache notices a change in the file of a kernel, not in the files of the kernels that it calls. Compiled code is
therefore kept in a folder (`cache.py`) named after a hash of numba's version, of the module's own source and of every
module of this package that it imports, directly or not. A change in any of them makes a new folder, a change elsewhere
does not. Imports inside functions do not count.

Kernels own no memory: they work on arrays of their caller, who keeps them alive. Numba's reference counting took more
than half of a small projection and is therefore off (`_nrt=False`). The compiler refuses a kernel that allocates, even
the temporary of `a[:] = b` for two arrays, with "NRT required but not enabled". Results are numbers, or tuples of them.

Set NUMBA_CACHE_DIR to move the cache, NUMBA_DISABLE_JIT=1 to run every kernel as plain Python.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import config
from numpy.typing import NDArray

import hedgerow.compiling.bundle_types  # noqa: F401  numba learns what bundles are
from hedgerow.compiling import linking
from hedgerow.compiling.cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]


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
            root, *linking = name.split(".")
            file = _PACKAGE.joinpath(*linking).with_suffix(".py")
            if root == _PACKAGE.name and linking and file.is_file():
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
def cache_name(module: Path) -> str:
    """The folder for compiled kernels of exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources_of(module):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return f"{module.stem}-{digest.hexdigest()[:16]}"


def kernel(function: F) -> F:
    """Compile with caching, strict IEEE arithmetic and the GIL released; no allocation, no array as a result."""
    return _compiled(function, None)


def shared_kernel(example: Any) -> Callable[[F], F]:
    """Compile a large kernel once for all its callers. `example` is a value of its result."""
    return lambda function: _compiled(function, example)


def _compiled(function: F, example: Any) -> F:
    if config.DISABLE_JIT:
        return function
    folder = cache_name(Path(function.__code__.co_filename))  # named now, when the sources are read
    compiled: Any
    if not linking.AVAILABLE:
        compiled = _plainly(function)
    else:
        compiled = linking.Program(function) if example is None else linking.Shared(function, folder, example)
    compiled._cache = KernelCache(function, folder)  # as `cache=True` would set numba's own cache
    return cast(F, compiled)


def _plainly(function: F) -> Any:
    """Compile with plain numba, each function by itself, if its version does not fit `linking.py`."""
    return numba.jit(**{name: value for name, value in linking.OPTIONS.items() if name != "no_cfunc_wrapper"})(function)


@kernel
def copy_into(source: NDArray[Any], target: NDArray[Any]) -> None:
    """target[:] = source for arrays (n,). Written out: the assignment would make a temporary copy in compiled code."""
    for i in range(len(source)):
        target[i] = source[i]
