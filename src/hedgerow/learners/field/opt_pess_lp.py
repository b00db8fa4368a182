"""OptPess-LP (Liu et al. 2021): pessimistic costs and an optimistic loss at the observed frequencies; no violation."""

from __future__ import annotations

from math import exp, log

from hedgerow.confidence.sets import SOURCE
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import HALF_SPREAD, RADIUS, SWITCH, LPRule, layers_to_go
from hedgerow.learners.guarantees import Ledger


class OptPessLP(LPLearner):
    """OptPess-LP: plans at the observed frequencies with pessimistic costs; no violation.

    With b = sqrt(Z / n), S the size of the largest layer and Delta the least margin of the baseline, the costs are
    g_hat + u and the loss l_hat - (1 + 4 L / Delta) u, where u = (1 + S L) b. The baseline plays while its own
    pessimistic cost reaches (alpha + beta) / 2 for some constraint, and whenever no policy meets alpha. With
    other sets, u = xi + (L - k - 1) min(1, 1/2 sum_x' max(hi - P_hat, P_hat - lo)) in layer k: valid because
    (P - P_hat) V is at most half the distance of P from P_hat, times the largest V.

    Args:
        seed: Seed of the learner's coin, which decides nothing here: the weight of the baseline is 0 or 1.
        sets: "source" takes b of the source; "paper", "sharp" and "sharpest" the sets of S-OPS with that preset, layer
            by layer.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.OptPessLP(world.view(), episodes=100, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"]
        1.0
    """

    kind = "opt-pess-lp"
    title = "OptPess-LP"
    source = "Liu, Zhou, Kalathil, Kumar and Tian 2021"
    recalled = "Z = ln(16 S^2 |A| L T / delta), and the form of the rate"

    @property
    def log_term(self) -> float:
        """Z = ln(16 S^2 |A| L T / delta), as we recall it."""
        layout = self.layout
        pairs = max(layout.layer_sizes) ** 2 * layout.num_actions * layout.steps
        return log(16 * pairs) + log(self.episodes) - log(self.delta)

    def _lp_rule(self) -> LPRule:
        layout = self.layout
        optimism = 1.0 + 4.0 * layout.steps / self.margin
        source = self.sets == SOURCE
        ahead = max(layout.layer_sizes) * layout.steps if source else layers_to_go(layout)
        tables = self._tables(
            RADIUS if source else HALF_SPREAD, log_term=self.log_term if source else None, loss_radius=optimism,
            cost_radius=1.0, loss_width=optimism * ahead, cost_width=ahead, joint=True,
        )  # fmt: skip
        return self._rule(tables, SWITCH, at_mean=True, tests_baseline=True)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses, and a regret if these are draws."""
        sure = self._sure_of_root() if self.sets == SOURCE else None
        regret = self._regret("L^3 sqrt(S^3 |A| T) / Delta", f"{self.source}; the form is recalled")
        return self._lp_ledger(self._safety(self.source, sure), regret)

    def _sure_of_root(self) -> float:
        """Our union bound for b: each mean and each transition probability is off by more than b, at some number of
        visits, with probability at most 2 T e^(-2 Z) (Hoeffding); S transitions off by b change a value by S L b.
        """
        unknown = self.statistics.box_rule.unknown_costs.sum() + self.layout.num_triples
        return max(0.0, 1.0 - 2.0 * float(unknown) * self.episodes * exp(-2.0 * self.log_term))
