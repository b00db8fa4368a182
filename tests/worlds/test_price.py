"""The price of the constraint, controls, what lists say without building a world, and the page that is made of it."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli, worlds
from hedgerow.planning import offline
from hedgerow.worlds import entries
from hedgerow.worlds.world import FREE, Golden

ROOT = Path(__file__).resolve().parents[2]
UPCOMING = {"cycle", "betrayal", "hidden", "early-bird", "tempting"}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def no_building(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a world was built")

    for name in worlds.names():
        monkeypatch.setitem(entries._entries, name, dataclasses.replace(entries.find_entry(name), build=refuse))
    with pytest.raises(AssertionError, match="a world was built"):
        worlds.make("lock")


def test_the_price_is_the_difference_and_never_negative():
    golden = Golden(optimum=2.5, unconstrained=2.0, margin=1.0)
    assert golden.price == 0.5
    assert not golden.is_control
    rounding = Golden(optimum=2.0 - 1e-15, unconstrained=2.0, margin=1.0)
    assert rounding.price == 0.0
    assert rounding.is_control
    assert Golden(optimum=2.0 + FREE / 2, unconstrained=2.0, margin=1.0).is_control
    assert not Golden(optimum=2.0 + 3 * FREE, unconstrained=2.0, margin=1.0).is_control


def test_a_world_has_its_price_in_both_units():
    world = worlds.make("dope-factored")
    assert (world.price, world.source_price, world.unit) == (2.0, 2.0, "reward")
    assert world.source_value(world.golden.unconstrained) - world.source_value(world.golden.optimum) == pytest.approx(2)
    other = worlds.make("random-layered", seed=5)
    assert other.golden is None
    assert other.price is None
    assert other.source_price is None
    assert worlds.Scale("reward", 3.0, -2.5).distance(2.0) == 5.0


def test_controls_are_worlds_whose_unconstrained_optimum_is_safe():
    for name in ("lower-bound-2", "ev-workday", "streaming-5", "slater-chain"):
        world = worlds.make(name)
        free = offline.optimum(hr.CMDP(world.cmdp.layout, world.cmdp.transitions), world.loss)
        best = offline.optimum(world)
        assert world.golden.is_control == (best.value - free.value <= FREE)
        assert world.price == pytest.approx(best.value - free.value, abs=1e-7)
    assert worlds.make("lower-bound-2").golden.is_control
    assert not worlds.make("lower-bound-1").golden.is_control


def test_every_entry_says_who_defined_it_and_names_known_adversaries():
    known = {"own", *hr.losses.names(), *UPCOMING}
    for name in worlds.names():
        told = worlds.describe(name)
        assert told.source, f"{name} has no source"
        assert "\n" not in told.source
        assert told.adversaries[0] == "own", name
        assert set(told.adversaries) <= known, name
        assert len(set(told.adversaries)) == len(told.adversaries)


def test_stored_facts_are_those_of_the_worlds():
    for name in worlds.names():
        for params in worlds.describe(name).frozen:
            world = worlds.make(name, **params)
            assert entries.frozen_record(name, params).facts == entries.facts_of(world), (name, params)
            assert entries.frozen_record(name, params).facts.scale == world.scale


def test_worlds_are_listed_without_building_one(no_building):
    listed = json.loads(run("worlds", "--json"))
    assert [entry["name"] for entry in listed] == list(worlds.names())
    by_name = {entry["name"]: entry for entry in listed}
    media = by_name["dope-media"]
    assert (media["steps"], media["states"], media["triples"], media["constraints"]) == (10, 92, 1640, 1)
    assert media["source"] == "Bura et al. 2022"
    assert media["baseline"] == "budget"
    assert media["golden"]["price"] == pytest.approx(6.746704 - 5.393138, abs=2e-6)
    assert media["adversaries"][:2] == ["own", "switching"]
    assert by_name["dope-factored"]["in_source_unit"] == {
        "unit": "reward", "optimum": 2.0, "unconstrained": 4.0, "price": 2.0
    }  # fmt: skip
    assert by_name["lower-bound-2"]["golden"]["control"] is True
    assert by_name["ev-workday"]["baseline"] == "policy"
    assert by_name["lower-bound-1"]["baseline"] == "policy"


def test_the_table_shows_price_source_and_baseline(no_building):
    text = run("worlds", "-v")
    lines = {line.split()[0]: line for line in reversed(text.splitlines()) if line.strip()}
    header = next(line for line in text.splitlines() if "optimum" in line)
    assert [word for word in ("source", "price", "margin", "baseline") if word not in header] == []
    assert "slack" in lines["lower-bound-2"]
    assert "slack" not in lines["lower-bound-1"]
    assert "1.353566" in lines["dope-media"]
    assert "8.983489" in lines["dope-media"]
    assert "Bura et al. 2022" in lines["dope-media"]
    assert "the constraint is slack at the optimum" in text
    assert max(map(len, text.splitlines())) <= 140


def test_check_prints_the_price():
    text = run("check", "streaming-5", "--no-probe")
    assert "price of the constraint: 0.199500 loss per episode (0.199500 reward)" in text
    assert "slack" not in text
    found = json.loads(run("check", "streaming-5", "--no-probe", "--json"))["offline"]["price"]
    assert found["control"] is False
    assert found["loss"] == pytest.approx(0.1995, abs=1e-7)


def test_check_calls_a_slack_constraint_slack():
    text = run("check", "lower-bound-2", "--no-probe")
    assert "price of the constraint: 0 under the world's own loss" in text
    assert "slack: the constraint is slack at the optimum" in text
    assert json.loads(run("check", "lower-bound-2", "--no-probe", "--json"))["offline"]["price"]["control"] is True


def load_tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_worlds_is_up_to_date(no_building, tmp_path, monkeypatch, capsys):
    tool = load_tool("write_worlds")
    assert tool.TARGET.read_text(encoding="utf-8") == tool.page()
    for name in worlds.names():
        assert tool.page().count(f"| {name} |") == 2
    monkeypatch.setattr(tool, "TARGET", tmp_path / "worlds.md")
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    tool.TARGET.write_text("old", encoding="utf-8")
    assert tool.main(["--check"]) == 1
    assert "run python tools/write_worlds.py" in capsys.readouterr().err
