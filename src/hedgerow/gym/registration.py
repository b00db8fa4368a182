"""The worlds of the catalogue under Gymnasium's names: `hedgerow/dope-media-v0`."""

from __future__ import annotations

from typing import Any

import gymnasium
from numpy.typing import ArrayLike

from hedgerow import catalogue
from hedgerow.gym.cmdp_env import CMDPEnv

VERSION = 0


def env_id(name: str) -> str:
    """What a world is called in Gymnasium.

    >>> env_id("dope-media")
    'hedgerow/dope-media-v0'
    """
    return f"hedgerow/{name}-v{VERSION}"


def register_world(*names: str) -> None:
    """Register worlds of the catalogue by name; without names, all of them. Those that are registered stay so."""
    for name in names or catalogue.names():
        if env_id(name) not in gymnasium.registry:
            gymnasium.register(
                id=env_id(name), entry_point="hedgerow.gym.registration:make_world_env", kwargs={"world": name}
            )


def make_world_env(
    world: str, loss: ArrayLike | None = None, render_mode: str | None = None, **parameters: Any
) -> CMDPEnv:
    """The environment of a world by its name; `parameters` are those of its builder, `loss` stands in for its own."""
    return CMDPEnv(catalogue.make(world, **parameters), loss, render_mode=render_mode)
