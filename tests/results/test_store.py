"""Directories of results: what is written comes back, bytes are equal for equal runs, nothing is overwritten."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from run_cases import EPISODES, made_directory, made_learner, made_run, made_spec

from hedgerow import results
from hedgerow.environments.columns import Column
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.report.page import page
from hedgerow.results import store
from hedgerow.results.manifest import cell_hash, commit, typed
from hedgerow.results.table import table_bytes
from hedgerow.simulation.result import MOST_COMPARATORS
from nightly import daily

EXPERIMENT = {"experiment": {"name": "made up"}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store.create(tmp_path / "out", EXPERIMENT)
    return tmp_path / "out"


def test_every_number_of_a_run_comes_back(directory: Path) -> None:
    rng = np.random.default_rng(0)
    plain = made_run(5, m=3)
    names = ("loss", "regret", "costs", "violations", "excess")
    notes = {name: rng.normal(size=len(EPISODES)) for name in ("residual", "mixing_weight", "bound_0", "mood")}
    drawn = {name: rng.normal(size=np.shape(getattr(plain, name))) for name in names}
    run = replace(plain, **drawn, notes={**plain.notes, **notes})
    path = store.write_cell(directory, made_spec(seed=5), run)
    table = pq.read_table(path)
    assert table.num_rows == len(EPISODES)
    np.testing.assert_array_equal(table["episode"], run.episodes)
    np.testing.assert_array_equal(table["regret"], run.regret)
    np.testing.assert_array_equal(table["iterations"], run["iterations"])
    for name in notes:
        np.testing.assert_array_equal(table[name], run[name])
    for i in range(3):
        np.testing.assert_array_equal(table[f"cost_{i}"], run.costs[:, i])
        np.testing.assert_array_equal(table[f"violation_{i}"], run.violations[:, i])
        np.testing.assert_array_equal(table[f"excess_{i}"], run.excess[:, i])
        np.testing.assert_array_equal(table[f"bound_{i}"], run[f"bound_{i}"])
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["episode"], types["branch"], types["clean_now"], types["loss"]) == (
        "int64",
        "int32",
        "bool",
        "double",
    )


def test_facts_come_back(directory: Path) -> None:
    learner = made_learner(names=("energy", "noise"))
    run = made_run(t_bar=77, rho_hat=0.25, optimum=float("nan"), learner=learner)
    store.write_cell(directory, made_spec(), run, facts={"slater": 0.5})
    (cell,) = results.open(directory).cells
    assert cell.facts["t_bar"] == 77
    assert cell.facts["rho_hat"] == 0.25
    assert cell.facts["optimum"] is None  # JSON has no NaN
    assert cell.facts["slater"] == 0.5
    assert cell.constraints == ("energy", "noise")
    assert cell.facts["ledger"][1]["void_because"] == "confidence_scale = 0.5 < 1"
    assert cell.spec == made_spec()
    assert (cell.status, cell.error, cell.episodes, cell.seed) == ("done", "", 1000, 0)


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    made_directory(tmp_path / "a")
    made_directory(tmp_path / "b")
    store.update_manifest(tmp_path / "b", {"created": "another day", "machine": {"cores": 99}})
    files = sorted(path.name for path in (tmp_path / "a" / "cells").iterdir())
    assert len(files) == 8
    for name in files:
        assert (tmp_path / "a" / "cells" / name).read_bytes() == (tmp_path / "b" / "cells" / name).read_bytes()
    assert results.open(tmp_path / "a").summary().equals(results.open(tmp_path / "b").summary())
    assert results.open(tmp_path / "a").curves().equals(results.open(tmp_path / "b").curves())


def test_times_and_places_stay_out_of_the_tables(tmp_path: Path) -> None:
    spec = made_spec()
    blobs = []
    for name, seconds in (("a", 0.1), ("b", 9.0)):
        store.create(tmp_path / name, EXPERIMENT)
        blobs.append(store.write_cell(tmp_path / name, spec, made_run(seconds=seconds)).read_bytes())
    assert blobs[0] == blobs[1]
    assert str(tmp_path).encode() not in blobs[0]


def test_nothing_is_overwritten(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run())
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="exists already; results are never overwritten"):
        store.write_cell(directory, made_spec(), made_run(1))
    assert path.read_bytes() == before


def test_trace_is_beside_the_cell(directory: Path) -> None:
    every = np.arange(1, 1001)
    (directory / "traces" / "toy__switching-100__s-ops-sharp__T1000__seed0.parquet").write_text("of a broken attempt")
    path = store.write_cell(directory, made_spec(), made_run(), trace=made_run(episodes=every))
    trace = store.read_table(directory / "traces" / path.name)
    assert trace["episode"].to_pylist() == every.tolist()
    solved = trace["regret_so_far"].to_numpy()
    rows = np.flatnonzero(np.isfinite(solved))
    assert 200 < len(rows) <= MOST_COMPARATORS  # a linear program each
    assert {0, 999} <= set(rows.tolist())
    np.testing.assert_allclose(solved[rows], 10.0 * every[rows] ** 0.5)
    assert trace.schema.names == store.read_table(path).schema.names


def test_finished_counts_whole_files_only(directory: Path) -> None:
    good = store.write_cell(directory, made_spec(), made_run())
    blob = good.read_bytes()
    (directory / "cells" / "cut.parquet").write_bytes(blob[:-20])
    (directory / "cells" / "renamed.parquet").write_bytes(blob)
    (directory / "cells" / "empty.parquet").write_bytes(b"")
    other = made_spec(seed=1)
    table = pq.read_table(good)
    header = json.loads(table.schema.metadata[b"hedgerow"])
    forged = {**header, "spec": other}  # the hash is that of another cell
    pq.write_table(
        table.replace_schema_metadata({b"hedgerow": json.dumps(forged).encode()}),
        directory / "cells" / "forged.parquet",
    )
    assert store.finished(directory) == {good.stem}
    assert store.finished(directory / "nowhere") == set()


@pytest.mark.parametrize("name", ["cut", "renamed", "text"])
def test_open_says_which_file_is_broken(directory: Path, name: str) -> None:
    blob = store.write_cell(directory, made_spec(), made_run()).read_bytes()
    broken = {"cut": blob[:-20], "renamed": blob, "text": b"hello"}[name]
    (directory / "cells" / f"{name}.parquet").write_bytes(broken)
    with pytest.raises(FileFormatError, match=f"{name}.parquet"):
        results.open(directory)


@pytest.mark.parametrize("step", daily(29, nightly=7))
def test_every_flipped_bit_is_found(directory: Path, step: int) -> None:
    path = store.write_cell(directory, made_spec(), made_run())
    blob = path.read_bytes()
    for place in range(0, len(blob), step):
        path.write_bytes(blob[:place] + bytes([blob[place] ^ 1 << place % 8]) + blob[place + 1 :])
        assert store.finished(directory) == set(), place
        with pytest.raises(FileFormatError, match=r"seed0\.parquet .*: hedgerow resume") as caught:
            results.open(directory)
        assert "\n" not in str(caught.value)
    path.write_bytes(blob)
    assert store.finished(directory) == {path.stem}


def test_a_run_of_the_same_name_is_not_the_same_run(directory: Path) -> None:
    spec = made_spec()
    path = store.write_cell(directory, {**spec, "delta": 0.5}, made_run())
    asked = {path.stem: cell_hash(spec)}
    assert store.finished(directory) == {path.stem}
    found = store.inspect(directory, asked)
    assert (found.finished, list(found.damaged)) == (set(), [path.stem])
    assert "holds a run of another experiment (hash " in found.damaged[path.stem]
    store.create(directory, {**EXPERIMENT, "hashes": asked})
    with pytest.raises(FileFormatError, match="holds a run of another experiment"):
        results.open(directory)
    path.unlink()
    store.write_cell(directory, spec, made_run())
    assert store.finished(directory, asked) == {path.stem}
    assert [cell.hash for cell in results.open(directory).cells] == list(asked.values())


def test_a_cell_needs_its_trace_where_there_should_be_one(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run(), trace=made_run())
    trace = directory / "traces" / path.name
    assert store.inspect(directory, traces=True).finished == {path.stem}
    trace.write_bytes(trace.read_bytes()[:-1])
    assert "traces" in store.inspect(directory, traces=True).damaged[path.stem]
    trace.unlink()
    assert "No such file" in store.inspect(directory, traces=True).damaged[path.stem]
    assert store.finished(directory) == {path.stem}


def test_tables_of_another_schema_are_refused(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run())
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"hedgerow"]) | {"schema": 3}
    path.write_bytes(table_bytes(table.replace_schema_metadata({b"hedgerow": json.dumps(header).encode()})))
    with pytest.raises(FileFormatError, match="has schema 3; this release reads 4"):
        results.open(directory)


@pytest.mark.parametrize(
    "changed", [{"reduce": "guess"}, {"type": "complex"}, {"shade": "red"}, {"name": 3}, {"tables": ["wall"]}]
)
def test_a_declaration_that_is_none_is_refused(directory: Path, changed: dict[str, object]) -> None:
    path = store.write_cell(directory, made_spec(), made_run())
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"hedgerow"])
    header["columns"][0] |= changed
    path.write_bytes(table_bytes(table.replace_schema_metadata({b"hedgerow": json.dumps(header).encode()})))
    with pytest.raises(FileFormatError, match="not the table of a hedgerow run"):
        results.open(directory)


def test_declarations_come_back(directory: Path) -> None:
    mood = Column("mood", label="mood m_t", reduce="largest", tables=("answer", "latex"))
    moods = np.arange(len(EPISODES), dtype=float)
    run = made_run()
    run = replace(run, notes={**run.notes, "mood": moods, "plain": moods}, columns=(*run.columns, mood))
    store.write_cell(directory, made_spec(), run)
    found = results.open(directory)
    (cell,), (group,) = found.cells, found.groups
    assert mood in cell.columns
    assert Column("plain") in cell.columns
    assert group["mood"].value == moods[-1]
    assert "mood m_t" in group.shown("answer")
    assert "Mood $m_t$" in found.to_latex()
    assert "mood m<sub>t</sub>" in page(found)
    assert group.notes == ("plain",)
    (row,) = found.summary().to_pylist()
    assert (row["mood"], row["plain"]) == (moods[-1], moods[-1])


def test_what_another_program_wrote_again_is_not_ours(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run())
    pq.write_table(pq.read_table(path), path)
    with pytest.raises(FileFormatError, match="written again by another program: it has no checksum"):
        results.open(directory)


@pytest.mark.parametrize(
    "raised", [pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowMemoryError]
)
def test_whatever_pyarrow_raises_is_one_line(
    directory: Path, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised("a\nb")

    path = store.write_cell(directory, made_spec(), made_run())
    monkeypatch.setattr(pq, "read_table", fail)
    with pytest.raises(FileFormatError, match="is not a Parquet file, or corrupt") as caught:
        results.open(directory).table(path.stem)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_a_fifo_among_the_cells_does_not_keep_us_waiting(directory: Path) -> None:
    os.mkfifo(directory / "cells" / "pipe.parquet")
    assert store.finished(directory) == set()
    with pytest.raises(FileFormatError, match="it is not a regular file"):
        results.open(directory)


def test_create_refuses_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    with pytest.raises(InvalidInput, match="is not empty and holds no results"):
        store.create(tmp_path, EXPERIMENT)
    with pytest.raises(InvalidInput, match="is a file"):
        store.create(tmp_path / "letter.txt", EXPERIMENT)
    with pytest.raises(InvalidInput, match="needs the entry 'experiment'"):
        store.create(tmp_path / "out", {})


def test_create_goes_on_after_a_violent_end(tmp_path: Path) -> None:
    """Whoever was killed left the manifest and no folders, or only half of a manifest under another name."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".hedgerow-0-0.tmp").write_text("half")
    store.create(tmp_path / "out", EXPERIMENT)
    for name in ("cells", "traces"):
        (tmp_path / "out" / name).rmdir()
    store.create(tmp_path / "out", EXPERIMENT)
    store.write_cell(tmp_path / "out", made_spec(), made_run())
    assert len(results.open(tmp_path / "out").done) == 1


