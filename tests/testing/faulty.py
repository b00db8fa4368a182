"""A sound learner with a coin and a state, and one class for each fault that somebody could make."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

import hedgerow as hr


class Sound:
    """Half of the time uniform, half of the time the action that has cost least so far; a coin of its own."""

    def __init__(self, view: hr.View, episodes: int, delta: float, seed: int = 0) -> None:
        self.view = view
        self.episodes, self.seed = episodes, seed
        self.sums = np.zeros(view.layout.num_rows)
        self.coin = self.new_coin()
        self.pending: hr.Plan | None = None
        self.done = 0

    def new_coin(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def cheapest(self) -> np.ndarray:
        table = self.sums.reshape(-1, self.view.layout.num_actions)
        return np.eye(self.view.layout.num_actions)[table.argmin(axis=1)]

    def plan(self) -> Any:
        if self.pending is None:
            mixture = hr.Mixture((0.5, hr.Policy.uniform(self.view)), (0.5, hr.Policy(self.view, self.cheapest())))
            self.pending = hr.Plan(mixture, mixture.draw(self.coin), {"total": self.sums.sum()})
        return self.pending

    def observe(self, episode: hr.Episode) -> None:
        self.sums[episode.rows] += 1.0 + episode.costs.sum(axis=1)
        self.pending = None
        self.done += 1

    def state(self) -> dict[str, Any]:
        bits = self.coin.bit_generator.state["state"]
        coin = np.array([str(bits["state"]), str(bits["inc"])])
        return {"sums": self.sums.copy(), "numbers": np.array([self.episodes, self.seed]), "coin": coin}

    @classmethod
    def restored(cls, view: hr.View, state: Mapping[str, Any]) -> Any:
        learner = cls(view, int(state["numbers"][0]), 0.1, int(state["numbers"][1]))
        learner.sums[:] = state["sums"]
        bits = learner.coin.bit_generator.state
        bits["state"] = {"state": int(str(state["coin"][0])), "inc": int(str(state["coin"][1]))}
        learner.coin.bit_generator.state = bits
        return learner


class NoView(Sound):
    """Forgets to say which view it is for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        del self.view


class WrongSum(Sound):
    """Action probabilities that sum to 0.9, by a way around the checks of a policy."""

    def plan(self) -> Any:
        return hr.Plan(hr.Policy.trusted(self.view.layout, 0.9 * self.cheapest().ravel()))


class NoPlan(Sound):
    """Returns an array."""

    def plan(self) -> Any:
        return self.cheapest()


class OtherLayout(Sound):
    """Plans for another world."""

    def plan(self) -> Any:
        return hr.Plan(hr.Policy.uniform(hr.Layout((1, 1), 2)))


class NoteOfNothing(Sound):
    """Notes the mean of no cost as NaN, before the first episode."""

    def plan(self) -> Any:
        plan = super().plan()
        return hr.Plan(plan.mixture, plan.policy, {"mean": np.nan if self.done == 0 else 1.0})


class NoConstraints(Sound):
    """Never thought of worlds without constraints."""

    def observe(self, episode: hr.Episode) -> None:
        episode.costs.max(axis=1)
        super().observe(episode)


class Stray(Sound):
    """Plays what is no part of its mixture."""

    def plan(self) -> Any:
        plan = super().plan()
        other = 0.75 * self.cheapest() + 0.25 / self.view.layout.num_actions
        return hr.Plan(plan.mixture, hr.Policy(self.view, other))


class TwoCoins(Sound):
    """Tosses again when it is asked twice."""

    def plan(self) -> Any:
        self.pending = None
        return super().plan()


class Unprepared(Sound):
    """Reads its plan in observe, whether there is one or not."""

    def observe(self, episode: hr.Episode) -> None:
        assert self.pending.policy is not None  # type: ignore[union-attr]
        super().observe(episode)


class Unseeded(Sound):
    """Takes a seed and does not use it."""

    def new_coin(self) -> np.random.Generator:
        return np.random.default_rng()


class Shared(Sound):
    """Keeps its sums in the class, for all learners together."""

    kept: dict[int, np.ndarray] = {}  # noqa: RUF012 - the fault

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sums = self.kept.setdefault(len(self.sums), self.sums)
        self.sums[:] = 0.0


class NumpyRandom(Sound):
    """Draws from the global generator of numpy."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        np.random.rand()  # noqa: NPY002 - the fault


class PythonRandom(Sound):
    """Draws from the global generator of Python."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        random.random()


class Forgetful(Sound):
    """Writes down everything but its coin."""

    @classmethod
    def restored(cls, view: hr.View, state: Mapping[str, Any]) -> Any:
        learner = super().restored(view, state)
        learner.coin = learner.new_coin()
        return learner


class Aliased(Sound):
    """Hands out its own arrays as its state."""

    def state(self) -> dict[str, Any]:
        return {**super().state(), "sums": self.sums}


class Unwritable(Sound):
    """Has an object in its state."""

    def state(self) -> dict[str, Any]:
        return {**super().state(), "coin": self.coin}


class Rewriter(Sound):
    """Writes its next policy into the last plan."""

    def observe(self, episode: hr.Episode) -> None:
        array = self.pending.mixture.parts[1][1].probabilities if self.pending else None  # type: ignore[union-attr]
        super().observe(episode)
        if array is not None:
            array.setflags(write=True)
            array[:] = np.roll(array, 1)
            array.setflags(write=False)


class Meddler(Sound):
    """Changes the costs that it was told."""

    def observe(self, episode: hr.Episode) -> None:
        super().observe(episode)
        episode.losses.setflags(write=True)
        episode.losses[:] = 0.0
        episode.losses.setflags(write=False)


class Overrun(Sound):
    """Has room for so many episodes and does not look."""

    def observe(self, episode: hr.Episode) -> None:
        room = np.zeros(self.episodes)
        room[self.done] = 1.0
        super().observe(episode)


class Choosy(Sound):
    """Declines every world."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise hr.errors.InvalidInput("not this one")


class Careless(Sound):
    """Calls a library with wrong arguments when it is built."""

    def __init__(self, view: hr.View, *arguments: Any, **options: Any) -> None:
        super().__init__(view, *arguments, **options)
        hr.Policy(view, np.zeros(view.layout.num_rows))
