"""From a run to a table: one row per checkpoint, and the facts of the whole run beside it.

Columns of every run: the quantities of `COLUMNS`; of every constraint i = 0, 1, ...: those of `PER_CONSTRAINT` with the
suffix _i. Behind them stand the learner's own columns, whatever it notes (`Run.notes`), with null where it has nothing
to say. Facts that are one number (optimum, t_bar, ...) and the ledger of guarantees go into the metadata of the table.
Nothing here depends on time, place or machine, so that equal runs give equal bytes. A file is sealed: its own checksum
is in it, and whatever does not fit is refused before it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.checks import FloatArray, short_repr
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import cheats, describe_inputs
from hedgerow.results import old_tables
from hedgerow.results.manifest import cell_hash, cell_id, fingerprint
from hedgerow.storage.checksum import BLANK, KEY, has_seal, is_intact, seal

if TYPE_CHECKING:
    from hedgerow.model.policy import Policy
    from hedgerow.simulation.result import Run

SCHEMA = 3
METADATA_KEY = b"hedgerow"
COMPRESSION = "zstd"

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("episode", "episodes", "int64"),
    ("loss", "loss", "float64"),
    ("regret", "regret", "float64"),
    ("regret_so_far", "regret_so_far", "float64"),
    ("unsafe", "unsafe", "int64"),
)
"""(column, attribute of `Run` (C,), type)"""

MOST_COMPARATORS = 400
"""Of a run: each value of `regret_so_far` is a linear program, so that a trace has it in about so many rows only."""

PER_CONSTRAINT: tuple[tuple[str, str], ...] = (
    ("cost", "costs"),
    ("violation", "violations"),
    ("worst", "worst"),
    ("excess", "excess"),
)
"""(column, attribute of `Run` (C, m)); all float64"""

MOST_STATES = 60
"""Of a policy that is kept, state by state, for the page"""

OWN_TYPES = ("bool", "int32", "int64", "float64")
"""Of the columns that a learner adds."""


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


def run_table(spec: Mapping[str, Any], run: Run, facts: Mapping[str, Any] | None = None) -> Any:
    """The table of a run, described by `spec`; `facts` are added to those that `run_facts` finds."""
    pa = arrow()
    own = {name: _own_type(name, run.notes[name]) for name in sorted(run.notes)}
    schema = _columns(run.costs.shape[1], own)
    arrays: dict[str, Any] = {}
    for column, attribute, _ in COLUMNS:
        arrays[column] = _regret_so_far(run) if column == "regret_so_far" else getattr(run, attribute)
    for column, attribute in PER_CONSTRAINT:
        values = np.asarray(getattr(run, attribute), dtype=np.float64)
        arrays |= {f"{column}_{i}": np.ascontiguousarray(values[:, i]) for i in range(values.shape[1])}
    arrays |= run.notes
    # NaN becomes null: what does not exist is no number.
    columns = [pa.array(np.asarray(arrays[field.name]), type=field.type, from_pandas=True) for field in schema]
    all_facts = {**run_facts(run), **_plain(facts or {})}
    header = {
        "schema": SCHEMA,
        "id": cell_id(spec),
        "hash": cell_hash(spec),
        "spec": spec,
        "own": own,
        "facts": all_facts,
        "facts_hash": fingerprint(all_facts),
    }
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    return pa.table(columns, schema=schema).replace_schema_metadata({METADATA_KEY: text.encode()})


def _own_type(name: str, values: Any) -> str:
    kind = str(np.asarray(values).dtype)
    if kind not in OWN_TYPES:
        raise InvalidInput(f"the note {name!r} is an array of {kind}; a column is one of {', '.join(OWN_TYPES)}")
    return kind


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


def run_facts(run: Run) -> dict[str, Any]:
    """What is one number, one text or one list per run. NaN and infinity become null."""
    learner, view = run.learner, run.world.view()
    ledger = run.guarantees()
    promises = () if ledger is None else ledger.promises
    facts: dict[str, Any] = _plain(
        {
            **run.facts,
            "optimum": run.optimum,
            "seed": run.seed,
            "scored": run.scored,
            "way": run.way,
            "constraints": list(view.constraint_names),
            "thresholds": view.thresholds.tolist(),
            "kind": getattr(learner, "kind", type(learner).__name__),
            "told": describe_inputs(learner),
            "cheats": cheats(learner),
            "policy": _policy_facts(run.policy),
            "rests_on": [] if ledger is None else list(ledger.rests_on),
            "ledger": [
                {
                    "name": promise.name,
                    "statement": promise.statement,
                    "probability": promise.probability,
                    "source": promise.source,
                    "void_because": promise.void_because,
                    "assumes": promise.assumes,
                }
                for promise in promises
            ],
        }
    )
    return facts


def _policy_facts(policy: Policy | None) -> dict[str, Any] | None:
    """A policy by the labels of its world, where these exist and it fits on a page."""
    if policy is None or policy.layout.state_labels is None or policy.layout.num_decision_states > MOST_STATES:
        return None
    layout, table = policy.layout, policy.probabilities.reshape(-1, policy.layout.num_actions)
    actions = layout.action_labels or [f"action {a}" for a in range(layout.num_actions)]
    states = layout.state_labels[: layout.num_decision_states] if layout.state_labels else ()
    return {"states": states, "actions": actions, "probabilities": np.round(table, 6)}


def table_header(metadata: Mapping[bytes, bytes] | None, source: str) -> dict[str, Any]:
    """The header of a table, after it was checked that it is one of ours and describes itself."""
    try:
        header: dict[str, Any] = json.loads((metadata or {})[METADATA_KEY])
        known = header["schema"] in (SCHEMA, *old_tables.SCHEMAS)
        fits = header["hash"] == cell_hash(header["spec"]) and header["facts_hash"] == fingerprint(header["facts"])
        fits = fits and isinstance(header["id"], str) and isinstance(header["facts"]["constraints"], list)
        own = header["own"] if header["schema"] == SCHEMA else {}
        fits = fits and all(kind in OWN_TYPES for kind in own.values())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{source} is a Parquet file, but not the table of a hedgerow run") from error
    if not known:
        raise FileFormatError(f"{source} has schema {short_repr(header['schema'])}; this release reads up to {SCHEMA}")
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
    if header["schema"] != old_tables.UNSEALED and not has_seal(blob):
        raise FileFormatError(f"{source} is corrupt, or was written again by another program: it has no checksum")
    count, old = len(header["facts"]["constraints"]), header["schema"] != SCHEMA
    expected = _arrow_schema(old_tables.columns(count)) if old else _columns(count, header["own"])
    if not schema.equals(expected):
        raise FileFormatError(f"{source} is corrupt: its columns are not those of a run")
    return old_tables.upgraded_header(header) if old else header


def table_in(blob: bytes, source: str) -> Any:
    """The table in a file, checked like `header_in`; one of an earlier release gets the names of today."""
    header = header_in(blob, source)
    # Without threads: tables are small, and pyarrow's may still be running when the interpreter ends.
    options = {"page_checksum_verification": True, "use_threads": False, "pre_buffer": False}
    table = _parsed(lambda: parquet().read_table(arrow().BufferReader(blob), **options), source)
    return table if header["schema"] == SCHEMA else table.rename_columns(old_tables.new_names(table.column_names))


def _columns(num_constraints: int, own: Mapping[str, str]) -> Any:
    """The Arrow schema of a run."""
    names = {column: kind for column, _, kind in COLUMNS}
    for column, _ in PER_CONSTRAINT:
        names |= {f"{column}_{i}": "float64" for i in range(num_constraints)}
    taken = sorted(set(names) & set(own))
    if taken:
        raise InvalidInput(f"the note {taken[0]!r} is called like a column of every run")
    return _arrow_schema({**names, **own})


def _arrow_schema(names: Mapping[str, str]) -> Any:
    pa = arrow()
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in names.items()])


def _parsed(read: Callable[[], Any], source: str) -> Any:
    """What pyarrow makes of bytes that may be anything."""
    try:
        return read()
    except (arrow().ArrowException, OSError, ValueError) as error:
        raise FileFormatError(f"{source} is not a Parquet file, or corrupt: {short_repr(str(error))}") from error


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
