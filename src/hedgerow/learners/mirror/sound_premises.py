"""Check the tests of what a learner was told: can episodes have led to these streams, and to this refutation?"""

from __future__ import annotations

import numpy as np

from hedgerow.estimates.premises import (
    BASELINE,
    LOGGED,
    NOTHING,
    OWN,
    SHARED_COSTS,
    SHARED_TRANSITIONS,
    TRANSITIONS,
    PremiseRule,
    Premises,
)
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.sound_numbers import demand
from hedgerow.model.layout import Layout


def check_premises(layout: Layout, core: Core, episode: int, *, forgotten: bool) -> None:
    """Check the streams of a learner that has observed so many episodes, and may have forgotten its first logs."""
    premises, logged = core.state.premises, core.state.logged.episodes
    numbers, streams = premises.numbers, len(premises.visits)
    demand(
        forgotten or numbers.logged <= logged, f"state.premises.numbers: {numbers.logged} logged episodes of {logged}"
    )
    demand(numbers.baseline_episodes <= episode, "state.premises.numbers: more baseline episodes than episodes")
    most = numbers.baseline_episodes * core.rule.premises.ceilings
    demand(bool(np.all(premises.baseline_sums <= most + 1e-6)), "state.premises.baseline_sums exceed the ceilings")
    demand(numbers.unknown <= episode, "state.premises.numbers: more unknown episodes than episodes")
    for stream, counted in ((OWN, episode - numbers.unknown), (LOGGED, numbers.logged - numbers.unknown_logged)):
        if stream < streams:
            moves = np.add.reduceat(premises.moves[stream], layout.row_start[:-1])
            demand(np.array_equal(moves, premises.visits[stream]), "state.premises.moves are not those of the visits")
            first = int(premises.visits[stream, : layout.num_actions].sum())
            demand(first <= counted, f"state.premises.visits of layer 0 are {first}; there are {counted} episodes")
            high = premises.visits[stream, :, np.newaxis] + 1e-6
            demand(bool(np.all(premises.sums[stream] <= high)), "state.premises.sums exceed the visits")
    _check_refutation(layout, core.rule.premises, premises, episode)


def _check_refutation(layout: Layout, rule: PremiseRule, premises: Premises, episode: int) -> None:
    numbers, figures = premises.numbers, premises.figures
    demand(
        numbers.said <= 1 and numbers.beside_logs <= 1 and numbers.stream <= LOGGED, "state.premises.numbers: a flag"
    )
    demand(numbers.what <= SHARED_TRANSITIONS, f"state.premises.numbers: kind is {numbers.what}")
    ordered = bool(
        np.all(premises.low_costs <= premises.high_costs) and np.all(premises.low_moves <= premises.high_moves)
    )
    demand(ordered, "state.premises: a lower bound is above its upper one")
    if numbers.what == NOTHING:
        unsaid = not numbers.said and not numbers.visits
        demand(unsaid, "state.premises.numbers: nothing is refuted, but it was said so")
        return
    moves = numbers.what in (TRANSITIONS, SHARED_TRANSITIONS)
    limit = layout.num_triples if moves else layout.num_rows
    demand(numbers.where < limit, f"state.premises.numbers: where is {numbers.where}; there are {limit}")
    columns = len(premises.baseline_sums)
    demand(moves or numbers.column < columns, "state.premises.numbers: column names no constraint")
    demand(numbers.episode <= episode, "state.premises.numbers: refuted in an episode that is still to come")
    demand(numbers.what != SHARED_COSTS or len(premises.visits) > 0, "state.premises.numbers: nothing was compared")
    demand(numbers.what != BASELINE or len(rule.beta) > 0, "state.premises.numbers: there is no baseline")
    apart = figures.seen_low > figures.told_high or figures.seen_high < figures.told_low
    demand(apart, "state.premises.figures do not contradict each other")
