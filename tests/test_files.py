"""The container of data files: round trips, equal bytes for equal content, atomic writes, and what is refused."""

import hashlib
import io
import os
import stat
import struct
import zipfile

import numpy as np
import pytest

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.storage import datafile

ARRAYS = {
    "floats": np.array([[0.1, -0.0], [np.inf, 5e-324]]),
    "big_endian": np.arange(3, dtype=">i4"),
    "bools": np.array([True, False]),
    "text": np.array(["a", "größer"]),
    "scalar": np.array(2.5),
    "nothing": np.zeros((0, 3)),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}
META = {"name": "größe", "list": [1, 2.5, None, True], "nested": {"a": []}}


def test_content_survives_the_round_trip() -> None:
    file = datafile.unpack(datafile.pack("example", 3, META, ARRAYS), "example")
    assert (file.kind, file.version, file.meta) == ("example", 3, META)
    assert set(file.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert file.arrays[name].dtype == array.dtype
        assert file.arrays[name].shape == array.shape
        assert file.arrays[name].tobytes() == array.tobytes()


def test_equal_content_gives_equal_bytes_and_other_content_does_not() -> None:
    blob = datafile.pack("example", 1, META, ARRAYS)
    reordered = dict(reversed(META.items())), dict(reversed(ARRAYS.items()))
    assert datafile.pack("example", 1, *reordered) == blob
    assert datafile.pack("example", 2, META, ARRAYS) != blob
    assert datafile.pack("example", 1, META, {**ARRAYS, "floats": np.zeros((2, 2))}) != blob


def test_the_content_hash_is_that_of_the_content_spelled_out() -> None:
    """Written once by hand, so that no machine and no release can have another one."""
    values = np.array([[1.5, -0.0], [2.0, 1e-300]])
    text = (
        b'{"kind": "example", "meta": {"name": "gr\\u00f6\\u00dfe"}, "version": 2}\n'
        b'["flags", "|b1", [2]]\n\x01\x00'
        b'["values", "<f8", [2, 2]]\n' + struct.pack("<4d", 1.5, -0.0, 2.0, 1e-300)
    )
    arrays = {"values": values, "flags": np.array([True, False])}
    expected = hashlib.sha256(text).hexdigest()
    assert datafile.content_hash("example", 2, {"name": "größe"}, arrays) == expected
    for same in (np.asfortranarray(values), values.astype(">f8"), np.repeat(values, 2, axis=1)[:, ::2]):
        assert datafile.content_hash("example", 2, {"name": "größe"}, arrays | {"values": same}) == expected


def test_every_part_of_the_content_counts() -> None:
    x = np.arange(4.0)
    variants = [
        ("example", 1, {}, {"x": x}),
        ("other", 1, {}, {"x": x}),
        ("example", 2, {}, {"x": x}),
        ("example", 1, {"note": 1}, {"x": x}),
        ("example", 1, {}, {"y": x}),
        ("example", 1, {}, {"x": x.reshape(2, 2)}),
        ("example", 1, {}, {"x": x.astype(np.float32)}),
        ("example", 1, {}, {"x": x + 1}),
        ("example", 1, {}, {"x": x, "y": np.zeros(0)}),
        ("example", 1, {}, {}),
    ]
    assert len({datafile.content_hash(*variant) for variant in variants}) == len(variants)
    with pytest.raises(ValueError, match="'x' has the dtype object, which is neither numbers nor text"):
        datafile.content_hash("example", 1, {}, {"x": np.array([{}], dtype=object)})


def test_numpy_reads_the_arrays_without_us(tmp_path) -> None:
    path = tmp_path / "plain.npz"
    datafile.save(path, datafile.pack("example", 1, META, ARRAYS))
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["floats"], ARRAYS["floats"])


def test_the_last_bytes_are_the_checksum_of_the_rest() -> None:
    blob = datafile.pack("example", 1, META, ARRAYS)
    assert blob[-64:].decode() == hashlib.sha256(blob[:-64]).hexdigest()


def test_objects_are_not_pickled() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        datafile.pack("example", 1, {}, {"objects": np.array([{}, []], dtype=object)})
    with pytest.raises(ValueError, match="not JSON compliant"):
        datafile.pack("example", 1, {"x": float("nan")}, {})


def test_save_refuses_to_overwrite_unless_told(tmp_path) -> None:
    path = tmp_path / "file.hedge"
    first, second = datafile.pack("a", 1, {}, {}), datafile.pack("b", 1, {}, {})
    datafile.save(path, first)
    with pytest.raises(InvalidInput, match=r"file.hedge exists already; choose another name or pass overwrite=True"):
        datafile.save(path, second)
    assert path.read_bytes() == first
    datafile.save(path, second, overwrite=True)
    assert datafile.load(path, "b").kind == "b"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.hedge"]


def test_save_names_the_missing_folder(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"the folder .*nowhere does not exist"):
        datafile.save(tmp_path / "nowhere" / "file.hedge", b"")


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file.hedge"
    datafile.save(path, b"old")

    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        datafile.save(path, b"new", overwrite=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions of other systems differ")
def test_a_saved_file_has_ordinary_permissions(tmp_path) -> None:
    (tmp_path / "ordinary").touch()
    datafile.save(tmp_path / "ours", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "ours")]
    assert modes[0] == modes[1]


