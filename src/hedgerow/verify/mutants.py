"""Mutants: sound learners with one constant that is wrong by a factor. 1 is the right one.

    cost_log, transition_log       the logarithms behind the bounds of mean costs and of transitions
    certificate_log, ball_log      ln(1/delta) of the aggregate certificate and of the balls
    ceiling                        what an episode costs at most, in the mixing weight and in the certificate
    eta, gamma                     the rates
    search_radius                  the radius of CV-OPS's search
    squares                        VV of the certificate
    mixing                         lambda, as it is announced and played
    coin                           the probability of the baseline, as it is played; lambda is announced

`power.py` finds out how near to 1 a factor may come before no check notices it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.learners.ops.cv_ops import MEMORY_BUDGET
from hedgerow.learners.ops.settings import Preset
from hedgerow.learners.ops.state import Core
from hedgerow.learners.plans import NumberedPlan
from hedgerow.model.view import View
from hedgerow.verify.twin.watcher import Recomputed, RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS


class Mutant(Recomputed):
    """Its constants are those of the learner times `factors`."""

    factors: Mapping[str, float]

    def _make_core(self, *arguments: Any, **options: Any) -> Core:
        core, times = super()._make_core(*arguments, **options), self.factors
        rule, search = core.rule, core.search
        radii = rule.box.radii.replace(
            cost_log=rule.box.radii.cost_log * times["cost_log"],
            transition_log=rule.box.radii.transition_log * times["transition_log"],
        )
        aggregate = rule.aggregate.replace(
            log_inverse_delta=rule.aggregate.log_inverse_delta * times["certificate_log"],
            ceilings=rule.aggregate.ceilings * times["ceiling"],
        )
        ball = rule.ball.replace(log_inverse_delta=rule.ball.log_inverse_delta * times["ball_log"])
        rule = rule.replace(box=rule.box.replace(radii=radii), aggregate=aggregate, ball=ball)
        search = search.replace(radius_scale=search.radius_scale * times["search_radius"])
        return core.replace(rule=rule, search=search)

    def _make_baseline(self, policies: FloatArray, costs: FloatArray, constrained: bool = True) -> BaselineArrays:
        made = super()._make_baseline(policies, costs, constrained)
        return made.replace(ceilings=made.ceilings * self.factors["ceiling"])

    def _start(self, core: Core) -> None:
        super()._start(core)
        core.state.reals.eta *= self.factors["eta"]
        core.state.reals.gamma *= self.factors["gamma"]


class MutantSVOPS(Mutant, RecomputedSVOPS):
    """SV-OPS."""

    def __init__(
        self, view: View, episodes: int | None, delta: float, preset: Preset = "paper", seed: int = 0, *,
        transitions: ArrayLike | None = None, cost_log: float = 1.0, transition_log: float = 1.0, eta: float = 1.0,
        gamma: float = 1.0, **switches: Any,
    ) -> None:  # fmt: skip
        self.factors = {**RIGHT, "cost_log": cost_log, "transition_log": transition_log, "eta": eta, "gamma": gamma}
        super().__init__(view, episodes, delta, preset, seed, transitions=transitions, **switches)


class MutantSOPS(Mutant, RecomputedSOPS):
    """S-OPS."""

    def __init__(
        self, view: View, episodes: int | None, delta: float, preset: Preset = "paper", seed: int = 0, *,
        baseline: Any, baseline_costs: Any = None, allow_no_margin: bool = False, transitions: ArrayLike | None = None,
        cost_log: float = 1.0, transition_log: float = 1.0, certificate_log: float = 1.0, ball_log: float = 1.0,
        ceiling: float = 1.0, eta: float = 1.0, gamma: float = 1.0, squares: float = 1.0, mixing: float = 1.0,
        coin: float = 1.0, **switches: Any,
    ) -> None:  # fmt: skip
        self.factors = {
            **RIGHT, "cost_log": cost_log, "transition_log": transition_log, "certificate_log": certificate_log,
            "ball_log": ball_log, "ceiling": ceiling, "eta": eta, "gamma": gamma, "squares": squares, "mixing": mixing,
            "coin": coin,
        }  # fmt: skip
        super().__init__(
            view, episodes, delta, preset, seed, baseline=baseline, baseline_costs=baseline_costs,
            allow_no_margin=allow_no_margin, transitions=transitions, **switches,
        )  # fmt: skip


class MutantCVOPS(Mutant, RecomputedCVOPS):
    """CV-OPS."""

    def __init__(
        self, view: View, episodes: int | None, delta: float, preset: Preset = "paper", seed: int = 0, *,
        memory_budget: int = MEMORY_BUDGET, primal_constant: float | None = None,
        transitions: ArrayLike | None = None, search_radius: float = 1.0, **switches: Any,
    ) -> None:  # fmt: skip
        self.factors = {**RIGHT, "search_radius": search_radius}
        super().__init__(
            view, episodes, delta, preset, seed, memory_budget=memory_budget, primal_constant=primal_constant,
            transitions=transitions, **switches,
        )  # fmt: skip


class SteppedSOPS(MutantSOPS):
    """S-OPS whose mistakes are made between the compiled steps: `squares`, `mixing`, `coin`."""

    def plan(self) -> NumberedPlan:
        reals = self.core.state.reals
        announced = reals.mixing
        reals.mixing = announced * self.factors["coin"]
        super().plan()
        reals.mixing = announced
        return self._open_plan()

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        squares = self.core.state.aggregate.squares.copy()
        counted = self.core.state.aggregate.episodes.copy()
        super().observe(episode, *more, **named)
        aggregate, reals = self.core.state.aggregate, self.core.state.reals
        added = aggregate.squares - squares
        now = (aggregate.episodes == counted + 1)[:, np.newaxis]
        aggregate.squares[:] = np.where(now, squares + self.factors["squares"] * added, aggregate.squares)
        reals.mixing = min(1.0, reals.mixing * self.factors["mixing"])


RIGHT = dict.fromkeys(
    (
        "cost_log", "transition_log", "certificate_log", "ball_log", "ceiling", "eta", "gamma", "search_radius",
        "squares", "mixing", "coin",
    ),
    1.0,
)  # fmt: skip
STEPPED = ("squares", "mixing", "coin")
