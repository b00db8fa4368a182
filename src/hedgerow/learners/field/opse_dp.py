"""OPSE-DP: safe in every episode by backward passes alone, no program to solve (Kitamura et al. 2025).

The kernels are a backward pass for one weight theta of the utility, and the bisection over theta.

In rewards, for which the source is written: r = 1 - loss, u = 1 - cost, and d, a reward for uncertain pairs.

    Q^r = r + clip(b_r + P_hat V^r, 0, top_r)     Q^d = d + clip(b_d + P_hat V^d, 0, top_d)
    Q^u = u + clip(P_hat V^u - b_u, 0, top_u)     pi = softmax((Q^r + Q^d + theta Q^u) / tau)
    V^r = sum_a pi (Q^r - tau ln pi)              V^d = sum_a pi Q^d,   V^u = sum_a pi Q^u

V^u belongs to the policy that comes out, whatever theta is: a policy is taken if its V^u(x_0) reaches what is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, Inputs, SafePolicy
from hedgerow.learners.field.backward import Centres, centre, make_centres, softmax
from hedgerow.learners.field.base import FieldLearner, chosen
from hedgerow.learners.field.loop import (
    FieldCore,
    FieldRun,
    check_sets,
    close_episode,
    count_played,
    end_episode,
    heed,
    play_episode,
)
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise
from hedgerow.learners.kernels import Losses
from hedgerow.model.cmdp import view_of
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import triples_of
from hedgerow.model.random_streams import Stream
from hedgerow.model.view import View

R, D, U = 0, 1, 2
"""The columns"""
BISECTIONS = 20


class Passes(Bundle):
    """The constants of the learner, its rewards and bonuses as they are now, and the buffers of a pass."""

    field: FieldCore
    centres: Centres
    theory: bool
    """Whether rewards and bonuses come from the confidence sets, which proves safety, or from means and visits"""
    tau: float
    most_theta: float
    needed: float
    """V^u(x_0) of a policy that is known to be safe"""
    scales: FloatArray
    """(num_rows, 4): what multiplies the uncertainty of a row in b_r, b_d, b_u, and its pessimism in d"""
    tops: FloatArray
    """(num_rows, 3)"""
    p_hat: FloatArray
    """(num_triples,)"""
    rewards: FloatArray
    """r, d, u (num_rows, 3)"""
    bonuses: FloatArray
    """b_r, b_d, -b_u (num_rows, 3)"""
    q: FloatArray
    """(num_rows, 3)"""
    values: FloatArray
    """(num_states, 3)"""
    log_policy: FloatArray
    """(num_rows,)"""
    policy: FloatArray
    """(num_rows,)"""
    theta: FloatArray
    """(1,): that of the next plan; the largest one where no policy is known to be safe"""


@kernel
def run_block(passes: Passes, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """The loop of `loop.py`: how many of the block are done, and that the last of them is closed."""
    core, at = passes.field, passes.centres
    for i in range(first, len(given.pattern)):
        if not play_episode(core, run, given, i, coin):
            return i, True
        count_played(at.sets, at.losses, core, run)
        end_episode(core, run)
        opse_step(passes, run.path.rows)
        heed(core)
        check_sets(at.sets, run)
        if close_episode(core, run):
            return i + 1, True
    return len(given.pattern), True


@kernel
def opse_step(passes: Passes, rows: IntArray) -> None:
    """Learn from an episode that visited `rows`, and plan."""
    centre(passes.centres, rows)
    set_rows(passes, rows)
    plan_next(passes)


@kernel
def plan_next(passes: Passes) -> None:
    """The policy of the least theta that is known to be safe; if there is none, the baseline plays."""
    theta = bisect(passes.centres, passes)
    passes.field.reals.mixing = 1.0 if theta < 0.0 else 0.0
    passes.theta[0] = passes.most_theta if theta < 0.0 else theta
    passes.field.notes[0] = passes.theta[0]


@kernel
def set_rows(passes: Passes, rows: IntArray) -> None:
    """Rewards and bonuses of the given rows."""
    centres = passes.centres
    loss = centres.means.shape[1] - 1
    for row in rows:
        if passes.theory:
            width = _width(centres, row, passes)
            passes.rewards[row, R] = 1.0 - centres.boxes.cost_lower[row, loss]
            passes.rewards[row, U] = 1.0 - centres.boxes.cost_upper[row, 0]
            pessimism = centres.radii[row, 0] + passes.scales[row, U] * width
        else:
            width = _ridge(centres, row, passes)
            passes.rewards[row, R] = 1.0 - centres.means[row, loss]
            passes.rewards[row, U] = 1.0 - centres.means[row, 0]
            pessimism = width
        passes.rewards[row, D] = passes.scales[row, 3] * pessimism
        passes.bonuses[row, R] = passes.scales[row, R] * width
        passes.bonuses[row, D] = passes.scales[row, D] * width
        passes.bonuses[row, U] = -passes.scales[row, U] * width


@kernel
def _width(centres: Centres, row: int, passes: Passes) -> float:
    """For each P in the box of the row and each V in [0, h], |(P - P_hat) V| <= h times this.

    It bounds half the 1-norm of P - P_hat: the sum of hi - P_hat does, and the sum of P_hat - lo.
    """
    start, stop = triples_of(centres.index, row)
    above = below = 0.0
    for j in range(start, stop):
        passes.p_hat[j] = centres.p_hat[j]
        above += centres.boxes.upper[j] - centres.p_hat[j]
        below += centres.p_hat[j] - centres.boxes.lower[j]
    return max(0.0, min(1.0, above, below)) if centres.rule.uncertain[row] else 0.0


@kernel
def _ridge(centres: Centres, row: int, passes: Passes) -> float:
    """1 / sqrt(1 + N), and P_hat = M / (1 + N): regression on one-hot features with ridge 1."""
    start, stop = triples_of(centres.index, row)
    num = centres.counts.num_visits[row]
    for j in range(start, stop):
        known = not centres.rule.uncertain[row]
        passes.p_hat[j] = centres.p_hat[j] if known else centres.counts.num_moves[j] / (1.0 + num)
    return 1.0 / sqrt(1.0 + num)


@kernel
def bisect(centres: Centres, passes: Passes) -> float:
    """The least theta in [0, most_theta] whose policy is known to be safe, up to bisection; leaves that policy."""
    if _pass(centres, 0.0, passes) >= passes.needed:
        return 0.0
    if _pass(centres, passes.most_theta, passes) < passes.needed:
        return -1.0
    # V^u need not be monotone in theta. Only `high` has been seen to be safe, at every moment: it is what is returned.
    low, high, tried = 0.0, passes.most_theta, passes.most_theta
    for _ in range(BISECTIONS):
        tried = 0.5 * (low + high)
        if _pass(centres, tried, passes) >= passes.needed:
            high = tried
        else:
            low = tried
    if tried != high:  # the last pass left a policy that is not known to be safe
        _pass(centres, high, passes)
    return high


@kernel
def _pass(centres: Centres, theta: float, passes: Passes) -> float:
    """V^u(x_0) of the policy for theta, which is left in `policy`."""
    index, q, values = centres.index, passes.q, passes.values
    for x in range(len(passes.policy) // index.num_actions - 1, -1, -1):
        first, last = x * index.num_actions, (x + 1) * index.num_actions
        for r in range(first, last):
            v_r, v_d, v_u = passes.bonuses[r, R], passes.bonuses[r, D], passes.bonuses[r, U]
            start, stop = triples_of(index, r)
            for j in range(start, stop):
                y, p = index.successor[j], passes.p_hat[j]
                v_r += p * values[y, R]
                v_d += p * values[y, D]
                v_u += p * values[y, U]
            # No value of later layers leaves [0, top]: the proof that V^u is pessimistic needs 0 <= V^u <= h there.
            q[r, R] = passes.rewards[r, R] + min(max(v_r, 0.0), passes.tops[r, R])
            q[r, D] = passes.rewards[r, D] + min(max(v_d, 0.0), passes.tops[r, D])
            q[r, U] = passes.rewards[r, U] + min(max(v_u, 0.0), passes.tops[r, U])
            passes.log_policy[r] = (q[r, R] + q[r, D] + theta * q[r, U]) / passes.tau
        softmax(index, x, passes.log_policy, passes.policy)
        v_r = v_d = v_u = 0.0
        for r in range(first, last):
            p = passes.policy[r]
            v_r += p * (q[r, R] - passes.tau * passes.log_policy[r])
            v_d += p * q[r, D]
            v_u += p * q[r, U]
        values[x, R], values[x, D], values[x, U] = v_r, v_d, v_u
    return float(values[0, U])


CONSTANTS = ("theory", "experiment")
TAU, MOST_THETA = 0.1, 300.0
"""Of the published experiment, whose C_r, C_d, C_u and B_d are 1."""
ROUND_UP = 1e-12
"""Times L: what the utility of a safe policy must have beyond L - alpha, so that rounding is never unsafe."""

LEAST_MARGIN = 1e-6
"""Times L: a smaller margin of the baseline counts as this one in the rewards for uncertain pairs."""


class OPSEDP(FieldLearner):
    """OPSE-DP: the tabular form of OPSE-LCMDP, which is safe in every episode and solves no program.

    A backward pass plans with optimistic rewards, a reward for uncertain pairs, and theta times pessimistic utilities.
    Bisection finds the least theta whose policy is known to be safe; if there is none, the baseline plays.

    constants="theory" takes all bonuses from the confidence sets. In layer k, with h = L - k - 1 and w >= half the
    1-norm of P - P_hat for all P in the box of the pair: utility 1 - UCB, minus h w for the transitions. It is safe:
    if V <= V_true on the next layer and 0 <= V <= h, then P_hat V - h w <= P V <= P V_true, so by induction the planned
    utility is at most the true one, and the expected cost is at most alpha. For the rest we take (1 + tau ln A) h w for
    the loss, rewards (2 L / margin) (xi + h w) for uncertain pairs with bonuses (L / margin) h (h + 1) w, tau =
    1 / sqrt(T), and theta up to (2 / margin) ((1 + tau ln A) L + L^2 (L + 1) / margin). These are our derivation, in
    the place of the published orders d H, d H and d^2 H^3 / margin.

    constants="experiment" takes the numbers of the published experiment: bonuses 1 / sqrt(1 + N), P_hat = M / (1 + N),
    tau = 0.1, theta up to 300. Nothing is proved for these, and they are not safe.

    Args:
        view: What the learner may know of the world, with one constraint: `world.view()`.
        delta: How unsure the bounds may be, in (0, 1).
        seed: Seed of the learner's coin, which decides nothing: the baseline plays surely, or not at all.
        baseline_costs: (1,) an upper bound of the expected cost of the baseline, or a mapping {constraint name: bound};
            None takes `baseline.costs`.
        constants: "theory" or "experiment".

    Raises:
        InvalidInput: If an argument is wrong, or if there is not exactly one constraint.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> safest = hr.offline.slater(world)
        >>> learner = hr.field.OPSEDP(world.view(), episodes=100, delta=0.05, baseline=safest)
        >>> bool(hr.simulate(world, learner, progress=False).safe[-1])
        True
    """

    _loop = staticmethod(run_block)
    kind = "opse-dp"
    title = "OPSE-DP"
    source = "Kitamura et al. 2025, in tabular form"
    recalled = "the rate of regret; constants='theory' are derived here, not published"
    inputs = Inputs(baseline=True)
    changing = ("own_policy", "theta")
    note_names = ("theta",)

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        sets: str = "source", constants: str = "theory", on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        if (constraints := view_of(view).num_constraints) != 1:
            raise InvalidInput(
                f"OPSE-DP is made for one constraint, and this world has {constraints}; "
                "DOPE, S-LP and S-OPS take any number"
            )
        self.constants: str = chosen("the constants are", constants, CONSTANTS)
        super().__init__(
            view, episodes, delta, seed, sets=sets, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip
        self.theta: FloatArray = np.zeros(1)
        self.core = self._make_core()
        plan_next(self.core)

    def _make_core(self) -> Passes:
        """The core on the counts and bounds so far."""
        layout, L, alpha = self.layout, float(self.layout.steps), float(self.view.thresholds[0])
        margin = max(alpha - float(self.baseline_costs[0]), LEAST_MARGIN * L) if alpha < L else L
        centres = make_centres(self.statistics)
        theory, left = self.constants == "theory", centres.steps_left
        tau = 1.0 / sqrt(self.episodes) if theory else TAU
        ent, h, ones = 1.0 + tau * log(layout.num_actions), left - 1.0, np.ones_like(left)
        most_d = (L / margin) * h * (h + 1.0)
        scales = (ent * h, most_d, h, 2.0 * L / margin * ones) if theory else (ones,) * 4
        rows, states = layout.num_rows, layout.num_states
        core = Passes(
            field=self.field,
            centres=centres,
            theory=theory,
            tau=tau,
            most_theta=(2.0 / margin) * (ent * L + L**2 * (L + 1.0) / margin) if theory else MOST_THETA,
            needed=L - alpha + ROUND_UP * L if alpha < L else 0.0,
            scales=np.column_stack(scales),
            tops=np.column_stack((ent * left, most_d if theory else left, left)),
            p_hat=np.zeros(layout.num_triples), rewards=np.zeros((rows, 3)), bonuses=np.zeros((rows, 3)),
            q=np.zeros((rows, 3)), values=np.zeros((states, 3)), log_policy=np.zeros(rows), policy=self.own_policy,
            theta=self.theta,
        )  # fmt: skip
        set_rows(core, np.arange(rows, dtype=np.int64))
        self.field.notes[0] = self.theta[0]
        return core

    def _learn(self, episode: Episode) -> None:
        opse_step(self.core, self._changed_rows(episode))

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if not 0.0 <= self.theta[0] <= self.core.most_theta:
            raise InvalidInput(f"theta lies outside [0, {self.core.most_theta!r}]")
        self.core = self._make_core()

    def _sure(self) -> float:
        return max(0.0, 1.0 - 5.0 * self.delta)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety with constants="theory", nothing with those of the experiment."""
        void = "" if self.constants == "theory" else "nothing is proved for the constants of the published experiment"
        sure = 0.0 if void else self._sure()
        safety = "in every episode the expected cost is at most its threshold, whatever the losses"
        regret = "regret grows as sqrt(T), up to logarithms"
        other = void or "it is proved for the published constants, and ours are others"
        return self._ledger(
            Promise("safety", safety, sure, "utilities from below on the confidence sets, derived here", void),
            Promise("regret", regret, 0.0, "Kitamura et al. 2025, as recalled", other, INDEPENDENT_LOSSES),
            assumptions=("the baseline costs no more than baseline_costs",),
        )
