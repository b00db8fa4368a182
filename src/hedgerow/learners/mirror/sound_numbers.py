"""Check that flags, counters and rates belong together, and that the seed can have led to the coin's state.

Segments of a doubling horizon, rates and the tosses of a coin follow from the number of episodes.
"""

from __future__ import annotations

from math import log
from typing import Any

from numpy.random import SeedSequence

from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.broken import MOST_REASONS
from hedgerow.learners.mirror.core import MIXTURE
from hedgerow.learners.mirror.state import RELAXED, UNSOLVED, Reals
from hedgerow.learners.mirror.step import set_rates
from hedgerow.model.pcg64 import seeded

TOLERANCE = 1e-9


def demand(condition: bool, otherwise: str) -> None:
    """Refuse the file in these words unless the condition holds."""
    if not condition:
        raise InvalidInput(otherwise)


def check_numbers(learner: MirrorLearner) -> None:
    core, numbers = learner.core, learner.core.state.numbers
    episode, pending, begun = numbers.episode, numbers.pending, learner.begun
    logged = core.state.logged.episodes
    learner.check_horizon(pending)
    demand(begun <= episode, f"state.search.facts: the search took {begun} of {episode} episodes")
    busy = pending + max(numbers.open, numbers.phase_over)
    demand(busy <= 1, "state.numbers: an episode is pending although the one before is not complete")
    demand(not numbers.phase_over or core.search.active, "state.numbers: phase_over, but there is no search")
    demand(numbers.open == 0 or episode > begun or logged > 0, "state.numbers: open before the first episode")
    demand(numbers.failed <= numbers.suspect, "state.numbers: failed exceeds suspect")
    # One projection for each episode, one at the start of each phase, and one for each log, which has episodes.
    most = episode + 2 + logged
    demand(numbers.infeasible <= most, f"state.numbers: {numbers.infeasible} infeasible in {episode} episodes")
    demand(numbers.last_iterations <= numbers.iterations, "state.numbers: last_iterations exceeds iterations")
    status = numbers.last_status
    demand(status != RELAXED or numbers.infeasible > 0, "state.numbers: last_status without an infeasible one")
    demand(status != UNSOLVED or numbers.failed > 0, "state.numbers: last_status without a failed one")
    segment, end = 0, 0
    if core.rule.doubling:  # segment j has the episodes 2^j - 1, ..., 2^(j+1) - 2 of the phase
        segment = (episode - begun + 1).bit_length() - 1
        end = begun + 2 ** (segment + 1) - 1
    demand(numbers.segment == segment, f"state.numbers: segment is {numbers.segment}, not {segment}")
    demand(numbers.segment_end == end, f"state.numbers: segment_end is {numbers.segment_end}, not {end}")
    fewest, most = (min(1, episode), episode + logged) if core.rule.epochs else (0, 0)
    demand(fewest <= numbers.epochs <= most, f"state.numbers: {numbers.epochs} epochs in {episode} episodes")
    cached = len(core.state.baseline_u) > 0 and core.rule.mixture_bound == MIXTURE
    demand(cached or numbers.stale == 1, "state.numbers: stale is 0, but no bounds are cached")


def check_declared(learner: MirrorLearner) -> None:
    """Check that the ledger's numbers of episodes that are not whole belong together."""
    logged, incomplete = learner.core.state.logged, learner.core.state.incomplete
    total, found = sum(learner.declared.values()), incomplete.independent
    demand(found == total, f"state.incomplete: something of {found} episodes is left out; the reasons name {total}")
    demand(len(learner.declared) <= MOST_REASONS + 1, f"declared: there are more than {MOST_REASONS} reasons")
    most = learner.episode + logged.episodes
    for name, value, limit in (
        ("logged: interfered", logged.interfered, learner.episode),
        ("logged: costless", logged.costless, logged.episodes),
        ("incomplete: unknown", incomplete.unknown, most),
        ("incomplete: independent", incomplete.independent, most),
    ):
        demand(value <= limit, f"state.{name} is {value}; there are {limit} episodes")


def check_rates(learner: MirrorLearner) -> None:
    """Check eta and gamma of the segment, or of the whole phase."""
    core, reals = learner.core, learner.core.state.reals
    given, rule = Reals(reals.values.copy()), learner.core.rule
    if rule.doubling:
        j = core.state.numbers.segment
        set_rates(core, 2.0**j, rule.log_inverse_delta + log((j + 1.0) * (j + 2.0)))
    else:
        set_rates(core, float(max(1, (learner.episodes or 1) - learner.begun)), rule.log_inverse_delta)
    for name in ("eta", "gamma"):
        found, computed = getattr(given, name), getattr(reals, name)
        close = abs(found - computed) <= TOLERANCE * computed
        demand(close, f"state.reals: {name} is {found!r}; the horizon makes it {computed!r}")
    reals.values[:] = given.values


def restored_coin(learner: MirrorLearner, given: Any) -> None:
    """Set the learner's coin to a state that its seed can have led to."""
    expected = seeded(SeedSequence(learner.seed)).state
    demand(isinstance(given, dict) and given.keys() == expected.keys(), "coin is not the state of a PCG64 generator")
    demand(isinstance(given["state"], dict), "coin is not the state of a PCG64 generator")
    numbers = given["state"].get("state"), given["state"].get("inc")
    whole = all(type(number) is int and 0 <= number < 2**128 for number in numbers)
    demand(whole and len(given["state"]) == 2, "coin: state and inc must be whole numbers of 128 bits")
    demand(numbers[1] == expected["state"]["inc"], "coin: inc does not belong to the seed")
    for name in expected.keys() - {"state"}:
        demand(given[name] == expected[name] and type(given[name]) is type(expected[name]), f"coin: {name} is wrong")
    if not len(learner.core.baseline.policies) and not learner.core.search.active:
        demand(given["state"] == expected["state"], "coin was tossed, but this learner has nothing to toss it for")
    learner.coin.go_to(given)
