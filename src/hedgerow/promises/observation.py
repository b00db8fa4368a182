"""What is left of a run: plain numbers and curves, which is all that promises may look at.

`take` runs a spec and observes it, `pack` and `unpack` keep the observation in a data file. Numbers that do not exist
in a run (the margin that SV-OPS found, say) are NaN.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import files
from hedgerow.errors import InfeasibleWarning
from hedgerow.learners.mirror.base import MirrorLearner as Learner
from hedgerow.learners.mirror.notes import (
    COST_BREACHES,
    DUAL_RATIO,
    PRIMAL,
    RADII,
    RESIDUALS,
    TRANSITION_BREACHES,
    UPPER,
    WEIGHTED,
    WIDTH,
)
from hedgerow.learners.mirror.simplex_ogd import regret_constant
from hedgerow.learners.mirror.watch import FALSE_BASELINE, FIRST_MIXING
from hedgerow.planning.induction import backward_induction
from hedgerow.promises.specs import RunSpec, ground_of, make_learner, make_losses
from hedgerow.promises.witness import Witness
from hedgerow.promises.worlds import Ground
from hedgerow.simulation.outcome import Run

KIND, VERSION = "observation", 1
NUM_MARKS = 40
NAN = math.nan


@dataclass(frozen=True)
class Observation:
    """Numbers by name, curves by name (all over `curves["episodes"]`), and the spec they belong to."""

    spec: RunSpec
    values: dict[str, float]
    curves: dict[str, NDArray[Any]]

    def __getitem__(self, name: str) -> float:
        return self.values[name]


def take(spec: RunSpec) -> Observation:
    """Run and observe."""
    if spec.control:
        from hedgerow.promises.controls import broken_witness

        witness = broken_witness(spec)
    else:
        witness = plain_witness(spec)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)  # observed like everything else
        witness.finish()
    seconds = time.perf_counter() - begun
    return observe(spec, witness, ground_of(spec), seconds)


def marks_of(spec: RunSpec) -> list[int]:
    """Log-spaced checkpoints, fewer than a simulation's own: many runs are kept."""
    points = np.unique(np.round(np.geomspace(1.0, spec.episodes, NUM_MARKS)).astype(np.int64))
    return [int(point) for point in points]


def plain_witness(spec: RunSpec, learner: Learner | None = None) -> Witness:
    """The simulation of a spec in which nothing is broken."""
    where = ground_of(spec)
    return Witness(
        where.cmdp, make_losses(spec, where), learner or make_learner(spec, where), spec.seed,
        estimator=spec.estimator, marks=marks_of(spec), audit=spec.audit,
    )  # fmt: skip


def observe(spec: RunSpec, witness: Witness, where: Ground, seconds: float = 0.0) -> Observation:
    """The numbers of a finished run."""
    run, notes, watch, learner = witness.result(), witness.notes, witness.watch, witness.watcher.learner
    layout = where.cmdp.layout
    breaches = notes.tallies
    values = {
        "steps": float(layout.steps),
        "log_argument": float(layout.num_states * layout.num_actions * max(1, where.cmdp.num_constraints)) / spec.delta,
        "rho": where.rho,
        "seconds": seconds,
        "clean": float(run["unclean"][-1] == 0),
        "cost_breaches": float(breaches[COST_BREACHES]),
        "transition_breaches": float(breaches[TRANSITION_BREACHES]),
        "infeasible": float(run["infeasible"][-1]),
        "refuted_feasibility": float(run["refuted_feasibility"]),
        "refuted_safety": float(run["refuted_safety"]),
        "least_excess": run["least_excess"],
        "has_baseline": float(len(watch.baseline) > 0),
        "honest_baseline": float(len(watch.baseline) > 0 and not watch.tallies[FALSE_BASELINE]),
        "first_mixing": float(watch.sums[FIRST_MIXING]),
        "mixing_over": run["mixing_over"],
        "mixing_slack": run["mixing_slack"],
        "mixing": float(run["mixing_total"][-1]),
        "mirror_left": run["mirror_left"],
        "mirror_right": run["mirror_right"],
        "regret": float(run.regret[-1]),
        "violation": float(run.violation[-1]),
        "unsafe": float(run.unsafe[-1]),
        "worst": float(np.max(run.worst[-1], initial=-np.inf)),
        "width": float(notes.sums[WIDTH]),
        "weighted_width": float(notes.sums[WEIGHTED]),
        "weighted_upper": float(notes.sums[UPPER]) if spec.estimator else NAN,
        "radii": float(notes.sums[RADII]),
        "residuals": float(notes.sums[RESIDUALS]),
        "optimism": float(np.max(notes.optimism)) if len(notes.optimism) else NAN,
        "optimism_bound": _optimism_bound(spec, learner),
        **_search(witness, run),
    }
    return Observation(spec, values, _curves(run, witness))


