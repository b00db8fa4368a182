"""The tables of real charger-days and of what charging cost on them, as arrays.

A *charger-day* is one charger on one date that had a car. Equal days share one line with a count: in which blocks a car
arrives, with how many units of need, and in which blocks one leaves. Rates are whole multiples of 1e-5: means over days
are exact fractions and the same on every machine. `data/ATTRIBUTION.md` names the sources of the numbers;
`tools/build_ev_tables.py` counted them.

    >>> days = charger_days("ev_charger_days")
    >>> days.dates[0], days.arrives[1].tolist(), days.leaves[1].tolist(), int(days.chargers[1])
    ('2019-05-01', [0, 1, 0], [0, 0, 1], 25)
    >>> rates("ev_moer")[0].tolist()
    [9298, 2768, 2963, 19598]
"""

from __future__ import annotations

import csv
import gzip
import io
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from hedgerow.checks import IntArray, frozen

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
