"""Draw the random worlds of the catalogue once, and store the numbers. For maintainers.

    python tools/draw_random_worlds.py                writes src/hedgerow/worlds/data/random_worlds.npz
    python tools/draw_random_worlds.py --out FILE     elsewhere

The sources draw these worlds with JAX, from the distributions below; this draw is ours, with numpy, and not theirs. It
is stored because the distributions of numpy may change between releases: the file is what counts, and a test compares
it with a fresh draw only where numpy still gives the same.

- uniform-pac: 10 steps, 30 states, 3 actions. All transitions of each step ~ Dirichlet(.1), rewards ~ Bernoulli(.5),
  utility = 1 - reward.
- episode-wise: ten worlds of 4 steps, 5 states, 3 actions. Transitions as above; rewards and utilities ~
  Bernoulli(.1), independent.
- linear: 4 steps, 100 states, 3 actions, dimension 5. Features of a row ~ Dirichlet(.1), for each step five measures
  on the states ~ Dirichlet(.1), and weights of reward and utility ~ uniform on [0, 1].

Every distribution is rounded to whole multiples of 2^-16, at least one each, that sum to exactly 1, and weights to
multiples of 2^-16: sums of products are then exact, and the same on every machine. `best` is the largest expected
utility of an episode that begins in state 0, in multiples of 2^-20, rounded down.

Two draws are not taken as they come. An episode-wise world in which no policy earns any reward or any utility is
drawn again, from the same stream. The linear world is that of the first seed whose policy of largest reward is
unsafe; most are safe, because all rows have much the same features.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from hedgerow.storage import datafile  # noqa: E402
from hedgerow.worlds.random import FILE, KIND, RANDOM_WORLDS_MASS, RANDOM_WORLDS_UNIT  # noqa: E402

TARGET = ROOT / "src" / "hedgerow" / "worlds" / "data" / FILE
CONCENTRATION = 0.1
PAC_SEED = 12
"""Episode-wise: 0 to 9, the number of the world"""
LINEAR_SHARE = 0.68
"""Of the largest utility, which the linear world asks for"""

Array = NDArray[Any]


def shares(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> Array:
    """(*shape, n): Dirichlet weights as whole shares of MASS, at least one each."""
    weights = rng.dirichlet([CONCENTRATION] * n, shape)
    found = 1 + np.floor((RANDOM_WORLDS_MASS - n) * weights).astype(np.int64)
    rest = RANDOM_WORLDS_MASS - found.sum(axis=-1)  # fewer than n: they go to the largest
    np.put_along_axis(
        found,
        found.argmax(axis=-1)[..., None],
        np.take_along_axis(found, found.argmax(axis=-1)[..., None], axis=-1) + rest[..., None],
        axis=-1,
    )
    return found.astype(np.uint16)


def largest(transitions: Array, gain: Array) -> tuple[float, Array]:
    """The largest expected gain from state 0, by dynamic programming, and the actions (H, S) that earn it."""
    value, actions = np.zeros(gain.shape[1]), np.zeros(gain.shape[:2], dtype=np.int64)
    for k in reversed(range(len(gain))):
        worth = gain[k] + transitions[k] @ value
        actions[k], value = worth.argmax(axis=1), worth.max(axis=1)
    return float(value[0]), actions


def earned(transitions: Array, gain: Array, actions: Array) -> float:
    """The expected gain from state 0 of a policy that plays `actions` (H, S)."""
    states, value = np.arange(gain.shape[1]), np.zeros(gain.shape[1])
    for k in reversed(range(len(gain))):
        value = (gain[k] + transitions[k] @ value)[states, actions[k]]
    return float(value[0])


def in_units(value: float) -> Array:
    """The whole multiple of 1 / UNIT at or below `value`."""
    return np.array(int(np.floor(value * RANDOM_WORLDS_UNIT)))


def uniform_pac() -> dict[str, Array]:
    rng = np.random.default_rng(PAC_SEED)
    moves = shares(rng, (10, 30, 3), 30)
    reward = (rng.random((10, 30, 3)) < 0.5).astype(np.uint8)
    best, _ = largest(moves / RANDOM_WORLDS_MASS, 1.0 - reward)
    return {"pac_moves": moves, "pac_reward": reward, "pac_best": in_units(best)}


def episode_wise() -> dict[str, Array]:
    worlds = []
    for number in range(10):
        rng = np.random.default_rng(number)
        earnings = [0.0]
        while min(earnings) <= 0.0:
            moves = shares(rng, (4, 5, 3), 5)
            reward, utility = ((rng.random((4, 5, 3)) < 0.1).astype(np.uint8) for _ in range(2))
            earnings = [largest(moves / RANDOM_WORLDS_MASS, gain)[0] for gain in (reward, utility)]
        worlds.append((moves, reward, utility, in_units(earnings[1])))
    names = ("moves", "reward", "utility", "best")
    return {f"episode_{name}": np.stack(parts) for name, parts in zip(names, zip(*worlds, strict=True), strict=True)}


def linear() -> dict[str, Array]:
    for seed in itertools.count():
        rng = np.random.default_rng(seed)
        features, measures = shares(rng, (100, 3), 5), shares(rng, (4, 5), 100)
        weights = np.floor(rng.random((2, 4, 5)) * RANDOM_WORLDS_MASS).astype(np.uint16)
        phi = features / RANDOM_WORLDS_MASS
        moves = np.einsum("sad,hdt->hsat", phi, measures / RANDOM_WORLDS_MASS)
        reward, utility = np.einsum("sad,ihd->ihsa", phi, weights / RANDOM_WORLDS_MASS)
        best, _ = largest(moves, utility)
        if earned(moves, utility, largest(moves, reward)[1]) < LINEAR_SHARE * best:
            break
    return {
        "linear_features": features,
        "linear_measures": measures,
        "linear_weights": weights,
        "linear_seed": np.array(seed),
        "linear_best": in_units(best),
    }


def drawn() -> dict[str, Array]:
    """All arrays of the file."""
    return {**uniform_pac(), **episode_wise(), **linear()}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Draw the random worlds of the catalogue.")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args(arguments)
    arrays = drawn()
    datafile.save(given.out, datafile.pack(KIND, 1, {"numpy": np.__version__}, arrays), overwrite=True)
    print(f"{given.out}: {given.out.stat().st_size:,} bytes, {len(arrays)} arrays")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
