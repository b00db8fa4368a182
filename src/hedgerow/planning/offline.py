"""Offline optima of a known world, each with a certificate (paper, section 2).

    optimum             min  loss^T w            over occupancies w >= 0 of P  with  G w <= alpha
    slater              max  s                                                 with  G w + s <= alpha
    strictly_feasible   min  loss^T w                                          with  G w <= alpha - margin

where w(x, a) is over rows and has one flow equality per decision state, sum_a w(x, a) - sum_{z,b} P(x|z, b) w(z, b) =
1{x = x_0}. HiGHS solves the linear programs, in large worlds compiled sweeps do, but no number is taken on trust. Their
w only serves to read off a policy, whose value and costs come from an exact forward pass; their multipliers theta >= 0
only form the Lagrangian bound

    min_w (loss + theta^T G) w - theta^T alpha  <=  optimum,

which backward induction evaluates exactly for any theta. The difference of the two is the gap that is checked here.

    >>> from hedgerow.model.costs import BernoulliCosts
    >>> cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    >>> best = optimum(cmdp, [0.0, 1.0])  # the free action costs too much: play it half of the time
    >>> round(best.value, 9), best.policy.round(9).tolist(), best.multipliers.round(9).tolist()
    (0.5, [0.5, 0.5], [2.0])
    >>> round(slater(cmdp).margin, 9)
    0.25
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, frozen, real_number, within
from hedgerow.display import text
from hedgerow.errors import CertificateError, InfeasibleError, InvalidInput
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import (
    backward_induction,
    checked_loss,
    occupancy,
    policy_of_masses,
    row_occupancy,
    uniform_policy,
)
from hedgerow.planning.lp import NoSolution, Suggestion, flow_matrix, largest_margin, least_loss

if TYPE_CHECKING:
    from hedgerow.planning.planner import KnownPlanner

__all__ = ("OfflineSolution", "SlaterPoint", "least_losses", "optimum", "slater", "strictly_feasible")

_Answer = TypeVar("_Answer")

MANY_ROWS = 2_000
"""Above this, compiled sweeps solve the programs (`KnownPlanner`): HiGHS takes longer than to load compiled code."""
TOL_CERTIFICATE = 1e-8
"""A result is withheld if its gap or cost residual exceeds this times 1 + L."""
TOL_FEASIBLE = 1e-9
"""A problem that misses feasibility by no more than this is solved with thresholds raised by twice as much."""
TOL_MULTIPLIER = 1e-7
"""A multiplier in the simplex below this is rounding: its constraint is not named as a cause of infeasibility."""

_SLATER_POINTS: WeakKeyDictionary[CMDP, SlaterPoint] = WeakKeyDictionary()
"""Of the worlds that are in use: a world never changes."""
MOST_ANSWERS = 4
"""Answers that are kept for each world: learners that meet the same losses one after the other share them."""
_ANSWERS: WeakKeyDictionary[CMDP, dict[tuple[str, bytes], Any]] = WeakKeyDictionary()
"""By question and content of the losses; nothing in them can be written to."""


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True, eq=False, repr=False)
class OfflineSolution:
    """A policy of least loss, what it costs, and the proof that it is optimal.

    All numbers are exact for the policy: they come from a forward pass, not from the solver.

    Examples:
        >>> import hedgerow as hr
        >>> best = hr.offline.optimum(hr.worlds.make("lower-bound-2"))
        >>> round(best.value, 6), round(best.dual_value, 6), abs(best.gap) < 1e-8
        (0.5, 0.5, True)
    """

    value: float
    """The expected loss of the policy."""
    policy: FloatArray
    """(num_rows,): the action probabilities; uniform in states that it never reaches."""
    occupancy: FloatArray
    """(num_triples,): how likely the policy passes through each triple."""
    costs: FloatArray
    """(m,): the expected costs of the policy."""
    multipliers: FloatArray
    """(m,): the loss that one more unit of each threshold would save, at least 0. The paper calls them theta."""
    state_values: FloatArray
    """(num_states,): the least expected loss from each state on, with costs priced by the multipliers."""
    dual_value: float
    """A lower bound on the least loss, by the multipliers."""
    gap: float
    """value - dual_value: the policy is at most this much worse than the best one. Rounding can make it slightly
    negative."""
    cost_residual: float
    """The largest max(0, cost - threshold) of any constraint; 0 up to rounding."""
    relaxation: float
    """How far the thresholds were raised because the problem is feasible only up to rounding; else 0."""

    def __repr__(self) -> str:
        parts = f"value={self.value:.6g}", f"costs={text.numbers(self.costs)}", f"gap={self.gap:.2g}"
        return text.line("OfflineSolution", *parts, text.counted(len(self.policy), "row"))


@dataclass(frozen=True, eq=False, repr=False)
class SlaterPoint:
    """The safest policy: its smallest margin to any threshold is the largest possible.

    Learners that ask for a safe baseline take it as it is: `hr.SOPS(view, ..., baseline=hr.offline.slater(world))`.

    Examples:
        >>> import hedgerow as hr
        >>> safest = hr.offline.slater(hr.worlds.make("dope-media"))
        >>> round(safest.margin, 6), safest.costs.round(6).tolist()
        (5.0, [0.0])
    """

    margin: float
    """The smallest threshold minus cost of the policy; rho in the paper. Negative if no policy is feasible, infinite
    without constraints."""
    policy: FloatArray
    """(num_rows,): the action probabilities."""
    occupancy: FloatArray
    """(num_triples,): how likely the policy passes through each triple."""
    costs: FloatArray
    """(m,): the expected costs of the policy. The paper calls them beta."""
    multipliers: FloatArray
    """(m,): weights of the constraints, at least 0 with sum 1, that prove the bound; empty without constraints."""
    dual_value: float
    """An upper bound on the largest margin, by the multipliers."""
    gap: float
    """dual_value - margin: no policy has a margin larger by more than this."""

    def __repr__(self) -> str:
        parts = f"margin={self.margin:.6g}", f"costs={text.numbers(self.costs)}", f"gap={self.gap:.2g}"
        return text.line("SlaterPoint", *parts, text.counted(len(self.policy), "row"))


def optimum(world: CMDP | Any, loss: ArrayLike | None = None) -> OfflineSolution:
    """Find the policy of least expected loss among those whose expected costs respect the thresholds.

    A linear program suggests the policy. Its value and the proof that it is optimal are then computed exactly; an
    answer whose proof does not hold is withheld.

    Args:
        world: A CMDP, or anything that has one in `.cmdp`, such as a world of the catalogue.
        loss: (num_rows,) losses in [0, 1], or a table (states, actions); None takes the world's own `.loss`.

    Returns:
        The policy with its loss, its costs and its proof.

    Raises:
        InfeasibleError: If no policy respects the thresholds.
        InvalidInput: If the world has no loss of its own and none is given.
        CertificateError: If the solver's answer cannot be proved.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], hr.costs.BernoulliCosts([[0.75, 0.25]]), [0.5])
        >>> best = hr.offline.optimum(world, [0.0, 1.0])     # the free action costs too much: play it half the time
        >>> round(best.value, 9), best.policy.round(9).tolist()
        (0.5, [0.5, 0.5])
    """
    cmdp = cmdp_of(world)
    if loss is None:
        loss = getattr(world, "loss", None)
        if loss is None:
            raise InvalidInput("say which loss is to be minimised: this world has none of its own")
    return _least_loss(cmdp, checked_loss(cmdp.layout, loss), margin=0.0)


def strictly_feasible(world: CMDP | Any, margin: float, loss: ArrayLike | None = None) -> OfflineSolution:
    """Find the policy of least loss whose costs stay below all thresholds by a margin.

    Use it as the baseline of S-OPS in a simulation, with a part of the largest margin (`slater`) and with the loss that
    the learner will meet. For 10^5 episodes or less, a *known* safe policy of small loss beats the one of the largest
    margin, because it is played most of the time: measured regret is 1.2 to 1.7 times smaller at half of the margin, 2
    to 7 times at a tenth (docs/choose-a-learner.md). If the losses to come have nothing to do with `loss`, it is the
    other way round.

    Args:
        world: A CMDP, or anything that has one in `.cmdp`.
        margin: The room to every threshold, in [0, L].
        loss: (num_rows,) losses in [0, 1], or a table (states, actions); None minimises the mean of the costs instead.

    Returns:
        The policy with its loss, its costs and its proof.

    Raises:
        InfeasibleError: If no policy has that margin; the message names the largest possible one.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-media")
        >>> largest = hr.offline.slater(world).margin
        >>> baseline = hr.offline.strictly_feasible(world, 0.5 * largest, world.loss)
        >>> bool((baseline.costs <= world.cmdp.thresholds - 0.5 * largest + 1e-8).all())
        True
    """
    cmdp = cmdp_of(world)
    margin = real_number("the margin", margin, 0.0, float(cmdp.layout.steps))
    if loss is None:
        loss = cmdp.mean_costs.mean(axis=0) if cmdp.num_constraints else np.zeros(cmdp.layout.num_rows)
    return _least_loss(cmdp, checked_loss(cmdp.layout, loss), margin)


def least_losses(world: CMDP | Any, losses: ArrayLike) -> FloatArray:
    """Find the least expected loss under the constraints for each of many losses.

    Compiled sweeps prove every number by a bound that it attains; where the bounds do not meet, `optimum` is asked.

    Args:
        world: A CMDP, or anything that has one in `.cmdp`.
        losses: (n, num_rows) losses in [0, 1].

    Returns:
        (n,): what `optimum` gives as the value of each loss.

    Raises:
        InfeasibleError: If no policy respects the thresholds.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> hr.offline.least_losses(world, [world.loss, 0.5 * world.loss]).round(6).tolist()
        [0.5, 0.25]
    """
    cmdp = cmdp_of(world)
    given = float_array("the losses", losses, (len(np.asarray(losses)), cmdp.layout.num_rows))
    within("the losses", given, 0.0, 1.0)
    planner = _compiled_planner(cmdp)
    answers = [planner.least_loss(loss) for loss in given]
    found = [
        answer.value if isinstance(answer, Suggestion) else optimum(cmdp, loss).value
        for answer, loss in zip(answers, given, strict=True)
    ]
    return frozen(np.array(found, dtype=np.float64))


def remembered(cmdp: CMDP, question: str, losses: FloatArray, answer: Callable[[], _Answer]) -> _Answer:
    """The answer to a question about a world, which depends on the losses alone; the world keeps the last few."""
    answers, key = _ANSWERS.setdefault(cmdp, {}), (question, hashlib.blake2b(losses.tobytes()).digest())
    if key not in answers:
        answers[key] = answer()
        while len(answers) > MOST_ANSWERS:
            del answers[next(iter(answers))]
    return cast(_Answer, answers[key])


def slater(world: CMDP | Any) -> SlaterPoint:
    """Find the largest margin that all constraints can have at once, and a policy that has it.

    The paper calls the margin rho and needs it to be positive. The policy is safe, but its loss is often the largest of
    all safe policies: see `strictly_feasible`. The answer is kept for as long as the world lives.

    Args:
        world: A CMDP, or anything that has one in `.cmdp`, such as a world of the catalogue.

    Returns:
        The margin, the policy, its costs, and the proof.

    Raises:
        CertificateError: If the solver's answer cannot be proved.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], hr.costs.BernoulliCosts([[0.75, 0.25]]), [0.5])
        >>> safest = hr.offline.slater(world)
        >>> round(safest.margin, 9), safest.policy.round(9).tolist()
        (0.25, [0.0, 1.0])
    """
    cmdp = cmdp_of(world)
    if cmdp not in _SLATER_POINTS:
        _SLATER_POINTS[cmdp] = _slater(cmdp)
    return _SLATER_POINTS[cmdp]


def _slater(cmdp: CMDP) -> SlaterPoint:
    layout, m = cmdp.layout, cmdp.num_constraints
    if m == 0:
        pi = uniform_policy(layout)
        q = occupancy(layout, cmdp.transitions, pi)
        return SlaterPoint(math.inf, frozen(pi), frozen(q), np.zeros(0), np.zeros(0), math.inf, 0.0)
    answer = _suggest_margin(cmdp)
    pi, q, costs = _realise(cmdp, answer.y)
    margin = float(np.min(cmdp.thresholds - costs))
    theta = answer.theta / answer.theta.sum()  # the program fixes the sum at 1, up to the solver's tolerance
    # rho <= max_q theta^T (alpha - G q) for every theta in the simplex
    dual = float(theta @ cmdp.thresholds) - backward_induction(layout, cmdp.transitions, theta @ cmdp.mean_costs).value
    _check("the Slater point", layout, gap=dual - margin, residual=0.0)
    return SlaterPoint(margin, frozen(pi), frozen(q), frozen(costs), frozen(theta), dual, dual - margin)


def _least_loss(cmdp: CMDP, loss: FloatArray, margin: float) -> OfflineSolution:
    """min loss^T w with G w <= alpha - margin, solved, realised by a policy and certified."""
    alpha, relaxation = cmdp.thresholds - margin, 0.0
    answer = _suggest_loss(cmdp, loss, alpha)
    if isinstance(answer, NoSolution):
        relaxation = _needed_relaxation(cmdp, margin)
        answer = _suggest_loss(cmdp, loss, alpha + relaxation)
        if isinstance(answer, NoSolution):
            raise CertificateError(f"this feasible linear program could not be solved: {answer.message}")
    return _certified(cmdp, loss, answer, alpha, relaxation)


def _certified(
    cmdp: CMDP, loss: FloatArray, answer: Suggestion, alpha: FloatArray, relaxation: float = 0.0
) -> OfflineSolution:
    """A suggestion, realised by a policy and with its proof; an error if the proof does not hold."""
    pi, q, costs = _realise(cmdp, answer.y)
    value = float(loss @ row_occupancy(cmdp.layout, q))
    lagrangian = backward_induction(cmdp.layout, cmdp.transitions, loss + answer.theta @ cmdp.mean_costs)
    dual = lagrangian.value - float(answer.theta @ (alpha + relaxation))
    residual = float(np.max(costs - alpha, initial=0.0))
    # Weak duality holds up to theta^T residual, which is rounding even where theta is large.
    _check("the optimum", cmdp.layout, gap=value - dual, residual=residual, scale=1.0 + float(answer.theta.sum()))
    return OfflineSolution(
        value,
        frozen(pi),
        frozen(q),
        frozen(costs),
        frozen(answer.theta),
        frozen(lagrangian.state_values),
        dual,
        value - dual,
        residual,
        relaxation,
    )


def _needed_relaxation(cmdp: CMDP, margin: float) -> float:
    """How far to raise thresholds that HiGHS found infeasible; an error if they are so by more than rounding."""
    best = slater(cmdp)
    violation = margin - best.margin
    if violation <= TOL_FEASIBLE:
        return 2 * TOL_FEASIBLE
    active = [cmdp.constraint_names[i] for i in np.flatnonzero(best.multipliers > TOL_MULTIPLIER)]
    causes = ", ".join(repr(name) for name in active)
    if best.margin < 0:
        message = (
            f"no policy satisfies the constraints: some threshold is exceeded by at least {violation - margin:.9g} "
            f"(constraints that cause it: {causes}); raise these thresholds by that much or more"
        )
    else:
        message = (
            f"no policy keeps every cost {margin:.9g} below its threshold: the largest possible margin is "
            f"rho = {best.margin:.9g} (constraints that limit it: {causes}); ask for a margin below it"
        )
    raise InfeasibleError(message, least_violation=violation, constraints=active, multipliers=best.multipliers.tolist())


def _check(what: str, layout: Layout, *, gap: float, residual: float, scale: float = 1.0) -> None:
    """Withhold an answer whose own numbers do not prove it."""
    tol = TOL_CERTIFICATE * (1 + layout.steps)
    if not (abs(gap) <= tol * scale and residual <= tol):
        raise CertificateError(
            f"{what} failed its check: primal-dual gap {gap:.3g} (allowed {tol * scale:.3g}), "
            f"cost residual {residual:.3g} (allowed {tol:.3g}); the numbers of this world may be badly scaled"
        )


def _suggest_margin(cmdp: CMDP) -> Suggestion:
    if cmdp.layout.num_rows > MANY_ROWS:
        return _compiled_planner(cmdp).largest_margin()
    return largest_margin(flow_matrix(cmdp), cmdp.mean_costs, cmdp.thresholds)


def _suggest_loss(cmdp: CMDP, loss: FloatArray, alpha: FloatArray) -> Suggestion | NoSolution:
    if cmdp.layout.num_rows > MANY_ROWS:
        return _compiled_planner(cmdp).least_loss(loss, alpha)
    return least_loss(flow_matrix(cmdp), loss, cmdp.mean_costs, alpha)


def _compiled_planner(cmdp: CMDP) -> KnownPlanner:
    from hedgerow.planning.planner import KnownPlanner  # loads numba, which small programs can do without

    return KnownPlanner(cmdp)


def _realise(cmdp: CMDP, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The policy (rows,) that w induces, its occupancy (triples,) and costs (m,): exact, whatever the solver did."""
    pi = policy_of_masses(cmdp.layout, w)
    q = occupancy(cmdp.layout, cmdp.transitions, pi)
    return pi, q, cmdp.mean_costs @ row_occupancy(cmdp.layout, q)
