"""From a run to a table: one row per checkpoint, and the facts of the whole run beside it.

Columns of every run: the quantities of `COLUMNS`; of every constraint i = 0, 1, ...: those of `PER_CONSTRAINT` with the
suffix _i. Facts that are one number (optimum, t_bar, ...) and the ledger of guarantees go into the metadata of the
table. Nothing here depends on time, place or machine, so that equal runs give equal bytes. A file is sealed: its own
checksum is in it, and whatever does not fit is refused before it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.checks import FloatArray, shown
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.results.naming import cell_hash, cell_id, fingerprint
from hedgerow.results.seal import BLANK, KEY, has_seal, is_intact, seal

if TYPE_CHECKING:
    from hedgerow.learners.mirror.learner import Learner
    from hedgerow.simulation.outcome import Run

SCHEMA = 2
UNSEALED = 1
"""The schema of tables of earlier releases: the same columns, no seal."""
METADATA_KEY = b"hedgerow"
COMPRESSION = "zstd"

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("episode", "episodes", "int64"),
    ("loss", "loss", "float64"),
    ("regret", "regret", "float64"),
    ("mixing", "mixing", "float64"),
    ("mixing_weight", "mixing_weight", "float64"),
    ("branch", "branch", "int32"),
    ("status", "status", "int32"),
    ("residual", "residual", "float64"),
    ("clean_now", "clean_now", "bool"),
    ("unclean", "unclean", "int64"),
    ("unsafe", "unsafe", "int64"),
    ("infeasible", "infeasible", "int64"),
    ("suspect", "suspect", "int64"),
    ("iterations", "iterations", "int64"),
)
"""(column, attribute of `Run` (C,), type); `regret_so_far` joins them"""

MOST_COMPARATORS = 400
"""Of a run: each value of `regret_so_far` is a linear program, so that a trace has it in about so many rows only."""

PER_CONSTRAINT: tuple[tuple[str, str], ...] = (
    ("cost", "costs"),
    ("violation", "violations"),
    ("worst", "worst"),
    ("excess", "excess"),
    ("bound", "cost_bounds"),
)
"""(column, attribute of `Run` (C, m)); all float64"""

NUMBERS = (
    "optimum",
    "least_excess",
    "refuted_feasibility",
    "refuted_safety",
    "mirror_left",
    "mirror_right",
    "mixing_over",
    "mixing_slack",
    "t_bar",
    "rho_hat",
    "seed",
)
"""Attributes of `Run` that are one number each: facts of the same name."""


def parquet() -> Any:
    """`pyarrow.parquet`, imported when it is needed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise HedgerowError("results are Parquet files: install pyarrow to write or read them") from error
    return pyarrow.parquet


def arrow() -> Any:
    """`pyarrow`, imported when it is needed."""
    parquet()
    import pyarrow

    return pyarrow


def run_table(spec: Mapping[str, Any], run: Run, learner: Learner, facts: Mapping[str, Any] | None = None) -> Any:
    """The table of a run, described by `spec`; `facts` are added to those that `run_facts` finds."""
    pa = arrow()
    arrays: dict[str, Any] = {}
    for column, attribute, kind in COLUMNS:
        arrays[column] = pa.array(np.asarray(getattr(run, attribute)).astype(kind, copy=False))
        if column == "regret":
            arrays["regret_so_far"] = pa.array(_regret_so_far(run), from_pandas=True)  # NaN becomes null
    for column, attribute in PER_CONSTRAINT:
        values = np.asarray(getattr(run, attribute), dtype=np.float64)
        for i in range(values.shape[1]):
            arrays[f"{column}_{i}"] = pa.array(np.ascontiguousarray(values[:, i]))
    all_facts = {**run_facts(run, learner), **_plain(facts or {})}
    header = {
        "schema": SCHEMA,
        "id": cell_id(spec),
        "hash": cell_hash(spec),
        "spec": spec,
        "facts": all_facts,
        "facts_hash": fingerprint(all_facts),
    }
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    return pa.table(arrays).replace_schema_metadata({METADATA_KEY: text.encode()})


