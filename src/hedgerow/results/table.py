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
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import numpy as np
from msgspec.structs import replace as replace_field

from hedgerow.checks import FloatArray, short_repr
from hedgerow.environments.columns import Column, Type, spread
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.learners.api import cheats, describe_inputs
from hedgerow.results.manifest import cell_hash, cell_id, fingerprint
from hedgerow.simulation.result import COMMON
from hedgerow.storage.checksum import BLANK, KEY, has_seal, is_intact, seal

if TYPE_CHECKING:
    from hedgerow.model.policy import Policy
    from hedgerow.simulation.result import Run

SCHEMA = 4
METADATA_KEY = b"hedgerow"
COMPRESSION = "zstd"

MOST_COMPARATORS = 400
"""Of a run: each value of `regret_so_far` is a linear program, so that a trace has it in about so many rows only."""

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
    arrays = dict(run.notes)
    for column, attribute in COMMON.items():
        values = _regret_so_far(run) if attribute == "regret_so_far" else getattr(run, attribute)
        if column.each:
            arrays |= {f"{column.name}_{i}": np.ascontiguousarray(each) for i, each in enumerate(np.transpose(values))}
        else:
            arrays[column.name] = values
    schema = _schema(run.costs.shape[1], own)
    # NaN becomes null: what does not exist is no number.
    columns = [pa.array(np.asarray(arrays[field.name]), type=field.type, from_pandas=True) for field in schema]
    all_facts = {**run_facts(run), **_plain(facts or {})}
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
    return pa.table(columns, schema=schema).replace_schema_metadata({METADATA_KEY: text.encode()})


def own_columns(run: Run) -> tuple[Column, ...]:
    """The declarations of the notes and facts of a run: those that are declared in their order, then other notes."""
    types = {name: str(np.asarray(values).dtype) for name, values in run.notes.items()}
    known = get_args(Type)
    for name, kind in types.items():
        if kind not in known:
            raise InvalidInput(f"the note {name!r} is an array of {kind}; a column is one of {', '.join(known)}")
    declared = {column.name: column for column in run.columns if column.name in (run.facts if column.fact else types)}
    notes = {name: Column(name) for name in sorted(types) if name not in declared}
    return tuple(
        column if column.fact else replace_field(column, type=types[column.name])
        for column in (*declared.values(), *notes.values())
    )


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
