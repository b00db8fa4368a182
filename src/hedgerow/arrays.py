"""Kernels on plain arrays that belong to nobody in particular."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hedgerow.compiling import kernel


@kernel
def copy_into(source: NDArray[Any], target: NDArray[Any]) -> None:
    """target[:] = source for arrays (n,). Written out: the assignment would make a temporary copy in compiled code."""
    for i in range(len(source)):
        target[i] = source[i]
