"""Soak: one flipped bit anywhere in a file of compiled code leads to a new compilation, never to running what is there.

    python -m tests.soak.flip_kernels --count 3000

A toy kernel is compiled into a cache of its own. For each bit, the index or the data file is changed in this bit, and
the kernel is called as a new process would call it: the answer is right, nothing came from the damaged file, and the
file is whole again afterwards.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from hedgerow.compiling import cache as kernel_cache
from hedgerow.compiling.kernels import kernel


def double(x: float) -> float:
    """The toy."""
    return x + x


def hits() -> int:
    """Call the toy as a new process would: how many compiled versions came from the disk."""
    compiled = kernel(double)
    answer = compiled(2.0)
    if answer != 4.0:
        raise ArithmeticError(f"the toy kernel answers {answer!r}, not 4")
    return len(compiled.stats.cache_hits)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flip(folder: Path, count: int, seed: int = 0) -> tuple[int, list[str]]:
    """Flip so many bits, half of them in each file; how many bits there are, and what went wrong, in words."""
    hits()
    found, rng = [], np.random.default_rng(seed)
    bits = 0
    for ending in (".nbi", ".nbc"):
        (path,) = folder.glob(f"*/*{ending}")
        size = 8 * path.stat().st_size
        bits += size
        edges = [0, 7, size - 1, size - 8 * 32, size - 8 * 32 - 1]  # the start, and both sides of the checksum
        for bit in [*edges, *rng.integers(0, size, max(0, count // 2 - len(edges))).tolist()]:
            (path,) = folder.glob(f"*/*{ending}")
            content = path.read_bytes()  # a new compilation may be a few bytes longer or shorter
            path.write_bytes(flipped(content, bit % (8 * len(content))))
            if hits() != 0:
                found.append(f"bit {bit} of {ending}: the damaged file was used")
            elif hits() != 1:
                found.append(f"bit {bit} of {ending}: the file was not repaired")
            for old in sorted(folder.glob("*/*.nbc"), key=os.path.getmtime)[:-1]:
                old.unlink()  # what an index of damaged bytes named is orphaned
    return bits, found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=3000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["NUMBA_CACHE_DIR"] = home
        kernel_cache.root.cache_clear()
        bits, found = flip(Path(home) / "hedgerow", arguments.count)
    for failure in found[:20]:
        print("  " + failure)
    print(f"flipped bits: {arguments.count} of {bits}, {len(found)} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
