"""The ledger: what is promised, how surely, and what a switch voids."""

from __future__ import annotations

import re

import pytest
from learner_cases import KINDS, make_learner, random_world

from hedgerow.errors import InvalidInput
from hedgerow.paper import NUMBERS

EXPECTED = {
    "sv-ops": {"confidence": 5, "feasibility": 5, "violation": 8, "regret": 10},
    "s-ops": {"confidence": 5, "feasibility": 5, "safety": 5, "mixing": 0, "regret": 13.1},
    "c-ops": {"confidence": 5, "feasibility": 5, "safety": 5, "choice": 2, "regret": 15.1},
    "cv-ops": {
        "confidence": 5,
        "feasibility": 5,
        "margin": 1,
        "safety": 6,
        "violation": 6,
        "regret": 14,
    },
    "uob-reps": {"confidence": 5, "regret": 9},
    "b-ops": {"confidence": 5, "feasibility": 5, "budget": 6, "regret": 14.1},
}


@pytest.mark.parametrize("preset", ["paper", "sharp"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_presets_make_all_promises(kind: str, preset: str) -> None:
    ledger = make_learner(kind, random_world(0), 10_000, 0.01, preset=preset).guarantees()
    assert [promise.name for promise in ledger.promises] == list(EXPECTED[kind])
    for promise in ledger.promises:
        waits = kind == "cv-ops" and promise.name not in ("confidence", "feasibility")
        assert promise.holds == (not waits)
        assert ("phase 1 has not ended in 0 episodes: nothing is protected" in promise.status) == waits
        assert promise.probability == pytest.approx(1 - 0.01 * EXPECTED[kind][promise.name])
        cited = re.findall(r"(\w+ \d+) \((\w+)\)", promise.source)
        assert cited or promise.source in (
            "Jin et al. 2020, Theorem 3",
            "docs/choice.md",
            *(f"docs/budget.md, Theorem {k}" for k in "PR"),
        )
        assert all(NUMBERS[label] == place for place, label in cited)
    assert "[holds]" in str(ledger)


@pytest.mark.parametrize("kind", KINDS)
def test_smaller_radii_void_whatever_rests_on_them(kind: str) -> None:
    ledger = make_learner(kind, random_world(0), confidence_scale=0.5).guarantees()
    for promise in ledger.promises:
        assert promise.holds == (promise.name in ("mixing", "choice"))
    assert "void: confidence_scale = 0.5 < 1" in str(ledger)


def test_known_transitions_cost_nothing() -> None:
    world = random_world(0)
    ledger = make_learner("sv-ops", world, 1_000, 0.01, transitions=world.transitions).guarantees()
    assert ledger["feasibility"].probability == pytest.approx(0.99)


def test_a_coarse_projection_voids_rates_but_not_safety() -> None:
    ledger = make_learner("s-ops", random_world(0), 100_000, tol=1e-3).guarantees()
    assert {promise.name for promise in ledger.promises if not promise.holds} == {"regret"}
    assert "tol = 0.001 is above" in ledger["regret"].status


def test_doubling_names_its_factor() -> None:
    ledger = make_learner("uob-reps", random_world(0), None, horizon="doubling").guarantees()
    assert "3.41" in ledger["regret"].statement


def test_a_ledger_is_read_like_a_collection() -> None:
    ledger = make_learner("s-ops", random_world(0)).guarantees()
    assert list(ledger) == list(ledger.promises)
    assert len(ledger) == 5
    assert "safety" in ledger
    assert ledger["safety"] in ledger
    assert "luck" not in ledger
    assert 0 not in ledger
    with pytest.raises(InvalidInput, match="S-OPS makes no promise 'luck'; it makes: confidence, feasibility, safety"):
        ledger["luck"]
