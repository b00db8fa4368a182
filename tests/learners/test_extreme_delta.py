"""Failure probabilities at both ends: the smallest normal number works; a delta that promises nothing is refused."""

from __future__ import annotations

import inspect
from importlib import import_module
from math import log
from typing import Any

import numpy as np
import pytest
from learner_cases import make_learner

import hedgerow as hr
from hedgerow.confidence.radii import KINDS, Radii
from hedgerow.confidence.sets import SETS
from hedgerow.learners.guarantees import NOTHING_LEFT, Promise
from hedgerow.learners.ops.guarantees import primal_constant
from hedgerow.registry import learners
from hedgerow.testing.trial import small_worlds

SMALLEST = float(np.finfo(np.float64).tiny)
SMALL = (1e-16, 1e-100, SMALLEST)
WORLD = next(world.cmdp for world in small_worlds() if world.name == "m = 1")
OURS = [
    (kind, options)
    for kind in ("sv-ops", "s-ops", "cv-ops", "uob-reps", "b-ops")
    for options in (
        {"preset": "paper"}, {"preset": "sharp"}, {"preset": "sharpest"}, {"radii": "anytime"}, {"radii": "kt"},
    )
]  # fmt: skip
FIELD = [kind for kind, place in learners.builtin.items() if ".field." in place]


def field_learner(kind: str, delta: float, sets: str) -> Any:
    """A learner of the field on the small world, or None if it is not told delta."""
    module, _, name = learners.builtin[kind].partition(":")
    cls = getattr(import_module(module), name)
    taken, slater = inspect.signature(cls).parameters, hr.offline.slater(WORLD)
    if "delta" not in taken:
        return None
    offered = {"sets": sets, "baseline": slater, "slater": slater.margin}
    return cls(WORLD.view(), 30, delta, **{name: value for name, value in offered.items() if name in taken})


def is_finite(run: hr.results.Run) -> bool:
    facts = [value for name, value in run.facts.items() if value is not None and not name.startswith("mixing_")]
    return bool(np.all(np.isfinite(facts)) and all(np.all(np.isfinite(note)) for note in run.notes.values()))


@pytest.mark.parametrize("delta", SMALL)
@pytest.mark.parametrize(("kind", "options"), OURS)
def test_our_learners_take_every_normal_delta(kind: str, options: dict[str, Any], delta: float) -> None:
    learner = make_learner(kind, WORLD, 30, delta, **options)
    run = hr.simulate(WORLD, learner, hr.losses.Switching(period=5), progress=False)
    assert is_finite(run)
    assert learner.guarantees()["confidence"].probability == pytest.approx(1.0)


@pytest.mark.parametrize("sets", ["source", "sharp"])
@pytest.mark.parametrize("kind", FIELD)
def test_learners_of_the_field_take_every_normal_delta(kind: str, sets: str) -> None:
    for delta in SMALL:
        learner = field_learner(kind, delta, sets)
        if learner is not None:
            run = hr.simulate(WORLD, learner, hr.losses.Switching(period=5), progress=False)
            assert is_finite(run)


def test_below_the_smallest_normal_number_is_a_sentence() -> None:
    for delta in (5e-324, 1e-310, SMALLEST / 2, 0.0, -1e-300):
        with pytest.raises(hr.errors.InvalidInput, match=r"delta is .*; it must lie in \(0, 1\)"):
            hr.SVOPS(WORLD.view(), 30, delta, "paper")
        with pytest.raises(hr.errors.InvalidInput, match="delta is"):
            field_learner("dope", delta, "source")


@pytest.mark.parametrize("kind", KINDS)
def test_the_logarithms_of_a_small_delta_are_those_of_a_large_one_shifted(kind: str) -> None:
    rules = [Radii(kind).rule(WORLD.layout, 1, delta, 30) for delta in (0.05, SMALLEST)]
    shift = log(0.05) - log(SMALLEST)
    assert rules[1].cost_log == pytest.approx(rules[0].cost_log + shift, rel=1e-14)
    assert rules[1].transition_log == pytest.approx(rules[0].transition_log + shift, rel=1e-14)


def test_the_constants_of_the_search_stay_numbers() -> None:
    assert primal_constant(WORLD.layout, 1e-300) < primal_constant(WORLD.layout, SMALLEST) < 1e12


# Large ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.2, 0.25, 0.5, 0.999])
@pytest.mark.parametrize(("kind", "options"), OURS)
def test_our_learners_refuse_a_delta_of_which_nothing_is_left(kind: str, options: dict[str, Any], delta: float) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=r"1 - 5 delta, of which nothing is left.*below 0\.2"):
        make_learner(kind, WORLD, 30, delta, **options)


def test_with_known_transitions_one_delta_is_spent_or_five() -> None:
    known = {"transitions": WORLD.transitions}
    assert make_learner("sv-ops", WORLD, 30, 0.5, **known).guarantees()["confidence"].probability == 0.5
    with pytest.raises(hr.errors.InvalidInput, match="1 - 5 delta"):
        make_learner("sv-ops", WORLD, 30, 0.5, preset="sharpest", **known)
    hr.learners.Statistics(WORLD.view(), 30, 0.5, transitions=WORLD.transitions)


@pytest.mark.parametrize("sets", SETS)
def test_statistics_refuse_it_too(sets: str) -> None:
    hr.learners.Statistics(WORLD.view(), 30, 0.199, sets)
    with pytest.raises(hr.errors.InvalidInput, match="1 - 5 delta, of which nothing is left"):
        hr.learners.Statistics(WORLD.view(), 30, 0.2, sets)


@pytest.mark.parametrize("kind", FIELD)
def test_learners_of_the_field_refuse_it_or_promise_something(kind: str) -> None:
    for sets in ("source", "sharp"):
        for delta in (0.19, 0.2, 0.25, 0.999):
            learner, words = None, "nothing is left"
            try:
                learner = field_learner(kind, delta, sets)
            except hr.errors.InvalidInput as error:
                words = str(error) if delta >= 0.2 else "refused too early"
            assert "nothing is left" in words
            if learner is not None:
                assert all(line.probability > 0.0 for line in learner.guarantees() if line.holds)
                assert sets == "source" or delta < 0.2


def test_a_promise_without_probability_is_void() -> None:
    learner = make_learner("s-ops", WORLD, 30, 0.1)
    ledger = learner.guarantees()
    assert ledger["safety"].holds
    assert ledger["safety"].probability == 0.5
    assert ledger["regret"].status == f"void: {NOTHING_LEFT}"  # 13 delta
    assert Promise("safety", "", 0.0, "", "another reason").void_because == "another reason"
    assert Promise("safety", "", 1e-300, "").holds


def test_intervals_are_made_for_a_delta_that_leaves_something() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="1 - 5 delta"):
        Radii("kt").rule(WORLD.layout, 1, 0.2)
    assert Radii("kt").rule(WORLD.layout, 1, 0.1999).cost_log > 0.0
