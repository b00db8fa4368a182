"""What a learner is asked to state for the twin beside what it announces itself.

The code that is checked is called here, not in `twin_watcher.py`, which imports nothing from `confidence`.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.confidence.anchored import anchored_bounds, make_anchored_scratch
from hedgerow.learners.ops.base import MirrorLearner


def anchored_of(learner: MirrorLearner, cost_upper: FloatArray) -> FloatArray:
    """(m,): the anchored bounds of its present policy, with `cost_upper` (num_rows, m) as the largest mean costs."""
    core, found = learner.core, np.full(learner.view.num_constraints, np.inf)
    boxes, baseline = core.state.boxes.replace(cost_upper=cost_upper), core.baseline
    scratch = make_anchored_scratch(learner.layout)
    anchored_bounds(core.index, core.state.policy, baseline.policies[0], boxes, baseline.costs, scratch, found)
    return found
