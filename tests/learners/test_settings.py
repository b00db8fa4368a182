"""Switches and presets: what a preset sets goes with what it belongs to, and nothing senseless gets in."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from learner_cases import KINDS, WITH_BASELINE, make_learner, random_world

import hedgerow as hr
from hedgerow.confidence.sets import WIDE
from hedgerow.learners.ops.settings import PRESETS, Settings, make_settings

ALL = frozenset(asdict(Settings())) - {"preset"}
WORLD = random_world(0)
MIXING = ("cv-ops", *WITH_BASELINE)
OF_KT = ("aggregate", "ball_from")


def settings(preset: str = "sharpest", **switches: Any) -> Settings:
    return make_settings(preset, switches, ALL, "a learner")


def test_the_presets() -> None:
    assert settings("paper") == Settings()
    sharp = {"radii": "tight", "clip_costs": True, "joint_cost": True, "baseline_bound": "each"}
    assert settings("sharp") == Settings(preset="sharp", **sharp)
    best = {"radii": "kt", "ties": True, "aggregate": True, "ball_from": WIDE, "search_radius": "variance"}
    best |= {"eta": "adaptive", "gamma": 0.1}
    assert settings() == Settings(preset="sharpest", **{**sharp, **best})
    assert WIDE > 1


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_learner_has_every_preset(kind: str, preset: str) -> None:
    learner = make_learner(kind, WORLD, preset=preset)
    assert learner.settings == settings(preset, **learner.preset_changes.get(preset, {}))


@pytest.mark.parametrize("radii", ["paper", "tight", "anytime"])
def test_other_radii_drop_what_belongs_to_kt_and_nothing_else(radii: str) -> None:
    found = settings(radii=radii)
    assert found == replace(settings(), radii=radii, aggregate=False, ball_from=0)
    assert found.ties
    assert found.preset == "sharpest"
    for kind in KINDS:
        learner = make_learner(kind, WORLD, preset="sharpest", radii=radii)
        assert not learner.settings.aggregate
        assert learner.settings.ball_from == 0
        assert learner.core.sets.rule.box.gradual == 0


def test_without_a_joint_cost_there_are_no_balls() -> None:
    assert settings(joint_cost=False) == replace(settings(), joint_cost=False, ball_from=0)
    assert settings(joint_cost=False).aggregate


@pytest.mark.parametrize(("preset", "radii"), [("paper", "anytime"), ("sharp", "anytime"), ("sharpest", "kt")])
def test_without_a_horizon_radii_are_those_that_need_none(preset: str, radii: str) -> None:
    found = settings(preset, horizon="doubling")
    assert found.radii == radii
    assert found.aggregate == (radii == "kt")
    for kept in ("anytime", "kt"):
        assert settings(preset, horizon="doubling", radii=kept).radii == kept
    with pytest.raises(hr.errors.InvalidInput, match="the radii must be 'anytime' or 'kt', not 'tight'"):
        settings(preset, horizon="doubling", radii="tight")


def test_each_piece_of_the_best_combination_can_be_left_out() -> None:
    for name, value in (("ties", False), ("aggregate", False), ("ball_from", 0), ("clip_costs", False)):
        assert settings(**{name: value}) == replace(settings(), **{name: value})
    assert settings("paper", radii="kt") == Settings(radii="kt")
    assert settings("sharp", radii="kt", ball_from=5).ball_from == 5
    assert settings("paper", ties=True) == Settings(ties=True)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an aggregate of other radii": ({"radii": "tight", "aggregate": True}, "aggregate belongs to radii='kt'"),
    "balls of other radii": ({"radii": "anytime", "ball_from": 4}, "ball_from belongs to radii='kt'"),
    "both": ({"radii": "paper", "ball_from": 4, "aggregate": True}, "aggregate belongs to radii='kt'"),
    "balls without a joint cost": ({"joint_cost": False, "ball_from": 4}, "ball_from belongs to joint_cost=True"),
    "ties in words": ({"ties": "yes"}, "ties must be True or False, not 'yes'"),
    "ties as a number": ({"ties": 1}, "ties must be True or False, not 1"),
    "an aggregate as a number": ({"aggregate": 1}, "aggregate must be True or False, not 1"),
    "an anchor in words": ({"anchored": "yes"}, "anchored must be True or False, not 'yes'"),
    "a part of a successor": ({"ball_from": 2.5}, "ball_from must be a whole number"),
    "a flag of balls": ({"ball_from": True}, "ball_from must be a whole number"),
    "fewer than no successors": ({"ball_from": -1}, "ball_from is -1; it must be at least 0"),
    "other radii": ({"radii": "kl"}, "the radii are 'kl'; choose one of paper, tight, anytime, kt$"),
    "radii of others": ({"radii": "efroni"}, "choose one of paper, tight, anytime, kt; the learners of hr.field have"),
    "radii that are no text": ({"radii": ["kt"]}, "the radii are .'kt'.; choose one of"),
    "a switch that there is not": ({"tie": True}, "a learner has no switch 'tie'"),
}


@pytest.mark.parametrize(("switches", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(switches: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        settings(**switches)
    with pytest.raises(hr.errors.InvalidInput, match=message.replace("a learner", "SOPS")):
        make_learner("s-ops", WORLD, preset="sharpest", **switches)


@pytest.mark.parametrize("switches", [{"aggregate": True}, {"ball_from": 4}], ids=str)
@pytest.mark.parametrize("preset", ["paper", "sharp"])
def test_the_older_presets_have_other_radii(preset: str, switches: dict[str, Any]) -> None:
    with pytest.raises(hr.errors.InvalidInput, match="belongs to radii='kt'"):
        settings(preset, **switches)


def test_a_preset_that_there_is_not() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="the preset is 'sharper'; did you mean 'sharp' or 'sharpest'"):
        settings("sharper")


@pytest.mark.parametrize("name", OF_KT)
def test_only_learners_that_mix_have_switches_for_bounds_of_their_costs(name: str) -> None:
    for kind in KINDS:
        if kind in MIXING:
            make_learner(kind, WORLD, preset="sharpest", **{name: {"aggregate": False, "ball_from": 0}[name]})
            continue
        with pytest.raises(hr.errors.InvalidInput, match=f"has no switch '{name}'"):
            make_learner(kind, WORLD, preset="sharpest", **{name: {"aggregate": False, "ball_from": 0}[name]})
