"""What a log says, in one number: equal for the same episodes in whatever order, file or object they come.

An episode is the sequence of its steps (row, triple, costs). A log is the multiset of its episodes: their names and
their order are no part of it. To hash a multiset, its episodes are first put into an order that depends on nothing but
their content: by a 64-bit fingerprint, which is a sum over the steps and is computed for all of them at once. Two
different episodes with one fingerprint (probability 2^-64 per pair) could stand in either order, and then the same
log, read in another order, would have another hash; different logs never share one, as far as SHA-256 goes.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray

Words = NDArray[np.uint64]
# The constants of splitmix64 (Steele, Lea and Flood 2014): a bijection of 64 bits that looks random.
STRIDE = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def content_hash(starts: IntArray, rows: IntArray, triples: IntArray, costs: FloatArray) -> str:
    """SHA-256 of the multiset of episodes: those of episode e are the steps starts[e] : starts[e + 1].

    `triples` (steps,) may be -1 and `costs` (steps, m) NaN where nothing is known.
    """
    sizes = np.diff(starts)
    numbers = _plain(costs)
    words = np.column_stack((rows, triples, numbers.view(np.int64))).astype("<i8")
    order = np.argsort(_fingerprints(words, starts, sizes), kind="stable")
    lines = np.repeat(starts[order] - _starts(sizes[order]), sizes[order]) + np.arange(len(rows))
    digest = hashlib.sha256(f"{len(sizes)} {words.shape[1]}\n".encode())
    digest.update(sizes[order].astype("<i8").tobytes())
    digest.update(words[lines].tobytes())
    return digest.hexdigest()


def _plain(costs: FloatArray) -> FloatArray:
    """One pattern of bits for each number: 0.0 for -0.0, and one NaN."""
    return np.ascontiguousarray(np.where(np.isnan(costs), np.nan, costs + 0.0))


def _fingerprints(words: NDArray[np.int64], starts: IntArray, sizes: IntArray) -> Words:
    """(episodes,): the sum, modulo 2^64, of what each step and its place in the episode are mixed to."""
    step = (np.arange(len(words)) - np.repeat(starts[:-1], sizes)).astype(np.uint64)
    mixed = _mixed(step)
    for column in words.T:
        mixed = _mixed(mixed ^ column.astype(np.int64).view(np.uint64))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    return sums[starts[1:]] - sums[starts[:-1]]


def _mixed(words: Words) -> Words:
    words = words + STRIDE
    words = (words ^ (words >> SHIFTS[0])) * FACTORS[0]
    words = (words ^ (words >> SHIFTS[1])) * FACTORS[1]
    return words ^ (words >> SHIFTS[2])


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes)[:-1]))