def _regret_so_far(run: Run) -> FloatArray:
    """(C,): against the optimum of the losses so far, at no more than MOST_COMPARATORS log-spaced rows; else NaN."""
    count = len(run.episodes)
    if count <= MOST_COMPARATORS:
        return run.regret_so_far
    rows = np.unique(np.round(np.geomspace(1, count, MOST_COMPARATORS)).astype(np.int64)) - 1
    few = replace(run, episodes=run.episodes[rows], loss=run.loss[rows], losses=run.losses[rows])
    result = np.full(count, np.nan)
    result[rows] = few.regret_so_far
    return result


def run_facts(run: Run, learner: Learner) -> dict[str, Any]:
    """What is one number, or one list, per run. NaN and infinity become null."""
    view = learner.view
    ledger = learner.guarantees()
    facts: dict[str, Any] = _plain(
        {
            **{name: getattr(run, name) for name in NUMBERS},
            "constraints": list(view.constraint_names),
            "thresholds": view.thresholds.tolist(),
            "kind": learner.kind,
            "ledger": [
                {
                    "name": promise.name,
                    "statement": promise.statement,
                    "probability": promise.probability,
                    "source": promise.source,
                    "void_because": promise.void_because,
                }
                for promise in ledger.promises
            ],
        }
    )
    return facts


def table_header(metadata: Mapping[bytes, bytes] | None, source: str) -> dict[str, Any]:
    """The header of a table, after it was checked that it is one of ours and describes itself."""
    try:
        header: dict[str, Any] = json.loads((metadata or {})[METADATA_KEY])
        known = header["schema"] in (SCHEMA, UNSEALED)
        fits = header["hash"] == cell_hash(header["spec"]) and header["facts_hash"] == fingerprint(header["facts"])
        fits = fits and isinstance(header["id"], str) and isinstance(header["facts"]["constraints"], list)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{source} is a Parquet file, but not the table of a hedgerow run") from error
    if not known:
        raise FileFormatError(f"{source} has schema {shown(header['schema'])}; this release reads {SCHEMA}")
    if not fits:
        raise FileFormatError(f"{source} is corrupt: its hashes do not fit what it says")
    return header


def table_bytes(table: Any) -> bytes:
    """The Parquet file of a table: fixed compression, checksums in every page."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    # Curves hardly repeat a number, so that dictionaries would only be a detour.
    options = {"compression": COMPRESSION, "use_dictionary": False, "write_page_checksum": True}
    with parquet().ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: BLANK})
    return seal(sink.getvalue().to_pybytes())


def header_in(blob: bytes, source: str) -> dict[str, Any]:
    """The header of the table in a file, after the seal and the columns were checked; `source` is how to call it."""
    if has_seal(blob) and not is_intact(blob):
        raise FileFormatError(f"{source} is corrupt: its checksum does not fit its content")
    schema = _parsed(lambda: parquet().read_schema(arrow().BufferReader(blob)), source)
    header = table_header(schema.metadata, source)
    if header["schema"] != UNSEALED and not has_seal(blob):
        raise FileFormatError(f"{source} is corrupt, or was written again by another program: it has no checksum")
    if not schema.equals(_columns(len(header["facts"]["constraints"]))):
        raise FileFormatError(f"{source} is corrupt: its columns are not those of a run")
    return header


def table_in(blob: bytes, source: str) -> Any:
    """The table in a file, checked like `header_in`."""
    header_in(blob, source)
    # Without threads: tables are small, and pyarrow's may still be running when the interpreter ends.
    options = {"page_checksum_verification": True, "use_threads": False, "pre_buffer": False}
    return _parsed(lambda: parquet().read_table(arrow().BufferReader(blob), **options), source)


def _columns(num_constraints: int) -> Any:
    """The Arrow schema of a run."""
    names: dict[str, str] = {}
    for column, _, kind in COLUMNS:
        names[column] = kind
        if column == "regret":
            names["regret_so_far"] = "float64"
    for column, _ in PER_CONSTRAINT:
        names |= {f"{column}_{i}": "float64" for i in range(num_constraints)}
    pa = arrow()
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in names.items()])


def _parsed(read: Callable[[], Any], source: str) -> Any:
    """What pyarrow makes of bytes that may be anything."""
    try:
        return read()
    except (arrow().ArrowException, OSError, ValueError) as error:
        raise FileFormatError(f"{source} is not a Parquet file, or corrupt: {shown(str(error))}") from error


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise InvalidInput(f"a fact of a run is a number, a text, a list or a table of these, not {type(value).__name__}")
