"""Learners that are not of the house: plain Python, no base class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import hedgerow as hr


class FollowTheLeader:
    """Plays the action that has lost least so far in each state, mixed with the uniform policy."""

    kind = "follow-the-leader"

    def __init__(self, view: hr.View, episodes: int | None = None, delta: float = 0.05, seed: int = 0) -> None:
        self.view, self.episodes, self.seed = view, episodes, seed
        self.sums, self.visits = np.zeros(view.layout.num_rows), np.zeros(view.layout.num_rows)
        self.uniform, self.coin = hr.Policy.uniform(view), np.random.default_rng(seed)

    def plan(self) -> hr.Plan:
        means = (self.sums / np.maximum(1, self.visits)).reshape(-1, self.view.layout.num_actions)
        best = np.zeros_like(means)
        best[np.arange(len(best)), means.argmin(axis=1)] = 1.0
        mixture = hr.Mixture((0.25, self.uniform), (0.75, hr.Policy(self.view, best)))
        return hr.Plan(mixture, mixture.draw(self.coin), {"least": float(means.min()), "bold": 0.75})

    def observe(self, episode: hr.Episode) -> None:
        self.sums[episode.rows] += episode.losses
        self.visits[episode.rows] += 1

    def state(self) -> dict[str, Any]:
        words = np.array([self.coin.bit_generator.state["state"][name] % 2**64 for name in ("state", "inc")], np.uint64)
        high = np.array([self.coin.bit_generator.state["state"][name] >> 64 for name in ("state", "inc")], np.uint64)
        return {"sums": self.sums, "visits": self.visits, "low": words, "high": high, "episodes": self.episodes or 0}

    @classmethod
    def restored(cls, view: hr.View, state: Mapping[str, Any]) -> FollowTheLeader:
        learner = cls(view, int(state["episodes"]) or None)
        learner.sums, learner.visits = state["sums"].copy(), state["visits"].copy()
        low, high = state["low"], state["high"]
        place = {name: int(low[i]) + (int(high[i]) << 64) for i, name in enumerate(("state", "inc"))}
        learner.coin.bit_generator.state = {
            "bit_generator": "PCG64", "state": place, "has_uint32": 0, "uinteger": 0,
        }  # fmt: skip
        return learner


class Uniform:
    """Plays uniformly, for ever."""

    def __init__(self, view: hr.View) -> None:
        self.view = view

    def plan(self) -> hr.Plan:
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode: hr.Episode) -> None:
        return


class Informed(Uniform):
    """Remembers what full feedback tells."""

    feedback = "full"

    def __init__(self, view: hr.View) -> None:
        super().__init__(view)
        self.losses: list[np.ndarray] = []
        self.costs: list[np.ndarray] = []

    def observe(self, episode: hr.Episode) -> None:
        assert episode.all_losses is not None
        assert episode.all_costs is not None
        np.testing.assert_array_equal(episode.losses, episode.all_losses[episode.rows])
        np.testing.assert_array_equal(episode.costs, episode.all_costs[episode.rows])
        self.losses.append(episode.all_losses)
        self.costs.append(episode.all_costs)


class Wrapped:
    """Another learner behind the bare protocol: nothing but view, plan and observe shows."""

    def __init__(self, learner: Any) -> None:
        self._learner, self.view = learner, learner.view

    def plan(self) -> hr.Plan:
        plan = self._learner.plan()
        return hr.Plan(plan.mixture, plan.policy, plan.notes)

    def observe(self, episode: hr.Episode) -> None:
        self._learner.observe(episode)