def test_create_resumes_the_same_experiment_only(directory: Path) -> None:
    store.write_cell(directory, made_spec(), made_run())
    store.create(directory, EXPERIMENT)
    assert len(store.read_manifest(directory)["resumed"]) == 1
    assert len(store.finished(directory)) == 1
    with pytest.raises(InvalidInput, match="another experiment"):
        store.create(directory, {"experiment": {"name": "another"}})


def test_manifest_says_where_it_comes_from(directory: Path) -> None:
    manifest = results.open(directory).manifest
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["python"].startswith("3.")
    assert {"created", "command", "commit", "machine", "experiment", "experiment_hash"} <= set(manifest)


def test_manifest_entries_of_cells_are_merged(directory: Path) -> None:
    store.update_manifest(directory, {"cells": {"a": {"status": "failed", "error": "boom", "attempts": 1}}})
    store.update_manifest(directory, {"cells": {"a": {"attempts": 2}, "b": {"status": "running"}}, "note": 1})
    manifest = store.read_manifest(directory)
    assert manifest["cells"]["a"] == {"status": "failed", "error": "boom", "attempts": 2}
    assert manifest["note"] == 1
    opened = results.open(directory)
    assert [(cell.id, cell.status, cell.error) for cell in opened.cells] == [
        ("a", "failed", "boom"),
        ("b", "missing", ""),
    ]
    with pytest.raises(InvalidInput, match="has no table"):
        opened.table("a")
    with pytest.raises(InvalidInput, match="no finished cell"):
        opened.curves()
    with pytest.raises(InvalidInput, match="no cell 'c'"):
        opened["c"]


