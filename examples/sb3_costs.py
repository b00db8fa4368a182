"""PPO of Stable-Baselines3 beside S-OPS, in one world: charging cars at work, an episode a day, a limit on missed ones.

PPO sees the reward alone. Before every rollout its policy is scored exactly, by the world that neither of the two sees:
how much the days of the rollout lose, and whether their expected cost is over the limit. About a minute.

    pip install 'hedgerow[gym]' stable-baselines3
    python examples/sb3_costs.py
"""

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import hedgerow as hr
import hedgerow.gym

ROLLOUTS, DAYS = 20, 512  # 10,240 days
torch.set_num_threads(1)  # more only wait for each other in a network this small
world = hr.worlds.make("ev-workday")
layout, limit, rollouts = world.cmdp.layout, world.cmdp.thresholds[0], []


class Score(BaseCallback):
    """Scores the policy of each rollout; during a rollout it stays the same."""

    def _on_rollout_start(self):
        shares = self.model.policy.get_distribution(torch.arange(layout.num_decision_states)).distribution.probs
        table = shares.detach().double()
        policy = hr.Policy(world, (table / table.sum(1, keepdim=True)).numpy())
        rollouts.append(hr.occupancy.evaluate(world, policy, world.loss))

    def _on_step(self):
        return True


env = gymnasium.make(hedgerow.gym.env_id(world.name))
ppo = PPO("MlpPolicy", env, n_steps=DAYS * layout.steps, batch_size=64, seed=0, device="cpu")
ppo.learn(ROLLOUTS * DAYS * layout.steps, callback=Score())
sops = hr.SOPS(world.view(), ROLLOUTS * DAYS, 0.05, "sharpest", baseline=world.baseline)
run = hr.simulate(world, sops, progress=False)
over = DAYS * sum(value.costs[0] > limit for value in rollouts)
print(f"learner   loss a day   days over the limit of {limit:g}")
print(f"PPO    {sum(value.loss for value in rollouts) / ROLLOUTS:13.4f}{over:15,}")
print(f"S-OPS  {run.loss[-1] / run.episodes[-1]:13.4f}{run.unsafe[-1]:15,}")
