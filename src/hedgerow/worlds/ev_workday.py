"""Charging electric cars at work: 19,440 real charger-days, and the carbon of the grid on those days.

An episode is one charger on one day that had a car. Three layers: block A from 5 to 9 h, B from 9 to 12, C from 12 to
17. In x_0 it is unknown who comes; before B and C the charger is `empty` or a car there has `need`. Actions: `wait`, or
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
sites did; its cost is exactly 0, and learners get the bound .001.

`ev-workday-hard` is the same with four blocks (5, 8, 11, 14, 17 h), need in units of 10 kWh, at most two, and actions
that charge none, one or two. Docs: docs/ev-workday.md.

    >>> view = ev_workday().cmdp.view()
    >>> view.layout, view.state_labels, view.constraint_names
    (Layout(layers=(1, 2, 2, 1), actions=2, full support), \
('x0', 'B empty', 'B need', 'C empty', 'C need', 'end'), ('unserved',))
    >>> zero_cost_rows().tolist()
    [False, True, True, True, False, True, True, True, False, True]
    >>> days = days_of()
    >>> days.dates[0], days.arrives[1].tolist(), days.leaves[1].tolist(), int(days.chargers[1])
    ('2019-05-01', [0, 1, 0], [0, 0, 1], 25)

Counting: two chargers have a day with one car in block 0 that leaves in block 1, and one has a car in block 1 alone.

    >>> days = ChargerDays(("day",), np.array([0, 0]), np.array([[1, 0], [0, 1]]), np.array([[0, 1], [0, 1]]),
    ...                    np.array([2, 1]))
    >>> morning, noon = tally(days, 1)
    >>> morning.successors.tolist()  # waiting leads to need on all three days, charging on one
    [[[0, 3], [2, 1]]]
    >>> noon.visits.tolist(), noon.unserved.tolist()
    ([2, 3], [[0, 0], [3, 0]])
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray, did_you_mean, frozen, real_number
from hedgerow.display.terms import Terms
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Baseline, Scale, WorldDefinition

SOURCE = "ours, from ACN-Data (Lee, Li, Low 2019)"
REAL_DAYS = ("own", "ev-days", "switching", "cycle", "betrayal", "tempting")
UNSERVED = "unserved"
BASELINE_COST = 0.001
"""Learners get this bound instead of 0: what a few thousand days would show"""
LARGEST_RATE = 66_375
"""The largest carbon rate of any region and time in the source, in steps of 1e-5 kg/kWh"""
FOLDER = "data"
PER_UNIT = 100_000
"""Rates have five decimals."""


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
        {"carbon": ("ev_moer", LARGEST_RATE), "dutch": ("ev_prices", PER_UNIT)},
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
    "charging cars at work, from records: 19,440 charger-days; carbon is the loss, cars that leave uncharged the cost",
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
    "charging cars at work, finer: four blocks, need in units of 10 kWh; too much to learn in 19,370 episodes",
    frozen=({}, {"alpha": 0.2}),
    source=SOURCE,
    adversaries=REAL_DAYS,
)
def ev_workday_hard(*, alpha: float = 0.1) -> WorldDefinition:
    return _ingredients("ev-workday-hard", alpha, "carbon")


# The real days --------------------------------------------------------------------------------------------------------


def days_of(world: str = "ev-workday") -> ChargerDays:
    """The charger-days behind a world."""
    return charger_days(site_of(world).days)


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


def zero_cost_rows(world: str = "ev-workday") -> BoolArray:
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
    saved = "carbon" if prices == "carbon" else "money"
    limit = f"on every day, at most {alpha:g} cars are expected to leave without their charge"
    terms = Terms("day", saved, "today's rule", limit)
    return WorldDefinition(cmdp, _loss(site, mean_rates), Scale(), baseline=baseline, terms=terms)


def _rates(world: str, prices: str) -> tuple[IntArray, int]:
    """The rates (dates, K + 1) in steps of 1e-5, and how many steps count as 1."""
    known = site_of(world).rates
    if prices not in known:
        raise InvalidInput(f"{world}: prices is {prices!r}; choose {' or '.join(known)}")
    name, largest = known[prices]
    return rate_table(name), largest


def _shares(site: Site) -> PowerShares:
    return power_shares(tally(charger_days(site.days), site.units), site.units)


def _loss(site: Site, rates: FloatArray) -> FloatArray:
    """(..., num_rows): the loss at rates (..., K + 1); what is missed at work is paid in the evening."""
    shares, blocks = _shares(site), rates.shape[-1] - 1
    width = site.units + 1
    layer = np.repeat(np.arange(blocks), [width, *[width * width] * (blocks - 1)])
    loss: FloatArray = shares.charged * rates[..., layer] + shares.missed * rates[..., -1:]
    return loss


def _layout(world: str) -> Layout:
    site = site_of(world)
    blocks = charger_days(site.days).arrives.shape[1]
    later = [f"{chr(ord('A') + k)} {state}" for k in range(1, blocks) for state in site.states]
    layout = Layout([1, *[len(site.states)] * (blocks - 1), 1], len(site.actions))
    return layout.labelled(["x0", *later, "end"], site.actions)


# From days to transitions ---------------------------------------------------------------------------------------------
#
# Layer k is block k of the day. Before every block but the first the state is the need, in units, of the car at the
# charger, 0 if there is none or it is full; action a charges up to a units. Charging does not change when a car comes
# or leaves, so each real day tells what would have followed every action.
#
# Real days are not Markov: how long a car stays depends on when it came. A state with need s is measured on all days on
# which a car of that need stands at the charger in that block, as if it had never been charged. The empty state is
# measured on all days on which no new car arrives in that block, as if all earlier cars had been charged. So every row
# uses as many days as possible, but the world differs from the real days: after waiting, an empty charger is likelier
# to see a car than the world says. `ev_replay.py` plays the days themselves, and has the difference in numbers.


class ChargingTally(NamedTuple):
    """Counts of charger-days in one layer: S states, A = units + 1 actions, S' states of the next layer."""

    visits: IntArray
    """(S,)"""
    successors: IntArray
    """(S, A, S')"""
    charged: IntArray
    """(S, A): units that are charged"""
    unserved: IntArray
    """(S, A): cars that leave with need"""
    missed: IntArray
    """(S, A): the units that these cars lack"""


