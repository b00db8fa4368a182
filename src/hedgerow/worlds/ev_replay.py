"""The adversary `ev-days`: the losses of real charger-days, in the order of their dates.

Each charger-day of a date has the loss that this date's carbon, or price, gives to every row. There are 19,440 of them
(19,370 in the hard world). With `cycle` they start over; that is a bootstrap of the real sequence, and what is reported
about it has to say so.

    >>> losses = EVDays()
    >>> block = losses.block(Layout((1, 2, 2, 1), 2), first=84, count=2)  # 85 charger-days on the first date
    >>> losses.num_real, block.index.tolist()
    (19440, [0, 1])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, frozen, seed_number
from hedgerow.errors import InvalidInput
from hedgerow.losses.blocks import LossBlock, ObliviousLosses, check_rows, from_table
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Mixture, Policy, UniformMixture
from hedgerow.model.view import View
from hedgerow.worlds import ev_workday as workday
from hedgerow.worlds.entries import make
from hedgerow.worlds.ev_workday import ChargerDays


@dataclass(frozen=True, eq=False, repr=False)
class EVDays(ObliviousLosses):
    """The losses of real charger-days in true order; `world` and `prices` as in the catalogue."""

    kind: ClassVar[str] = "ev-days"
    world: str = "ev-workday"
    prices: str = "carbon"
    cycle: bool = False

    def __post_init__(self) -> None:
        _sequence(self.world, self.prices)  # refuses what does not exist
        if not isinstance(self.cycle, bool):
            raise InvalidInput(f"cycle must be True or False, not {self.cycle!r}")

    @property
    def num_real(self) -> int:
        """How many charger-days there are; episodes beyond are repetitions."""
        return len(_sequence(self.world, self.prices)[1])

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        table, date = _sequence(self.world, self.prices)
        if first + count > len(date) and not self.cycle:
            raise InvalidInput(
                f"there are {len(date):,} real charger-days; episode {first + count - 1} is not one of them. Ask for "
                "fewer, or pass cycle=True and call it a bootstrap"
            )
        return from_table(check_rows(layout, table), date[np.arange(first, first + count) % len(date)])


@cache
def _sequence(world: str, prices: str) -> tuple[FloatArray, IntArray]:
    """Losses (dates, num_rows), and the date of every charger-day (T,)."""
    counts = workday.days_of(world).per_date()
    losses = workday.losses_by_date(world, prices)
    return frozen(losses), frozen(np.repeat(np.arange(len(counts)), counts))


class RealCars:
    """The real charger-days behind the world `ev-workday`, as an environment (`hr.Environment`).

    Episode t is the t-th charger-day in the order of dates. What a car does does not depend on when it is charged, so a
    real day answers to every policy, and only the policy's own choices are random. After the last day, playing is
    refused. Run a learner on it with `hr.simulate(RealCars(), learner)`.

    The world of the catalogue is made of the same days, but its states forget how the charger came to them. That
    matters: every charger-day has a car, so a charger that is still empty at B after no charging in A will have one in
    C on 95 % of the days, while the world says 29 %, as after charging in A. Policies that wait lose more here than
    there (`replayed`).

    Args:
        world: "ev-workday" or "ev-workday-hard".
        alpha: The threshold: the expected number of cars per day that may leave without the energy they need.
        prices: "carbon", or "dutch" for day-ahead prices (not for the hard world).
        seed: Seed of the order of chargers within a date, which have no order of their own.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> from hedgerow.worlds.ev_replay import RealCars
        >>> cars = RealCars()
        >>> episode = cars.play(hr.Policy.uniform(cars.view()), np.random.default_rng(0))
        >>> len(episode.rows), cars.remaining
        (3, 19439)
    """

    def __init__(
        self, world: str = "ev-workday", *, alpha: float = 0.1, prices: str = "carbon", seed: int = 0
    ) -> None:  # fmt: skip
        params = {"alpha": alpha} if world == "ev-workday-hard" else {"alpha": alpha, "prices": prices}
        self._view = make(world, **params).view()
        self._days, self._units = workday.days_of(world), workday.site_of(world).units
        self._rates = workday.daily_rates(world, prices)
        self._order = shuffled(self._days, seed)
        self._next = 0

    def view(self) -> View:
        """Return what a learner may know."""
        return self._view

    @property
    def remaining(self) -> int:
        """The number of charger-days that are left."""
        return len(self._order) - self._next

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Play `policy` on the next charger-day; `rng` only draws its actions."""
        line = self._line()
        self._next += 1
        return self._played(line, policy, rng)

    def expected(self, plan: Policy | Mixture) -> tuple[float, float]:
        """Compute the expected loss and cost of the policy or mixture `plan` on the next charger-day.

        Ask before the day is played. Promises of safe learners are about expectations; sums of drawn costs are noisier.
        """
        days, line = self._days, self._line()
        outcome = (days.arrives[line], days.leaves[line], self._rates[days.day[line]])
        return self._mean(plan, outcome)

    def _mean(self, plan: Policy | Mixture, outcome: tuple[IntArray, IntArray, FloatArray]) -> tuple[float, float]:
        if isinstance(plan, Mixture) and not isinstance(plan, UniformMixture):
            parts = [(weight, self._mean(part, outcome)) for weight, part in plan.parts]
            return sum(weight * own[0] for weight, own in parts), sum(weight * own[1] for weight, own in parts)
        table = plan.table if isinstance(plan, UniformMixture) else plan.probabilities
        losses, costs = _expected(table, self._units, *outcome)
        return float(np.mean(losses)), float(np.mean(costs))

    def _line(self) -> int:
        if not self.remaining:
            raise InvalidInput(f"all {len(self._order):,} real charger-days have been played; make a new environment")
        return int(self._order[self._next])

    def _played(self, line: int, policy: Policy, rng: Generator) -> Episode:
        days, layout = self._days, self._view.layout
        arrives, leaves = days.arrives[line].tolist(), days.leaves[line].tolist()
        rates = self._rates[days.day[line]]
        rows, losses, costs = [], [], []
        need = 0
        for k in range(layout.steps):
            need = arrives[k] or need
            state = int(layout.state_start[k]) + (need if k else 0)
            action = policy.draw_position(state, rng)
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
    """Expected loss and cost of a policy on every real charger-day, in the order of the table.

    Examples:
        >>> from hedgerow.worlds import ev_replay, ev_workday
        >>> ev_replay.replayed(ev_workday.charge_at_once()).losses.shape
        (19440,)
    """

    losses: FloatArray
    """(T,): the expected loss of each charger-day."""
    costs: FloatArray
    """(T,): the expected cost of each charger-day."""


