"""What a simulation returns: curves at checkpoints, the comparator, and what became of the deterministic promises."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.errors import InfeasibleError
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.learner import Learner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import row_occupancy
from hedgerow.planning import offline
from hedgerow.simulation.scoring import (
    BRANCH_NOW,
    CLEAN_NOW,
    INFEASIBLE_SO_FAR,
    ITERATIONS_SO_FAR,
    LEAST_EXCESS,
    LOSS,
    MIRROR_LINEAR,
    MIRROR_RESTARTS,
    MIRROR_SQUARE,
    MIXED,
    MIXING_OVER,
    MIXING_SLACK,
    NEXT_MARK,
    NOW_MIXING,
    NOW_RESIDUAL,
    REFUTED_FEASIBILITY,
    REFUTED_SAFETY,
    STATUS_NOW,
    SUSPECT_SO_FAR,
    UNCLEAN_SO_FAR,
    UNSAFE_MARK,
    Curves,
    Score,
)

CURVES = (
    *("episodes", "loss", "regret", "costs", "violations", "worst", "mixing", "infeasible", "suspect", "iterations"),
    *("unclean", "unsafe", "mixing_weight", "branch", "excess", "cost_bounds", "residual", "status", "clean_now"),
    "losses",
)
"""What a `Run` has of every checkpoint."""


@dataclass(frozen=True, eq=False)
class Run:
    """The scores of a run. Curves (C,) or (C, m) belong to `episodes` (C,), the numbers of episodes played so far.

    All of them are exact: the true transitions and mean costs, and the mixture of an episode, not the branch it took.
    """

    episodes: IntArray
    """(C,): counted from the start of this run"""
    loss: FloatArray
    """(C,): sum_t l_t^T q_t"""
    regret: FloatArray
    """(C,): loss - sum_t l_t^T q*; NaN if no policy is feasible"""
    costs: FloatArray
    """(C, m): sum_t g_i^T q_t"""
    violations: FloatArray
    """(C, m): sum_t [g_i^T q_t - alpha_i]^+"""
    worst: FloatArray
    """(C, m): max_t g_i^T q_t - alpha_i"""
    mixing: FloatArray
    """(C,): sum_t lambda"""
    infeasible: IntArray
    """(C,): projections without a solution so far"""
    suspect: IntArray
    """(C,): projections that needed the slow solver so far"""
    iterations: IntArray
    """(C,): Newton steps so far"""
    unclean: IntArray
    """(C,): episodes so far that began with the truth outside a confidence set"""
    unsafe: IntArray
    """(C,): episodes so far that violated a constraint"""
    mixing_weight: FloatArray
    """(C,): lambda of the episode that is the checkpoint, 0 without a baseline"""
    branch: IntArray
    """(C,): what that episode played: 0 the learner's own policy, j + 1 the j-th baseline"""
    excess: FloatArray
    """(C, m): g_i^T q_t - alpha_i of that episode"""
    cost_bounds: FloatArray
    """(C, m): the learner's upper bounds of its costs g_i^T q_t, valid on the clean event"""
    residual: FloatArray
    """(C,): by how much the projection after it misses a threshold, after the repair of its flow"""
    status: IntArray
    """(C,): how that projection ended: 0 solved, 1 relaxed because infeasible, 2 unsolved"""
    clean_now: NDArray[np.bool_]
    """(C,): whether the truth was within all confidence sets when that episode began"""
    losses: FloatArray
    """(C, num_rows): sum_t l_t"""
    optimum: float
    """l^T q* of the mean loss; NaN if no policy is feasible"""
    comparator: FloatArray
    """(num_rows,): q*"""
    least_excess: float
    """min of u - q_t over the visited pairs, in an audit over all, while the transitions are in their boxes: >= 0 up to
    rounding (T4)"""
    refuted_feasibility: int
    """Projections without a solution although the event was clean: 0 (T3)"""
    refuted_safety: int
    """Episodes with a baseline and a violation although the event was clean: 0 (T7); without one nothing is promised"""
    mixing_over: float
    """max of lambda - lambda_0 while projections are feasible: <= 0 up to rounding (T8); -inf without a baseline"""
    mixing_slack: float
    """min of (the bound of lambda by the widths of the confidence sets) - lambda: >= 0 (T9); inf unless in an audit"""
    mirror_left: float
    """sum_t l_hat_t^T (q_hat_t - q*)"""
    mirror_right: float
    """L ln(|X|^2|A|) / eta + eta sum_t q_hat_t^T l_hat_t^2, summed over restarts: at least `mirror_left` on the clean
    event (T18)"""
    t_bar: int | None
    """Of CV-OPS: how many episodes its search for a safe policy took; None if it has not ended, and for others"""
    rho_hat: float | None
    """Of CV-OPS: the margin that it found"""
    policy: FloatArray
    """(num_rows,): the learner's own policy at the end"""
    seed: int
    seconds: float
    """Wall time in the loop"""
    cmdp: CMDP
    learner: Learner
    """As it is now: if it has learnt more since, so has this"""

    @property
    def violation(self) -> FloatArray:
        """(C,): V = max_i sum_t [g_i^T q_t - alpha_i]^+, the maximum outside the sum"""
        largest: FloatArray = np.max(self.violations, axis=1, initial=0.0)
        return largest

    @cached_property
    def regret_so_far(self) -> FloatArray:
        """(C,): loss - the optimum of the losses up to each checkpoint; NaN if infeasible"""
        if np.isnan(self.optimum):
            return frozen(np.full(len(self.episodes), np.nan))
        optima, means = offline.Optima(self.cmdp), self.losses / self.episodes[:, None]
        values = np.array([optima.optimum(mean).value for mean in np.clip(means, 0.0, 1.0)])
        return frozen(self.loss - values * self.episodes)

    def at(self, episodes: IntArray) -> Run:
        """The same run at fewer checkpoints: those of `episodes` (c,), each of which must be one of this run's."""
        places = np.searchsorted(self.episodes, episodes)
        changes: dict[str, Any] = {name: frozen(getattr(self, name)[places]) for name in CURVES}
        # As in `make_run`: the product of some rows need not have the bits of some rows of the product.
        changes["regret"] = frozen(changes["loss"] - changes["losses"] @ self.comparator)
        return replace(self, **changes)

    @property
    def safe(self) -> NDArray[np.bool_]:
        """(C,): whether every episode so far respected every constraint"""
        respected: NDArray[np.bool_] = np.all(self.worst <= 0.0, axis=1)
        return respected

    @property
    def clean(self) -> bool:
        """Whether the truth was within all confidence sets in all episodes."""
        return int(self.unclean[-1]) == 0

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one self-contained HTML page about this run."""
        # By name: pages are further along the way of the data, and nothing here may depend on them.
        page: Any = import_module("hedgerow.report.page")
        written: Path = page.write_run_report(self, self.learner, path, overwrite=overwrite)
        return written

    def __repr__(self) -> str:
        return (
            f"Run(episodes={self.episodes[-1]}, regret={self.regret[-1]:.6g}, violation={self.violation[-1]:.6g}, "
            f"safe={bool(self.safe[-1])}, clean={self.clean}, seconds={self.seconds:.3g})"
        )


def make_run(cmdp: CMDP, learner: Learner, score: Score, curves: Curves, first: int, seed: int, seconds: float) -> Run:
    """The scores of the checkpoints that were reached; the comparator is the optimum of the mean loss so far."""
    reached = int(score.tallies[NEXT_MARK])
    episodes = curves.marks[:reached] - first
    sums, counters = curves.sums[:reached], curves.counters[:reached]
    optimum, comparator = _comparator(cmdp, score.losses / max(1, learner.episode - first))
    entropy = cmdp.layout.steps * log(cmdp.layout.num_states**2 * cmdp.layout.num_actions)
    found = learner if isinstance(learner, CVOPS) else None
    return Run(
        episodes=frozen(episodes),
        loss=frozen(sums[:, LOSS]),
        regret=frozen(sums[:, LOSS] - curves.losses[:reached] @ comparator),
        costs=frozen(curves.costs[:reached]),
        violations=frozen(curves.violation[:reached]),
        worst=frozen(curves.worst[:reached]),
        mixing=frozen(sums[:, MIXED]),
        infeasible=frozen(counters[:, INFEASIBLE_SO_FAR]),
        suspect=frozen(counters[:, SUSPECT_SO_FAR]),
        iterations=frozen(counters[:, ITERATIONS_SO_FAR]),
        unclean=frozen(counters[:, UNCLEAN_SO_FAR]),
        unsafe=frozen(counters[:, UNSAFE_MARK]),
        mixing_weight=frozen(sums[:, NOW_MIXING]),
        branch=frozen(counters[:, BRANCH_NOW]),
        excess=frozen(curves.excess[:reached]),
        cost_bounds=frozen(curves.bounds[:reached]),
        residual=frozen(sums[:, NOW_RESIDUAL]),
        status=frozen(counters[:, STATUS_NOW]),
        clean_now=frozen(counters[:, CLEAN_NOW] == 1),
        losses=frozen(curves.losses[:reached]),
        optimum=optimum,
        comparator=frozen(comparator),
        least_excess=float(score.sums[LEAST_EXCESS]),
        refuted_feasibility=int(score.tallies[REFUTED_FEASIBILITY]),
        refuted_safety=int(score.tallies[REFUTED_SAFETY]),
        mixing_over=float(score.sums[MIXING_OVER]),
        mixing_slack=float(score.sums[MIXING_SLACK]),
        mirror_left=float(score.sums[MIRROR_LINEAR] - score.estimates @ comparator),
        mirror_right=float(entropy * score.sums[MIRROR_RESTARTS] + score.sums[MIRROR_SQUARE]),
        t_bar=found.t_bar if found else None,
        rho_hat=found.rho_hat if found else None,
        policy=learner.policy,
        seed=seed,
        seconds=seconds,
        cmdp=cmdp,
        learner=learner,
    )


def _comparator(cmdp: CMDP, mean_loss: FloatArray) -> tuple[float, FloatArray]:
    """OPT and q* (num_rows,) of a mean loss; NaN where no policy is feasible."""
    try:
        best = offline.optimum(cmdp, np.clip(mean_loss, 0.0, 1.0))
    except InfeasibleError:
        return float("nan"), np.full(cmdp.layout.num_rows, np.nan)
    return best.value, row_occupancy(cmdp.layout, best.occupancy)
