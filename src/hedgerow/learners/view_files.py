"""The view of a world as part of a data file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import View
from hedgerow.model.layout import MAX_TRIPLES, Layout

TYPES = {"layer_sizes": "int64", "thresholds": "float64", "row_start": "int64", "successor": "int32"}
META = ("num_actions", "constraint_names", "state_labels", "action_labels")


def view_meta(view: View) -> dict[str, Any]:
    """The entries of `META`."""
    return {
        "num_actions": view.layout.num_actions,
        "constraint_names": view.constraint_names,
        "state_labels": view.state_labels,
        "action_labels": view.action_labels,
    }


def view_arrays(view: View, *, support: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of `TYPES`; a full support is left out unless it is asked for."""
    layout = view.layout
    arrays: dict[str, NDArray[Any]] = {
        "layer_sizes": np.array(layout.layer_sizes, dtype=np.int64),
        "thresholds": view.thresholds,
    }
    if support or not layout.is_full:
        arrays |= {"row_start": layout.row_start, "successor": layout.successor}
    return arrays


def view_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], max_triples: int = MAX_TRIPLES) -> View:
    """What `view_meta` and `view_arrays` described; a few bytes must not ask for more than `max_triples`."""
    for name, array in arrays.items():
        if name not in TYPES or array.dtype != TYPES[name] or array.ndim != 1:
            raise InvalidInput(f"view.{name} is unexpected, or not a list of {TYPES.get(name, 'anything')}")
    layout = Layout(
        arrays["layer_sizes"].tolist(),
        meta["num_actions"],
        row_start=arrays.get("row_start"),
        successor=arrays.get("successor"),
        max_triples=max_triples,
    )
    return View(
        layout, arrays["thresholds"], meta["constraint_names"], meta["state_labels"], meta["action_labels"]
    )  # fmt: skip
