"""Directories of results: what is written comes back, bytes are equal for equal runs, nothing is overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from run_cases import EPISODES, made_directory, made_learner, made_run, made_spec

from hedgerow import results
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.results import store
from hedgerow.results.surroundings import commit
from hedgerow.results.tables import MOST_COMPARATORS

EXPERIMENT = {"experiment": {"name": "made up"}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store.create(tmp_path / "out", EXPERIMENT)
    return tmp_path / "out"


def test_every_number_of_a_run_comes_back(directory: Path) -> None:
    rng = np.random.default_rng(0)
    names = ("loss", "regret", "costs", "violations", "excess", "cost_bounds", "residual", "mixing_weight")
    plain = made_run(5, m=3)
    run = replace(plain, **{name: rng.normal(size=np.shape(getattr(plain, name))) for name in names})
    path = store.write_cell(directory, made_spec(seed=5), run, made_learner(3))
    table = pq.read_table(path)
    assert table.num_rows == len(EPISODES)
    np.testing.assert_array_equal(table["episode"], run.episodes)
    np.testing.assert_array_equal(table["regret"], run.regret)
    np.testing.assert_array_equal(table["iterations"], run.iterations)
    np.testing.assert_array_equal(table["residual"], run.residual)
    for i in range(3):
        np.testing.assert_array_equal(table[f"cost_{i}"], run.costs[:, i])
        np.testing.assert_array_equal(table[f"violation_{i}"], run.violations[:, i])
        np.testing.assert_array_equal(table[f"excess_{i}"], run.excess[:, i])
        np.testing.assert_array_equal(table[f"bound_{i}"], run.cost_bounds[:, i])
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["episode"], types["branch"], types["clean_now"], types["loss"]) == (
        "int64",
        "int32",
        "bool",
        "double",
    )


def test_facts_come_back(directory: Path) -> None:
    run = made_run(t_bar=77, rho_hat=0.25, optimum=float("nan"))
    store.write_cell(directory, made_spec(), run, made_learner(names=("energy", "noise")), facts={"slater": 0.5})
    (cell,) = results.open(directory).cells
    assert cell.facts["t_bar"] == 77
    assert cell.facts["rho_hat"] == 0.25
    assert cell.facts["optimum"] is None  # JSON has no NaN
    assert cell.facts["slater"] == 0.5
    assert cell.constraints == ("energy", "noise")
    assert cell.facts["ledger"][1]["void_because"] == "confidence_scale = 0.5 < 1"
    assert cell.spec == made_spec()
    assert (cell.status, cell.error, cell.horizon, cell.seed) == ("done", "", 1000, 0)


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
    spec, learner = made_spec(), made_learner()
    blobs = []
    for name, seconds in (("a", 0.1), ("b", 9.0)):
        store.create(tmp_path / name, EXPERIMENT)
        blobs.append(store.write_cell(tmp_path / name, spec, made_run(seconds=seconds), learner).read_bytes())
    assert blobs[0] == blobs[1]
    assert str(tmp_path).encode() not in blobs[0]


def test_nothing_is_overwritten(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run(), made_learner())
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="exists already; results are never overwritten"):
        store.write_cell(directory, made_spec(), made_run(1), made_learner())
    assert path.read_bytes() == before


def test_trace_is_beside_the_cell(directory: Path) -> None:
    every = np.arange(1, 1001)
    (directory / "traces" / "toy__switching-100__s-ops-sharp__T1000__seed0.parquet").write_text("of a broken attempt")
    path = store.write_cell(directory, made_spec(), made_run(), made_learner(), trace=made_run(episodes=every))
    trace = store.read_table(directory / "traces" / path.name)
    assert trace["episode"].to_pylist() == every.tolist()
    solved = trace["regret_so_far"].to_numpy()
    rows = np.flatnonzero(np.isfinite(solved))
    assert 200 < len(rows) <= MOST_COMPARATORS  # a linear program each
    assert {0, 999} <= set(rows.tolist())
    np.testing.assert_allclose(solved[rows], 10.0 * every[rows] ** 0.5)
    assert trace.schema.names == store.read_table(path).schema.names


def test_finished_counts_whole_files_only(directory: Path) -> None:
    good = store.write_cell(directory, made_spec(), made_run(), made_learner())
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
    blob = store.write_cell(directory, made_spec(), made_run(), made_learner()).read_bytes()
    broken = {"cut": blob[:-20], "renamed": blob, "text": b"hello"}[name]
    (directory / "cells" / f"{name}.parquet").write_bytes(broken)
    with pytest.raises(FileFormatError, match=f"{name}.parquet"):
        results.open(directory)


def test_flipped_bits_do_not_change_a_number(directory: Path) -> None:
    path = store.write_cell(directory, made_spec(), made_run(), made_learner())
    blob, opened = path.read_bytes(), results.open(directory)
    curves, facts = opened.curves(), opened.cells[0].facts
    header = blob.index(b'{"facts"')
    data = range(4, pq.ParquetFile(path).metadata.row_group(0).column(5).data_page_offset, 13)
    found = 0
    for place in [*data, *range(header, header + 400, 13)]:
        path.write_bytes(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :])
        try:
            opened = results.open(directory)
            assert opened.cells[0].facts == facts
            assert opened.curves().equals(curves)
        except FileFormatError:
            found += 1
    assert found > 80


def test_create_refuses_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    with pytest.raises(InvalidInput, match="is not empty and holds no results"):
        store.create(tmp_path, EXPERIMENT)
    with pytest.raises(InvalidInput, match="is a file"):
        store.create(tmp_path / "letter.txt", EXPERIMENT)
    with pytest.raises(InvalidInput, match="needs the entry 'experiment'"):
        store.create(tmp_path / "out", {})


def test_create_resumes_the_same_experiment_only(directory: Path) -> None:
    store.write_cell(directory, made_spec(), made_run(), made_learner())
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


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other", "experiment_hash": "x"}'])
def test_other_manifests_are_refused(directory: Path, text: str) -> None:
    (directory / "manifest.json").write_text(text)
    with pytest.raises(FileFormatError, match="no manifest of hedgerow results"):
        results.open(directory)
    (directory / "manifest.json").unlink()
    with pytest.raises(FileFormatError, match="holds no results"):
        results.open(directory)


def test_a_manifest_of_a_later_release_is_refused(directory: Path) -> None:
    store.update_manifest(directory, {"schema": 99})
    with pytest.raises(FileFormatError, match="has schema 99"):
        results.open(directory)


def test_commit_is_none_outside_of_a_git_tree(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
