"""Learners that the verification runs beside the shipped ones: with a log, as printed, and broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray
from hedgerow.confidence.bounds import load_columns
from hedgerow.confidence.boxes import make_boxes, refresh_all, refresh_costs
from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.premises import NOTHING
from hedgerow.learners.api import NumberedPlan
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.learners.ops.account import AccountRule
from hedgerow.learners.ops.b_ops import BOPS
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.c_ops import COPS
from hedgerow.learners.ops.cv_ops import CVOPS, MEMORY_BUDGET
from hedgerow.learners.ops.fallback import fallback_solve, project_now
from hedgerow.learners.ops.guarantees import primal_constant
from hedgerow.learners.ops.loop import MirrorWatcher
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.search import Search, SearchRule, regret_constant
from hedgerow.learners.ops.settings import Preset
from hedgerow.learners.ops.state import PROJECTED, Core
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.learners.ops.uob_reps import UOBREPS
from hedgerow.learners.watch import RunContext
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction
from hedgerow.model.policy import Policy
from hedgerow.model.random_streams import lent
from hedgerow.model.view import View
from hedgerow.verify.twin_watcher import RecomputedSOPS

# S-OPS with a log: episodes of another policy in the same world come before its own.
#
# A log uses up no delta, because the sets hold at all times: it gives the first factors of their martingales. The
# choice of its episodes must not depend on what happened in them (`KeepsCheap` has one that does).


EPISODES = 300
STREAM = 1403
"""Separates the random stream of the log from that of the run, which has the same seed."""


def uniform_log(world: CMDP, episodes: int, seed: int) -> list[Episode]:
    """Episodes of the policy that chooses all actions alike."""
    policy = np.full(world.layout.num_rows, 1.0 / world.layout.num_actions)
    rng = np.random.default_rng([STREAM, seed])
    return [world.play(policy, rng) for _ in range(episodes)]


class LoggedRun(SOPS):
    """Begins with a log of the world in which it will be simulated."""

    def kept(self, log: list[Episode]) -> list[Episode]:
        """The part of the log that it sees: all of it."""
        return log

    def watch(self, stage: RunContext, **options: bool) -> MirrorWatcher:
        """Absorb the log, then begin to watch."""
        self.absorb(self.kept(uniform_log(stage.cmdp, EPISODES, self.seed)))
        return super().watch(stage, **options)


# The paper as it is printed, where the learners have repairs (docs/paper-map.md).


class TheoryStop(CVOPS):
    """CV-OPS whose search also waits for the regret of both players (D8): rho_hat is at least half of the margin.

    `primal_constant` replaces C_P of the theory, which no run of practical length survives.
    """

    def __init__(
        self, view: View, episodes: int | None, delta: float, preset: Preset = "paper", seed: int = 0, *,
        memory_budget: int = MEMORY_BUDGET, transitions: ArrayLike | None = None,
        primal_constant: float | None = None, **switches: Any,
    ) -> None:  # fmt: skip
        self.primal_constant = primal_constant
        super().__init__(
            view, episodes, delta, preset, seed, memory_budget=memory_budget, transitions=transitions, **switches
        )

    def _search_rule(self) -> SearchRule:
        rule, constant = super()._search_rule(), self.primal_constant
        if constant is None:
            constant = primal_constant(self.layout, self.delta, known_transitions=self.transitions is not None)
        dual_constant = regret_constant(len(rule.binding), rule.steps)
        return rule.replace(waits=True, primal_constant=constant, dual_constant=dual_constant)


class LiteralSigma(SOPS):
    """S-OPS with the mixing weight as printed (D1), which may pass its bound lambda_0."""

    def _start(self, core: Core) -> None:
        super()._start(core)
        _print_weight(core)

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        super().observe(episode, *outcome, **named)
        _print_weight(self.core)


def _print_weight(core: Core) -> None:
    numbers, premises = core.state.numbers, core.state.premises.numbers
    refuted = core.rule.premises.stays and premises.what != NOTHING
    if numbers.last_status == PROJECTED and not refuted:
        core.state.reals.mixing = literal_weight(core.baseline, core.state.bounds)


def literal_weight(baseline: BaselineArrays, bounds: FloatArray) -> float:
    """sigma as printed: over all constraints as soon as one is in danger; cut to [0, 1]."""
    alpha, beta, lam = baseline.thresholds, baseline.costs, 0.0
    if not np.any(bounds[baseline.binding] > alpha[baseline.binding]):
        return 0.0
    for i in baseline.binding:
        U = min(bounds[i], baseline.ceilings[i])
        lam = max(lam, (U - alpha[i]) / (U - beta[i])) if beta[i] != U else 1.0
    return float(min(1.0, lam))


# Controls that are wrong by little, or in a place that no confidence set shows: only recomputing them refutes them.


class SquaresPerStep(RecomputedSOPS):
    """Adds the squares of c - g_hat step by step, as if the costs of one episode were independent of each other."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        aggregate = self.core.state.aggregate
        counted, g_hat = aggregate.episodes.copy(), aggregate.g_hat.copy()
        super().observe(episode, *more, **named)
        misses = episode.costs - g_hat[episode.rows]
        less = np.sum(misses**2, axis=0) - np.sum(misses, axis=0) ** 2
        for slot in np.flatnonzero(aggregate.episodes == counted + 1):
            aggregate.squares[slot] = np.maximum(aggregate.squares[slot] + less / aggregate.ranges[slot] ** 2, 0.0)


