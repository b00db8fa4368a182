"""Mutants: sound learners with one constant that is wrong by a factor; 1 is the right one.

`hedgerow verify --power` finds out how near to 1 a factor may come before no check notices it any more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, TypeVar

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.api import NumberedPlan
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.learners.ops.state import Core
from hedgerow.verify.controls import with_logs
from hedgerow.verify.twin_watcher import Recomputed, RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS

RIGHT = dict.fromkeys(
    (
        "cost_log", "transition_log",  # the logarithms behind the bounds of mean costs and of transitions
        "certificate_log", "ball_log",  # ln(1/delta) of the aggregate certificate and of the balls
        "ceiling",  # what an episode costs at most, in the mixing weight and in the certificate
        "eta", "gamma",  # the rates
        "search_radius",  # the radius of CV-OPS's search
        "squares",  # VV of the certificate
        "mixing",  # lambda, as it is announced and played
        "coin",  # the probability of the baseline, as it is played; lambda is announced
    ),
    1.0,
)  # fmt: skip
STEPPED = ("squares", "mixing", "coin")
M = TypeVar("M", bound="Mutant")


def mutable(*constants: str) -> Callable[[type[M]], type[M]]:
    """Let the constructor of a mutant take a factor for each of these constants, as keywords that are 1 by default."""

    def decorate(cls: type[M]) -> type[M]:
        construct = cls.__init__

        def construct_mutant(self: M, *arguments: Any, **options: Any) -> None:
            self.factors = {**RIGHT, **{name: options.pop(name, 1.0) for name in constants}}
            construct(self, *arguments, **options)

        *own, switches = inspect.signature(construct).parameters.values()
        more = [Parameter(name, Parameter.KEYWORD_ONLY, default=1.0, annotation="float") for name in constants]
        construct_mutant.__signature__ = Signature([*own, *more, switches])  # type: ignore[attr-defined]
        cls.__init__ = construct_mutant  # type: ignore[method-assign,assignment]
        return cls

    return decorate


class Mutant(Recomputed):
    """Its constants are those of the learner times `factors`."""

    factors: Mapping[str, float]

    def _make_core(self, *arguments: Any, **options: Any) -> Core:
        times = self.factors
        core = with_logs(super()._make_core(*arguments, **options), lambda name, value: value * times[name])
        aggregate, search = core.sets.rule.aggregate, core.search
        rule = core.sets.rule.replace(aggregate=aggregate.replace(ceilings=aggregate.ceilings * times["ceiling"]))
        sets = core.sets.replace(rule=rule)
        return core.replace(sets=sets, search=search.replace(radius_scale=search.radius_scale * times["search_radius"]))

    def _make_baseline(self, policies: FloatArray, costs: FloatArray, constrained: bool = True) -> BaselineArrays:
        made = super()._make_baseline(policies, costs, constrained)
        return made.replace(ceilings=made.ceilings * self.factors["ceiling"])

    def _start(self, core: Core) -> None:
        super()._start(core)
        core.state.reals.eta *= self.factors["eta"]
        core.state.reals.gamma *= self.factors["gamma"]


@mutable("cost_log", "transition_log", "eta", "gamma")
class MutantSVOPS(Mutant, RecomputedSVOPS):
    """SV-OPS."""


@mutable(*(name for name in RIGHT if name != "search_radius"))
class MutantSOPS(Mutant, RecomputedSOPS):
    """S-OPS."""


@mutable("search_radius")
class MutantCVOPS(Mutant, RecomputedCVOPS):
    """CV-OPS."""


class SteppedSOPS(MutantSOPS):
    """S-OPS whose mistakes are made between the compiled steps: `squares`, `mixing`, `coin`."""

    def plan(self, **how: Any) -> NumberedPlan:
        reals = self.core.state.reals
        announced = reals.mixing
        reals.mixing = announced * self.factors["coin"]
        super().plan(**how)
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
