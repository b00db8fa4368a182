"""The tests of what a learner was told: against a naive twin, and how rarely something true is refuted."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.premises import (
    BASELINE,
    COSTS,
    FALSE_ALARM,
    SHARED_COSTS,
    SHARED_TRANSITIONS,
    TRANSITIONS,
    PremiseRule,
    Premises,
    compare_all,
    count_episode,
    count_logged,
    make_premise_rule,
    make_premises,
)
from hedgerow.model.kernel_layout import index_of

WORLD = hr.CMDP(
    hr.Layout((1, 2, 1), 2),
    [0.3, 0.7, 0.3, 0.7, 1, 1, 1, 1],
    hr.costs.BernoulliCosts([[0.4, 0.2, 0.4, 0.2, 0.4, 0.2]]),
    [1.0],
)
UNIFORM = hr.Policy.uniform(WORLD)
TRUTH = float(hr.occupancy.evaluate(WORLD, UNIFORM).costs[0])
INDEX = index_of(WORLD.layout)
EVEN = np.arange(6) % 2 == 0
TRUE = {
    "costs": np.where(EVEN, 0.4, np.nan),
    "transitions": [0.3, 0.7, *[np.nan] * 6],
    "same_costs": [-1, 0, -1, 0, -1, 0],
    "same_transitions": [-1, -1, -1, -1, -1, -1],
}


def premises_of(
    delta: float, beta: float = TRUTH, *, absorbs: bool = True, **told: object
) -> tuple[PremiseRule, Premises]:
    view = WORLD.view().knowing(**{**TRUE, **told})
    unknowns = make_unknowns(view.layout, 1, view.knowledge, ties=True)
    rule = make_premise_rule(view, unknowns, delta, beta=np.array([beta]), absorbs=absorbs, stays=True)
    return rule, make_premises(rule, view.layout.num_triples, absorbs=absorbs)


def played(episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and triples (episodes, L), costs (episodes, L, 1)."""
    found = hr.Log.played(WORLD, UNIFORM, episodes, seed=seed)
    shape = (episodes, WORLD.layout.steps)
    return found.rows.reshape(shape).copy(), found.triples.reshape(shape).copy(), found.costs.reshape(*shape, 1).copy()


def run(rule: PremiseRule, premises: Premises, episodes: int, seed: int, whole: bool = True) -> None:
    rows, triples, costs = played(episodes, seed)
    for t in range(episodes):
        count_episode(INDEX, rule, premises, rows[t], triples[t], costs[t], t % 2, whole or t % 3 > 0, t + 1)


def add_log(rule: PremiseRule, premises: Premises, episodes: int, seed: int) -> None:
    rows, triples, costs = played(episodes, seed)
    starts = np.arange(episodes + 1) * 2
    whole = np.ones(episodes, dtype=np.int8)
    count_logged(premises, starts, rows.ravel(), triples.ravel(), costs.reshape(-1, 1), whole)
    compare_all(INDEX, rule, premises, 0)


def test_true_premises_are_refuted_rarely_enough() -> None:
    """FALSE_ALARM delta = .09 and 600 runs: 54 would be allowed, far fewer happen; a tenth of the radius breaks it."""
    refuted = 0
    for seed in range(600):
        rule, premises = premises_of(0.9)
        if seed % 2:
            add_log(rule, premises, 60, 10_000 + seed)
        run(rule, premises, 120, seed, whole=seed % 4 < 2)
        refuted += premises.numbers.what != 0
    assert refuted <= 600 * FALSE_ALARM * 0.9
    bold, premises = premises_of(0.9)
    bold = bold.replace(log_streams=0.1 * bold.log_streams, log_baseline=0.1 * bold.log_baseline)
    broken = 0
    for seed in range(50):
        _, premises = premises_of(0.9)
        run(bold, premises, 120, seed)
        broken += premises.numbers.what != 0
    assert broken > 50 * FALSE_ALARM * 0.9, "the test can fail"


