"""The constant C_P of the primal player of CV-OPS: its regret after tau episodes is at most C_P sqrt(tau ln tau).

UOB-REPS on T episodes, with iota = ln(T|X||A|/delta), a = 4 sqrt(2), b = 45.7 (the widths of the paper's radii) and
eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)), has regret at most (Jin et al. 2020, constants written out)

    B(T) = 2E + L ln(|X|^2|A|)/eta + 2 eta |X||A| T + L ln(|X||A|/delta)/(2 gamma) + L ln(L/delta)/2
           + L sqrt(2T ln(1/delta))
    E    = sum_{j<k<L} a sqrt(iota |X_{j+1}|) (3 sqrt(|X_j||A|T) + sqrt(2T ln(1/delta)))          what P costs
           + (b |X_{j+1}| + a^2 |X|) iota |X_j||A| (1 + ln T)                                   of lower order, crude

delta is shared by nine events. Restarts after 1, 2, 4, ... episodes with delta_j = delta / ((j+1)(j+2)) make it
anytime: C_P is the largest value of sum_j min(L T_j, B(T_j)) / sqrt(tau ln tau) over *all* tau, also within a segment.

    layers (1, 4, 4, 1), 3 actions, delta = .05   C_P = 107 with P known, 3.5 10^3 with the leading terms of E alone

With constants of this size the first phase lasts 10^6 (P known) to 10^11 episodes: a statement of the theory, not a
setting for practice. Safety does not need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log, log1p, sqrt

from hedgerow.checks import short_repr
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.confidence.sets import certifies
from hedgerow.learners.guarantees import Promise, first_reason
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.rates import MIXED_EVERY, STEP
from hedgerow.learners.ops.settings import accuracy_void, confidence_void
from hedgerow.model.layout import Layout
from hedgerow.paper import cite

LINEAR_WIDTH = 45.7
ROOT_WIDTH = 4.0 * sqrt(2.0)
EVENTS = 9
LAST_SEGMENT = 80
"""2^80 episodes: beyond it the ratio only falls."""


def primal_constant(layout: Layout, delta: float, *, known_transitions: bool = False) -> float:
    """C_P of UOB-REPS with doubling restarts."""
    steps, played, regret, largest = layout.steps, 0.0, 0.0, 0.0
    for length, bound in segment_bounds(layout, delta, known_transitions):
        # Within a segment the ratio is largest where the trivial bound L tau meets B.
        turn = min(length, bound / steps)
        if played + turn >= 2.0:
            largest = max(largest, (regret + steps * turn) / sqrt((played + turn) * log(played + turn)))
        played += length
        regret += min(steps * length, bound)
    return largest


def segment_bounds(
    layout: Layout, delta: float, known_transitions: bool, *, lower_order: bool = True
) -> Iterator[tuple[float, float]]:
    """(T_j, B(T_j)) of the segments."""
    for j in range(LAST_SEGMENT + 1):
        share = log((j + 1.0) * (j + 2.0) * EVENTS) - log(delta)  # a logarithm: the quotient may be too small a number
        error = 0.0 if known_transitions else transition_error(layout, 2.0**j, share, lower_order)
        yield 2.0**j, 2.0 * error + known_transitions_bound(layout, 2.0**j, share)


def known_transitions_bound(layout: Layout, episodes: float, log_inverse_delta: float) -> float:
    """B(T) without E."""
    L, pairs, T = layout.steps, layout.num_states * layout.num_actions, episodes
    eta = sqrt(L * (log(L * pairs) + log_inverse_delta) / (T * pairs))
    mirror = L * log(layout.num_states * pairs) / eta + 2.0 * eta * pairs * T
    optimism = L * (log(pairs) + log_inverse_delta) / (2.0 * eta) + L * (log(L) + log_inverse_delta) / 2.0
    return mirror + optimism + L * sqrt(2.0 * T * log_inverse_delta)


def transition_error(layout: Layout, episodes: float, log_inverse_delta: float, lower_order: bool = True) -> float:
    """E: how much not knowing P costs."""
    sizes, A, T = layout.layer_sizes, layout.num_actions, episodes
    iota = log(T * layout.num_states * A) + log_inverse_delta
    error = 0.0
    for k in range(1, layout.steps):
        for j in range(k):
            root = 3.0 * sqrt(sizes[j] * A * T) + sqrt(2.0 * T * log_inverse_delta)
            error += ROOT_WIDTH * sqrt(iota * sizes[j + 1]) * root
            if lower_order:
                width = LINEAR_WIDTH * sizes[j + 1] + ROOT_WIDTH**2 * layout.num_states
                error += width * iota * sizes[j] * A * (1.0 + log(T))
    return error


COSTS_ARE_DRAWS = "costs are drawn from the same law in every episode, independently of all that happened before it"
COSTS_ARE_APART = (
    "the costs of an episode have nothing to do with its moves (A2 of docs/aggregate.md); where a cost is computed "
    "from the next state, say costs_drawn='step' (View.knowing)"
)
STEPS_ARE_FRESH = (
    "the cost of a step may have to do with the next state, but given its state and action not with what came before it"
)
CERTIFICATE_IS_OFF = "; the aggregate certificate is off until costs_drawn says more (View.knowing)"


def limits(learner: MirrorLearner) -> str:
    """The thresholds by name: `delay <= 0.5, noise <= 1`."""
    view = learner.view
    named = zip(view.constraint_names, view.thresholds.tolist(), strict=True)
    return ", ".join(f"{name} <= {value:g}" for name, value in named) or "there are none"


def assumptions(learner: MirrorLearner) -> tuple[str, ...]:
    """What the learner was told, and what it learnt from episodes that it did not plan."""
    view, logged, used = learner.view, learner.core.state.logged, learner.view.knowledge
    if not learner.settings.ties:
        used = used.without_ties()
    told = [f"it is known that {line}" for line in used.described(view.layout, view.constraint_names)]
    if view.num_constraints:
        told = [*_about_costs(learner), *told]
    if len(learner.core.rule.premises.beta) or learner.view.knowledge or logged.episodes:
        told.append(
            f"what it was told is tested by what it sees; something true is refuted with probability {FALSE_ALARM:g} "
            f"delta = {FALSE_ALARM * learner.delta:g} at most"
        )
    if logged.episodes:
        told.append(
            f"{logged.episodes} logged episodes ({logged.steps} steps): in each of them actions were chosen without "
            "seeing its costs or what would follow, and none was selected, or left out, by its outcome"
        )
    told.extend(incomplete(learner))
    return tuple(told)


def _about_costs(learner: MirrorLearner) -> list[str]:
    """What is assumed of costs, and what the baseline is told to cost."""
    view, beta = learner.view, getattr(learner, "baseline_costs", None)
    told = [COSTS_ARE_DRAWS]
    if learner.inputs.baseline and beta is not None:
        named = zip(view.constraint_names, beta.tolist(), strict=True)
        told.insert(0, f"the baseline costs at most: {', '.join(f'{name} {value:g}' for name, value in named)}")
    if view.knowledge.costs_drawn == "unknown":
        told.append(STEPS_ARE_FRESH + (CERTIFICATE_IS_OFF if learner.settings.aggregate and learner.mixes else ""))
    elif view.knowledge.costs_drawn == "apart" and certifies(view, learner.settings.choice) and learner.mixes:
        told.append(COSTS_ARE_APART)
    return told


def incomplete(learner: MirrorLearner) -> list[str]:
    """What the promises rest on where episodes were not whole."""
    logged, unknown, told = learner.core.state.logged, learner.core.state.incomplete.unknown, []
    if logged.costless:
        told.append(f"the costs of {logged.costless} logged episodes were left out, those of whole logs at a time")
    if unknown:
        told.append(
            f"{unknown} episodes with unknown values, for which the confidence sets have room: who stopped an "
            "episode, or took over, had not foreseen where the next step would lead"
        )
    if learner.queue.resolved:
        told.append(
            f"{learner.queue.resolved} outcomes came after their plans were given up, and are in the confidence sets "
            "in the place of what was unknown"
        )
    for reason, count in learner.declared.items():
        told.append(
            f"something of {count} episodes was left out, which is declared to have nothing to do with their costs or "
            f"moves: {short_repr(reason)}"
        )
    if logged.off_policy:
        told.append(
            f"{logged.off_policy} own episodes did not follow their plans to the end: the promises are about the plans"
        )
    return told


def unknown_void(learner: MirrorLearner) -> str:
    """Why bounds on regret and summed violation do not hold, or the empty string."""
    unknown = learner.core.state.incomplete.unknown
    if unknown:
        return f"{unknown} episodes with unknown values: the confidence sets keep room for these and need not shrink"
    if learner.queue.resolved:
        return f"the losses of {learner.queue.resolved} episodes came after these were given up, and were not learnt"
    if learner.episodes is not None and learner.episode > learner.episodes:
        return f"its rates were chosen for {learner.episodes} episodes, and it has learnt from {learner.episode}"
    return ""


def clean_event(learner: MirrorLearner) -> Promise:
    """All confidence sets hold the truth; `phase2_stats="discard"` makes them anew, at the same price once more."""
    phases = 2 if "phase2_stats" in learner.switches and learner.settings.phase2_stats == "discard" else 1
    return Promise(
        "confidence",
        "in every episode all transitions and mean costs lie within their confidence sets",
        max(0.0, 1.0 - phases * (1.0 - learner._budget.sure(5))),
        cite("gen_confidence", "confidenceset"),
        confidence_void(learner.settings),
    )


def shared_promises(learner: MirrorLearner) -> tuple[Promise, Promise]:
    """The clean event, and what follows for the projection of learners with constraints."""
    feasibility = Promise(
        "feasibility",
        "every projection has a solution, if some policy satisfies the constraints",
        learner._budget.sure(5),
        cite("feasibility"),
        confidence_void(learner.settings),
    )
    return clean_event(learner), feasibility


def regret_reasons(learner: MirrorLearner) -> tuple[str, str]:
    """What voids a bound on regret or violation: the confidence sets; then unknown values, and the accuracy of
    the projection.
    """
    settings, episodes = learner.settings, learner.episodes or max(1, learner.episode)
    accuracy = accuracy_void(settings, learner.eta, learner.layout.steps, episodes)
    return confidence_void(settings), first_reason(unknown_void(learner), accuracy)


def regret_statement(learner: MirrorLearner, rate: str) -> str:
    """The rate, with the factor that restarts cost at most."""
    return f"3.41 {rate}" if learner.settings.horizon == "doubling" else rate


# What the switch `stay` does to the regret (docs/stay.md) ------------------------------------------------------------


def stay_events(learner: MirrorLearner) -> int:
    """How many more events of probability delta the regret needs: the deviation of the losses while it stays."""
    return int(learner.core.state.stay.limit > 0.0)


def stay_note(learner: MirrorLearner) -> str:
    """How much staying adds to the regret at most; the empty string if there is no such rule."""
    stay, L, T = learner.core.state.stay, learner.layout.steps, float(learner.episodes or 1)
    if not stay_events(learner):
        return ""
    added = T * stay.limit + L + L * sqrt(0.5 * T * -log(learner.delta))
    return f"; while it stays with the baseline it adds at most {added:,.0f} (docs/stay.md)"


def stay_void(learner: MirrorLearner) -> str:
    """Why nothing is said of the regret, if the rule never leaves the baseline; else the empty string."""
    never = learner.core.state.stay.limit > learner.layout.steps
    return "by the forecast its own policy would hardly play: it always stays with the baseline" if never else ""


# What the switches `eta`, `gamma` and `share` do to the regret (docs/rates.md) ----------------------------------------


def rates_note(learner: MirrorLearner) -> str:
    """How much of the regret bound the rates account for, if they are not the paper's; else the empty string."""
    settings = learner.settings
    if settings.eta == settings.gamma == "paper" and settings.share == 0.0:
        return ""
    given = f"with eta = {_factor(settings.eta)}, gamma = {_factor(settings.gamma)}"
    if settings.horizon == "doubling":
        return f"; {given}"
    return f"; {given} the rates account for at most {rates_part(learner, 0):,.0f} of it"


