"""CliffWalking by its steps alone, with two constraints: rarely fall off the cliff, walk along it for 6 steps at most.

S-OPS is given a policy that is known to be safe, up and then against the wall; SV-OPS has to find out. A fall earns
-100, outside of the stated range (-1, 0): that is clipped and counted, and the constraint forbids falls. The confidence
sets are ten times narrower than the theory's (confidence_scale=0.1) to show something within seconds: this voids every
guarantee.

    pip install 'hedgerow[gym]'
    python examples/cliff_walking.py
"""

import gymnasium
import numpy as np

import hedgerow as hr
import hedgerow.gym

EPISODES = 3_000
EDGE = set(range(24, 36))  # the states beside the cliff


def fallen_and_beside(state, action, next_state, reward, info):
    """The two costs of a step."""
    return float(reward == -100), float(next_state in EDGE)


env, thresholds = gymnasium.make("CliffWalking-v1"), {"fallen": 0.2, "beside": 6.0}
world = hedgerow.gym.GymWorld(env, steps=20, rewards=(-1, 0), thresholds=thresholds, costs=fallen_and_beside)
up = np.tile([1.0, 0.0, 0.0, 0.0], (world.view().layout.num_decision_states, 1))
options = {"preset": "sharp", "confidence_scale": 0.1}
learners = {
    "SV-OPS": hr.SVOPS(world.view(), EPISODES, 0.05, **options),
    "S-OPS": hr.SOPS(world.view(), EPISODES, 0.05, baseline=up, baseline_costs=[0.0, 1.0], **options),
}
print("learner   reward   fallen (<= 0.2)   beside (<= 6)   clipped rewards")
for name, learner in learners.items():
    record = hedgerow.gym.learn(world, learner, EPISODES, seed=0)
    fallen, beside = record.costs.mean(axis=0)
    print(f"{name:8}{record.rewards.mean():8.3f}{fallen:18.3f}{beside:16.3f}{record.clipped_rewards:18d}")
