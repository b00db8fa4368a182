"""What UCPD and BoB-PD share: mirror descent on occupancies within boxes, and losses by implicit exploration.

    q~(x,a,x')  = (1 - s) q_t(x,a,x') + s / (triples of the layer)             fixed share
    q_{t+1}     = argmin { D(q || q~ e^{-tilt}) : q in Delta(boxes) }          a projection without constraints

`tilt` (num_rows,) is the step size times a loss. Fixed share keeps every triple positive: without it, one that the
boxes once forced to 0 could not come back.

With bandit feedback a loss is estimated on the pairs of the path only, as UOB-REPS does (Jin, Jin, Luo, Sra, Yu 2020):
l_hat = l / (u + gamma), u the upper occupancy bounds in the boxes *before* the episode, and
gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)) as in SV-OPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.estimates.columns import load_columns, make_columns
from hedgerow.estimates.upper_occupancy import reach_of_states
from hedgerow.learners.field.base import Feedback, FieldLearner
from hedgerow.learners.field.flow_step import fill_base
from hedgerow.learners.statistics import Statistics
from hedgerow.model.counting import decide
from hedgerow.model.episode import Episode
from hedgerow.model.index import index_of
from hedgerow.model.view import View
from hedgerow.projection.projector import Projector

TOL_MASS = 1e-6
"""How far the mass of a layer in a file may be from 1."""


class FlowLearner(FieldLearner):
    """A learner whose iterate is an occupancy, with a multiplier for each constraint.

    Args:
        view: What the learner may know of the world.
        episodes: The number T of episodes that it will play.
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Seed of the learner's own random choices; it has none.
        radii: "source" or "hedgerow".
        feedback: "full", or "bandit" for the losses and costs of the visited pairs alone.
    """

    changing: ClassVar[tuple[str, ...]] = ("own_policy", "flow", "dual")
    seen: Statistics

    def __init__(self, view: View, episodes: int, delta: float, seed: int, *, radii: str, feedback: Feedback) -> None:
        if feedback not in ("full", "bandit"):
            raise InvalidInput(f"the feedback is {feedback!r}; choose 'full' or 'bandit'")
        super().__init__(view, episodes, delta, seed, radii=radii, feedback=feedback)
        layout, self.feedback = self.layout, feedback
        self.flow: FloatArray = np.zeros(layout.num_triples)
        """(num_triples,): the occupancy q of the next episode"""
        self.dual: FloatArray = np.zeros(self.view.num_constraints)
        """(m,): the multipliers of the next episode"""
        pairs = layout.num_states * layout.num_actions
        self.gamma = sqrt(layout.steps * (log(layout.steps * pairs) - log(self.delta)) / (self.episodes * pairs))
        """What implicit exploration adds to the occupancy bounds; of no use with full feedback."""
        self._layer_start = layout.row_start[layout.state_start[:-2] * layout.num_actions]
        in_layer = np.diff(np.append(self._layer_start, layout.num_triples))
        self._uniform = np.repeat(1.0 / in_layer, in_layer)
        self._index, self._log_base = index_of(layout), np.zeros(layout.num_triples)
        self._projector, self._columns = Projector(layout), make_columns(layout)
        self._descend(1.0, np.zeros(layout.num_rows))

    def _descend(self, share: float, tilt: FloatArray) -> None:
        """Replace the occupancy by the projection of q~ e^{-tilt} onto the present boxes; the policy follows."""
        boxes = self.seen.boxes
        fill_base(self._index, self.flow, self._uniform, share, tilt, self._log_base)
        found = self._projector.project(self._log_base, boxes.lower, boxes.upper)
        if not found.solved:
            raise CertificateError(
                f"{self.title} cannot go on after episode {self.episode}: a projection without constraints ended with "
                f"a residual of {found.residuals.worst:.2g}; please report the world"
            )
        np.exp(found.log_occupancy, out=self.flow)
        self.own_policy[:] = found.policy
        self._keep_bounds()

    def _keep_bounds(self) -> None:
        """Keep the boxes as the policy meets them: u of the next episode must not see that episode."""
        if self.feedback == "bandit":
            boxes = self.seen.boxes
            load_columns(self._index, boxes.lower, boxes.upper, self.own_policy, self._columns)

    def _estimated(self, episode: Episode, losses: FloatArray) -> FloatArray:
        """(num_rows,): losses (L,) of the path divided by u + gamma, 0 elsewhere.

        The loss of an episode that did not follow the plan says nothing about the plan: it is left out.
        """
        estimate = np.zeros(self.layout.num_rows)
        if follows_the_plan(episode):
            rows, reach = episode.rows, np.zeros(len(episode.rows))
            reach_of_states(self._index, self._columns, rows // self.layout.num_actions, len(rows), reach)
            estimate[rows] = losses / (self.own_policy[rows] * reach + self.gamma)
        return estimate

    def _masses(self) -> FloatArray:
        """(num_rows,): q(x,a) of the next episode."""
        masses: FloatArray = np.add.reduceat(self.flow, self.layout.row_start[:-1])
        return masses

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(state)
        mass = np.add.reduceat(self.flow, self._layer_start)
        if np.any(self.flow < 0.0) or np.any(np.abs(mass - 1.0) > TOL_MASS) or np.any(self.dual < 0.0):
            raise InvalidInput(f"this is no state of {self.title}: a flow is no occupancy, or a multiplier is negative")
        if np.any(self.dual > self.layout.steps * self.episode):  # an episode adds a cost at most
            raise InvalidInput(f"this is no state of {self.title}: {self.episode} episodes make no such multiplier")
        self._keep_bounds()


def follows_the_plan(episode: Episode) -> bool:
    """Whether the policy of the plan chose all actions, to the end, and all costs are known."""
    counting = decide(episode)
    return counting.planned and counting.gaps is None


def everything(episode: Episode) -> tuple[FloatArray, FloatArray]:
    """The losses (num_rows,) and costs (num_rows, m) of all pairs, which `observe` demands with full feedback."""
    assert episode.all_losses is not None
    assert episode.all_costs is not None
    return episode.all_losses, episode.all_costs
