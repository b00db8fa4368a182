"""The three ingredients of a cell, as data: a world, an adversary, a learner.

Each is checked key by key when a file is read, and a mistake names its key. Each is built from the same data when a
cell runs. A description is complete: it names every parameter, and for plug-ins the code (`PLUG_IN`), so its hash says
what was run even if a default changes later. "T" instead of a whole number stands for the number of episodes of the
cell.
"""

from __future__ import annotations

from hedgerow.experiments.parts.adversaries import OWN, build_adversary, check_adversary, complete_adversary, filled_in
from hedgerow.experiments.parts.baseline import baseline_taken
from hedgerow.experiments.parts.common import PLUG_IN, Misfit, Part, default_label
from hedgerow.experiments.parts.learners import (
    SUPPLIED,
    build_learner,
    check_learner,
    complete_learner,
    has_presets,
    needs_baseline,
)
from hedgerow.experiments.parts.worlds import FILE, build_world, complete_world

__all__ = [
    "FILE",
    "OWN",
    "PLUG_IN",
    "SUPPLIED",
    "Misfit",
    "Part",
    "baseline_taken",
    "build_adversary",
    "build_learner",
    "build_world",
    "check_adversary",
    "check_learner",
    "complete_adversary",
    "complete_learner",
    "complete_world",
    "default_label",
    "filled_in",
    "has_presets",
    "needs_baseline",
]
