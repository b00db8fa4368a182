"""Small environments that are awkward in one way each."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

import hedgerow as hr


class Ring(gymnasium.Env[Any, Any]):
    """States 5..8 and actions 2, 3 (on, stay); starts anywhere, ends on the way from 8, may be truncated.

    The reward of a step is the number of the state that it leaves; the cost is 0.5 for staying.
    """

    observation_space = Discrete(4, start=5)
    action_space = Discrete(2, start=2)

    def __init__(self, limit: int | None = None, reward: float | None = None, cost: Any = "own") -> None:
        self.limit, self.reward, self.cost = limit, reward, cost

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.time = int(self.np_random.integers(5, 9)), 0
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        left, self.time = self.state, self.time + 1
        terminated = left == 8 and action == 2
        if action == 2 and not terminated:
            self.state += 1
        cost = [0.5 * (action == 3)] if self.cost == "own" else self.cost
        info = {} if cost is None else {"cost": np.array(cost)}
        return self.state, left if self.reward is None else self.reward, terminated, self.time == self.limit, info


def costly_world() -> tuple[hr.CMDP, np.ndarray]:
    """Three steps, two constraints whose costs tell every row apart, and a loss."""
    layout = hr.Layout((1, 2, 2, 1), 2)
    costs = np.linspace(0.0, 1.0, 2 * layout.num_rows).reshape(2, -1)
    transitions = np.where(np.diff(layout.row_start)[layout.row_of_triple] == 2, 0.5, 1.0)
    return hr.CMDP(layout, transitions, hr.costs.DeterministicCosts(costs), [1.0, 2.0]), np.linspace(
        0, 1, layout.num_rows
    )
