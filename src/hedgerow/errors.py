"""The errors hedgerow raises on purpose: each says what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "BusyError",
    "CertificateError",
    "FileFormatError",
    "HedgerowError",
    "InfeasibleError",
    "InfeasibleWarning",
    "InvalidInput",
    "PremiseError",
    "PremiseWarning",
]


def __dir__() -> list[str]:
    return list(__all__)


class HedgerowError(Exception):
    """The base of every error that hedgerow raises on purpose.

    The message says what is wrong, where, and what to do. The command line prints it without a traceback.
    """


class InvalidInput(HedgerowError, ValueError):  # noqa: N818 - a public name, read as a sentence
    """An argument, or the content of a file, does not describe what it should. Also a `ValueError`."""


class FileFormatError(HedgerowError):
    """A data file cannot be used: it is truncated, corrupt, of another kind, or of an unknown version."""


class BusyError(HedgerowError, RuntimeError):
    """A learner or projector is at work in another call; nothing was changed. Also a `RuntimeError`."""


class CertificateError(HedgerowError, RuntimeError):
    """A computed answer failed its own check and is withheld. Also a `RuntimeError`."""


class InfeasibleError(HedgerowError):
    """No policy satisfies the constraints.

    Args:
        message: What the error says.
        least_violation: The smallest number that, added to all thresholds, lets some policy satisfy them.
        constraints: The names of the constraints that cause it, those with a positive weight.
        multipliers: (m,) weights of the constraints, at least 0 with sum 1, that prove it.
    """

    def __init__(
        self, message: str, *, least_violation: float, constraints: Sequence[str], multipliers: Sequence[float]
    ) -> None:
        super().__init__(message)
        self.least_violation = least_violation
        self.constraints = tuple(constraints)
        self.multipliers = tuple(multipliers)


class InfeasibleWarning(UserWarning):
    """No policy that the observations allow meets the thresholds; the learner goes on with raised ones."""


class PremiseWarning(UserWarning):
    """An input of a learner, such as what its baseline costs, is refuted by what it has seen.

    The promises of the learner are void from here on, and its ledger says why.

    Examples:
        >>> import warnings
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> wrong = hr.SafePolicy(hr.Policy.of(view, "wait"), costs=[0.1])  # it always costs 1
        >>> learner = hr.SOPS(view, 100, 0.05, "sharpest", baseline=wrong)
        >>> with warnings.catch_warnings(record=True, action="always") as found:
        ...     for _ in range(40):
        ...         path = [("home", "wait" if learner.plan().branch == "baseline" else "go")]
        ...         learner.observe(path, [0.0], [1.0])
        >>> [warning.category.__name__ for warning in found], learner.guarantees()["safety"].holds
        (['PremiseWarning'], False)
    """


class PremiseError(HedgerowError):
    """An input of a learner is refuted by what it has seen, and `on_refuted` is "raise".

    The episode that showed it has been learnt. A learner that goes on all the same leaves every episode to its
    baseline, if it has one.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> wrong = hr.SafePolicy(hr.Policy.of(view, "wait"), costs=[0.1])  # it always costs 1
        >>> learner = hr.SOPS(view, 100, 0.05, "sharpest", baseline=wrong, on_refuted="raise")
        >>> try:
        ...     for _ in range(40):
        ...         path = [("home", "wait" if learner.plan().branch == "baseline" else "go")]
        ...         learner.observe(path, [0.0], [1.0])
        ... except hr.errors.PremiseError as error:
        ...     print(str(error).partition(", as")[0])
        after 9 episodes, the baseline costs between 0.1617 and 1 of 'delay'
    """


class JournalError(HedgerowError):
    """A journal could not record something, cannot be read, or is in use: nothing of the call is durable.

    Examples:
        >>> import hedgerow as hr
        >>> issubclass(hr.errors.JournalError, hr.errors.HedgerowError)
        True
    """


class ConflictError(HedgerowError):
    """Another outcome of the same decision was told before. This one is recorded in the journal, and not learnt.

    Examples:
        >>> import hedgerow as hr
        >>> issubclass(hr.errors.ConflictError, hr.errors.HedgerowError)
        True
    """
