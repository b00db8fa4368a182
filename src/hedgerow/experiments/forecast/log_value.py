"""The value of recorded episodes: lambda of S-OPS in its first episode, with and without them.

This is no forecast: the learner is built, absorbs the log and reports its lambda.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.model.occupancy import uniform_policy
from hedgerow.model.view import View

MOST_NAMED = 10


def log_value(view: View, path: str, beta: FloatArray, episodes: int, delta: float) -> dict[str, Any]:
    """What the log in the file `path` says about the world, and lambda with and without it."""
    log = read_log(view, path)
    bare, taught = _learner(view, beta, episodes, delta), _learner(view, beta, episodes, delta)
    taught.absorb(log)
    counts, laws = taught.core.state.counts, taught.core.rule.box.laws
    visits, costs = counts.num_visits[laws.moves_at], counts.num_costs[laws.costs_at]
    unseen = np.flatnonzero(visits == 0)
    return {
        "file": path,
        "episodes": len(log) if hasattr(log, "__len__") else None,
        "lambda_without": bare.plan().mixing_weight,
        "lambda_with": taught.plan().mixing_weight,
        "visits": _spread(visits),
        "cost_visits": _spread(costs),
        "rows": view.layout.num_rows,
        "rows_never_visited": len(unseen),
        "never_visited": [view.layout.describe_row(int(r)) for r in unseen[:MOST_NAMED]],
    }


def read_log(view: View, path: str) -> Any:
    """A log that fits the view."""
    try:
        logs = import_module("hedgerow.importers.logs")
    except ModuleNotFoundError as error:
        raise InvalidInput("this release of hedgerow cannot read logs: leave out --log") from error
    return logs.Log.read(view, path)


def _learner(view: View, beta: FloatArray, episodes: int, delta: float) -> Any:
    """The learner. Its baseline may be any policy, because lambda depends on the costs `beta` alone."""
    return SOPS(
        view, episodes, delta, "sharpest", baseline=uniform_policy(view.layout), baseline_costs=beta,
        allow_no_margin=True,
    )  # fmt: skip


def _spread(numbers: Any) -> dict[str, int]:
    return {"least": int(numbers.min()), "median": int(np.median(numbers)), "most": int(numbers.max())}
