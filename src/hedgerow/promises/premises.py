"""T31: what a learner was told is tested by what it sees (`estimates/premises.py`), and nothing true is refuted.

The control is told less than its baseline costs. That it is refuted shows that the tests can find something.
"""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.estimates.premises import FALSE_ALARM
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, any_of, rates


def judge_premises(observations: Sequence[Observation]) -> Verdict:
    """Count the runs in which something that the learner was told was refuted."""
    return any_of(
        rates("what was told was refuted", observations, lambda one: one["refuted_premises"] > 0.0, FALSE_ALARM)
    )
