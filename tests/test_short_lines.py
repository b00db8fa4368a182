"""Every public object prints one short line, whatever it holds: no arrays, no line ends, nothing to obey."""

from __future__ import annotations

import enum
import inspect
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.display import text
from hedgerow.display.text import visible
from shown_objects import HOSTILE, labelled_world, many_labels, objects

LONGEST = 200
WITHOUT_OBJECTS = {"CostDistribution", "Environment", "Journal", "Learner"}
"""Abstract: what derives from them, or fits them, is among the objects."""


@pytest.fixture(scope="module")
def middling() -> dict[str, Any]:
    return objects(hr.worlds.make("dope-media").cmdp)


@pytest.fixture(scope="module")
def hostile() -> dict[str, Any]:
    return objects(labelled_world())


def too_much(found: dict[str, Any]) -> dict[str, str]:
    """The lines that are too long, or hold what no line should."""
    lines = {name: repr(value) for name, value in found.items()}
    return {
        name: line
        for name, line in lines.items()
        if len(line) > LONGEST or not line.isprintable() or "array([" in line or " at 0x" in line
    }


def test_a_middling_world(middling: dict[str, Any]) -> None:
    assert too_much(middling) == {}


def test_a_world_with_hostile_labels(hostile: dict[str, Any]) -> None:
    assert too_much(hostile) == {}


@pytest.mark.parametrize("name", ["random-layered", "ev-workday", "lower-bound-1"])
def test_worlds_of_the_catalogue(name: str) -> None:
    world = hr.worlds.make(name)
    shown = {"world": world, "cmdp": world.cmdp, "view": world.view(), "baseline": world.baseline}
    assert too_much(shown) == {}
    assert repr(world).startswith(f"World({name!r}, Layout(")


def test_many_labels_and_constraints() -> None:
    cmdp = many_labels()
    policy = hr.Policy.uniform(cmdp)
    shown = {
        "layout": cmdp.layout,
        "cmdp": cmdp,
        "view": cmdp.view(),
        "policy": policy,
        "mixture": hr.Mixture(*[(1.0 / 16, policy)] * 16),
        "plan": hr.Plan(policy),
        "episode": cmdp.play(policy, np.random.default_rng(0)),
    }
    assert too_much(shown) == {}
    assert repr(cmdp.layout) == "Layout(42 layers of 1 to 8 states, actions=5, full support)"
    assert "... 9 more]" in repr(cmdp)
    assert "states more)" in repr(policy)
    assert "... (41 steps); loss 0, costs [" in repr(shown["episode"])


def test_every_public_class_is_looked_at(middling: dict[str, Any]) -> None:
    classes = {
        name
        for name in hr.__all__
        if inspect.isclass(value := getattr(hr, name))
        and not issubclass(value, BaseException | enum.Enum)
        and name not in WITHOUT_OBJECTS
    }
    seen = {kind.__name__ for value in middling.values() for kind in type(value).__mro__}
    assert classes - seen == set()


def test_lines_say_what_matters(hostile: dict[str, Any], middling: dict[str, Any]) -> None:
    assert repr(middling["results"]) == (
        "Results('s-ops (sharp) on <script>alert(1)</script> [/x] \\x1b[31...', 1 of 1 cell done, 1 learner, 1 setting)"
    )
    assert repr(middling["cell"]).endswith("__T60__seed0', done)")
    assert repr(hostile["ledger"]) == "Ledger('S-OPS', 5 of 5 promises hold, rests on 3 statements)"
    assert "void: 'confidence'" in repr(hostile["void ledger"])
    assert "INFEASIBLE, least_violation=" in repr(hostile["infeasible"])
    assert "SOLVED, objective=" in repr(hostile["solved"])
    assert "state 'home' -> " in repr(hostile["policy"])
    assert repr(hostile["plan"]).startswith("NumberedPlan(episode 0, own, mixing_weight=0, cost_bounds=[2, 2], Policy(")
    assert repr(hostile["no knowledge"]) == "Knowledge(nothing)"
    assert repr(hostile["replay"]) == "Replay(table=array(30, 6), cycle=False)"
    assert repr(hostile["checked"]) == "checked(Fixed(loss=array(6)))"
    assert repr(hostile["block"]) == "LossBlock(5 episodes, 1 pattern, 6 rows)"
    assert repr(hostile["empirical"]) == "EmpiricalCosts(1 matrix, 2 constraints, 6 rows)"


def test_cells_of_which_only_the_name_is_known(hostile: dict[str, Any]) -> None:
    results = hostile["results"]
    lost = type(results.cells[0]).of({"id": "lost"}, {}, "missing")
    line = repr(type(results)(None, results.manifest, (*results.cells, lost), results.load))
    assert "1 of 2 cells done, 1 learner, 1 setting" in line
    assert repr(lost) == "Cell('lost', missing)"


def test_results_of_a_sweep_name_the_directory(hostile: dict[str, Any], tmp_path: Any) -> None:
    results = hostile["results"]
    here = type(results)(tmp_path / HOSTILE.replace("/", ""), results.manifest, results.cells, results.load)
    line = repr(here)
    assert len(line) <= LONGEST
    assert line.endswith(visible(HOSTILE.replace("/", ""))[-20:] + ")")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("home", "'home'"),
        ("it's", '"it\'s"'),
        ("\x1b[31m", r"'\x1b[31m'"),
        ("é" * 40, f"'{'é' * 27}...'"),
        ("\n" * 40, None),
    ],
)
def test_names_in_quotation_marks(name: str, line: str | None) -> None:
    shown = text.quoted(name)
    assert len(shown) <= text.LONGEST_NAME
    assert shown.isprintable()
    assert line is None or shown == line


def test_lists_say_how_much_is_left_out() -> None:
    assert text.listed([]) == ""
    assert text.listed("abcdef", most=2) == "a, b, ... 4 more"
    assert text.listed(iter("ab"), most=2, count=10_002) == "a, b, ... 10,000 more"
    assert text.numbers([]) == "[]"
    assert text.line("Run", "x" * 500).endswith("...)")
    assert len(text.line("Run", "x" * 500)) == LONGEST