STRANGE = [
    b"",
    b"[]",
    b"{}",
    b"7",
    b"null",
    b'{"kind": "other", "experiment_hash": "x"}',
    b'{"kind": {}, "experiment_hash": []}',
    b"\xff\xfe\x00",
    b"[" * 200_000,
    b"1" * 10_000,
    bytes(range(256)) * 50,
]


@pytest.mark.parametrize("content", STRANGE, ids=range(len(STRANGE)))
def test_other_manifests_are_refused(directory: Path, content: bytes) -> None:
    (directory / "manifest.json").write_bytes(content)
    with pytest.raises(FileFormatError, match="no manifest of hedgerow results") as caught:
        results.open(directory)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    (directory / "manifest.json").unlink()
    with pytest.raises(FileFormatError, match="holds no results"):
        results.open(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cells", []),
        ("cells", {"a": 3}),
        ("cells", {"a": {"status": []}}),
        ("cells", {"a": {"seconds": {"loop": "long"}}}),
        ("cells", {"a": {"seconds": {"loop": True}}}),
        ("cells", {"a": {"seconds": 10**400}}),
        ("cells", {"a": {"error": ["x"]}}),
        ("cells", {"a": {"spec": {"seed": 1}}}),
        ("cells", {"a": {"spec": {"world": 1, "adversary": 2, "learner": 3, "episodes": 4, "seed": 5}}}),
        ("experiment", {"name": "edited"}),
        ("experiment", []),
        ("hashes", {"a": 1}),
        ("hashes", "x"),
        ("resumed", {}),
        ("title", 3),
        ("source", None),
        ("source_folder", []),
        ("versions", []),
        ("machine", "fast"),
        ("command", 1),
    ],
)
def test_a_manifest_with_strange_entries_is_refused(directory: Path, key: str, value: object) -> None:
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    before = path.read_bytes()
    for read in (results.open, store.read_manifest, lambda folder: store.update_manifest(folder, {"note": 1})):
        with pytest.raises(FileFormatError, match=r"no manifest of hedgerow results: .*; restore it from a copy"):
            read(directory)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_a_manifest_that_is_huge_or_no_file(directory: Path) -> None:
    path = directory / "manifest.json"
    with path.open("ab") as stream:
        stream.truncate(2**31)
    with pytest.raises(FileFormatError, match="it has 2,147,483,648 bytes; at most 536,870,912 are read"):
        results.open(directory)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="it is not a regular file"):
        results.open(directory)
    with pytest.raises(FileFormatError, match="it is not a regular file"):
        store.create(directory, EXPERIMENT)


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    for action in (results.open, lambda path: store.create(path, EXPERIMENT)):
        with pytest.raises(InvalidInput, match="names have no NUL characters"):
            action(f"{tmp_path}/a\0b")


def test_a_manifest_of_a_later_release_is_refused(directory: Path) -> None:
    store.update_manifest(directory, {"schema": 99})
    with pytest.raises(FileFormatError, match="has schema 99"):
        results.open(directory)


def test_commit_is_none_outside_of_a_git_tree(tmp_path: Path) -> None:
    assert commit(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/some/bin/hedgerow", "run", "a b"], ["hedgerow", "run", "a b"]),
        (["/some/lib/hedgerow/__main__.py", "run"], ["python", "-m", "hedgerow", "run"]),
        (["experiment.py"], ["experiment.py"]),
    ],
)
def test_the_command_can_be_typed_again(arguments: list[str], told: list[str]) -> None:
    assert typed(arguments) == told