def test_a_missing_file_and_a_folder_are_named(tmp_path) -> None:
    with pytest.raises(FileFormatError, match=r"cannot read .*absent.hedge: No such file"):
        datafile.load(tmp_path / "absent.hedge")
    with pytest.raises(FileFormatError, match="cannot read"):
        datafile.load(tmp_path)


def test_the_wrong_kind_is_named() -> None:
    with pytest.raises(FileFormatError, match="here holds a 'learner', not a 'cmdp'"):
        datafile.unpack(datafile.pack("learner", 1, {}, {}), "cmdp", "here")


GOOD = datafile.pack("example", 1, META, ARRAYS)


@pytest.mark.parametrize("blob", [b"", b"x", GOOD[:-1], GOOD[:100], GOOD[:-64], b"\0" * 500, GOOD[64:-64]])
def test_a_truncated_or_foreign_file_is_refused(blob: bytes) -> None:
    with pytest.raises(FileFormatError, match="is not a hedgerow data file, or was cut short"):
        datafile.unpack(blob)


@pytest.mark.parametrize("place", [0, 40, 300, len(GOOD) - 200, len(GOOD) - 1])
def test_a_flipped_bit_is_noticed(place: int) -> None:
    blob = bytearray(GOOD)
    blob[place] ^= 1
    with pytest.raises(FileFormatError, match="checksum does not match its content; restore it from a copy"):
        datafile.unpack(bytes(blob))


def signed(members: dict[str, bytes], method: int = zipfile.ZIP_STORED, edit=lambda body: body) -> bytes:
    """A zip archive of arbitrary members with a correct checksum: what a clumsy or hostile writer could produce."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name.rstrip("!")), content, method)
        archive.comment = b"hedgerow data file, sha256 of all bytes before it: " + b"0" * 64
    body = edit(buffer.getvalue()[:-64])
    return body + hashlib.sha256(body).hexdigest().encode()


def npy(header: bytes, data: bytes = b"", version: int = 1) -> bytes:
    header += b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2, "little") + header + data


HEADER = {"header.json": b'{"kind": "example", "version": 1, "meta": {}}'}
PLAIN = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"
ENCRYPTED = (b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
MALFORMED = [
    (signed({}), "There is no item named 'header.json'"),
    (signed({"header.json": b"{"}), "Expecting property name"),
    (signed({"header.json": b"\xff\xfe\xfd"}), "decode"),
    (signed({"header.json": b"[1]"}), "list indices"),
    (signed({"header.json": b"[" * 100_000}), "recursion|Stack overflow"),  # as Python says it, before 3.14 and since
    (signed({"header.json": b'{"kind": 1, "version": 1, "meta": {}}'}), "its header must hold kind"),
    (signed({"header.json": b'{"kind": "a", "version": true, "meta": {}}'}), "its header must hold kind"),
    (signed({"header.json": b'{"kind": "a", "version": 1, "meta": []}'}), "its header must hold kind"),
    (signed({"header.json": b'{"kind": "a", "version": 1}'}), "'meta'"),
    (signed(HEADER | {"readme": b""}), "'readme' is neither the header nor an array"),
    (signed(HEADER, zipfile.ZIP_DEFLATED), "stored without compression"),
    (signed(HEADER, edit=lambda body: body.replace(*ENCRYPTED)), "encrypted"),
    (signed(HEADER, edit=lambda body: body[1:]), "not a well-formed data file"),
    (signed(HEADER | {"x.npy": b""}), "not a well-formed data file"),
    (signed(HEADER | {"x.npy": npy(PLAIN, bytes(8), version=2)}), "'x.npy' is in npy format 2, not 1"),
    (signed(HEADER | {"x.npy": npy(PLAIN, bytes(7))}), "'x.npy' does not have the length that its header states"),
    (signed(HEADER | {"x.npy": npy(PLAIN.replace(b"(1,)", b"(10**9,)"))}), "not a well-formed data file"),
    (signed(HEADER | {"x.npy": npy(PLAIN.replace(b"1", b"2000000000"))}), "does not have the length"),
    (signed(HEADER | {"x.npy": npy(PLAIN.replace(b"1", b"-1"), bytes(8))}), "must be an array of numbers or text"),
    (signed(HEADER | {"x.npy": npy(PLAIN.replace(b"<f8", b"|O"), bytes(8))}), "must be an array of numbers or text"),
    (signed(HEADER | {"x.npy": npy(PLAIN.replace(b"<f8", b"|V8"), bytes(8))}), "must be an array of numbers or text"),
    (
        signed(HEADER | {"x.npy": npy(PLAIN.replace(b"False", b"True"), bytes(8))}),
        "must be an array of numbers or text",
    ),
    (signed(HEADER | {"x.npy": npy(b"{'descr': '<f8'")}), "not a well-formed data file"),
    (signed(HEADER | {"x.npy": npy(b"((((")}), "not a well-formed data file"),
    (signed(HEADER | {"x.npy": npy(b"'''")}), "not a well-formed data file"),
]


@pytest.mark.parametrize(("blob", "message"), MALFORMED)
def test_a_signed_but_malformed_file_is_refused(blob: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        datafile.unpack(blob)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_two_members_of_one_name_are_refused() -> None:
    blob = signed(HEADER | {"x.npy": npy(PLAIN, bytes(8)), "x.npy!": npy(PLAIN, bytes(8))})
    with pytest.raises(FileFormatError, match="two members have the same name"):
        datafile.unpack(blob)
    assert datafile.unpack(signed(HEADER | {"x.npy": npy(PLAIN, bytes(8))})).arrays["x"].tolist() == [0.0]
