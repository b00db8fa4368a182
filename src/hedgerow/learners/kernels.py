"""What the kernels of all families share: streams and losses of a block, progress, baselines, and the mixing weight.

With probability lambda a whole episode is left to the baseline, else it plays the learner's policy. The mixture is safe
against upper bounds U of the costs of that policy and beta of the baseline, lambda beta_i + (1 - lambda) U_i <= alpha_i
for every i, from the weight on that `safe_weight` computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.environments.play import Streams, WorldArrays
from hedgerow.environments.scores import Scores, forward
from hedgerow.errors import InvalidInput
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.random_streams import Stream, uniform
from hedgerow.model.view import View

ROUND_UP = 1.0 + 1e-12


class RandomStreams(Bundle):
    """All random streams of a run: the learner's coin, and the streams of the world."""

    coin: Stream
    streams: Streams


class Losses(Bundle):
    """The losses of a block of episodes, or an adversary that pursues the learner (`losses/adaptive.py`)."""

    patterns: FloatArray
    """(p, num_rows)"""
    pattern: IntArray
    """(count,): which pattern each episode has"""
    rate: float
    """The rate of the pursuit; 0 for losses that are given"""
    average: FloatArray
    """(num_rows,): the policies played so far, as the pursuit remembers them; empty without one"""
    pursuit: FloatArray
    """(num_rows,): the loss of the present episode under pursuit; empty without one"""


def losses_of(block: LossBlock | int, pursuit: Pursuit | None, loss: FloatArray) -> Losses:
    """A block of losses, or so many episodes of a pursuit, which writes its losses into `loss` (num_rows,)."""
    nothing = np.zeros(0)
    if isinstance(block, LossBlock):
        patterns, pattern = np.array(block.patterns, order="C"), np.array(block.index, dtype=np.int64)
        return Losses(patterns, pattern, 0.0, nothing, nothing)
    silent, pattern = np.zeros((1, len(loss))), np.zeros(block, dtype=np.int64)
    if pursuit is None:
        raise InvalidInput("a number of episodes is only enough for an adversary that pursues the learner")
    return Losses(silent, pattern, pursuit.rate, pursuit.average, loss)


def no_losses() -> Losses:
    """A block of no episodes."""
    nothing = np.zeros(0)
    return Losses(np.zeros((1, 0)), np.zeros(0, dtype=np.int64), 0.0, nothing, nothing)


@kernel
def pursue(num_actions: int, given: Losses) -> None:
    """The loss (num_rows,) of `Pursuit`: on the actions that the learner has favoured lately."""
    for r in range(len(given.pursuit)):
        given.pursuit[r] = min(1.0, 0.5 * num_actions * given.average[r])


@kernel
def remember(given: Losses, plays: FloatArray) -> None:
    """Add the policy (num_rows,) that was played to what `Pursuit` remembers."""
    for r in range(len(plays)):
        given.average[r] = (1.0 - given.rate) * given.average[r] + given.rate * plays[r]


# Progress and baselines ----------------------------------------------------------------------------------------------


class Progress(Record):
    """How far a learner is."""

    episode: int
    """Episodes observed so far"""
    pending: int
    """1 between plan and observe"""
    branch: int
    """What that plan plays: 0 the learner's policy, 1 the baseline"""


class Mixing(Record):
    """The real number that changes while it learns."""

    mixing: float
    """lambda: the probability of the baseline in the next episode"""


class BaselineArrays(Bundle):
    """Policies whose uniform mixture is known to be safe: S-OPS has one, CV-OPS many, learners without mixing none."""

    policies: FloatArray
    """(K, num_rows)"""
    costs: FloatArray
    """beta (m,): upper bounds of the expected costs of their uniform mixture"""
    thresholds: FloatArray
    """alpha (m,)"""
    ceilings: FloatArray
    """(m,): what an episode costs at most, L unless less is known"""
    binding: IntArray
    """The constraints that can be violated at all: alpha_i is below its ceiling"""


def baseline_arrays(view: View, policies: FloatArray, costs: FloatArray, constrained: bool = True) -> BaselineArrays:
    """Safe policies (K, num_rows) with the costs (m,) of their mixture, and the constraints that bind."""
    # No cost exceeds its ceiling: such a threshold cannot bind, and its term of the mixing weight would be 0/0.
    binding = view.binding if constrained else np.zeros(0, dtype=np.int64)
    return BaselineArrays(policies, costs, view.thresholds.copy(), view.ceilings.copy(), binding)


def no_baseline(view: View, constrained: bool = True) -> BaselineArrays:
    """Those of a learner that mixes nothing."""
    return baseline_arrays(view, np.zeros((0, view.layout.num_rows)), np.zeros(view.num_constraints), constrained)


def occupancy_of_baseline(index: LayoutArrays, world: WorldArrays, baseline: BaselineArrays) -> FloatArray:
    """q (num_rows,) of the uniform mixture of the baseline's policies in the true world; empty without one."""
    num, rows = baseline.policies.shape
    mixture, occupancy, reach = np.zeros(rows if num else 0), np.zeros(rows), np.zeros(int(index.state_start[-1]))
    for policy in baseline.policies:
        forward(index, world.transitions, policy, reach, occupancy)
        mixture += occupancy / num
    return mixture


@kernel
def draw_branch(num_baselines: int, mixing: float, coin: Stream) -> int:
    """Draw which policy plays all of an episode: 0 the learner's policy, j + 1 the j-th policy of the baseline."""
    branch = 0
    if num_baselines > 0 and uniform(coin) < mixing:
        branch = 1
        if num_baselines > 1:  # one more number; a single policy needs none
            branch += min(int(uniform(coin) * num_baselines), num_baselines - 1)
    return branch


@kernel
def mixture_occupancy(
    index: LayoutArrays, world: WorldArrays, policy: FloatArray, mixing: float, baseline: FloatArray, scores: Scores
) -> None:
    """q_t of the mixture that is about to be played, into `scores.occupancy`; `baseline` (num_rows,) may be empty."""
    q = scores.occupancy
    forward(index, world.transitions, policy, scores.reach, q)
    if len(baseline) > 0:
        for r in range(len(q)):
            q[r] = mixing * baseline[r] + (1.0 - mixing) * q[r]


@kernel
def safe_weight(baseline: BaselineArrays, bounds: FloatArray) -> float:
    """The smallest lambda that makes the mixture safe against all bounds (m,), rounded up."""
    alpha, beta, lam = baseline.thresholds, baseline.costs, 0.0
    for i in baseline.binding:
        U = min(bounds[i], baseline.ceilings[i])
        # Where U_i <= alpha_i nothing is asked for: the printed ratio has the wrong sign once U_i < beta_i.
        if alpha[i] < U:
            lam = max(lam, (U - alpha[i]) / (U - beta[i]))
    return min(1.0, lam * ROUND_UP + 1e-15) if lam > 0.0 else 0.0


def flat_arrays(bundle: Bundle) -> dict[str, NDArray[Any]]:
    """The arrays by name; those of bundles within as `counts.num_visits` and so on. They are not copies."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in bundle.as_dict().items():
        if isinstance(value, Bundle):
            arrays |= {f"{name}.{part}": array for part, array in flat_arrays(value).items()}
        else:
            arrays[name] = value.values if isinstance(value, Record) else value
    return arrays
