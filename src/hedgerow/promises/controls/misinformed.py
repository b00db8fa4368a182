"""A misinformed control: S-OPS that is told a quarter of what its baseline costs.

Its arithmetic is right, and its confidence sets hold the truth. What it was told is refuted by its own episodes.
"""

from __future__ import annotations

from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.sops import SOPS

TOLD = 0.25


class ToldTooLittle(SOPS):
    """Believes that its baseline costs a quarter of what it costs."""

    def _first_core(self) -> Core:
        self.baseline_costs = TOLD * self.baseline_costs
        return super()._first_core()

    def announce(self) -> None:
        """Say nothing: the verification sees it."""
        self.core.state.premises.numbers.said = 1
