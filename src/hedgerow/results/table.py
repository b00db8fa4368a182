"""From a run to a table: one row per checkpoint, and the facts of the whole run beside it.

Every run has the columns `COMMON`, those of each constraint i = 0, 1, ... with the suffix _i. Behind them stand the
columns of the learner and of its watcher (`Run.notes`), with null where there is no value. Their declarations, the
facts (optimum, t_bar, ...) and the ledger of guarantees go into the metadata of the table. Nothing here depends on
time, place or machine, so that equal runs give equal bytes. A file is sealed: its own checksum is in it, and whatever
does not fit is refused before it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import numpy as np
from msgspec.structs import replace as replace_field

from hedgerow.checks import short_repr
from hedgerow.environments.columns import Column, Type, spread
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import cheats, describe_inputs
from hedgerow.model.cmdp import CMDP
from hedgerow.results.manifest import cell_hash, cell_id, fingerprint, plain
from hedgerow.simulation.result import BASELINE_LOSS, COMMON, run_columns
from hedgerow.storage.datafile import BLANK_SEAL, SEAL_KEY, has_seal, is_intact, seal

if TYPE_CHECKING:
    from hedgerow.model.policy import Policy
    from hedgerow.simulation.result import Run

SCHEMA = 4
METADATA_KEY = b"hedgerow"
MOST_SHORT = 1_000
"""Rows of a table whose compression should above all be quick."""

MOST_STATES = 60
"""Of a policy that is kept, state by state, for the page"""


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
    own = own_columns(run)
    arrays = {**run_columns(run), BASELINE_LOSS.name: run.baseline_loss}
    schema = _schema(run.costs.shape[1], own)
    columns = [_arrow_array(arrays[field.name], field.type) for field in schema]
    all_facts = {**run_facts(run), **plain(facts or {})}
    header = {
        "schema": SCHEMA,
        "id": cell_id(spec),
        "hash": cell_hash(spec),
        "spec": spec,
        "columns": msgspec.to_builtins(own),
        "facts": all_facts,
        "facts_hash": fingerprint(all_facts),
    }
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    return pa.Table.from_arrays(columns, schema=schema.with_metadata({METADATA_KEY: text.encode()}))


def _arrow_array(values: Any, kind: Any) -> Any:
    """A column of an Arrow type, made of its buffers, since `pyarrow.array` imports pandas.

    NaN becomes null: what does not exist is no number.
    """
    pa, array = arrow(), np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
    valid = None
    if array.dtype.kind == "f" and np.isnan(array).any():
        valid = pa.py_buffer(np.packbits(~np.isnan(array), bitorder="little"))
    data = np.packbits(array, bitorder="little") if array.dtype == np.bool_ else array
    return pa.Array.from_buffers(kind, len(array), [valid, pa.py_buffer(data)])


def own_columns(run: Run) -> tuple[Column, ...]:
    """The declarations of the notes and facts of a run: those that are declared in their order, then other notes.

    The baseline's loss follows where there is a baseline.
    """
    types = {name: _dtype_name(np.asarray(values).dtype) for name, values in run.notes.items()}
    known = get_args(Type)
    for name, kind in types.items():
        if kind not in known:
            raise InvalidInput(f"the note {name!r} is an array of {kind}; a column is one of {', '.join(known)}")
    declared = {column.name: column for column in run.columns if column.name in (run.facts if column.fact else types)}
    notes = {name: Column(name) for name in sorted(types) if name not in declared}
    own = (
        column if column.fact else replace_field(column, type=types[column.name])
        for column in (*declared.values(), *notes.values())
    )
    return (*own, *[BASELINE_LOSS] * (run.baseline is not None))


_dtype_name = cache(str)  # numpy takes microseconds to spell a type out


def run_facts(run: Run) -> dict[str, Any]:
    """What is one number, one text or one list per run. NaN and infinity become null."""
    learner, view = run.learner, run.world.view()
    ledger = run.guarantees()
    promises = () if ledger is None else ledger.promises
    facts: dict[str, Any] = plain(
        {
            **run.facts,
            "optimum": run.optimum,
            "baseline_excess": _excess(run),
            "terms": asdict(run.terms),
            "seed": run.seed,
            "scored": run.scored,
            "way": run.way,
            "constraints": list(view.constraint_names),
            "thresholds": view.thresholds.tolist(),
            "kind": getattr(learner, "kind", run.learner_name),
            "inputs": describe_inputs(learner),
            "cheats": cheats(learner),
            "policy": _policy_facts(run.policy),
            "assumptions": [] if ledger is None else list(ledger.assumptions),
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


def _excess(run: Run) -> float | None:
    """The largest expected cost - threshold of the baseline, over constraints; None without a baseline."""
    if run.baseline is None or not isinstance(run.world, CMDP):
        return None
    return float(np.max(run.world.mean_costs @ run.baseline - run.world.thresholds, initial=-np.inf))


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
        known = header["schema"] == SCHEMA
        fits = header["hash"] == cell_hash(header["spec"]) and header["facts_hash"] == fingerprint(header["facts"])
        fits = fits and isinstance(header["id"], str) and isinstance(header["facts"]["constraints"], list)
        header["columns"] = msgspec.convert(header["columns"], tuple[Column, ...])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{source} is a Parquet file, but not the table of a hedgerow run") from error
    if not known:
        raise FileFormatError(f"{source} has schema {short_repr(header['schema'])}; this release reads {SCHEMA}")
    if not fits:
        raise FileFormatError(f"{source} is corrupt: its hashes do not fit what it says")
    return header


def table_bytes(table: Any) -> bytes:
    """The Parquet file of a table, with checksums in every page."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    # Curves hardly repeat a number, so that dictionaries would only be a detour; nor do statistics help in one table.
    options = {
        "compression": "zstd" if table.num_rows > MOST_SHORT else "snappy",
        "use_dictionary": False,
        "write_statistics": False,
        "write_page_checksum": True,
    }
    with parquet().ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({SEAL_KEY: BLANK_SEAL})
    return seal(sink.getvalue().to_pybytes())


