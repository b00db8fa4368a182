"""Forecasts of S-OPS against runs: lambda and saved loss, in worlds that the forecast was not made with.

For each world: what was measured (seeds 1 and 2), and the forecast from its view, its baseline and its own loss as the
guess, without a log, after a log of 2,000 episodes of the baseline, and with its mean costs guessed as well.

    python examples/forecast.py                       # the six worlds of docs/forecast.md, about ten minutes
    python examples/forecast.py streaming-5 -T 2000   # one of them
"""

import argparse

import numpy as np

import hedgerow as hr
from hedgerow.forecast import forecast_run, read_guess
from hedgerow.forecast.preflight import world_baseline

WORLDS = ("streaming-5", "alwayssafe-simple", "dope-inventory", "altman-queue", "pollution-ring", "bidding")
DELTA, LOGGED, SEEDS = 0.01, 2_000, (1, 2)


def measured(world, baseline, episodes, log, seed):
    """Lambda of some episodes, the share left to the baseline, and the saved share of its loss."""
    learner = hr.SOPS(world.view(), episodes, DELTA, seed=seed, baseline=baseline)
    if log is not None:
        learner.absorb(log)
    marks = [t for t in (100, 1_000, 10_000) if t < episodes] + [episodes]
    run = hr.simulate(world, learner, seed=seed, progress=False, marks=marks)
    return [*run["mixing_weight"], run["mixing_total"][-1] / episodes, run.saved[-1]]


def forecast(world, baseline, episodes, log, guess):
    """The same, as ranges."""
    found = forecast_run(world.view(), episodes, DELTA, baseline=baseline, log=log, losses=guess)
    marks = [mark for mark in found["marks"] if mark["episodes"] >= 100]
    return [*(mark["lambda"] for mark in marks), marks[-1]["share"], found["saved_share"]]


def shown(cells):
    """One line of the table."""
    ends = [list(dict.fromkeys(f"{end:.3f}" for end in cell)) for cell in cells]
    return "  ".join(f"{' - '.join(end):>15}" for end in ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", default=WORLDS)
    parser.add_argument("-T", "--episodes", type=int, default=20_000)
    given = parser.parse_args()
    print("lambda at t = 100, 1,000, 10,000 and T; share left to the baseline; saved share of its loss")
    for name in given.worlds:
        world = hr.worlds.make(name)
        safe = world_baseline(world, world.cmdp)
        baseline = hr.SafePolicy(safe.policy, safe.costs)
        recorded = hr.Log.played(world.cmdp, hr.Policy(world.view(), safe.policy), LOGGED, seed=5)
        costs = read_guess(world.view(), world.loss)._replace(costs=np.array(world.cmdp.mean_costs))
        for log in (None, recorded):
            runs = [measured(world, baseline, given.episodes, log, seed) for seed in SEEDS]
            print(f"\n{name}, {'no log' if log is None else f'a log of {LOGGED:,} episodes'}")
            print(f"  measured            {shown(zip(*runs, strict=True))}", flush=True)
            for words, guess in (("losses guessed", world.loss), ("and costs guessed", costs)):
                cells = forecast(world, baseline, given.episodes, log, guess)
                print(f"  {words:18}  {shown(cell.values() for cell in cells)}", flush=True)


if __name__ == "__main__":
    main()
