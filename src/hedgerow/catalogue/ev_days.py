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
from typing import ClassVar

import numpy as np

from hedgerow.adversaries.loss_blocks import LossBlock, ObliviousLosses, check_rows, from_table
from hedgerow.catalogue import ev_workday
from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout


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
    counts = ev_workday.days_of(world).per_date()
    losses = ev_workday.losses_by_date(world, prices)
    return frozen(losses), frozen(np.repeat(np.arange(len(counts)), counts))
