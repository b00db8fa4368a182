"""The numbers in the proofs of the mirror-descent family, as columns and facts of a run that is watched with `notes`.

Numbers that do not exist in a run, such as the margin that a learner without a search has found, are NaN.
"""

from __future__ import annotations

from math import inf, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.learners.mirror.notes import ODDS, Notes, NoteSums, NoteTallies
from hedgerow.learners.mirror.regret_constants import primal_constant
from hedgerow.learners.mirror.simplex_ogd import regret_constant
from hedgerow.learners.mirror.spending import make_spending
from hedgerow.planning.induction import backward_induction

if TYPE_CHECKING:
    from hedgerow.learners.mirror.watcher import MirrorWatcher

COLUMNS = {
    "width": "width",  # sum |q - q_hat|_1 of the learner's own policy and its iterate
    "weighted_width": "weighted",  # sum (1 - lambda) |q - q_hat|_1
    "weighted_upper": "upper",  # sum (1 - lambda) |u_hat - q|_1; NaN unless the estimator is watched
    "radii": "radii",  # 2 sum xi^T q_hat
    "residuals": "residuals",  # sum of the cost residuals of the projections
}


def proof_columns(notes: Notes, reached: int) -> dict[str, NDArray[Any]]:
    """Sums so far at the first `reached` checkpoints (reached,)."""
    columns = {name: notes.mark_sums[:reached, NoteSums.place(field)] for name, field in COLUMNS.items()}
    return columns if len(notes.optimism) else {**columns, "weighted_upper": np.full(reached, nan)}


def proof_facts(watcher: MirrorWatcher, notes: Notes, comparator: FloatArray) -> dict[str, float | int | None]:
    """The facts of the run, one number each; `comparator` is q* (num_rows,).

    steps, log_argument          L, and ln(|X||A|m/delta): what stands in the logarithms of the bounds beside ln T
    ..._breaches                 episodes that began with a mean cost, a transition row, a row by its ball, the sums of
                                 the aggregate certificate outside their sets
    ..._share                    the probability that this may ever happen, as a multiple of delta; 0 where it cannot
    honest_baseline              1 if there is a baseline that costs no more than it was said to
    first_mixing                 lambda_0
    coin_0, coin_1, ...          log-likelihood ratios of the played branches for coins with other odds (`ODDS`)
    optimism, optimism_bound     max over pairs of sum (l_hat - (q/u) l), and ln(|X||A|/delta) / (2 gamma)
    weighted_optimism_...        sum a^T (l_hat - (q/u) l) for three kinds of weights a_t in [0, 2 gamma]
    weighted_optimism_bound      L ln(L/delta)
    upper_bound                  the bound of sum (1 - lambda) |u_hat - q|_1 by the widths of the boxes
    bias, bias_bound             sum (l - E l_hat)^T q_hat; sum |u - q|_1 + gamma times the pairs, for SV-OPS
    bias_seen, bias_seen_bound   sum (l - l_hat)^T q_hat; and L sqrt(T ln(1/delta) / 2) more
    searched, margin             whether the learner searches; the exact margin of the mixture that it found
    ..._at_stop                  V, unsafe episodes and R when the search ended
    primal_ratio, primal_bound   max of (regret of the primal player) / sqrt(t ln t); C_P of the theory
    dual_ratio, dual_bound       max of (regret of the dual player) / sqrt(t); C_D
    """
    learner, watch, layout, stop = watcher.learner, watcher.watch, watcher.learner.layout, watcher.at_stop
    pairs, searched = layout.num_states * layout.num_actions, hasattr(learner, "rho_hat")
    binding = len(learner.view.binding)
    unknowns, _, _, shares = make_spending(learner.view, learner.settings, mixes=learner.mixes)
    return {
        "steps": layout.steps,
        "log_argument": log(pairs * max(1, learner.view.num_constraints)) - log(learner.delta),
        **{name: getattr(notes.tallies, name) for name in NoteTallies.fields},
        "cost_share": shares.costs,
        "transition_share": shares.transitions if unknowns.num_triples else 0.0,
        "ball_share": shares.balls,
        "aggregate_share": shares.aggregate,
        "honest_baseline": int(len(watch.baseline) > 0 and not watch.tallies.false_baseline),
        "first_mixing": watch.sums.first_mixing,
        **{f"coin_{j}": float(notes.coin[j]) for j in range(len(ODDS))},
        "optimism": float(np.max(notes.optimism)) if len(notes.optimism) else nan,
        "optimism_bound": (log(pairs) - log(learner.delta)) / (2.0 * learner.gamma),
        **_estimator_facts(watcher, notes),
        "searched": int(searched),
        "margin": stop.margin if stop else nan,
        "violation_at_stop": stop.violation if stop else nan,
        "unsafe_at_stop": stop.unsafe if stop else nan,
        "regret_at_stop": stop.loss - float(stop.losses @ comparator) if stop else nan,
        "primal_ratio": _primal_ratio(watcher, notes) if searched else nan,
        "primal_bound": primal_constant(layout, learner.delta) if searched else nan,
        "dual_ratio": notes.sums.dual_ratio if searched else nan,
        "dual_bound": regret_constant(binding, float(layout.steps)) if searched else nan,
    }


def _estimator_facts(watcher: MirrorWatcher, notes: Notes) -> dict[str, float]:
    """Both sides of the inequalities about the loss estimator; NaN where it is not watched.

    Given the past, l_hat^T q_hat lies in [0, L], because q_hat <= u: its sum is within L sqrt(T ln(1/delta) / 2) of the
    sum of its conditional means, by Azuma's inequality.
    """
    sums, learner, L = notes.sums, watcher.learner, watcher.learner.layout.steps
    played, log_inverse_delta = watcher.stage.scores.tallies.played, -log(learner.delta)
    known = sums.upper + sums.exploring
    found = {
        "weighted_optimism_all": sums.weighted_all,
        "weighted_optimism_iterate": sums.weighted_iterate,
        "weighted_optimism_chosen": sums.weighted_chosen,
        "weighted_optimism_bound": L * (log(L) + log_inverse_delta),
        "upper_bound": sums.upper_bound,
        "bias": sums.bias,
        "bias_bound": known,
        "bias_seen": sums.bias_seen,
        "bias_seen_bound": known + L * sqrt(0.5 * played * log_inverse_delta),
    }
    return found if len(notes.optimism) else dict.fromkeys(found, nan)


def _primal_ratio(watcher: MirrorWatcher, notes: Notes) -> float:
    """The largest (regret of the primal player) / sqrt(t ln t) at the checkpoints t >= 2 of the search."""
    cmdp, last, largest = watcher.stage.cmdp, getattr(watcher.learner, "t_bar", None) or inf, -inf
    reached = watcher.stage.scores.tallies.next_mark
    for mark, t in enumerate(watcher.stage.curves.marks[:reached].tolist()):
        if 2 <= t <= last:
            best = backward_induction(cmdp.layout, cmdp.transitions, notes.mark_primal[mark]).value
            largest = max(largest, (float(notes.mark_sums[mark, NoteSums.place("primal")]) - best) / sqrt(t * log(t)))
    return largest
