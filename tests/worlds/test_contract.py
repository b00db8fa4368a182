"""What every frozen entry of the catalogue promises, and how `make` answers to mistakes."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import backward_induction
from hedgerow.planning import offline
from hedgerow.worlds import entries
from hedgerow.worlds.world import content_hash
from tools import freeze_worlds

TOL_GOLDEN = 1e-6
FROZEN = [
    pytest.param(name, params, id=f"{name} {json.dumps(params)}")
    for name in worlds.names()
    for params in worlds.describe(name).frozen
]


@pytest.mark.parametrize(("name", "params"), FROZEN)
class TestFrozenEntry:
    def test_rows_are_distributions_and_losses_losses(self, name, params):
        world = worlds.make(name, **params)
        layout = world.cmdp.layout
        sums = np.add.reduceat(world.cmdp.transitions, layout.row_start[:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)
        assert world.cmdp.transitions.min() >= 0
        assert world.loss.shape == (layout.num_rows,)
        assert world.loss.min() >= 0
        assert world.loss.max() <= 1
        assert world.cmdp.num_constraints >= 1
        assert not world.loss.flags.writeable

    def test_optimum_unconstrained_and_margin_are_golden(self, name, params):
        world = worlds.make(name, **params)
        best, slater = offline.optimum(world.cmdp, world.loss), offline.slater(world.cmdp)
        free = backward_induction(world.cmdp.layout, world.cmdp.transitions, world.loss)
        assert np.all(best.costs <= world.cmdp.thresholds + 1e-9)
        assert slater.margin > 0
        assert free.value <= best.value + 1e-12
        assert best.value == pytest.approx(world.golden.optimum, abs=TOL_GOLDEN)
        assert free.value == pytest.approx(world.golden.unconstrained, abs=TOL_GOLDEN)
        assert slater.margin == pytest.approx(world.golden.margin, abs=TOL_GOLDEN)

    def test_golden_values_agree_with_the_source(self, name, params):
        world = worlds.make(name, **params)
        for key, quoted in (world.golden.published or {}).items():
            assert world.source_value(getattr(world.golden, key)) == pytest.approx(quoted, abs=TOL_GOLDEN)
        if world.baseline_thresholds is not None:
            baseline = offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
            assert baseline.value == pytest.approx(world.golden.baseline, abs=TOL_GOLDEN)

    def test_hash_is_that_of_the_content(self, name, params):
        world = worlds.make(name, **params)
        assert world.hash == content_hash(world.cmdp, world.loss)
        assert world.hash == entries.frozen_records()[entries.key(name, world.params)].hash

    def test_saved_and_loaded_it_is_identical(self, name, params, tmp_path):
        world = worlds.make(name, **params)
        world.cmdp.save(tmp_path / "world.hedge")
        again = CMDP.load(tmp_path / "world.hedge")
        assert again.to_bytes() == world.cmdp.to_bytes()
        assert again.layout == world.cmdp.layout
        np.testing.assert_array_equal(again.transitions, world.cmdp.transitions)
        np.testing.assert_array_equal(again.mean_costs, world.cmdp.mean_costs)
        assert content_hash(again, world.loss) == world.hash


def test_the_data_file_holds_exactly_the_frozen_choices():
    promised = {
        entries.key(name, entries.complete_params(entries.find_entry(name), params))
        for name in worlds.names()
        for params in worlds.describe(name).frozen
    }
    assert set(entries.frozen_records()) == promised


def test_every_entry_has_frozen_defaults_and_a_description():
    for name in worlds.names():
        description = worlds.describe(name)
        assert description.name == name
        assert {} in description.frozen
        assert "\n" not in description.description
        assert len(description.description) > 20
        assert worlds.make(name).params == description.parameters


def test_freezing_again_changes_nothing(tmp_path):
    stored = resources.files("hedgerow.worlds").joinpath(entries.FROZEN_FILE).read_text(encoding="utf-8")
    path = tmp_path / "frozen.json"
    path.write_text(stored, encoding="utf-8")
    freeze_worlds.refresh(path, ["lower-bound-1", "random-layered"])
    old, new = json.loads(stored)["entries"], json.loads(path.read_text(encoding="utf-8"))["entries"]
    assert [item["hash"] for item in new] == [item["hash"] for item in old]
    for before, after in zip(old, new, strict=True):
        for key in ("optimum", "unconstrained", "margin"):
            assert after["golden"][key] == pytest.approx(before["golden"][key], abs=TOL_GOLDEN)


def test_freezing_refuses_to_contradict_the_source():
    world = worlds.make("lower-bound-2")
    assert freeze_worlds.golden_values(world, {"optimum": 0.5}).published == {"optimum": 0.5}
    with pytest.raises(
        CertificateError, match=r"lower-bound-2: the optimum is 0\.5.* \(reward\), but the source gives 0\.6"
    ):
        freeze_worlds.golden_values(world, {"optimum": 0.6})


def test_changed_content_is_refused(monkeypatch):
    found = entries.find_entry("lower-bound-2")

    def other(**params):
        made = found.build(**params)
        return dataclasses.replace(made, loss=np.array([0.5, 0.75]))

    monkeypatch.setitem(entries._entries, "lower-bound-2", dataclasses.replace(found, build=other))
    with pytest.raises(
        CertificateError, match=r"golden values belong to .*`python tools/freeze_worlds.py lower-bound-2"
    ):
        worlds.make("lower-bound-2")
    assert worlds.make("lower-bound-2", rho=0.3).golden is None  # not frozen, so nothing to contradict


def test_parameters_at_their_defaults_are_the_frozen_choice():
    assert worlds.make("random-layered", layers=[1, 5, 5, 5, 1], seed=np.int64(0)).golden is not None
    assert worlds.make("random-layered", seed=1).golden is None


def test_an_instance_is_immutable():
    world = worlds.make("lower-bound-1")
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.loss = np.zeros(2)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("lower-bound-3", {}, r"unknown world 'lower-bound-3'; did you mean 'lower-bound-2' or 'lower-bound-1'\?"),
        (
            "random-layered",
            {"states": 3},
            r"no parameter 'states'; its parameters are: layers: tuple\[int, ...\] = \(1, 5, 5, 5, 1\), actions: int",
        ),
        ("random-layered", {"layers": 5}, r"random-layered: layers must be a sequence like \(1, 5"),
        ("random-layered", {"layers": (1, 2.5, 1)}, r"random-layered: layers\[1\] must be a whole number, not 2.5"),
        ("random-layered", {"layers": (1, 0, 1)}, r"size of layer 1 is 0"),
        ("random-layered", {"layers": (2, 3, 1)}, r"layer 0 has 2 states"),
        ("random-layered", {"actions": 0}, r"number of actions is 0"),
        ("random-layered", {"actions": "four"}, r"random-layered: actions must be a whole number, not 'four'"),
        ("random-layered", {"constraints": -1}, r"random-layered: constraints is -1; it must be at least 0"),
        ("random-layered", {"seed": True}, r"random-layered: seed must be a whole number, not True"),
        ("random-layered", {"tightness": 1.5}, r"random-layered: tightness is 1.5; it must lie in \[0, 1\]"),
        ("random-layered", {"tightness": float("nan")}, r"random-layered: tightness is nan"),
        ("lower-bound-1", {"rho": 0.6}, r"lower-bound-1: rho is 0.6; it must lie in \[0, 0.5\]"),
        ("lower-bound-2", {"rho": 0.001}, r"lower-bound-2: rho is 0.001, below eps"),
        ("lower-bound-1", {"episodes": 0}, r"lower-bound-1: episodes is 0; it must be at least 1"),
        ("lower-bound-1", {"rho": float("inf")}, r"lower-bound-1: rho is inf"),
    ],
)
def test_bad_input(name, params, message):
    with pytest.raises(InvalidInput, match=message):
        worlds.make(name, **params)
