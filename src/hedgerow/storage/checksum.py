"""A checksum inside a Parquet file: one flipped bit, wherever it is, is found before anything is interpreted.

Parquet has checksums of its own for pages, but none for the footer, which says where which column begins and what it is
called. A sealed file keeps, as an entry of that footer, the SHA-256 of the whole file with zeros in the place of the
digits. Other readers of Parquet take it for what it is, one more entry.
"""

from __future__ import annotations

import hashlib

KEY = "hedgerow_sha256"
_DIGITS = 64
# The header of a table is JSON, which writes a line break as two characters, so that nothing in it looks like this.
_MARK = b"\nSHA-256 of this file with zeros in the place of these digits: "
BLANK = (_MARK + b"0" * _DIGITS).decode()
"""What a file holds under KEY until it is sealed."""


def seal(blob: bytes) -> bytes:
    """`blob`, which holds BLANK, with its checksum."""
    place = _place(blob)
    return blob[:place] + _digest(blob, place) + blob[place + _DIGITS :]


def has_seal(blob: bytes) -> bool:
    return _MARK in blob


def is_intact(blob: bytes) -> bool:
    """Whether a file is what was sealed; False also if it says that it was, and the seal is no longer found."""
    if not has_seal(blob):
        return False
    place = _place(blob)
    return blob[place : place + _DIGITS] == _digest(blob, place)


def _place(blob: bytes) -> int:
    return blob.rindex(_MARK) + len(_MARK)


def _digest(blob: bytes, place: int) -> bytes:
    digest = hashlib.sha256(blob[:place] + b"0" * _DIGITS)
    digest.update(blob[place + _DIGITS :])
    return digest.hexdigest().encode()