class PowerShares(NamedTuple):
    """The same per charger-day, over all layers, in the order of a layout with full support."""

    transitions: FloatArray
    """(num_triples,)"""
    unserved: FloatArray
    """(num_rows,): how often a car leaves with need"""
    charged: FloatArray
    """(num_rows,): expected units charged, as a share of the most that a car may need"""
    missed: FloatArray
    """(num_rows,): expected units left for the evening, as a share of the same"""


def tally(days: ChargerDays, units: int) -> list[ChargingTally]:
    """Count, layer by layer, what follows every state and action."""
    standing = standing_need(days)
    layers = []
    for k in range(days.arrives.shape[1]):
        states = range(1 if k == 0 else units + 1)
        rows = [_row(days, standing, units, k, s) for s in states]
        layers.append(ChargingTally(*(np.stack(part) for part in zip(*rows, strict=True))))
    return layers


def power_shares(layers: Sequence[ChargingTally], units: int) -> PowerShares:
    """Counts divided by visits."""

    def joined(name: str) -> FloatArray:
        parts = ((getattr(layer, name), layer.visits) for layer in layers)
        return np.concatenate(
            [(counts / visits.reshape(-1, *[1] * (counts.ndim - 1))).ravel() for counts, visits in parts]
        )

    return PowerShares(joined("successors"), joined("unserved"), joined("charged") / units, joined("missed") / units)


def standing_need(days: ChargerDays) -> IntArray:
    """(lines, K): the need of the car that stands at the charger in a block, if it is never charged."""
    need = days.arrives.copy()
    for k in range(1, need.shape[1]):
        stays = (need[:, k] == 0) & (days.leaves[:, k - 1] == 0)
        need[stays, k] = need[stays, k - 1]
    return need


