"""The watcher that lets the twin see every episode, and compares its numbers with the learner's at a sample of them.

Before an episode: the confidence sets; the sums of the certificate; U, which must be one of the bounds that the sets
and the certificate give; lambda; the mixture that was announced; eta and gamma. After it: the loss estimates. CV-OPS:
also its radius, the end of its search, and the costs of its baseline. Every episode is played step by step.

The actions are judged as well, without a look at the coin: how much likelier are they if the odds of the baseline are
e^h times those of lambda?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import expm1, inf, log, log1p, sqrt
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.loop import MirrorWatcher
from hedgerow.learners.ops.notes import ODDS
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.state import PROJECTED, Core
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.learners.watch import RunContext, is_clean
from hedgerow.verify.stated import anchored_of
from hedgerow.verify.twin import (
    Generation,
    Given,
    J,
    Present,
    Switches,
    TwinBoxes,
    TwinCentres,
    TwinSets,
    anchored_cost,
    certificate_radius,
    occupancies,
    upper_occupancies,
    worst_values,
)

# lambda from U, and the rates -----------------------------------------------------------------------------------------


def mixing_weight(given: Given, bounds: FloatArray, beta: FloatArray) -> float:
    """The least lambda with lambda beta_i + (1 - lambda) min(U_i, ceiling_i) <= alpha_i for all i."""
    least = 0.0
    for i in given.binding:
        alpha, U = float(given.view.thresholds[i]), min(float(bounds[i]), float(given.ceilings[i]))
        if alpha < U:
            least = max(least, (U - alpha) / (U - float(beta[i])))
    return min(least, 1.0)


def rate(given: Given, episodes: float, delta: float) -> float:
    """eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|))."""
    pairs = given.num_states * given.num_actions
    return sqrt(given.steps * log(given.steps * pairs / delta) / (episodes * pairs))


class TwinRates:
    """eta and gamma of a phase: multiples of the paper's, or an eta that falls with the gaps (docs/rates.md)."""

    def __init__(self, given: Given, paper: float) -> None:
        eta, gamma = given.switches.eta, given.switches.gamma
        self.adaptive, self.gap = eta == "adaptive", 0.0
        self.eta = paper * (2.0 if self.adaptive else 1.0 if isinstance(eta, str) else eta)
        self.gamma = paper * (1.0 if isinstance(gamma, str) else gamma)
        rows = [[r for x in layer for r in range(x * given.num_actions, (x + 1) * given.num_actions)]
                for layer in given.layers[:-1]]  # fmt: skip
        self.entropy = sum(log(sum(given.rows[r][1] - given.rows[r][0] for r in layer)) for layer in rows)

    def see(self, q_hat: Sequence[float], estimates: Sequence[float]) -> None:
        """Add the gaps of the visited pairs; the rate falls when 0.15 D_0 / gap is less than 1/1.25 of it."""
        for q, estimate in zip(q_hat, estimates, strict=True):
            self.gap += q * estimate + log1p(q * expm1(-self.eta * estimate)) / self.eta
        if self.adaptive and 1.25 * 0.15 * self.entropy < self.eta * self.gap:
            self.eta = 0.15 * self.entropy / self.gap


def doubling_rate(given: Given, done: int) -> float:
    """The rate after `done` episodes without a horizon: segments of 1, 2, 4, ... episodes, delta / ((j+1)(j+2))."""
    j = (done + 1).bit_length() - 1
    return rate(given, 2.0**j, given.delta / ((j + 1.0) * (j + 2.0)))


