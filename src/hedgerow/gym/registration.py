"""The worlds of the catalogue under Gymnasium's names: `hedgerow/dope-media-v0`."""

from __future__ import annotations

from typing import Any

import gymnasium
from numpy.typing import ArrayLike

from hedgerow import registry, worlds
from hedgerow.gym.env import CMDPEnv

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
            gymnasium.register(
                id=env_id(name), entry_point="hedgerow.gym.registration:make_world_env", kwargs={"world": name}
            )


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