def following_need(days: ChargerDays, k: int, left: IntArray) -> IntArray:
    """(lines,): the need before block k + 1, if `left` (lines,) is what a car lacks after block k."""
    arriving = days.arrives[:, k + 1]
    return np.where(arriving > 0, arriving, np.where(days.leaves[:, k] == 1, 0, left))


def _row(days: ChargerDays, standing: IntArray, units: int, k: int, s: int) -> Iterator[IntArray]:
    """Visits (), successors (A, S'), charged, unserved and missed (A,) of the s-th state of layer k."""
    weight = days.chargers
    need = days.arrives[:, 0] if k == 0 else np.full(len(weight), s)
    if k > 0:
        weight = weight * (standing[:, k] == s if s else days.arrives[:, k] == 0)
    last = k == days.arrives.shape[1] - 1
    successors = np.zeros((units + 1, 1 if last else units + 1), dtype=np.int64)
    charged, unserved, missed = np.zeros((3, units + 1), dtype=np.int64)
    for a in range(units + 1):
        left = np.maximum(need - a, 0)
        lacking = np.where(days.leaves[:, k] == 1, left, 0)
        charged[a], missed[a] = weight @ (need - left), weight @ lacking
        unserved[a] = weight @ (lacking > 0)
        np.add.at(successors[a], np.zeros_like(left) if last else following_need(days, k, left), weight)
    yield from (weight.sum(), successors, charged, unserved, missed)


# Tables of charger-days -----------------------------------------------------------------------------------------------
#
# A *charger-day* is one charger on one date that had a car. Equal days share one line with a count. Rates are whole
# multiples of 1e-5: means over days are exact fractions and the same on every machine. `data/ATTRIBUTION.md` names the
# sources of the numbers; `tools/build_ev_tables.py` counted them.


class ChargerDays(NamedTuple):
    """Lines of equal charger-days, in the order of their dates; K is the number of blocks."""

    dates: tuple[str, ...]
    """The dates, ascending"""
    day: IntArray
    """(lines,): which date a line belongs to"""
    arrives: IntArray
    """(lines, K): the need, in units, of the car that arrives in a block; 0 if none does"""
    leaves: IntArray
    """(lines, K): 1 where a car leaves in a block, before the next one may arrive"""
    chargers: IntArray
    """(lines,): how many chargers had such a day"""

    @property
    def total(self) -> int:
        """The number of charger-days."""
        return int(self.chargers.sum())

    def per_date(self) -> IntArray:
        """(dates,): charger-days of each date."""
        counts = np.zeros(len(self.dates), dtype=np.int64)
        np.add.at(counts, self.day, self.chargers)
        return counts


def table_text(name: str) -> str:
    """A table as it was written."""
    path = resources.files("hedgerow.worlds").joinpath(FOLDER, f"{name}.csv.gz")
    return gzip.decompress(path.read_bytes()).decode("ascii")


@cache
def charger_days(name: str) -> ChargerDays:
    lines = _body(name)
    dates = tuple(dict.fromkeys(line[0] for line in lines))
    place = {date: number for number, date in enumerate(dates)}
    numbers = np.array([line[1:] for line in lines], dtype=np.int64)
    blocks = (numbers.shape[1] - 1) // 2
    return ChargerDays(
        dates,
        frozen(np.array([place[line[0]] for line in lines], dtype=np.int64)),
        frozen(numbers[:, :blocks].copy()),
        frozen(numbers[:, blocks:-1].copy()),
        frozen(numbers[:, -1].copy()),
    )


@cache
def rate_table(name: str) -> IntArray:
    """(dates, K + 1): what charging costs in each block and in the evening, in steps of 1e-5, date by date."""
    return frozen(np.array([[round(float(cell) * PER_UNIT) for cell in line[1:]] for line in _body(name)]))


def _body(name: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(table_text(name))))[1:]
