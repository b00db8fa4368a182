"""Which code something is: plain data that changes when the source does, for the description of a run.

    {"sha256": ...}                                                  a file that was named by its path
    {"module": ..., "sha256": ...}                                   a module
    {"module": ..., "sha256": ..., "distribution": ..., "version"}   a module of an installed distribution

The hash is that of the source text of the module that defines the object. A compiled module has none; then its
distribution and version have to do.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.errors import InvalidInput
from hedgerow.registry import loading

Origin = dict[str, str]


def origin_of(target: Any, name: str) -> Origin:
    """The origin of a class or function; `name` is what messages call it."""
    module: str = getattr(target, "__module__", None) or ""
    file = loading.file_of_module(module)
    if file is not None:
        return {"sha256": file.digest}
    found: Origin = {"module": module}
    text = _source(target, module)
    if text is not None:
        found["sha256"] = loading.text_digest(text)
    found |= _distribution(module)
    if "sha256" not in found and "version" not in found:
        raise InvalidInput(
            f"the source of {name} cannot be found, so its results could not say what was run; "
            "write it into a file and name it file.py:Name"
        )
    return found


def _source(target: Any, module: str) -> str | None:
    """The text of the module that defines `target`; of `target` alone in an interactive session."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and file.endswith(".py"):
        return loading.read_text(Path(file))
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return None


@cache
def _distribution(module: str) -> Origin:
    """Name and version of the installed distribution that a module belongs to; {} if there is none."""
    from importlib.metadata import packages_distributions, version

    owners = packages_distributions().get(module.partition(".")[0], [])
    if len(set(owners)) != 1:  # a namespace that several share says nothing
        return {}
    return {"distribution": owners[0], "version": version(owners[0])}
