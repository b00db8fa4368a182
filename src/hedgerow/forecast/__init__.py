"""Forecast how much of a run S-OPS would leave to its baseline, before the run and without a simulator.

lambda, the probability of the baseline, depends on the upper bound U of the costs of the learner's policy, and U on
what was seen. What will be seen is unknown beforehand; under a *stated* model it can be computed. `model` says what is
assumed, what would have been seen after t episodes, what the package's own intervals make of it and how lambda and
exploration depend on each other, `summary` which rows keep lambda large, what knowledge would help and what recorded
episodes are worth, as plain data. Both leave out the aggregate certificate, which needs real episodes and makes lambda
no larger. `course` leaves out nothing: S-OPS plays in the model, with a log and guessed losses, and the loss that it
saves is counted. `preflight` looks at a problem before a run.
"""

from __future__ import annotations

from hedgerow.forecast.course import forecast_run, read_guess
from hedgerow.forecast.model import Model, assumed_model, true_model
from hedgerow.forecast.summary import forecast

__all__ = ["Model", "assumed_model", "forecast", "forecast_run", "read_guess", "true_model"]


def __dir__() -> list[str]:
    return list(__all__)
