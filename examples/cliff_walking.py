"""CliffWalking by its steps alone, with two constraints: rarely fall off the cliff, walk along it for 6 steps at most.

S-OPS is given a policy that is known to be safe, up and then against the wall; SV-OPS has to find out. A fall earns
-100, which would make all other losses small: a wrapper makes it -1, because the constraint forbids falls anyway. The
sets are ten times narrower than the theory's (confidence_scale=0.1) to show something within seconds, which voids all.

    pip install 'hedgerow[gym]'
    python examples/cliff_walking.py
"""

import gymnasium
import numpy as np

import hedgerow as hr
import hedgerow.gym

EPISODES, EDGE = 3_000, set(range(24, 36))  # the states beside the cliff
FALLS = {(36, 1)} | {(state, 2) for state in range(25, 35)}  # right from the start, or down from above the cliff


def fallen_and_beside(state, action, next_state, reward, info):
    """The two costs of a step."""
    return float((state, action) in FALLS), float(next_state in EDGE)


env = gymnasium.wrappers.TransformReward(gymnasium.make("CliffWalking-v1"), lambda reward: max(reward, -1.0))
constraints = {"thresholds": {"fallen": 0.2, "beside": 6.0}, "costs": fallen_and_beside, "costs_drawn": "step"}
world = hedgerow.gym.GymWorld(env, steps=20, rewards=(-1, 0), **constraints)
up = np.tile([1.0, 0.0, 0.0, 0.0], (world.view().layout.num_decision_states, 1))
options = {"preset": "sharp", "confidence_scale": 0.1}
learners = {
    "SV-OPS": hr.SVOPS(world.view(), EPISODES, 0.05, **options),
    "S-OPS": hr.SOPS(world.view(), EPISODES, 0.05, baseline=up, baseline_costs=[0.0, 1.0], **options),
}
print("learner   reward   fallen (<= 0.2)   beside (<= 6)")
for name, learner in learners.items():
    record = hedgerow.gym.learn(world, learner, EPISODES, seed=0)
    fallen, beside = record.costs.mean(axis=0)
    print(f"{name:8}{record.rewards.mean():8.3f}{fallen:18.3f}{beside:16.3f}")
