"""What the kernels say of boxes and a policy: they are loaded first, as the learners do it."""

from __future__ import annotations

import numpy as np

from hedgerow.confidence.bounds import Columns, joint_costs_of_columns, load_columns, make_columns, reach_of_states
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout


def reach_bounds(
    layout: Layout,
    lower: np.ndarray,
    upper: np.ndarray,
    pi: np.ndarray,
    columns: Columns | None = None,
    states: np.ndarray | None = None,
) -> np.ndarray:
    """The largest reach probabilities of the states, of all decision states unless some are given."""
    loaded, index = columns or make_columns(layout), index_of(layout)
    targets = np.arange(layout.num_decision_states) if states is None else np.array(states)
    reach = np.full(len(targets), np.nan)
    load_columns(index, lower, upper, np.array(pi), loaded)
    reach_of_states(index, loaded, targets, len(targets), reach)
    return reach


def joint_costs(
    layout: Layout,
    lower: np.ndarray,
    upper: np.ndarray,
    pi: np.ndarray,
    costs: np.ndarray,
    columns: Columns | None = None,
) -> np.ndarray:
    """The joint robust costs (m,) of costs (num_rows, m)."""
    loaded, index = columns or make_columns(layout), index_of(layout)
    bounds = np.full(costs.shape[1], np.nan)
    load_columns(index, lower, upper, pi, loaded)
    joint_costs_of_columns(index, loaded, costs, bounds)
    return bounds
