"""The real cars: an environment that plays one real charger-day after another.

What a car does does not depend on when it is charged, so a real day answers to every policy: no chance but that of the
policy is left. Episode t is the t-th charger-day in the order of dates. Chargers of a date work side by side and have
no order among them: they are shuffled, by `seed`. After the last day the environment refuses to go on.

    >>> cars = RealCars()
    >>> policy = Policy(cars.view(), ev_workday.charge_at_once())
    >>> cars.play(policy, np.random.default_rng(0)).costs.ravel().tolist()
    [0.0, 0.0, 0.0]
    >>> cars.remaining
    19439

The world of the catalogue is made of the same days, but a state there forgets how a car came to it; here it does not.
So costs and losses of a policy differ a little from those in the world, most for policies that often wait:

    >>> costs = replayed(1.0 - ev_workday.charge_at_once()).costs  # always wait: 1.042 in the world
    >>> round(float(costs.mean()), 3)
    1.128
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hedgerow.catalogue import charging, ev_workday
from hedgerow.catalogue.entries import make
from hedgerow.catalogue.ev_tables import ChargerDays
from hedgerow.checks import FloatArray, IntArray, frozen, seed_number
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import View
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy


class RealCars:
    """An environment (`hr.Environment`) of real charger-days; `simulate(RealCars(), None, learner)` plays them."""

    def __init__(
        self, world: str = "ev-workday", *, alpha: float = 0.1, prices: str = "carbon", seed: int = 0
    ) -> None:  # fmt: skip
        params = {"alpha": alpha} if world == "ev-workday-hard" else {"alpha": alpha, "prices": prices}
        self._view = make(world, **params).view()
        self._days, self._units = ev_workday.days_of(world), ev_workday.site_of(world).units
        self._rates = ev_workday.daily_rates(world, prices)
        self._order = shuffled(self._days, seed)
        self._next = 0

    def view(self) -> View:
        """What a learner may know."""
        return self._view

    @property
    def remaining(self) -> int:
        """How many charger-days are left."""
        return len(self._order) - self._next

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """The next charger-day under `policy`; only its actions are drawn."""
        if not self.remaining:
            raise InvalidInput(f"all {len(self._order):,} real charger-days have been played; make a new environment")
        line = int(self._order[self._next])
        self._next += 1
        return self._played(line, policy, rng)

    def _played(self, line: int, policy: Policy, rng: Generator) -> Episode:
        days, layout = self._days, self._view.layout
        arrives, leaves = days.arrives[line].tolist(), days.leaves[line].tolist()
        rates = self._rates[days.day[line]]
        rows, losses, costs = [], [], []
        need = 0
        for k in range(layout.steps):
            need = arrives[k] or need
            state = int(layout.state_start[k]) + (need if k else 0)
            action = policy.draw(state, rng)
            left = max(0, need - action)
            missed = left if leaves[k] else 0
            rows.append(state * layout.num_actions + action)
            losses.append(((need - left) * rates[k] + missed * rates[-1]) / self._units)
            costs.append(float(missed > 0))
            need = left - missed
        return Episode(self._view, np.array(rows), np.array(losses), np.array(costs))


def shuffled(days: ChargerDays, seed: int = 0) -> IntArray:
    """(T,): the line of every charger-day, in the order of dates, and in a random order within each."""
    lines = np.repeat(np.arange(len(days.chargers)), days.chargers)
    draws = np.random.default_rng(seed_number(seed)).random(len(lines))
    return frozen(lines[np.lexsort((draws, days.day[lines]))])


class Replayed(NamedTuple):
    """Expectations over the actions of a policy, for each charger-day (T,) in the order of the table."""

    losses: FloatArray
    costs: FloatArray


def replayed(policy: ArrayLike, world: str = "ev-workday", prices: str = "carbon") -> Replayed:
    """What a policy (num_rows,) loses and costs on every real charger-day, without any drawing."""
    days, units = ev_workday.days_of(world), ev_workday.site_of(world).units
    by_state = np.asarray(policy, dtype=np.float64).reshape(-1, units + 1)
    rates = ev_workday.daily_rates(world, prices)[days.day]
    count, blocks = days.arrives.shape
    chance = np.zeros((count, units + 1))  # of each need before a block
    chance[np.arange(count), days.arrives[:, 0]] = 1.0
    loss, cost = np.zeros(count), np.zeros(count)
    for k in range(blocks):
        after = np.zeros_like(chance)
        for need in range(units + 1):
            state = 1 + (k - 1) * (units + 1) + need if k else 0
            for action in range(units + 1):
                weight = chance[:, need] * by_state[state, action]
                left = np.full(count, max(0, need - action))
                missed = np.where(days.leaves[:, k] == 1, left, 0)
                loss += weight * ((need - left) * rates[:, k] + missed * rates[:, -1]) / units
                cost += weight * (missed > 0)
                if k + 1 < blocks:
                    after[np.arange(count), charging.following_need(days, k, left)] += weight
        chance = after
    times = days.chargers
    return Replayed(np.repeat(loss, times), np.repeat(cost, times))
