"""CV-OPS (paper, section 6): constant violation, with nothing given but the thresholds.

Phase 1 looks for a strictly safe policy: UOB-REPS against weighted costs, an online gradient method against it
(`search.py`). It ends after t_bar episodes, as soon as the uniform mixture of all policies so far surely leaves
a margin rho_hat to every threshold. Phase 2 is S-OPS with that mixture as its baseline: from then on no episode
violates a constraint. Which policy of the mixture plays is drawn anew in every episode that is left to the baseline:
a single draw, kept, could be one that violates (departure D5).

Phase 1 is unprotected: an episode of it may violate constraint i by as much as L - alpha_i. It may also outlast the
run: then `t_bar` and `rho_hat` are None, and the ledger says that nothing is protected yet.

    t_bar for a constant margin, L = 3, m = 1, delta = .05:    margin .5 -> 1242,   .25 -> 5861,   .1 -> 43873
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, frozen, whole_number
from hedgerow.confidence.premises import FALSE_ALARM, carry_over
from hedgerow.confidence.sets import refresh_sets
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA
from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.logs import no_logs
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.guarantees import (
    assumptions,
    limits,
    rates_note,
    regret_reasons,
    regret_statement,
    shared_promises,
    tracking,
)
from hedgerow.learners.ops.s_ops import REGRET_EVENTS, largest_mixing
from hedgerow.learners.ops.search import Broken, Search, SearchRule, SearchState, make_search, step_constant
from hedgerow.learners.ops.settings import DEFAULT_PRESET, Preset, SearchSwitches, confidence_void, names_of
from hedgerow.learners.ops.soundness import check_policies, end_of_search, settle_search
from hedgerow.learners.ops.state import Core, Numbers, arrays_of_state
from hedgerow.learners.ops.step import copy_optimistic
from hedgerow.model.cmdp import view_of
from hedgerow.model.view import View
from hedgerow.paper import cite

MEMORY_BUDGET = 256 * 2**20
CARRIED = ("episode", "branch", "infeasible", "suspect", "failed", "iterations", "epochs")
"""The numbers that go on from phase to phase."""


def checked_memory(view: View, memory_budget: Any) -> int:
    """The room for policies in bytes, if there is something to search for in this world."""
    if not len(view.binding):
        raise InvalidInput(
            "no constraint of this world can be violated, so there is nothing to be found safe; use UOBREPS"
        )
    return whole_number("memory_budget", np.asarray(memory_budget).item(), 1)


class CVOPS(MirrorLearner):
    """CV-OPS, Constant Violation Optimistic Policy Search: it finds a safe policy, then it is safe.

    Phase 1 looks for a strictly safe mixture of policies. It is unprotected: an episode may exceed a threshold alpha by
    up to L - alpha. It ends after `t_bar` episodes, as soon as the mixture of all policies so far surely leaves a
    margin `rho_hat` to every threshold. Phase 2 is S-OPS with that mixture as its baseline: no episode violates a
    constraint any more (paper, section 6). Phase 1 may outlast the run; then `t_bar` and `rho_hat` are None, and
    `guarantees()` says that nothing is protected yet.

    Args:
        memory_budget: Room in bytes for the policies of phase 1; beyond it a random sample of them is kept, which makes
            phase 1 longer.

    Raises:
        InvalidInput: If an argument is wrong, if no constraint can be violated, or if the learner has no such switch.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> learner = hr.CVOPS(view, episodes=10_000, delta=0.05, preset="sharp")
        >>> learner.phase, learner.t_bar, learner.guarantees()["safety"].holds
        (1, None, False)
    """

    kind = "cv-ops"
    title = "CV-OPS"
    switches = names_of(SearchSwitches)
    mixes = True
    holds_open = ("violation",)

    def __init__(
        self, view: View | Any, episodes: int | None, delta: float = DELTA, preset: Preset = DEFAULT_PRESET,
        seed: int = 0, *, memory_budget: int = MEMORY_BUDGET, transitions: ArrayLike | None = None,
        **switches: Unpack[SearchSwitches],
    ) -> None:  # fmt: skip
        self.memory_budget = checked_memory(view_of(view), memory_budget)
        super().__init__(view, episodes, delta, preset, seed, transitions=transitions, **switches)  # type: ignore[misc]

    def _first_core(self) -> Core:
        search = make_search(self.layout, len(self.view.binding), self._capacity())
        baseline = self._no_baseline(constrained=False)
        return self._make_core(baseline, doubling=True, search=search, search_rule=self._search_rule())

    def _search_rule(self) -> SearchRule:
        view, binding = self.view, self.view.binding
        m, L = len(binding), float(np.max(view.ceilings[binding]))
        return SearchRule(
            active=True, waits=False, primal_constant=0.0, dual_constant=0.0, dual_step=step_constant(m, L), steps=L,
            radius_scale=self.settings.confidence_scale,
            variance=self.settings.search_radius == "variance",
            log_inverse_delta=-float(np.log(self.delta)),
            binding=binding,
            thresholds=view.thresholds[binding],
            ceilings=view.ceilings[binding],
            dual_loss=np.zeros(m),
            draws=np.zeros(self._capacity(), dtype=np.int64),
        )  # fmt: skip

    def _capacity(self) -> int:
        """How many policies there is room for."""
        room = max(1, self.memory_budget // (8 * self.layout.num_rows))
        return room if self.episodes is None else min(room, self.episodes)

    def _next_phase(self) -> None:
        old = self.core.state
        kept = min(int(old.search.facts.t_bar), len(old.search.policies))
        core = self._second_core(old.search.replace(policies=old.search.policies[:kept].copy()))
        for name in CARRIED:
            setattr(core.state.numbers, name, getattr(old.numbers, name))
        core.state.incomplete.values[:] = old.incomplete.values  # the ledger speaks of both phases
        core.state.logged.off_policy = old.logged.off_policy
        if self.settings.phase2_stats == "keep":
            # Copied, because the scores of the last episode still look at the first phase.
            core.state.counts.take(old.counts)
            core.state.boxes.take(old.boxes)
            refresh_sets(core.sets)
            copy_optimistic(core, core.buffers.all_rows)
            core.state.epoch_visits[:] = core.state.counts.num_visits
            core.state.logged.values[:] = old.logged.values
        carry_over(old.premises, core.state.premises)
        self.queue.unprotected = sum(entry.plan.episode >= self.episode for entry in self.queue.entries)
        self._start(core)
        self._use(core)
        if self.settings.phase2_stats == "discard":
            self.absorbed = no_logs()  # what is forgotten may be told again
            self.queue.lost, self.queue.late = [], []  # and has nothing unknown

    def _second_core(self, search: Search) -> Core:
        """S-OPS with the mixture that was found."""
        return self._make_core(self._make_baseline(search.policies, self._found_costs(search)), search=search)

    def _found_costs(self, search: Search) -> FloatArray:
        """beta (m,): upper bounds of the costs of the mixture, alpha_i - rho_hat, or one by one mean_i + radius."""
        facts, alpha, binding = search.facts, self.view.thresholds, self.view.binding
        beta: FloatArray = self.view.ceilings.copy()  # where nothing can be violated nothing is claimed
        beta[binding] = alpha[binding] - facts.rho_hat
        if self.settings.baseline_bound == "each":
            beta[binding] = np.minimum(beta[binding], search.cost_sums / facts.t_bar + facts.radius)
        # Below 0 only if the truth left its radius; larger is the safe side.
        return np.maximum(beta, 0.0)

    @property
    def phase(self) -> int:
        """1 while it searches for a safe policy, 2 once episodes are protected."""
        return 2 if len(self.core.baseline.policies) else 1

    @property
    def begun(self) -> int:
        return self.t_bar or 0

    @property
    def t_bar(self) -> int | None:
        """The number of episodes that phase 1 took; None while it lasts."""
        return int(self._facts.t_bar + self._broken.skipped) if self.phase == 2 else None

    @property
    def rho_hat(self) -> float | None:
        """The margin that the found mixture surely leaves to every threshold; None while phase 1 lasts."""
        return self._facts.rho_hat if self.phase == 2 else None

    @property
    def margin(self) -> float:
        """The smallest threshold minus mean cost, over all episodes of phase 1 as observed so far."""
        return self._facts.margin

    @property
    def radius(self) -> float:
        """How far `margin` may be off, at present or when phase 1 ended."""
        return self._facts.radius

    @property
    def _broken(self) -> Broken:
        return self.core.state.search.broken

    @property
    def _facts(self) -> SearchState:
        return self.core.state.search.facts

    @property
    def baseline_policies(self) -> FloatArray:
        """(K, num_rows): the policies whose uniform mixture is the baseline; none in phase 1."""
        return frozen(self.core.baseline.policies)

    @property
    def baseline_costs(self) -> FloatArray:
        """(m,): upper bounds of the expected costs of the baseline mixture; beta in the paper."""
        return frozen(self.core.baseline.costs)

    @property
    def subsampled(self) -> bool:
        """Whether there were more policies than `memory_budget` has room for, so that a sample is kept."""
        return (self.t_bar or self.episode) - self._broken.skipped > self._capacity()

    @property
    def first_mixing(self) -> float:
        """The largest weight lambda_0 of the baseline that feasible projections of phase 2 can lead to."""
        return largest_mixing(self.view, self.core.baseline.costs)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "memory_budget": self.memory_budget}

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state by name, without the places for policies that are still empty."""
        arrays = arrays_of_state(self.core.state)
        if self.phase == 1:
            seen = self.episode - self._broken.skipped + self.core.state.numbers.pending
            arrays["search.policies"] = arrays["search.policies"][:seen]
        return arrays

    def expect(self, arrays: dict[str, NDArray[Any]]) -> None:
        numbers, policies = Numbers(arrays["numbers"]), arrays["search.policies"]
        own, room = self.core.state.search, len(self.core.state.search.policies)
        for name, array in flat_arrays(own).items():
            if name != "policies" and arrays[f"search.{name}"].shape != array.shape:
                raise InvalidInput(f"state.search.{name} must have the shape {array.shape}")
        sums, squares = arrays["search.cost_sums"], arrays["search.squares"]
        facts, broken = SearchState(arrays["search.facts"]), Broken(arrays["search.broken"])
        given = Search(arrays["search.weights"], sums, squares, policies, facts, broken)
        t_bar, over = end_of_search(given, numbers.episode), bool(numbers.phase_over)
        skipped = broken.skipped
        if over and t_bar + skipped != numbers.episode:
            raise InvalidInput(f"state.numbers: phase_over, but state.search.facts say t_bar = {t_bar}")
        searched = t_bar or numbers.episode - skipped
        kept = min(room, searched + (0 if t_bar else numbers.pending))
        if policies.shape != (kept, self.layout.num_rows):
            raise InvalidInput(f"state.search.policies has shape {policies.shape}, not {(kept, self.layout.num_rows)}")
        check_policies(self.layout, "search.policies", policies)
        settle_search(self.core.search, given, room, searched, over=t_bar > 0)
        if t_bar and not over:
            self._use(self._second_core(given.replace(policies=policies.copy())))
            return
        own.policies[:kept] = policies
        arrays["search.policies"] = own.policies

    @exclusive
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches: safety after phase 1, violation and regret."""
        confidence, accuracy = regret_reasons(self)
        settings, sample = self.settings, 1 if self.subsampled else 0
        searching = "" if self.phase == 2 else f"phase 1 has not ended in {self.episode} episodes: nothing is protected"
        found = f"rho_hat = {self.rho_hat:.6g} after t_bar = {self.t_bar}" if self.phase == 2 else "rho_hat"
        margin = Promise(
            "margin",
            f"the mixture found by phase 1 leaves at least {found} to every threshold",
            max(0.0, 1.0 - (1 + sample) * self.delta),
            f"{cite('widehat_rho_leq')}, with a time-uniform radius",
            first_reason(confidence_void(settings), searching),
        )
        safety = Promise(
            "safety",
            f"after phase 1 the expected costs of every episode's mixture respect the thresholds: {limits(self)}",
            self._budget.sure(6 + sample),
            f"{cite('violation_hard')}, with the mixture found by phase 1",
            first_reason(confidence_void(settings), searching),
        )
        worst = float(np.max(np.maximum(self.view.ceilings - self.view.thresholds, 0.0)))
        late = "(t_bar + open) max_i (L - alpha_i)" if self.queue.widest > 1 else "t_bar max_i (L - alpha_i)"
        times = f"(t_bar + {self.queue.unprotected})" if self.queue.widest > 1 else "t_bar"
        violation = Promise(
            "violation",
            f"the summed violation is at most {late} = {worst:.6g} {times}, however long the run",
            self._budget.sure(6 + sample),
            cite("const_viol"),
            first_reason(confidence_void(settings), searching),
        )
        rate = regret_statement(self, "L^3 |X| sqrt(|A| T ln(T|X||A|m/delta)) / min(rho_hat, rho_hat^2)")
        regret = Promise(
            "regret",
            f"the regret is O({rate}) beyond the L t_bar of phase 1{rates_note(self)}",
            self._budget.sure(
                REGRET_EVENTS + 1 + sample + (FALSE_ALARM if len(self.core.state.premises.visits) else 0.0)
            ),
            f"{cite('const_reg')}, in terms of rho_hat",
            first_reason(confidence, accuracy, searching),
        )
        promises = (*shared_promises(self), margin, safety, violation, regret, *tracking(self, regret))
        return self._ledger(*promises, assumptions=assumptions(self))
