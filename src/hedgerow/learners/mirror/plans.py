"""The plans of the family: the learner's own policy, mixed with a baseline where there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from hedgerow.checks import FloatArray
from hedgerow.learners.mirror.core import Baseline
from hedgerow.learners.protocol import Plan
from hedgerow.model.policy import Mixture, Policy, UniformMixture
from hedgerow.model.view import View

OWN, BASELINE = "own", "baseline"


@dataclass(frozen=True, eq=False, repr=False)
class MirrorPlan(Plan):
    """A plan with the numbers behind it; the same numbers are in `notes`."""

    episode: int = field(kw_only=True)
    """Counted from 0"""
    branch: str = field(kw_only=True)
    """`own`, or `baseline` if the coin of the episode chose the safe policy"""
    cost_bounds: FloatArray = field(kw_only=True)
    """(m,): upper bounds of the expected costs of the episode before the coin, valid on the clean event"""
    view: View = field(kw_only=True)
    """What the learner knows of the world: the thresholds that the bounds are held against, and their names"""

    @property
    def mixing_weight(self) -> float:
        """lambda, the probability of the baseline before the coin was tossed; 0 for learners without one"""
        return self.notes["mixing_weight"]

    def __repr__(self) -> str:
        from hedgerow import brief

        numbers = f"mixing_weight={self.mixing_weight:.4g}, cost_bounds={brief.numbers(self.cost_bounds)}"
        told = f"episode {self.episode}, {self.branch}, {numbers}"
        return brief.line("MirrorPlan", told, self.policy.in_words(brief.LONGEST - len(told) - 14))


class Baselines:
    """The safe policies of a phase, as objects that live as long as the phase: their occupancies are cached."""

    def __init__(self, view: View, baseline: Baseline) -> None:
        layout = view.layout
        self.source, self._layout, self._view = baseline, layout, view
        self._bounds = [f"bound_{i}" for i in range(len(baseline.costs))]
        self._single = Policy.trusted(layout, baseline.policies[0]) if len(baseline.policies) == 1 else None
        self.mixture: Policy | Mixture | None = self._single
        if len(baseline.policies) > 1:
            self.mixture = UniformMixture.of_table(layout, baseline.policies)

    def plan(
        self, episode: int, own: FloatArray, mixing_weight: float, branch: int, cost_bounds: FloatArray
    ) -> MirrorPlan:
        """The plan of an episode whose coin fell on `branch`: 0 for the own policy, j + 1 for the j-th baseline."""
        mine = Policy.trusted(self._layout, own)
        mixture: Policy | Mixture = mine
        if self.mixture is not None:
            mixture = Mixture.trusted((mixing_weight, self.mixture), (1.0 - mixing_weight, mine))
        notes = {"mixing_weight": mixing_weight, "branch": float(branch)}
        notes.update(zip(self._bounds, cost_bounds.tolist(), strict=True))
        plan = MirrorPlan.__new__(MirrorPlan)  # everything is known to be sound
        plan.__dict__.update(
            mixture=mixture,
            policy=mine if branch == 0 else self._chosen(branch - 1),
            notes=MappingProxyType(notes),
            episode=episode,
            branch=BASELINE if branch else OWN,
            cost_bounds=cost_bounds,
            view=self._view,
        )
        return plan

    def _chosen(self, j: int) -> Policy:
        return self._single or Policy.trusted(self._layout, self.source.policies[j])
