"""The words of a world: what its episodes, its loss and its baseline are called in tables, figures and verdicts.

>>> Terms("day", "carbon", "today's rule").said("{episodes} left to {baseline}")
"days left to today's rule"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hedgerow.display.text import counted
from hedgerow.errors import InvalidInput

LONGEST_TERM = 200
"""Characters of a term."""


@dataclass(frozen=True)
class Terms:
    """What people call the parts of a world; pages, tables and figures use these words.

    Examples:
        >>> import hedgerow as hr
        >>> hr.worlds.make("ev-workday").terms.episode, hr.worlds.make("dope-media").terms.episode
        ('day', 'episode')
    """

    episode: str = "episode"
    """One episode, a noun whose plural ends in s, such as "day"."""
    loss: str = "loss"
    """What is minimised, such as "carbon"."""
    baseline: str = "the baseline"
    """The policy that is known to be safe, such as "today's rule"."""
    limit: str = ""
    """The limit of every episode as a sentence without a full stop; the empty string names constraints and
    thresholds."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, str) or len(value) > LONGEST_TERM or (not value.strip() and field.name != "limit"):
                raise InvalidInput(
                    f"the term {field.name!r} is {value!r:.80}; it must be a text of 1 to {LONGEST_TERM} characters"
                )

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Terms:
        """Return the terms in the `facts` of a run; the usual words where it has none."""
        given = facts.get("terms") or {}
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})

    def said(self, words: str) -> str:
        """Return `words` in which {episode}, {episodes}, {loss} and {baseline} stand for the terms."""
        for name in ("episode", "loss", "baseline"):
            words = words.replace(f"{{{name}}}", getattr(self, name))
        return words.replace("{episodes}", f"{self.episode}s")

    def counted(self, number: int) -> str:
        """Return `number` episodes in words: "1 day", "19,440 days"."""
        return counted(number, self.episode)


USUAL = Terms()
"""The words of a world that declares none."""
