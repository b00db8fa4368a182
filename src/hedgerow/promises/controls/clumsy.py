"""Controls that play or project something else than they planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.rescue import rescue
from hedgerow.learners.mirror.safe_search import Search
from hedgerow.learners.mirror.state import BRANCH, MIXING, OPEN
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.model.layout import Layout
from hedgerow.promises.observation import marks_of
from hedgerow.promises.specs import RunSpec, ground_of, make_learner, make_losses
from hedgerow.promises.witness import Witness
from hedgerow.simulation.scoring import FALSE_BASELINE


def arguments(spec: RunSpec, learner: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a step-wise witness of a broken learner class (or of the spec's own, if None) is made of."""
    where = ground_of(spec)
    adversary, rate = make_losses(spec, where)
    positional = (where.cmdp, adversary, make_learner(spec, where, learner), spec.seed)
    named = {"pursuit": rate, "estimator": spec.estimator, "step_wise": True, "marks": marks_of(spec)}
    return positional, {**named, "audit": spec.audit}


# One coin per step ----------------------------------------------------------------------------------------------------


class PerStepWitness(Witness):
    """Plays lambda pi_diamond(a|x) + (1 - lambda) pi_hat(a|x): another policy than the mixture, and scored as such."""

    def _plays(self, core: Core) -> FloatArray:
        state = core.state
        state.numbers[BRANCH] = 0  # the observed path must be possible under the learner's own policy
        lam = float(state.reals[MIXING])
        return np.asarray(lam * core.baseline.policies[0] + (1.0 - lam) * state.policy)

    def _score_plan(self, core: Core) -> None:
        policy, reals = core.state.policy, core.state.reals
        own, lam = policy.copy(), float(reals[MIXING])
        policy[:], reals[MIXING] = self._plays(core), 0.0
        super()._score_plan(core)
        policy[:], reals[MIXING] = own, lam


def per_step(spec: RunSpec) -> Witness:
    positional, named = arguments(spec, None)
    return PerStepWitness(*positional, **named)


# One index for ever ---------------------------------------------------------------------------------------------------


class IndexOnce(CVOPS):
    """Draws one policy of the mixture when the search ends, plays no other, and still believes the mixture's costs."""

    def _second_core(self, search: Search) -> Core:
        kept = int(self.coin.integers(len(search.policies)))
        alone = search.policies[kept : kept + 1].copy()
        return self._make_core(self._make_baseline(alone, self._found_costs(search)), search=search)


class IndexOnceWitness(Witness):
    """Holds the learner to what it claims: the costs are those of the mixture, so the baseline counts as honest."""

    def _follow(self) -> None:
        super()._follow()
        self.score.tallies[FALSE_BASELINE] = 0


def index_once(spec: RunSpec) -> Witness:
    positional, named = arguments(spec, IndexOnce)
    return IndexOnceWitness(*positional, **{**named, "step_wise": False})


# A projection onto wrong transitions ----------------------------------------------------------------------------------

WRONG = 0.9
"""The least probability of the last successor in the wrong boxes."""


def wrong_boxes(layout: Layout) -> tuple[FloatArray, FloatArray]:
    """Boxes (num_triples,) that ask for the last successor of every row; right where there is only one."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    several = np.diff(layout.row_start) > 1
    last = layout.row_start[1:][several] - 1
    upper[np.repeat(several, np.diff(layout.row_start))] = 1.0 - WRONG
    upper[last], lower[last] = 1.0, WRONG
    lower[layout.row_start[:-1][~several]] = 1.0
    return lower, upper


class WrongBox(SVOPS):
    """Estimates rightly and projects wrongly."""

    def _first_core(self) -> Core:
        core = super()._first_core()
        self.wrong = wrong_boxes(self.layout)
        problem = core.buffers.problem._replace(lower=self.wrong[0], upper=self.wrong[1])
        return core._replace(buffers=core.buffers._replace(problem=problem))

    def _complete(self) -> None:
        state = self.core.state
        if state.numbers[OPEN]:
            boxes = state.boxes._replace(lower=self.wrong[0], upper=self.wrong[1])
            rescue(self.layout, self.core._replace(state=state._replace(boxes=boxes)))
        super()._complete()


def wrong_box(spec: RunSpec) -> Witness:
    positional, named = arguments(spec, WrongBox)
    return Witness(*positional, **named)