class LateMixing(RecomputedSOPS):
    """Computes lambda from the U of the episode before."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        late = getattr(self, "_late", self.core.state.reals.mixing)
        super().observe(episode, *more, **named)
        reals = self.core.state.reals
        self._late, reals.mixing = reals.mixing, late


class PlaysOwn(RecomputedSOPS):
    """Tosses its coin, and plays its own policy whatever that says: only the actions tell."""

    def plan(self, **how: Any) -> NumberedPlan:
        return replace(super().plan(**how), policy=Policy.trusted(self.layout, self.core.state.policy))

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        self.core.state.numbers.branch = 0  # the observed path must be possible under what was played
        super().observe(episode, *more, **named)


class LowAnchor(RecomputedSOPS):
    """Takes the least values Q_low of the actions that it plays more often than the baseline."""

    def highest(self) -> FloatArray:
        return self.core.state.boxes.cost_lower


class BarePool(COPS):
    """Plays the members of its pool without the part of the baseline that makes their mixture safe."""

    def _complete(self) -> None:
        super()._complete()
        pool = self.core.pool
        if pool.numbers.size:
            pool.weights[: pool.numbers.size] /= pool.weights[: pool.numbers.size].sum()
            pool.reals.base = 0.0


class CountsCheap(SOPS):
    """Its certificate leaves out the own episodes that cost more than was expected of them."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        aggregate = self.core.state.aggregate
        names = ("sums", "squares", "visits", "episodes")
        before, generation = {name: getattr(aggregate, name).copy() for name in names}, aggregate.generation.copy()
        dear = episode.costs.sum() > aggregate.g_hat[episode.rows].sum()
        super().observe(episode, *more, **named)
        if dear:
            same = aggregate.generation == generation
            for name, array in before.items():
                getattr(aggregate, name)[same] = array[same]


# A misinformed control: S-OPS with a quarter of what its baseline costs as its bound.
#
# Its arithmetic is right, and its confidence sets hold the truth. Its input is refuted by its own episodes.


TOLD = 0.25


class Silent(MirrorLearner):
    """Does not say what it finds refuted: the verification sees it."""

    def announce(self) -> None:
        self.core.state.premises.numbers.said = 1


class ToldTooLittle(Silent, SOPS):
    """Believes that its baseline costs a quarter of what it costs."""

    def _first_core(self) -> Core:
        self.baseline_costs = TOLD * self.baseline_costs
        return super()._first_core()


# Controls that learn wrongly: they ignore their losses, or miscount.


EXPLORES = 8
"""One episode in so many is exploration."""


class Commits(UOBREPS):
    """Plays uniformly for T/8 episodes and then, for ever, the policy that looked best."""

    def _sums(self) -> FloatArray:
        if not hasattr(self, "_loss_sums"):
            self._loss_sums: FloatArray = np.zeros(self.layout.num_rows)
            self._chosen: FloatArray = np.full(self.layout.num_rows, 1.0 / self.layout.num_actions)
        return self._loss_sums

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        sums, rows = self._sums(), episode.rows
        explore = (self.episodes or 0) // EXPLORES
        super().observe(episode, *outcome, **named)
        if self.episode <= explore:
            sums[rows] += episode.losses
        if self.episode == explore:
            counts, layout = self.core.state.counts, self.layout
            visits = np.maximum(1, counts.num_visits)
            guess = (counts.num_moves + 1e-9) / np.add.reduceat(counts.num_moves + 1e-9, layout.row_start[:-1])[
                layout.row_of_triple
            ]
            self._chosen = backward_induction(layout, guess, sums / visits).policy
        state = self.core.state
        state.policy[:] = self._chosen
        load_columns(self.core.index, state.boxes.lower, state.boxes.upper, state.policy, self.core.buffers.columns)


