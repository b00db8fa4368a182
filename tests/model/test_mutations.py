"""Ten thousand damaged model files: each is refused in words or loads as a sound world; nothing else happens.

Three kinds of damage. *Accidents* change bytes of a file: the checksum must notice. *Forgeries* change bytes and sign
the result again, so that the readers of zip, npy and JSON meet them. *Errors of a writer* change entries of the
metadata or the arrays and write a perfect file around them, so that only the checks of the model stand in the way.
"""

import hashlib
import io
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from naive_model import random_cmdp, random_support, random_transitions
from numpy.random import Generator

from hedgerow.errors import HedgerowError
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BetaCosts, EmpiricalCosts
from hedgerow.model.layout import Layout
from hedgerow.storage import datafile
from nightly import daily

MEMORY_ALLOWED = 20_000_000
"""Bytes at most while reading; the files are smaller than 20,000."""


def worlds() -> list[CMDP]:
    rng = np.random.default_rng(11)
    sparse = Layout.from_support(random_support(rng, (1, 3, 2, 1), actions=2, density=0.3))
    assert not sparse.is_full
    full = Layout((1, 2, 1), 2)
    p, rows = random_transitions(rng, sparse), sparse.num_rows
    labels = {"state_labels": [f"s{i}" for i in range(sparse.num_states)]}
    return [
        random_cmdp(rng, layout=full),
        CMDP(sparse, p, EmpiricalCosts(rng.random((2, 2, rows))), [0.5, 1.0], **labels),
        CMDP(full, random_transitions(rng, full), BetaCosts(np.ones((1, 6)), np.ones((1, 6))), [1.0]),
    ]


WORLDS = worlds()
BLOBS = [world.to_bytes() for world in WORLDS]
FILES = [datafile.unpack(blob) for blob in BLOBS]


# Accidents and forgeries: bytes -> bytes


def flip_bits(rng: Generator, blob: bytes) -> bytes:
    result = bytearray(blob)
    for place in rng.integers(len(blob), size=rng.integers(1, 4)):
        result[place] ^= 1 << rng.integers(8)
    return bytes(result)


def truncate(rng: Generator, blob: bytes) -> bytes:
    start, stop = np.sort(rng.integers(len(blob), size=2))
    return [blob[:stop], blob[start:], blob[:start] + blob[stop:]][rng.integers(3)]


def insert(rng: Generator, blob: bytes) -> bytes:
    place = rng.integers(len(blob) + 1)
    return blob[:place] + rng.bytes(int(rng.integers(1, 40))) + blob[place:]


def exchange(rng: Generator, blob: bytes) -> bytes:
    a, b, c = np.sort(rng.integers(len(blob), size=3))
    return blob[:a] + blob[b:c] + blob[a:b] + blob[c:]


def overwrite_numbers(rng: Generator, blob: bytes) -> bytes:
    """Extreme values where lengths, offsets and shapes are kept."""
    width = int(rng.choice([1, 2, 4, 8]))
    place = int(rng.integers(len(blob) - width))
    value = [b"\xff", b"\x00", b"\x7f", b"9"][rng.integers(4)] * width
    return blob[:place] + value + blob[place + width :]


DAMAGE = [flip_bits, truncate, insert, exchange, overwrite_numbers]


def damaged(rng: Generator, blob: bytes) -> bytes:
    return DAMAGE[rng.integers(len(DAMAGE))](rng, blob)


def forged(rng: Generator, blob: bytes) -> bytes:
    """Damage to the archive, or to a member of an otherwise sound archive, and a checksum that fits."""
    tail = len(datafile._COMMENT) + 64
    body = damaged(rng, blob[:-tail]) + blob[-tail:-64] if rng.random() < 0.5 else damaged_member(rng, blob)[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def damaged_member(rng: Generator, blob: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(blob)) as old, zipfile.ZipFile(buffer, "w") as new:
        chosen = rng.integers(len(old.namelist()))
        for i, name in enumerate(old.namelist()):
            content = old.read(name)
            # The first hundred bytes are where the shape and the type of an array are written.
            hit = damaged(rng, content[:100]) + content[100:] if i == chosen else content
            new.writestr(zipfile.ZipInfo(name), hit)
        new.comment = old.comment
    return buffer.getvalue()


# Errors of a writer: metadata and arrays -> metadata and arrays

ODD_VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    2.0,
    1e308,
    10**6,
    10**12,
    10**30,
    "",
    "beta",
    "bernoulli",
    "\ud800",
    [],
    {},
]
ODD_VALUES += [[1, 2], ["a", "b"], ["a", "a"], {"a": "b"}, [[]], [None], "empirical", ["x"] * 5]
ODD_NUMBERS = [np.nan, np.inf, -np.inf, -1.0, -0.0, 5e-324, 0.5, 1.0, 1 + 1e-12, 2.0, 1e308, 2.0**63, -(2.0**63)]
DTYPES = ["<f8", ">f8", "<f4", "<f2", "<i8", "<i4", "|i1", "<u8", "|u1", "|b1", "<c16", "<U3", "|S4", "longdouble"]


