"""Overconfident controls: too small a logarithm, false knowledge, a log that was selected by its costs.

Their own arithmetic cannot notice what is wrong. Only the truth refutes them: their confidence sets lose it more often
than they may.
"""

from __future__ import annotations

from math import log

import numpy as np

from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.model.episode import Episode
from hedgerow.promises.logged import Logged

TOO_SURE = 100.0


class HundredDelta(SOPS):
    """All sets are made for 100 delta; it promises delta."""

    def _first_core(self) -> Core:
        core = super()._first_core()
        rule, less = core.rule, log(TOO_SURE)
        radii, aggregate, ball = rule.box.radii, rule.aggregate, rule.ball
        wrong = rule.replace(
            box=rule.box.replace(
                radii=radii.replace(cost_log=radii.cost_log - less, transition_log=radii.transition_log - less)
            ),
            aggregate=aggregate.replace(log_inverse_delta=aggregate.log_inverse_delta - less),
            ball=ball.replace(log_inverse_delta=ball.log_inverse_delta - less),
        )
        return core.replace(rule=wrong)


class FalseTies(SVOPS):
    """Believes that all rows share their laws, as far as their sizes allow."""

    def _first_core(self) -> Core:
        rows = np.zeros(self.layout.num_rows, dtype=np.int64)
        self.view = self.view.knowing(same_transitions=np.diff(self.layout.row_start), same_costs=rows)
        return super()._first_core()

    def announce(self) -> None:
        """Say nothing: the verification sees it."""
        self.core.state.premises.numbers.said = 1


class CountsAll(SVOPS):
    """Believes that costs of one episode are independent, and counts all visits of a class where one is enough."""

    def _first_core(self) -> Core:
        self.view = self.view.knowing(independent_costs=True)
        return super()._first_core()


class KeepsCheap(Logged):
    """Its log has lost the dearer half of its episodes."""

    def announce(self) -> None:
        """Say nothing: the verification sees it."""
        self.core.state.premises.numbers.said = 1

    def kept(self, log: list[Episode]) -> list[Episode]:
        sums = [float(episode.costs.sum()) for episode in log]
        return [episode for episode, cost in zip(log, sums, strict=True) if cost <= np.median(sums)]