def path_logs(given: Given, policies: FloatArray, rows: Sequence[int]) -> FloatArray:
    """(K,): the log-probability of the actions of a path (its rows) under each of the policies (K, num_rows)."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(policies[:, list(rows)]).sum(axis=1)
    return logs


# The search of CV-OPS by its practical rule: margin, radius, and the episode at which it ends -------------------------


class TwinSearch:
    """Counts the costs of whole episodes; `t_bar` is 0 until the rule ends the search."""

    def __init__(self, given: Given, variance: bool) -> None:
        self.given, self.variance = given, variance
        m = len(given.binding)
        self.sums, self.squares = np.zeros(m), np.zeros(m)
        self.played = self.t_bar = 0
        self.margin, self.radius = -inf, inf

    def see(self, costs: FloatArray) -> None:
        """Add an episode with costs (L, m)."""
        given, binding = self.given, self.given.binding
        spent, ceilings = costs.sum(axis=0)[binding], given.ceilings[binding]
        self.squares += ((spent - self.sums / max(1, self.played)) / ceilings) ** 2
        self.sums += spent
        self.played += 1
        self.margin = float(np.min(given.view.thresholds[binding] - self.sums / self.played))
        self.radius = self._radius()
        if not self.t_bar and self.played >= 2 and self.margin >= 2.0 * self.radius:
            self.t_bar = self.played

    def _radius(self) -> float:
        """By Azuma's inequality, with `variance` or by how much costs vary: each with half of delta."""
        given, t, m = self.given, float(self.played), len(self.given.binding)
        ceilings = given.ceilings[given.binding]
        parts = 2.0 if self.variance else 1.0
        azuma = float(ceilings.max()) * sqrt(log(parts * m * t * (t + 1.0) / given.delta) / (2.0 * t))
        if not self.variance:
            return azuma
        log_term = log(2.0 * J * m / given.delta)
        varied = [
            certificate_radius(log_term, float(squares), float(ceiling)) / t
            for squares, ceiling in zip(self.squares, ceilings, strict=True)
        ]
        return min(azuma, max(varied))

    def beta(self, each: bool) -> FloatArray:
        """(m,): what the mixture costs at most: alpha - rho_hat, with `each` also mean + radius; at least 0."""
        given, binding = self.given, self.given.binding
        found: FloatArray = given.ceilings.copy()
        found[binding] = given.view.thresholds[binding] - (self.margin - self.radius)
        if each:
            found[binding] = np.minimum(found[binding], self.sums / self.played + self.radius)
        return np.maximum(found, 0.0)


# Watching -------------------------------------------------------------------------------------------------------------


class Recomputed(MirrorLearner):
    """May be watched by the twin; learns as it always does."""

    def watch(self, stage: RunContext, **options: bool) -> MirrorWatcher:
        """Watch as usual, or with the option `twin` recompute as well."""
        if options.pop("twin", False):
            return TwinWatcher(self, stage, **options)
        return super().watch(stage, **options)


class RecomputedSVOPS(Recomputed, SVOPS):
    """SV-OPS."""


class RecomputedSOPS(Recomputed, SOPS):
    """S-OPS."""

    def anchored(self) -> FloatArray:
        """(m,): the anchored bounds of its present policy."""
        return anchored_of(self, self.highest())

    def highest(self) -> FloatArray:
        """(num_rows, m): what it takes for the largest mean costs there."""
        return self.core.state.boxes.cost_upper


class RecomputedCVOPS(Recomputed, CVOPS):
    """CV-OPS."""


EARLY, EVEN = 10, 8
"""Episodes of a run that are compared: so many at growing distances, and so many at equal ones"""
BALL_ACCURACY = 1e-5
"""Error that a learner may leave in the maximum over a ball, as a part of the span of V; upwards only"""
HUGE = 1e9
"""The gap between a number and none: facts are finite"""
GAPS = ("interval", "certificate", "bound", "anchored", "mixing", "mixture", "rate", "estimate", "search")


def given_of(learner: MirrorLearner) -> Given:
    """What a learner knew before its first episode."""
    chosen, mixes = learner.settings, learner.mixes
    switches = Switches(
        radii=chosen.radii,
        clip_costs=chosen.clip_costs,
        joint_cost=chosen.joint_cost,
        ties=chosen.ties,
        aggregate=chosen.aggregate and mixes,
        ball_from=chosen.ball_from if mixes else 0,
        anchored=chosen.anchored and mixes,
        eta=chosen.eta,
        gamma=chosen.gamma,
    )
    return Given(learner.view, switches, learner.delta, learner.episodes)


