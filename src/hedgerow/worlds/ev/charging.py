"""Turn real charger-days into a layered world: what follows a state and an action, and which share of need is left.

Layer k is block k of the day. In x_0 nobody knows who comes; before every later block the state is the need, in units,
of the car at the charger, 0 if there is none or it is full. Action a charges up to a units. A car that leaves in a
block with need left is *unserved*, which costs 1. Charging does not change when a car comes or leaves, so each real day
tells what would have followed every action.

Real days are not Markov: how long a car stays depends on when it came. A state with need s is measured on all days on
which a car of that need stands at the charger in that block, as if nobody had charged it yet. The empty state is
measured on all days on which no new car arrives in that block, as if all earlier cars had been charged. So every row
uses as many days as possible, but the world differs from the real days: after waiting, an empty charger is likelier to
see a car than the world says. `replay.py` plays the days themselves, and its docstring has the difference in numbers.

Two chargers have a day with one car in block 0 that leaves in block 1, and one has a day with a car in block 1 alone:

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
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray, frozen


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


def shares(layers: Sequence[ChargingTally], units: int) -> PowerShares:
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


# --------------------------------------------------------------------------------------------------------------------
# The tables of real charger-days and of what charging cost on them, as arrays.
#
# A *charger-day* is one charger on one date that had a car. Equal days share one line with a count: in which blocks a
# car arrives, with how many units of need, and in which blocks one leaves. Rates are whole multiples of 1e-5: means
# over days are exact fractions and the same on every machine. `data/ATTRIBUTION.md` names the sources of the numbers;
# `tools/build_ev_tables.py` counted them.
#
#     >>> days = charger_days("ev_charger_days")
#     >>> days.dates[0], days.arrives[1].tolist(), days.leaves[1].tolist(), int(days.chargers[1])
#     ('2019-05-01', [0, 1, 0], [0, 0, 1], 25)
#     >>> rates("ev_moer")[0].tolist()
#     [9298, 2768, 2963, 19598]


FOLDER = "data"
PER_UNIT = 100_000
"""Rates have five decimals."""


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


def text(name: str) -> str:
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
def rates(name: str) -> IntArray:
    """(dates, K + 1): what charging costs in each block and in the evening, in steps of 1e-5, date by date."""
    return frozen(np.array([[round(float(cell) * PER_UNIT) for cell in line[1:]] for line in _body(name)]))


def _body(name: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text(name))))[1:]
