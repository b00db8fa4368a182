"""S-OPS whose bound U is compared with the true cost C of its policy, before the episodes t = 10, 100, 1000, ... and T.

    calibration = (U - C) / (U - C_hat)

C_hat is the cost of the policy by the estimated means and transitions, so U - C_hat is the radius that U adds to its
estimate. A calibration of 1 says that the estimate is right, of 0 that the error has used up the whole radius. Below 0
the bound has failed. U is what lambda is computed from: the least of all bounds, at most what an episode can cost.

The compiled loop stops before these episodes, and nothing is added to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.kernels import Losses
from hedgerow.learners.ops.loop import MirrorWatcher
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.watch import RunContext
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.verify.judging import Observation, Verdict, holds, never, rates, together

TOL = 1e-9
CALIBRATION, EXCESS = "calibration_", "own_excess_"
"""What the facts of a run begin with, one for each of the episodes: the calibration, and U - C"""


def compared(episodes: int) -> tuple[int, ...]:
    """The episodes, counted from 1, before which U is compared.

    >>> compared(5_000)
    (10, 100, 1000, 5000)
    """
    return *(10**k for k in range(1, len(str(episodes))) if 10**k < episodes), episodes


class CalibratedSOPS(SOPS):
    """S-OPS; its watcher knows the truth."""

    def watch(self, stage: RunContext, **options: bool) -> MirrorWatcher:
        """Watch as usual, and compare U with C."""
        return CalibrationWatcher(self, stage, **options)


class CalibrationWatcher(MirrorWatcher):
    """Watches like any other, and stops to compare."""

    learner: CalibratedSOPS

    def __init__(self, learner: CalibratedSOPS, stage: RunContext, **options: bool) -> None:
        super().__init__(learner, stage, **options)
        self._due = [t - 1 for t in compared(int(learner.episodes or 0))]
        self._facts: dict[str, float | int | None] = {}
        self.low_bounds = 0

    def planned(self) -> None:
        super().planned()
        self._compare_if_due()

    def _run(self, given: Losses, first: int) -> tuple[int, bool]:
        """Run the block, but not beyond the next episode before which U is compared."""
        self._compare_if_due()
        if self._due:
            last = first + self._due[0] - self.learner.core.state.numbers.episode
            given = given.replace(pattern=given.pattern[:last])
        return super()._run(given, first)

    def _compare_if_due(self) -> None:
        if self._due and self.learner.core.state.numbers.episode == self._due[0]:
            self._compare(self._due.pop(0) + 1)

    def _compare(self, t: int) -> None:
        """Compare U with C in the constraint whose bound is the worst one."""
        core, binding = self.learner.core, self.learner.view.binding
        bound = np.minimum(core.state.bounds, core.baseline.ceilings)
        excess = (bound - true_costs(self.stage.cmdp, core.state.policy))[binding]
        radius = (bound - estimated_costs(self.learner))[binding]
        shares = np.divide(excess, radius, out=np.full_like(excess, nan), where=radius > TOL)
        worst = int(np.argmin(np.where(np.isnan(shares), np.inf, shares)))
        self.low_bounds += bool(np.any(excess < -TOL))
        self._facts |= {f"{CALIBRATION}{t}": float(shares[worst]), f"{EXCESS}{t}": float(excess[worst])}

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """The facts of every run; `calibration_T` and `own_excess_T`, the calibration and U - C before an episode T of
        `compared`; `low_bounds`, how often U was below C there.
        """
        return {**super().facts(comparator), **self._facts, "low_bounds": self.low_bounds}


def true_costs(world: CMDP, policy: FloatArray) -> FloatArray:
    """(m,): the expected costs of a policy (num_rows,)."""
    found: FloatArray = world.mean_costs @ row_occupancy(
        world.layout, occupancy(world.layout, world.transitions, policy)
    )
    return found


def estimated_costs(learner: SOPS) -> FloatArray:
    """(m,): the costs of its policy by what it has seen; rows without visits cost 0 and go everywhere alike."""
    seen, layout = learner.estimates, learner.layout
    known = seen.known_transitions[layout.row_of_triple]
    alike = np.repeat(1.0 / np.diff(layout.row_start), np.diff(layout.row_start))
    moves = np.where(known, seen.lower, np.where(np.isnan(seen.p_hat), alike, seen.p_hat))
    means = np.where(seen.known_costs, seen.cost_lower, np.nan_to_num(seen.mean_costs))
    found: FloatArray = means.T @ row_occupancy(layout, occupancy(layout, moves, learner.core.state.policy))
    return found


def judge_own_bounds(observations: Sequence[Observation]) -> Verdict:
    """Judge how often U was below the cost of the policy: never on the clean event."""
    clean = [one for one in observations if one["clean"]]
    least = [value for one in observations for value in values_by_episode(one, EXCESS).values()]
    return together(
        never("U below the cost of the policy on the clean event", [one["low_bounds"] > 0 for one in clean]),
        *rates("U was below the cost of the policy", observations, lambda one: one["low_bounds"] > 0, 5.0),
        holds(f"least U - C {min(least, default=nan):.1e} in {len(least):,} episodes"),
    )


def values_by_episode(one: Observation, prefix: str) -> dict[int, float]:
    """The facts whose names begin so, by episode."""
    return {
        int(name.removeprefix(prefix)): value
        for name, value in sorted(one.values.items())
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit()
    }
