"""The errors hedgerow raises on purpose: each says what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class HedgerowError(Exception):
    """Base of every error that is raised deliberately; the command line prints it without a traceback."""


class InvalidInput(HedgerowError, ValueError):  # noqa: N818 - a public name, read as a sentence
    """An argument or a file's content does not describe what it should."""


class FileFormatError(HedgerowError):
    """A data file is truncated, corrupt, of another kind or of an unknown version."""


class BusyError(HedgerowError, RuntimeError):
    """A learner is at work already, in another thread or further up in this one; nothing was changed."""


class CertificateError(HedgerowError, RuntimeError):
    """A computed answer failed its own check; the answer is withheld."""


class InfeasibleError(HedgerowError):
    """No policy satisfies the constraints.

    `least_violation` is the smallest s for which costs <= thresholds + s has a solution, `multipliers` (m,) the
    weights in the simplex that prove it, `constraints` the names of those with positive weight.
    """

    def __init__(
        self, message: str, *, least_violation: float, constraints: Sequence[str], multipliers: Sequence[float]
    ) -> None:
        super().__init__(message)
        self.least_violation = least_violation
        self.constraints = tuple(constraints)
        self.multipliers = tuple(multipliers)


class InfeasibleWarning(UserWarning):
    """No policy that the observations allow can meet the thresholds; a learner goes on with raised ones."""