class MovesWrongly(SVOPS):
    """Undoes every mirror step twice: weights grow where losses were."""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        super().observe(episode, *outcome, **named)
        state, trace = self.core.state, self.core.buffers.trace
        state.log_weight[episode.rows] += 2.0 * self.eta * trace.estimate
        project_now(self.layout, self.core)


class RisingRate(SVOPS):
    """Hardly moves until the last episodes, and then has a large rate, whose inverse stands in its bound."""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        late = self.episode >= 0.98 * (self.episodes or 1)
        self.core.state.reals.eta = 1.0 if late else 1e-4
        super().observe(episode, *outcome, **named)


class WrongEstimator(SVOPS):
    """Reports l / (times u + gamma) as its estimate. (It still learns from the right one.)"""

    times: float

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        super().observe(episode, *outcome, **named)
        trace, gamma = self.core.buffers.trace, self.core.state.reals.gamma
        trace.estimate[:] = episode.losses / (self.times * trace.u + gamma)


class DullEstimator(WrongEstimator):
    """Up to ten times too small."""

    times = 10.0


class TimidEstimator(WrongEstimator):
    """Up to ten times too large."""

    times = 0.1


class SkipsFirstLayer(CVOPS):
    """Hides the costs of layer 0 from its search, not from its confidence sets."""

    def observe(self, episode: Any, *outcome: Any, **named: Any) -> None:
        if self.phase == 2:
            super().observe(episode, *outcome, **named)
            return
        seen, row = episode.costs.copy(), int(episode.rows[0])
        seen[0] = 0.0
        super().observe(Episode.trusted(self.view, episode.rows, episode.triples, episode.losses, seen), **named)
        core = self.core
        core.state.counts.cost_sums[row] += episode.costs[0]
        refresh_costs(core.state.counts, core.sets.rule.box, row, core.state.boxes)


class WrongCounts(SVOPS):
    """Bounds occupancies with boxes that assume t visits of every pair, whatever was seen."""

    def plan(self, **how: Any) -> NumberedPlan:
        plan = super().plan(**how)
        core, counts = self.core, self.core.state.counts
        visits = np.full_like(counts.num_visits, self.episode)
        wrong = make_boxes(make_unknowns(self.layout, self.view.num_constraints))
        refresh_all(core.index, counts.replace(num_visits=visits), core.sets.rule.box, wrong)
        load_columns(core.index, wrong.lower, wrong.upper, core.state.policy, core.buffers.columns)
        return plan


# Controls that play or project something other than they planned.


class PerStep(SOPS):
    """Plays lambda pi_diamond(a|x) + (1 - lambda) pi_hat(a|x): not the mixture, and it is scored for what it plays."""

    def plan(self, **how: Any) -> NumberedPlan:
        plan, state = super().plan(**how), self.core.state
        lam = state.reals.mixing
        mixed = Policy.trusted(self.layout, lam * self.core.baseline.policies[0] + (1.0 - lam) * state.policy)
        state.numbers.branch = 0  # the observed path must be possible under the learner's own policy
        return replace(plan, mixture=mixed, policy=mixed)


class IndexOnce(CVOPS):
    """Draws one policy of the mixture when the search ends, plays no other, and still believes the mixture's costs."""

    def _second_core(self, search: Search) -> Core:
        with lent(self.coin) as rng:
            kept = int(rng.integers(len(search.policies)))
        alone = search.policies[kept : kept + 1].copy()
        return self._make_core(self._make_baseline(alone, self._found_costs(search)), search=search)

    def watch(self, stage: RunContext, **options: bool) -> MirrorWatcher:
        """Watch it by its own claim: the costs are those of the mixture, so the baseline counts as honest."""
        return Believing(self, stage, **options)


class Believing(MirrorWatcher):
    """Takes the learner's word for the costs of its baseline."""

    def _follow(self, core: Core) -> None:
        super()._follow(core)
        self.watch.tallies.false_baseline = 0


WRONG = 0.9
"""The least probability of the last successor in the wrong boxes."""


