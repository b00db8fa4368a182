"""The plans of the family: the learner's own policy, mixed with a baseline where there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from numpy.random import PCG64, Generator, SeedSequence

from hedgerow.checks import FloatArray
from hedgerow.learners.ops.state import BaselineArrays
from hedgerow.learners.plans import BASELINE, OWN, NumberedPlan
from hedgerow.model.actions import Actions
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture, Policy, UniformMixture
from hedgerow.model.view import View

ACTIONS = 1
"""The key of the streams of drawn actions, beside the coin, which has none"""


def drawn_actions(layout: Layout, policy: FloatArray, seed: int, episode: int) -> Actions:
    """The actions of an episode that plays `policy` (num_rows,), drawn beforehand; each episode has its own stream."""
    return Actions.drawn(layout, policy, Generator(PCG64(SeedSequence(seed, spawn_key=(ACTIONS, episode)))))


@dataclass(frozen=True, eq=False, repr=False)
class MirrorPlan(NumberedPlan):
    """A plan of SV-OPS, S-OPS, CV-OPS or UOB-REPS, with the numbers that it rests on.

    The same numbers are in `notes`, which become columns of results.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> plan = hr.SVOPS(view, episodes=1000, delta=0.01).plan()
        >>> plan.episode, plan.branch, plan.mixing_weight
        (0, 'own', 0.0)
    """

    cost_bounds: FloatArray = field(kw_only=True)
    """(m,): upper bounds of the expected costs of the mixture, valid while the confidence sets hold the truth."""
    view: View = field(kw_only=True)
    """What the learner knows of the world, with the thresholds that the bounds are compared with, and their names."""
    seed: int = field(kw_only=True)
    """The seed of the learner's own random choices."""

    @cached_property
    def actions(self) -> Actions:
        """The actions of this episode, drawn beforehand from `policy`, one for each state.

        Play them or draw from `policy` on the way: their law is the same. If they are followed, say so by
        `Episode(..., actions=plan.actions)`. Then, if the episode is aborted, it is known what it would have done, and
        the confidence sets need less room for it.
        """
        return drawn_actions(self.view.layout, self.policy.probabilities, self.seed, self.episode)

    @property
    def mixing_weight(self) -> float:
        """The probability lambda of the baseline before the random choice; 0 for learners without one."""
        return self.notes["mixing_weight"]

    def __repr__(self) -> str:
        from hedgerow.display import text

        numbers = f"mixing_weight={self.mixing_weight:.4g}, cost_bounds={text.numbers(self.cost_bounds)}"
        told = f"episode {self.episode}, {self.branch}, {numbers}"
        return text.line("MirrorPlan", told, self.policy.in_words(text.LONGEST - len(told) - 14))


class Baselines:
    """The safe policies of a phase, as objects that live as long as the phase: what is known of them is kept."""

    def __init__(self, view: View, baseline: BaselineArrays, seed: int, learner_key: str) -> None:
        layout, self._seed, self.learner_key = view.layout, seed, learner_key
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
            learner_key=self.learner_key,
            cost_bounds=cost_bounds,
            view=self._view,
            seed=self._seed,
        )
        return plan

    def _chosen(self, j: int) -> Policy:
        return self._single or Policy.trusted(self._layout, self.source.policies[j])
