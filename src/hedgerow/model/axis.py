"""Label or position: one rule for states and actions, decided once per axis.

An *axis* is the states of a layout, or its actions. Each of its entries has a position 0, 1, ..., and may have a label.
A text is always a label. What a number means is decided for the whole axis, never value by value:

    where any label looks like a number, every number is a label, and matches the label that is written like it
    else every number is a position

So a plant whose actions are called "1" and "0" has no action at position 1 that could be taken for the one called "1".
Labels are compared as they are written: 1 is "1", and neither "01" nor "1.0".

    >>> Axis("action", ("1", "0")).position(1), Axis("action", ("stop", "go")).position(1)
    (0, 1)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hedgerow.checks import did_you_mean, short_repr, whole_number
from hedgerow.errors import InvalidInput

WHOLE = re.compile("0|[1-9][0-9]*")
"""A position as a file without types writes it."""


def looks_like_a_number(label: str) -> bool:
    """Whether Python, or a reader of tables, could take a label for a number: "7", "0456", "-1.5", "1e3", "0x10"."""
    return value_of(label) is not None


def value_of(label: str) -> float | None:
    """The number that a label could be taken for; None if it could not."""
    for read in (float, _prefixed):
        try:
            return read(label)
        except (ValueError, OverflowError):
            continue
    return None


def _prefixed(label: str) -> float:
    return float(int(label, 0))  # 0x10, 0b10, 0o10


class Axis:
    """The entries of one axis, and what stands for each of them.

    Args:
        what: What an entry is called in messages: "state" or "action".
        labels: The labels, all different; or how many entries there are, if they have none.
    """

    def __init__(self, what: str, labels: Sequence[str] | int) -> None:
        self.what = what
        self.labels: tuple[str, ...] | None = None if isinstance(labels, int) else tuple(labels)
        self.count = labels if isinstance(labels, int) else len(labels)

    @cached_property
    def numbers_are_labels(self) -> bool:
        """Whether a number means a label here, because some label looks like a number."""
        return self.labels is not None and any(map(looks_like_a_number, self.labels))

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each label."""
        return {label: place for place, label in enumerate(self.labels or ())}

    def position(self, given: object) -> int:
        """The position of an entry that is given by label, or by a number that means what the axis says.

        Raises:
            InvalidInput: If there is no such entry; the message says what numbers mean here.
        """
        if isinstance(given, str):
            place = self.places.get(given)
            return self._unknown(given, given) if place is None else place
        number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not self.numbers_are_labels or not number:
            return whole_number(f"the {self.what}", given, 0, self.count - 1)
        written = str(given.item() if isinstance(given, np.generic) else given)
        place = self.places.get(written)
        return self._unknown(given, written) if place is None else place

    def read(self, text: str) -> int:
        """The position of an entry in a file without types, where a position is written as digits too."""
        if text not in self.places and not self.numbers_are_labels and WHOLE.fullmatch(text):
            return self.position(int(text))
        return self.position(text)

    def entry(self, position: int) -> int | str:
        """What stands for the entry at a position so that `position` finds it again: a label where numbers are labels.

        Elsewhere it is the position itself.
        """
        return self.labels[position] if self.labels is not None and self.numbers_are_labels else position

    def _unknown(self, given: object, written: str) -> int:
        what, labels = self.what, self.labels
        if labels is None:
            raise InvalidInput(
                f"{what}s have no labels here; give a number in 0..{self.count - 1}, not {short_repr(given)}"
            )
        value = value_of(written)
        twins = [label for label in labels if value is not None and value_of(label) == value][:2]
        rule = ""
        if not isinstance(given, str):
            rule = f": labels of {what}s look like numbers here, so every number is a label and not a position"
        if twins:
            hint = f"; {' and '.join(map(repr, twins))} is written otherwise, and labels count as they are written"
        else:
            hint = did_you_mean(written, labels)
        raise InvalidInput(f"there is no {what} {short_repr(given)}{rule}{hint}")