def wrong_boxes(layout: Layout) -> tuple[FloatArray, FloatArray]:
    """Boxes (num_triples,) that ask for the last successor of every row; right where there is only one."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    several = np.diff(layout.row_start) > 1
    last = layout.row_start[1:][several] - 1
    upper[np.repeat(several, np.diff(layout.row_start))] = 1.0 - WRONG
    upper[last], lower[last] = 1.0, WRONG
    lower[layout.row_start[:-1][~several]] = 1.0
    return lower, upper


class WrongBox(SVOPS):
    """Estimates rightly and projects wrongly."""

    def _first_core(self) -> Core:
        core = super()._first_core()
        self.wrong = wrong_boxes(self.layout)
        problem = core.buffers.problem.replace(lower=self.wrong[0], upper=self.wrong[1])
        return core.replace(buffers=core.buffers.replace(problem=problem))

    def _complete(self) -> None:
        state = self.core.state
        if state.numbers.open:
            boxes = state.boxes.replace(lower=self.wrong[0], upper=self.wrong[1])
            fallback_solve(self.layout, self.core.replace(state=state.replace(boxes=boxes)))
        super()._complete()


# Overconfident controls: too small a logarithm, false knowledge, a log that was selected by its costs.
#
# Their own arithmetic cannot notice what is wrong. Only the truth refutes them: their confidence sets lose it more
# often than they may.


TOO_SURE = 100.0


def with_logs(core: Core, change: Callable[[str, float], float]) -> Core:
    """The core whose logarithms of the bounds of costs, of transitions, certificate and balls are changed, by name."""
    box, aggregate, ball = core.sets.rule.box, core.sets.rule.aggregate, core.sets.rule.ball
    radii = box.radii.replace(
        cost_log=change("cost_log", box.radii.cost_log),
        transition_log=change("transition_log", box.radii.transition_log),
    )
    rule = core.sets.rule.replace(
        box=box.replace(radii=radii),
        aggregate=aggregate.replace(log_inverse_delta=change("certificate_log", aggregate.log_inverse_delta)),
        ball=ball.replace(log_inverse_delta=change("ball_log", ball.log_inverse_delta)),
    )
    return core.replace(sets=core.sets.replace(rule=rule))


class HundredDelta(SOPS):
    """All sets are made for 100 delta; it promises delta."""

    def _first_core(self) -> Core:
        return with_logs(super()._first_core(), lambda name, value: value - log(TOO_SURE))


class SpendsAll(BOPS):
    """Takes observed costs for expected ones: its account has no radius."""

    def _account_rule(self) -> AccountRule:
        return super()._account_rule().replace(scale=0.0)


class FalseTies(Silent, SVOPS):
    """Believes that all rows share their laws, as far as their sizes allow."""

    def _first_core(self) -> Core:
        rows = np.zeros(self.layout.num_rows, dtype=np.int64)
        self.view = self.view.knowing(same_transitions=np.diff(self.layout.row_start), same_costs=rows)
        return super()._first_core()


class CountsAll(SVOPS):
    """Believes that costs of one episode are independent, and counts all visits of a class where one is enough."""

    def _first_core(self) -> Core:
        self.view = self.view.knowing(independent_costs=True)
        return super()._first_core()


class KeepsCheap(Silent, LoggedRun):
    """Its log has lost the dearer half of its episodes."""

    def kept(self, log: list[Episode]) -> list[Episode]:
        sums = [float(episode.costs.sum()) for episode in log]
        return [episode for episode, cost in zip(log, sums, strict=True) if cost <= np.median(sums)]


# S-OPS with a person who stops episodes, or takes over in them, because of their costs.
#
# As soon as a step has cost something, the episode is aborted, or a person chooses its further actions. Where costs of
# one episode depend on each other, what was seen of later steps is then the cheap part. `Interrupted` and `TakenOver`
# tell the truth: all that the plan could have visited from there on is unknown (docs/counting.md). `FalselyDeclared`,
# the control, says that the reason had nothing to do with costs.


class Interrupted(SOPS):
    """Hears only of the steps up to the first that costs something, and where the episode was aborted."""

    reason: str | None = None

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        """Learn from the part of an episode that happened."""
        super().observe(self._cut(episode) if isinstance(episode, Episode) else episode, *more, **named)

    def _cut(self, episode: Episode) -> Episode:
        dear = np.flatnonzero(episode.costs.any(axis=1))
        if not dear.size or dear[0] == self.layout.steps - 1:
            return episode
        count = int(dear[0]) + 1
        return Episode(
            self.view,
            episode.rows[:count],
            episode.losses[:count],
            episode.costs[:count],
            ended_in=int(self.layout.successor[episode.triples[count - 1]]),
            independent=self.reason,
        )


class FalselyDeclared(Interrupted):
    """Says that the episodes were aborted for a reason that has nothing to do with costs."""

    reason = "the end of a shift"


class TakenOver(SOPS):
    """Hears that a person chose the actions after the first step that cost something; the person acts as it would."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        """Learn from an episode whose end was a person's."""
        super().observe(self._overridden(episode) if isinstance(episode, Episode) else episode, *more, **named)

    def _overridden(self, episode: Episode) -> Episode:
        dear = np.flatnonzero(episode.costs.any(axis=1))
        if not dear.size or dear[0] == self.layout.steps - 1:
            return episode
        return Episode(self.view, episode.rows, episode.losses, episode.costs, overridden_from=int(dear[0]) + 1)