def header_in(blob: bytes, source: str) -> dict[str, Any]:
    """The header of the table in a file, after the seal and the columns were checked; `source` is how to call it."""
    if has_seal(blob) and not is_intact(blob):
        raise FileFormatError(f"{source} is corrupt: its checksum does not fit its content")
    schema = _parsed(lambda: parquet().read_schema(arrow().BufferReader(blob)), source)
    header = table_header(schema.metadata, source)
    if not has_seal(blob):
        raise FileFormatError(f"{source} is corrupt, or was written again by another program: it has no checksum")
    if not schema.equals(_schema(len(header["facts"]["constraints"]), header["columns"])):
        raise FileFormatError(f"{source} is corrupt: its columns are not those of a run")
    return header


def table_in(blob: bytes, source: str) -> Any:
    """The table in a file, checked like `header_in`."""
    header_in(blob, source)
    # Without threads: tables are small, and pyarrow's may still be running when the interpreter ends.
    options = {"page_checksum_verification": True, "use_threads": False, "pre_buffer": False}
    return _parsed(lambda: parquet().read_table(arrow().BufferReader(blob), **options), source)


def _schema(num_constraints: int, own: Sequence[Column]) -> Any:
    """The Arrow schema of a run."""
    pa = arrow()
    names = {column.name: column.type for column in spread(COMMON, num_constraints)}
    notes = {column.name: column.type for column in own if not column.fact}
    taken = sorted(set(names) & set(notes))
    if taken:
        raise InvalidInput(f"the note {taken[0]!r} is called like a column of every run")
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in {**names, **notes}.items()])


def _parsed(read: Callable[[], Any], source: str) -> Any:
    """What pyarrow makes of bytes that may be anything."""
    try:
        return read()
    except (arrow().ArrowException, OSError, ValueError) as error:
        raise FileFormatError(f"{source} is not a Parquet file, or corrupt: {short_repr(str(error))}") from error
