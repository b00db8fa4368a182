"""FrozenLake, safely: reach the goal, and let no episode fall into a hole with a probability of more than 0.2.

S-OPS knows where a step can lead, where no hole is near, and a safe policy: "up" stays in the top row. It must find out
how slippery the ice is and where the goal is, by env.step. Each plan is scored by the table of the environment, which
no learner sees: "episodes over the limit" is exact, not a mean of samples. Less than a minute.

    pip install 'hedgerow[gym]'
    python examples/frozen_lake.py [picture.svg]
"""

import sys

import gymnasium

import hedgerow as hr
import hedgerow.gym as hg

EPISODES, LIMIT, HOLES = 40_000, 0.2, {5, 7, 11, 12}

env = gymnasium.make("FrozenLake-v1", success_rate=0.9)
dry = [[all(to not in HOLES for _, to, _, _ in env.unwrapped.P[s][a]) for a in range(4)] for s in range(16)]
known = {"costs_drawn": "step", "stationary": True, "zero_costs": dry, "max_episode_cost": {"hole": 1}}
known |= {"costs": lambda state, action, next_state, reward, info: float(next_state in HOLES)}
known |= {"action_names": ["left", "down", "right", "up"], "scored": "exact"}
world = hg.GymWorld(env, steps=8, rewards=(0, 1), thresholds={"hole": LIMIT}, **known)
up, best = hr.Policy.of(world, "up"), hr.offline.optimum(world, world.model.loss).policy
sops = hr.SOPS(world.view(), EPISODES, 0.05, "sharpest", baseline=up, baseline_costs=[0.0])
svops = hr.SVOPS(world.view(), EPISODES, 0.05, "sharpest")
records = {name: hg.learn(world, learner, EPISODES) for name, learner in (("S-OPS", sops), ("SV-OPS", svops))}
print("policy   reaches the goal   falls into a hole   episodes over the limit")
for name, record in records.items():
    late = slice(-EPISODES // 10, None)  # the last tenth
    print(f"{name:8}{record.rewards[late].mean():17.3f}{record.costs[late].mean():20.3f}{record.run.unsafe[-1]:26,}")
for name, policy in (("up", up), ("best", best)):
    value = hr.occupancy.evaluate(world, policy, world.model.loss)
    print(f"{name:8}{world.scale.total_reward(value.loss):17.3f}{value.costs[0]:20.3f}{0:26}")
if len(sys.argv) > 1:
    hr.save_figure(hg.together(records, "FrozenLake").plot(), sys.argv[1], width_mm=190, font_size=10)