@pytest.mark.parametrize(
    ("told", "beta", "what"),
    [
        ({}, 0.2, BASELINE),
        ({"costs": np.where(EVEN, 0.8, np.nan)}, TRUTH, COSTS),
        ({"transitions": [0.9, 0.1, *[np.nan] * 6]}, TRUTH, TRANSITIONS),
    ],
)
def test_what_is_false_is_found(told: dict[str, object], beta: float, what: int) -> None:
    rule, premises = premises_of(0.01, beta, absorbs=False, **told)
    run(rule, premises, 600, 1)
    assert premises.numbers.what == what
    assert 0 < premises.numbers.episode < 600
    assert (
        premises.figures.seen_low > premises.figures.told_high or premises.figures.seen_high < premises.figures.told_low
    )


def test_rows_that_do_not_share_a_law() -> None:
    for told, what in (
        ({"same_costs": [0, 0, -1, -1, -1, -1], "costs": np.full(6, np.nan)}, SHARED_COSTS),
        ({"same_transitions": [0, 0, -1, -1, -1, -1], "transitions": None}, SHARED_TRANSITIONS),
    ):
        cmdp = hr.CMDP(WORLD.layout, [0.3, 0.7, 0.9, 0.1, 1, 1, 1, 1], WORLD.costs, [1.0])
        view = cmdp.view().knowing(**told)
        unknowns = make_unknowns(view.layout, 1, view.knowledge, ties=True)
        rule = make_premise_rule(view, unknowns, 0.01, beta=None, absorbs=False, stays=True)
        premises = make_premises(rule, view.layout.num_triples, absorbs=False)
        log = hr.Log.played(cmdp, UNIFORM, 3000, seed=2)
        for t in range(3000):
            at = slice(2 * t, 2 * t + 2)
            rows, triples, costs = log.rows[at].copy(), log.triples[at].copy(), log.costs[at].copy()
            count_episode(INDEX, rule, premises, rows, triples, costs, 0, True, t + 1)
        assert premises.numbers.what == what


def test_the_interval_of_the_baseline_is_that_of_its_summed_costs() -> None:
    """A naive twin: the sums of the episodes that were left to it, by `hr.confidence.kt_interval`."""
    rule, premises = premises_of(0.05, 0.35, absorbs=False)
    rows, triples, costs = played(400, 5)
    sums, n, log_term = 0.0, 0, log(1.0 / (0.05 * FALSE_ALARM / 2.0))
    first = None
    for t in range(400):
        count_episode(INDEX, rule, premises, rows[t], triples[t], costs[t], t % 2, True, t + 1)
        if t % 2:
            sums, n = sums + costs[t].sum(), n + 1
            low, high = hr.confidence.kt_interval(n, sums / 2.0, log_term)
            if first is None and premises.numbers.what:
                first = (2.0 * low, 2.0 * high, n)
    assert first is not None
    figures, numbers = premises.figures, premises.numbers
    assert (figures.seen_low, figures.seen_high, numbers.visits) == pytest.approx(first, abs=1e-12)
    assert first[0] > 0.35


def test_an_episode_that_may_not_be_counted_widens_every_interval() -> None:
    """[LCB(n + K, S), UCB(n + K, S + K)] in the place of [LCB(n, S), UCB(n, S)]."""
    rule, premises = premises_of(0.05, absorbs=False)
    one = np.array([0, 2]), np.array([0, 4]), np.array([[1.0], [1.0]])
    for t in range(5):
        count_episode(INDEX, rule, premises, *one, 0, False, t + 1)
    assert premises.numbers.unknown == 5
    assert premises.visits.sum() == 0
    premises.high_costs[:], premises.low_costs[:] = 1.0, 0.0  # forget what was told
    count_episode(INDEX, rule, premises, *one, 0, True, 6)
    low = hr.confidence.kt_interval(6, 1.0, rule.log_streams)[0]
    high = hr.confidence.kt_interval(6, 6.0, rule.log_streams)[1]
    assert premises.low_costs[0, 0] == pytest.approx(low)
    assert premises.high_costs[0, 0] == pytest.approx(high)
