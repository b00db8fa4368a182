"""FrozenLake (4x4, slippery) by its steps alone: reach the goal, fall into a hole in at most half of the episodes.

The learner knows where a move can lead (the support, from the environment's table), not how likely it is. Radii of a
tenth of their size void every guarantee, but show in seconds what the full ones show after far more episodes.

    pip install 'hedgerow[gym]'
    python examples/frozen_lake.py
"""

import gymnasium

import hedgerow as hr
import hedgerow.gym

EPISODES, BLOCK = 6_000, 1_000
HOLES = {5, 7, 11, 12}


def fell_into_a_hole(state, action, next_state, reward, info):
    """The cost of a step."""
    return float(next_state in HOLES)


env = gymnasium.make("FrozenLake-v1", is_slippery=True)
hole = {"thresholds": {"hole": 0.5}, "costs": fell_into_a_hole, "costs_drawn": "step"}  # the cost is of the next state
world = hedgerow.gym.GymWorld(env, steps=12, rewards=(0, 1), **hole)
learner = hr.SVOPS(world.view(), EPISODES, delta=0.05, preset="sharp", confidence_scale=0.1)
record = hedgerow.gym.learn(world, learner, EPISODES, seed=0)

print("episodes         reached the goal   fell into a hole (threshold 0.5)")
for first in range(0, EPISODES, BLOCK):
    part = slice(first, first + BLOCK)
    reached, fell = record.rewards[part].mean(), record.costs[part, 0].mean()
    print(f"{first + 1:5d} - {first + BLOCK:5d}    {reached:16.3f}   {fell:16.3f}")
print(record)
