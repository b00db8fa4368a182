"""What is done with plain arrays and belongs to nobody in particular."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.compiling import kernel


@kernel
def copy_into(source: NDArray[Any], target: NDArray[Any]) -> None:
    """target[:] = source for arrays (n,). Written out: the assignment would make a temporary copy in compiled code."""
    for i in range(len(source)):
        target[i] = source[i]


def num_bytes(bundle: Any) -> int:
    """Of all arrays in a bundle of bundles.

    >>> num_bytes((np.zeros(3), 1.0, (np.zeros(2),)))
    40
    """
    if isinstance(bundle, np.ndarray):
        return bundle.nbytes
    return sum(map(num_bytes, bundle)) if isinstance(bundle, tuple) else 0
