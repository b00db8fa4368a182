"""Which safe policy to give to S-OPS: the one of the largest margin, or one of small loss?

Baselines at a share f of the Slater margin (least loss of the world with costs <= thresholds - f rho, exact costs
given). If the losses are the world's own in every episode, a small loss wins. If they switch between unrelated
patterns, all baselines lose alike and the margin wins. Means over three seeds; about a minute.

    python examples/baselines.py
"""

import numpy as np

import hedgerow as hr

SHARES, SEEDS, DELTA = (1.0, 0.5, 0.25, 0.1), 3, 0.01

world = hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=3, constraints=1)
safest = hr.offline.slater(world)
baselines = [safest] + [hr.offline.strictly_feasible(world, f * safest.margin, world.loss) for f in SHARES[1:]]


def regret(losses, episodes, preset, baseline, seed):
    """The regret of one run."""
    learner = hr.SOPS(world.view(), episodes, DELTA, preset, seed, baseline=baseline)
    return float(hr.simulate(world, learner, losses, seed=seed, progress=False).regret[-1])


print("losses      episodes   preset    " + "".join(f"   f = {f:<4g}" for f in SHARES))
for name in ("own", "switching"):
    for episodes in (10_000, 100_000):
        for preset in ("sharp", "sharpest"):
            means = []
            for baseline in baselines:
                kinds = [
                    world.loss if name == "own" else hr.losses.Switching(period=500, patterns=3, seed=seed)
                    for seed in range(SEEDS)
                ]
                runs = [regret(losses, episodes, preset, baseline, seed) for seed, losses in enumerate(kinds)]
                means.append(float(np.mean(runs)))
            print(f"{name:11} {episodes:8,}   {preset:10}" + "".join(f"{mean:11,.0f}" for mean in means), flush=True)