def _factor(rate: float | str) -> str:
    return rate if isinstance(rate, str) else f"{rate:g} times the paper's"


def rates_part(learner: MirrorLearner, changes: int) -> float:
    """All terms of the regret bound in which eta, gamma or share stand, against a policy that changes so often.

    Q/eta + Delta + K gamma |X||A|T + L ln(|X||A|/delta)/(2 gamma), where q_hat <= K u. Delta, the sum of the gaps, is
    at most eta/2 V, and with adaptive rates at most sqrt(STEP GAIN D_0 V) + K L; V = K (|X||A|T + L ln(L/delta)/(2
    gamma)) bounds the sum of q_hat l_hat^2.
    """
    layout, rule, T = learner.layout, learner.core.rule.rates, float((learner.episodes or 1) - learner.begun)
    L, pairs, log_inverse_delta = layout.steps, layout.num_states * layout.num_actions, -log(learner.delta)
    rate = sqrt(L * (log(L * pairs) + log_inverse_delta) / (T * pairs))
    eta, gamma, K = rule.eta * rate, rule.gamma * rate, _overweight(learner)
    V = K * (pairs * T + L * (log(L) + log_inverse_delta) / (2.0 * gamma))
    gaps = 0.5 * eta * V
    if rule.gain > 0.0:
        gaps = sqrt(STEP * rule.gain * rule.entropy * V) + K * L
    Q = rule.entropy
    if rule.share > 0.0:
        Q += changes * (rule.entropy - L * log(rule.share)) - T / MIXED_EVERY * L * log1p(-rule.share)
    slowest = Q / eta if rule.gain == 0.0 else Q / eta + Q / (rule.gain * rule.entropy) * gaps
    optimism = L * (log(pairs) + log_inverse_delta) / (2.0 * gamma)
    return slowest + gaps + K * gamma * pairs * T + optimism + changes * L * MIXED_EVERY


def _overweight(learner: MirrorLearner) -> float:
    """K: max_i L / (alpha_i - beta_i) where the learner's policy plays with probability 1 - lambda. 1 with no baseline
    and for B-OPS, whose mirror descent sees own episodes alone.
    """
    beta, view = getattr(learner, "baseline_costs", None), learner.view
    if beta is None or not len(view.binding) or learner.core.rule.account.active:
        return 1.0
    margin = float(min(view.thresholds[i] - beta[i] for i in view.binding))
    return learner.layout.steps / margin if margin > 0.0 else float("inf")


def tracking(learner: MirrorLearner, regret: Promise) -> tuple[Promise, ...]:
    """The promise against sequences of policies, if there is a share; it is as sure as that of the regret."""
    if learner.settings.share == 0.0:
        return ()
    least = ""
    if learner.settings.horizon == "fixed":
        each = rates_part(learner, 1) - rates_part(learner, 0)
        least = f", where every change adds at most {each:,.0f}"
    statement = (
        "against any feasible policies that were fixed before the run and change now and then, the regret is bounded "
        f"like that against one{least}"
    )
    return (replace(regret, name="tracking", statement=statement, source="docs/rates.md"),)