def change_meta(rng: Generator, meta: dict, arrays: dict) -> None:
    key = [*meta, "another"][rng.integers(len(meta) + 1)]
    if rng.random() < 0.2:
        meta.pop(key, None)
    else:
        meta[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]


def change_entries(rng: Generator, meta: dict, arrays: dict) -> None:
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    if array.size == 0 or array.dtype.kind not in "fiu":
        return
    if array.dtype.kind == "f":
        array.ravel()[rng.integers(array.size)] = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
    else:
        array.ravel()[rng.integers(array.size)] = rng.choice([0, 1, 2, 7, np.iinfo(array.dtype).max])
    arrays[name] = array


def change_type(rng: Generator, meta: dict, arrays: dict) -> None:
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name].real if arrays[name].dtype.kind == "c" else arrays[name]
    if array.dtype.kind in "US":  # text does not turn into numbers
        return
    with np.errstate(all="ignore"):
        arrays[name] = array.astype(DTYPES[rng.integers(len(DTYPES))])


def change_shape(rng: Generator, meta: dict, arrays: dict) -> None:
    name = list(arrays)[rng.integers(len(arrays))]
    array = np.atleast_1d(arrays[name])
    arrays[name] = [
        array.ravel(),
        array[np.newaxis],
        array[:-1],
        array[:0],
        np.concatenate([array, array]),
        np.array(array.size),
        array.T,
        array[::-1],
    ][rng.integers(8)]


def exchange_members(rng: Generator, meta: dict, arrays: dict) -> None:
    one, other = rng.choice(list(arrays), size=2)
    arrays[one], arrays[other] = arrays[other], arrays[one]


def rename_member(rng: Generator, meta: dict, arrays: dict) -> None:
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays.pop(name)
    if rng.random() < 0.7:
        arrays[str(rng.choice(["row_start", "successor", "costs.a", "costs.self", "costs.", "costs.table", "x"]))] = (
            array
        )


MISTAKES: list[Callable[[Generator, dict, dict], None]] = [
    change_meta,
    change_entries,
    change_type,
    change_shape,
    exchange_members,
    rename_member,
]


def miswritten(rng: Generator, blob: bytes) -> bytes:
    file = FILES[BLOBS.index(blob)]
    meta, arrays = dict(file.meta), dict(file.arrays)
    for _ in range(rng.integers(1, 3)):
        MISTAKES[rng.integers(len(MISTAKES))](rng, meta, arrays)
    return datafile.pack(file.kind, int(rng.choice([1, 0, 2], p=[0.94, 0.03, 0.03])), meta, arrays)


def outcome_of(mutant: bytes) -> tuple[CMDP | None, str]:
    """The world that a file gives, or None and the words of the refusal; any other exception fails the test."""
    try:
        return CMDP.from_bytes(mutant), ""
    except HedgerowError as error:
        return None, str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutate", "number", "seed"),
    [(damaged, 4_000, 1), (forged, 3_000, 2), (miswritten, 3_000, 3)],
    ids=["damaged", "forged", "miswritten"],
)
@pytest.mark.parametrize("part", daily(8, nightly=1), ids=["an eighth", "all"])
def test_every_mutated_file_is_refused_or_loads_as_a_sound_world(mutate, number: int, seed: int, part: int) -> None:
    rng, number = np.random.default_rng(seed), number // part
    outcomes: Counter[str] = Counter()
    for i in range(number):
        mutant, world = mutate(rng, BLOBS[i % 3]), WORLDS[i % 3]
        found, message = outcome_of(mutant)
        outcomes["refused" if found is None else "loaded"] += 1
        if found is None:
            assert message.startswith("data "), "a refusal must name its source"
        else:
            assert mutate is not damaged or found.content_hash == world.content_hash
            assert CMDP.from_bytes(found.to_bytes()).content_hash == found.content_hash
    assert outcomes.total() == number
    assert outcomes["refused"] > number // 2
    if mutate is not damaged:
        assert outcomes["loaded"], "some mutants must get through, or the mutations are too coarse to test the checks"


@pytest.mark.slow
@pytest.mark.parametrize(("mutate", "seed"), [(forged, 4), (miswritten, 5)], ids=["forged", "miswritten"])
def test_no_file_asks_for_much_memory(mutate, seed: int) -> None:
    # Fewer files: tracing allocations is an order of magnitude slower than reading.
    rng = np.random.default_rng(seed)
    mutants = [mutate(rng, BLOBS[i % 3]) for i in range(150)]
    tracemalloc.start()
    try:
        for mutant in mutants:
            outcome_of(mutant)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_ALLOWED
    finally:
        tracemalloc.stop()


def test_a_small_file_that_claims_a_huge_world_is_refused_before_memory_is_taken() -> None:
    file = FILES[0]
    claims = [({**file.meta, "num_actions": 10**6}, {}), (file.meta, {"layer_sizes": np.array([1, 10**6, 1])})]
    tracemalloc.start()
    try:
        for meta, arrays in claims:
            assert outcome_of(datafile.pack(file.kind, file.version, meta, {**file.arrays, **arrays}))[0] is None
        assert tracemalloc.get_traced_memory()[1] < MEMORY_ALLOWED
    finally:
        tracemalloc.stop()
