"""Tables of earlier releases, schema 1 (without a checksum) and 2: the same numbers under other names.

They are read as they are and given the names of today; nothing is written in their form. `hedgerow resume` cannot go on
with such a directory: its experiment file says [[instance]], which is [[world]] now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

UNSEALED = 1
SCHEMAS = (UNSEALED, 2)

_COLUMNS = {
    "episode": "int64",
    "loss": "float64",
    "regret": "float64",
    "regret_so_far": "float64",
    "mixing": "float64",
    "mixing_weight": "float64",
    "branch": "int32",
    "status": "int32",
    "residual": "float64",
    "clean_now": "bool",
    "unclean": "int64",
    "unsafe": "int64",
    "infeasible": "int64",
    "suspect": "int64",
    "iterations": "int64",
}
_PER_CONSTRAINT = ("cost", "violation", "worst", "excess", "bound")
_NEW = {"mixing": "mixing_total"}


def columns(num_constraints: int) -> dict[str, str]:
    """The columns of an old table with their types."""
    each = {f"{name}_{i}": "float64" for name in _PER_CONSTRAINT for i in range(num_constraints)}
    return {**_COLUMNS, **each}


def new_names(names: Iterable[str]) -> list[str]:
    """What the columns are called today."""
    return [_NEW.get(name, name) for name in names]


def upgraded_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header of an old table in the words of today; its id and hash are those of the file."""
    spec = _renamed(header["spec"])
    spec["label"] = _renamed(spec.get("label", {}))
    return {**header, "spec": spec, "facts": {"scored": "exact", "way": "", **header["facts"]}}


def _renamed(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"world" if name == "instance" else name: value for name, value in entries.items()}
