"""What a learner is told before its first episode: a comparison is fair only between learners that are told the same.

Everybody knows the layout and the thresholds. `Told` says what a learner is given beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Told:
    """What a learner is told of a run before its first episode.

    Examples:
        >>> import hedgerow as hr
        >>> hr.SOPS.told.baseline, str(hr.SOPS.told)
        (True, 'T, delta, a baseline')
    """

    episodes: bool = True
    """Whether it needs the number T of episodes."""
    delta: bool = True
    """Whether it needs the failure probability."""
    baseline: bool = False
    """Whether it needs a policy that is known to be safe, with bounds of its costs."""
    slater: bool = False
    """Whether it needs the largest margin rho that all constraints can have at once."""
    cheats: str = ""
    """What it is told that no learner can know; the empty string for nothing."""

    def __str__(self) -> str:
        given = {"T": self.episodes, "delta": self.delta, "a baseline": self.baseline, "rho": self.slater}
        words = [word for word, is_told in given.items() if is_told]
        return ", ".join([*words, *([f"cheats: {self.cheats}"] if self.cheats else [])]) or "nothing"


def told_in_words(learner: Any) -> str:
    """What a learner, or its class, is told, its feedback included; learners of others may not say."""
    told = getattr(learner, "told", None)
    if not isinstance(told, Told):
        return "not said"
    feedback = getattr(learner, "feedback", "bandit")
    return f"{told}; {feedback} feedback" if feedback != "bandit" else str(told)


def cheats(learner: Any) -> str:
    """What a learner, or its class, is told that no learner can know; the empty text for nothing."""
    told = getattr(learner, "told", None)
    return told.cheats if isinstance(told, Told) else ""
