"""What a journal records, and the chain of hashes that ties every event to all before it.

ask       a decision was asked for: what was planned, under which bounds and thresholds
tell      its outcome
abandon   it was given up
expire    its outcome did not come by the deadline
resolve   an outcome that came after it was given up or expired; it is learnt in the place of what was unknown
late      such an outcome that cannot be learnt any more
conflict  another outcome than the one that was told; it is not learnt
poisoned  an outcome that broke the learner, when it came or when its turn came: it counts as unknown
close     a group of decisions will have no further ones
change    thresholds, costs of the baseline or the number of episodes were changed
absorb    a log was absorbed
version   another release of the package goes on
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

ENDS = {
    "tell": "told", "abandon": "abandoned", "expire": "expired", "poisoned": "poisoned", "resolve": "resolved",
}  # fmt: skip
"""The events that end a decision, and what it is called then"""
LEARNT = ("tell", "resolve")
"""Those by which an outcome is learnt"""
OUTCOMES = (*LEARNT, "late", "poisoned")
"""Those by which an outcome comes, learnt or not"""
START = "0" * 64
"""What the first event is chained to, after the digest of the first snapshot"""


class Event(NamedTuple):
    """One row of a journal."""

    number: int
    """1, 2, 3, ..."""
    kind: str
    decision: str | None
    """The name of the decision that it concerns; None if it concerns none."""
    at: str
    """When it was recorded, in UTC."""
    clock: float
    """Seconds for which the journal had been in service."""
    body: str
    """JSON."""
    hash: str
    """SHA-256 of the event and of the hash before it."""

    @property
    def content(self) -> dict[str, Any]:
        """The body, read."""
        read: dict[str, Any] = json.loads(self.body)
        return read

    @property
    def outcome(self) -> dict[str, Any]:
        """The outcome that one of OUTCOMES recorded."""
        content = self.content
        found: dict[str, Any] = content.get("outcome", content)
        return found


def plain(content: Any) -> str:
    """JSON with one form for equal contents; numbers keep all of their bits."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def chained(before: str, number: int, kind: str, decision: str | None, at: str, clock: float, body: str) -> Event:
    """The event that follows the one with the hash `before`."""
    text = plain([before, number, kind, decision, at, clock, body])
    return Event(number, kind, decision, at, clock, body, hashlib.sha256(text.encode()).hexdigest())


def is_chained(before: str, event: Event) -> bool:
    """Whether an event is what followed the one with the hash `before`."""
    return chained(before, *event[:-1]) == event
