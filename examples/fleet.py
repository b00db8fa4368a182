"""200 chargers: one learner for all of them, or a learner each? On the losses of real days, in the world `ev-workday`.

Every day each charger has a car. A plan is made for each of them in the morning, and all outcomes come in the evening.
Printed are the share of carbon saved against charging at once, and on how many charger-days a car was expected to leave
without its charge more often than the limit allows. Both are exact: they are computed from the world, not from draws.

    python examples/fleet.py                       # 20,000 charger-days, some minutes
    python examples/fleet.py --days 10 --serve 4   # the same with 4 processes that are clients of `hedgerow serve`

The losses are those of the 19,440 real charger-days in their order; the last 560 of 20,000 start over.
"""

import argparse
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from threading import Timer

import numpy as np

import hedgerow as hr
from hedgerow.serve.client import Client
from hedgerow.worlds.ev_replay import EVDays

PATIENCE = 120.0  # seconds


class Fleet:
    """The chargers, day by day, and what a plan does to their carbon and their cars."""

    def __init__(self, chargers, days, limit, common, seed):
        self.world, self.common, self.chargers = hr.worlds.make("ev-workday", alpha=limit), common, chargers
        self.layout, self.cmdp, self.limit = self.world.cmdp.layout, self.world.cmdp, limit
        block = EVDays(cycle=True).block(self.layout, 0, chargers * days)
        self.losses, self.index = block
        self.mean_costs = self.cmdp.mean_costs[0]
        self.seed, self.kept = seed, {}
        self.base = self.visits(hr.Policy(self.world, self.world.baseline.policy))
        self.lost = self.baseline_lost = self.unsafe = self.own = self.played = 0.0

    def learner(self, episodes, max_open=1, seed=0):
        learner = hr.SOPS(self.world.view(), episodes, delta=0.01, baseline=self.world.baseline, seed=seed)
        learner.max_open = max_open
        return learner

    def loss(self, number):
        return self.losses[self.index[number]]

    def play(self, policy, number):
        """What happens on a charger-day; a share `common` of the costs is drawn once for all chargers of a day."""
        rng = np.random.default_rng([self.seed, 1, number])
        episode = self.cmdp.play(policy, rng, self.loss(number))
        if not self.common:
            return episode
        of_day = np.random.default_rng([self.seed, 2, number // self.chargers]).random(len(self.mean_costs))
        draws = np.where(
            rng.random(len(episode.rows)) < self.common, of_day[episode.rows], rng.random(len(episode.rows))
        )
        return hr.Episode(self.cmdp.view(), episode.rows, episode.losses, draws < self.mean_costs[episode.rows])

    def visits(self, policy):
        """How likely each pair is; policies that plans of a day share are evaluated once."""
        key = policy.probabilities.tobytes()
        if key not in self.kept:
            self.kept = dict(list(self.kept.items())[-4:])
            q = hr.occupancy.occupancy(self.layout, self.cmdp.transitions, policy)
            self.kept[key] = hr.occupancy.row_occupancy(self.layout, q)
        return self.kept[key]

    def score(self, plan, number):
        """Count the exact loss and cost of a plan, before its coin is thrown."""
        visits = sum(weight * self.visits(policy) for weight, policy in plan.mixture.policies())
        self.unsafe += visits @ self.mean_costs > self.limit + 1e-9
        self.own += 1.0 - plan.mixing_weight
        self.lost += visits @ self.loss(number)
        self.baseline_lost += self.base @ self.loss(number)
        self.played += 1

    @property
    def saved(self):
        return 1.0 - self.lost / self.baseline_lost


def one_after_another(fleet, days):
    """A fiction: the outcome of every charger-day is known before the next one is planned."""
    total = fleet.chargers * days
    learner = fleet.learner(total)
    for number in range(total):
        plan = learner.plan()
        fleet.score(plan, number)
        learner.observe(fleet.play(plan.policy, number), plan)


def one_for_all(fleet, days, grouped=False):
    """One learner; all plans of a day are made in the morning, and in one group if their costs share a cause."""
    learner = fleet.learner(fleet.chargers * days, max_open=fleet.chargers)
    for day in range(days):
        numbers = range(day * fleet.chargers, (day + 1) * fleet.chargers)
        plans = [learner.plan(group=f"day {day}" if grouped else None) for _ in numbers]
        if grouped:
            learner.close_group(f"day {day}")
        for plan, number in zip(plans, numbers, strict=True):
            fleet.score(plan, number)
            learner.observe(fleet.play(plan.policy, number), plan)


def one_each(fleet, days):
    """A learner for every charger, which sees its own days alone."""
    learners = [fleet.learner(days, seed=charger) for charger in range(fleet.chargers)]
    for number in range(fleet.chargers * days):
        learner = learners[number % fleet.chargers]
        plan = learner.plan()
        fleet.score(plan, number)
        learner.observe(fleet.play(plan.policy, number), plan)


def compare(given):
    rows = []
    for name, common, play in (
        ("one learner, one charger-day after another (a fiction)", 0.0, one_after_another),
        ("one learner, all plans of a day open", 0.0, one_for_all),
        ("a learner for each charger", 0.0, one_each),
        (f"one learner, {given.common:.0%} of the costs common to a day: grouped by day", given.common, grouped),
        (f"one learner, {given.common:.0%} of the costs common to a day: not declared", given.common, one_for_all),
    ):
        fleet = Fleet(given.chargers, given.days, given.limit, common, given.seed)
        play(fleet, given.days)
        rows.append((name, fleet))
        print(f"  done: {name}", file=sys.stderr)
    fiction, together, each, groups, _ = (fleet for _, fleet in rows)
    ratio = together.saved / fiction.saved if fiction.saved > 0.0 else float("nan")
    print(
        f"One learner for {given.chargers} chargers saves {together.saved:.1%} of the carbon, {ratio:.0%} of what it "
        f"would save one after another; a learner each saves {each.saved:.1%}. Where costs share a cause and days "
        f"are declared as groups, {groups.unsafe:,.0f} charger-days are over the limit of {given.limit:g}, and "
        f"{groups.saved:.1%} are saved.\n"
    )
    print(f"{'':67}saved   own plans   days over the limit")
    for name, fleet in rows:
        print(
            f"{name:65}{fleet.saved:7.1%}{fleet.own / fleet.played:12.0%}{fleet.unsafe:16,.0f} of {fleet.played:,.0f}"
        )


def grouped(fleet, days):
    one_for_all(fleet, days, grouped=True)


# The same with workers: each of them is a client of the service and has some of the chargers


def ask(task):
    address, day, chargers = task
    client = Client(address, timeout=PATIENCE)
    return [(charger, client.ask(f"charger-{charger}/day-{day}")["actions"]) for charger in chargers]


def tell(task):
    address, day, given, asked = task
    client = Client(address, timeout=PATIENCE)
    fleet = Fleet(given.chargers, given.days, given.limit, 0.0, given.seed)
    lost = 0.0
    for charger, actions in asked:
        number = day * fleet.chargers + charger
        episode = fleet.play(hr.Policy.of(fleet.world, actions), number)
        assert client.tell(f"charger-{charger}/day-{day}", episode.rows.tolist(), episode.losses.tolist(),
                           episode.costs.tolist(), followed_actions=True) == "recorded"  # fmt: skip
        lost += episode.losses.sum()
    return lost


def serve(given):
    fleet = Fleet(given.chargers, given.days, given.limit, 0.0, given.seed)
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        url = f"sqlite:///{folder}/fleet.db"
        learner = fleet.learner(given.chargers * given.days, max_open=given.chargers)
        hr.Journal.create(url, "chargers", learner, deadline="36h").close()
        command = [sys.executable, "-m", "hedgerow", "serve", url, "chargers", "--port", "0", "--durability", "normal"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            watchdog = Timer(PATIENCE, service.kill)
            watchdog.start()
            address = service.stdout.readline().split()[-1]
            watchdog.cancel()
            shares = [range(k, given.chargers, given.serve) for k in range(given.serve)]
            lost = expected = 0.0
            try:
                with get_context("spawn").Pool(given.serve) as workers:
                    for day in range(given.days):
                        asked = workers.map_async(ask, [(address, day, share) for share in shares]).get(PATIENCE)
                        told = workers.map_async(tell, [(address, day, given, own) for own in asked]).get(PATIENCE)
                        lost += sum(told)
                        numbers = range(day * given.chargers, (day + 1) * given.chargers)
                        expected += sum(fleet.base @ fleet.loss(number) for number in numbers)
                status = Client(address, timeout=PATIENCE).status()
            finally:
                service.terminate()
                service.wait(PATIENCE)
    print(
        f"{given.serve} workers: {status['told']:,} outcomes told, {status['learnt']:,} learnt; "
        f"{1 - lost / expected:.1%} of the carbon saved (drawn), "
        f"{status['share_left_to_baseline']:.0%} of the decisions left to the baseline."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One learner for a fleet, or a learner each?")
    parser.add_argument("--chargers", type=int, default=200)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--limit", type=float, default=0.1, help="cars that may leave uncharged, per charger-day")
    parser.add_argument(
        "--common", type=float, default=0.3, help="share of the costs that chargers of a day have in common"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=int, default=0, metavar="N", help="with N workers, clients of `hedgerow serve`")
    options = parser.parse_args()
    if min(options.chargers, options.days) < 1 or options.serve < 0 or not 0.0 <= options.common <= 1.0:
        parser.error("chargers and days are at least 1, --serve at least 0, and --common is between 0 and 1")
    serve(options) if options.serve else compare(options)
