"""DOPE (Bura et al. 2022): optimistic in the loss and the transitions, pessimistic in the costs; no violation."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from numpy.typing import ArrayLike

from hedgerow.checks import whole_number
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, SafePolicy
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import SWITCH, LPRule
from hedgerow.learners.guarantees import Ledger
from hedgerow.model.view import View


class DOPE(LPLearner):
    """DOPE: plays a policy if its pessimistic costs respect the thresholds, else the baseline.

    With xi the radius of a row, B the sum of the radii of its transitions and Delta the least margin of the baseline,
    the program has the costs g_hat + xi + L B and the loss l_hat - (3 L / Delta) xi - (L^2 / Delta) B, over all
    transitions in the boxes. The bonus of the loss makes up for what pessimism forbids. A policy that it plays is safe
    for every P in the boxes: V(P) - V(P') = sum_k E_P'[(P - P') V] is at most L B in each step, whichever P' was
    planned with. `sharp` uses min(1, g_hat + xi) + (L - k - 1) min(1, 1/2 sum (hi - lo)) in layer k, by the same proof.

    Several constraints are not in the source: each has its rows in the program, and Delta is the least margin.

    Args:
        seed: Seed of the learner's coin, which decides nothing here: the weight of the baseline is 0 or 1.
        warmup: So many episodes are left to the baseline: a number, 0 allowed, or "source" for S^2 |A| L^3 / Delta^2
            with S the size of the largest layer. Safety does not need it.
        sharp: Whether to use the sharper pessimism, which sets="sharpest" always has.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.DOPE(world.view(), episodes=1000, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.num_warmup, learner.plan().notes["mixing_weight"]
        (432, 1.0)
    """

    kind = "dope"
    title = "DOPE"
    source = "Bura et al. 2022"
    recalled = "the form of the rate; the power of L in the warm-up was read in the authors' code"

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        warmup: int | str = "source", sharp: bool = False, replan: str = "episode", sets: str = "source",
        on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        self.warmup = warmup if warmup == "source" else whole_number("warmup, unless it is 'source',", warmup, 0)
        if not isinstance(sharp, bool):
            raise InvalidInput(f"sharp is {sharp!r}; choose True or False")
        self.sharp = sharp
        super().__init__(
            view, episodes, delta, seed, replan=replan, sets=sets, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip

    @property
    def num_warmup(self) -> int:
        """The number of episodes that are left to the baseline at first."""
        if not isinstance(self.warmup, str):
            return self.warmup
        layout = self.layout
        pairs = max(layout.layer_sizes) ** 2 * layout.num_actions
        return min(self.episodes, ceil(pairs * layout.steps**3 / self.margin**2 - 1e-9))

    def _lp_rule(self) -> LPRule:
        steps, gap = self.layout.steps, self.margin
        tables = self._pessimistic_tables(sharp=self.sharp, loss_radius=3 * steps / gap, loss_width=steps**2 / gap)
        return self._rule(tables, SWITCH, warmup=self.num_warmup)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses, and a regret if these are draws."""
        safe = self._safety(f"{self.source}{', with the sharper pessimism of this package' if self.sharp else ''}")
        return self._lp_ledger(safe, self._regret("L^3 S sqrt(|A| T) / Delta", f"{self.source}; the form is recalled"))
