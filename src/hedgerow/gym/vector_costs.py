"""Costs of vector environments, whichever way they reset themselves.

A vector environment stacks the costs of its n sub-environments into `info["cost"]` (n, m) with a mask `info["_cost"]`.
What happens around the end of an episode depends on `envs.metadata["autoreset_mode"]`:

    NEXT_STEP   the step after an end only resets: no action is taken there, there is no cost
    SAME_STEP   the step that ends an episode also resets: its cost is in info["final_info"]["cost"]
    DISABLED    the caller resets

    reader = VectorCosts(envs, num_costs=1)
    observations, info = envs.reset(seed=0)
    observations, rewards, terminated, truncated, info = envs.step(actions)
    costs, taken = reader.of_step(terminated, truncated, info)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, type_name, whole_number
from hedgerow.errors import InvalidInput


class StepCosts(NamedTuple):
    """The costs of one step of a vector environment.

    Examples:
        >>> import numpy as np
        >>> from hedgerow.gym import StepCosts
        >>> costs, taken = StepCosts(np.zeros((2, 1)), np.array([True, False]))
        >>> taken.tolist()
        [True, False]
    """

    costs: FloatArray
    """(n, m): the costs of the n sub-environments."""
    taken: NDArray[np.bool_]
    """(n,): whether a step was taken at all; a sub-environment that only resets takes none."""


class VectorCosts:
    """A reader for the costs of vector environments, whichever way they reset themselves.

    Call `of_step` after each `envs.step`, and `reset` after each `envs.reset`.

    Args:
        envs: A vector environment of Gymnasium whose sub-environments put their costs into `info["cost"]`.
        num_costs: The number m of costs of each sub-environment.

    Raises:
        InvalidInput: If `envs` is not a vector environment, or does not say how it resets.

    Examples:
        >>> import gymnasium
        >>> import numpy as np
        >>> from hedgerow.gym import VectorCosts
        >>> envs = gymnasium.make_vec("hedgerow/lower-bound-1-v0", num_envs=2)
        >>> reader = VectorCosts(envs, num_costs=1)
        >>> observations, info = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, info = envs.step(np.array([0, 1]))
        >>> reader.of_step(terminated, truncated, info).costs.shape
        (2, 1)
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], num_costs: int) -> None:
        if not isinstance(envs, VectorEnv):
            raise InvalidInput(f"costs are read from a vector environment of Gymnasium, not from {type_name(envs)}")
        self.num_envs, self.num_costs = envs.num_envs, whole_number("the number of costs", num_costs, 0)
        mode = envs.metadata.get("autoreset_mode")
        if mode is None:
            raise InvalidInput("the vector environment does not say how it resets: metadata['autoreset_mode']")
        self.mode = AutoresetMode(mode)
        self.reset()

    def reset(self) -> None:
        """Note that all sub-environments were reset."""
        self._ended = np.zeros(self.num_envs, dtype=bool)

    def of_step(self, terminated: ArrayLike, truncated: ArrayLike, info: Mapping[str, Any]) -> StepCosts:
        """Read the costs of one step.

        Args:
            terminated: (n,) flags that `envs.step` returned.
            truncated: (n,) flags that `envs.step` returned.
            info: The info that `envs.step` returned.

        Returns:
            The costs (n, m), and in which sub-environments (n,) a step was taken.

        Raises:
            InvalidInput: If a sub-environment took a step without a cost in its info.
        """
        ends = np.asarray(terminated, dtype=bool) | np.asarray(truncated, dtype=bool)
        if ends.shape != (self.num_envs,):
            raise InvalidInput(f"terminated and truncated have shape {ends.shape}, expected ({self.num_envs},)")
        taken = ~self._ended if self.mode is AutoresetMode.NEXT_STEP else np.ones(self.num_envs, dtype=bool)
        costs, found = self._stacked(info)
        if self.mode is AutoresetMode.SAME_STEP and ends.any():
            final, of_final = self._stacked(info.get("final_info", {}))
            costs[ends], found[ends] = final[ends], of_final[ends]
        missing = np.flatnonzero(taken & ~found)
        if missing.size:
            raise InvalidInput(f"sub-environment {missing[0]} took a step without a cost in its info")
        costs[~taken] = 0.0
        if not np.isfinite(costs).all():
            raise InvalidInput("some cost is not a finite number")
        self._ended = ends
        return StepCosts(costs, taken)

    def _stacked(self, info: Mapping[str, Any]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Costs (n, m) and which of them (n,) are there."""
        if "cost" not in info:
            return np.zeros((self.num_envs, self.num_costs)), np.zeros(self.num_envs, dtype=bool)
        costs = np.array(info["cost"], dtype=np.float64)
        if costs.size != self.num_envs * self.num_costs:
            raise InvalidInput(
                f"info['cost'] has shape {costs.shape}; {self.num_envs} sub-environments with {self.num_costs} costs "
                f"have ({self.num_envs}, {self.num_costs})"
            )
        return costs.reshape(self.num_envs, self.num_costs), np.array(info["_cost"], dtype=bool)