class ClaimsSteps(Silent, SOPS):
    """Believes that costs are drawn step by step, where one draw decides all costs of an episode."""

    def _first_core(self) -> Core:
        self.view = self.view.knowing(costs_drawn="step")
        return super()._first_core()


# Negative controls: learners broken on purpose, each of which some promise must refute.
#
# A check that cannot fail proves nothing. Every control is a cell like those of the real learners and meets the same
# judge; one that is not refuted fails the whole verification. Most are broken learners, the others are sound learners
# in worlds that they are not made for.


@dataclass(frozen=True)
class Control:
    """What is broken, and which promises must refute it; `levels.controls` has its runs."""

    name: str
    broken: str
    promises: tuple[str, ...]


CONTROLS = (
    Control("literal-sigma", "sigma as printed, with two constraints (D1)", ("T8",)),
    Control("layer-0-skipped", "CV-OPS sums costs from layer 1 on (D2)", ("T12",)),
    Control("index-drawn-once", "CV-OPS draws one policy of its mixture and keeps it (D5)", ("T7",)),
    Control("per-step-mixing", "S-OPS tosses its coin at every step", ("T7",)),
    Control("narrow-radii", "all radii times 0.1", ("T1", "T2")),
    Control("narrow-radii-mixing", "all radii times 0.1, S-OPS", ("T7",)),
    Control("wrong-counts", "u from boxes in which every pair has t visits", ("T4",)),
    Control("unconstrained", "UOB-REPS, which ignores costs, on a constrained world", ("T5",)),
    Control("explore-then-commit", "explores for T/8 episodes, then keeps the best", ("T6",)),
    Control("wrong-box", "projects onto transitions that exclude the true ones", ("T3",)),
    Control("backward-steps", "mirror descent moves towards the losses", ("T18",)),
    Control("rising-rate", "a small rate at first, a large one at the end", ("T33",)),
    Control("hundred-delta", "all sets are made for 100 delta", ("T1", "T2")),
    Control("false-ties", "rows are said to share their laws, and do not", ("T1", "T2", "T31")),
    Control("false-baseline", "the baseline is said to cost a quarter of what it costs", ("T31",)),
    Control("selected-log", "a log that has lost the dearer half of its episodes", ("T1",)),
    Control("counts-all", "all visits of a cost law count, where all costs of an episode are one", ("T1",)),
    Control("timid-estimator", "divides losses by a tenth of u", ("T19", "T29")),
    Control("dull-estimator", "divides losses by ten times u", ("T30",)),
    Control("frozen-boxes", "boxes of transitions that never shrink", ("T28",)),
    Control("short-logs", "all logarithms times 0.95", ("T22",)),
    Control("squares-per-step", "VV of the certificate adds squares step by step", ("T23",)),
    Control("cheap-certificate", "a certificate that leaves out dear episodes", ("T1",)),
    Control("late-lambda", "lambda from the U of the episode before", ("T24",)),
    Control("low-ceiling", "an episode costs at most 0.95 of what it can", ("T24",)),
    Control("biased-coin", "the baseline is played with probability 0.8 lambda", ("T25",)),
    Control("idle-coin", "the learner's policy is played whatever the coin says", ("T25",)),
    Control("small-gamma", "gamma times 0.95", ("T26",)),
    Control("false-reason", "episodes aborted because of costs are declared to be independent of these", ("T21",)),
    Control("false-steps", "costs of an episode that are all equal are declared to be drawn step by step", ("T38",)),
    Control("narrow-calibration", "U from radii times 0.1", ("T37",)),
    Control("low-anchor", "the anchored bound with LCB in the place of UCB", ("T34",)),
    Control("narrow-bounds", "the bounds of policies from radii times 0.1", ("T36",)),
    Control("bare-pool", "C-OPS without the baseline's part of its pool", ("T35",)),
    Control("no-radius", "an account that takes observed costs for expected ones", ("T32",)),
    Control("short-search", "the radius of the search times 0.95", ("T27",)),
)