class TwinWatcher(MirrorWatcher):
    """Watches like any other, and recomputes."""

    def __init__(self, learner: MirrorLearner, stage: RunContext, **options: bool) -> None:
        super().__init__(learner, stage, **{**options, "notes": True})
        self.given = given_of(learner)
        self.sets = TwinSets(self.given)
        self.search = TwinSearch(self.given, learner.settings.search_radius == "variance")
        self.generations: dict[int, Generation] = {}
        self.gaps = dict.fromkeys(GAPS, 0.0)
        self.compared = self.certified = 0
        self.evidence = np.zeros(len(ODDS))
        last = int(learner.episodes or 0)
        spaced = *np.geomspace(1.0, last, EARLY), *np.linspace(1.0, last, EVEN)
        self._samples = {round(t) - 1 for t in spaced}
        self._begun_with = learner.core
        self._baseline_q: FloatArray | None = None
        self._upper: FloatArray | None = None
        self._rates = self._first_rates()

    def _first_rates(self) -> TwinRates:
        given = self.given
        return TwinRates(given, rate(given, float(given.episodes or 1) - (self.search.t_bar or 0), given.delta))

    @property
    def compiled(self) -> bool:
        return False

    # One episode -----------------------------------------------------------------------------------------------------

    def planned(self) -> None:
        super().planned()
        core = self.learner.core
        if core is not self._begun_with:
            self._begun_with, self._baseline_q, self.generations = core, None, {}
            self._rates = self._first_rates()
            self._compare_search(core)
            if self.given.switches.radii == "kt":
                self.sets.refresh_all()
        state = core.state
        self._policy, self._mixing = state.policy.copy(), float(state.reals.mixing)
        self._gamma, self._own = float(state.reals.gamma), state.numbers.branch == 0
        self._follow_generations(core)
        self._upper = None
        if state.numbers.episode in self._samples:
            self.compared += 1
            self._compare(core)

    def learnt(self, rows: IntArray) -> bool:
        took = super().learnt(rows)
        if took:
            visited, costs = [int(row) for row in rows], self._path.costs
            if self._upper is not None:
                self._compare_estimates(visited)
            if len(self._core.baseline.policies):
                self._judge_path(visited)
            if self._own:
                triples = self.sets.triples_of(visited)
                for one in self.generations.values():
                    one.count(self.given, visited, triples, costs, self._centres)
            self.sets.see(visited, costs)
            trace = self._core.buffers.trace
            if self._core.search.active:
                self.search.see(costs)
            else:
                self._rates.see(trace.q_hat.tolist(), trace.estimate.tolist())
        return took

    def _follow_generations(self, core: Core) -> None:
        """Note what the learner has chosen before the episode: generations that have started, and the centres."""
        found = core.state.aggregate
        self._centres = TwinCentres(found.p_hat.copy(), found.g_hat.copy())
        for slot, number in enumerate(found.generation.tolist()):
            known = self.generations.get(slot)
            if number >= 0 and (known is None or known.number != number):
                used = [one.number for one in self.generations.values()]
                one = Generation(
                    number, found.values[slot].copy(), found.ranges[slot].copy(), np.zeros(self.given.num_rows)
                )
                self.generations[slot] = one
                self._gap("certificate", max(0, 1 + max(used, default=-1) - number))  # each number has its own share
                short = (one.least_scale(self.given) - one.scale)[self.given.binding]
                self._gap("certificate", float(max(0.0, np.max(short, initial=0.0))))

    # Comparisons -----------------------------------------------------------------------------------------------------

    def _gap(self, name: str, size: float) -> None:
        self.gaps[name] = max(self.gaps[name], float(size) if size < HUGE else HUGE)

    def _compare(self, core: Core) -> None:
        boxes = self.sets.boxes()
        self._compare_sets(core, boxes)
        self._compare_rates(core)
        if len(core.baseline.policies):
            self._compare_certificate(core)
            self._compare_bounds(core, boxes)
            if isinstance(self.learner, RecomputedSOPS):
                self._compare_anchored(self.learner.anchored(), core, boxes)
            self._compare_mixing(core)
        if len(core.baseline.policies) <= 1 and not core.search.active:
            u = (1.0 - self._mixing) * upper_occupancies(self.given, self._policy, boxes)
            if self._mixing > 0.0:
                u += self._mixing * upper_occupancies(self.given, core.baseline.policies[0], boxes)
            self._upper = u

    def _compare_sets(self, core: Core, boxes: TwinBoxes) -> None:
        for name in ("lower", "upper", "cost_lower", "cost_upper"):
            stated, own = getattr(core.state.boxes, name), getattr(boxes, name)
            self._gap("interval", np.max(np.abs(stated - own), initial=0.0))
        if len(core.state.balls.radius):
            for row in np.flatnonzero(self.given.wide).tolist():
                if sum(self.sets.ball_moves[row]):
                    self._gap("interval", abs(core.state.balls.radius[row] - self.sets.ball_radius(row)))

    def _compare_certificate(self, core: Core) -> None:
        stated, binding = core.state.aggregate, self.given.binding
        for slot, one in self.generations.items():
            self._gap("certificate", abs(int(stated.episodes[slot]) - one.episodes))
            self._gap("certificate", np.max(np.abs(stated.visits[slot] - one.visits), initial=0.0))
            for own, theirs in ((one.sums, stated.sums[slot]), (one.squares, stated.squares[slot])):
                away = np.abs(own - theirs)[binding] / np.maximum(1.0, np.abs(own[binding]))
                self._gap("certificate", np.max(away, initial=0.0))

    def _compare_bounds(self, core: Core, boxes: TwinBoxes) -> None:
        """Compare U with all that may be said: the boxes, the balls, the baseline's costs, every generation. One of
        them must be it.
        """
        given, policy, stated = self.given, self._policy, core.state.bounds
        for i in range(given.num_constraints):
            upper = boxes.cost_upper[:, i]
            if not given.switches.joint_cost:
                self._gap("bound", abs(stated[i] - float(upper_occupancies(given, policy, boxes) @ upper)))
                continue
            box = float(worst_values(given, policy, upper, boxes)[0])
            distances = [abs(stated[i] - box)]
            if given.switches.anchored and len(core.baseline.policies) == 1:
                beta, baseline = float(core.baseline.costs[i]), core.baseline.policies[0]
                distances.append(abs(stated[i] - anchored_cost(given, policy, baseline, beta, boxes, i)))
            if i in given.binding and len(core.state.balls.radius):
                above = stated[i] - float(worst_values(given, policy, upper, boxes, balls=self.sets)[0])
                allowed = BALL_ACCURACY * given.steps**2
                distances.append(max(-above, above - allowed, 0.0))
            ready = [one for one in self.generations.values() if one.episodes] if i in given.binding else []
            if ready and min(distances) > 0.0:
                present = Present.of(given, policy, boxes, self._centres, i)
                certified = min(abs(stated[i] - present.bound(one)) for one in ready)
                self.certified += certified < min(distances)
                distances.append(certified)
            self._gap("bound", min(distances))

    def _compare_anchored(self, stated: FloatArray, core: Core, boxes: TwinBoxes) -> None:
        """Compare the anchored bounds with their formula, and while the event is clean with the cost of the policy."""
        given, baseline, beta = self.given, core.baseline.policies[0], core.baseline.costs
        costs = self.stage.cmdp.mean_costs @ occupancies(given, self._policy, self.stage.cmdp.transitions)
        for i in range(given.num_constraints):
            wanted = anchored_cost(given, self._policy, baseline, float(beta[i]), boxes, i)
            self._gap("anchored", abs(stated[i] - wanted))
            if is_clean(self.event.tallies) and not self.watch.tallies.false_baseline:
                self._gap("anchored", max(0.0, costs[i] - stated[i]))

    def _compare_mixing(self, core: Core) -> None:
        wanted = 1.0
        if core.state.numbers.last_status == PROJECTED and core.state.stay.now == 0.0:
            wanted = mixing_weight(self.given, core.state.bounds, core.baseline.costs)
        self._gap("mixing", abs(self._mixing - wanted))
        world = self.stage.cmdp
        if self._baseline_q is None:
            each = [occupancies(self.given, policy, world.transitions) for policy in core.baseline.policies]
            self._baseline_q = np.mean(each, axis=0)
        own = occupancies(self.given, self._policy, world.transitions)
        announced = self._mixing * self._baseline_q + (1.0 - self._mixing) * own
        self._gap("mixture", np.max(np.abs(self.stage.scores.occupancy - announced)))

    def _compare_rates(self, core: Core) -> None:
        eta, gamma = self._rates.eta, self._rates.gamma
        if core.search.active:
            eta = gamma = doubling_rate(self.given, core.state.numbers.episode)
        for stated, wanted in ((core.state.reals.eta, eta), (core.state.reals.gamma, gamma)):
            self._gap("rate", abs(stated / wanted - 1.0))

    def _compare_estimates(self, rows: list[int]) -> None:
        assert self._upper is not None
        for k, row in enumerate(rows):
            wanted = float(self._losses[row]) / (float(self._upper[row]) + self._gamma)
            self._gap("estimate", abs(float(self._core.buffers.trace.estimate[k]) - wanted) / max(1.0, wanted))

    def _compare_search(self, core: Core) -> None:
        """Compare what a search has found, now that it is over."""
        facts, search, each = core.state.search.facts, self.search, self.learner.settings.baseline_bound == "each"
        self._gap("search", abs(facts.t_bar - (search.t_bar or inf)))
        for stated, own in (
            (facts.margin, search.margin), (facts.radius, search.radius), (facts.rho_hat, search.margin - search.radius)
        ):  # fmt: skip
            self._gap("search", abs(stated - own))
        self._gap("search", np.max(np.abs(core.baseline.costs - search.beta(each)), initial=0.0))

    # Actions ---------------------------------------------------------------------------------------------------------

    def _judge_path(self, rows: list[int]) -> None:
        """Multiply the likelihood ratios of the actions, for mixtures with other odds of the baseline."""
        theirs = path_logs(self.given, self._core.baseline.policies, rows)
        own = float(path_logs(self.given, self._policy[np.newaxis], rows)[0])
        top = max(own, float(theirs.max()))
        if top == -inf:
            self.evidence[:] = inf  # neither policy takes these actions
            return
        baseline, mine = float(np.exp(theirs - top).mean()), float(np.exp(own - top))
        lam, odds = self._mixing, np.exp(ODDS)
        other = lam * odds / (1.0 - lam + lam * odds)
        with np.errstate(divide="ignore"):
            self.evidence += np.log(other * baseline + (1.0 - other) * mine)
            self.evidence -= np.log(lam * baseline + (1.0 - lam) * mine)

    # What was found --------------------------------------------------------------------------------------------------

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """The facts of every run, and `recomputed`, the episodes that were compared; `certified`, how often the
        certificate gave U; `..._gap`, the largest distances; `actions_0`, ..., the evidence of the actions against the
        announced mixture.
        """
        own: Mapping[str, Any] = {f"{name}_gap": gap for name, gap in self.gaps.items()}
        actions = {f"actions_{j}": float(value) for j, value in enumerate(self.evidence)}
        return {**super().facts(comparator), "recomputed": self.compared, "certified": self.certified, **own, **actions}
