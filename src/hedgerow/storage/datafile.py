"""Data files: named arrays and JSON metadata in one checked container. Files are data, never pickles.

A file is a zip archive that `numpy.load` opens as an ordinary `.npz`: one `.npy` member per array and a `header.json`
with the kind, the schema version and the metadata. The archive comment ends in the SHA-256 of everything before it, so
the last 64 bytes of the file decide whether it is intact before a single byte of it is interpreted. Equal content gives
equal bytes with the same release of Python; zip writers of different releases differ. The lasting name of a content is
therefore `content_hash`, which covers what is in the file and not its container.

    >>> blob = pack("example", 1, {"note": "hello"}, {"x": np.arange(3)})
    >>> unpack(blob, "example").arrays["x"].tolist()
    [0, 1, 2]
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import tokenize
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileFormatError
from hedgerow.storage.atomic import read
from hedgerow.storage.atomic import save as save  # saved like everything else

_HEADER = "header.json"
_COMMENT = b"hedgerow data file, sha256 of all bytes before it: "
_DIGEST_LENGTH = 64
_KINDS = "biufcSU"  # of arrays: numbers and text
# What the readers of zip, npy and JSON raise on bytes with a right checksum and a wrong content.
_MALFORMED = (
    zipfile.BadZipFile,
    tokenize.TokenError,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class DataFile:
    """What a data file holds: its kind and schema version, metadata (JSON) and arrays by name."""

    kind: str
    version: int
    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(kind: str, version: int, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a data file."""
    header = _header(kind, version, meta)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(_HEADER), header)
        for name in sorted(arrays):
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)
        archive.comment = _COMMENT + b"0" * _DIGEST_LENGTH
    body = buffer.getvalue()[:-_DIGEST_LENGTH]
    return body + hashlib.sha256(body).hexdigest().encode()


def content_hash(kind: str, version: int, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of what `pack` would store: header, names, dtypes, shapes and values; the same on every machine.

    Every array is announced by a line of JSON, which says how many bytes follow: values in C order, little-endian.
    """
    digest = hashlib.sha256(f"{_header(kind, version, meta)}\n".encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"{name!r} has the dtype {array.dtype}, which is neither numbers nor text")
        little = array.dtype.newbyteorder("<")
        digest.update(f"{json.dumps([name, little.str, array.shape])}\n".encode())
        digest.update(array.astype(little).tobytes(order="C"))
    return digest.hexdigest()


def _header(kind: str, version: int, meta: Mapping[str, Any]) -> str:
    return json.dumps({"kind": kind, "version": version, "meta": meta}, sort_keys=True, allow_nan=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3  # else the bytes would depend on the system
    return info


def unpack(blob: bytes, kind: str | None = None, source: str = "data") -> DataFile:
    """The content of a data file, after its checksum has been verified; `kind` is what the caller expects."""
    body, digest = blob[:-_DIGEST_LENGTH], blob[-_DIGEST_LENGTH:]
    if not body.endswith(_COMMENT):
        raise FileFormatError(
            f"{source} is not a hedgerow data file, or was cut short: its last bytes are not a checksum"
        )
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise FileFormatError(f"{source} is corrupt: its checksum does not match its content; restore it from a copy")
    try:
        result = _read(blob)
    except _MALFORMED as error:
        raise FileFormatError(f"{source} is intact but not a well-formed data file: {error}") from error
    if kind is not None and result.kind != kind:
        raise FileFormatError(f"{source} holds a {result.kind!r}, not a {kind!r}")
    return result


def _read(blob: bytes) -> DataFile:
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) != len(names):
            raise ValueError("two members have the same name")
        # A stored member is never longer than the file, so no file can ask for more memory than its own size.
        if any(member.compress_type != zipfile.ZIP_STORED or member.file_size > len(blob) for member in members):
            raise ValueError("its members must be stored without compression")
        header = json.loads(archive.read(_HEADER))
        arrays = {name.removesuffix(".npy"): _array(name, archive.read(name)) for name in names if name != _HEADER}
    kind, version, meta = header["kind"], header["version"], header["meta"]
    if not (isinstance(kind, str) and type(version) is int and isinstance(meta, dict)):
        raise ValueError("its header must hold kind (text), version (number) and meta (object)")
    return DataFile(kind, version, meta, arrays)


def _array(name: str, content: bytes) -> NDArray[Any]:
    """The array in the bytes of an npy member; no memory is allocated because its header says so."""
    if not name.endswith(".npy"):
        raise ValueError(f"{name!r} is neither the header nor an array")
    stream = io.BytesIO(content)
    major, _ = np.lib.format.read_magic(stream)
    if major != 1:  # what `write_array` chooses for every plain dtype
        raise ValueError(f"{name!r} is in npy format {major}, not 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a header that needs interpretation is not one of ours
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in _KINDS or fortran_order or any(size < 0 for size in shape):
        raise ValueError(f"{name!r} must be an array of numbers or text in C order")
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"{name!r} does not have the length that its header states")
    return np.frombuffer(content, dtype=dtype, offset=stream.tell()).reshape(shape).copy()


def load(path: str | os.PathLike[str], kind: str | None = None) -> DataFile:
    """Read a data file and verify it."""
    try:
        blob = read(path)
    except OSError as error:
        raise FileFormatError(f"cannot read {path}: {error.strerror}") from error
    except MemoryError as error:
        raise FileFormatError(f"cannot read {path}: it is larger than the memory") from error
    return unpack(blob, kind, str(path))


# A checksum inside a Parquet file: one flipped bit, wherever it is, is found before anything is read. Parquet has
# checksums for pages, but none for the footer, which says where which column begins and what it is called. A sealed
# file keeps, as an entry of that footer, the SHA-256 of the whole file with zeros in the place of the digits.


SEAL_KEY = "hedgerow_sha256"
# The header of a table is JSON, which writes a line break as two characters, so that nothing in it looks like this.
_SEAL_MARK = b"\nSHA-256 of this file with zeros in the place of these digits: "
BLANK_SEAL = (_SEAL_MARK + b"0" * _DIGEST_LENGTH).decode()
"""What a file holds under SEAL_KEY until it is sealed."""


def seal(blob: bytes) -> bytes:
    """`blob`, which holds BLANK_SEAL, with its checksum."""
    place = _place_of_seal(blob)
    return blob[:place] + _sealed_digest(blob, place) + blob[place + _DIGEST_LENGTH :]


def has_seal(blob: bytes) -> bool:
    return _SEAL_MARK in blob


def is_intact(blob: bytes) -> bool:
    """Whether a file is what was sealed; False also if it says that it was, and the seal is no longer found."""
    if not has_seal(blob):
        return False
    place = _place_of_seal(blob)
    return blob[place : place + _DIGEST_LENGTH] == _sealed_digest(blob, place)


def _place_of_seal(blob: bytes) -> int:
    return blob.rindex(_SEAL_MARK) + len(_SEAL_MARK)


def _sealed_digest(blob: bytes, place: int) -> bytes:
    digest = hashlib.sha256(blob[:place] + b"0" * _DIGEST_LENGTH)
    digest.update(blob[place + _DIGEST_LENGTH :])
    return digest.hexdigest().encode()