def _optimism_bound(spec: RunSpec, learner: Learner) -> float:
    """ln(|X||A|/delta) / (2 gamma): for all pairs at once."""
    pairs = learner.layout.num_states * learner.layout.num_actions
    return math.log(pairs / spec.delta) / (2.0 * learner.gamma)


def _search(witness: Witness, run: Run) -> dict[str, float]:
    """What CV-OPS found, and how its two players did."""
    stop, searched = witness.at_stop, hasattr(witness.learner, "rho_hat")
    primal_ratio, dual_constant = NAN, NAN
    if searched:
        cmdp = witness.watcher.stage.cmdp
        layout, binding = cmdp.layout, cmdp.thresholds < cmdp.layout.steps
        dual_constant = regret_constant(int(binding.sum()), float(layout.steps))
        primal_ratio = _primal_ratio(witness, run)
    return {
        "searched": float(searched),
        "t_bar": NAN if run["t_bar"] is None else float(run["t_bar"]),
        "rho_hat": NAN if run["rho_hat"] is None else run["rho_hat"],
        "margin": stop.margin if stop else NAN,
        "violation_at_stop": stop.violation if stop else NAN,
        "unsafe_after": float(run.unsafe[-1] - stop.unsafe) if stop else NAN,
        "violation_after": float(run.violation[-1]) - stop.violation if stop else NAN,
        "regret_after": float(run.regret[-1]) - (stop.loss - float(stop.losses @ run.comparator)) if stop else NAN,
        "primal_ratio": primal_ratio,
        "dual_ratio": float(witness.notes.sums[DUAL_RATIO]) if searched else NAN,
        "dual_constant": dual_constant,
    }


def _primal_ratio(witness: Witness, run: Run) -> float:
    """The largest (regret of the primal player) / sqrt(t ln t) at the checkpoints t >= 2 of the search."""
    notes, cmdp, last = witness.notes, witness.watcher.stage.cmdp, run["t_bar"] or int(run.episodes[-1])
    largest = -math.inf
    for mark, t in enumerate(run.episodes.tolist()):
        if 2 <= t <= last:
            best = backward_induction(cmdp.layout, cmdp.transitions, notes.mark_primal[mark]).value
            regret = float(notes.mark_sums[mark, PRIMAL]) - best
            largest = max(largest, regret / math.sqrt(t * math.log(t)))
    return largest


def _curves(run: Run, witness: Witness) -> dict[str, NDArray[Any]]:
    reached = len(run.episodes)
    sums = witness.notes.mark_sums[:reached]
    return {
        "episodes": run.episodes,
        "regret": run.regret,
        "violation": run.violation,
        "mixing": run["mixing_total"],
        "width": sums[:, WIDTH].copy(),
        "radii": sums[:, RADII].copy(),
    }


# Files ------------------------------------------------------------------------------------------------------------


def pack(observation: Observation) -> bytes:
    """An observation as a data file; JSON has neither NaN nor infinity, so numbers are an array."""
    names = sorted(observation.values)
    arrays = {f"curve.{name}": curve for name, curve in observation.curves.items()}
    arrays["values"] = np.array([observation.values[name] for name in names])
    meta = {"spec": json.loads(json.dumps(observation.spec.as_data())), "names": names}
    return files.pack(KIND, VERSION, meta, arrays)


def unpack(file: files.DataFile) -> Observation:
    """What `pack` wrote."""
    data = dict(file.meta["spec"])
    for name in ("world_params", "switches"):
        data[name] = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in data[name])
    values = dict(zip(file.meta["names"], file.arrays["values"].tolist(), strict=True))
    curves = {name.removeprefix("curve."): array for name, array in file.arrays.items() if name.startswith("curve.")}
    return Observation(RunSpec(**data), values, curves)
