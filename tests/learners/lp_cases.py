"""LP learners with counts set by hand, and the ways in which each of them can be built."""

from __future__ import annotations

from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.confidence.boxes import refresh_all
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import LPCore, write_tables

VARIANTS: dict[str, tuple[type[LPLearner], dict[str, Any]]] = {
    "opt-cmdp": (hr.field.OptCMDP, {}),
    "opt-cmdp bonus": (hr.field.OptCMDP, {"optimism": "bonus"}),
    "opt-cmdp epoch": (hr.field.OptCMDP, {"replan": "epoch", "sets": "sharp"}),
    "dope": (hr.field.DOPE, {"warmup": 20}),
    "dope sharp": (hr.field.DOPE, {"warmup": 0, "sharp": True, "sets": "sharp"}),
    "dope epoch": (hr.field.DOPE, {"warmup": 7, "sharp": True, "sets": "sharp", "replan": "epoch"}),
    "opt-pess-lp": (hr.field.OptPessLP, {}),
    "opt-pess-lp layered": (hr.field.OptPessLP, {"sets": "sharp"}),
    "s-lp": (hr.field.SLP, {}),
    "s-lp epoch": (hr.field.SLP, {"sets": "sharp", "replan": "epoch"}),
    "safe-etc": (hr.field.SafeETC, {}),
    "safe-etc sharp": (hr.field.SafeETC, {"sets": "sharp"}),
}
SAFE = [name for name, (cls, _) in VARIANTS.items() if cls.inputs.baseline]


def roomy_world(seed: int, m: int = 1) -> hr.CMDP:
    """A small world with a cheap and a dear action: a wide margin for the first, a violation by the second."""
    layout, rng = hr.Layout((1, 2, 1), 2), np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.7, layout.num_rows - 4)
    transitions = np.concatenate([np.column_stack((p, 1.0 - p)).ravel(), np.ones(4)])
    means = np.where(np.arange(layout.num_rows) % 2 == 0, 0.05, 0.95) * rng.uniform(0.8, 1.0, (m, layout.num_rows))
    return hr.CMDP(layout, transitions, hr.costs.BernoulliCosts(means), np.full(m, 1.3))


def make_lp(name: str, world: hr.CMDP, episodes: int = 200, delta: float = 0.05, **more: Any) -> LPLearner:
    """A learner by the name of its variant; safe ones get the Slater point of the world."""
    cls, options = VARIANTS[name]
    if cls.inputs.baseline and "baseline" not in more:
        more = {"baseline": hr.offline.slater(world), **more}
    return cls(world.view(), episodes, delta, **{**options, **more})


def set_counts(core: LPCore, world: hr.CMDP, loss: np.ndarray, visits: int) -> None:
    """As if each row had been visited so often, and everything that was seen were exactly as expected."""
    counts = core.sets.counts
    counts.num_visits[:] = counts.num_costs[:] = visits
    counts.num_moves[:] = np.rint(visits * world.transitions)
    counts.cost_sums[:, :-1] = visits * world.mean_costs.T
    counts.cost_sums[:, -1] = visits * loss
    refresh_all(core.index, core.sets.counts, core.sets.rule.box, core.sets.boxes)
    write_tables(core)
