"""Logs in files: sealed when written, verified when read, and the same content whatever they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import hedgerow as hr
from hedgerow.storage import datafile

LINES: dict[str, Any] = {
    "state": ["on", "on", "warm", "warm", "cold", "cold"],
    "action": [1, 0] * 3,
    "next_state": ["warm", "cold", "end", "end", "end", "end"],
    "loss": [0.2, 0.9] * 3,
    "fault": [0.9, 0.1] * 3,
    "noise": [0.1, 0.3] * 3,
}
WORLD = hr.from_table(LINES, thresholds={"fault": 0.6, "noise": 1.0})
VIEW = WORLD.view()


def played(episodes: int = 40, seed: int = 0) -> hr.Log:
    return hr.Log.played(WORLD.cmdp, hr.Policy.uniform(WORLD), episodes, seed)


def test_a_written_log_is_sealed(tmp_path: Path) -> None:
    log = played()
    assert not log.sealed
    log.write(tmp_path / "log.parquet")
    found = hr.Log.read(VIEW, tmp_path / "log.parquet")
    assert found.sealed
    assert found.content_hash == log.content_hash
    parquet.read_table(tmp_path / "log.parquet")  # for others it is a Parquet file like any other


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    log, path = played(3), tmp_path / "log.parquet"
    log.write(path)
    blob = path.read_bytes()
    rng = np.random.default_rng(0)
    mark = blob.rindex(b"SHA-256 of this file")
    key = blob.rindex(datafile.SEAL_KEY.encode())
    places = [
        0,
        3,
        len(blob) - 1,
        len(blob) - 6,
        mark,
        mark + 80,
        key,
        key + 3,
        *rng.integers(0, len(blob), 60).tolist(),
    ]
    for place in places:
        damaged = bytearray(blob)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(hr.errors.FileFormatError, match=r"damaged|no CSV, Parquet or Arrow"):
            hr.Log.read(VIEW, path)


def test_a_file_of_others_has_page_checksums_at_most(tmp_path: Path) -> None:
    """Without a seal the log says so; a flipped bit in a page with a checksum is still found."""
    log, path = played(2000), tmp_path / "log.parquet"
    for checksums in (False, True):
        parquet.write_table(log.table(), path, compression="none", use_dictionary=False, write_page_checksum=checksums)
        found = hr.Log.read(VIEW, path)
        assert not found.sealed
        assert found.content_hash == log.content_hash
    blob = bytearray(path.read_bytes())
    place = blob.index(np.ascontiguousarray(log.costs[100:120, 0]).tobytes())
    blob[place + 6] ^= 0x10
    path.write_bytes(blob)
    with pytest.raises(hr.errors.FileFormatError, match="damaged"):
        hr.Log.read(VIEW, path)


def test_a_sealed_file_that_was_rewritten_says_what_to_do(tmp_path: Path) -> None:
    played().write(tmp_path / "log.parquet")
    table = parquet.read_table(tmp_path / "log.parquet")
    parquet.write_table(table.slice(0, 20), tmp_path / "part.parquet")  # drops what it does not know
    assert not hr.Log.read(VIEW, tmp_path / "part.parquet").sealed
    kept = {datafile.SEAL_KEY: parquet.read_metadata(tmp_path / "log.parquet").metadata[datafile.SEAL_KEY.encode()]}
    parquet.write_table(table.slice(0, 20).replace_schema_metadata(kept), tmp_path / "part.parquet")
    with pytest.raises(hr.errors.FileFormatError, match=r"not what was sealed.*replace_schema_metadata\(None\)"):
        hr.Log.read(VIEW, tmp_path / "part.parquet")
    parquet.write_table(table.slice(0, 20).replace_schema_metadata(None), tmp_path / "part.parquet")
    assert len(hr.Log.read(VIEW, tmp_path / "part.parquet")) == 10


def sources(log: hr.Log, folder: Path) -> dict[str, Any]:
    """The same log in every form."""
    table = log.table()
    rng = np.random.default_rng(1)
    names = table.column_names
    log.write(folder / "log.parquet")
    feather.write_feather(table, str(folder / "log.arrow"))
    csv.write_csv(table, folder / "log.csv")
    parquet.write_table(table, folder / "plain.parquet", row_group_size=7)
    episode = np.asarray(table.column("episode"))
    renamed = pa.array([f"day {100 - number}" for number in episode])
    bounds = [slice(*pair) for pair in zip(log.starts[:-1], log.starts[1:], strict=True)]
    episodes = [hr.Episode(VIEW, log.rows[part], np.zeros(part.stop - part.start), log.costs[part]) for part in bounds]
    return {
        "sealed": folder / "log.parquet",
        "feather": folder / "log.arrow",
        "csv": folder / "log.csv",
        "row groups": folder / "plain.parquet",
        "table": table,
        "pandas": table.to_pandas(),
        "columns": table.select(list(rng.permutation(names))),
        "lines": table.take(rng.permutation(table.num_rows)),
        "names": table.set_column(names.index("episode"), "episode", renamed),
        "no next states": table.drop_columns(["next_state"]),
        "negative zeros": {
            **table.to_pydict(),
            "noise": [-0.0 if c == 0.0 else c for c in table.column("noise").to_pylist()],
        },
        "episodes": episodes,
        "episodes backwards": episodes[::-1],
    }


def test_the_content_of_a_log_is_the_same_in_every_form(tmp_path: Path) -> None:
    log = played()
    assert {name: hr.Log.read(VIEW, source).content_hash for name, source in sources(log, tmp_path).items()} == (
        dict.fromkeys(sources(log, Path(tmp_path.joinpath("again").mkdir() or tmp_path / "again")), log.content_hash)
    )


def test_other_content_is_other_content() -> None:
    log = played(30)
    found = {log.content_hash}
    table = log.table().to_pydict()
    for name, value in (("fault", 0.5), ("noise", 0.5)):
        found.add(hr.Log.read(VIEW, {**table, name: [value, *table[name][1:]]}).content_hash)
    swapped = {**table, "fault": table["noise"], "noise": table["fault"]}
    found.add(hr.Log.read(VIEW, swapped).content_hash)
    found |= {played(29).content_hash, played(31).content_hash, played(30, seed=1).content_hash}
    doubled = {name: values * 2 for name, values in table.items() if name != "episode"}
    episode = [*table["episode"], *(f"{number}" for number in range(30, 60) for _ in range(2))]
    found.add(hr.Log.read(VIEW, {**doubled, "episode": [str(name) for name in episode]}).content_hash)
    assert len(found) == 8
