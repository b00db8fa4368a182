"""Controls that are wrong by little, or in a place that no confidence set shows: only recomputing them refutes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.learners.mirror.plans import MirrorPlan
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.model.policy import Policy
from hedgerow.promises.twin.learners import RecomputedSOPS


class SquaresPerStep(RecomputedSOPS):
    """Adds the squares of c - g_hat step by step, as if the costs of one episode were independent of each other."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        aggregate = self.core.state.aggregate
        counted, g_hat = aggregate.episodes.copy(), aggregate.g_hat.copy()
        super().observe(episode, *more, **named)
        misses = episode.costs - g_hat[episode.rows]
        less = np.sum(misses**2, axis=0) - np.sum(misses, axis=0) ** 2
        for slot in np.flatnonzero(aggregate.episodes == counted + 1):
            aggregate.squares[slot] = np.maximum(aggregate.squares[slot] + less / aggregate.ranges[slot] ** 2, 0.0)


class LateMixing(RecomputedSOPS):
    """Computes lambda from the U of the episode before."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        late = getattr(self, "_late", self.core.state.reals.mixing)
        super().observe(episode, *more, **named)
        reals = self.core.state.reals
        self._late, reals.mixing = reals.mixing, late


class PlaysOwn(RecomputedSOPS):
    """Tosses its coin, and plays its own policy whatever that says: only the actions tell."""

    def plan(self) -> MirrorPlan:
        return replace(super().plan(), policy=Policy.trusted(self.layout, self.core.state.policy))

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        self.core.state.numbers.branch = 0  # the observed path must be possible under what was played
        super().observe(episode, *more, **named)


class CountsCheap(SOPS):
    """Its certificate leaves out the own episodes that cost more than was expected of them."""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        aggregate = self.core.state.aggregate
        names = ("sums", "squares", "visits", "episodes")
        before, generation = {name: getattr(aggregate, name).copy() for name in names}, aggregate.generation.copy()
        dear = episode.costs.sum() > aggregate.g_hat[episode.rows].sum()
        super().observe(episode, *more, **named)
        if dear:
            same = aggregate.generation == generation
            for name, array in before.items():
                getattr(aggregate, name)[same] = array[same]


class DullEstimator(SVOPS):
    """Reports l / (10 u + gamma) as its estimate: up to ten times too small. (It still learns from the right one.)"""

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        super().observe(episode, *more, **named)
        trace, gamma = self.core.buffers.trace, self.core.state.reals.gamma
        trace.estimate[:] = episode.losses / (10.0 * trace.u + gamma)
