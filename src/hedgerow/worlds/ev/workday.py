"""Charging electric cars at work: 19,440 real charger-days, and the carbon of the grid on those days.

An episode is one charger on one day that had a car. Three layers: block A from 5 to 9 h, B from 9 to 12, C from 12 to
17. In x_0 nobody knows who comes; before B and C the charger is `empty` or a car there has `need`. Actions: `wait`, or
`charge`, which serves the whole need within the block. The one constraint, "unserved", is about cars that leave with
their need (Bernoulli costs):

    row                 cost     loss on a day with the rates r_A, r_B, r_C and r_evening, all in [0, 1]
    x0, wait            .029     .029 r_evening                what is not charged at work is charged at home
    x0, charge          0        .564 r_A                      a car comes in A on 56 % of the charger-days
    B need, wait        .178     .178 r_evening
    B need, charge      0        r_B
    C need, wait        1        r_evening
    C need, charge      0        r_C
    empty               0        0

All zeros are so by construction. Rates are the marginal carbon rate of the grid over its maximum of .66375 kg/kWh, or
with `prices="dutch"` the day-ahead price of the same dates in the Netherlands over its largest hourly value of the
last 28 days. The world's own loss is that of the mean rates of all charger-days. The baseline charges at once, as the
sites did; its cost is exactly 0, and .001 is what learners are told.

`ev-workday-hard` is the same with four blocks (5, 8, 11, 14, 17 h), need in units of 10 kWh, at most two, and actions
that charge none, one or two. Docs: docs/ev-workday.md.

    >>> view = ev_workday().cmdp.view()
    >>> view.layout, view.state_labels, view.constraint_names
    (Layout(layers=(1, 2, 2, 1), actions=2, full support), \
('x0', 'B empty', 'B need', 'C empty', 'C need', 'end'), ('unserved',))
    >>> zero_cost_rows().tolist()
    [False, True, True, True, False, True, True, True, False, True]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, did_you_mean, frozen, real_number
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.worlds.entries import entry
from hedgerow.worlds.ev import charging
from hedgerow.worlds.world import Baseline, Scale, WorldDefinition

SOURCE = "ours, from ACN-Data (Lee, Li, Low 2019)"
REAL_DAYS = ("own", "ev-days", "switching", "cycle", "betrayal", "tempting")
UNSERVED = "unserved"
BASELINE_COST = 0.001
"""Learners are told this instead of 0: what a few thousand days would show"""
LARGEST_RATE = 66_375
"""The largest carbon rate of any region and time in the source, in steps of 1e-5 kg/kWh"""


class Site(NamedTuple):
    """What distinguishes one world of charger-days from another."""

    days: str
    """The table of charger-days"""
    rates: Mapping[str, tuple[str, int]]
    """The table of rates, and the rate that counts as 1, by `prices`"""
    states: tuple[str, ...]
    """The states before every block but the first, by units of need"""
    actions: tuple[str, ...]

    @property
    def units(self) -> int:
        """The most that a car needs, and that an action charges."""
        return len(self.actions) - 1


SITES = {
    "ev-workday": Site(
        "ev_charger_days",
        {"carbon": ("ev_moer", LARGEST_RATE), "dutch": ("ev_prices", charging.PER_UNIT)},
        ("empty", "need"),
        ("wait", "charge"),
    ),
    "ev-workday-hard": Site(
        "ev_hard_charger_days",
        {"carbon": ("ev_hard_moer", LARGEST_RATE)},
        ("empty", "needs 10 kWh", "needs 20 kWh"),
        ("wait", "charge 10 kWh", "charge 20 kWh"),
    ),
}


@entry(
    "ev-workday",
    "charging cars at work, 19,440 real charger-days: carbon is the loss, cars that leave uncharged the cost",
    frozen=(
        {},
        {"alpha": 0.2},
        {"alpha": 0.02},
        {"prices": "dutch"},
        {"alpha": 0.2, "prices": "dutch"},
    ),
    source=SOURCE,
    adversaries=REAL_DAYS,
)
def ev_workday(*, alpha: float = 0.1, prices: str = "carbon") -> WorldDefinition:
    return _ingredients("ev-workday", alpha, prices)


@entry(
    "ev-workday-hard",
    "the same charger-days in four blocks, with need in units of 10 kWh: too much to learn in 19,370 episodes",
    frozen=({}, {"alpha": 0.2}),
    source=SOURCE,
    adversaries=REAL_DAYS,
)
def ev_workday_hard(*, alpha: float = 0.1) -> WorldDefinition:
    return _ingredients("ev-workday-hard", alpha, "carbon")


# The real days --------------------------------------------------------------------------------------------------------


def days_of(world: str = "ev-workday") -> charging.ChargerDays:
    """The charger-days behind a world."""
    return charging.charger_days(site_of(world).days)


def daily_rates(world: str = "ev-workday", prices: str = "carbon") -> FloatArray:
    """(dates, K + 1) in [0, 1]: what charging costs in each block and in the evening, date by date."""
    table, largest = _rates(world, prices)
    return table / largest


def losses_by_date(world: str = "ev-workday", prices: str = "carbon") -> FloatArray:
    """(dates, num_rows): the loss of every row on each date."""
    return _loss(site_of(world), daily_rates(world, prices))


def daily_losses(world: str = "ev-workday", prices: str = "carbon") -> FloatArray:
    """(T, num_rows): the losses of all charger-days in the order of their dates, T = 19,440 (hard: 19,370).

    Charger-days of a date have the same loss. There are no more real ones than these: to repeat them is a bootstrap.
    """
    repeated: FloatArray = np.repeat(losses_by_date(world, prices), days_of(world).per_date(), axis=0)
    return repeated


def charge_at_once(world: str = "ev-workday") -> FloatArray:
    """(num_rows,): the baseline policy, which takes the largest action everywhere."""
    site = site_of(world)
    states = _layout(world).num_decision_states
    return np.tile(np.arange(site.units + 1) == site.units, states).astype(np.float64)


def zero_cost_rows(world: str = "ev-workday") -> NDArray[np.bool_]:
    """(num_rows,): rows in which no car can leave with need, whatever the data are.

    These are the rows whose action charges all that the state may need; in x_0 that is the largest need of all.
    """
    units = site_of(world).units
    layout = _layout(world)
    needs = np.concatenate([[units], np.tile(np.arange(units + 1), layout.steps - 1)])
    return (np.arange(units + 1) >= needs[:, np.newaxis]).ravel()


def site_of(world: str) -> Site:
    """The site of a world of charger-days."""
    if world not in SITES:
        raise InvalidInput(f"there are no charger-days of {world!r}{did_you_mean(str(world), SITES)}")
    return SITES[world]


# Building -------------------------------------------------------------------------------------------------------------


def _ingredients(world: str, alpha: float, prices: str) -> WorldDefinition:
    site, layout = site_of(world), _layout(world)
    table, largest = _rates(world, prices)
    days = days_of(world)
    # Whole numbers until the one division: the same bits on every machine.
    mean_rates = (days.per_date() @ table) / (days.total * largest)
    shares = _shares(site)
    cmdp = CMDP(
        layout,
        shares.transitions,
        BernoulliCosts(shares.unserved[np.newaxis]),
        [real_number(f"{world}: alpha", alpha, 0.0, float(layout.steps))],
        constraint_names=[UNSERVED],
    )
    baseline = Baseline(frozen(charge_at_once(world)), frozen(np.array([BASELINE_COST])))
    return WorldDefinition(cmdp, _loss(site, mean_rates), Scale(), baseline=baseline)


def _rates(world: str, prices: str) -> tuple[IntArray, int]:
    """The rates (dates, K + 1) in steps of 1e-5, and how many steps count as 1."""
    known = site_of(world).rates
    if prices not in known:
        raise InvalidInput(f"{world}: prices is {prices!r}; choose {' or '.join(known)}")
    name, largest = known[prices]
    return charging.rates(name), largest


def _shares(site: Site) -> charging.PowerShares:
    return charging.shares(charging.tally(charging.charger_days(site.days), site.units), site.units)


def _loss(site: Site, rates: FloatArray) -> FloatArray:
    """(..., num_rows): the loss at rates (..., K + 1); what is missed at work is paid in the evening."""
    shares, blocks = _shares(site), rates.shape[-1] - 1
    width = site.units + 1
    layer = np.repeat(np.arange(blocks), [width, *[width * width] * (blocks - 1)])
    loss: FloatArray = shares.charged * rates[..., layer] + shares.missed * rates[..., -1:]
    return loss


def _layout(world: str) -> Layout:
    site = site_of(world)
    blocks = charging.charger_days(site.days).arrives.shape[1]
    later = [f"{chr(ord('A') + k)} {state}" for k in range(1, blocks) for state in site.states]
    layout = Layout([1, *[len(site.states)] * (blocks - 1), 1], len(site.actions))
    return layout.labelled(["x0", *later, "end"], site.actions)
