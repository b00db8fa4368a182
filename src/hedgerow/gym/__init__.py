"""Gymnasium, both ways: worlds as Gymnasium environments, and learning on any environment with Discrete spaces.

Importing this module registers every world that ships with hedgerow:

    import gymnasium, hedgerow.gym
    env = gymnasium.make("hedgerow/dope-media-v0")          # or make("hedgerow.gym:hedgerow/dope-media-v0")
    observation, reward, terminated, truncated, info = env.step(action)
    info["cost"]                                            # (m,)

`CMDPEnv(world, loss)` makes an environment of any CMDP. In the other direction, a `GymWorld` is what a learner sees of
an environment that has no model, and `learn` plays it:

    hole = {"thresholds": {"hole": 0.25}, "costs": fell_into_a_hole, "costs_drawn": "step"}
    world = GymWorld(env, steps=20, rewards=(0, 1), **hole)
    record = learn(world, hr.SVOPS(world.view(), 2_000, 0.05), 2_000)

Gymnasium is optional: pip install 'hedgerow[gym]'.
"""

from __future__ import annotations

try:
    import gymnasium  # noqa: F401 - a clear message where it is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("hedgerow.gym needs Gymnasium: pip install 'hedgerow[gym]'", name=error.name) from error

from hedgerow.gym.env import CMDPEnv, env_id, make_world_env, register_world
from hedgerow.gym.samples import Samples, learn, together
from hedgerow.gym.world import ClippedWarning, GymWorld
from hedgerow.importers.gym_table import unroll_gymnasium

__all__ = [
    "CMDPEnv",
    "ClippedWarning",
    "GymWorld",
    "Samples",
    "env_id",
    "learn",
    "make_world_env",
    "register_world",
    "together",
    "unroll_gymnasium",
]


def __dir__() -> list[str]:
    return list(__all__)


register_world()
