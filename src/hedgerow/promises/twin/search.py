"""The search of CV-OPS by its practical rule: margin, radius, and the episode at which it ends."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.twin.formulas import J, certificate_radius
from hedgerow.promises.twin.given import Given


class Search:
    """Counts the costs of whole episodes; `t_bar` is 0 until the rule ends the search."""

    def __init__(self, given: Given, variance: bool) -> None:
        self.given, self.variance = given, variance
        m = len(given.binding)
        self.sums, self.squares = np.zeros(m), np.zeros(m)
        self.played = self.t_bar = 0
        self.margin, self.radius = -inf, inf

    def see(self, costs: FloatArray) -> None:
        """Add an episode with costs (L, m)."""
        given, binding = self.given, self.given.binding
        spent, ceilings = costs.sum(axis=0)[binding], given.ceilings[binding]
        self.squares += ((spent - self.sums / max(1, self.played)) / ceilings) ** 2
        self.sums += spent
        self.played += 1
        self.margin = float(np.min(given.view.thresholds[binding] - self.sums / self.played))
        self.radius = self._radius()
        if not self.t_bar and self.played >= 2 and self.margin >= 2.0 * self.radius:
            self.t_bar = self.played

    def _radius(self) -> float:
        """By Azuma's inequality, with `variance` or by how much costs vary: each with half of delta."""
        given, t, m = self.given, float(self.played), len(self.given.binding)
        ceilings = given.ceilings[given.binding]
        parts = 2.0 if self.variance else 1.0
        azuma = float(ceilings.max()) * sqrt(log(parts * m * t * (t + 1.0) / given.delta) / (2.0 * t))
        if not self.variance:
            return azuma
        log_term = log(2.0 * J * m / given.delta)
        varied = [
            certificate_radius(log_term, float(squares), float(ceiling)) / t
            for squares, ceiling in zip(self.squares, ceilings, strict=True)
        ]
        return min(azuma, max(varied))

    def beta(self, each: bool) -> FloatArray:
        """(m,): what the mixture costs at most: alpha - rho_hat, with `each` also mean + radius; at least 0."""
        given, binding = self.given, self.given.binding
        found: FloatArray = given.ceilings.copy()
        found[binding] = given.view.thresholds[binding] - (self.margin - self.radius)
        if each:
            found[binding] = np.minimum(found[binding], self.sums / self.played + self.radius)
        return np.maximum(found, 0.0)