def replayed(policy: ArrayLike, world: str = "ev-workday", prices: str = "carbon") -> Replayed:
    """Compute what a policy loses and costs on every real charger-day, in expectation over its actions.

    Args:
        policy: (num_rows,) action probabilities.
        world: "ev-workday" or "ev-workday-hard".
        prices: "carbon", or "dutch" (not for the hard world).

    Returns:
        The losses and costs of all days.

    Examples:
        >>> from hedgerow.worlds import ev_replay, ev_workday
        >>> found = ev_replay.replayed(ev_workday.charge_at_once())
        >>> round(float(found.losses.mean()), 4), float(found.costs.mean())     # .3935 and 0 in the world
        (0.3943, 0.0)
        >>> found = ev_replay.replayed([1, 0, 1, 0, 0, 1, 1, 0, 0, 1.0])        # its optimum, which waits: .3159 there
        >>> round(float(found.losses.mean()), 4), round(float(found.costs.mean()), 3)
        (0.3497, 0.029)
    """
    days, units = workday.days_of(world), workday.site_of(world).units
    rates = workday.daily_rates(world, prices)[days.day]
    loss, cost = _expected(np.asarray(policy, dtype=np.float64), units, days.arrives, days.leaves, rates)
    return Replayed(np.repeat(loss, days.chargers), np.repeat(cost, days.chargers))


def _expected(
    policy: FloatArray, units: int, arrives: IntArray, leaves: IntArray, rates: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Loss and cost (...,) of policies (..., num_rows) on days (..., K), (..., K) with rates (..., K + 1)."""
    width, blocks = units + 1, arrives.shape[-1]
    table = policy.reshape(*policy.shape[:-1], -1, width)
    needs, certain = np.arange(width), np.ones(np.broadcast_shapes(policy.shape[:-1], arrives.shape[:-1]))
    chance = certain[..., np.newaxis] * (arrives[..., :1] == needs)  # of each need before block k
    loss, cost = np.zeros_like(certain), np.zeros_like(certain)
    for k in range(blocks):
        left = np.zeros_like(chance)  # the chance of each need after block k
        for need in range(width):
            state = 1 + (k - 1) * width + need if k else 0
            for action in range(width):
                weight = chance[..., need] * table[..., state, action]
                lacks = max(0, need - action)
                loss += weight * (need - lacks) * rates[..., k] / units
                left[..., lacks] += weight
        leaving = leaves[..., k]
        loss += leaving * (left @ needs) * rates[..., -1] / units
        cost += leaving * (certain - left[..., 0])
        if k + 1 < blocks:
            free = (leaving == 1)[..., np.newaxis]
            arriving = arrives[..., k + 1, np.newaxis]
            chance = np.where(arriving > 0, arriving == needs, np.where(free, needs == 0, left))
    return loss, cost
