"""What a simulation returns: curves at checkpoints, the comparator, and what became of the deterministic promises."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.errors import InfeasibleError
from hedgerow.learners.learner import Learner
from hedgerow.model import offline
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import row_occupancy
from hedgerow.simulation.scoring import (
    INFEASIBLE_SO_FAR,
    ITERATIONS_SO_FAR,
    LEAST_EXCESS,
    LOSS,
    MIRROR_LINEAR,
    MIRROR_SQUARE,
    MIXED,
    NEXT_MARK,
    REFUTED_FEASIBILITY,
    REFUTED_SAFETY,
    SUSPECT_SO_FAR,
    UNCLEAN_SO_FAR,
    Curves,
    Score,
)


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
    optimum: float
    """l^T q* of the mean loss; NaN if no policy is feasible"""
    comparator: FloatArray
    """(num_rows,): q*"""
    least_excess: float
    """min of u - q_t over the visited pairs, while the transitions are in their boxes: >= 0 up to rounding (T4)"""
    refuted_feasibility: int
    """Projections without a solution although the event was clean: 0 (T3)"""
    refuted_safety: int
    """Episodes with a violation although the event was clean: 0 for S-OPS (T7), others do not promise it"""
    mirror_left: float
    """sum_t l_hat_t^T (q_hat_t - q*)"""
    mirror_right: float
    """L ln(|X|^2|A|) / eta + eta sum_t q_hat_t^T l_hat_t^2: at least `mirror_left` while the event is clean (T18)"""
    policy: FloatArray
    """(num_rows,): the learner's own policy at the end"""
    seed: int
    seconds: float
    """Wall time in the loop"""

    @property
    def violation(self) -> FloatArray:
        """(C,): V = max_i sum_t [g_i^T q_t - alpha_i]^+, the maximum outside the sum"""
        largest: FloatArray = np.max(self.violations, axis=1, initial=0.0)
        return largest

    @property
    def safe(self) -> NDArray[np.bool_]:
        """(C,): whether every episode so far respected every constraint"""
        respected: NDArray[np.bool_] = np.all(self.worst <= 0.0, axis=1)
        return respected

    @property
    def clean(self) -> bool:
        """Whether the truth was within all confidence sets in all episodes."""
        return int(self.unclean[-1]) == 0

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
    horizon, num_states, eta = cmdp.layout.horizon, cmdp.layout.num_states, learner.eta
    entropy = horizon * log(num_states**2 * cmdp.layout.num_actions)
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
        optimum=optimum,
        comparator=frozen(comparator),
        least_excess=float(score.sums[LEAST_EXCESS]),
        refuted_feasibility=int(score.tallies[REFUTED_FEASIBILITY]),
        refuted_safety=int(score.tallies[REFUTED_SAFETY]),
        mirror_left=float(score.sums[MIRROR_LINEAR] - score.estimates @ comparator),
        mirror_right=float(entropy / eta + eta * score.sums[MIRROR_SQUARE]),
        policy=learner.policy,
        seed=seed,
        seconds=seconds,
    )


def _comparator(cmdp: CMDP, mean_loss: FloatArray) -> tuple[float, FloatArray]:
    """OPT and q* (num_rows,) of a mean loss; NaN where no policy is feasible."""
    try:
        best = offline.optimum(cmdp, np.clip(mean_loss, 0.0, 1.0))
    except InfeasibleError:
        return float("nan"), np.full(cmdp.layout.num_rows, np.nan)
    return best.value, row_occupancy(cmdp.layout, best.occupancy)
