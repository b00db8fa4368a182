"""Flags, counters and rates that belong together, and a coin that its seed can have led to.

Segments of a doubling horizon, rates and the tosses of a coin follow from how many episodes there were.
"""

from __future__ import annotations

from math import log
from typing import Any

from numpy.random import PCG64, Generator, SeedSequence

from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror import state as places
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.core import MIXTURE
from hedgerow.learners.mirror.state import RELAXED, UNSOLVED
from hedgerow.learners.mirror.step import set_rates

TOLERANCE = 1e-9
NUMBERS = (
    "EPISODE", "PENDING", "INFEASIBLE", "SUSPECT", "FAILED", "ITERATIONS", "LAST_ITERATIONS", "LAST_STATUS", "SEGMENT",
    "SEGMENT_END", "EPOCHS", "OPEN", "PHASE_OVER", "STALE",
)  # fmt: skip


def demand(condition: bool, otherwise: str) -> None:
    """Refuse the file in these words unless the condition holds."""
    if not condition:
        raise InvalidInput(otherwise)


def check_numbers(learner: MirrorLearner) -> None:
    core = learner.core
    number = {name: int(core.state.numbers[getattr(places, name)]) for name in NUMBERS}
    episode, pending, begun = number["EPISODE"], number["PENDING"], learner.begun
    learner.check_horizon(pending)
    demand(begun <= episode, f"state.search.facts: the search took {begun} of {episode} episodes")
    busy = pending + max(number["OPEN"], number["PHASE_OVER"])
    demand(busy <= 1, "state.numbers: an episode is PENDING although the one before is not complete")
    demand(not number["PHASE_OVER"] or core.search.active, "state.numbers: PHASE_OVER, but there is no search")
    demand(number["OPEN"] == 0 or episode > begun, "state.numbers: OPEN before the first episode")
    demand(number["FAILED"] <= number["SUSPECT"], "state.numbers: FAILED exceeds SUSPECT")
    # One projection for each episode, and one at the start of each phase.
    demand(
        number["INFEASIBLE"] <= episode + 2, f"state.numbers: {number['INFEASIBLE']} INFEASIBLE in {episode} episodes"
    )
    demand(number["LAST_ITERATIONS"] <= number["ITERATIONS"], "state.numbers: LAST_ITERATIONS exceeds ITERATIONS")
    status = number["LAST_STATUS"]
    demand(status != RELAXED or number["INFEASIBLE"] > 0, "state.numbers: LAST_STATUS without an INFEASIBLE one")
    demand(status != UNSOLVED or number["FAILED"] > 0, "state.numbers: LAST_STATUS without a FAILED one")
    segment, end = 0, 0
    if core.rule.doubling:  # segment j has the episodes 2^j - 1, ..., 2^(j+1) - 2 of the phase
        segment = (episode - begun + 1).bit_length() - 1
        end = begun + 2 ** (segment + 1) - 1
    demand(number["SEGMENT"] == segment, f"state.numbers: SEGMENT is {number['SEGMENT']}, not {segment}")
    demand(number["SEGMENT_END"] == end, f"state.numbers: SEGMENT_END is {number['SEGMENT_END']}, not {end}")
    fewest, most = (min(1, episode), episode) if core.rule.epochs else (0, 0)
    demand(fewest <= number["EPOCHS"] <= most, f"state.numbers: {number['EPOCHS']} EPOCHS in {episode} episodes")
    cached = len(core.state.baseline_u) > 0 and core.rule.mixture_bound == MIXTURE
    demand(cached or number["STALE"] == 1, "state.numbers: STALE is 0, but no bounds are cached")


def check_rates(learner: MirrorLearner) -> None:
    """eta and gamma of the segment, or of the whole phase."""
    core, reals = learner.core, learner.core.state.reals
    given, rule = reals.copy(), learner.core.rule
    if rule.doubling:
        j = int(core.state.numbers[places.SEGMENT])
        set_rates(core, 2.0**j, rule.log_inverse_delta + log((j + 1.0) * (j + 2.0)))
    else:
        set_rates(core, float(max(1, (learner.episodes or 1) - learner.begun)), rule.log_inverse_delta)
    for name, place in (("ETA", places.ETA), ("GAMMA", places.GAMMA)):
        computed = float(reals[place])
        close = abs(given[place] - computed) <= TOLERANCE * computed
        demand(close, f"state.reals: {name} is {given[place]!r}; the horizon makes it {computed!r}")
    reals[:] = given


def restored_coin(learner: MirrorLearner, given: Any) -> None:
    """Set the learner's coin to a state that its seed can have led to."""
    coin = Generator(PCG64(SeedSequence(learner.seed)))
    expected = dict(coin.bit_generator.state)
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
    learner.coin.bit_generator.state = given
