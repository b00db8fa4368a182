"""A constrained MDP as a Gymnasium environment: Discrete spaces, reward = -loss, the costs in `info["cost"]`.

An episode starts in x_0 and ends (terminated) after L steps in x_L. The costs of an episode are one draw of the
matrix G_t, as in simulations. Worlds of the catalogue have Gymnasium's names, such as `hedgerow/dope-media-v0`.

    >>> from hedgerow import worlds
    >>> env = CMDPEnv(worlds.make("lower-bound-1"))
    >>> env.reset(seed=0)
    (0, {})
    >>> state, reward, terminated, truncated, info = env.step(1)
    >>> state, terminated, truncated, info["cost"].shape
    (1, True, False, (1,))
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import ArrayLike

from hedgerow import registry, worlds
from hedgerow.checks import FloatArray, did_you_mean, whole_number
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.view import View

TableEntry = list[tuple[float, int, float, bool]]


class CMDPEnv(gymnasium.Env[Any, Any]):
    """A world as a Gymnasium environment with Discrete spaces.

    The observation is the number of the state, layer after layer. The reward is minus the loss, and `info["cost"]`
    holds the costs (m,) of the step. An episode terminates after L steps in the terminal state. The costs of an episode
    are one draw of the world's cost matrix, as in simulations.

    Args:
        world: A CMDP, or a world of the catalogue.
        loss: (num_rows,) losses in [0, 1], or a table (states, actions); None takes the world's own.
        render_mode: None, or "ansi" for a line of text with the labels of the world.

    Raises:
        InvalidInput: If the world has no loss of its own and none is given.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.gym import CMDPEnv
        >>> env = CMDPEnv(hr.worlds.make("lower-bound-1"))
        >>> state, info = env.reset(seed=0)
        >>> state, reward, terminated, truncated, info = env.step(1)
        >>> state, reward, terminated, info["cost"].shape
        (1, -1.0, True, (1,))
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as the base class declares it

    def __init__(self, world: CMDP | Any, loss: ArrayLike | None = None, *, render_mode: str | None = None) -> None:
        self.cmdp = cmdp_of(world)
        given = getattr(world, "loss", None) if loss is None else loss
        if given is None:
            raise InvalidInput("a CMDP has no loss of its own: CMDPEnv(cmdp, loss) with an array over rows in [0, 1]")
        self.layout = self.cmdp.layout
        self.loss: FloatArray = checked_loss(self.layout, given)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            modes = self.metadata["render_modes"]
            raise InvalidInput(f"the render mode is {render_mode!r}{did_you_mean(str(render_mode), modes)}")
        self.render_mode = render_mode
        self.observation_space = Discrete(self.layout.num_states)
        self.action_space = Discrete(self.layout.num_actions)
        self._end = self.layout.num_states - 1
        self._state = self._end  # a reset comes first
        self._costs: FloatArray = np.zeros((self.num_constraints, self.layout.num_rows))
        self._last = ""

    @property
    def num_constraints(self) -> int:
        """The number m of constraints, which is the length of `info["cost"]`."""
        return self.cmdp.num_constraints

    def view(self) -> View:
        """Return what a learner may know of the world."""
        return self.cmdp.view()

    @cached_property
    def P(self) -> dict[int, dict[int, TableEntry]]:  # noqa: N802 - Gymnasium's name for the table
        """The transition table: P[state][action] lists (probability, next state, reward, terminated)."""
        layout, A = self.layout, self.layout.num_actions
        table = {x: {a: self._outcomes(x * A + a) for a in range(A)} for x in range(layout.num_decision_states)}
        return table | {self._end: {a: [(1.0, self._end, 0.0, True)] for a in range(A)}}

    @property
    def initial_state_distrib(self) -> FloatArray:
        """(num_states,): the distribution of the start state; every episode starts in state 0."""
        start = np.zeros(self.layout.num_states)
        start[0] = 1.0
        return start

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode; `seed` restarts the random numbers, `options` are ignored."""
        super().reset(seed=seed)
        self._state, self._last = 0, ""
        self._costs = self.cmdp.costs.sample(self.np_random)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take the action number `action`.

        Returns:
            The next state, the reward (minus the loss), whether the episode has ended, False, and {"cost": (m,) costs}.
        """
        if self._state == self._end:
            raise InvalidInput("the episode has ended, or not begun; call reset before step")
        A = self.layout.num_actions
        row = self._state * A + whole_number("the action", action, 0, A - 1)
        triples = slice(int(self.layout.row_start[row]), int(self.layout.row_start[row + 1]))
        self._state = int(self.np_random.choice(self.layout.successor[triples], p=self._distribution(triples)))
        cost = self._costs[:, row].copy()
        self._last = f"{self.layout.describe_row(row)}: loss {self.loss[row]:g}, cost {cost.tolist()}; "
        return self._state, -float(self.loss[row]), self._state == self._end, False, {"cost": cost}

    def render(self) -> str | None:
        """Return the last step and the present state as text if `render_mode` is "ansi", else None."""
        if self.render_mode is None:
            return None
        return f"{self._last}now {self.layout.describe_state(self._state)}"

    def _outcomes(self, row: int) -> TableEntry:
        first, last = int(self.layout.row_start[row]), int(self.layout.row_start[row + 1])
        successors = self.layout.successor[first:last].tolist()
        chances, reward = self.cmdp.transitions[first:last].tolist(), -float(self.loss[row])
        return [(p, y, reward, y == self._end) for p, y in zip(chances, successors, strict=True) if p > 0.0]

    def _distribution(self, triples: slice) -> FloatArray:
        """Probabilities that sum to 1 exactly enough for numpy."""
        p = self.cmdp.transitions[triples]
        result: FloatArray = p / p.sum()
        return result


# Under the names of Gymnasium -----------------------------------------------------------------------------------------

VERSION = 0


def env_id(name: str) -> str:
    """Return the name that a world of the catalogue has in Gymnasium.

    Args:
        name: The name in the catalogue.

    Returns:
        The id for `gymnasium.make`.

    Examples:
        >>> from hedgerow.gym import env_id
        >>> env_id("dope-media")
        'hedgerow/dope-media-v0'
    """
    return f"hedgerow/{name}-v{VERSION}"


def register_world(*names: str) -> None:
    """Register worlds of the catalogue with Gymnasium.

    Importing `hedgerow.gym` registers all of them. Worlds that are registered already stay so.

    Args:
        *names: Their names in the catalogue; without names, all of them.

    Examples:
        >>> import gymnasium
        >>> from hedgerow.gym import register_world
        >>> register_world("dope-media")
        >>> "hedgerow/dope-media-v0" in gymnasium.registry
        True
    """
    for name in names or registry.worlds.builtin:
        if env_id(name) not in gymnasium.registry:
            gymnasium.register(id=env_id(name), entry_point="hedgerow.gym.env:make_world_env", kwargs={"world": name})


def make_world_env(
    world: str, loss: ArrayLike | None = None, render_mode: str | None = None, **parameters: Any
) -> CMDPEnv:
    """Make the environment of a world of the catalogue; `gymnasium.make` calls it.

    Args:
        world: The name in the catalogue.
        loss: (num_rows,) losses in [0, 1] in the place of the world's own; None keeps those.
        render_mode: None or "ansi".
        **parameters: Parameters of the world (`hr.worlds.describe`).

    Returns:
        The environment.

    Examples:
        >>> from hedgerow.gym import make_world_env
        >>> make_world_env("dope-media", support="known").action_space
        Discrete(2)
    """
    return CMDPEnv(worlds.make(world, **parameters), loss, render_mode=render_mode)
