"""Forecast how much of a run S-OPS would leave to its baseline, before the run and without a simulator.

lambda, the probability of the baseline, depends on the upper bound U of the own policy's costs, and U on what was seen.
Nobody knows beforehand what will be seen; under a *stated* model it can be computed. `model` says what is assumed,
`exploring` what would have been seen after t episodes, `bounds` what the package's own intervals make of it, `course`
how lambda and exploration depend on each other, `slack` which rows keep lambda large, `wishes` what knowledge would
help, `log_value` what recorded episodes are worth. `summary` puts it together as plain data. The aggregate certificate
is left out: it needs real episodes, and makes lambda no larger.
"""

from __future__ import annotations

from hedgerow.forecast.model import Model, assumed_model, true_model
from hedgerow.forecast.summary import forecast

__all__ = ["Model", "assumed_model", "forecast", "true_model"]
